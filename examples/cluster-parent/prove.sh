#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "A Team is cluster-scoped; its children are a Namespace and what lives in it."
install
kubectl apply -f team.yaml
eventually "the members can edit" "ann bob" value '{.subjects[*].name}' rolebinding members -n team-blue
eventually "there is an account to deploy with" deployer names serviceaccount deployer -n team-blue
eventually "the status counts the members" 2 value '{.status.members}' team blue

step "A member leaves."
kubectl patch team blue --type=merge -p '{"spec":{"members":["ann"]}}'
eventually "the members can edit" ann value '{.subjects[*].name}' rolebinding members -n team-blue
eventually "the status counts the members" 1 value '{.status.members}' team blue
