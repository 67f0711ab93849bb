#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "Three Pods come up blue, and the Service leads to them."
install
kubectl apply -f shop.yaml
eventually "the ReplicaSets" shop-blue names replicasets
eventually "Pods that are ready" 3 value '{.status.ready}' bgd shop
eventually "the Service leads to" blue value '{.spec.selector.color}' service shop

step "The change comes up green beside it, takes over, and blue goes."
kubectl patch bgd shop --type=merge -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.28"}]}}}}'
eventually "the Service leads to" green value '{.spec.selector.color}' service shop
eventually "the ReplicaSets" shop-green names replicasets
eventually "the image" nginx:1.28 value '{.spec.template.spec.containers[0].image}' replicaset shop-green
eventually "Pods that are ready" 3 value '{.status.ready}' bgd shop

step "A change whose Pods do not become ready takes over nothing."
kubectl patch bgd shop --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"stand-in.hookloop.dev/hold":"true"}},"spec":{"containers":[{"name":"web","image":"nginx:broken"}]}}}}'
eventually "the ReplicaSets" "shop-blue shop-green" names replicasets
eventually "Pods of the change" 3 value '{.status.replicas}' replicaset shop-blue
eventually "the Service leads to" green value '{.spec.selector.color}' service shop
