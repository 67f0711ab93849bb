"""Turns what a function raises into the fields of a google.rpc.Status: the same ones for all transports."""

import logging
from dataclasses import dataclass
from typing import Any, Optional

from hookloop import wellknown
from hookloop.errors import InvalidResponse, InvalidRequest, Unimplemented, Reject, RetryAfter, sendable
from hookloop.response import duration

# Says whose reasons those in google.rpc.ErrorInfo are.
DOMAIN = "hookloop.hook.v1"
# The codes of google.rpc.Code that a hook uses.
INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = 3, 4, 8
FAILED_PRECONDITION, ABORTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 9, 10, 12, 13, 14

log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Failure:
    """A status. detail is a google.protobuf.Any, or None."""

    code: int
    message: str
    detail: Optional[Any] = None


def failure(error: BaseException) -> Failure:
    """The status of what a question ended with."""
    code, detail = _coded(error)
    return Failure(code, _text(error), detail)


def report(error: BaseException, method: str, parent: str) -> None:
    """Logs what is a fault of the hook's program, with the parent's name. Reject and RetryAfter are answers."""
    if isinstance(error, (InvalidResponse, InvalidRequest)):
        log.error("%s of %s failed: %s", method, parent, error)
    elif _coded(error)[0] == INTERNAL:
        log.error("%s of %s failed", method, parent, exc_info=error)


def report_abandoned(method: str, parent: str, why: str) -> None:
    """Logs a call that ended before its function had an answer."""
    log.warning("%s of %s was given up: %s", method, parent, why)


def _coded(error: BaseException) -> tuple[int, Optional[Any]]:
    if isinstance(error, Reject):
        return FAILED_PRECONDITION, _detail("ErrorInfo", wellknown.ErrorInfo(reason=error.reason, domain=DOMAIN))
    if isinstance(error, RetryAfter):
        wait = duration(error.seconds)
        delay = wellknown.Duration(seconds=wait.seconds, nanos=wait.nanos)
        return RESOURCE_EXHAUSTED, _detail("RetryInfo", wellknown.RetryInfo(retry_delay=delay))
    if isinstance(error, Unimplemented):
        return UNIMPLEMENTED, None
    return INTERNAL, None


def _detail(name: str, message: Any) -> Any:
    return wellknown.Any_(type_url=f"type.googleapis.com/google.rpc.{name}", value=message.SerializeToString())


def _text(error: BaseException) -> str:
    """What the engine shows: for exceptions of other packages with their type, without which some say little ("KeyError: 'spec'")."""
    own = isinstance(error, (InvalidResponse, InvalidRequest, Unimplemented, Reject, RetryAfter))
    return sendable(str(error) if own else f"{type(error).__name__}: {error}")
