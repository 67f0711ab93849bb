"""Serves hooks over a stream that the hook opens to an engine's gateway.

Use it for hooks that an engine cannot reach: on a laptop, in another cluster, or behind NAT.
"""

import logging
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

import grpc

from hookloop import build, service
from hookloop.conversation import Conversation
from hookloop.gateway import Gateway, open_channel, open_stream
from hookloop.hooks import Hook
from hookloop.options import Options
from hookloop.pool import Pool
from hookloop.session import Limits, Machine, ProtocolError, State
from hookloop.states import States
from hookloop.stream.v1 import stream_pb2
from hookloop.triggers import CONTROLLER_KINDS, ControllerKind, Trigger, kind_name

# How many seconds a session should stay open before the backoff starts over, even if no call came.
# Otherwise a gateway that accepts each stream and soon ends it would be dialed in a tight loop.
STABLE_AFTER = 10.0
END_TIMEOUT = 5.0  # seconds that a gateway has to end a stream after the hook's last message
# Codes of refusals that will hardly change by themselves. The first one may still pass, for example
# if a token has expired or the engine has just started; after two in a row somebody has to act.
REFUSAL_CODES = (
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
)

log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Intercept:
    """Selects some parents of a running controller. The attached hook is called for them instead of
    the controller's own hook.

    A parent must match all of namespace, name and label_selector (in kubectl's syntax) that are
    set. A wrong value raises ValueError.
    """

    controller_kind: Union[
        ControllerKind, Literal["CompositeController", "DecoratorController", "MapController"]
    ]
    controller_name: str
    namespace: str = ""
    name: str = ""
    label_selector: str = ""

    def __post_init__(self) -> None:
        kind = kind_name(self.controller_kind)
        if kind not in CONTROLLER_KINDS or not self.controller_name:
            got = f"{kind}/{self.controller_name}"
            expected = " or ".join(f"{kind}/name" for kind in CONTROLLER_KINDS)
            raise ValueError(f'intercept: the controller is "{got}", expected {expected}')


@dataclass(frozen=True)
class Backoff:
    """Says how many seconds to wait between attempts to connect.

    The wait doubles after each failure, from initial up to maximum. It starts over after a session
    in which the engine called a hook, or that stayed open for 10 seconds. refused is the wait after
    two refusals in a row. Each wait is shortened at random by up to a half.
    """

    initial: float = 0.2
    maximum: float = 10.0
    refused: float = 30.0

    def delay(self, failures: int, refused: bool) -> float:
        """Returns the wait after this many failures in a row."""
        doubled = self.initial * float(2 ** min(failures, 30))
        longest = self.refused if refused else min(self.maximum, doubled)
        return longest * random.uniform(0.5, 1)


class Attachment:
    """Connects to a gateway and serves hooks as a worker or as an intercept.

    When the stream is lost, it opens another one and keeps the state. attach returns an Attachment
    that has already started.
    """

    def __init__(
        self,
        *hooks: Hook,
        gateway: Gateway,
        worker: str = "",
        intercept: Optional[Intercept] = None,
        options: Options = Options(),
        backoff: Backoff = Backoff(),
    ):
        if bool(worker) == (intercept is not None):
            raise ValueError("attach: expected either a worker or an intercept")
        self._routes = service.routes(hooks)
        self._gateway, self._worker, self._intercept = gateway, worker, intercept
        self._options, self._backoff = options, backoff
        self._limits = Limits(calls=options.threads)
        self._build_id = options.build_id or build.build_id(self._routes.values())
        self._functions = Pool(options.threads, "hookloop")
        self._states = States()
        self._session_id = ""  # of the previous stream; only the dialling thread uses it
        self._lock = threading.Condition()  # guards the fields below; wait_attached waits for it
        self._stopped = False
        self._grace_over = False
        self._attached = False
        self._attached_at = 0.0  # by the monotonic clock
        self._called = False  # whether the engine has called a hook over the last stream
        self._conversation: Optional[Conversation] = None
        self._call: Any = None
        self._thread = threading.Thread(target=self._dial, name="hookloop-attach", daemon=True)

    def start(self) -> None:
        """Starts to connect and returns at once."""
        self._thread.start()

    def wait_attached(self, timeout: Optional[float] = None) -> bool:
        """Waits until an engine has accepted the stream. It returns False if that does not happen
        in time.

        timeout is in seconds; None means no limit.
        """
        with self._lock:
            self._lock.wait_for(lambda: self._attached or self._stopped, timeout)
            return self._attached

    def trigger(self, request: Trigger = Trigger(), *, timeout: float = 30.0) -> int:
        """Asks Hookloop to sync parents, over the open stream, and returns how many it will sync.

        timeout is in seconds. TriggerError tells why Hookloop refused the trigger. If no stream is
        open, or if it ends meanwhile, ConnectionError is raised.
        """
        with self._lock:
            conversation = self._conversation if self._attached else None
        if conversation is None:
            raise ConnectionError("no stream is open")
        return conversation.trigger(request).result(timeout)

    def stop(self, grace_period: Optional[float] = None) -> None:
        """Stops accepting calls, and returns when the running ones are answered.

        grace_period limits the wait in seconds; None means the grace period in options.
        """
        with self._lock:
            self._stopped = True
            conversation = self._conversation
            self._lock.notify_all()
        if conversation is not None:
            conversation.drain()
        self._thread.join(self._options.grace_period if grace_period is None else grace_period)
        with self._lock:
            self._grace_over = True
            if self._call is not None:
                self._call.cancel()
        self._thread.join()
        self._functions.shutdown(wait=False, cancel_futures=True)

    def _dial(self) -> None:
        """Opens one stream after the other, in a thread of its own."""
        failures = refusals = 0  # consecutive
        while True:
            refused = self._serve()
            with self._lock:
                opened, self._attached = self._attached, False
                lasted = opened and time.monotonic() - self._attached_at >= STABLE_AFTER
                failures = 0 if lasted or self._called else failures + 1
                refusals = (0 if opened else refusals) + 1 if refused else 0
                delay = self._backoff.delay(failures, refused=refusals > 1)
                if self._lock.wait_for(lambda: self._stopped, delay):
                    return

    def _serve(self) -> bool:
        """Serves one stream. It returns True if the gateway refused it."""
        conversation = self._new_conversation()
        address = self._gateway.address
        try:
            with open_channel(self._gateway) as channel:
                self._converse(channel, conversation)
        except (OSError, ValueError) as error:  # a file that cannot be read or sent
            log.warning("cannot attach to %s: %s", address, error)
        except ProtocolError as error:
            log.error("%s sent what the protocol does not allow: %s", address, error)
        except grpc.RpcError as error:
            return self._log_end(error)
        finally:
            conversation.close()
            self._states.release(conversation.revoke)
            with self._lock:
                self._called = conversation.called
                self._conversation = self._call = None
        return False

    def _new_conversation(self) -> Conversation:
        resumed = self._session_id if self._states.has_idle(self._session_id) else ""
        attach = stream_pb2.Attach(
            worker=self._worker,
            session_id=resumed,
            intercept=_intercept_message(self._intercept) if self._intercept else None,
        )
        machine = Machine(
            lambda session_id: self._opened(session_id, conversation),
            self._limits,
            self._build_id,
            attach,
            service.implemented_methods(self._routes),
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
            arguments = (call, ended)
            threading.Thread(
                target=_cancel_late, args=arguments, name="hookloop-end", daemon=True
            ).start()

        call = open_stream(self._gateway, channel, outgoing())
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

    def _opened(self, session_id: str, conversation: Conversation) -> State:
        """Returns the state for a session that an engine has just accepted."""
        state = self._states.acquire(session_id, conversation.revoke)
        self._session_id = session_id
        with self._lock:
            self._attached = True
            self._attached_at = time.monotonic()
            self._lock.notify_all()
        log.info("attached to %s as %s", self._gateway.address, self._name())
        return state

    def _log_end(self, error: Any) -> bool:
        """Logs why a stream ended. It returns True if the gateway refused it."""
        with self._lock:
            if self._stopped:
                return False
        refused = error.code() in REFUSAL_CODES
        write, verb = (log.error, "refuses") if refused else (log.warning, "does not serve")
        code, details = error.code().name, error.details()
        write("%s %s %s: %s: %s", self._gateway.address, verb, self._name(), code, details)
        return refused

    def _name(self) -> str:
        if self._intercept is None:
            return f'worker "{self._worker}"'
        intercept = self._intercept
        kind = kind_name(intercept.controller_kind)
        return f"an intercept of {kind}/{intercept.controller_name}"


def _intercept_message(intercept: Intercept) -> Any:
    return stream_pb2.Intercept(
        controller_kind=kind_name(intercept.controller_kind),
        controller_name=intercept.controller_name,
        namespace=intercept.namespace,
        name=intercept.name,
        label_selector=intercept.label_selector,
    )


def _cancel_late(call: Any, ended: threading.Event) -> None:
    """Cancels the stream if the gateway does not end it after the hook's last message."""
    if not ended.wait(END_TIMEOUT):
        call.cancel()


def attach(
    *hooks: Hook,
    gateway: Gateway,
    worker: str = "",
    intercept: Optional[Intercept] = None,
    options: Options = Options(),
    backoff: Backoff = Backoff(),
) -> Attachment:
    """Connects to an engine's gateway and serves hooks, as a worker or as an intercept.

    It returns at once. Call Attachment.stop to end the service. Failed connections are logged and
    retried. A wrong argument raises ValueError or TypeError.
    """
    attachment = Attachment(
        *hooks,
        gateway=gateway,
        worker=worker,
        intercept=intercept,
        options=options,
        backoff=backoff,
    )
    attachment.start()
    return attachment
