"""Reads the questions of the contract into dicts. Integers keep all their digits."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from hookloop.errors import InvalidRequest, NotServed, RelatedUnknown
from hookloop.hook.v1 import object_pb2

# Objects gives the objects of a slot, which is where in a request they stand: 0 the controller, 1 the parent, 2 + 2n the children of group
# n, 3 + 2n the related objects of group n.
Objects = Callable[[int], Sequence[Any]]


class UnknownGroup(Mapping):
    """A related group about which nothing is known: every look into it raises, so that it is never taken for an empty one."""

    def __init__(self, error: RelatedUnknown):
        self.error = error

    def __getitem__(self, key: str) -> Any:
        raise self.error

    def __iter__(self) -> Iterator[str]:
        raise self.error

    def __len__(self) -> int:
        raise self.error


class Group(MutableMapping):
    """Objects by name as seen from their parent: "name", or "namespace/name" in a namespace other than the parent's.

    An object is decoded at the first look at it, for this group alone: what is done to a group and its objects touches nothing else.
    """

    def __init__(self, objects: Iterable[Any], namespace: str):
        self._members = {object_key(message, namespace): message for message in objects}

    def __getitem__(self, key: str) -> dict:
        member = self._members[key]
        if isinstance(member, object_pb2.Object):
            member = self._members[key] = decode_object(member)
        return member

    def __setitem__(self, key: str, value: dict) -> None:
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


def decode_children(groups: Iterable[Any], objects: Objects, namespace: str) -> dict[str, Group]:
    """Children by kind ("ConfigMap.v1", "Deployment.apps/v1"), each group by name. Every declared kind has a group."""
    return {kind_key(g.kind, g.api_version): Group(objects(2 + 2 * n), namespace) for n, g in enumerate(groups)}


def decode_related(groups: Iterable[Any], objects: Objects, namespace: str) -> dict[str, Mapping[str, Any]]:
    """Related objects by the name of their rules or, for rules without a name, by resource ("configmaps.v1", "deployments.apps/v1")."""
    return {g.name or kind_key(g.resource, g.api_version): _related(g, objects, 3 + 2 * n, namespace) for n, g in enumerate(groups)}


def _related(group: Any, objects: Objects, slot: int, namespace: str) -> Mapping[str, Any]:
    result = group.WhichOneof("result")
    if result == "items":
        return Group(objects(slot), namespace)
    resource = kind_key(group.resource, group.api_version)
    if result == "not_found":
        return UnknownGroup(NotServed(f"{resource} is not served: {group.not_found.message}"))
    if result == "error":
        return UnknownGroup(RelatedUnknown(f"{resource} is not known: {group.error.reason}: {group.error.message}"))
    return UnknownGroup(RelatedUnknown(f"{resource}: got a result of an unknown kind, expected items, not_found or error"))


def decode_object(message: Any) -> dict:
    """One observed object."""
    if message.encoding not in (object_pb2.ENCODING_UNSPECIFIED, object_pb2.ENCODING_JSON):
        raise InvalidRequest(f'{message.kind} "{message.name}": encoding is {message.encoding}, expected ENCODING_JSON')
    try:
        found = json.loads(message.body.decode())  # a str is read a good deal faster than bytes
    except ValueError as error:
        raise InvalidRequest(f'{message.kind} "{message.name}": {error}') from error
    if not isinstance(found, dict):
        raise InvalidRequest(f'{message.kind} "{message.name}": got {type(found).__name__}, expected a JSON object')
    return found


def object_key(message: Any, namespace: str) -> str:
    """What an object is called by a parent in a namespace."""
    if message.namespace in ("", namespace):
        return message.name
    return f"{message.namespace}/{message.name}"


def kind_key(kind: str, api_version: str) -> str:
    """Kind.group/version, or Kind.version for the core group. A resource's key is made the same way."""
    return f"{kind}.{api_version}"
