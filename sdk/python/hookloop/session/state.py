"""What a hook holds of the questions of one session id."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Optional

from google.protobuf.message import DecodeError

from hookloop.hook.v1 import object_pb2
from hookloop.session.desired import DesiredList
from hookloop.session.observed import Edit, SharedObject, ObservedSet
from hookloop.session.wire import HASH_BYTES, ProtocolError, field_bytes, hash_of
from hookloop.stream.v1 import stream_pb2

MAX_STATE_BYTES = 128 << 20  # the most that is held, unless said otherwise


class NackError(Exception):
    """A call refers to what is not held; nack is the answer to it."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.nack = stream_pb2.Nack(reason=stream_pb2.Nack.Reason.Value(f"REASON_{reason}"), message=message)


@dataclass
class SubjectState:
    """What is held about one subject."""

    name: str
    set: ObservedSet = field(default_factory=ObservedSet)
    list: DesiredList = field(default_factory=DesiredList)  # the last answer
    has_response: bool = False
    calls: int = 0  # how many are under way; a subject with any is not evicted


class State:
    """Subjects with their sets and last answers. Objects are kept once, however many sets have them."""

    def __init__(self, limit: int = MAX_STATE_BYTES):
        self._limit = limit
        self.bytes = 0  # of the objects, each once, and of the desired lists
        self._subjects: OrderedDict[str, SubjectState] = OrderedDict()  # the one used last at the end
        self._objects: dict[bytes, SharedObject] = {}

    def add_holdings(self, welcome: Any, limit: int) -> None:
        """Adds to a Welcome what the engine may build on, the subjects used last first, as far as its message stays within limit bytes. The
        others are forgotten, on both sides: the engine asks about them anew."""
        size = welcome.ByteSize()
        for name in list(reversed(self._subjects)):
            holding = stream_pb2.Holding(subject=name, digest=self._subjects[name].set.digest)
            grown = size + field_bytes(holding.ByteSize())
            if field_bytes(grown) > limit:
                self.forget(name)
                continue
            size = grown
            welcome.holdings.append(holding)

    def apply(self, call: Any) -> tuple[ObservedSet, Optional[SubjectState]]:
        """The set that a call describes, held for its subject if it names one; or NackError."""
        known = self._subjects.get(call.subject)
        if call.base and known is None:
            raise NackError("UNKNOWN_BASE", "nothing is held for this subject")
        if call.base and call.base != known.set.digest:
            raise NackError("UNKNOWN_BASE", "what is held for this subject has another digest")
        edit = Edit(known.set if call.base else None)
        for key in call.removed:
            edit.remove(key.slot, (key.namespace, key.name))
        hashes = [_content_hash(upsert) for upsert in call.upserts]
        sent = self._sent_objects(call.upserts, hashes)
        for upsert, named in zip(call.upserts, hashes):
            held = sent.get(named) or self._objects.get(named)
            if held is None:
                raise NackError("UNKNOWN_OBJECT", "an object is not held that is named by its hash")
            edit.put(upsert.slot, held)
        found = edit.done()
        if found.digest != call.digest:
            raise NackError("DIGEST_MISMATCH", "after the changes the set has another digest")
        return found, self._commit(call, known, edit) if call.subject else None

    def record_response(self, subject: SubjectState, last: DesiredList) -> None:
        """Makes a list the last answer about a subject, if the subject is still held."""
        if self._subjects.get(subject.name) is subject:
            self.bytes += last.size - subject.list.size
            subject.list, subject.has_response = last, True

    def forget(self, name: str) -> None:
        """Lets a subject go."""
        subject = self._subjects.pop(name, None)
        if subject is not None:
            self._release(subject.set.entries())
            self.bytes -= subject.list.size

    def evict(self) -> list[str]:
        """Forgets what was used longest ago until the limit is kept, and names it. Subjects with calls under way stay."""
        names = []
        for subject in list(self._subjects.values()) if self.bytes > self._limit else ():
            if self.bytes <= self._limit:
                break
            if subject.calls == 0:
                self.forget(subject.name)
                names.append(subject.name)
        return names

    def _sent_objects(self, upserts: Any, hashes: list[bytes]) -> dict[bytes, SharedObject]:
        """The objects that come with a call, and are not held."""
        sent: dict[bytes, SharedObject] = {}
        for upsert, named in zip(upserts, hashes):
            if not upsert.HasField("object") or named in sent or named in self._objects:
                continue
            try:
                message = object_pb2.Object.FromString(upsert.object)
            except DecodeError as error:
                raise ProtocolError(f"an upsert's object is no hookloop.hook.v1.Object: {error}") from error
            sent[named] = SharedObject(message, named, len(upsert.object))
        return sent

    def _commit(self, call: Any, known: Optional[SubjectState], edit: Edit) -> SubjectState:
        subject = known or SubjectState(call.subject)
        self._subjects[subject.name] = subject
        self._subjects.move_to_end(subject.name)
        before, subject.set = subject.set, edit.set
        for held in edit.added:
            if held.references == 0:
                self._objects[held.hash] = held
                self.bytes += held.size
            held.references += 1
        self._release(edit.dropped if call.base else edit.dropped + before.entries())
        return subject

    def _release(self, entries: list[SharedObject]) -> None:
        for held in entries:
            held.references -= 1
            if held.references == 0:
                del self._objects[held.hash]
                self.bytes -= held.size


def _content_hash(upsert: Any) -> bytes:
    """The hash of an upsert's object."""
    content = upsert.WhichOneof("content")
    if content is None:
        raise ProtocolError("an upsert has neither object nor hash, expected one of them")
    named = upsert.hash if content == "hash" else hash_of(upsert.object)
    if len(named) != HASH_BYTES:
        raise ProtocolError(f"an upsert's hash has {len(named)} bytes, expected {HASH_BYTES}")
    return named
