#!/usr/bin/env bash
# Deletes the objects of prove.sh, except for the controller.
set -euo pipefail
cd "$(dirname "$0")"
kubectl delete --ignore-not-found -f websites.yaml -f may-serve.yaml -f may-intercept.yaml
kubectl delete --ignore-not-found serviceaccount laptop
kubectl delete --ignore-not-found -f ../website/crd.yaml
