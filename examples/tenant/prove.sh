#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A Tenant gets a Namespace, a ResourceQuota and RoleBindings."
install
kubectl apply -f tenant.yaml
eventually "the Tenant is active" Active value '{.status.phase}' tenant blue
eventually "the admins" ann value '{.subjects[*].name}' rolebinding admins -n tenant-blue
eventually "the viewers" "bob eve" value '{.subjects[*].name}' rolebinding viewers -n tenant-blue
eventually "the quota" 4 value '{.spec.hard.pods}' resourcequota tenant -n tenant-blue

step "A viewer leaves, and the quota grows."
kubectl patch tenant blue --type=merge -p '{"spec":{"viewers":["bob"],"quota":{"pods":"6"}}}'
eventually "the viewers" bob value '{.subjects[*].name}' rolebinding viewers -n tenant-blue
eventually "the quota" 6 value '{.spec.hard.pods}' resourcequota tenant -n tenant-blue

step "A deleted Tenant loses its RoleBindings, and keeps its Namespace while it is on hold."
kubectl patch tenant blue --type=merge -p '{"spec":{"hold":true}}'
kubectl delete tenant blue --wait=false
eventually "the Tenant is on hold" Held value '{.status.phase}' tenant blue
eventually "the RoleBindings" "" names rolebinding -n tenant-blue
eventually "the Namespace" Active value '{.status.phase}' namespace tenant-blue
kubectl patch tenant blue --type=merge -p '{"spec":{"hold":false}}'
kubectl wait --for=delete --timeout=180s tenant/blue namespace/tenant-blue

step "Another Tenant is quiet."
kubectl apply -f tenant.yaml
eventually "the Tenant is active" Active value '{.status.phase}' tenant blue
