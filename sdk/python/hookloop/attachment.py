"""Serves hooks over a stream that the hook opens to an engine's gateway.

It is for hooks that an engine cannot reach: on a laptop, in another cluster, behind NAT.
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

# Seconds that a session without a call must have been open for the backoff to start again. A
# gateway that accepts streams and soon ends them counts as one that rejects them.
STABLE_AFTER = 10.0
END_TIMEOUT = 5.0  # seconds that a gateway has to end a stream after the hook's last message
# Codes with which a gateway refuses a hook. One refusal may have a short-lived cause, such as an
# expired token or an engine that has just started. Two consecutive ones need a person.
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
    """Selects parents of a running controller that an attached hook serves in place of the
    controller's own hook.

    namespace, name and label_selector (in kubectl's syntax) must all match if they are set. A wrong
    value raises ValueError.
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
    """Delays between attempts to connect, in seconds.

    The delay doubles after each failure, from initial to maximum. It starts again after a session
    in which the engine called a hook, or of 10 seconds. refused is the delay after the second
    consecutive refusal. Each delay is shortened at random by up to a half.
    """

    initial: float = 0.2
    maximum: float = 10.0
    refused: float = 30.0

    def delay(self, failures: int, refused: bool) -> float:
        """Returns the delay after so many consecutive failures."""
        doubled = self.initial * float(2 ** min(failures, 30))
        longest = self.refused if refused else min(self.maximum, doubled)
        return longest * random.uniform(0.5, 1)


class Attachment:
    """Serves a worker's or an intercept's requests over a stream to a gateway.

    It opens the stream again after each loss, and keeps its state for the next stream. attach
    returns one that has started.
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
        """Starts to connect, and returns immediately."""
        self._thread.start()

    def wait_attached(self, timeout: Optional[float] = None) -> bool:
        """Waits until an engine has accepted the stream, and reports whether one has.

        timeout is in seconds; None waits without a limit.
        """
        with self._lock:
            self._lock.wait_for(lambda: self._attached or self._stopped, timeout)
            return self._attached

    def trigger(self, request: Trigger = Trigger(), *, timeout: float = 30.0) -> int:
        """Requests syncs over the open stream, and returns the number of parents to be synced.

        timeout is in seconds. TriggerError has the reason of a refusal; ConnectionError reports
        that no stream is open or that the stream ended.
        """
        with self._lock:
            conversation = self._conversation if self._attached else None
        if conversation is None:
            raise ConnectionError("no stream is open")
        return conversation.trigger(request).result(timeout)

    def stop(self, grace_period: Optional[float] = None) -> None:
        """Requests no more calls, and returns when the open ones are answered.

        grace_period is the maximum wait in seconds; None is that of the options.
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
        """Runs in the dialling thread."""
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
        """Serves one stream, and reports whether the gateway refused it."""
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
        """Returns the state of a session that an engine has just accepted."""
        state = self._states.acquire(session_id, conversation.revoke)
        self._session_id = session_id
        with self._lock:
            self._attached = True
            self._attached_at = time.monotonic()
            self._lock.notify_all()
        log.info("attached to %s as %s", self._gateway.address, self._name())
        return state

    def _log_end(self, error: Any) -> bool:
        """Logs the end of a stream, and reports whether it was a refusal."""
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
    """Cancels a call that the gateway does not end after the hook's last message."""
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
    """Serves hooks over a stream to an engine's gateway, as a worker or as an intercept.

    It returns immediately; Attachment.stop ends the service. A wrong argument raises ValueError or
    TypeError. Connections that fail are logged and retried.
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
