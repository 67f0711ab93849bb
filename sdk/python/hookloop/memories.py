"""Keeps what streams leave behind, for those that come after them with the same session id."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from hookloop.session import Memory
from hookloop.session.memory import STATE_BYTES

MOST = 64  # memories without a stream


class Memories:
    """Memories by session id. One that has a stream is that stream's alone: a second stream with its id ends the first, of which the
    engine has heard the end before the hook. Of those without a stream the ones left last stay, within bounds."""

    def __init__(self, limit: int = STATE_BYTES):
        self._limit = limit
        self._lock = threading.Lock()  # guards all below
        self._used: dict[str, tuple[Memory, Callable[[], None]]] = {}
        self._left: OrderedDict[str, Memory] = OrderedDict()

    def claim(self, session_id: str, surrender: Callable[[], None]) -> Memory:
        """The memory for a stream's session id. surrender ends that stream; it is called when another one claims the same.
        A stream without an id has a memory of its own."""
        if not session_id:
            return Memory(self._limit)
        with self._lock:
            used = self._used.pop(session_id, None)
            if used is not None:
                memory, surrender_other = used
                surrender_other()
            else:
                memory = self._left.pop(session_id, None) or Memory(self._limit)
            self._used[session_id] = memory, surrender
            return memory

    def leave(self, surrender: Callable[[], None]) -> None:
        """Says that a stream, named as in claim, has ended."""
        with self._lock:
            for session_id, (memory, of) in list(self._used.items()):
                if of == surrender:
                    del self._used[session_id]
                    self._left[session_id] = memory
            while len(self._left) > MOST or sum(memory.bytes for memory in self._left.values()) > self._limit:
                self._left.popitem(last=False)

    def left(self, session_id: str) -> bool:
        """Whether there is a memory that waits for a stream."""
        with self._lock:
            return session_id in self._left
