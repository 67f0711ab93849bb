"""Computes hashes and digests, and cuts messages into fragments."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from hookloop.stream.v1 import stream_pb2

HASH_BYTES = 16
FRAGMENT_BYTES = 1 << 20  # of data in a fragment; a message of at most this size is not split
# The digest of an empty set or list, and the hash before the first item of a list.
EMPTY_DIGEST = bytes(HASH_BYTES)
_MODULUS = 1 << 128


class ProtocolError(Exception):
    """Is raised if the engine violated the protocol. The stream cannot be used any longer."""


class VersionMismatch(ProtocolError):
    """Is raised if engine and hook have no protocol version in common. Unary calls may still work.
    """


def field_bytes(size: int) -> int:
    """Returns how many bytes a message takes as a field in another one: a tag of one byte, the
    length, the content.
    """
    return 1 + max(1, (size.bit_length() + 6) // 7) + size


def hash_of(data: bytes) -> bytes:
    """Returns a hash that identifies content: the first bytes of its SHA-256."""
    return hashlib.sha256(data).digest()[:HASH_BYTES]


def plus(digest: bytes, part: bytes) -> bytes:
    """Adds a part to a digest."""
    return _bytes(_number(digest) + _number(part))


def minus(digest: bytes, part: bytes) -> bytes:
    """Removes a part from a digest."""
    return _bytes(_number(digest) - _number(part))


def total(parts: Iterable[bytes]) -> bytes:
    """Returns the digest of parts."""
    return _bytes(sum(map(_number, parts)))


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _bytes(number: int) -> bytes:
    return (number % _MODULUS).to_bytes(HASH_BYTES, "little")


def fragments(message: Any) -> Iterator[Any]:
    """Yields a HookMessage, or its fragments if it is too large for one message."""
    size = message.ByteSize()
    if size <= FRAGMENT_BYTES:
        yield message
        return
    data = message.SerializeToString()
    for index, start in enumerate(range(0, size, FRAGMENT_BYTES)):
        part = data[start : start + FRAGMENT_BYTES]
        fragment = stream_pb2.Fragment(index=index, total_bytes=size, data=part)
        yield stream_pb2.HookMessage(fragment=fragment)


class Assembler:
    """Assembles a message from fragments. It allocates memory for data that has arrived, not for
    the announced size.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._total, self._next, self._data = 0, 0, bytearray()

    @property
    def busy(self) -> bool:
        """Whether a message is incomplete. Then only its next fragment may follow."""
        return self._total > 0

    def add(self, fragment: Any) -> Optional[bytes]:
        """Adds a fragment. It returns the whole message after the last one, and None before."""
        whole = self._total or fragment.total_bytes
        room = min(FRAGMENT_BYTES, whole - len(self._data))
        if whole > self._limit:
            text = f"a message of {whole} bytes is larger than the maximum of {self._limit}"
            raise ProtocolError(text)
        if fragment.index != self._next or fragment.total_bytes != whole:
            got = f"fragment {fragment.index} of {fragment.total_bytes} bytes"
            raise ProtocolError(f"{got}, expected fragment {self._next} of {whole} bytes")
        if not 0 < len(fragment.data) <= room:
            got = f"fragment {self._next} has {len(fragment.data)} bytes"
            raise ProtocolError(f"{got}, expected 1 to {room}")
        self._total, self._next = whole, self._next + 1
        self._data += fragment.data
        if len(self._data) < whole:
            return None
        message = bytes(self._data)
        self._total, self._next, self._data = 0, 0, bytearray()
        return message
