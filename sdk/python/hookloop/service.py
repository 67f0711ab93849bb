"""Calls a hook's functions: it decodes a request and encodes the response.

It does not depend on the transport.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from hookloop import features, request, response, tracing
from hookloop.errors import InvalidRequest, InvalidResponse, NotFound, Unimplemented
from hookloop.hook.v1 import response_pb2
from hookloop.hooks import Composite, Decorator, Hook, Mapper, Named
from hookloop.shape import (
    COMPOSITE,
    CONTROLLER_SLOT,
    DECORATOR,
    INPUT_SLOT,
    MAP,
    PARENT_SLOT,
    Shape,
)

# AnyFunction is a function of a hook of either kind.
AnyFunction = Callable[[Any], Any]


_SHAPES: dict[type, Shape] = {Composite: COMPOSITE, Decorator: DECORATOR, Mapper: MAP}


def shape_of(hook: Hook) -> Shape:
    """Returns the service for a hook."""
    for kind, shape in _SHAPES.items():
        if isinstance(hook, kind):
            return shape
    expected = "expected Composite, Decorator or Mapper"
    raise TypeError(f"got a hook of type {type(hook).__name__}, {expected}")


@dataclass(frozen=True)
class Route:
    """A method of a service, with its functions by hook name. The name is "" for the hook without a
    name.
    """

    shape: Shape
    method: str
    named: Mapping[str, Optional[AnyFunction]]

    @property
    def path(self) -> str:
        """The method's full name."""
        return f"/{self.shape.service}/{self.method}"

    def call(
        self, message: Any, objects: request.Objects, trace: Iterable[tuple[str, Any]]
    ) -> tuple[Any, list[Any]]:
        """Calls the function in a span. It returns the response without desired objects, and the
        desired objects.
        """
        function = self._function_for(message.meta.hook)
        if function is None:
            raise Unimplemented(f"this hook has no {self.shape.methods[self.method]} function")
        with tracing.span(self.path, trace):
            result = function(decode(self.shape, self.method, message, objects))
            answer, desired = encode(self.shape, self.method, result)
            used = features.used(answer, desired)
            features.check(used, message)
            if used:
                answer.meta.features.extend(used)
            return answer, desired

    @property
    def functions(self) -> list[AnyFunction]:
        """The functions of all hooks that have one."""
        return [function for function in self.named.values() if function is not None]

    def _function_for(self, name: str) -> Optional[AnyFunction]:
        """Returns the function of the hook that a request names. If it names none, this is the hook
        without a name, or the only one.
        """
        if name in self.named:
            return self.named[name]
        kind = self.shape.kind
        if name:
            raise NotFound(f'this server has no {kind} hook "{name}"; it has {self._names()}')
        if len(self.named) == 1:
            return next(iter(self.named.values()))
        raise NotFound(
            f"the request names no hook, and this server has several {kind} hooks: "
            f"{self._names()}; name one in the field grpc.hook of the controller's spec"
        )

    def _names(self) -> str:
        names = sorted(self.named)
        return ", ".join(f'"{name}"' if name else "one without a name" for name in names)


def routes(hooks: Iterable[Hook]) -> dict[str, Route]:
    """Returns the hooks' methods by full name. ValueError is raised if there is no hook, or if two
    hooks of one kind have the same name.
    """
    shapes: dict[str, tuple[Shape, dict[str, Hook]]] = {}
    for each in hooks:
        name, hook = (each.name, each.hook) if isinstance(each, Named) else ("", each)
        shape = shape_of(hook)
        _, named = shapes.setdefault(shape.service, (shape, {}))
        if isinstance(each, Named) and not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise ValueError(
                f"the name of a {shape.kind} hook is {name!r}, expected at most 63 letters, digits, "
                "'-', '_' and '.', with a letter or digit first and last"
            )
        if name in named and name:
            text = f'two {shape.kind} hooks have the name "{name}", expected different ones'
            raise ValueError(text)
        if name in named:
            text = f"two {shape.kind} hooks have no name, expected Named for all but one"
            raise ValueError(text)
        named[name] = hook
    if not shapes:
        raise ValueError("got no hook, expected a Composite, a Decorator or a Mapper")
    found = [
        Route(shape, method, {name: getattr(hook, field) for name, hook in named.items()})
        for shape, named in shapes.values()
        for method, field in shape.methods.items()
    ]
    return {route.path: route for route in found}


# The name of a hook, as in the CRDs.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def display_name(parent: Optional[Any]) -> str:
    """Returns a parent's kind, namespace and name for the log."""
    if parent is None:
        return "no parent"
    if parent.namespace:
        return f"{parent.kind} {parent.namespace}/{parent.name}"
    return f"{parent.kind} {parent.name}"


def implemented_methods(routes: Mapping[str, Route]) -> list[str]:
    """Returns the full names of methods that have a function, sorted."""
    return sorted(path for path, route in routes.items() if route.functions)


def objects_by_slot(shape: Shape, method: str, message: Any) -> dict[int, Sequence[Any]]:
    """Returns the objects in a request by slot (see request.Objects), also for empty slots."""
    slots: dict[int, Sequence[Any]] = {}
    for slot, field in _singles(shape, method).items():
        slots[slot] = [getattr(message, field)] if message.HasField(field) else []
    if method != "Customize":
        for n, group in enumerate(getattr(message, shape.children)):
            slots[shape.first_slot + 2 * n] = group.objects
        for n, group in enumerate(message.related):
            if group.HasField("items"):
                slots[3 + 2 * n] = group.items.objects
    return slots


def _singles(shape: Shape, method: str) -> dict[int, str]:
    """Returns the fields of a request that hold a single object, by slot."""
    fields = {CONTROLLER_SLOT: "controller", PARENT_SLOT: shape.parent}
    if shape.has_input(method):
        fields[INPUT_SLOT] = "input"
    return fields


def decode(shape: Shape, method: str, message: Any, objects: request.Objects) -> dict[str, Any]:
    """Decodes a request for a hook's function."""
    found = {field: objects(slot) for slot, field in _singles(shape, method).items()}
    singles: dict[str, Any] = {}
    for field, group in found.items():
        if len(group) > 1 or not group and (field != "input" or method == "Map"):
            raise InvalidRequest(f"{field} is missing; expected an object")
        singles[field] = request.decode_object(group[0]) if group else None
    if method == "Customize":
        return {"controller": singles["controller"], "parent": singles[shape.parent]}
    namespace = found[shape.parent][0].namespace
    children = getattr(message, shape.children)
    decoded = singles | {
        shape.children: request.decode_children(children, objects, shape.first_slot, namespace),
        "related": request.decode_related(message.related, objects, namespace),
    }
    if shape is MAP:
        decoded["mapKey"] = message.map_key
    if method != "Tombstone":
        decoded["finalizing"] = method == "Finalize"
    return decoded


def encode(shape: Shape, method: str, result: Optional[Mapping[str, Any]]) -> tuple[Any, list[Any]]:
    """Encodes what a function returned. It returns the response without desired objects, and the
    desired objects. InvalidResponse is raised for an invalid result.
    """
    if result is None:
        raise InvalidResponse(
            "the hook's function returned None, expected a dict; "
            "a response without children deletes them"
        )
    kind = shape.message(method, "Response")
    if method == "Customize":
        rules = response.check_fields(result, ("relatedResources",)).get("relatedResources")
        return kind(related_resources=response.encode_rules("relatedResources", rules)), []
    result = response.check_fields(result, shape.fields_of(method))
    if shape is MAP and "outputs" not in result:
        raise InvalidResponse("outputs: is missing; expected a list of objects, which may be empty")
    message = kind(details=_details(result))
    if (status := response.encode_status(result.get("status"))) is not None:
        message.status = status
    finalized = response.encode_finalized(result.get("finalized"))
    if method == "Finalize":
        message.finalized = finalized
    for field in shape.patches:
        set_, remove = response.encode_patch(field, result.get(field))
        patch = getattr(message, field)
        patch.set.update(set_)
        patch.remove.extend(remove)
    encode_objects = response.encode_kept if method == "Tombstone" else response.encode_desired
    return message, encode_objects(shape.children, result.get(shape.children))


def _details(result: Mapping[str, Any]) -> Any:
    return response_pb2.ResponseDetails(
        resync_after=response.encode_resync(result.get("resyncAfterSeconds")),
        conditions=response.encode_conditions(result.get("conditions")),
        events=response.encode_events(result.get("events")),
        results=response.encode_results(result.get("results")),
        requirements=response.encode_rules("requirements", result.get("requirements")),
    )


def with_desired(shape: Shape, message: Any, desired: list[Any]) -> Any:
    """Adds desired objects to a response and returns it."""
    if desired:
        getattr(message, shape.children).extend(desired)
    return message
