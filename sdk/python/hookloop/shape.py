"""Describes how the hook services differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hookloop.composite.v1 import composite_pb2
from hookloop.decorator.v1 import decorator_pb2
from hookloop.map.v1 import map_pb2

# The slots of single objects in a request (request.Objects).
CONTROLLER_SLOT, PARENT_SLOT, INPUT_SLOT = 0, 1, 2

# The methods of composite and decorator hooks, and the names of their functions.
METHODS = {"Sync": "sync", "Finalize": "finalize", "Customize": "customize"}
# The fields of responses about one parent, beside its children and patches.
RESPONSE_FIELDS = (
    "status",
    "conditions",
    "events",
    "results",
    "requirements",
    "resyncAfterSeconds",
    "finalized",
)


@dataclass(frozen=True)
class Shape:
    """Describes one service. first_slot is the slot of the first group of children."""

    module: Any
    name: str
    parent: str
    children: str
    patches: tuple[str, ...] = ()
    methods: Mapping[str, str] = field(default_factory=lambda: METHODS)
    response_fields: tuple[str, ...] = RESPONSE_FIELDS
    first_slot: int = 2

    @property
    def kind(self) -> str:
        """How messages call this kind of hook: "composite", "decorator" or "map"."""
        return self.name.removesuffix("HookService").lower()

    @property
    def service(self) -> str:
        """The service's full name."""
        return f"{self.module.DESCRIPTOR.package}.{self.name}"

    def message(self, method: str, kind: str) -> Any:
        """Returns the class for a method's Request or Response."""
        return getattr(self.module, f"{method}{kind}")

    def has_input(self, method: str) -> bool:
        """Reports whether requests to a method contain an input."""
        return self is MAP and method in ("Map", "Finalize")

    def fields_of(self, method: str) -> tuple[str, ...]:
        """Returns which fields a function's response may have."""
        if method == "Tombstone":
            return (*MAP_FIELDS, self.children)
        return (*self.response_fields, self.children, *self.patches)


COMPOSITE = Shape(composite_pb2, "CompositeHookService", "parent", "children")
DECORATOR = Shape(
    decorator_pb2, "DecoratorHookService", "object", "attachments", ("labels", "annotations")
)
# The fields of all responses of map hooks.
MAP_FIELDS = ("events", "results", "requirements", "resyncAfterSeconds")
MAP = Shape(
    map_pb2,
    "MapHookService",
    "parent",
    "outputs",
    methods={
        "Map": "map",
        "Tombstone": "tombstone",
        "Finalize": "finalize",
        "Customize": "customize",
    },
    response_fields=(*MAP_FIELDS, "finalized"),
    first_slot=4,
)
