#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

images() { kubectl get pods -l app=cat -o 'jsonpath={.items[*].spec.containers[0].image}'; }
template() { # template <image> <annotations>
  kubectl patch catset cat --type=merge -p "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":$2},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"$1\"}]}}}}"
}

step "Three Pods come up in order, each with a volume of its own."
install
kubectl apply -f cat.yaml
eventually "Pods that are ready" 3 value '{.status.readyReplicas}' catset cat
eventually "the Pods" "cat-0 cat-1 cat-2" names pods -l app=cat
eventually "the volumes" "data-cat-0 data-cat-1 data-cat-2" names pvc

step "A new image reaches one Pod after the other."
template cat:2 null
eventually "the images" "cat:2 cat:2 cat:2" images
eventually "the update" OnLatestRevision value '{.status.conditions[?(@.type=="Updated")].reason}' catset cat

step "An image whose Pod does not become ready stops at the first Pod."
template cat:bad '{"stand-in.hookloop.dev/hold":"true"}'
eventually "the images" "cat:bad cat:2 cat:2" images
eventually "the update" RolloutWaiting value '{.status.conditions[?(@.type=="Updated")].reason}' catset cat

step "A Pod of the old revision that is lost comes back as it was (and need not wait for the others: that is no part of a revision)."
kubectl patch catset cat --type=merge -p '{"spec":{"podManagementPolicy":"Parallel"}}'
kubectl delete pod cat-2
eventually "the images" "cat:bad cat:2 cat:2" images

step "The next image heals it."
template cat:3 null
kubectl annotate pod cat-0 stand-in.hookloop.dev/hold-
eventually "the images" "cat:3 cat:3 cat:3" images
eventually "the update" OnLatestRevision value '{.status.conditions[?(@.type=="Updated")].reason}' catset cat

step "The set is deleted: its Pods go one at a time, the last one first."
kubectl delete catset cat
eventually "the Pods" "" names pods -l app=cat

step "And a new one, to look at."
kubectl apply -f - <<YAML
apiVersion: examples.hookloop.dev/v1
kind: CatSet
metadata: {name: cat}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: cat}}
    spec: {containers: [{name: main, image: "cat:1"}]}
YAML
eventually "Pods that are ready" 2 value '{.status.readyReplicas}' catset cat
