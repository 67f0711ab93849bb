"""Asks hooks under the contract: a question is read, put to the hook's function, and its answer written. It knows no transport."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from hookloop import request, response, tracing
from hookloop.errors import InvalidResponse, InvalidRequest, Unimplemented
from hookloop.hook.v1 import composite_pb2, decorator_pb2
from hookloop.hooks import Composite, Decorator, Function

Hook = Union[Composite, Decorator]


@dataclass(frozen=True)
class Shape:
    """What the two services differ in: the names of things."""

    module: Any
    name: str
    parent: str
    children: str
    patches: tuple[str, ...]

    @property
    def service(self) -> str:
        """The service's full name."""
        return f"{self.module.DESCRIPTOR.package}.{self.name}"

    def message(self, method: str, kind: str) -> Any:
        """The class of a method's Request or Response."""
        return getattr(self.module, f"{self.name}{method}{kind}")


COMPOSITE = Shape(composite_pb2, "CompositeHookService", "parent", "children", ())
DECORATOR = Shape(decorator_pb2, "DecoratorHookService", "object", "attachments", ("labels", "annotations"))
# The methods of both services, and the names of the functions that answer them.
METHODS = {"Sync": "sync", "Finalize": "finalize", "Customize": "customize"}
# What answers to Sync and Finalize of both services may have.
RESPONSE_FIELDS = ("status", "conditions", "events", "results", "requirements", "resyncAfterSeconds", "finalized")


def shape_of(hook: Hook) -> Shape:
    """The service that serves a hook."""
    if isinstance(hook, Composite):
        return COMPOSITE
    if isinstance(hook, Decorator):
        return DECORATOR
    raise TypeError(f"got a hook of type {type(hook).__name__}, expected Composite or Decorator")


@dataclass(frozen=True)
class Route:
    """One method of a service, and the function that answers it."""

    shape: Shape
    method: str
    function: Optional[Function]

    @property
    def path(self) -> str:
        """The method's full name."""
        return f"/{self.shape.service}/{self.method}"

    def call(self, message: Any, objects: request.Objects, trace: Iterable[tuple[str, Any]]) -> tuple[Any, list]:
        """Puts a question to the function, within the span of a trace: the response without its desired objects, and those."""
        if self.function is None:
            raise Unimplemented(f"this hook has no {METHODS[self.method]} function")
        with tracing.span(self.path, trace):
            return encode(self.shape, self.method, self.function(decode(self.shape, self.method, message, objects)))


def routes(hooks: Iterable[Hook]) -> dict[str, Route]:
    """The methods of hooks, by their full names."""
    shapes = [(shape_of(hook), hook) for hook in hooks]
    names = [shape.service for shape, _ in shapes]
    if not names:
        raise ValueError("got no hook, expected a Composite, a Decorator, or both")
    if len(set(names)) < len(names):
        raise ValueError(f"got hooks for {', '.join(names)}, expected at most one for each service")
    found = [Route(shape, method, getattr(hook, field)) for shape, hook in shapes for method, field in METHODS.items()]
    return {route.path: route for route in found}


def display_name(parent: Optional[Any]) -> str:
    """What the log calls a parent: its kind, namespace and name."""
    if parent is None:
        return "no parent"
    return f"{parent.kind} {parent.namespace}/{parent.name}" if parent.namespace else f"{parent.kind} {parent.name}"


def implemented_methods(routes: Mapping[str, Route]) -> list[str]:
    """The full names of the methods that have a function, sorted."""
    return sorted(path for path, route in routes.items() if route.function is not None)


def objects_by_slot(shape: Shape, method: str, message: Any) -> dict[int, Sequence[Any]]:
    """The objects that a request holds itself, by slot; every slot that the request has a place for."""
    fields = {0: "controller", 1: shape.parent}
    slots = {slot: [getattr(message, field)] if message.HasField(field) else [] for slot, field in fields.items()}
    if method != "Customize":
        slots |= {2 + 2 * n: group.objects for n, group in enumerate(getattr(message, shape.children))}
        slots |= {3 + 2 * n: group.items.objects for n, group in enumerate(message.related) if group.HasField("items")}
    return slots


def decode(shape: Shape, method: str, message: Any, objects: request.Objects) -> dict[str, Any]:
    """A question as the hook's function gets it."""
    found = [objects(0), objects(1)]
    for field, of in zip(("controller", shape.parent), found):
        if len(of) != 1:
            raise InvalidRequest(f"{field} is missing; expected an object")
    controller, parent = (request.decode_object(of[0]) for of in found)
    if method == "Customize":
        return {"controller": controller, "parent": parent}
    namespace = found[1][0].namespace
    return {
        "controller": controller,
        shape.parent: parent,
        shape.children: request.decode_children(getattr(message, shape.children), objects, namespace),
        "related": request.decode_related(message.related, objects, namespace),
        "finalizing": method == "Finalize",
    }


def encode(shape: Shape, method: str, answer: Optional[Mapping[str, Any]]) -> tuple[Any, list]:
    """An answer as the contract has it, its desired objects apart, or InvalidResponse."""
    if answer is None:
        raise InvalidResponse("the hook's function returned None, expected a dict; an answer without children deletes them")
    kind = shape.message(method, "Response")
    if method == "Customize":
        rules = response.check_fields(answer, ("relatedResources",)).get("relatedResources")
        return kind(related_resources=response.encode_rules("relatedResources", rules)), []
    answer = response.check_fields(answer, (*RESPONSE_FIELDS, shape.children, *shape.patches))
    message = kind(
        status=response.encode_status(answer.get("status")),
        resync_after=response.encode_resync(answer.get("resyncAfterSeconds")),
        conditions=response.encode_conditions(answer.get("conditions")),
        events=response.encode_events(answer.get("events")),
        results=response.encode_results(answer.get("results")),
        requirements=response.encode_rules("requirements", answer.get("requirements")),
    )
    finalized = response.encode_finalized(answer.get("finalized"))
    if method == "Finalize":
        message.finalized = finalized
    for field in shape.patches:
        set_, remove = response.encode_patch(field, answer.get(field))
        getattr(message, f"set_{field}").update(set_)
        getattr(message, f"remove_{field}").extend(remove)
    return message, response.encode_desired(shape.children, answer.get(shape.children))


def with_desired(shape: Shape, message: Any, desired: list) -> Any:
    """A response with its desired objects."""
    if desired:
        getattr(message, shape.children).extend(desired)
    return message
