"""Holds the observed objects of requests about one subject, and applies changes to them."""

import bisect
from dataclasses import dataclass, field
from typing import Any, Optional

from hookloop.session.wire import EMPTY_DIGEST, hash_of, minus, plus

Key = tuple[str, str]  # namespace and name, ordered by UTF-8 bytes


@dataclass
class SharedObject:
    """An object that several sets may use. Its message is immutable."""

    message: Any  # hookloop.hook.v1.ObservedObject
    hash: bytes
    size: int
    references: int = 0  # the number of entries of sets; the state drops an object at 0

    @property
    def key(self) -> Key:
        """The key within a slot."""
        return self.message.namespace, self.message.name


@dataclass
class Slot:
    """The objects that stand in one place in a request. keys are sorted and unique, and objects
    have the same order.
    """

    keys: list[Key] = field(default_factory=list)
    objects: list[SharedObject] = field(default_factory=list)

    def find(self, key: Key) -> tuple[int, bool]:
        """Returns a key's position, or where to insert it, and whether it exists."""
        if not self.keys or key > self.keys[-1]:
            return len(self.keys), False
        at = bisect.bisect_left(self.keys, key)
        return at, self.keys[at] == key


@dataclass
class ObservedSet:
    """A set of observed objects, immutable once it is in a state. No slot is empty, and digest
    covers all entries.
    """

    slots: dict[int, Slot] = field(default_factory=dict)
    digest: bytes = EMPTY_DIGEST

    def view(self, slot: int) -> list[Any]:
        """Returns a slot's messages. The caller must not change them."""
        found = self.slots.get(slot)
        return [shared.message for shared in found.objects] if found else []

    def entries(self) -> list[SharedObject]:
        """Returns the objects of all entries."""
        return [shared for slot in self.slots.values() for shared in slot.objects]


class Edit:
    """Changes a set. Slots that do not change are shared with the original set.

    added and dropped are the objects in entries in which the two sets differ.
    """

    def __init__(self, base: Optional[ObservedSet]):
        self.set = ObservedSet(dict(base.slots), base.digest) if base else ObservedSet()
        self.added: list[SharedObject] = []
        self.dropped: list[SharedObject] = []
        self._own: set[int] = set()

    def remove(self, slot: int, key: Key) -> None:
        """Removes an entry. If there is no such entry, the digests will not match."""
        objects = self._slot(slot)
        at, found = objects.find(key)
        if found:
            self._drop(slot, objects.objects[at])
            del objects.keys[at], objects.objects[at]

    def put(self, slot: int, shared: SharedObject) -> None:
        """Adds an entry, or replaces the entry with the same key."""
        objects, key = self._slot(slot), shared.key
        at, found = objects.find(key)
        if found:
            self._drop(slot, objects.objects[at])
            objects.objects[at] = shared
        else:
            objects.keys.insert(at, key)
            objects.objects.insert(at, shared)
        self.added.append(shared)
        self.set.digest = plus(self.set.digest, _entry_hash(slot, shared.hash))

    def done(self) -> ObservedSet:
        """Returns the finished set."""
        for slot in self._own:
            if not self.set.slots[slot].keys:
                del self.set.slots[slot]
        self._own = set()
        return self.set

    def _drop(self, slot: int, shared: SharedObject) -> None:
        self.dropped.append(shared)
        self.set.digest = minus(self.set.digest, _entry_hash(slot, shared.hash))

    def _slot(self, slot: int) -> Slot:
        """Returns a slot that may be changed."""
        if slot not in self._own:
            self._own.add(slot)
            found = self.set.slots.get(slot, Slot())
            self.set.slots[slot] = Slot(list(found.keys), list(found.objects))
        return self.set.slots[slot]


def _entry_hash(slot: int, content_hash: bytes) -> bytes:
    """Returns what an entry adds to a set's digest."""
    return hash_of(slot.to_bytes(4, "little") + content_hash)
