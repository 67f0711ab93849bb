#!/usr/bin/env bash
# Builds the program, runs it, sends heartbeats and checks the status of Probes, also after the program is
# killed. It needs kubectl, curl and Go.
source "$(dirname "$0")/../prove.bash"

namespace=custom-watch-$RANDOM
work=$(mktemp -d)
program=
trap '[ -z "$program" ] || { kill "$program" && wait "$program"; } || true; rm -rf "$work"' EXIT
export HEARTBEAT_TOKEN=$RANDOM$RANDOM
port=$((20000 + RANDOM % 10000))

start() {
  "$work/program" --kubeconfig "$KUBECONFIG" --metrics-address 0 --health-probe-bind-address 0 \
    --listen "127.0.0.1:$port" --period 200ms >>"$work/log" 2>&1 &
  program=$!
}
message() { value '{.status.message}' probe "$1" -n "$namespace"; }
alive() { value '{.status.conditions[?(@.type=="Alive")].status}' probe "$1" -n "$namespace"; }

# beat sends a heartbeat and prints the status of the response: beat <name> <message> <token>
beat() {
  curl -s -o "$work/response" -w '%{http_code}' -H "Authorization: Bearer ${3:-$HEARTBEAT_TOKEN}" \
    -d "{\"namespace\":\"$namespace\",\"name\":\"$1\",\"message\":\"$2\"}" "http://127.0.0.1:$port/"
}

step "The program listens for heartbeats."
go build -o "$work/program" .
kubectl apply --server-side -f crd.yaml
kubectl create namespace "$namespace"
start
for probe in "backup 1h" "clock 2s"; do
  kubectl apply -f - <<YAML
apiVersion: watch.example.com/v1
kind: Probe
metadata: {name: ${probe% *}, namespace: $namespace}
spec: {period: ${probe#* }}
YAML
done
eventually "backup is alive" False alive backup

step "The status shows the last heartbeat."
eventually "the response" 202 beat backup "3 files"
eventually "the message" "3 files" message backup
eventually "backup is alive" True alive backup
eventually "the response" 202 beat backup "5 files"
eventually "the message" "5 files" message backup

step "Without the token, and for a Probe that does not exist, a heartbeat is refused."
eventually "the response" 403 beat backup "6 files" guess
eventually "the response" 404 beat other "1 file"

step "A Probe without heartbeats is overdue."
eventually "the response" 202 beat clock tick
eventually "clock is alive" True alive clock
eventually "clock is alive" False alive clock

step "The program is killed. After the restart the status still has the last heartbeat, and shows the next one."
eventually "the response" 202 beat clock tock
eventually "the message" tock message clock
kill -KILL "$program"
wait "$program" 2>/dev/null || true
start
eventually "clock is alive" False alive clock
eventually "the message" "5 files" message backup
eventually "the response" 202 beat backup "7 files"
eventually "the message" "7 files" message backup
kubectl delete namespace "$namespace" --wait=false
