"""Turns messages into work, and responses into messages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from google.protobuf.message import DecodeError

from hookloop.rpc_status import Status
from hookloop.session import wire
from hookloop.session.desired import DesiredList, difference
from hookloop.session.observed import ObservedSet
from hookloop.session.state import NackError, State, SubjectState
from hookloop.session.wire import ProtocolError, VersionMismatch
from hookloop.stream.v1 import stream_pb2

VERSION = 1
# Optional features that this machine supports.
CAPABILITIES = (
    stream_pb2.CAPABILITY_CHANGES,
    stream_pb2.CAPABILITY_OBJECT_HASHES,
    stream_pb2.CAPABILITY_FRAGMENTS,
    stream_pb2.CAPABILITY_RESUME,
)
MAX_MESSAGE_BYTES = 64 << 20
# Codes of google.rpc.Code.
CANCELLED, RESOURCE_EXHAUSTED = 1, 8


@dataclass(frozen=True)
class Limits:
    """What the hook accepts: open calls, bytes of open calls, and bytes of one message."""

    calls: int
    bytes: int = MAX_MESSAGE_BYTES
    message_bytes: int = MAX_MESSAGE_BYTES


@dataclass(frozen=True)
class Work:
    """A request, which must be answered with Machine.answer or Machine.refuse."""

    call_id: int
    method: str
    request: bytes  # the encoded request message of the method without its objects
    objects: ObservedSet
    timeout: Optional[float]  # in seconds from now; None is no limit
    trace: dict[str, str]
    # What Hello has for all requests: the engine's build, and the features that it honours.
    engine: str = ""
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cancelled:
    """A call that the engine has cancelled. The machine has already answered it."""

    call_id: int


@dataclass
class _OpenCall:
    subject: Optional[SubjectState]
    desired_digest: bytes  # the digest of the list that the engine has


class Machine:
    """Handles the hook's side of one stream.

    acquire_state returns the state for a session ID, which an earlier stream may have used. methods
    lists the full names of the methods that the hook implements. attach is the first message if the
    hook opens the stream itself. When the machine is closed, it ignores messages and no longer uses
    its state.
    """

    def __init__(
        self,
        acquire_state: Callable[[str], State],
        limits: Limits,
        build_id: str = "",
        attach: Any = None,
        methods: Sequence[str] = (),
    ):
        self._acquire_state = acquire_state
        self._limits = limits
        self._build_id, self._methods = build_id, methods
        self._assembler = wire.Assembler(limits.message_bytes)
        self._state: Optional[State] = None  # from Hello to close
        self._max_engine_bytes = MAX_MESSAGE_BYTES  # of the largest message that can be sent
        self._engine = ""  # of Hello, as in Work
        self._features: tuple[str, ...] = ()
        self._last_call_id = 0
        self._calls: dict[int, _OpenCall] = {}
        self._engine_has: frozenset[int] = frozenset()  # the capabilities in Hello
        self._outbox: list[Any] = []
        self.closed = False
        self.draining = False  # whether the engine sends no more calls
        if attach is not None:
            self._send(attach=attach)

    def receive(self, message: Any) -> Union[Work, Cancelled, Any, None]:
        """Handles a message and returns Work, Cancelled, a TriggerResult, a GoAway, or None."""
        if self.closed:
            return None
        if message.WhichOneof("message") == "fragment":
            whole = self._assembler.add(message.fragment)
            if whole is None:
                return None
            message = _parse(whole)
        elif self._assembler.busy:
            text = "a message came between the fragments of another, expected the next fragment"
            raise ProtocolError(text)
        field = message.WhichOneof("message")
        if field is None:
            return None
        if (field == "hello") == self.open and field != "go_away":
            expected = "no second hello" if self.open else "hello first"
            raise ProtocolError(f"got a message {field}, expected {expected}")
        return getattr(self, f"_{field}")(getattr(message, field))

    def answer(self, call_id: int, response: bytes, desired: Sequence[bytes]) -> None:
        """Answers a call with an encoded response and, separately, its desired objects. If the call
        is no longer open, nothing happens.
        """
        call = self._calls.get(call_id)
        if call is None:
            return
        before = self._base(call)
        last, pieces = difference(before, desired)
        content = stream_pb2.Desired(
            base=before.digest if before else b"",
            pieces=pieces,
            digest=last.digest,
            envelope=response,
        )
        answer = stream_pb2.Answer(call_id=call_id, desired=content)
        size = stream_pb2.HookMessage(answer=answer).ByteSize()
        if size > self._max_engine_bytes:
            limit = self._max_engine_bytes
            text = f"the answer has {size} bytes, which is larger than max ({limit})"
            self.refuse(call_id, Status(code=RESOURCE_EXHAUSTED, message=text))
            return
        if call.subject is not None:
            self._open_state().record_response(call.subject, last)
        self._end(call_id)
        self._send(answer=answer)
        self._evict()

    def refuse(self, call_id: int, status: Any) -> None:
        """Answers a call with a failure. If the call is no longer open, nothing happens."""
        if self._end(call_id):
            self._send(answer=stream_pb2.Answer(call_id=call_id, error=status))

    def trigger(self, message: Any) -> None:
        """Asks the engine for syncs."""
        self._send(trigger=message)

    def drain(self) -> None:
        """Asks the engine for no more calls."""
        if self.open:
            self._send(drain=stream_pb2.Drain())

    @property
    def open(self) -> bool:
        """Whether the engine has sent Hello and the stream has not ended."""
        return self._state is not None

    def is_open(self, call_id: int) -> bool:
        """Reports whether a call still needs an answer."""
        return call_id in self._calls

    @property
    def idle(self) -> bool:
        """Whether no call is open."""
        return not self._calls

    def take(self) -> list[Any]:
        """Removes the messages to send from the outbox and returns them in order."""
        messages, self._outbox = self._outbox, []
        return messages

    def close(self) -> None:
        """Closes the machine. Open calls are dropped, and the state may be used by another one."""
        for call_id in list(self._calls):
            self._end(call_id)
        if self._state is not None and stream_pb2.CAPABILITY_RESUME not in self._engine_has:
            self._state.clear()
        self.closed, self._state = True, None

    def _open_state(self) -> State:
        assert self._state is not None, "messages before Hello are a ProtocolError"
        return self._state

    def _hello(self, hello: Any) -> None:
        if VERSION not in hello.versions:
            got = f"the engine speaks versions {list(hello.versions)} of the protocol"
            raise VersionMismatch(f"{got}, expected {VERSION} among them")
        self._engine_has = frozenset(hello.capabilities)
        self._engine, self._features = hello.build_id, tuple(hello.features)
        self._max_engine_bytes = hello.max_message_bytes or MAX_MESSAGE_BYTES
        if stream_pb2.CAPABILITY_FRAGMENTS not in self._engine_has:  # the engine accepts one piece
            self._max_engine_bytes = min(self._max_engine_bytes, wire.FRAGMENT_BYTES)
        self._state = self._acquire_state(hello.session_id)
        if stream_pb2.CAPABILITY_RESUME not in self._engine_has:
            self._state.clear()
        welcome = stream_pb2.Welcome(
            version=VERSION,
            build_id=self._build_id,
            capabilities=CAPABILITIES,
            methods=self._methods,
            window=stream_pb2.Window(calls=self._limits.calls, bytes=self._limits.bytes),
            max_message_bytes=self._limits.message_bytes,
        )
        self._state.add_holdings(welcome, self._max_engine_bytes)
        self._send(welcome=welcome)

    def _call(self, call: Any) -> Optional[Work]:
        if call.id <= self._last_call_id:
            return None
        self._last_call_id = call.id
        state = self._open_state()
        try:
            objects, subject = state.apply(call)
        except NackError as error:
            state.forget(call.subject)
            self._send(answer=stream_pb2.Answer(call_id=call.id, nack=error.nack))
            return None
        self._calls[call.id] = _OpenCall(subject, call.desired_digest)
        if subject is not None:
            subject.calls += 1
        self._evict()
        timeout = None
        if call.HasField("timeout"):
            timeout = call.timeout.seconds + call.timeout.nanos / 1e9
        return Work(
            call.id,
            call.method,
            call.envelope,
            objects,
            timeout,
            dict(call.trace_context),
            self._engine,
            self._features,
        )

    def _cancel(self, cancel: Any) -> Optional[Cancelled]:
        if not self.is_open(cancel.call_id):
            return None
        text = "cancelled by the engine"
        self.refuse(cancel.call_id, Status(code=CANCELLED, message=text))
        return Cancelled(cancel.call_id)

    def _forget(self, forget: Any) -> None:
        for subject in forget.subjects:
            self._open_state().forget(subject)

    def _drain(self, _: Any) -> None:
        self.draining = True

    def _trigger_result(self, result: Any) -> Any:
        return result

    def _go_away(self, go_away: Any) -> Any:
        return go_away

    def _base(self, call: _OpenCall) -> Optional[DesiredList]:
        """Returns the list that both sides have."""
        subject = call.subject
        if subject is None or not subject.has_response:
            return None
        return subject.list if call.desired_digest == subject.list.digest else None

    def _end(self, call_id: int) -> bool:
        """Closes a call. It returns False if the call was not open."""
        call = self._calls.pop(call_id, None)
        if call is not None and call.subject is not None:
            call.subject.calls -= 1
        return call is not None

    def _evict(self) -> None:
        names = self._open_state().evict()
        if names:
            self._send(forget=stream_pb2.Forget(subjects=names))

    def _send(self, **message: Any) -> None:
        whole = stream_pb2.HookMessage(**message)
        if stream_pb2.CAPABILITY_FRAGMENTS in self._engine_has:
            self._outbox.extend(wire.fragments(whole))
        else:
            self._outbox.append(whole)


def _parse(data: bytes) -> Any:
    try:
        message = stream_pb2.EngineMessage.FromString(data)
    except DecodeError as error:
        raise ProtocolError(f"fragments make no EngineMessage: {error}") from error
    if message.WhichOneof("message") == "fragment":
        raise ProtocolError("fragments make another fragment, expected a message")
    return message
