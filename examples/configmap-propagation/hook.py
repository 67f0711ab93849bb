"""Copies a ConfigMap to other namespaces, and keeps the copies up to date."""


def customize(request):
    """Name the source: each change of it causes a sync."""
    spec = request["parent"]["spec"]
    rule = {
        "apiVersion": "v1",
        "resource": "configmaps",
        "namespace": spec["sourceNamespace"],
        "names": [spec["sourceName"]],
    }
    return {"relatedResources": [rule]}


def sync(request):
    spec = request["parent"]["spec"]
    name = f"{spec['sourceNamespace']}/{spec['sourceName']}"
    source = request["related"]["ConfigMap.v1"].get(name)
    copies = [copy(source, namespace) for namespace in spec["targetNamespaces"]] if source else []
    observed = request["children"]["ConfigMap.v1"]
    return {
        "status": {
            "wanted": len(spec["targetNamespaces"]),
            "copies": len(observed),
            "sourceFound": source is not None,
        },
        "children": copies,
    }


def copy(source, namespace):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": source["metadata"]["name"], "namespace": namespace},
        **{field: source[field] for field in ("data", "binaryData") if field in source},
    }
