"""Statistics about the SDK's caches."""

import threading
import weakref
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class CacheStats:
    """Describes a cache in this process, over all servers and attachments. The cache "sessions"
    holds the objects and last responses that stream sessions remember.
    """

    cache: str
    bytes: int  # approximate memory now
    entries: int  # parents now
    hits: int  # calls about a parent that found an entry, since the start of the process
    misses: int  # calls that did not


class Cache(Protocol):
    """A cache whose size can be read."""

    bytes: int

    @property
    def entries(self) -> int:
        """How many entries the cache holds."""


class Meter:
    """Adds up the caches of one kind while they are in use. Methods may be called from any thread.
    """

    def __init__(self, name: str):
        self._name = name
        self._lock = threading.Lock()  # guards the fields below
        self._caches: "weakref.WeakSet[Cache]" = weakref.WeakSet()
        self._hits = self._misses = 0

    def watch(self, cache: Cache) -> None:
        """Adds a cache."""
        with self._lock:
            self._caches.add(cache)

    def looked(self, found: bool) -> None:
        """Counts a lookup."""
        with self._lock:
            self._hits += found
            self._misses += not found

    def stats(self) -> CacheStats:
        """Returns the statistics as of now."""
        with self._lock:
            caches, hits, misses = list(self._caches), self._hits, self._misses
        return CacheStats(
            self._name,
            sum(cache.bytes for cache in caches),
            sum(cache.entries for cache in caches),
            hits,
            misses,
        )


SESSIONS = Meter("sessions")


def all_cache_stats() -> list[CacheStats]:
    """Returns statistics about each cache as of now. It may be called from any thread."""
    return [SESSIONS.stats()]
