"""Blue-green deployment: the new color is created beside the active one, and gets the Service when
all its Pods are ready."""

import json

# The annotation with the template of a ReplicaSet, without the server's defaults.
TEMPLATE = "examples.hookloop.dev/template"


def sync(request):
    parent = request["parent"]
    name, spec = parent["metadata"]["name"], parent["spec"]
    service = request["children"]["Service.v1"].get(name)
    active = service["spec"]["selector"]["color"] if service else "blue"
    idle = "green" if active == "blue" else "blue"
    observed = request["children"]["ReplicaSet.apps/v1"]
    sets = {color: observed.get(f"{name}-{color}") for color in (active, idle)}
    wanted = json.dumps(spec["template"], sort_keys=True)

    running = template_of(sets[active]) or wanted
    children = [replica_set(name, active, spec["replicas"], running)]
    if running != wanted:
        children.append(replica_set(name, idle, spec["replicas"], wanted))
        if template_of(sets[idle]) == wanted and ready(sets[idle]) >= spec["replicas"]:
            active = idle  # the next sync deletes the other ReplicaSet
    children.append(front(name, spec["port"], active))
    return {"status": {"active": active, "ready": ready(sets[active])}, "children": children}


def template_of(replica_set):
    return replica_set and replica_set["metadata"]["annotations"][TEMPLATE]


def ready(replica_set):
    return (replica_set or {}).get("status", {}).get("readyReplicas", 0)


def replica_set(name, color, replicas, template):
    labels = {"app": name, "color": color}
    pod = json.loads(template)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{name}-{color}", "annotations": {TEMPLATE: template}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {**pod, "metadata": {**pod.get("metadata", {}), "labels": labels}},
        },
    }


def front(name, port, color):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name, "color": color}, "ports": [{"port": port}]},
    }
