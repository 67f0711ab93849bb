"""What travels: hashes, digests, and messages in fragments."""

import hashlib
from collections.abc import Iterator
from typing import Any, Optional

from hookloop.stream.v1 import stream_pb2

HASH_BYTES = 16
FRAGMENT_BYTES = 1 << 20  # of a fragment's data; a message that is not larger travels in one piece
EMPTY_DIGEST = bytes(HASH_BYTES)  # the digest of an empty set or list, and what stands before a list's first item
_MODULUS = 1 << 128


class ProtocolError(Exception):
    """The engine sent what the protocol does not allow. The stream is of no more use."""


class VersionMismatch(ProtocolError):
    """The engine speaks no version of the protocol that the hook speaks. It may ask by single calls."""


def field_bytes(size: int) -> int:
    """How many bytes a message of some size takes as a field of another, with a tag of one byte and its length."""
    return 1 + max(1, (size.bit_length() + 6) // 7) + size


def hash_of(data: bytes) -> bytes:
    """Names content: the beginning of its SHA-256."""
    return hashlib.sha256(data).digest()[:HASH_BYTES]


def plus(digest: bytes, part: bytes) -> bytes:
    """A digest with one more part."""
    return _bytes(_number(digest) + _number(part))


def minus(digest: bytes, part: bytes) -> bytes:
    """A digest without one of its parts."""
    return _bytes(_number(digest) - _number(part))


def total(parts: Iterator[bytes]) -> bytes:
    """The digest of parts."""
    return _bytes(sum(map(_number, parts)))


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _bytes(number: int) -> bytes:
    return (number % _MODULUS).to_bytes(HASH_BYTES, "little")


def fragments(message: Any) -> Iterator[Any]:
    """A HookMessage, or the fragments of one that is too large for one message."""
    size = message.ByteSize()
    if size <= FRAGMENT_BYTES:
        yield message
        return
    data = message.SerializeToString()
    for index, start in enumerate(range(0, size, FRAGMENT_BYTES)):
        part = stream_pb2.Fragment(index=index, total=size, data=data[start : start + FRAGMENT_BYTES])
        yield stream_pb2.HookMessage(fragment=part)


class Assembler:
    """Puts fragments together. State grows with the data that has come, not with what is said to be still to come."""

    def __init__(self, limit: int):
        self._limit = limit
        self._total, self._next, self._data = 0, 0, bytearray()

    @property
    def busy(self) -> bool:
        """Whether a message is incomplete, in which case nothing but its next fragment may come."""
        return self._total > 0

    def add(self, fragment: Any) -> Optional[bytes]:
        """The message, with its last fragment; None before that."""
        whole = self._total or fragment.total
        room = min(FRAGMENT_BYTES, whole - len(self._data))
        if whole > self._limit:
            raise ProtocolError(f"a message of {whole} bytes is larger than the maximum of {self._limit}")
        if fragment.index != self._next or fragment.total != whole:
            raise ProtocolError(
                f"fragment {fragment.index} of {fragment.total} bytes, expected fragment {self._next} of {whole} bytes"
            )
        if not 0 < len(fragment.data) <= room:
            raise ProtocolError(f"fragment {self._next} has {len(fragment.data)} bytes, expected 1 to {room}")
        self._total, self._next = whole, self._next + 1
        self._data += fragment.data
        if len(self._data) < whole:
            return None
        message = bytes(self._data)
        self._total, self._next, self._data = 0, 0, bytearray()
        return message
