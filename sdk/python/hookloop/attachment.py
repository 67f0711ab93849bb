"""Serves hooks by dialling in to an engine's gateway: from a laptop, from another cluster, from behind NAT."""

import logging
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import grpc

from hookloop import build, service
from hookloop.conversation import Conversation
from hookloop.gateway import Gateway
from hookloop.states import States
from hookloop.pool import Pool
from hookloop.session import Limits, Machine, ProtocolError
from hookloop.stream.v1 import stream_pb2
from hookloop.triggers import trigger_message

DEFAULT_THREADS = 32
END_TIMEOUT = 5.0  # seconds that a gateway may take to end a stream on which the hook has said all
DEFAULT_GRACE_PERIOD = 10.0  # seconds that calls under way may take once the attachment is told to stop
# With these codes a gateway says that a hook may not attach. One such answer may be the end of a token, or an engine that has just started;
# after a second one in a row, only people can change that.
REFUSAL_CODES = (
    grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED,
)

log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Intercept:
    """Some parents of a controller, which a hook takes over for as long as it is attached. controller is "CompositeController/name" or
    "DecoratorController/name"; namespace, name and labels (as kubectl takes a selector) must all match where they are set."""

    controller: str
    namespace: str = ""
    name: str = ""
    labels: str = ""

    def __post_init__(self) -> None:
        kind, slash, name = self.controller.partition("/")
        if kind not in ("CompositeController", "DecoratorController") or not slash or not name:
            raise ValueError(f'intercept: controller is "{self.controller}", expected CompositeController/name or DecoratorController/name')

    def message(self) -> Any:
        """The Intercept of the contract."""
        kind, _, controller = self.controller.partition("/")
        return stream_pb2.Intercept(
            controller_kind=kind, controller_name=controller, namespace=self.namespace, name=self.name, label_selector=self.labels
        )


@dataclass(frozen=True)
class Backoff:
    """How long to wait, in seconds, before dialling again: initial, twice as long each time, at maximum so long; refused where
    refusals follow each other. Each wait is shortened at random by up to a half, so that hooks do not come all at once."""

    initial: float = 0.2
    maximum: float = 10.0
    refused: float = 30.0

    def delay(self, failures: int, refused: bool) -> float:
        """The wait after so many failures in a row."""
        longest = self.refused if refused else min(self.maximum, self.initial * 2 ** min(failures, 30))
        return longest * random.uniform(0.5, 1)


class Attachment:
    """Hooks that serve a worker's questions, or those of an intercept, over a stream that they open, again after each loss. What was sent
    on one stream is kept for the next. attach makes one that has begun."""

    def __init__(
        self,
        *hooks: service.Hook,
        gateway: Gateway,
        worker: str = "",
        intercept: Optional[Intercept] = None,
        threads: int = DEFAULT_THREADS,
        build_id: str = "",
        backoff: Optional[Backoff] = None,
    ):
        if bool(worker) == (intercept is not None):
            raise ValueError("attach: expected either a worker or an intercept")
        self._routes = service.routes(hooks)
        self._gateway, self._worker, self._intercept, self._backoff = gateway, worker, intercept, backoff or Backoff()
        self._limits, self._build_id = Limits(calls=threads), build_id or build.build_id(self._routes.values())
        self._functions = Pool(threads, "hookloop")
        self._states = States()
        self._session_id = ""  # of the stream before; used by the dialling thread alone
        self._lock = threading.Condition()  # guards all below, and what wait_attached waits for
        self._stopped = False
        self._grace_over = False  # whether the grace period is over
        self._attached = False
        self._conversation: Optional[Conversation] = None
        self._call: Any = None
        self._thread = threading.Thread(target=self._dial, name="hookloop-attach", daemon=True)

    def start(self) -> None:
        """Begins to dial; it returns at once."""
        self._thread.start()

    def wait_attached(self, timeout: Optional[float] = None) -> bool:
        """Waits until an engine has accepted the stream, and says whether one has."""
        with self._lock:
            return self._lock.wait_for(lambda: self._attached or self._stopped, timeout) and self._attached

    def trigger(self, *, timeout: float = 30.0, **what: Any) -> int:
        """Asks for syncs over the open stream, with the arguments of hookloop.trigger, and returns how many parents will be synced.
        TriggerError says why none, and ConnectionError that no stream is open, or that it ended."""
        wanted = trigger_message(**what)
        with self._lock:
            conversation = self._conversation if self._attached else None
        if conversation is None:
            raise ConnectionError("no stream is open")
        return conversation.trigger(wanted).result(timeout)

    def stop(self, grace: float = DEFAULT_GRACE_PERIOD) -> None:
        """Asks for no more calls, and returns when those under way are answered, at the latest after the grace period in seconds."""
        with self._lock:
            self._stopped = True
            conversation = self._conversation
            self._lock.notify_all()
        if conversation is not None:
            conversation.drain()
        self._thread.join(grace)
        with self._lock:
            self._grace_over = True
            if self._call is not None:
                self._call.cancel()
        self._thread.join()
        self._functions.shutdown(wait=False, cancel_futures=True)

    def _dial(self) -> None:
        """The dialling thread."""
        failures = refusals = 0  # in a row, without an open session in between
        while True:
            refused = self._serve()
            with self._lock:
                opened, self._attached = self._attached, False
                failures = 0 if opened else failures + 1
                refusals = (0 if opened else refusals) + 1 if refused else 0
                wait = self._backoff.delay(failures, refused=refusals > 1)
                if self._lock.wait_for(lambda: self._stopped, wait):
                    return

    def _serve(self) -> bool:
        """One stream, from beginning to end; whether the gateway refused it."""
        conversation = self._new_conversation()
        try:
            with self._gateway.channel() as channel:
                self._converse(channel, conversation)
        except (OSError, ValueError) as error:  # files that cannot be read, or have what cannot be sent
            log.warning("cannot attach to %s: %s", self._gateway.address, error)
        except ProtocolError as error:
            log.error("%s sent what the protocol does not allow: %s", self._gateway.address, error)
        except grpc.RpcError as error:
            return self._log_end(error)
        finally:
            conversation.close()
            self._states.release(conversation.revoke)
            with self._lock:
                self._conversation = self._call = None
        return False

    def _new_conversation(self) -> Conversation:
        known = self._session_id if self._states.has_idle(self._session_id) else ""
        attach = stream_pb2.Attach(worker=self._worker, session_id=known, intercept=self._intercept and self._intercept.message())
        machine = Machine(
            lambda session_id: self._opened(session_id, conversation), self._limits, self._build_id, attach, service.implemented_methods(self._routes)
        )
        conversation = Conversation(machine, self._routes, self._functions)
        with self._lock:
            self._conversation = conversation
            stopped = self._stopped
        if stopped:
            conversation.drain()
        return conversation

    def _converse(self, channel: grpc.Channel, conversation: Conversation) -> None:
        ended = threading.Event()

        def outgoing() -> Iterator[Any]:
            yield from conversation.outgoing()
            threading.Thread(target=_cancel_late, args=(call, ended), name="hookloop-end", daemon=True).start()

        call = self._gateway.attach(channel, outgoing())
        with self._lock:
            self._call = call
            if self._grace_over:
                call.cancel()
        try:
            for message in call:
                conversation.receive(message)
        finally:
            ended.set()
            call.cancel()

    def _opened(self, session_id: str, conversation: Conversation) -> Any:
        """What is held for a session, which an engine has just accepted."""
        state = self._states.acquire(session_id, conversation.revoke)
        self._session_id = session_id
        with self._lock:
            self._attached = True
            self._lock.notify_all()
        log.info("attached to %s as %s", self._gateway.address, self._name())
        return state

    def _log_end(self, error: Any) -> bool:
        """Tells of the end of a stream, and whether it was a refusal."""
        with self._lock:
            if self._stopped:
                return False
        refused = error.code() in REFUSAL_CODES
        say, what = (log.error, "refuses") if refused else (log.warning, "does not serve")
        say("%s %s %s: %s: %s", self._gateway.address, what, self._name(), error.code().name, error.details())
        return refused

    def _name(self) -> str:
        return f'worker "{self._worker}"' if self._worker else f"an intercept of {self._intercept.controller}"


def _cancel_late(call: Any, ended: threading.Event) -> None:
    """Ends a call that the gateway does not, although the hook has said all."""
    if not ended.wait(END_TIMEOUT):
        call.cancel()


def attach(*hooks: service.Hook, **options: Any) -> Attachment:
    """Serves hooks over a stream to an engine's gateway. It returns at once; the options are Attachment's, and stop ends it."""
    attachment = Attachment(*hooks, **options)
    attachment.start()
    return attachment
