"""Remembers a session: observed sets and last responses."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Optional

from google.protobuf.message import DecodeError

from hookloop.cachestats import SESSIONS, Meter
from hookloop.hook.v1 import observed_pb2
from hookloop.rpc_status import Status
from hookloop.session.desired import DesiredList
from hookloop.session.observed import Edit, ObservedSet, SharedObject
from hookloop.session.wire import HASH_BYTES, ProtocolError, field_bytes, hash_of
from hookloop.stream.v1 import stream_pb2

MAX_STATE_BYTES = 128 << 20  # the default limit
# Codes of google.rpc.Code.
FAILED_PRECONDITION, DATA_LOSS = 9, 15


class NackError(Exception):
    """Is raised if a call refers to content that the state lacks. nack is the answer to this call.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        value = stream_pb2.Nack.Reason.Value(f"REASON_{reason}")
        code = DATA_LOSS if reason == "DIGEST_MISMATCH" else FAILED_PRECONDITION
        self.nack = stream_pb2.Nack(reason=value, status=Status(code=code, message=message))


@dataclass
class SubjectState:
    """What is remembered about one subject."""

    name: str
    set: ObservedSet = field(default_factory=ObservedSet)
    list: DesiredList = field(default_factory=DesiredList)  # of the last response
    has_response: bool = False
    calls: int = 0  # the number of open calls; a subject with open calls is not evicted


class State:
    """Remembers subjects with their sets and last responses. Each object is kept once, even if
    several sets use it.
    """

    def __init__(self, limit: int = MAX_STATE_BYTES, meter: Meter = SESSIONS):
        self._limit, self._meter = limit, meter
        self.bytes = 0  # of the objects, each once, and of the desired lists
        self._subjects: OrderedDict[str, SubjectState] = OrderedDict()  # last used at the end
        self._objects: dict[bytes, SharedObject] = {}
        meter.watch(self)

    @property
    def entries(self) -> int:
        """How many subjects there are."""
        return len(self._subjects)

    def add_holdings(self, welcome: Any, limit: int) -> None:
        """Lists subjects in a Welcome, last used first, as many as fit into limit bytes. It forgets
        the others, and so will the engine.
        """
        size = welcome.ByteSize()
        for name in list(reversed(self._subjects)):
            digest = self._subjects[name].set.digest
            holding = stream_pb2.SubjectState(subject=name, digest=digest)
            grown = size + field_bytes(holding.ByteSize())
            if field_bytes(grown) > limit:
                self.forget(name)
                continue
            size = grown
            welcome.subjects.append(holding)

    def apply(self, call: Any) -> tuple[ObservedSet, Optional[SubjectState]]:
        """Returns the set that a call describes, and the subject's state if there is one. NackError
        is raised if the call refers to unknown content.
        """
        subject = self._subjects.get(call.subject)
        edit = Edit(_base(call, subject))
        for key in call.removed:
            edit.remove(key.slot, (key.namespace, key.name))
        hashes = [_content_hash(upsert) for upsert in call.upserts]
        sent = self._sent_objects(call.upserts, hashes)
        for upsert, content_hash in zip(call.upserts, hashes):
            shared = sent.get(content_hash) or self._objects.get(content_hash)
            if shared is None:
                raise NackError("UNKNOWN_OBJECT", "the hook does not have an object of a hash")
            edit.put(upsert.slot, shared)
        result = edit.done()
        if result.digest != call.digest:
            raise NackError("DIGEST_MISMATCH", "after the changes the set has another digest")
        return result, self._commit(call, subject, edit) if call.subject else None

    def record_response(self, subject: SubjectState, last: DesiredList) -> None:
        """Stores the list from the last response about a subject, if the subject still exists."""
        if self._subjects.get(subject.name) is subject:
            self.bytes += last.size - subject.list.size
            subject.list, subject.has_response = last, True

    def forget(self, name: str) -> None:
        """Removes a subject."""
        subject = self._subjects.pop(name, None)
        if subject is not None:
            self._release(subject.set.entries())
            self.bytes -= subject.list.size

    def clear(self) -> None:
        """Removes all subjects."""
        for name in list(self._subjects):
            self.forget(name)

    def evict(self) -> list[str]:
        """Removes subjects, least recently used first, until the limit is met, and returns their
        names. Subjects with open calls are kept.
        """
        names: list[str] = []
        for subject in list(self._subjects.values()) if self.bytes > self._limit else ():
            if self.bytes <= self._limit:
                break
            if subject.calls == 0:
                self.forget(subject.name)
                names.append(subject.name)
        return names

    def _sent_objects(self, upserts: Any, hashes: list[bytes]) -> dict[bytes, SharedObject]:
        """Decodes objects that a call sends and that the state lacks."""
        sent: dict[bytes, SharedObject] = {}
        for upsert, content_hash in zip(upserts, hashes):
            present = content_hash in sent or content_hash in self._objects
            if not upsert.HasField("object") or present:
                continue
            try:
                message = observed_pb2.ObservedObject.FromString(upsert.object)
            except DecodeError as error:
                text = f"an upsert's object is no hookloop.hook.v1.ObservedObject: {error}"
                raise ProtocolError(text) from error
            sent[content_hash] = SharedObject(message, content_hash, len(upsert.object))
        return sent

    def _commit(self, call: Any, known: Optional[SubjectState], edit: Edit) -> SubjectState:
        self._meter.looked(known is not None)
        subject = known or SubjectState(call.subject)
        self._subjects[subject.name] = subject
        self._subjects.move_to_end(subject.name)
        before, subject.set = subject.set, edit.set
        for shared in edit.added:
            if shared.references == 0:
                self._objects[shared.hash] = shared
                self.bytes += shared.size
            shared.references += 1
        self._release(edit.dropped if call.base else edit.dropped + before.entries())
        return subject

    def _release(self, entries: list[SharedObject]) -> None:
        for shared in entries:
            shared.references -= 1
            if shared.references == 0:
                del self._objects[shared.hash]
                self.bytes -= shared.size


def _base(call: Any, subject: Optional[SubjectState]) -> Optional[ObservedSet]:
    """Returns the set that a call changes, or None if the call sends a whole set."""
    if not call.base:
        return None
    if subject is None:
        raise NackError("UNKNOWN_BASE", "the hook has no set for the subject")
    if call.base != subject.set.digest:
        raise NackError("UNKNOWN_BASE", "the subject's set has another digest")
    return subject.set


def _content_hash(upsert: Any) -> bytes:
    """Returns the hash of the object in an upsert."""
    content = upsert.WhichOneof("content")
    if content is None:
        raise ProtocolError("an upsert has neither object nor hash, expected one of them")
    content_hash: bytes = upsert.hash if content == "hash" else hash_of(upsert.object)
    if len(content_hash) != HASH_BYTES:
        got = f"an upsert's hash has {len(content_hash)} bytes"
        raise ProtocolError(f"{got}, expected {HASH_BYTES}")
    return content_hash
