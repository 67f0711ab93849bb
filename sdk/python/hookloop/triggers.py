"""Writes triggers: what a hook sends to have parents synced because of something that Hookloop does not watch."""

from collections.abc import Sequence
from typing import Any

from hookloop.errors import sendable
from hookloop.stream.v1 import stream_pb2

MAX_REASON_BYTES = 256  # bytes


KINDS = ("", "CompositeController", "DecoratorController")


def trigger_message(
    *, controller: str = "", kind: str = "", parents: Sequence[str] = (), labels: str = "", reason: str = ""
) -> Any:
    """A Trigger. kind is the controller's, "CompositeController" or "DecoratorController", or empty for both. parents are "namespace/name", or "name" where they have no namespace; without any, labels says which."""
    if kind not in KINDS:
        raise ValueError(f'trigger: kind is "{kind}", expected CompositeController or DecoratorController')
    if isinstance(parents, str):
        raise ValueError(f'trigger: parents is "{parents}", expected a list of "namespace/name"')
    if (size := len(sendable(reason).encode())) > MAX_REASON_BYTES:
        raise ValueError(f"trigger: reason has {size} bytes, expected at most {MAX_REASON_BYTES}")
    if labels and parents:
        raise ValueError("trigger: labels is set beside parents, expected one of them")
    named = []
    for parent in parents:
        namespace, _, name = parent.rpartition("/")
        if not name:
            raise ValueError(f'trigger: parents has "{parent}", expected "namespace/name" or "name"')
        named.append(stream_pb2.ParentName(namespace=namespace, name=name))
    return stream_pb2.Trigger(
        controller_name=controller, controller_kind=kind, parents=named, label_selector=labels, reason=sendable(reason)
    )
