#!/usr/bin/env bash
# Builds the program, runs it as the engine of its own controller, and checks its effect. It needs kubectl
# and Go. Another Hookloop in the cluster must not select the controller, see README.md.
source "$(dirname "$0")/../prove.bash"

namespace=embedded-$RANDOM
work=$(mktemp -d)
program=
trap '[ -z "$program" ] || { kill "$program" && wait "$program"; } || true; rm -rf "$work"' EXIT

text() { value '{.data.text}' configmap "$1" -n "$namespace"; }
length() { value '{.status.length}' note "$1" -n "$namespace"; }
reason() { value '{.status.conditions[?(@.type=="Synced")].reason}' note "$1" -n "$namespace"; }

label() { value '{.metadata.labels.size}' note "$1" -n "$namespace"; }
dependencies() { value '{.status.conditions[?(@.type=="DependenciesMet")].status}' board "$1" -n "$namespace"; }
shows() { value '{.data.shows}' configmap "board-$1" -n "$namespace"; }
holders() { value '{.items[*].spec.holderIdentity}' leases -n "$namespace" | wc -w; }
start() {
  "$work/embedded" --kubeconfig "$KUBECONFIG" --metrics-address 0 --health-probe-bind-address 0 \
    --leader-election-namespace "$namespace" >>"$work/log" 2>&1 &
  program=$!
}

# note writes a note: note <name> <text>
note() {
  kubectl apply -f - <<YAML
apiVersion: demo.example.com/v1
kind: Note
metadata: {name: $1, namespace: $namespace}
spec: {text: "$2"}
YAML
}

step "One program is the engine and the hook."
go build -o "$work/embedded" .
kubectl apply --server-side -f crd.yaml
kubectl create namespace "$namespace"
start
install

step "A note becomes a ConfigMap, and a change follows."
note milk "Buy milk"
eventually "the ConfigMap" "Buy milk" text milk
eventually "the note's length" 8 length milk
note milk "Buy milk and tea"
eventually "the ConfigMap" "Buy milk and tea" text milk

step "A child that somebody changes is repaired, and an empty note is refused by the function."
kubectl patch configmap milk -n "$namespace" --type=merge -p '{"data":{"text":"Buy beer"}}'
eventually "the ConfigMap" "Buy milk and tea" text milk
note empty ""
eventually "the reason on the note" Empty reason empty

step "The controller in Go labels notes; the actor waits for the note of its board, which the hook makes ready."
eventually "the label" long label milk
eventually "the label" short label empty
kubectl apply -f - <<YAML
apiVersion: demo.example.com/v1
kind: Board
metadata: {name: kitchen, namespace: $namespace}
spec: {note: bread}
YAML
eventually "whether the dependencies are met" False dependencies kitchen
note bread "Buy bread"
eventually "the board" "Buy bread" shows kitchen
eventually "whether the dependencies are met" True dependencies kitchen
eventually "holders of a Lease" 1 holders

step "What was there is kept while the program is down, and what has changed meanwhile is made when it is back."
kill "$program"
wait "$program"
note milk "Buy sugar"
note bread "Buy rye bread"
start
eventually "the ConfigMap" "Buy sugar" text milk
eventually "the label" short label milk
eventually "the board" "Buy rye bread" shows kitchen
kubectl delete board kitchen -n "$namespace"
eventually "ConfigMaps left" "" names configmaps -n "$namespace" --field-selector metadata.name=board-kitchen
kubectl delete note bread milk empty -n "$namespace"
eventually "ConfigMaps left" "" names configmaps -n "$namespace" --field-selector metadata.name=milk
kubectl delete namespace "$namespace" --wait=false
