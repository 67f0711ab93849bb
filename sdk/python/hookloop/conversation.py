"""Drives a session.Machine: the one place with threads and a clock. It knows no connection; who has one feeds messages and sends them.

    reader's thread ─ receive ─→ Machine ─→ Work ─→ pool: Route.ask ─→ answer
    writer's thread ←─ outgoing ←─ outbox ←─────────────────────────────┘

The writer also keeps the calls' time: an answer that comes too late finds its call refused.
"""

import heapq
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future
from typing import Any, Optional

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from hookloop import status
from hookloop.errors import InvalidRequest, Unimplemented, TriggerError
from hookloop.service import Route, display_name, objects_by_slot
from hookloop.session import Cancelled, Machine, ProtocolError, VersionMismatch, Work
from hookloop.session.observed import ObservedSet
from hookloop.stream.v1 import stream_pb2

# How long a hook that is about to stop waits, in seconds and without work, for calls that were sent before the engine heard of it.
LINGER = 1.0

log = logging.getLogger("hookloop")


class Conversation:
    """One stream with an engine. Methods may be called from any thread."""

    def __init__(self, machine: Machine, routes: Mapping[str, Route], pool: Executor):
        self._routes, self._pool = routes, pool
        self._changed = threading.Condition()  # guards all below, and what the writer waits for
        self._machine = machine
        self._deadlines: list[tuple[float, int]] = []  # a heap of times and call ids
        self._running: dict[int, tuple[Work, Future]] = {}
        self._triggers: dict[int, Future] = {}
        self._last_trigger = 0  # triggers so far
        self._stopping = False  # whether no more calls are wanted
        self._linger_until: Optional[float] = None  # when a hook that is stopping has waited long enough
        self.reason: Optional[status.Failure] = None  # why the hook has ended the stream, where that is not its proper end

    def receive(self, message: Any) -> None:
        """Takes a message of the engine in. ProtocolError ends the conversation."""
        with self._changed:
            try:
                received = self._machine.receive(message)
            except ProtocolError as error:
                code = status.UNIMPLEMENTED if isinstance(error, VersionMismatch) else status.INVALID_ARGUMENT
                self._close(status.Failure(code, str(error)))
                raise
            if isinstance(received, Work):
                self._start(received)
            elif isinstance(received, Cancelled):
                self._abandon(received.call_id, "the engine has cancelled it")
            elif isinstance(received, stream_pb2.Triggered):
                self._triggered(received)
            elif isinstance(received, stream_pb2.Status):
                log.warning("the engine ends the stream: %s (code %d)", received.message, received.code)
            self._changed.notify_all()

    def outgoing(self) -> Iterator[Any]:
        """The messages to send. It waits for them, and ends when the conversation does."""
        while batch := self._next_batch():
            yield from batch

    @property
    def open(self) -> bool:
        """Whether the session is open."""
        with self._changed:
            return self._machine.open

    def trigger(self, trigger: Any) -> Future:
        """Asks for syncs. The future has the number of parents, TriggerError, or ConnectionError where the session is not open."""
        future: Future = Future()
        with self._changed:
            if not self._machine.open:
                future.set_exception(ConnectionError("no stream is open"))
                return future
            self._last_trigger += 1
            self._triggers[self._last_trigger] = future
            copy = stream_pb2.Trigger()
            copy.CopyFrom(trigger)
            copy.id = self._last_trigger
            self._machine.trigger(copy)
            self._changed.notify_all()
        return future

    def drain(self) -> None:
        """Asks for no more calls; the conversation ends when those under way are answered."""
        with self._changed:
            if not self._stopping:
                self._stopping = True
                self._machine.drain()
                self._changed.notify_all()

    def finish(self) -> None:
        """Says that nothing more comes from the engine, which still reads: what is under way is answered."""
        with self._changed:
            self._machine.draining = True
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the conversation at once: the stream is gone."""
        with self._changed:
            self._close()

    def revoke(self) -> None:
        """Ends the conversation at once: another stream has its session, and its state."""
        with self._changed:
            self._close(status.Failure(status.ABORTED, "the engine has opened the session on another stream"))

    def _start(self, work: Work) -> None:
        if work.timeout is not None:
            heapq.heappush(self._deadlines, (time.monotonic() + work.timeout, work.call_id))
        try:
            self._running[work.call_id] = work, self._pool.submit(self._run, work)
        except RuntimeError:  # the pool takes no more
            self._refuse(work.call_id, status.Failure(status.UNAVAILABLE, "the hook is stopping"))

    def _run(self, work: Work) -> None:
        """Answers a call, in a thread of the pool."""
        with self._changed:
            if not self._machine.is_open(work.call_id):
                return
        failed: Optional[BaseException] = None
        try:
            answer = _call_route(self._routes, work)
        except (Exception, SystemExit) as error:  # whatever a hook's function raises is an error of this call only
            answer, failed = status.failure(error), error
        with self._changed:
            if failed is not None and self._machine.is_open(work.call_id):  # else it is logged already
                status.report(failed, work.method, _parent_of(work))
            self._dequeue(work.call_id)
            if isinstance(answer, status.Failure):
                self._refuse(work.call_id, answer)
            else:
                self._machine.answer(work.call_id, *answer)
            self._changed.notify_all()

    def _refuse(self, call_id: int, failed: status.Failure) -> None:
        details = [failed.detail] if failed.detail is not None else []
        self._machine.refuse(call_id, stream_pb2.Status(
            code=failed.code,
            message=failed.message,
            details=[any_pb2.Any(type_url=detail.type_url, value=detail.value) for detail in details],
        ))

    def _dequeue(self, call_id: int) -> None:
        """Takes a call out of the queue where it has not begun."""
        found = self._running.pop(call_id, None)
        if found is not None:
            found[1].cancel()

    def _abandon(self, call_id: int, why: str) -> None:
        """Logs a call without an answer, and takes it out of the queue."""
        found = self._running.get(call_id)
        if found is not None:
            status.report_abandoned(found[0].method, _parent_of(found[0]), why)
        self._dequeue(call_id)

    def _triggered(self, received: Any) -> None:
        future = self._triggers.pop(received.id, None)
        if future is None:
            return
        if received.HasField("error"):
            future.set_exception(TriggerError(received.error.code, received.error.message))
        else:
            future.set_result(received.parents)

    def _next_batch(self) -> list[Any]:
        """Waits for messages to send; none at the end."""
        with self._changed:
            while True:
                now = time.monotonic()
                self._expire(now)
                batch = self._machine.take()
                if batch or self._has_ended(now):
                    return batch
                self._changed.wait(self._wait_time(now))

    def _expire(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            _, call_id = heapq.heappop(self._deadlines)
            if self._machine.is_open(call_id):
                text = "the hook's function took longer than the call's timeout"
                self._refuse(call_id, status.Failure(status.DEADLINE_EXCEEDED, text))
                self._abandon(call_id, text)

    def _has_ended(self, now: float) -> bool:
        if self._machine.closed:
            return True
        if not self._machine.idle:
            self._linger_until = None
            return False
        if self._stopping and self._linger_until is None:
            self._linger_until = now + LINGER
        return self._machine.draining or (self._linger_until is not None and self._linger_until <= now)

    def _wait_time(self, now: float) -> Optional[float]:
        """How long to wait at most, in seconds; None: until something happens."""
        times = [at for at, _ in self._deadlines[:1]]
        if self._linger_until is not None:
            times.append(self._linger_until)
        return min(max(0.0, min(times) - now), threading.TIMEOUT_MAX) if times else None

    def _close(self, reason: Optional[status.Failure] = None) -> None:
        if not self._machine.closed:
            self.reason = reason
        self._machine.close()
        for call_id in list(self._running):
            self._dequeue(call_id)
        for future in self._triggers.values():
            future.set_exception(ConnectionError("the stream ended before the engine received what became of the trigger"))
        self._triggers = {}
        self._deadlines = []
        self._changed.notify_all()


def _parent_of(work: Work) -> str:
    return display_name(next(iter(work.objects.view(1)), None))


def _call_route(routes: Mapping[str, Route], work: Work) -> tuple[bytes, list[bytes]]:
    """Puts work to the function that answers it: the response and its desired objects, serialized."""
    route = routes.get(work.method)
    if route is None:
        raise Unimplemented(f"this hook does not serve {work.method}")
    try:
        message = route.shape.message(route.method, "Request").FromString(work.request)
    except DecodeError as error:
        raise InvalidRequest(f"the request of {work.method} cannot be read: {error}") from error
    _check_places(route, message, work.objects)
    response, desired = route.call(message, work.objects.view, work.trace.items())
    return response.SerializeToString(), [one.SerializeToString() for one in desired]


def _check_places(route: Route, message: Any, objects: ObservedSet) -> None:
    """Refuses a request that holds objects itself, or whose set has objects that it has no place for."""
    places = objects_by_slot(route.shape, route.method, message)
    if any(places.values()):
        raise InvalidRequest(f"the request of {route.path} holds objects, expected them in the slots")
    for slot in objects.slots:
        if slot not in places:
            raise InvalidRequest(f"the request of {route.path} has no place for the objects in slot {slot}")
