"""The state machine of a stream (package hookloop.stream.v1 of proto), the hook's side: what changed is put together to whole questions,
and of an answer only what changed is sent.

It is pure: it knows no socket, no thread and no clock, never waits, and does not know what questions are about. Messages of the engine go
in; messages to the engine and work come out. Its state may outlive a stream, so that after a reconnect only differences travel again.

    receive ─→ Machine ─→ Work
    take ←─ outbox ←─ answer, refuse ←─┘

Loss is safe: sets and lists are named by digests of their content, and what the hook does not hold it asks for (Nack). Nothing here may
be used concurrently; a caller has a lock. Unit tests speak the engine's half, with wrong bases, unknown hashes, fragments and random
histories.
"""

from hookloop.session.machine import Cancelled, Limits, Machine, Work
from hookloop.session.state import State
from hookloop.session.wire import ProtocolError, VersionMismatch

__all__ = ["Cancelled", "Limits", "Machine", "State", "ProtocolError", "VersionMismatch", "Work"]
