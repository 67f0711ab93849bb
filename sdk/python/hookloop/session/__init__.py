"""Implements the hook's side of a stream (proto package hookloop.stream.v1).

A Machine rebuilds whole requests from changes, and sends only the changes of a response. Pass each
message from the engine to receive, and send what take returns. What the machine remembers is kept
when the stream ends, so that after a reconnect only differences have to be sent.

    receive ─→ Machine ─→ Work
    take ←─ outbox ←─ answer, refuse ←─┘

Messages may be lost, because digests identify the content of sets and lists: the hook asks for what
it lacks (Nack). There is no socket, no thread and no clock here, and nothing waits. Nothing is safe
for concurrent use; the caller holds a lock.
"""

from hookloop.session.machine import Cancelled, Limits, Machine, Work
from hookloop.session.state import State
from hookloop.session.wire import ProtocolError, VersionMismatch

__all__ = ["Cancelled", "Limits", "Machine", "ProtocolError", "State", "VersionMismatch", "Work"]
