"""The exceptions of the package: those that a hook's function raises, and those that it meets."""

MAX_WAIT_SECONDS = 10 * 365 * 24 * 3600  # the longest wait that a hook may request: ten years


def sendable(text: str) -> str:
    """Returns the text without lone surrogates, which protobuf cannot encode."""
    return text.encode(errors="replace").decode()


# The longest text of an error in bytes. A unary call carries the text in a header, and a header
# that is too large ends the call with another error. Hookloop shows 256 bytes.
MAX_TEXT_BYTES = 1024


def shortened(text: str) -> str:
    """Returns the sendable beginning of a text, at most MAX_TEXT_BYTES and an ellipsis."""
    encoded = sendable(text).encode()
    if len(encoded) <= MAX_TEXT_BYTES:
        return encoded.decode()
    return encoded[:MAX_TEXT_BYTES].decode(errors="ignore") + "…"


class Reject(Exception):
    """Rejects the parent in its present state.

    Hookloop reports the reason (one word in CamelCase) and the message on the parent, and calls the
    hook again when something changes. After any other exception it retries with backoff.
    """

    def __init__(self, reason: str, message: str):
        if not isinstance(reason, str) or not reason:
            raise ValueError(f"Reject: reason is {reason!r}, expected a word")
        super().__init__(message)
        self.reason = sendable(reason)


class RetryAfter(Exception):
    """Requests the same call again after so many seconds, without backoff."""

    def __init__(self, seconds: float, message: str):
        if not 0 <= seconds <= MAX_WAIT_SECONDS:
            expected = f"0 or more, up to {MAX_WAIT_SECONDS}"
            raise ValueError(f"RetryAfter: seconds is {seconds}, expected {expected}")
        super().__init__(message)
        self.seconds = seconds


class RelatedUnknown(Exception):
    """Hookloop could not read a group of related objects, so the group may not be empty."""


class NotServed(RelatedUnknown):
    """The API server does not serve the resource of a group of related objects."""


class InvalidResponse(Exception):
    """A function returned an invalid response. The message names the item and the fault."""


class InvalidRequest(Exception):
    """A request cannot be decoded."""


class NotFound(Exception):
    """The server does not have the hook that a request names."""


class Unimplemented(Exception):
    """The hook has no function for a request."""


class TriggerError(Exception):
    """Hookloop refused a trigger. code is the number of the gRPC status code."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code
