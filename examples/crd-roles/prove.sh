#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A CustomResourceDefinition asks for roles by an annotation."
install
eventually "the roles" "gadgets.examples.hookloop.dev-edit gadgets.examples.hookloop.dev-view" names \
  clusterrole gadgets.examples.hookloop.dev-view gadgets.examples.hookloop.dev-edit
eventually "the definition says so" view,edit value '{.metadata.annotations.examples\.hookloop\.dev/has-roles}' crd gadgets.examples.hookloop.dev

step "Whoever may view may now view gadgets, and not delete them."
kubectl create serviceaccount viewer
kubectl create rolebinding viewer --clusterrole=view --serviceaccount=default:viewer
may() { kubectl auth can-i --as=system:serviceaccount:default:viewer "$1" gadgets.examples.hookloop.dev || true; }
eventually "may list" yes may list
eventually "may delete" no may delete

step "A role that somebody changes is put back."
kubectl patch clusterrole gadgets.examples.hookloop.dev-view --type=merge -p '{"rules":[]}'
eventually "its verbs" '["get","list","watch"]' value '{.rules[0].verbs}' clusterrole gadgets.examples.hookloop.dev-view
