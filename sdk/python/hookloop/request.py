"""Decodes requests into dicts. Integers keep all their digits."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from hookloop.errors import InvalidRequest, NotServed, RelatedUnknown
from hookloop.hook.v1 import observed_pb2

# Objects returns the objects in a slot. A slot says where an object stands in a request: 0 is the
# controller, 1 the parent, 2 + 2n the children in group n, 3 + 2n the related objects in group n.
# In requests to map hooks 2 is the input, and 4 + 2n the outputs in group n.
Objects = Callable[[int], Sequence[Any]]


class UnknownGroup(Mapping[str, Any]):
    """Stands for a related group that could not be read. Every access raises the error, so that
    nobody takes it for an empty group.
    """

    def __init__(self, error: RelatedUnknown):
        self.error = error

    def __getitem__(self, key: str) -> Any:
        raise self.error

    def __iter__(self) -> Iterator[str]:
        raise self.error

    def __len__(self) -> int:
        raise self.error


class LazyGroup(MutableMapping[str, Any]):
    """Holds objects by name. For objects outside the parent's namespace the key is
    "namespace/name".

    An object is decoded when it is first accessed, for this group alone. Changes to the group and
    its objects have no effect elsewhere.
    """

    def __init__(self, objects: Iterable[Any], namespace: str):
        self._members = {object_key(message, namespace): message for message in objects}

    def __getitem__(self, key: str) -> Any:
        member = self._members[key]
        if isinstance(member, observed_pb2.ObservedObject):
            member = self._members[key] = decode_object(member)
        return member

    def __setitem__(self, key: str, value: Any) -> None:
        self._members[key] = value

    def __delitem__(self, key: str) -> None:
        del self._members[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: object) -> bool:
        return key in self._members

    def __repr__(self) -> str:
        return repr(dict(self))


def decode_children(
    groups: Iterable[Any], objects: Objects, first_slot: int, namespace: str
) -> dict[str, LazyGroup]:
    """Returns children by kind ("ConfigMap.v1", "Deployment.apps/v1") and name. There is a group
    for each declared kind; first_slot is the slot of the first.
    """
    return {
        kind_key(group.kind, group.api_version): LazyGroup(objects(first_slot + 2 * n), namespace)
        for n, group in enumerate(groups)
    }


def decode_related(
    groups: Iterable[Any], objects: Objects, namespace: str
) -> dict[str, Mapping[str, Any]]:
    """Returns related objects by the name of their rule or, if it has no name, by resource
    ("configmaps.v1", "deployments.apps/v1").
    """
    return {
        group.name
        or kind_key(group.resource, group.api_version): _related(
            group, objects, 3 + 2 * n, namespace
        )
        for n, group in enumerate(groups)
    }


def _related(group: Any, objects: Objects, slot: int, namespace: str) -> Mapping[str, Any]:
    result = group.WhichOneof("result")
    if result == "items":
        return LazyGroup(objects(slot), namespace)
    resource = kind_key(group.resource, group.api_version)
    if result == "not_found":
        return UnknownGroup(NotServed(f"{resource} is not served: {group.not_found.message}"))
    if result == "error":
        return UnknownGroup(RelatedUnknown(f"{resource} is not known: {group.error.message}"))
    expected = "expected items, not_found or error"
    return UnknownGroup(RelatedUnknown(f"{resource}: got a result of an unknown kind, {expected}"))


def decode_object(message: Any) -> dict[str, Any]:
    """Decodes an observed object."""
    item = f'{message.kind} "{message.name}"'
    if message.encoding not in (observed_pb2.ENCODING_UNSPECIFIED, observed_pb2.ENCODING_JSON):
        raise InvalidRequest(f"{item}: encoding is {message.encoding}, expected ENCODING_JSON")
    try:
        found = json.loads(message.body.decode())  # json.loads is faster with str than with bytes
    except ValueError as error:
        raise InvalidRequest(f"{item}: {error}") from error
    if not isinstance(found, dict):
        raise InvalidRequest(f"{item}: got {type(found).__name__}, expected a JSON object")
    return found


def object_key(message: Any, namespace: str) -> str:
    """Returns an object's key in the groups of a parent in this namespace."""
    if message.namespace in ("", namespace):
        return str(message.name)
    return f"{message.namespace}/{message.name}"


def kind_key(kind: str, api_version: str) -> str:
    """Returns Kind.group/version, or Kind.version for the core group. Keys for resources look the
    same.
    """
    return f"{kind}.{api_version}"
