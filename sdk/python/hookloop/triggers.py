"""Writes triggers: what a hook sends to have parents synced because of something that Hookloop does not watch."""

from collections.abc import Sequence
from typing import Any

from hookloop.errors import sendable
from hookloop.stream.v1 import stream_pb2

MAX_REASON = 256  # bytes


def trigger_message(*, controller: str = "", parents: Sequence[str] = (), labels: str = "", reason: str = "") -> Any:
    """A Trigger. parents are "namespace/name", or "name" where they have no namespace; without any, labels says which."""
    if isinstance(parents, str):
        raise ValueError(f'trigger: parents is "{parents}", expected a list of "namespace/name"')
    if (size := len(sendable(reason).encode())) > MAX_REASON:
        raise ValueError(f"trigger: reason has {size} bytes, expected at most {MAX_REASON}")
    if labels and parents:
        raise ValueError("trigger: labels is set beside parents, expected one of them")
    named = []
    for parent in parents:
        namespace, _, name = parent.rpartition("/")
        if not name:
            raise ValueError(f'trigger: parents has "{parent}", expected "namespace/name" or "name"')
        named.append(stream_pb2.ParentName(namespace=namespace, name=name))
    return stream_pb2.Trigger(controller_name=controller, parents=named, label_selector=labels, reason=sendable(reason))
