#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A Secret is to be in every namespace with the label env=prod: one has it."
install
for n in vault shop bank; do kubectl create namespace "$n"; done
kubectl label namespace shop env=prod
kubectl create secret generic password -n vault --from-literal=text=one
kubectl apply -f - <<YAML
apiVersion: examples.hookloop.dev/v1
kind: SecretPropagation
metadata: {name: password}
spec:
  sourceName: password
  sourceNamespace: vault
  targetNamespaceLabelSelector: {matchLabels: {env: prod}}
YAML
eventually "copies" 1 value '{.status.copies}' secretpropagation password
eventually "the copy in shop" b25l value '{.data.text}' secret password -n shop

step "Another namespace gets the label, the Secret changes, and the first one loses the label."
kubectl label namespace bank env=prod
eventually "the copy in bank" b25l value '{.data.text}' secret password -n bank
kubectl patch secret password -n vault --type=merge -p '{"data":{"text":"dHdv"}}'
eventually "the copy in bank" dHdv value '{.data.text}' secret password -n bank
kubectl label namespace shop env-
eventually "the copies in shop" "" names secrets -n shop
eventually "copies" 1 value '{.status.copies}' secretpropagation password
