"""The hook of the website controller. A Website becomes three children: a ConfigMap with its pages,
a Deployment that serves them, and a Service."""

import hashlib

from hookloop import (
    Child, Composite, ConditionStatus, Dependency, Object, ObjectMeta, SyncRequest, SyncResponse,
    serve,
)

IMAGE = "nginx:1.29-alpine"
PAGES = "website.example.com/pages"  # the annotation with a hash of the pages


def sync(request: SyncRequest) -> SyncResponse:
    parent = request["parent"]
    name, namespace = parent["metadata"]["name"], parent["metadata"].get("namespace", "")
    spec = parent.get("spec", {})
    html, replicas, labels = spec.get("html", {}), spec.get("replicas", 1), {"app": name}
    observed = request["children"]["Deployment.apps/v1"].get(name)
    up = observed.get("status", {}).get("readyReplicas", 0) if observed else 0
    ready = observed is not None and up >= replicas
    metadata: ObjectMeta = {"name": name, "labels": labels}
    pages: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": html}
    servers: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    pod: dict[str, object] = {
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
    servers["spec"] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": {PAGES: digest(html)}}, "spec": pod},
    }
    service: Object = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
        "selector": labels, "ports": [{"port": 80}],
    }}
    return {
        "status": {"url": f"http://{name}.{namespace}.svc", "replicas": replicas, "ready": up},
        "conditions": [{
            "type": "Ready",
            "status": ConditionStatus.TRUE if ready else ConditionStatus.FALSE,
            "reason": "AllUp" if ready else "Starting",
            "message": f"{up} of {replicas} servers are ready",
        }],
        "children": [
            pages,
            Child(servers, depends_on=[Dependency("v1", "ConfigMap", name)]),
            Child(service, depends_on=[Dependency("apps/v1", "Deployment", name)]),
        ],
    }


def digest(html: dict[str, str]) -> str:
    """Returns a hash of the pages. It is in the Pods' template, so new pages replace the Pods."""
    pages = "".join(f"{name}\0{html[name]}\0" for name in sorted(html))
    return hashlib.sha256(pages.encode()).hexdigest()


if __name__ == "__main__":
    serve(Composite(sync=sync))
