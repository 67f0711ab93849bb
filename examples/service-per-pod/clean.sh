#!/usr/bin/env bash
kubectl delete --ignore-not-found statefulset db
