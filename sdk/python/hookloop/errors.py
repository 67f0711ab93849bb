"""The errors that a hook raises to say more than "it failed", and those that it meets."""

MAX_WAIT_SECONDS = 10 * 365 * 24 * 3600  # the longest wait that a hook may ask for, in seconds: ten years


def sendable(text: str) -> str:
    """A text without lone surrogates, which cannot be sent."""
    return text.encode(errors="replace").decode()


class Reject(Exception):
    """Refuses a parent as it is.

    The reason (one word in CamelCase) and the message are shown on the parent, which is asked about again when something changes. Every
    other exception is tried again with backoff.
    """

    def __init__(self, reason: str, message: str):
        if not isinstance(reason, str) or not reason:
            raise ValueError(f"Reject: reason is {reason!r}, expected a word")
        super().__init__(message)
        self.reason = sendable(reason)


class RetryAfter(Exception):
    """Asks for the same question again after some seconds, without backoff."""

    def __init__(self, seconds: float, message: str):
        if not 0 <= seconds <= MAX_WAIT_SECONDS:
            raise ValueError(f"RetryAfter: seconds is {seconds}, expected 0 or more, up to {MAX_WAIT_SECONDS}")
        super().__init__(message)
        self.seconds = seconds


class RelatedUnknown(Exception):
    """Related objects could not be read: whether there are any is not known."""


class NotServed(RelatedUnknown):
    """The API server does not serve the resource of related objects."""


class InvalidResponse(Exception):
    """A hook's function answered something that no answer can be. The message names the item and what was expected."""


class InvalidRequest(Exception):
    """A question cannot be read."""


class Unimplemented(Exception):
    """A question that nothing here answers."""


class TriggerError(Exception):
    """Hookloop refused a trigger. code is that of the gRPC status."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code
