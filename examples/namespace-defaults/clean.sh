#!/usr/bin/env bash
kubectl delete namespaces registry shop bank lab --ignore-not-found
