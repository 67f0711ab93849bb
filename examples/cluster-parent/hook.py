"""A cluster-scoped parent with a Namespace and objects in this Namespace as children."""


def sync(request):
    team = request["parent"]["metadata"]["name"]
    people = request["parent"]["spec"].get("members", [])
    namespace = f"team-{team}"
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User"}
    children = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "deployer", "namespace": namespace},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "members", "namespace": namespace},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "edit",
            },
            "subjects": [user | {"name": person} for person in people],
        },
    ]
    # Objects in the namespace can be created after the namespace exists.
    if not request["children"]["Namespace.v1"]:
        children = children[:1]
    bound = request["children"]["RoleBinding.rbac.authorization.k8s.io/v1"].values()
    members = sum(len(binding.get("subjects", [])) for binding in bound)
    return {"status": {"members": members}, "children": children}
