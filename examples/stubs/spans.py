#!/usr/bin/env python3
"""Prints where the spans of a service are in their traces, from the engine's ask on.

    spans.py JAEGER SERVICE

All spans of the service in its last 20 traces count. Each different result is one line.
"""

import json
import sys
import urllib.request

jaeger, service = sys.argv[1:]
with urllib.request.urlopen(f"{jaeger}/api/traces?service={service}&limit=20") as response:
    traces = json.load(response)["data"]
paths = set()
for trace in traces:
    spans = {span["spanID"]: span for span in trace["spans"]}
    for span in spans.values():
        if trace["processes"][span["processID"]]["serviceName"] != service:
            continue
        path = []
        while span:
            path.insert(0, span["operationName"])
            parent = [r["spanID"] for r in span["references"] if r["refType"] == "CHILD_OF"]
            span = spans.get(parent[0]) if parent else None
        begin = next((i for i, name in enumerate(path) if name.startswith("ask ")), 0)
        paths.add(" > ".join(path[begin:]))
print("\n".join(sorted(paths)))
