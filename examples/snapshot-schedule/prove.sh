#!/usr/bin/env bash
# Runs the functions of schedule.py as a gRPC stream, and then as webhooks, through the same steps. It needs
# `hookloop serve` and kubectl, and gRPC for Python.
source "$(dirname "$0")/../prove.bash"

work=$(mktemp -d)
hook= # the process id of the hook that runs
trap 'stop; rm -rf "$work"' EXIT

stop() {
  if [ -n "$hook" ]; then
    kill "$hook" 2>/dev/null || true
    wait "$hook" || true
  fi
  hook=
}

# run replaces the shell by the hook, on a free port: run <controller>
run() {
  export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=../../sdk/python
  case $1 in
    controller.yaml) exec "${PYTHON:-/usr/bin/python3}" stream.py --listen 127.0.0.1:0 ;;
    *) exec "${PYTHON:-/usr/bin/python3}" ../serve.py schedule.py --port 0 ;;
  esac
}

# start runs the hook of a controller, and the controller with the hook's address: start <controller>
start() {
  local address deadline=$((SECONDS + 120))
  : >"$work/log"
  run "$1" >>"$work/log" 2>&1 &
  hook=$!
  while address=$(sed -n 's|^listening on ||p' "$work/log"); [ -z "$address" ]; do
    if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$hook" 2>/dev/null; then
      printf '✗ the hook does not listen: %s\n' "$(cat "$work/log")" >&2
      return 1
    fi
    sleep 0.1
  done
  sed "s|127.0.0.1:[0-9]*|${address#http://}|" "$1" | kubectl apply -f -
  kubectl wait --for=condition=Ready --timeout=180s -f "$1" >/dev/null
}

# on is kubectl in the test's namespace.
on() { kubectl -n "$namespace" "$@"; }

# claims creates PersistentVolumeClaims with a label: claims <label> <name>…
claims() {
  local name
  for name in "${@:2}"; do
    on apply -f - <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $name, labels: {backup: $1}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
YAML
  done
}

# schedule creates or changes a SnapshotSchedule, which selects claims with its name as the label:
# schedule <name> <interval> <TTL>
schedule() {
  on apply -f - <<YAML
apiVersion: examples.hookloop.dev/v1
kind: SnapshotSchedule
metadata: {name: $1}
spec:
  selector: {matchLabels: {backup: $1}}
  snapshotInterval: $2
  snapshotTTL: $3
YAML
}

# status prints a field of a SnapshotSchedule's status: status <name> <field>
status() { value "{.status.$2}" -n "$namespace" snapshotschedule "$1"; }

# of prints fields of a claim's snapshots: of <claim> <jsonpath>
of() {
  on get volumesnapshots -o jsonpath="{range .items[?(@.spec.persistentVolumeClaimName=='$1')]}$2{'\n'}{end}"
}

# snapshots prints the snapshots of a claim, with their UIDs: snapshots <claim>
snapshots() { of "$1" '{.metadata.name} {.metadata.uid}'; }

# count prints the number of a claim's snapshots: count <claim>
count() { snapshots "$1" | wc -l; }

# mark marks all snapshots as ready, as a storage system does.
mark() {
  local name
  for name in $(names volumesnapshots -n "$namespace"); do
    on patch volumesnapshot "$name" --subresource=status --type=merge \
      -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
  done
}

# age prints the age of a claim's only snapshot in seconds: age <claim>
age() { echo $(($(date +%s) - $(date -d "$(of "$1" '{.metadata.creationTimestamp}')" +%s))); }

prove() {
  local kept first
  step "$1: every claim with the label has a snapshot."
  start "$2"
  kubectl create namespace "$namespace"
  schedule nightly 6h 10d
  claims nightly data logs
  claims never cache
  eventually "claims" 2 status nightly inputs.persistentvolumeclaims.total
  eventually "snapshots" 2 status nightly outputs.volumesnapshots.total
  for c in data logs; do eventually "snapshots of $c" 1 count "$c"; done
  eventually "snapshots of cache" 0 count cache

  step "$1: the storage system marks the snapshots as ready."
  mark
  eventually "ready snapshots" 2 status nightly outputs.volumesnapshots.ready
  eventually "the condition Synced" True status nightly 'conditions[?(@.type=="Synced")].status'
  on get snapshotschedules

  step "$1: a claim is deleted, its snapshot is kept; the claim returns and finds its snapshot again."
  kept=$(snapshots data)
  on delete pvc data
  eventually "claims" 1 status nightly inputs.persistentvolumeclaims.total
  eventually "detached snapshots" 1 status nightly detached.outputs
  eventually "snapshots" 2 status nightly outputs.volumesnapshots.total
  claims nightly data
  eventually "claims" 2 status nightly inputs.persistentvolumeclaims.total
  eventually "detached snapshots" "" status nightly detached.outputs
  eventually "the snapshot of data" "$kept" snapshots data

  step "$1: the claim is deleted again, and the TTL ends: the tombstone hook keeps its snapshot until then."
  on delete pvc data
  eventually "detached snapshots" 1 status nightly detached.outputs
  schedule nightly 6h "$(($(age data) + 15))s"
  eventually "the generation in the status" 2 status nightly observedGeneration
  eventually "the snapshot of data" "$kept" snapshots data
  eventually "snapshots of data" 0 count data
  eventually "detached snapshots" "" status nightly detached.outputs

  step "$1: a snapshot every 2 seconds, each for 6 seconds: the map hook drops the ones that have expired."
  schedule often 2s 6s
  claims often mail
  eventually "claims" 1 status often inputs.persistentvolumeclaims.total
  eventually "snapshots of mail" 3 count mail
  first=$(of mail '{.metadata.name}' | sort | head -1)
  eventually "$first" "" names volumesnapshots -n "$namespace" --field-selector "metadata.name=$first"

  step "$1: a deleted schedule takes its snapshots with it."
  on delete snapshotschedules --all
  eventually "snapshots" "" names volumesnapshots -n "$namespace"
  kubectl delete -f "$2"
  kubectl delete namespace "$namespace" --wait=false
  stop
}

kubectl apply --server-side -f crd.yaml
kubectl wait --for=condition=Established --timeout=180s -f crd.yaml >/dev/null
namespace=snapshots-stream prove "gRPC stream" controller.yaml
namespace=snapshots-webhook prove "JSON webhook" controller-webhook.yaml
