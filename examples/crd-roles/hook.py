"""Roles to view and to edit the objects of a CustomResourceDefinition, aggregated to the cluster's
roles view and edit."""

VERBS = {
    "view": ["get", "list", "watch"],
    "edit": ["create", "delete", "deletecollection", "patch", "update"],
}


def sync(request):
    crd = request["object"]
    return {
        "annotations": {"examples.hookloop.dev/has-roles": ",".join(VERBS)},
        "attachments": [role(crd, name, verbs) for name, verbs in VERBS.items()],
    }


def role(crd, name, verbs):
    spec = crd["spec"]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"{crd['metadata']['name']}-{name}",
            "labels": {f"rbac.authorization.k8s.io/aggregate-to-{name}": "true"},
        },
        "rules": [
            {"apiGroups": [spec["group"]], "resources": [spec["names"]["plural"]], "verbs": verbs}
        ],
    }
