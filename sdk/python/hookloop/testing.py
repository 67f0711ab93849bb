"""Calls a hook's function as the engine does, without an engine, a server or a cluster.

    response = call(sync, "testdata/website.yaml", children=["Deployment.apps/v1"])

The first document in the file is the parent; the others are its observed children. The request and
the response pass through protobuf messages, as in a server. The response is then checked by the
engine's rules, so that a test finds what the engine would reject. Rules that need a cluster, such
as whether the API server knows a kind, are not checked.

Write a kind of children as "Deployment.apps/v1", or as "Namespace.v1:Cluster" if it is
cluster-scoped. A parent without a namespace is taken for cluster-scoped: children must then name a
namespace, unless their kind is declared as cluster-scoped.
"""

import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from hookloop import response, service, validate
from hookloop.hook.v1 import observed_pb2, related_pb2
from hookloop.hooks import (
    CustomizeFunction,
    DecorateFunction,
    MapFinalizeFunction,
    MapFunction,
    SyncFunction,
    TombstoneFunction,
)
from hookloop.messages import Child, Dependency
from hookloop.request import kind_key
from hookloop.shape import COMPOSITE, DECORATOR, MAP, Shape

__all__ = [
    "Objects",
    "Related",
    "call",
    "customize",
    "decorate",
    "finalize_input",
    "map_input",
    "replay",
    "tombstone",
]

# Objects is a list of objects, or the name of a YAML or JSON file.
Objects = Union[str, pathlib.Path, Sequence[Mapping[str, Any]]]
# Related holds related objects by the name of their rule, or by resource ("configmaps.v1").
Related = Mapping[str, Sequence[Mapping[str, Any]]]

_CONTROLLER = {
    "apiVersion": "metacontroller.k8s.io/v1alpha1",
    "kind": "CompositeController",
    "metadata": {"name": validate.CONTROLLER_NAME},
}


def call(
    function: SyncFunction,
    objects: Objects,
    *,
    children: Iterable[str] = (),
    related: Optional[Related] = None,
    finalizing: bool = False,
) -> dict[str, Any]:
    """Calls a composite's sync or finalize function and checks the response.

    objects holds the parent first, then its observed children. children lists the kinds ("Pod.v1")
    that the controller declares and that have no object here. The result is the response as the
    engine decodes it. InvalidResponse is raised if the engine would reject the response, and
    ValueError for wrong arguments.
    """
    method = "Finalize" if finalizing else "Sync"
    return _call(COMPOSITE, method, function, objects, children, related)


def decorate(
    function: DecorateFunction,
    objects: Objects,
    *,
    attachments: Iterable[str] = (),
    related: Optional[Related] = None,
    finalizing: bool = False,
) -> dict[str, Any]:
    """Calls a decorator's sync or finalize function, as call does. objects holds the object to
    decorate first, then its observed attachments.
    """
    method = "Finalize" if finalizing else "Sync"
    return _call(DECORATOR, method, function, objects, attachments, related)


def map_input(
    function: MapFunction,
    objects: Objects,
    *,
    outputs: Iterable[str] = (),
    related: Optional[Related] = None,
) -> dict[str, Any]:
    """Calls a map hook's map function, as call does. objects holds the parent, the input, and then
    the input's observed outputs.
    """
    return _call(MAP, "Map", function, objects, outputs, related)


def finalize_input(
    function: MapFinalizeFunction,
    objects: Objects,
    *,
    outputs: Iterable[str] = (),
    related: Optional[Related] = None,
) -> dict[str, Any]:
    """Calls a map hook's finalize function, as map_input does."""
    return _call(MAP, "Finalize", function, objects, outputs, related)


def tombstone(
    function: TombstoneFunction,
    objects: Objects,
    *,
    map_key: str = "",
    outputs: Iterable[str] = (),
    related: Optional[Related] = None,
) -> dict[str, Any]:
    """Calls a map hook's tombstone function, as call does. objects holds the parent first, then the
    observed outputs. map_key identifies the input that is gone. The result lists the outputs to
    keep.
    """
    return _call(MAP, "Tombstone", function, objects, outputs, related, map_key)


def replay(function: service.AnyFunction, file: Union[str, pathlib.Path]) -> dict[str, Any]:
    """Calls a function with a request that "hookloop serve --record-dir" recorded.

    Pass the function for the recorded kind and operation. The response is returned as from call.
    InvalidResponse is raised if the engine would reject the response, and ValueError if the file is
    not a recording of this version.
    """
    recorded = _recording(pathlib.Path(file))
    question, operation = recorded["question"], recorded["operation"]
    shape = {"composite": COMPOSITE, "decorator": DECORATOR, "map": MAP}.get(recorded["kind"])
    if shape is None:
        kind = recorded["kind"]
        raise ValueError(f"{file}: kind: got {kind!r}, expected composite, decorator or map")
    if operation not in _METHODS:
        expected = ", ".join(_METHODS)
        raise ValueError(f"{file}: operation: got {operation!r}, expected one of {expected}")
    method = _METHODS[operation]
    objects = [question[shape.parent]]
    if shape.has_input(method) and "input" in question:
        objects.append(question["input"])
    objects += [each for group in question[shape.children].values() for each in group.values()]
    kinds = [
        f"{group['kind']}.{group['apiVersion']}" + ("" if group["namespaced"] else ":Cluster")
        for group in recorded["children"]
    ]
    related = {}
    for group in recorded.get("related", []):
        name = group.get("name")
        key = kind_key(group["kind"], group["apiVersion"])
        found = question["required"][name] if name else question["related"].get(key, {})
        related[name or f"{group['resource']}.{group['apiVersion']}"] = list(found.values())
    return _call(shape, method, function, objects, kinds, related, question.get("mapKey", ""))


_RECORDING_FORMAT = "hookloop.dev/recording/v1"
_METHODS = {"sync": "Sync", "finalize": "Finalize", "map": "Map", "tombstone": "Tombstone"}


def _recording(file: pathlib.Path) -> dict[str, Any]:
    expected = "expected a file of hookloop serve --record-dir"
    if file.is_dir():
        raise ValueError(f"{file}: is a folder, {expected}")
    try:
        recorded = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: is no recording: {error}; {expected}") from error
    found = recorded.get("format") if isinstance(recorded, dict) else None
    if found != _RECORDING_FORMAT:
        raise ValueError(
            f"{file}: format: got {found!r}, expected {_RECORDING_FORMAT!r}: record it again"
        )
    return dict(recorded)


def customize(function: CustomizeFunction, objects: Objects) -> dict[str, Any]:
    """Calls a customize function for the first of the objects and returns the response.
    InvalidResponse is raised if the response cannot be encoded.
    """
    shape = COMPOSITE
    kind = shape.message("Customize", "Request")
    message = kind(controller=_object(_CONTROLLER), parent=_object(_load(objects)[0]))
    result: Any = function(_decode(shape, "Customize", message))
    service.encode(shape, "Customize", result)
    return dict(result)


def _load(objects: Objects) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]]
    if not isinstance(objects, (str, pathlib.Path)):
        found = objects
    elif (path := pathlib.Path(objects)).suffix == ".json":
        read = json.loads(path.read_text(encoding="utf-8"))
        found = read if isinstance(read, list) else [read]
    else:
        found = _yaml(path)
    if not found:
        raise ValueError(f"{objects}: got no object, expected the parent")
    return found


def _yaml(path: pathlib.Path) -> list[Mapping[str, Any]]:
    try:
        import yaml
    except ImportError as error:
        text = "YAML needs PyYAML (Debian: python3-yaml); JSON works without it"
        raise ImportError(f"{path}: {text}") from error

    class Loader(yaml.SafeLoader):
        """Loads timestamps as strings, as JSON has them."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    documents = yaml.load_all(path.read_text(encoding="utf-8"), Loader)  # a safe loader
    return [document for document in documents if document is not None]


def _call(
    shape: Shape,
    method: str,
    function: service.AnyFunction,
    objects: Objects,
    kinds: Iterable[str],
    related: Optional[Related],
    map_key: str = "",
) -> dict[str, Any]:
    parent, *children = _load(objects)
    message = shape.message(method, "Request")(controller=_object(_CONTROLLER))
    getattr(message, shape.parent).CopyFrom(_object(parent))
    if shape.has_input(method):
        if not children:
            raise ValueError(f"{objects}: got one object, expected the parent and the input")
        found, *children = children
        message.input.CopyFrom(_object(found))
        map_key = _map_key(message.input)
    if shape is MAP:
        message.map_key = map_key
    declared = validate.declared_kinds(kinds)
    groups = _groups(declared, children)
    for key, members in groups.items():
        kind, _, api_version = key.partition(".")
        getattr(message, shape.children).add(objects=members, kind=kind, api_version=api_version)
    for key, selected in (related or {}).items():
        resource, dot, api_version = key.partition(".")
        group = {"resource": resource, "api_version": api_version} if dot else {"name": key}
        message.related.add(items=related_pb2.RelatedItems(objects=map(_object, selected)), **group)
    result = function(_decode(shape, method, message))
    encoded, desired = service.encode(shape, method, result)
    scope = validate.Scope(
        shape.children,
        getattr(message, shape.parent).namespace,
        {kind: declared.get(kind, False) for kind in groups},
        map_key,
        _refs(groups) if method == "Tombstone" else None,
    )
    validate.validate(scope, encoded, desired)
    read = _read_response(shape, encoded, desired)
    if result.get("requirements"):
        read["requirements"] = list(result["requirements"])
    return read


def _groups(declared: Iterable[str], objects: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Groups observed objects by kind, with a group for each declared kind."""
    groups: dict[str, list[Any]] = {kind: [] for kind in declared}
    for found in objects:
        key = kind_key(found["kind"], found["apiVersion"])
        groups.setdefault(key, []).append(_object(found))
    return groups


def _refs(groups: Mapping[str, list[Any]]) -> set[validate.Ref]:
    return {
        validate.Ref(kind, each.namespace, each.name) for kind, found in groups.items() for each in found
    }


def _map_key(found: Any) -> str:
    """Returns an input's map key: Kind.group/namespace/name."""
    group, slash, _ = found.api_version.partition("/")
    kind = f"{found.kind}.{group}" if slash else found.kind
    return "/".join(part for part in (kind, found.namespace, found.name) if part)


def _decode(shape: Shape, method: str, message: Any) -> Any:
    objects = service.objects_by_slot(shape, method, message).__getitem__
    return service.decode(shape, method, message, objects)


def _object(found: Mapping[str, Any]) -> Any:
    for field in ("apiVersion", "kind"):
        if not found.get(field):
            raise ValueError(f"an observed object has no {field}: {found}")
    found = {"metadata": {}, **found}
    return observed_pb2.ObservedObject(
        api_version=found["apiVersion"],
        kind=found["kind"],
        namespace=found["metadata"].get("namespace", ""),
        name=found["metadata"].get("name", ""),
        body=json.dumps(found).encode(),
    )


def _read_response(shape: Shape, message: Any, desired: list[Any]) -> dict[str, Any]:
    """Decodes a response into the form that functions return."""
    read: dict[str, Any] = {shape.children: [_read_desired(each) for each in desired]}
    if "status" in shape.response_fields and message.HasField("status"):
        read["status"] = json.loads(message.status)
    if message.details.HasField("resync_after"):
        wait = message.details.resync_after
        read["resyncAfterSeconds"] = wait.seconds + wait.nanos / 1e9
    if getattr(message, "finalized", False):
        read["finalized"] = True
    for field in shape.patches:
        change = getattr(message, field)
        patch = dict(change.set) | dict.fromkeys(change.remove)
        if patch:
            read[field] = patch
    remarks = _read_remarks(message.details)
    return read | {field: values for field, values in remarks.items() if values}


def _read_desired(desired: Any) -> Any:
    """Decodes a desired object: a Child if it sets dependencies or readiness, otherwise a dict."""
    found = json.loads(desired.body)
    ready = desired.ready if desired.HasField("ready") else None
    if ready is None and not desired.depends_on:
        return found
    depends_on = [
        Dependency(each.api_version, each.kind, each.name, each.namespace, each.condition)
        for each in desired.depends_on
    ]
    return Child(found, depends_on, ready)


def _read_remarks(details: Any) -> dict[str, list[Any]]:
    """Decodes conditions, events and results."""
    statuses, types, severities = (
        {number: name for name, number in table.items()}
        for table in (response.CONDITION_STATUSES, response.EVENT_TYPES, response.SEVERITIES)
    )
    return {
        "conditions": [
            {"type": each.type, "status": statuses[each.status], **_reason_and_message(each)}
            for each in details.conditions
        ],
        "events": [
            {"type": types[each.type], **_reason_and_message(each)} for each in details.events
        ],
        "results": [
            {"severity": severities[each.severity], **_reason_and_message(each)}
            for each in details.results
        ],
    }


def _reason_and_message(remark: Any) -> dict[str, str]:
    return {"reason": remark.reason, "message": remark.message}
