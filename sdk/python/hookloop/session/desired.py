"""Desired lists, and how one is written as the pieces that differ from another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from hookloop.session.wire import EMPTY_DIGEST, hash_of, total
from hookloop.stream.v1 import stream_pb2


@dataclass(frozen=True)
class Item:
    """One desired object, serialized."""

    raw: bytes
    hash: bytes


class DesiredList:
    """A desired list. It is not changed."""

    def __init__(self, items: Sequence[Item] = ()):
        self.items = items
        self.size = sum(len(item.raw) for item in items)
        hashes = [item.hash for item in items]
        self.digest = total(hash_of(before + own) for before, own in zip([EMPTY_DIGEST, *hashes], hashes))


def difference(before: Optional[DesiredList], raws: Sequence[bytes]) -> tuple[DesiredList, list[Any]]:
    """A list, and its pieces: runs of the one before, and new items."""
    old = before.items if before else ()
    head = _common(zip(old, raws))
    most = min(len(old), len(raws)) - head
    tail = min(most, _common(zip(reversed(old), reversed(raws))))
    writer = _Pieces(old)
    writer.keep(0, head)
    writer.middle(head, len(old) - tail, raws[head : len(raws) - tail])
    writer.keep(len(old) - tail, tail)
    return DesiredList(writer.items), writer.pieces


def _common(pairs: Any) -> int:
    count = 0
    for item, raw in pairs:
        if item.raw != raw:
            break
        count += 1
    return count


class _Pieces:
    """Writes pieces one after the other; a run that follows the last one makes it longer."""

    def __init__(self, old: Sequence[Item]):
        self._old = old
        self.items: list[Item] = []
        self.pieces: list[Any] = []

    def keep(self, first: int, count: int) -> None:
        """Items of the list before."""
        if count == 0:
            return
        self.items.extend(self._old[first : first + count])
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.HasField("keep") and last.keep.first + last.keep.count == first:
            last.keep.count += count
        else:
            self.pieces.append(stream_pb2.Piece(keep=stream_pb2.Run(first=first, count=count)))

    def middle(self, first: int, end: int, raws: Sequence[bytes]) -> None:
        """What lies between the common beginning and the common end: items may have moved."""
        at = {self._old[n].hash: n for n in range(first, end)}
        for raw in raws:
            item = Item(raw, hash_of(raw))
            if item.hash in at:
                self.keep(at[item.hash], 1)
            else:
                self.items.append(item)
                self.pieces.append(stream_pb2.Piece(insert=raw))
