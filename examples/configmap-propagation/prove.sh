#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A ConfigMap is to be copied to two namespaces. It is not there yet."
install
kubectl apply -f settings.yaml
eventually "the source is there" false value '{.status.sourceFound}' configmappropagation settings

step "The source is created, and copied; it changes, and the copies with it."
kubectl apply -f source.yaml
eventually "the copy in one" red value '{.data.color}' configmap settings -n one
eventually "the copy in two" red value '{.data.color}' configmap settings -n two
kubectl patch configmap settings -n source --type=merge -p '{"data":{"color":"blue"}}'
eventually "the copy in one" blue value '{.data.color}' configmap settings -n one
eventually "copies" 2 value '{.status.copies}' configmappropagation settings

step "Other namespaces are wanted."
kubectl patch configmappropagation settings --type=merge -p '{"spec":{"targetNamespaces":["two","three"]}}'
eventually "the copy in three" blue value '{.data.color}' configmap settings -n three
eventually "the copies in one" "" names configmaps -n one --field-selector metadata.name=settings
