"""Calls a hook's functions under the contract: it decodes a request and encodes the response.

It is independent of the transport.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from hookloop import request, response, tracing
from hookloop.composite.v1 import composite_pb2
from hookloop.decorator.v1 import decorator_pb2
from hookloop.errors import InvalidRequest, InvalidResponse, Unimplemented
from hookloop.hook.v1 import response_pb2
from hookloop.hooks import Composite, Decorator, Hook

# AnyFunction is a function of a hook of either kind.
AnyFunction = Callable[[Any], Any]


@dataclass(frozen=True)
class Shape:
    """The differences between the two services: their names."""

    module: Any
    name: str
    parent: str
    children: str
    patches: tuple[str, ...]

    @property
    def service(self) -> str:
        """The full name of the service."""
        return f"{self.module.DESCRIPTOR.package}.{self.name}"

    def message(self, method: str, kind: str) -> Any:
        """Returns the class of a method's Request or Response."""
        return getattr(self.module, f"{method}{kind}")


COMPOSITE = Shape(composite_pb2, "CompositeHookService", "parent", "children", ())
DECORATOR = Shape(
    decorator_pb2, "DecoratorHookService", "object", "attachments", ("labels", "annotations")
)
# The methods of both services, and the names of their functions.
METHODS = {"Sync": "sync", "Finalize": "finalize", "Customize": "customize"}
# The fields of responses to Sync and Finalize of both services.
RESPONSE_FIELDS = (
    "status",
    "conditions",
    "events",
    "results",
    "requirements",
    "resyncAfterSeconds",
    "finalized",
)


def shape_of(hook: Hook) -> Shape:
    """Returns the service of a hook."""
    if isinstance(hook, Composite):
        return COMPOSITE
    if isinstance(hook, Decorator):
        return DECORATOR
    raise TypeError(f"got a hook of type {type(hook).__name__}, expected Composite or Decorator")


@dataclass(frozen=True)
class Route:
    """One method of a service, and its function."""

    shape: Shape
    method: str
    function: Optional[AnyFunction]

    @property
    def path(self) -> str:
        """The full name of the method."""
        return f"/{self.shape.service}/{self.method}"

    def call(
        self, message: Any, objects: request.Objects, trace: Iterable[tuple[str, Any]]
    ) -> tuple[Any, list[Any]]:
        """Calls the function within a span of the trace. It returns the response without its
        desired objects, and those."""
        if self.function is None:
            raise Unimplemented(f"this hook has no {METHODS[self.method]} function")
        with tracing.span(self.path, trace):
            result = self.function(decode(self.shape, self.method, message, objects))
            return encode(self.shape, self.method, result)


def routes(hooks: Iterable[Hook]) -> dict[str, Route]:
    """Returns the methods of hooks by their full names. It raises ValueError without a hook, and
    with two hooks for one service."""
    shapes = [(shape_of(hook), hook) for hook in hooks]
    names = [shape.service for shape, _ in shapes]
    if not names:
        raise ValueError("got no hook, expected a Composite, a Decorator, or both")
    if len(set(names)) < len(names):
        text = f"got hooks for {', '.join(names)}, expected at most one for each service"
        raise ValueError(text)
    found = [
        Route(shape, method, getattr(hook, field))
        for shape, hook in shapes
        for method, field in METHODS.items()
    ]
    return {route.path: route for route in found}


def display_name(parent: Optional[Any]) -> str:
    """Returns the name of a parent for the log: its kind, namespace and name."""
    if parent is None:
        return "no parent"
    if parent.namespace:
        return f"{parent.kind} {parent.namespace}/{parent.name}"
    return f"{parent.kind} {parent.name}"


def implemented_methods(routes: Mapping[str, Route]) -> list[str]:
    """Returns the full names of the methods that have a function, sorted."""
    return sorted(path for path, route in routes.items() if route.function is not None)


def objects_by_slot(shape: Shape, method: str, message: Any) -> dict[int, Sequence[Any]]:
    """Returns the objects in a request by slot (request.Objects), including empty slots."""
    slots: dict[int, Sequence[Any]] = {}
    for slot, field in ((0, "controller"), (1, shape.parent)):
        slots[slot] = [getattr(message, field)] if message.HasField(field) else []
    if method != "Customize":
        for n, group in enumerate(getattr(message, shape.children)):
            slots[2 + 2 * n] = group.objects
        for n, group in enumerate(message.related):
            if group.HasField("items"):
                slots[3 + 2 * n] = group.items.objects
    return slots


def decode(shape: Shape, method: str, message: Any, objects: request.Objects) -> dict[str, Any]:
    """Decodes a request for the hook's function."""
    found = [objects(0), objects(1)]
    for field, group in zip(("controller", shape.parent), found):
        if len(group) != 1:
            raise InvalidRequest(f"{field} is missing; expected an object")
    controller, parent = (request.decode_object(group[0]) for group in found)
    if method == "Customize":
        return {"controller": controller, "parent": parent}
    namespace = found[1][0].namespace
    children = getattr(message, shape.children)
    return {
        "controller": controller,
        shape.parent: parent,
        shape.children: request.decode_children(children, objects, namespace),
        "related": request.decode_related(message.related, objects, namespace),
        "finalizing": method == "Finalize",
    }


def encode(shape: Shape, method: str, result: Optional[Mapping[str, Any]]) -> tuple[Any, list[Any]]:
    """Encodes a function's result. It returns the response without its desired objects, and those.
    An invalid result raises InvalidResponse."""
    if result is None:
        raise InvalidResponse(
            "the hook's function returned None, expected a dict; "
            "a response without children deletes them"
        )
    kind = shape.message(method, "Response")
    if method == "Customize":
        rules = response.check_fields(result, ("relatedResources",)).get("relatedResources")
        return kind(related_resources=response.encode_rules("relatedResources", rules)), []
    result = response.check_fields(result, (*RESPONSE_FIELDS, shape.children, *shape.patches))
    message = kind(
        status=response.encode_status(result.get("status")),
        details=response_pb2.ResponseDetails(
            resync_after=response.encode_resync(result.get("resyncAfterSeconds")),
            conditions=response.encode_conditions(result.get("conditions")),
            events=response.encode_events(result.get("events")),
            results=response.encode_results(result.get("results")),
            requirements=response.encode_rules("requirements", result.get("requirements")),
        ),
    )
    finalized = response.encode_finalized(result.get("finalized"))
    if method == "Finalize":
        message.finalized = finalized
    for field in shape.patches:
        set_, remove = response.encode_patch(field, result.get(field))
        patch = getattr(message, field)
        patch.set.update(set_)
        patch.remove.extend(remove)
    return message, response.encode_desired(shape.children, result.get(shape.children))


def with_desired(shape: Shape, message: Any, desired: list[Any]) -> Any:
    """Adds the desired objects to a response, and returns it."""
    if desired:
        getattr(message, shape.children).extend(desired)
    return message
