"""A cluster-scoped parent with a Namespace and objects in this Namespace as children."""


def sync(request):
    team = request["parent"]["metadata"]["name"]
    people = request["parent"]["spec"].get("members", [])
    children = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{team}"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": f"team-{team}"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "members", "namespace": f"team-{team}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": p} for p in people],
        },
    ]
    # Objects in the namespace can be created after the namespace exists.
    if not request["children"]["Namespace.v1"]:
        children = children[:1]
    bound = request["children"]["RoleBinding.rbac.authorization.k8s.io/v1"].values()
    return {"status": {"members": sum(len(b.get("subjects", [])) for b in bound)}, "children": children}
