#!/usr/bin/env bash
kubectl delete --ignore-not-found rolebinding/viewer serviceaccount/viewer
