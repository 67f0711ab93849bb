#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

total() { value "{.status.$1.total}" namespacedefaults teams; }
defaults() { names networkpolicies,resourcequotas,secrets -n "$1"; }

step "Every namespace with the label team is to have a NetworkPolicy, a quota and the pull Secret: two have it."
install
kubectl apply -f teams.yaml
for n in shop bank; do eventually "defaults in $n" "default pull same-namespace" defaults "$n"; done
eventually "inputs" 2 total inputs.namespaces
eventually "quotas" 2 total outputs.resourcequotas
eventually "defaults in lab" "" defaults lab

step "Another namespace gets the label, and the pull Secret changes."
kubectl label namespace lab team=two
eventually "defaults in lab" "default pull same-namespace" defaults lab
kubectl patch secret pull -n registry --type=merge -p '{"data":{"token":"dHdv"}}'
for n in shop bank lab; do eventually "the copy in $n" dHdv value '{.data.token}' secret pull -n "$n"; done

step "The quota changes for all, and a user deletes one."
kubectl patch namespacedefaults teams --type=merge -p '{"spec":{"quota":{"pods":"20"}}}'
for n in shop bank lab; do eventually "the quota in $n" 20 value '{.spec.hard.pods}' resourcequota default -n "$n"; done
kubectl delete resourcequota default -n bank
eventually "the quota in bank" 20 value '{.spec.hard.pods}' resourcequota default -n bank

step "One namespace loses the label: without a tombstone hook its defaults are deleted."
kubectl label namespace shop team-
eventually "defaults in shop" "" defaults shop
eventually "inputs" 2 total inputs.namespaces
eventually "detached outputs" "" total detached
eventually "quotas" 2 total outputs.resourcequotas
eventually "the condition Synced" True value '{.status.conditions[?(@.type=="Synced")].status}' namespacedefaults teams
kubectl get namespacedefaults
