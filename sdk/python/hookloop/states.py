"""The states of sessions, which the next stream with the same session ID takes over."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from hookloop.session import State
from hookloop.session.state import MAX_STATE_BYTES

MAX_IDLE = 64  # states without a stream


class States:
    """Keeps states by session ID.

    One stream at a time uses a state. A second stream with the same ID revokes the first, because
    the engine noticed the end of the first stream before the hook did. If the idle states are more
    than MAX_IDLE, or larger than limit bytes together, the least recently used ones are dropped.
    Methods may be called from any thread.
    """

    def __init__(self, limit: int = MAX_STATE_BYTES):
        self._limit = limit
        self._lock = threading.Lock()  # guards the fields below
        self._active: dict[str, tuple[State, Callable[[], None]]] = {}
        self._idle: OrderedDict[str, State] = OrderedDict()

    def acquire(self, session_id: str, revoke: Callable[[], None]) -> State:
        """Returns the state for a stream. revoke ends the stream; States calls it if another stream
        acquires the same ID. A stream without an ID has a state of its own."""
        if not session_id:
            return State(self._limit)
        with self._lock:
            active = self._active.pop(session_id, None)
            if active is not None:
                state, revoke_other = active
                revoke_other()
            elif session_id in self._idle:
                state = self._idle.pop(session_id)
            else:
                state = State(self._limit)
            self._active[session_id] = state, revoke
            return state

    def release(self, revoke: Callable[[], None]) -> None:
        """Makes the state of a stream idle. revoke identifies the stream as in acquire."""
        with self._lock:
            for session_id, (state, owner) in list(self._active.items()):
                if owner == revoke:
                    del self._active[session_id]
                    self._idle[session_id] = state
            while len(self._idle) > MAX_IDLE or self._idle_bytes() > self._limit:
                self._idle.popitem(last=False)

    def has_idle(self, session_id: str) -> bool:
        """Reports whether an idle state has this session ID."""
        with self._lock:
            return session_id in self._idle

    def _idle_bytes(self) -> int:
        return sum(state.bytes for state in self._idle.values())
