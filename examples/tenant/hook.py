"""A Tenant: a Namespace with a ResourceQuota and RoleBindings. A deleted Tenant loses its
RoleBindings immediately, and keeps its Namespace while spec.hold is true."""

RBAC = "rbac.authorization.k8s.io"


def sync(request):
    tenant = request["parent"]
    home, ready = namespace(request)
    # Objects in the namespace can be created after the namespace exists.
    children = [home] + ([quota(tenant), *bindings(tenant)] if ready else [])
    return {"status": status(tenant, "Active" if ready else "Creating"), "children": children}


def finalize(request):
    """Deletes the RoleBindings, waits for the end of the hold, then deletes the Namespace."""
    tenant = request["parent"]
    home, exists = namespace(request)
    if tenant.get("spec", {}).get("hold") and exists:
        children = [home, quota(tenant)]
        return {"status": status(tenant, "Held"), "children": children, "finalized": False}
    return {"status": status(tenant, "Deleting"), "children": [], "finalized": not exists}


def name_of(tenant):
    return f"tenant-{tenant['metadata']['name']}"


def status(tenant, phase):
    return {"phase": phase, "namespace": name_of(tenant)}


def namespace(request):
    """Returns the desired Namespace, and whether it exists."""
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name_of(request["parent"])}}
    return home, bool(request["children"]["Namespace.v1"])


def quota(tenant):
    metadata = {"name": "tenant", "namespace": name_of(tenant)}
    spec = {"hard": tenant.get("spec", {}).get("quota", {})}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def bindings(tenant):
    for field, role in ("admins", "admin"), ("viewers", "view"):
        people = tenant.get("spec", {}).get(field, [])
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": field, "namespace": name_of(tenant)},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": person} for person in people],
        }
