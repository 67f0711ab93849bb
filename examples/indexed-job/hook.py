"""A Job with numbered Pods: one for each index from 0 to completions - 1, at most parallelism at a
time."""


def sync(request):
    job = request["parent"]
    spec, name = job["spec"], job["metadata"]["name"]
    pods = request["children"]["Pod.v1"].values()
    phases = {index_of(pod): pod.get("status", {}).get("phase", "Pending") for pod in pods}
    done = {i for i, phase in phases.items() if phase == "Succeeded"}
    failed = {i for i, phase in phases.items() if phase == "Failed"}
    # Finished Pods stay, so that they do not run again; the next ones are created up to the limit.
    wanted = set(phases) - failed
    for i in range(spec["completions"]):
        if len(wanted - done) >= spec.get("parallelism", 1):
            break
        wanted.add(i)
    return {
        "status": {
            "succeeded": len(done),
            "active": len(set(phases) - done - failed),
            "complete": len(done) == spec["completions"],
        },
        "children": [pod(name, i, spec["template"]) for i in sorted(wanted)],
    }


def pod(name, index, template):
    variable = {"name": "INDEX", "value": str(index)}
    containers = [
        {**container, "env": [*container.get("env", []), variable]}
        for container in template["spec"]["containers"]
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{index}", "labels": template["metadata"]["labels"]},
        "spec": {**template["spec"], "restartPolicy": "Never", "containers": containers},
    }


def index_of(pod):
    return int(pod["metadata"]["name"].rsplit("-", 1)[1])
