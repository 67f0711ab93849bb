#!/usr/bin/env bash
# Builds the program, runs it as the engine of its own controller, and checks its effect. It needs kubectl,
# Go, Python and jq. Another Hookloop in the cluster must not select the controller, see README.md.
source "$(dirname "$0")/../prove.bash"

namespace=exec-$RANDOM
work=$(mktemp -d)
program=
trap '[ -z "$program" ] || { kill "$program" && wait "$program"; } || true; rm -rf "$work"' EXIT

greeting() { value '{.data.index\.html}' configmap hello-exec -n "$namespace"; }
greet() { kubectl patch helloworld hello-exec -n "$namespace" --type=merge -p "{\"spec\":{\"who\":\"$1\"}}"; }
hooks() { pgrep -c -P "$program" || true; }

step "One program is the engine and starts the hook."
go build -o "$work/program" .
kubectl apply --server-side -f ../hello-webhook/crd.yaml
eventually "served" helloworlds.example.com served helloworlds.example.com
kubectl create namespace "$namespace"
"$work/program" --kubeconfig "$KUBECONFIG" --metrics-address 0 --health-probe-bind-address 0 >"$work/log" 2>&1 &
program=$!
kubectl apply -n "$namespace" -f hello.yaml
eventually "the greeting" "Hello, World!" greeting
eventually "programs that run" 1 hooks

step "The hook is killed, and is started again for the next question."
pkill -KILL -P "$program"
greet Ada
eventually "the greeting" "Hello, Ada!" greeting

step "The controller chooses the hook in shell."
sed 's/hello\.py/hello.sh/' hello.yaml | kubectl apply -n "$namespace" -f -
greet 'Grace'
eventually "the greeting" "Hello, Grace!" greeting

step "The controller is deleted, and its program ends."
kubectl delete -n "$namespace" -f hello.yaml
eventually "programs that run" 0 hooks
kubectl delete namespace "$namespace" --wait=false
