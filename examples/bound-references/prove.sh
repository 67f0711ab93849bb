#!/usr/bin/env bash
# Builds the program, runs it and checks its effect: references that change while it runs, and while it is
# killed. It needs kubectl and Go.
source "$(dirname "$0")/../prove.bash"

namespace=bound-references-$RANDOM
work=$(mktemp -d)
program=
trap '[ -z "$program" ] || { kill "$program" && wait "$program"; } || true; rm -rf "$work"' EXIT

start() {
  "$work/program" --kubeconfig "$KUBECONFIG" --metrics-address 0 --health-probe-bind-address 0 >>"$work/log" 2>&1 &
  program=$!
}
text() { value '{.status.text}' bar "$1" -n "$namespace"; }
ready() { value '{.status.conditions[?(@.type=="Ready")].reason}' bar "$1" -n "$namespace"; }
values() { value '{.status.values}' computedbaz "$1" -n "$namespace"; }

# make writes an object: make <kind> <name> <spec>
make() {
  kubectl apply -f - <<YAML
apiVersion: bound.example.com/v1
kind: $1
metadata: {name: $2, namespace: $namespace}
spec: $3
YAML
}
# edit changes the spec of an object: edit <kind> <name> <spec>
edit() { kubectl patch "$1" "$2" -n "$namespace" --type=merge -p "{\"spec\":$3}"; }

step "The program runs two controllers."
go build -o "$work/program" .
kubectl apply --server-side -f crd.yaml
kubectl create namespace "$namespace"
start

step "A Bar waits for its Foo, shows the text, and follows changes of either."
make Bar bar '{foo: one}'
eventually "why the Bar is not ready" NotFound ready bar
make Foo one '{text: first}'
make Foo two '{text: second}'
eventually "the text" first text bar
edit foo one '{"text":"changed"}'
eventually "the text" changed text bar
edit bar bar '{"foo":"two"}'
eventually "the text" second text bar

step "A ComputedBaz has the values of its Bazes."
kubectl apply -f - <<YAML
apiVersion: bound.example.com/v1
kind: ComputedBaz
metadata: {name: left, namespace: $namespace}
---
apiVersion: bound.example.com/v1
kind: ComputedBaz
metadata: {name: right, namespace: $namespace}
YAML
make Baz a '{computed: left, value: "1"}'
make Baz b '{computed: left, value: "2"}'
eventually "the values of left" '{"a":"1","b":"2"}' values left

step "A pointer moves away: the ComputedBaz that it has left loses the value."
edit baz b '{"computed":"right"}'
eventually "the values of left" '{"a":"1"}' values left
eventually "the values of right" '{"b":"2"}' values right

step "The program is killed, and a pointer moves while it is down."
kill -KILL "$program"
wait "$program" 2>/dev/null || true
edit baz a '{"computed":"right"}'
edit bar bar '{"foo":"one"}'
start
eventually "the values of left" "" values left
eventually "the values of right" '{"a":"1","b":"2"}' values right
eventually "the text" changed text bar

step "Directly after the restart a pointer moves back, a value is removed, and a Foo is deleted."
edit baz a '{"computed":"left"}'
edit baz b '{"value":null}'
kubectl delete foo one -n "$namespace"
eventually "the values of left" '{"a":"1"}' values left
eventually "the values of right" "" values right
eventually "why the Bar is not ready" NotFound ready bar
kubectl delete namespace "$namespace" --wait=false
