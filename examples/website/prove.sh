#!/usr/bin/env bash
# Runs the four hooks of this folder one after the other through the same steps, and compares the objects in
# the cluster. Exit status 1: one of them differs, or `hookloop verify` finds a fault. It needs `hookloop serve`,
# hookloop and kubectl on the PATH, Go, Node.js, and gRPC for Python.
source "$(dirname "$0")/../prove.bash"

namespace=website-$RANDOM
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

# run replaces the shell by a hook that listens on a free port: run <hook>
run() {
  case $1 in
    golang) exec "$work/golang-hook" --listen 127.0.0.1:0 ;;
    python) PYTHONPATH=../../sdk/python PYTHONDONTWRITEBYTECODE=1 exec "${PYTHON:-/usr/bin/python3}" python/hook.py --listen 127.0.0.1:0 ;;
    typescript) exec node typescript/dist/hook.js --listen 127.0.0.1:0 ;;
    webhook) exec "${PYTHON:-/usr/bin/python3}" ../serve.py webhook/hook.py --port 0 ;;
  esac
}

# start runs a hook, and the controller with the hook's address: start <hook> <controller>
start() {
  local address deadline=$((SECONDS + 120))
  : >"$work/log" # here, and not by the hook: removes the address of the previous one
  run "$1" >>"$work/log" 2>&1 &
  hook=$!
  while address=$(sed -n 's|^listening on ||p' "$work/log"); [ -z "$address" ]; do
    if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$hook" 2>/dev/null; then
      printf '✗ %s does not listen: %s\n' "$1" "$(cat "$work/log")" >&2
      return 1
    fi
    sleep 0.1
  done
  check "$address" "$2"
  sed "s|127.0.0.1:[0-9]*|${address#http://}|" "$2" | kubectl apply -f - >/dev/null
  kubectl wait --for=condition=Ready --timeout=180s -f "$2" >/dev/null
}

# check asks the hook all questions of `hookloop verify`: check <address> <controller>
check() {
  local plain=--insecure
  [ "${1#http://}" = "$1" ] || plain=
  hookloop verify --hook "$1" $plain --controller "$2" --controller crd.yaml --parent website.yaml
}

# on is kubectl in the test's namespace, without its messages.
on() { kubectl -n "$namespace" "$@" >/dev/null; }

# converge applies a Website, and waits until all its children exist, with Pods for its pages, and all Pods are
# ready. It computes the hash of the pages itself: converge <file> <page name> <page>…
converge() {
  local file=$1 hash object
  shift
  hash=$(printf '%s\0' "$@" | sha256sum | cut -d' ' -f1)
  on apply -f "$file"
  for object in {configmap,deployment,service}/shop; do # one by one: kubectl fails if several do not exist yet
    on wait --timeout=180s --for=create "$object"
  done
  on wait --timeout=180s --for=jsonpath='{.spec.template.metadata.annotations.website\.example\.com/pages}'="$hash" deployment/shop
  on rollout status --timeout=180s deployment/shop
  on wait --timeout=180s --for=jsonpath='{.status.ready}'=2 website/shop
}

# timed runs a command, and stores its duration in milliseconds: timed <variable> <command…>
timed() {
  local variable=$1 begun=${EPOCHREALTIME/[.,]/}
  "${@:2}"
  printf -v "$variable" %d $(((${EPOCHREALTIME/[.,]/} - begun) / 1000))
}

# result prints the objects in the cluster, without values that differ between runs: UIDs, times, addresses.
result() {
  local ready='{.status.conditions[?(@.type=="Ready")]' after='{.metadata.annotations.hookloop\.dev/depends-on}'
  echo "$1"
  value "  Website: {.status.url} {.status.replicas} {.status.ready} $ready.status} $ready.reason} $ready.message}{'\n'}" -n "$namespace" website shop
  value "  ConfigMap: {.metadata.labels.app} {.data}{'\n'}" -n "$namespace" configmap shop
  value "  Deployment: {.metadata.labels.app} after $after{'\n'}" -n "$namespace" deployment shop
  value "  Deployment, generation {.metadata.generation}: {.spec}{'\n'}" -n "$namespace" deployment shop
  value "  Service: {.metadata.labels.app} {.spec.selector} {.spec.ports}{'\n'}" -n "$namespace" service shop
  value "  Service: {.metadata.labels.app} after $after{'\n'}" -n "$namespace" service shop
}

# left counts the objects of a Website.
left() { kubectl -n "$namespace" get deployments,replicasets,pods,services,configmaps -l app=shop -o name | wc -l; }

# compare runs the steps with one hook, and adds a row to the table: compare <hook> <transport> <controller> <file
# with the author's code>
compare() {
  local made changed said=same
  step "$1, over $2"
  start "$1" "$3"
  timed made converge website.yaml "${before[@]}"
  result "made of the Website" >"$work/$1"
  timed changed converge "$work/changed.yaml" "${after[@]}"
  result "made of its new page" >>"$work/$1"
  printf '  ready in %s, a new page in %s\n' "$made ms" "$changed ms"
  on delete website shop
  eventually "objects that it leaves when it is deleted" 0 left
  kubectl delete -f "$3" >/dev/null
  stop
  if ! diff -U0 --label golang --label "$1" "$work/golang" "$work/$1"; then
    said=DIFFERS
    different=1
  fi
  printf '%-12s%-14s%6d%12s%15s  %s\n' "$1" "$2" "$(wc -l <"$4")" "$made ms" "$changed ms" "$said" >>"$work/table"
}

before=(about.html '<p>We sell "tea" & 咖啡.</p>' index.html '<h1>Open from 9 to 5</h1>')
after=("${before[@]:0:3}" '<h1>Closed on Mondays</h1>')
different=

step "The hooks are built."
go build -o "$work/golang-hook" ./golang
(cd typescript && { [ -d node_modules ] || npm ci --silent --no-audit --no-fund; } && node_modules/.bin/tsc)
sed "s|${before[3]}|${after[3]}|" website.yaml >"$work/changed.yaml"
kubectl apply --server-side -f crd.yaml
kubectl wait --for=condition=Established --timeout=180s -f crd.yaml >/dev/null
kubectl create namespace "$namespace"

step "Once in advance, so that the cluster is warm"
compare golang "gRPC stream" controller.yaml golang/main.go

printf '\n%-12s%-14s%6s%12s%15s  %s\n' HOOK TRANSPORT LINES "READY IN" "NEW PAGE IN" RESULT >"$work/table"
compare golang "gRPC stream" controller.yaml golang/main.go
compare python "gRPC stream" controller.yaml python/hook.py
compare typescript "gRPC stream" controller.yaml typescript/hook.ts
compare webhook "JSON webhook" controller-webhook.yaml webhook/hook.py
kubectl delete namespace "$namespace" --wait=false

step "What golang has made, and how the others compare"
awk -v most=160 '{ print (length > most) ? substr($0, 1, most) "…" : $0 }' "$work/golang"
cat "$work/table"
[ -z "$different" ]
