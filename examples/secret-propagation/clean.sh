#!/usr/bin/env bash
kubectl delete --ignore-not-found namespaces vault shop bank
