#!/usr/bin/env bash
kubectl delete namespaces source one two three
