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
"$work/embedded" --kubeconfig "$KUBECONFIG" --metrics-address 0 --health-probe-bind-address 0 >"$work/log" 2>&1 &
program=$!
install
kubectl create namespace "$namespace"

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

step "What was there is kept while the program is down, and what has changed meanwhile is made when it is back."
kill "$program"
wait "$program"
note milk "Buy sugar"
"$work/embedded" --kubeconfig "$KUBECONFIG" --metrics-address 0 --health-probe-bind-address 0 >"$work/log" 2>&1 &
program=$!
eventually "the ConfigMap" "Buy sugar" text milk
kubectl delete note milk empty -n "$namespace"
eventually "ConfigMaps left" "" names configmaps -n "$namespace" --field-selector metadata.name=milk
kubectl delete namespace "$namespace" --wait=false
