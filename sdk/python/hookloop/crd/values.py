"""Converts decoded JSON into dataclasses and back."""

import dataclasses
import enum
import typing
from typing import Any, Literal, TypeVar

from hookloop.crd.fields import fields_of, is_optional, is_union, plain

_T = TypeVar("_T")


class WrongValue(ValueError):
    """Is raised for a value that does not fit its type. The text names the field."""


def decode(cls: type[_T], value: Any) -> _T:
    """Returns an instance of a dataclass for a decoded JSON object.

    Fields that the class does not declare are left out, and missing fields get their defaults.
    WrongValue is raised if a field without a default is missing, or if a value has another type. If
    the CRD was generated from the class, the API server rejects such objects before.
    """
    return typing.cast(_T, _decode(cls, value, cls.__name__))


def encode(value: Any) -> Any:
    """Returns a value as JSON types. A dataclass becomes a dict without the fields that are None.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.attribute)) for field in fields_of(type(value)))
        return {name: encode(part) for name, part in pairs if part is not None}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {key: encode(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(part) for part in value]
    return value


def _decode(hint: Any, value: Any, path: str) -> Any:
    if value is None and is_optional(hint):
        return None
    kind, _ = plain(hint)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _decode_object(kind, value, path)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise _wrong(path, value, f"one of {[member.value for member in kind]}") from None
    if origin is Literal:
        if value not in args:
            raise _wrong(path, value, f"one of {list(args)}")
        return value
    if origin is list:
        items = _checked(value, list, path)
        return [_decode(args[0], item, f"{path}[{i}]") for i, item in enumerate(items)]
    if origin is dict:
        members = _checked(value, dict, path)
        return {key: _decode(args[1], member, f"{path}.{key}") for key, member in members.items()}
    if is_union(kind):
        return value
    if kind is float:
        return float(_checked(value, (int, float), path))
    return _checked(value, kind, path) if kind in (str, int, bool) else value


def _decode_object(cls: Any, value: Any, path: str) -> Any:
    members = _checked(value, dict, path)
    arguments = {}
    for field in fields_of(cls):
        if field.name in members:
            found = _decode(field.type, members[field.name], f"{path}.{field.name}")
            arguments[field.attribute] = found
        elif field.required:
            raise WrongValue(f"{path}.{field.name}: missing; expected a value")
        elif field.default is None:
            arguments[field.attribute] = None
    return cls(**arguments)


def _checked(value: Any, kind: Any, path: str) -> Any:
    wrong_bool = isinstance(value, bool) and kind is not bool
    if not isinstance(value, kind) or wrong_bool:
        names = kind if isinstance(kind, tuple) else (kind,)
        raise _wrong(path, value, " or ".join(each.__name__ for each in names))
    return value


def _wrong(path: str, value: Any, expected: str) -> WrongValue:
    return WrongValue(f"{path}: got {value!r}, expected {expected}")
