"""The hook of the website controller. A Website becomes three children: a ConfigMap with its pages,
a Deployment that serves them, and a Service."""

import hashlib

IMAGE = "nginx:1.29-alpine"
PAGES = "website.example.com/pages"  # the annotation with a hash of the pages


def sync(request):
    parent = request["parent"]
    name, namespace = parent["metadata"]["name"], parent["metadata"]["namespace"]
    spec = parent["spec"]
    html, replicas, labels = spec.get("html", {}), spec.get("replicas", 1), {"app": name}
    observed = request["children"]["Deployment.apps/v1"].get(f"{namespace}/{name}")
    up = (observed or {}).get("status", {}).get("readyReplicas", 0)
    ready = observed is not None and up >= replicas
    metadata = {"name": name, "labels": labels}
    pages = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": html}
    pod = {
        "containers": [{
            "name": "web",
            "image": spec.get("image", IMAGE),
            "ports": [{"containerPort": 80}],
            "volumeMounts": [{"name": "pages", "mountPath": "/usr/share/nginx/html"}],
        }],
        "volumes": [{"name": "pages", "configMap": {"name": name}}],
    }
    if "unreachableSeconds" in spec:
        pod["tolerations"] = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                               "effect": "NoExecute", "tolerationSeconds": spec["unreachableSeconds"]}]
    servers = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": {PAGES: digest(html)}}, "spec": pod},
    }}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
        "selector": labels, "ports": [{"port": 80}],
    }}
    return {
        "status": {"url": f"http://{name}.{namespace}.svc", "replicas": replicas, "ready": up},
        "conditions": [{
            "type": "Ready",
            "status": str(ready),
            "reason": "AllUp" if ready else "Starting",
            "message": f"{up} of {replicas} servers are ready",
        }],
        "children": [pages, servers, service],
        "childStates": [after(servers, pages), after(service, servers)],
    }


def after(child, other):
    """A dependency: the child is created after another one, and deleted before it."""
    return named(child) | {"dependsOn": [named(other)]}


def named(child):
    name = child["metadata"]["name"]
    return {"apiVersion": child["apiVersion"], "kind": child["kind"], "name": name}


def digest(html):
    """A hash of the pages. It is part of the Pods' template, so new pages cause new Pods."""
    pages = "".join(f"{name}\0{html[name]}\0" for name in sorted(html))
    return hashlib.sha256(pages.encode()).hexdigest()
