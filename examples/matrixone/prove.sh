#!/usr/bin/env bash
# Builds the program, runs it, and follows a database from its creation to its deletion. It needs kubectl, Go
# and hookloop. If there is no kubelet, something must set the status of Pods.
source "$(dirname "$0")/../prove.bash"

namespace=matrixone-$RANDOM
work=$(mktemp -d)
program=
trap '[ -z "$program" ] || { kill "$program" && wait "$program"; } || true; rm -rf "$work"' EXIT

start() {
  OTEL_EXPORTER_OTLP_PROTOCOL=grpc "$work/matrixone" --kubeconfig "$KUBECONFIG" --metrics-address "127.0.0.1:$port" --health-probe-bind-address 0 \
    --tracing-endpoint "${JAEGER_OTLP:-}" >>"$work/log" 2>&1 &
  program=$!
}
condition() { value "{.status.conditions[?(@.type==\"$2\")].$3}" "$1" -n "$namespace"; }
endpoint() { value '{.spec.template.metadata.annotations.matrixone\.example\.com/config}' statefulset "$1" -n "$namespace"; }
groups() { names logservices,dngroups,cngroups -n "$namespace"; }
# metric prints the value of the condition Ready of one object
metric() { curl -s "http://127.0.0.1:$port/metrics" | grep '^hookloop_object_condition' | grep "name=\"$1\"" | grep 'condition="Ready"' | sed 's/.* //'; }

step "One program has an actor for the database and one for each group."
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
go build -o "$work/matrixone" .
install
kubectl create namespace "$namespace"
start

step "A compute group waits for what it needs, and names it."
kubectl apply -n "$namespace" -f - <<YAML
apiVersion: matrixone.example.com/v1
kind: CNGroup
metadata: {name: early}
spec: {image: "matrixone:1", replicas: 1}
deps: {logService: {metadata: {name: mo-log}}, dnGroup: {metadata: {name: mo-dn}}}
YAML
eventually "DependenciesMet of the group" False condition cngroup/early DependenciesMet status
eventually "its reason" NotFound condition cngroup/early DependenciesMet reason
hookloop graph cngroup early -n "$namespace"

step "The database starts in the order of its dependencies."
kubectl apply -n "$namespace" -f database.yaml
eventually "the database is ready" True condition matrixonecluster/mo Ready status
eventually "the waiting group is ready, too" True condition cngroup/early Ready status
eventually "the address in the configuration of the data" "ha-keeper-address=mo-log.$namespace.svc:32001" endpoint mo-dn
eventually "the metric of the database" 1 metric mo
hookloop graph matrixonecluster mo -n "$namespace"

step "The start of the database is one trace through all actors."
trace() {
  hookloop trace matrixonecluster mo -n "$namespace" --spans --metrics-url "http://127.0.0.1:$port" --jaeger "$JAEGER"
}
roots() { trace | sed '1,/^SPAN/d' | grep -o '^[a-z][a-z]* [a-z-]*' | sort -u | paste -sd' '; }
through() { trace | grep -o 'reconcile [a-z-]*' | sort -u | sed 's/.* //' | paste -sd' '; }
if [ -n "${JAEGER:-}" ]; then
  eventually "the actors in it" "cn-group dn-group log-service matrixone-cluster" through
  eventually "its root" "change matrixoneclusters" roots
  trace
fi

step "A change reaches all groups, also while the program is down."
kill -9 "$program"
wait "$program" 2>/dev/null || true
kubectl patch matrixonecluster mo -n "$namespace" --type=merge -p '{"spec":{"image":"matrixone:2"}}'
start
image() { value '{.spec.template.spec.containers[0].image}' statefulset mo-cn -n "$namespace"; }
eventually "the image of the compute group" matrixone:2 image
eventually "the database is ready" True condition matrixonecluster/mo Ready status

step "What others depend on is the last to go."
kubectl delete matrixonecluster mo -n "$namespace" --wait=false
eventually "the groups that the other one needs" "early mo-dn mo-log" groups
kubectl delete cngroup early -n "$namespace" --wait=false
eventually "groups left" "" groups
kubectl delete namespace "$namespace" --wait=false
