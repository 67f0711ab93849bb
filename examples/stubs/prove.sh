#!/usr/bin/env bash
# Runs the hooks of this folder, and the Go SDK's, one after the other through the same steps over mutual TLS, and
# compares the objects in the cluster. Exit status 1: one of them differs. Arguments are languages; without any, all
# are run. It needs `hookloop serve`, kubectl, buf, Go, gRPC for Python, and a Jaeger at JAEGER that takes spans at
# JAEGER_OTLP. HOOKLOOP names the program, which is otherwise that of `make build`.
languages=("$@")
[ $# -gt 0 ] || languages=(ruby java cpp go)
source "$(dirname "$0")/../prove.bash"

namespace=stubs # the names in the certificates end with it
service=hookloop.composite.v1.CompositeHookService
work=$(mktemp -d)
hook= # the process id of the hook that runs
trap 'stop; rm -rf "$work"' EXIT

stop() {
  if [ -n "$hook" ]; then
    kill "$hook" 2>/dev/null || true
    wait "$hook" 2>/dev/null || true
  fi
  hook=
}

# on is kubectl in the test's namespace, without its messages.
on() { kubectl -n "$namespace" "$@" >/dev/null; }

# certificates fills the folder for check.py: those of the Secrets, and one of another authority.
certificates() {
  local secret file
  ../../manifests/hooks/certificates.sh "$namespace" website >/dev/null
  # The engine may present its certificate at this address, which is no Service of the namespace.
  on annotate --overwrite secret hookloop-client hookloop.dev/allowed-hosts=127.0.0.1
  for secret in client=hookloop-client server=website-tls; do
    for file in crt key; do
      value "{.data['tls\.$file']}" -n "$namespace" secret "${secret#*=}" | base64 -d >"$work/${secret%=*}.$file"
    done
  done
  value "{.data['ca\.crt']}" -n "$namespace" secret hookloop-client | base64 -d >"$work/ca.crt"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=stranger \
    -keyout "$work/stranger.key" -out "$work/stranger.crt" -batch 2>/dev/null
}

# start runs a hook with its certificate, and the controller with the hook's address: start <language>
start() {
  local deadline=$((SECONDS + 120)) run=(./run.sh "$1")
  [ "$1" != golang ] || run=("$work/golang-hook")
  : >"$work/log"
  HOOKLOOP_HOOK_LISTEN=127.0.0.1:0 HOOKLOOP_HOOK_TLS_CERT=$work/server.crt HOOKLOOP_HOOK_TLS_KEY=$work/server.key \
    HOOKLOOP_HOOK_CLIENT_CA=$work/ca.crt OTEL_SERVICE_NAME=website-$1 OTEL_EXPORTER_OTLP_ENDPOINT=${JAEGER_OTLP:-} \
    "${run[@]}" >>"$work/log" 2>&1 &
  hook=$!
  while address=$(sed -n 's|^listening on ||p' "$work/log"); [ -z "$address" ]; do
    if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$hook" 2>/dev/null; then
      printf '✗ %s does not listen: %s\n' "$1" "$(cat "$work/log")" >&2
      return 1
    fi
    sleep 0.1
  done
  sed "s|127.0.0.1:9443|$address|" controller.yaml | kubectl apply -f - >/dev/null
  kubectl wait --for=condition=Ready --timeout=180s -f controller.yaml >/dev/null
}

# converge applies a Website, and waits until the pages are those of the file and all Pods are ready:
# converge <file> <text of a page>
converge() {
  local object
  on apply -f "$1"
  for object in {configmap,deployment,service}/shop; do # one by one: kubectl fails if several do not exist yet
    on wait --timeout=180s --for=create "$object"
  done
  eventually "the page" "$2" value '{.data.index\.html}' -n "$namespace" configmap shop
  on rollout status --timeout=180s deployment/shop
  on wait --timeout=180s --for=jsonpath='{.status.ready}'=2 website/shop
  on wait --timeout=180s --for=condition=Ready website/shop
}

# result prints the Website and its children as JSON, without values that differ between runs.
result() { kubectl -n "$namespace" get {website,configmap,deployment,service}/shop -o json | ./normalize.py; }

# left counts the objects of a Website.
left() { kubectl -n "$namespace" get deployments,replicasets,pods,services,configmaps -l app=shop -o name | wc -l; }

# synced prints the reason of the Website's condition Synced.
synced() { value '{.status.conditions[?(@.type=="Synced")].reason}' -n "$namespace" website shop; }

image() { value '{.spec.template.spec.containers[0].image}' -n "$namespace" deployment shop; }

# inside prints the spans from the engine's ask to those of a hook: inside <language>
inside() { ./spans.py "$JAEGER" "website-$1"; }

# check asks the hook directly, without the engine: check <language>
check() {
  GRPC_VERBOSITY=NONE PYTHONPATH=../../sdk/python PYTHONDONTWRITEBYTECODE=1 \
    "${PYTHON:-/usr/bin/python3}" check.py "$address" "$work" "$work/$1.answer"
}

# verify asks the hook the questions of `hookloop verify`. A note is no fault.
verify() {
  "${HOOKLOOP:-../../.cache/bin/hookloop}" verify --hook "$address" --ca "$work/ca.crt" --cert "$work/client.crt" \
    --key "$work/client.key" --server-name "website.$namespace.svc" -f controller.yaml -f ../website/crd.yaml \
    --parent website.yaml >"$work/verified" || { cat "$work/verified" >&2; return 1; }
  sed -n 's/^composite hook at [^,]*, /  hookloop verify: /p' "$work/verified"
}

# faults has the hook fail by its two errors: the engine shows the reason, and calls again after the delay.
faults() {
  on patch website shop --type=merge -p '{"spec":{"image":"no image"}}'
  eventually "an image with a space: Synced is" InvalidImage synced
  on patch website shop --type=merge -p '{"spec":{"image":"pending"}}'
  eventually "an image that is not built: Synced is" ImagePending synced
  on patch website shop --type=merge -p '{"spec":{"image":"nginx:1.30-alpine"}}'
  eventually "another image: Deployment has" nginx:1.30-alpine image
}

# compare runs the steps with one hook: compare <language>
compare() {
  step "$1"
  start "$1"
  converge website.yaml '<h1>Open from 9 to 5</h1>'
  result >"$work/$1.objects"
  converge "$work/changed.yaml" '<h1>Fermé le lundi — 周一休息</h1>'
  result >>"$work/$1.objects"
  if [ "$1" != golang ]; then
    [ -z "${JAEGER:-}" ] || eventually "its spans" "ask Sync > $service/Sync > $service/Sync" inside "$1"
    faults
    check "$1"
    verify
    diff "$work/golang.objects" "$work/$1.objects"
    echo "  objects of create and change: identical to the Go SDK's ($(wc -c <"$work/$1.objects") bytes)"
  fi
  on delete website shop
  eventually "objects that it leaves when it is deleted" 0 left
  kubectl delete -f controller.yaml >/dev/null
  stop
}

step "The hooks are built."
./packages.sh "${languages[@]}"
./build.sh "${languages[@]}"
go build -o "$work/golang-hook" ../website/golang
sed 's|Open from 9 to 5|Fermé le lundi — 周一休息|' website.yaml >"$work/changed.yaml"
kubectl apply --server-side -f ../website/crd.yaml
kubectl wait --for=condition=Established --timeout=180s -f ../website/crd.yaml >/dev/null
kubectl create namespace "$namespace"
certificates

compare golang
for language in "${languages[@]}"; do compare "$language"; done
kubectl delete namespace "$namespace" --wait=false
