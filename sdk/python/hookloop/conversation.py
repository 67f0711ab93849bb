"""Runs a session.Machine. Threads and clocks are used here and nowhere else in a stream.

It does not know the connection: whoever owns the connection passes messages in and sends messages
out.

    reader's thread ─ receive ─→ Machine ─→ Work ─→ pool: Route.call ─→ response
    writer's thread ←─ outgoing ←─ outbox ←────────────────────────────────┘

The writer also watches the deadlines: when a call times out, it answers the call and drops the
response that comes later.
"""

import heapq
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future
from typing import Any, Optional, Union

from google.protobuf.message import DecodeError

from hookloop import status
from hookloop.errors import InvalidRequest, TriggerError, Unimplemented
from hookloop.rpc_status import Status
from hookloop.service import Route, display_name, objects_by_slot
from hookloop.session import Cancelled, Machine, ProtocolError, VersionMismatch, Work
from hookloop.session.observed import ObservedSet
from hookloop.stream.v1 import stream_pb2
from hookloop.triggers import Trigger, trigger_message

# How many seconds a draining hook waits without work, for calls that were sent before the engine
# received the drain.
LINGER = 1.0

log = logging.getLogger("hookloop")


class Conversation:
    """Handles one stream with an engine. Methods may be called from any thread."""

    def __init__(self, machine: Machine, routes: Mapping[str, Route], pool: Executor):
        self._routes, self._pool = routes, pool
        self._changed = threading.Condition()  # guards the fields below; the writer waits for it
        self._machine = machine
        self._deadlines: list[tuple[float, int]] = []  # a heap of times and call IDs
        self._running: dict[int, tuple[Work, "Future[None]"]] = {}
        self._triggers: dict[int, "Future[int]"] = {}
        self._last_trigger = 0
        self._called = False
        self._stopping = False  # whether the hook requests no more calls
        self._linger_until: Optional[float] = None
        # The reason if the hook has ended the stream because of an error, or a second stream.
        self.reason: Optional[status.Failure] = None

    def receive(self, message: Any) -> None:
        """Handles a message from the engine. A ProtocolError ends the conversation."""
        with self._changed:
            try:
                received = self._machine.receive(message)
            except ProtocolError as error:
                mismatch = isinstance(error, VersionMismatch)
                code = status.UNIMPLEMENTED if mismatch else status.INVALID_ARGUMENT
                self._close(status.Failure(code, str(error)))
                raise
            if isinstance(received, Work):
                self._called = True
                self._start(received)
            elif isinstance(received, Cancelled):
                self._abandon(received.call_id, "the engine has cancelled it")
            elif isinstance(received, stream_pb2.TriggerResult):
                self._triggered(received)
            elif isinstance(received, stream_pb2.GoAway):
                text = "the engine ends the stream: %s (code %d)"
                log.warning(text, received.status.message, received.status.code)
            self._changed.notify_all()

    def outgoing(self) -> Iterator[Any]:
        """Yields messages to send. It waits for them, and ends when the conversation ends."""
        while batch := self._next_batch():
            yield from batch

    @property
    def open(self) -> bool:
        """Whether the session is open."""
        with self._changed:
            return self._machine.open

    @property
    def called(self) -> bool:
        """Whether the engine has called a hook."""
        with self._changed:
            return self._called

    def trigger(self, request: Trigger) -> "Future[int]":
        """Asks Hookloop for syncs. The future returns how many parents will be synced. It raises
        TriggerError, or ConnectionError if the session is not open.
        """
        future: "Future[int]" = Future()
        with self._changed:
            if not self._machine.open:
                future.set_exception(ConnectionError("no stream is open"))
                return future
            self._last_trigger += 1
            self._triggers[self._last_trigger] = future
            self._machine.trigger(trigger_message(request, self._last_trigger))
            self._changed.notify_all()
        return future

    def drain(self) -> None:
        """Asks for no more calls. The conversation ends when the running ones are answered."""
        with self._changed:
            if not self._stopping:
                self._stopping = True
                self._machine.drain()
                self._changed.notify_all()

    def finish(self) -> None:
        """Is called when the engine sends no more messages but still reads. Running calls are
        answered.
        """
        with self._changed:
            self._machine.draining = True
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the conversation at once, because the stream is lost."""
        with self._changed:
            self._close()

    def revoke(self) -> None:
        """Ends the conversation at once, because another stream uses the session and its state now.
        """
        text = "the engine has opened the session on another stream"
        with self._changed:
            self._close(status.Failure(status.ABORTED, text))

    def _start(self, work: Work) -> None:
        if work.timeout is not None:
            heapq.heappush(self._deadlines, (time.monotonic() + work.timeout, work.call_id))
        try:
            self._running[work.call_id] = work, self._pool.submit(self._run, work)
        except RuntimeError:  # the pool is shut down
            text = "the hook is stopping"
            self._refuse(work.call_id, status.Failure(status.UNAVAILABLE, text))

    def _run(self, work: Work) -> None:
        """Answers a call in a thread of the pool."""
        with self._changed:
            if not self._machine.is_open(work.call_id):
                return
        failed: Optional[BaseException] = None
        result: Union[tuple[bytes, list[bytes]], status.Failure]
        try:
            result = _call_route(self._routes, work)
        except (Exception, SystemExit) as error:  # an exception of a function ends only its call
            result, failed = status.failure(error), error
        with self._changed:
            # The log already has a call that is no longer open.
            if failed is not None and self._machine.is_open(work.call_id):
                status.report(failed, work.method, _parent_of(work))
            self._dequeue(work.call_id)
            if isinstance(result, status.Failure):
                self._refuse(work.call_id, result)
            else:
                self._machine.answer(work.call_id, *result)
            self._changed.notify_all()

    def _refuse(self, call_id: int, failed: status.Failure) -> None:
        details = [] if failed.detail is None else [failed.detail]
        message = Status(code=failed.code, message=failed.message, details=details)
        self._machine.refuse(call_id, message)

    def _dequeue(self, call_id: int) -> None:
        """Removes a call from the pool's queue if its function has not started."""
        found = self._running.pop(call_id, None)
        if found is not None:
            found[1].cancel()

    def _abandon(self, call_id: int, reason: str) -> None:
        """Logs that a call got no response, and removes it from the queue."""
        found = self._running.get(call_id)
        if found is not None:
            status.report_abandoned(found[0].method, _parent_of(found[0]), reason)
        self._dequeue(call_id)

    def _triggered(self, message: Any) -> None:
        future = self._triggers.pop(message.id, None)
        if future is None:
            return
        if message.HasField("error"):
            future.set_exception(TriggerError(message.error.code, message.error.message))
        else:
            future.set_result(message.parents)

    def _next_batch(self) -> list[Any]:
        """Waits for messages to send. The list is empty when the conversation has ended."""
        with self._changed:
            while True:
                now = time.monotonic()
                self._expire(now)
                batch = self._machine.take()
                if batch or self._has_ended(now):
                    return batch
                self._changed.wait(self._wait_time(now))

    def _expire(self, now: float) -> None:
        """Answers calls that have timed out."""
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
        if self._machine.draining:
            return True
        return self._linger_until is not None and self._linger_until <= now

    def _wait_time(self, now: float) -> Optional[float]:
        """Returns how many seconds to wait at most; None means until something changes."""
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
            text = "the stream ended before the engine answered the trigger"
            future.set_exception(ConnectionError(text))
        self._triggers = {}
        self._deadlines = []
        self._changed.notify_all()


def _parent_of(work: Work) -> str:
    return display_name(next(iter(work.objects.view(1)), None))


def _call_route(routes: Mapping[str, Route], work: Work) -> tuple[bytes, list[bytes]]:
    """Calls the function for the work. It returns the encoded response and its encoded desired
    objects.
    """
    route = routes.get(work.method)
    if route is None:
        raise Unimplemented(f"this hook does not serve {work.method}")
    try:
        message = route.shape.message(route.method, "Request").FromString(work.request)
    except DecodeError as error:
        raise InvalidRequest(f"the request of {work.method} cannot be read: {error}") from error
    _check_slots(route, message, work.objects)
    if message.HasField("meta"):
        message.meta.engine_version = work.engine
        message.meta.features.extend(work.features)
    response, desired = route.call(message, work.objects.view, work.trace.items())
    return response.SerializeToString(), [each.SerializeToString() for each in desired]


def _check_slots(route: Route, message: Any, objects: ObservedSet) -> None:
    """Checks that the request contains no objects itself, and that it has a place for each slot."""
    places = objects_by_slot(route.shape, route.method, message)
    if any(places.values()):
        text = f"the request of {route.path} holds objects, expected them in the slots"
        raise InvalidRequest(text)
    for slot in objects.slots:
        if slot not in places:
            text = f"the request of {route.path} has no place for the objects in slot {slot}"
            raise InvalidRequest(text)
