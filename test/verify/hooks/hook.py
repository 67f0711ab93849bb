"""A hook on the Python SDK for the tests of "hookloop verify". It is a good one, except for a
parent with the name of a fault."""

import datetime
import hashlib
import json
import secrets
import time

from hookloop import Composite, serve


def customize(_):
    return {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"for": "demos"}}},
            {"apiVersion": "v1", "resource": "secrets", "names": ["login"]},
        ]
    }


def sync(request):
    parent = request["parent"]
    spec, fault = parent.get("spec", {}), parent["metadata"]["name"]
    settings, related = spec.get("settings", {}), request["related"].get("configmaps.v1", {})
    status = {"settings": len(settings), "related": len(related)}
    names, data, web = sorted(settings), {}, deployment(spec)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    if fault == "map-order":
        names = list(settings)
    elif fault == "hash-of-spec":
        status["hash"] = hashlib.sha256(json.dumps(spec).encode()).hexdigest()
    elif fault == "first-related":
        status["first"] = next(iter(related), "")
    elif fault == "time":
        data["at"] = now
    elif fault == "seconds":
        status["at"] = int(time.time())
    elif fault == "time-without-spec" and "spec" not in parent:
        status["at"] = now
    elif fault == "random":
        data["id"] = secrets.token_hex()
    elif fault == "counter":
        status["syncs"] = parent.get("status", {}).get("syncs", 0) + 1
    elif fault in ("echo", "compare"):
        web = observed(request, fault, web)
    data["settings"] = "\n".join(f"{name}={settings[name]}" for name in names)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
    return {"status": status, "children": [config, web]}


def observed(request, fault, web):
    """Plants the faults of a hook that reads the observed Deployment."""
    before = request["children"]["Deployment.apps/v1"].get("web")
    if before is None:
        return web
    if fault == "echo":  # also the defaults of the server
        echoed = json.loads(json.dumps(before))
        echoed["spec"]["replicas"] = web["spec"]["replicas"]
        wanted = web["spec"]["template"]["spec"]["containers"][0]["image"]
        echoed["spec"]["template"]["spec"]["containers"][0]["image"] = wanted
        return echoed
    if before["spec"] != web["spec"]:  # the server's defaults differ, too
        web["spec"]["minReadySeconds"] = before["metadata"]["generation"]
    return web


def deployment(spec):
    labels = {"app": "web"}
    container = {"name": "web", "image": spec.get("image", "")}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": spec.get("replicas", 1),
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def finalize(request):
    fault, gone = request["parent"]["metadata"]["name"], not request["children"]["ConfigMap.v1"]
    if fault == "never-finalized":
        return {"status": {"deleting": True}, "children": [], "finalized": False}
    if fault == "waits-for-what-it-keeps":
        return {"status": {"deleting": True}, "children": sync(request)["children"], "finalized": gone}
    if fault == "random-when-deleted":
        return {"status": {"id": secrets.token_hex()}, "children": [], "finalized": True}
    return {"status": {"deleting": True}, "children": [], "finalized": gone}


if __name__ == "__main__":
    serve(Composite(sync=sync, finalize=finalize, customize=customize))
