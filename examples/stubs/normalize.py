#!/usr/bin/env python3
"""Prints a Website and its children as JSON with sorted fields, one object a line.

Values that differ between runs are left out: UIDs, times, addresses.
"""

import json
import sys

VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "lastTransitionTime", "lastUpdateTime",
            "clusterIP", "clusterIPs", "kubectl.kubernetes.io/last-applied-configuration"}


def stable(value):
    if isinstance(value, dict):
        return {name: stable(v) for name, v in value.items() if name not in VOLATILE}
    return [stable(v) for v in value] if isinstance(value, list) else value


items = json.load(sys.stdin)["items"]
parent = next(item["metadata"]["uid"] for item in items if item["kind"] == "Website")
for item in items:
    if item["kind"] == "Deployment":
        del item["status"]  # the kubelets' work, not the hook's
    print(json.dumps(stable(item), sort_keys=True, ensure_ascii=False).replace(parent, "UID"))
