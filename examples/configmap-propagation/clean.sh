#!/usr/bin/env bash
kubectl delete --ignore-not-found namespaces source one two three
