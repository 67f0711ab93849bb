"""Keeps the state of sessions, so that the next stream with the same session ID can continue with
it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable

from hookloop.session import State
from hookloop.session.state import MAX_STATE_BYTES

MAX_IDLE = 64  # states without a stream


class States:
    """Keeps states by session ID.

    Only one stream uses a state at a time. If a second stream opens with the same ID, it revokes
    the first: the engine has noticed the end of the first stream before the hook has. If there are
    more than MAX_IDLE idle states, or if they take more than limit bytes, the least recently used
    are dropped. Methods may be called from any thread.
    """

    def __init__(self, limit: int = MAX_STATE_BYTES):
        self._limit = limit
        self._lock = threading.Lock()  # guards the fields below
        self._active: dict[str, tuple[State, Callable[[], None]]] = {}
        self._idle: OrderedDict[str, State] = OrderedDict()

    def acquire(self, session_id: str, revoke: Callable[[], None]) -> State:
        """Returns the state for a stream. If another stream acquires the same ID, States calls
        revoke, which must end this stream. Without an ID, the state belongs to this stream alone.
        """
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
        """Makes a stream's state idle. revoke identifies the stream, as in acquire."""
        with self._lock:
            for session_id, (state, owner) in list(self._active.items()):
                if owner == revoke:
                    del self._active[session_id]
                    self._idle[session_id] = state
            while len(self._idle) > MAX_IDLE or self._idle_bytes() > self._limit:
                self._idle.popitem(last=False)

    def has_idle(self, session_id: str) -> bool:
        """Reports whether a state with this session ID is idle."""
        with self._lock:
            return session_id in self._idle

    def _idle_bytes(self) -> int:
        return sum(state.bytes for state in self._idle.values())
