"""The hook's side of a stream's state machine (package hookloop.stream.v1 of proto).

It assembles whole requests from changes, and sends only the changes of a response. It has no
socket, no thread and no clock, never waits, and does not know the content of requests. Messages of
the engine go in; messages to the engine and work come out. Its state may outlive a stream, so that
after a reconnect only differences travel again.

    receive ─→ Machine ─→ Work
    take ←─ outbox ←─ answer, refuse ←─┘

Loss is safe: digests of the content identify sets and lists, and the hook requests what it does not
have (Nack). Nothing here is safe for concurrent use; the caller holds a lock. Unit tests play the
engine's side, with wrong bases, unknown hashes, fragments and random histories.
"""

from hookloop.session.machine import Cancelled, Limits, Machine, Work
from hookloop.session.state import State
from hookloop.session.wire import ProtocolError, VersionMismatch

__all__ = ["Cancelled", "Limits", "Machine", "ProtocolError", "State", "VersionMismatch", "Work"]
