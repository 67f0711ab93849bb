#!/usr/bin/env bash
kubectl delete namespaces vault shop bank
