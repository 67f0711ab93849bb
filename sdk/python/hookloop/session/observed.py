"""Observed sets: what the questions about one subject are about, and how a call changes it."""

import bisect
from dataclasses import dataclass, field
from typing import Any, Optional

from hookloop.session.wire import EMPTY_DIGEST, hash_of, minus, plus

Key = tuple[str, str]  # namespace and name; strings compare as their UTF-8 does


@dataclass
class SharedObject:
    """An object that a hook holds. Sets share it, and its message is never changed."""

    message: Any  # hookloop.hook.v1.Object
    hash: bytes
    size: int
    references: int = 0  # how many entries of sets refer to it; one that nobody references is let go

    @property
    def key(self) -> Key:
        """Where it stands within a slot."""
        return self.message.namespace, self.message.name


@dataclass
class Slot:
    """The objects of one place in a request, in the order of their keys, which are unique."""

    keys: list[Key] = field(default_factory=list)
    objects: list[SharedObject] = field(default_factory=list)

    def find(self, key: Key) -> tuple[int, bool]:
        """Where a key stands or would stand, and whether it is there."""
        if not self.keys or key > self.keys[-1]:
            return len(self.keys), False
        at = bisect.bisect_left(self.keys, key)
        return at, self.keys[at] == key


@dataclass
class ObservedSet:
    """An observed set. It is not changed once it is held; no slot is empty, and digest is that of all entries."""

    slots: dict[int, Slot] = field(default_factory=dict)
    digest: bytes = EMPTY_DIGEST

    def view(self, slot: int) -> list[Any]:
        """The messages of a slot, which are only read."""
        found = self.slots.get(slot)
        return [held.message for held in found.objects] if found else []

    def entries(self) -> list[SharedObject]:
        """The objects of all entries."""
        return [held for slot in self.slots.values() for held in slot.objects]


class Edit:
    """A set that is being changed. Slots that no change touches are shared with the set that it comes from.

    added and dropped are the objects of the entries that differ from that set.
    """

    def __init__(self, base: Optional[ObservedSet]):
        self.set = ObservedSet(dict(base.slots), base.digest) if base else ObservedSet()
        self.added: list[SharedObject] = []
        self.dropped: list[SharedObject] = []
        self._own: set[int] = set()

    def remove(self, slot: int, key: Key) -> None:
        """Takes an entry out. One that is not there is left to the digest to find."""
        objects = self._slot(slot)
        at, found = objects.find(key)
        if found:
            self._drop(slot, objects.objects[at])
            del objects.keys[at], objects.objects[at]

    def put(self, slot: int, held: SharedObject) -> None:
        """Takes an entry in, in the place of the one with the same key."""
        objects, key = self._slot(slot), held.key
        at, found = objects.find(key)
        if found:
            self._drop(slot, objects.objects[at])
            objects.objects[at] = held
        else:
            objects.keys.insert(at, key)
            objects.objects.insert(at, held)
        self.added.append(held)
        self.set.digest = plus(self.set.digest, _entry(slot, held.hash))

    def done(self) -> ObservedSet:
        """The set after all changes."""
        for slot in self._own:
            if not self.set.slots[slot].keys:
                del self.set.slots[slot]
        self._own = set()
        return self.set

    def _drop(self, slot: int, held: SharedObject) -> None:
        self.dropped.append(held)
        self.set.digest = minus(self.set.digest, _entry(slot, held.hash))

    def _slot(self, slot: int) -> Slot:
        if slot not in self._own:
            self._own.add(slot)
            found = self.set.slots.get(slot, Slot())
            self.set.slots[slot] = Slot(list(found.keys), list(found.objects))
        return self.set.slots[slot]


def _entry(slot: int, held: bytes) -> bytes:
    """A part of a set's digest."""
    return hash_of(slot.to_bytes(4, "little") + held)
