#!/usr/bin/env bash
source "$(dirname "$0")/../prove.bash"

step "Five Pods are to run, two at a time."
install
kubectl apply -f count.yaml
eventually "all Pods have succeeded" 5 value '{.status.succeeded}' indexedjob count
eventually "the job is complete" true value '{.status.complete}' indexedjob count
eventually "the Pods" "count-0 count-1 count-2 count-3 count-4" names pods -l app=count
eventually "each knows its number" "0 1 2 3 4" value '{.items[*].spec.containers[0].env[?(@.name=="INDEX")].value}' pods -l app=count
