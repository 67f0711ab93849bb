"""Asks Hookloop to sync parents after a change that it does not watch."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

from hookloop.errors import sendable
from hookloop.stream.v1 import stream_pb2

MAX_REASON_BYTES = 256


class ControllerKind(str, enum.Enum):
    """Names the kind of a controller."""

    COMPOSITE = "CompositeController"
    DECORATOR = "DecoratorController"
    MAP = "MapController"


CONTROLLER_KINDS = tuple(kind.value for kind in ControllerKind)


def kind_name(kind: str) -> str:
    """Returns the plain string for a ControllerKind or a string."""
    return kind.value if isinstance(kind, ControllerKind) else kind


@dataclass(frozen=True)
class Trigger:
    """Selects parents to sync. Without any field, it selects all parents of the hook.

    controller_kind and controller_name restrict it to some controllers. parents lists
    "namespace/name", or "name" for cluster-scoped parents; it cannot be used with label_selector,
    which takes kubectl's syntax. reason is shown in the log and in traces and has at most 256
    bytes. A wrong value raises ValueError.
    """

    controller_kind: Union[
        ControllerKind, Literal["", "CompositeController", "DecoratorController", "MapController"]
    ] = ""
    controller_name: str = ""
    parents: Sequence[str] = ()
    label_selector: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        kind, parents = kind_name(self.controller_kind), self.parents
        if kind and kind not in CONTROLLER_KINDS:
            raise ValueError(
                f'trigger: controller_kind is "{kind}", expected {" or ".join(CONTROLLER_KINDS)}'
            )
        if isinstance(parents, str):
            expected = 'a list of "namespace/name"'
            raise ValueError(f'trigger: parents is "{parents}", expected {expected}')
        for parent in parents:
            if not parent.rpartition("/")[2]:
                raise ValueError(
                    f'trigger: parents has "{parent}", expected "namespace/name" or "name"'
                )
        if self.label_selector and parents:
            raise ValueError("trigger: label_selector and parents are set, expected one of them")
        if (size := len(sendable(self.reason).encode())) > MAX_REASON_BYTES:
            raise ValueError(
                f"trigger: reason has {size} bytes, expected at most {MAX_REASON_BYTES}"
            )


def trigger_message(trigger: Trigger, trigger_id: int = 0) -> Any:
    """Encodes a trigger as a hookloop.stream.v1.Trigger."""
    names = [parent.rpartition("/") for parent in trigger.parents]
    return stream_pb2.Trigger(
        id=trigger_id,
        controller_kind=kind_name(trigger.controller_kind),
        controller_name=trigger.controller_name,
        parents=[stream_pb2.ParentName(namespace=ns, name=name) for ns, _, name in names],
        label_selector=trigger.label_selector,
        reason=sendable(trigger.reason),
    )
