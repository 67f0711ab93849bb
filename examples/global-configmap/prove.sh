#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A ConfigMap is to be in every namespace."
install
kubectl apply -f motd.yaml
eventually "the copy in default" hello value '{.data.text}' configmap motd -n default
eventually "the copy in kube-system" hello value '{.data.text}' configmap motd -n kube-system

step "A new namespace gets it, too, and a change reaches all of them."
kubectl create namespace late
eventually "the copy in late" hello value '{.data.text}' configmap motd -n late
kubectl patch globalconfigmap motd --type=merge -p '{"spec":{"data":{"text":"bye"}}}'
eventually "the copy in late" bye value '{.data.text}' configmap motd -n late
eventually "the copy in default" bye value '{.data.text}' configmap motd -n default

step "A namespace that goes does not hold anything up."
kubectl delete namespace late
eventually "the namespace" "" names namespaces --field-selector metadata.name=late
all=$(kubectl get namespaces -o name | wc -l)
eventually "copies" "$all" value '{.status.copies}' globalconfigmap motd
