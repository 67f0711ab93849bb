"""Exceptions that a hook's function raises, or that it should expect."""

MAX_WAIT_SECONDS = 10 * 365 * 24 * 3600  # the longest wait that a hook may request: ten years


def sendable(text: str) -> str:
    """Replaces lone surrogates, which protobuf cannot encode."""
    return text.encode(errors="replace").decode()


# Limits the text of an error in bytes. Unary calls send it in a header, and a header that is too
# large ends the call with another error. Hookloop shows only 256 bytes.
MAX_TEXT_BYTES = 1024


def shortened(text: str) -> str:
    """Returns the beginning of a text that can be sent: at most MAX_TEXT_BYTES and an ellipsis."""
    encoded = sendable(text).encode()
    if len(encoded) <= MAX_TEXT_BYTES:
        return encoded.decode()
    return encoded[:MAX_TEXT_BYTES].decode(errors="ignore") + "…"


class Reject(Exception):
    """Tells Hookloop to wait until something changes.

    Raise it if the hook cannot do anything for the parent as it is now. The parent shows the
    message and the reason, which should be one CamelCase word. Hookloop retries every other
    exception with backoff.
    """

    def __init__(self, reason: str, message: str):
        if not isinstance(reason, str) or not reason:
            raise ValueError(f"Reject: reason is {reason!r}, expected a word")
        super().__init__(message)
        self.reason = sendable(reason)


class RetryAfter(Exception):
    """Tells Hookloop to call the hook again after so many seconds, without backoff."""

    def __init__(self, seconds: float, message: str):
        if not 0 <= seconds <= MAX_WAIT_SECONDS:
            expected = f"0 or more, up to {MAX_WAIT_SECONDS}"
            raise ValueError(f"RetryAfter: seconds is {seconds}, expected {expected}")
        super().__init__(message)
        self.seconds = seconds


class RelatedUnknown(Exception):
    """Is raised if Hookloop could not read a group of related objects. Do not take it for an empty
    group.
    """


class NotServed(RelatedUnknown):
    """Is raised if the API server does not serve the resource of a related group."""


class InvalidResponse(Exception):
    """Is raised for an invalid response. The message names the item and what is wrong with it."""


class InvalidRequest(Exception):
    """Is raised for a request that cannot be decoded."""


class NotFound(Exception):
    """Is raised if a request names a hook that this server does not have."""


class Unimplemented(Exception):
    """Is raised if the hook has no function for a request."""


class TriggerError(Exception):
    """Is raised if Hookloop refused a trigger. code is the gRPC status code as a number."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code
