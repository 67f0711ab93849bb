#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A StatefulSet asks for a Service for each of its three Pods."
install
kubectl apply -f db.yaml
eventually "the Services" "db-0 db-1 db-2" names services -l app=service-per-pod
eventually "the second one leads to" db-1 value '{.spec.selector.statefulset\.kubernetes\.io/pod-name}' service db-1
eventually "Pods that are ready" 3 value '{.status.readyReplicas}' statefulset db

step "It is scaled down, and another port is asked for."
kubectl scale statefulset db --replicas=2
kubectl annotate --overwrite statefulset db service-per-pod-port=5433
eventually "the Services" "db-0 db-1" names services -l app=service-per-pod
eventually "their ports" "5433 5433" value '{.items[*].spec.ports[0].port}' services -l app=service-per-pod

step "It asks no longer: the Services go, and the StatefulSet stays as it was."
kubectl annotate statefulset db service-per-pod-port-
eventually "the Services" "" names services -l app=service-per-pod
eventually "finalizers of the StatefulSet" "" value '{.metadata.finalizers}' statefulset db

step "And again."
kubectl annotate statefulset db service-per-pod-port=5432
eventually "the Services" "db-0 db-1" names services -l app=service-per-pod
