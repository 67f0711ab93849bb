"""The machine itself: messages in, messages and work out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from google.protobuf.message import DecodeError

from hookloop.session import wire
from hookloop.session.desired import DesiredList, difference
from hookloop.session.state import State, NackError, SubjectState
from hookloop.session.observed import ObservedSet
from hookloop.session.wire import ProtocolError, VersionMismatch
from hookloop.stream.v1 import stream_pb2

VERSION = 1
MAX_MESSAGE_BYTES = 64 << 20
# Codes of google.rpc.Code.
CANCELLED, RESOURCE_EXHAUSTED = 1, 8


@dataclass(frozen=True)
class Limits:
    """How much a hook takes on at a time."""

    calls: int
    bytes: int = MAX_MESSAGE_BYTES
    message_bytes: int = MAX_MESSAGE_BYTES


@dataclass(frozen=True)
class Work:
    """A question to answer: to be followed by answer or refuse."""

    call_id: int
    method: str
    request: bytes  # the request message of the method, serialized, without its objects
    objects: ObservedSet
    timeout: Optional[float]  # in seconds from now; None: as long as it takes
    trace: dict[str, str]


@dataclass(frozen=True)
class Cancelled:
    """Work that is no longer wanted, and is answered."""

    call_id: int


@dataclass
class _OpenCall:
    """A call under way."""

    subject: Optional[SubjectState]
    holds: bytes


class Machine:
    """The hook's side of one stream.

    acquire_state gives the state for a session id, which may have been that of an earlier stream. methods are the full names of those that the
    hook answers. attach is the first message of a hook that dials in. Once closed, a machine ignores what comes, and no longer uses its state.
    """

    def __init__(
        self, acquire_state: Callable[[str], State], limits: Limits, build_id: str = "", attach: Any = None, methods: Sequence[str] = ()
    ):
        self._acquire_state = acquire_state
        self._limits = limits
        self._build_id, self._methods = build_id, methods
        self._assembler = wire.Assembler(limits.message_bytes)
        self._state: Optional[State] = None  # from Hello to close
        self._max_engine_bytes = MAX_MESSAGE_BYTES  # bytes of a message that the engine accepts
        self._last_call_id = 0  # the largest Call.id so far
        self._calls: dict[int, _OpenCall] = {}
        self._outbox: list[Any] = []
        self.closed = False
        self.draining = False  # whether the engine asks nothing more
        if attach is not None:
            self._send(attach=attach)

    def receive(self, message: Any) -> Union[Work, Cancelled, Any, None]:
        """Takes a message in. Work, Cancelled, a Triggered or a Status that says farewell is what comes of it, or nothing."""
        if self.closed:
            return None
        if message.WhichOneof("message") == "fragment":
            whole = self._assembler.add(message.fragment)
            if whole is None:
                return None
            message = _parse(whole)
        elif self._assembler.busy:
            raise ProtocolError("a message came between the fragments of another, expected the next fragment")
        field = message.WhichOneof("message")
        if field is None:
            return None
        if (field == "hello") == (self._state is not None) and field != "farewell":
            raise ProtocolError(f"got a message {field}, expected " + ("no second hello" if self._state else "hello first"))
        return getattr(self, f"_{field}")(getattr(message, field))

    def answer(self, call_id: int, response: bytes, desired: Sequence[bytes]) -> None:
        """Answers work: the response message without its desired objects, and those, all of them serialized. Where the call has been
        answered already, nothing happens."""
        call = self._calls.get(call_id)
        if call is None:
            return
        before = self._base(call)
        last, pieces = difference(before, desired)
        content = stream_pb2.Desired(base=before.digest if before else b"", pieces=pieces, digest=last.digest, response=response)
        answer = stream_pb2.Answer(call_id=call_id, desired=content)
        size = stream_pb2.HookMessage(answer=answer).ByteSize()
        if size > self._max_engine_bytes:
            text = f"the answer has {size} bytes, expected at most {self._max_engine_bytes}"
            self.refuse(call_id, stream_pb2.Status(code=RESOURCE_EXHAUSTED, message=text))
            return
        if call.subject is not None:
            self._state.record_response(call.subject, last)
        self._end(call_id)
        self._send(answer=answer)
        self._evict()

    def refuse(self, call_id: int, status: Any) -> None:
        """Answers work with a failure. Where the call has been answered already, nothing happens."""
        if self._end(call_id):
            self._send(answer=stream_pb2.Answer(call_id=call_id, error=status))

    def trigger(self, trigger: Any) -> None:
        """Asks for syncs."""
        self._send(trigger=trigger)

    def drain(self) -> None:
        """Asks for no more questions."""
        if self._state is not None:
            self._send(drain=stream_pb2.Drain())

    @property
    def open(self) -> bool:
        """Whether the engine has said hello, and the stream has not ended."""
        return self._state is not None

    def is_open(self, call_id: int) -> bool:
        """Whether a call waits for its answer."""
        return call_id in self._calls

    @property
    def idle(self) -> bool:
        """Whether no call waits for its answer."""
        return not self._calls

    def take(self) -> list[Any]:
        """What is to be sent, in this order. It is taken once."""
        messages, self._outbox = self._outbox, []
        return messages

    def close(self) -> None:
        """Ends the machine; calls under way are not answered, and the state is another's from now on."""
        for call_id in list(self._calls):
            self._end(call_id)
        self.closed, self._state = True, None

    def _hello(self, hello: Any) -> None:
        if VERSION not in hello.versions:
            raise VersionMismatch(f"the engine speaks versions {list(hello.versions)} of the protocol, expected {VERSION} among them")
        self._max_engine_bytes = hello.max_message_bytes or MAX_MESSAGE_BYTES
        self._state = self._acquire_state(hello.session_id)
        welcome = stream_pb2.Welcome(
            version=VERSION,
            build_id=self._build_id,
            capabilities=self._methods,
            window=stream_pb2.Window(calls=self._limits.calls, bytes=self._limits.bytes),
            max_message_bytes=self._limits.message_bytes,
        )
        self._state.add_holdings(welcome, self._max_engine_bytes)
        self._send(welcome=welcome)

    def _call(self, call: Any) -> Optional[Work]:
        if call.id <= self._last_call_id:
            return None
        self._last_call_id = call.id
        try:
            objects, subject = self._state.apply(call)
        except NackError as missing:
            self._state.forget(call.subject)
            self._send(answer=stream_pb2.Answer(call_id=call.id, nack=missing.nack))
            return None
        self._calls[call.id] = _OpenCall(subject, call.holds)
        if subject is not None:
            subject.calls += 1
        self._evict()
        timeout = call.timeout.seconds + call.timeout.nanos / 1e9 if call.HasField("timeout") else None
        return Work(call.id, call.method, call.request, objects, timeout, dict(call.trace_context))

    def _cancel(self, cancel: Any) -> Optional[Cancelled]:
        if not self.is_open(cancel.call_id):
            return None
        self.refuse(cancel.call_id, stream_pb2.Status(code=CANCELLED, message="cancelled by the engine"))
        return Cancelled(cancel.call_id)

    def _forget(self, forget: Any) -> None:
        for subject in forget.subjects:
            self._state.forget(subject)

    def _drain(self, _: Any) -> None:
        self.draining = True

    def _triggered(self, triggered: Any) -> Any:
        return triggered

    def _farewell(self, status: Any) -> Any:
        return status

    def _base(self, call: _OpenCall) -> Optional[DesiredList]:
        """The list that the engine holds and the hook as well."""
        same_base = call.subject is not None and call.subject.has_response and call.holds == call.subject.list.digest
        return call.subject.list if same_base else None

    def _end(self, call_id: int) -> bool:
        call = self._calls.pop(call_id, None)
        if call is not None and call.subject is not None:
            call.subject.calls -= 1
        return call is not None

    def _evict(self) -> None:
        names = self._state.evict()
        if names:
            self._send(forget=stream_pb2.Forget(subjects=names))

    def _send(self, **message: Any) -> None:
        self._outbox.extend(wire.fragments(stream_pb2.HookMessage(**message)))


def _parse(data: bytes) -> Any:
    try:
        message = stream_pb2.EngineMessage.FromString(data)
    except DecodeError as error:
        raise ProtocolError(f"fragments make no EngineMessage: {error}") from error
    if message.WhichOneof("message") == "fragment":
        raise ProtocolError("fragments make another fragment, expected a message")
    return message
