"""Describes a list of desired objects by how it differs from another one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from hookloop.session.wire import EMPTY_DIGEST, hash_of, total
from hookloop.stream.v1 import stream_pb2


@dataclass(frozen=True)
class Item:
    """A desired object, encoded."""

    raw: bytes
    hash: bytes


class DesiredList:
    """A list of desired objects. It is immutable."""

    def __init__(self, items: Sequence[Item] = ()):
        self.items = items
        self.size = sum(len(item.raw) for item in items)
        hashes = [item.hash for item in items]
        previous = [EMPTY_DIGEST, *hashes]
        self.digest = total(hash_of(before + own) for before, own in zip(previous, hashes))


def difference(
    before: Optional[DesiredList], raws: Sequence[bytes]
) -> tuple[DesiredList, list[Any]]:
    """Returns a list and the pieces that describe it: runs of the list before, and new items."""
    old = before.items if before else ()
    head = _common((item.raw, raw) for item, raw in zip(old, raws))
    most = min(len(old), len(raws)) - head
    tail = _common((item.raw, raw) for item, raw in zip(reversed(old), reversed(raws)))
    tail = min(most, tail)
    writer = _PieceWriter(old)
    writer.keep(0, head)
    writer.middle(head, len(old) - tail, raws[head : len(raws) - tail])
    writer.keep(len(old) - tail, tail)
    return DesiredList(writer.items), writer.pieces


def _common(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    """Returns how many pairs at the beginning are equal."""
    count = 0
    for old, new in pairs:
        if old != new:
            break
        count += 1
    return count


class _PieceWriter:
    """Writes pieces in order. A run that follows directly after the last one extends it."""

    def __init__(self, old: Sequence[Item]):
        self._old = old
        self.items: list[Item] = []
        self.pieces: list[Any] = []

    def keep(self, first: int, count: int) -> None:
        """Adds a run of the list before."""
        if count == 0:
            return
        self.items.extend(self._old[first : first + count])
        last = self.pieces[-1] if self.pieces else None
        follows = last is not None and last.HasField("keep")
        if last is not None and follows and last.keep.first + last.keep.count == first:
            last.keep.count += count
        else:
            self.pieces.append(stream_pb2.Piece(keep=stream_pb2.Run(first=first, count=count)))

    def middle(self, first: int, end: int, raws: Sequence[bytes]) -> None:
        """Adds the items between the common head and the common tail, which may have moved."""
        at = {self._old[n].hash: n for n in range(first, end)}
        for raw in raws:
            item = Item(raw, hash_of(raw))
            if item.hash in at:
                self.keep(at[item.hash], 1)
            else:
                self.items.append(item)
                self.pieces.append(stream_pb2.Piece(insert=raw))
