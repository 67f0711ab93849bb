"""Calls a hook's function as the engine would, without an engine, a cluster or a server.

    answer = call(sync, "testdata/website.yaml", children=["Deployment.apps/v1"])

The file's first document is the parent, all others are what is observed of its children. The question goes through the contract's messages.
The answer is checked as a server does, and by the rules of the engine that follow from the parent and the declared kinds: module validate.

A kind of children is declared as "Deployment.apps/v1", and as "Namespace.v1:Cluster" if it is cluster-scoped. A parent without a namespace is
taken for cluster-scoped: each of its children needs a namespace, unless its kind is declared as cluster-scoped.
"""

import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from hookloop import response, service, validate
from hookloop.hook.v1 import object_pb2
from hookloop.hooks import Child, Function, child, dependency
from hookloop.request import kind_key

Objects = Union[str, pathlib.Path, list]
CONTROLLER = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController", "metadata": {"name": "test"}}


def call(
    function: Function,
    objects: Objects,
    *,
    children: Iterable[str] = (),
    related: Optional[Mapping[str, list]] = None,
    finalizing: bool = False,
) -> dict[str, Any]:
    """Asks a composite hook's function about the objects of a YAML or JSON file, or of a list: the parent first, then its children.

    children are the kinds that the controller declares ("Pod.v1") beside those of the objects; others are refused in the answer. related are lists of objects by
    the name of their rules or by resource ("configmaps.v1"). What is returned is the answer after it has gone through the contract.
    """
    return _call(service.COMPOSITE, "Finalize" if finalizing else "Sync", function, objects, children, related)


def decorate(
    function: Function,
    objects: Objects,
    *,
    attachments: Iterable[str] = (),
    related: Optional[Mapping[str, list]] = None,
    finalizing: bool = False,
) -> dict[str, Any]:
    """Asks a decorator hook's function in the same way: the object to decorate first, then its attachments."""
    return _call(service.DECORATOR, "Finalize" if finalizing else "Sync", function, objects, attachments, related)


def customize(function: Function, objects: Objects) -> dict[str, Any]:
    """Asks a customize function about the first of the objects, and returns its answer if it is a valid one."""
    shape = service.COMPOSITE
    message = shape.message("Customize", "Request")(controller=_object(CONTROLLER), parent=_object(load(objects)[0]))
    answer = function(service.decode(shape, "Customize", message, service.objects_by_slot(shape, "Customize", message).__getitem__))
    service.encode(shape, "Customize", answer)
    return dict(answer)


def load(objects: Objects) -> list[dict]:
    """The objects of a YAML or JSON file, or of a list."""
    if isinstance(objects, list):
        found = objects
    elif (path := pathlib.Path(objects)).suffix == ".json":
        read = json.loads(path.read_text(encoding="utf-8"))
        found = read if isinstance(read, list) else [read]
    else:
        found = _yaml(path)
    if not found:
        raise ValueError(f"{objects}: got no object, expected the parent")
    return found


def _yaml(path: pathlib.Path) -> list[dict]:
    try:
        import yaml
    except ImportError as error:
        raise ImportError(f"{path}: reading YAML needs PyYAML (Debian: python3-yaml); JSON needs nothing") from error

    class Loader(yaml.SafeLoader):
        """Reads timestamps as strings, which is what they are in JSON."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    documents = yaml.load_all(path.read_text(encoding="utf-8"), Loader)  # a safe loader
    return [document for document in documents if document is not None]


def _call(shape: service.Shape, method: str, function: Function, objects: Objects, kinds: Iterable[str], related: Any) -> dict[str, Any]:
    parent, *children = load(objects)
    message = shape.message(method, "Request")(controller=_object(CONTROLLER))
    getattr(message, shape.parent).CopyFrom(_object(parent))
    declared = validate.declared_kinds(kinds)
    groups = {kind: [] for kind in declared}
    for child in children:
        groups.setdefault(kind_key(child["kind"], child["apiVersion"]), []).append(_object(child))
    for key, members in groups.items():
        kind, _, api_version = key.partition(".")
        getattr(message, shape.children).add(kind=kind, api_version=api_version, objects=members)
    for key, members in (related or {}).items():
        resource, dot, api_version = key.partition(".")
        where = {"resource": resource, "api_version": api_version} if dot else {"name": key}
        message.related.add(items=object_pb2.RelatedItems(objects=map(_object, members)), **where)
    question = service.decode(shape, method, message, service.objects_by_slot(shape, method, message).__getitem__)
    answer = function(question)
    encoded, desired = service.encode(shape, method, answer)
    namespace = getattr(message, shape.parent).namespace
    scope = validate.Scope(shape.children, namespace, {kind: declared.get(kind, False) for kind in groups})
    validate.validate(scope, encoded, desired)
    read = _read_response(shape, encoded, desired)
    if answer.get("requirements"):
        read["requirements"] = list(answer["requirements"])
    return read


def _object(found: dict) -> Any:
    for field in ("apiVersion", "kind"):
        if not found.get(field):
            raise ValueError(f"an observed object has no {field}: {found}")
    metadata = found.setdefault("metadata", {})
    return object_pb2.Object(
        api_version=found["apiVersion"], kind=found["kind"], namespace=metadata.get("namespace", ""), name=metadata.get("name", ""),
        body=json.dumps(found).encode(),
    )


def _read_response(shape: service.Shape, message: Any, desired: list) -> dict[str, Any]:
    """An answer as the engine reads it, in the form in which functions say it."""
    answer: dict[str, Any] = {shape.children: [_read_desired(one) for one in desired]}
    if message.HasField("status"):
        answer["status"] = json.loads(message.status)
    if message.HasField("resync_after"):
        answer["resyncAfterSeconds"] = message.resync_after.seconds + message.resync_after.nanos / 1e9
    if getattr(message, "finalized", False):
        answer["finalized"] = True
    for field in shape.patches:
        patch = dict(getattr(message, f"set_{field}")) | dict.fromkeys(getattr(message, f"remove_{field}"))
        if patch:
            answer[field] = patch
    return answer | {field: values for field, values in _read_remarks(message).items() if values}


def _read_desired(desired: Any) -> Union[dict, Child]:
    """A desired object: a Child where it says more than its content."""
    found = json.loads(desired.body)
    ready = desired.ready if desired.HasField("ready") else None
    if ready is None and not desired.depends_on:
        return found
    return child(found, ready=ready, depends_on=[
        dependency(d.api_version, d.kind, d.name, namespace=d.namespace, condition=d.condition) for d in desired.depends_on
    ])


def _read_remarks(message: Any) -> dict[str, list]:
    """Conditions, events and results."""
    severities = {number: name for name, number in response.SEVERITIES.items()}
    return {
        "conditions": [{"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in message.conditions],
        "events": [{"type": "Warning" if e.warning else "Normal", "reason": e.reason, "message": e.message} for e in message.events],
        "results": [{"severity": severities[r.severity], "reason": r.reason, "message": r.message} for r in message.results],
    }
