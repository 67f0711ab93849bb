#!/usr/bin/env bash
kubectl delete rolebinding/viewer serviceaccount/viewer
