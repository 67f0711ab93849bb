#!/usr/bin/env bash
kubectl delete statefulset db
