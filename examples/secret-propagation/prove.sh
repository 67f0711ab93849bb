#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A Secret is to be in every namespace with the label env=prod: one has it."
install
kubectl apply -f password.yaml
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
