"""A hook without annotations. By default mypy does not check it."""

from hookloop import Child, Composite, Dependency, serve


def sync(request):
    name = request["parent"]["metadata"]["name"]
    page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return {"children": [Child(page, depends_on=[Dependency("v1", "Secret", name)])]}


serve(Composite(sync=sync, finalize=lambda request: {"finalized": True}))
