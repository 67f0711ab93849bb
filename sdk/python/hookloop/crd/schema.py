"""Makes schemas for types: OpenAPI v3, as in structural schemas."""

import enum
import typing
from dataclasses import is_dataclass
from typing import Any, Literal

from hookloop.crd.fields import Field, fields_of, is_typed_dict, is_union, plain, source_of
from hookloop.crd.markers import Marker, Name
from hookloop.crd.values import encode

Schema = dict[str, Any]
_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
}
# The types of decoded JSON by the types of schemas, besides numbers.
_JSON_TYPES: dict[Any, Any] = {"string": str, "boolean": bool, "array": list, "object": dict}
_ANY: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_SUPPORTED = (
    "str, int, float, bool, Literal of strings or integers, a str Enum, list[T], dict[str, T], "
    "Optional[T], Union[int, str], a dataclass, a TypedDict or Any"
)


class UnsupportedType(TypeError):
    """Is raised for a type that a CRD cannot express. The text names file, line, class and field.
    """


class Builder:
    """Builds the schemas for a class. It remembers which classes it is inside of."""

    def __init__(self) -> None:
        self._classes: list[Any] = []

    def object(self, cls: Any) -> Schema:
        """Returns the schema for a dataclass or a TypedDict."""
        if cls in self._classes:
            path = " → ".join(outer.__name__ for outer in [*self._classes, cls])
            raise UnsupportedType(f"{_place(cls)}: {path}: a CRD cannot have a type that contains itself")
        self._classes.append(cls)
        schema: Schema = {"type": "object"}
        if description := source_of(cls).description:
            schema["description"] = description
        fields = _fields(cls)
        schema["properties"] = {field.name: self._field(cls, field) for field in fields}
        if required := [field.name for field in fields if field.required]:
            schema["required"] = required
        self._classes.pop()
        return schema

    def _field(self, cls: Any, field: Field) -> Schema:
        place = _place(cls, field.attribute)
        schema = self._type(field.type, place)
        if field.description:
            schema = {**schema, "description": field.description}
        if field.default is not None:
            schema["default"] = encode(field.default)
            _check_default(schema, place)
        return schema

    def _type(self, hint: Any, place: str) -> Schema:
        kind, markers = plain(hint)
        schema = dict(self._unmarked(kind, place))
        for marker in markers:
            _mark(schema, marker, place)
        return schema

    def _unmarked(self, kind: Any, place: str) -> Schema:
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(kind, type) and kind in _SCALARS:
            return _SCALARS[kind]
        if kind is Any or kind is object:
            return _ANY
        if choices := _choices(kind):
            return _enum(choices, place)
        if origin is list and args:
            return {"type": "array", "items": self._type(args[0], place)}
        if origin is dict and args:
            if args[0] is not str:
                raise UnsupportedType(f"{place}: the keys of a dict are strings; expected dict[str, …]")
            values = self._type(args[1], place)
            return {"type": "object", **_values(values)}
        if is_union(kind) and set(args) == {int, str}:
            return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        if is_typed_dict(kind) or (isinstance(kind, type) and is_dataclass(kind)):
            return self.object(kind)
        name = getattr(kind, "__name__", None) if isinstance(kind, type) and not args else None
        raise UnsupportedType(f"{place}: {name or kind} has no schema; expected {_SUPPORTED}")


def _values(schema: Schema) -> Schema:
    if schema == _ANY:
        return _ANY
    return {"additionalProperties": schema}


def _choices(kind: Any) -> list[Any]:
    """Returns the values of a Literal, an Enum, or a union of these. For other types the list is
    empty.
    """
    if typing.get_origin(kind) is Literal:
        return list(typing.get_args(kind))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return [member.value for member in kind]
    if is_union(kind):
        parts = [_choices(part) for part in typing.get_args(kind)]
        return list(dict.fromkeys(value for part in parts for value in part)) if all(parts) else []
    return []


def _enum(values: list[Any], place: str) -> Schema:
    for kind, schema in ((str, "string"), (int, "integer")):
        if all(type(value) is kind for value in values):
            return {"type": schema, "enum": values}
    raise UnsupportedType(f"{place}: got the values {values}; expected only strings, or only integers")


def _mark(schema: Schema, marker: Marker, place: str) -> None:
    if isinstance(marker, Name):
        return
    kind = schema.get("type", "a value of any type")
    if kind not in marker.types:
        expected = " or ".join(marker.types)
        raise UnsupportedType(
            f"{place}: {type(marker).__name__} is a rule of {expected}; the field is {kind}"
        )
    schema[marker.key] = marker.value


def _check_default(schema: Schema, place: str) -> None:
    """Finds common faults in defaults, with their place. The API server would reject such a CRD."""
    default, values = schema["default"], schema.get("enum")
    if values is not None and default not in values:
        raise UnsupportedType(f"{place}: the default {default!r} is not one of {values}")
    kind = schema.get("type")
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    fits = number if kind in ("integer", "number") else isinstance(default, _JSON_TYPES.get(kind, object))
    if not fits or (kind == "integer" and isinstance(default, float)):
        raise UnsupportedType(f"{place}: the default {default!r} is not of type {kind}")
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and default < low) or (high is not None and default > high):
        raise UnsupportedType(f"{place}: the default {default!r} is not within its minimum and maximum")


def _fields(cls: Any) -> list[Field]:
    try:
        return fields_of(cls)
    except NameError as error:
        raise UnsupportedType(f"{_place(cls)}: {error}; expected a type of its module") from error


def _place(cls: Any, attribute: str = "") -> str:
    source = source_of(cls)
    line = source.fields.get(attribute, (source.line, ""))[0]
    name = f"{cls.__name__}.{attribute}" if attribute else str(cls.__name__)
    return f"{source.file}:{line}: {name}" if source.file else name
