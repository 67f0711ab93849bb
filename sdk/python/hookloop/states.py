"""Keeps what streams release behind, for those that come after them with the same session id."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from hookloop.session import State
from hookloop.session.state import MAX_STATE_BYTES

MAX_IDLE = 64  # states without a stream


class States:
    """States by session id. One that has a stream is that stream's alone: a second stream with its id ends the first, of which the
    engine has heard the end before the hook. Of those without a stream the ones has_idle last stay, within bounds."""

    def __init__(self, limit: int = MAX_STATE_BYTES):
        self._limit = limit
        self._lock = threading.Lock()  # guards all below
        self._active: dict[str, tuple[State, Callable[[], None]]] = {}
        self._idle: OrderedDict[str, State] = OrderedDict()

    def acquire(self, session_id: str, revoke: Callable[[], None]) -> State:
        """The state for a stream's session id. revoke ends that stream; it is called when another one claims the same.
        A stream without an id has a state of its own."""
        if not session_id:
            return State(self._limit)
        with self._lock:
            active = self._active.pop(session_id, None)
            if active is not None:
                state, revoke_other = active
                revoke_other()
            else:
                state = self._idle.pop(session_id, None) or State(self._limit)
            self._active[session_id] = state, revoke
            return state

    def release(self, revoke: Callable[[], None]) -> None:
        """Says that a stream, named as in acquire, has ended."""
        with self._lock:
            for session_id, (state, of) in list(self._active.items()):
                if of == revoke:
                    del self._active[session_id]
                    self._idle[session_id] = state
            while len(self._idle) > MAX_IDLE or sum(state.bytes for state in self._idle.values()) > self._limit:
                self._idle.popitem(last=False)

    def has_idle(self, session_id: str) -> bool:
        """Whether there is a state that waits for a stream."""
        with self._lock:
            return session_id in self._idle
