"""For every Namespace with a label: a NetworkPolicy, a ResourceQuota, a copy of a pull Secret."""


def customize(request):
    source = request["parent"]["spec"]["pullSecret"]
    rule = {"apiVersion": "v1", "resource": "secrets"}
    return {"relatedResources": [rule | {"namespace": source["namespace"], "names": [source["name"]]}]}


def map(request):
    namespace = request["input"]["metadata"]
    if "deletionTimestamp" in namespace:
        return {"outputs": []}
    secrets = request["related"]["Secret.v1"].values()
    outputs = [policy(), quota(request["parent"]["spec"]["quota"])] + [copy(s) for s in secrets]
    for output in outputs:
        output["metadata"]["namespace"] = namespace["name"]
    return {"outputs": outputs}


def policy():
    """Pods accept connections from their own namespace."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "same-namespace"},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {}}]}],
        },
    }


def quota(hard):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "default"},
        "spec": {"hard": hard},
    }


def copy(secret):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret["metadata"]["name"]},
        "type": secret["type"],
        "data": secret["data"],
    }
