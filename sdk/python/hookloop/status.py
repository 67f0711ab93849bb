"""Turns exceptions into the fields of a google.rpc.Status, for all transports."""

import logging
from dataclasses import dataclass
from typing import Any, Optional

from google.protobuf import any_pb2

from hookloop import wellknown
from hookloop.errors import (
    InvalidRequest,
    InvalidResponse,
    NotFound,
    Reject,
    RetryAfter,
    Unimplemented,
    shortened,
)
from hookloop.response import duration

# The domain of the reasons in google.rpc.ErrorInfo.
DOMAIN = "hookloop.hook.v1"
# The codes of google.rpc.Code that a hook uses.
INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, RESOURCE_EXHAUSTED = 3, 4, 5, 8
FAILED_PRECONDITION, ABORTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 9, 10, 12, 13, 14

log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Failure:
    """Holds a status. detail is a google.protobuf.Any or None."""

    code: int
    message: str
    detail: Optional[Any] = None


def failure(error: BaseException) -> Failure:
    """Returns the status for an exception."""
    code, detail = _code_and_detail(error)
    return Failure(code, _text(error), detail)


def report(error: BaseException, method: str, parent: str) -> None:
    """Logs an exception unless it is Reject or RetryAfter, which are no fault of the program."""
    if isinstance(error, (InvalidResponse, InvalidRequest, NotFound)):
        log.error("%s of %s failed: %s", method, parent, error)
    elif _code_and_detail(error)[0] == INTERNAL:
        log.error("%s of %s failed", method, parent, exc_info=error)


def report_abandoned(method: str, parent: str, reason: str) -> None:
    """Logs that a call ended before its function returned."""
    log.warning("%s of %s was given up: %s", method, parent, reason)


def _code_and_detail(error: BaseException) -> tuple[int, Optional[Any]]:
    if isinstance(error, Reject):
        info = wellknown.ErrorInfo(reason=error.reason, domain=DOMAIN)
        return FAILED_PRECONDITION, _detail("ErrorInfo", info)
    if isinstance(error, RetryAfter):
        wait = duration(error.seconds)
        delay = wellknown.Duration(seconds=wait.seconds, nanos=wait.nanos)
        return RESOURCE_EXHAUSTED, _detail("RetryInfo", wellknown.RetryInfo(retry_delay=delay))
    if isinstance(error, Unimplemented):
        return UNIMPLEMENTED, None
    if isinstance(error, NotFound):
        return NOT_FOUND, None
    return INTERNAL, None


def _detail(name: str, message: Any) -> Any:
    type_url = f"type.googleapis.com/google.rpc.{name}"
    return any_pb2.Any(type_url=type_url, value=message.SerializeToString())


def _text(error: BaseException) -> str:
    """Returns the message that Hookloop shows. For exceptions of other packages it includes the
    type, because the message alone may not be clear ("KeyError: 'spec'").
    """
    own = isinstance(
        error,
        (InvalidResponse, InvalidRequest, NotFound, Unimplemented, Reject, RetryAfter),
    )
    return shortened(str(error) if own else f"{type(error).__name__}: {error}")
