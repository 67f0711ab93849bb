"""Reads the fields of dataclasses and TypedDicts: names, types, defaults, descriptions."""

import ast
import dataclasses
import inspect
import re
import textwrap
import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Any, Optional, Union

from hookloop.crd.markers import Marker, Name

_NONE = type(None)
# The types of "int | None", from Python 3.10 on, and of Optional[int].
_UNIONS = (Union, getattr(types, "UnionType", Union))


@dataclass(frozen=True)
class Field:
    """A field of a class. name is used in the CRD, and attribute in Python."""

    name: str
    attribute: str
    type: Any
    required: bool
    default: Any
    description: str


@dataclass(frozen=True)
class Source:
    """What a class's source text contains: descriptions, and where fields are."""

    file: str
    line: int
    description: str
    fields: dict[str, tuple[int, str]]


def is_typed_dict(kind: Any) -> bool:
    """Reports whether a type is a TypedDict."""
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def fields_of(cls: Any) -> list[Field]:
    """Returns the fields of a dataclass or a TypedDict, in order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    described = source_of(cls).fields
    if is_typed_dict(cls):
        return [
            Field(name, name, hint, name in cls.__required_keys__, None, described.get(name, (0, ""))[1])
            for name, hint in hints.items()
        ]
    found = []
    for field in dataclasses.fields(cls):
        default, required = _default(field)
        hint = hints[field.name]
        if default is None and is_optional(hint):
            required = False
        found.append(
            Field(
                _name(field.name, hint),
                field.name,
                hint,
                required,
                default,
                described.get(field.name, (0, ""))[1],
            )
        )
    return found


def plain(hint: Any) -> tuple[Any, tuple[Marker, ...]]:
    """Returns a type without Annotated and Optional, and its markers."""
    markers: tuple[Marker, ...] = ()
    while True:
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            hint = args[0]
            markers += tuple(marker for marker in args[1:] if isinstance(marker, Marker))
        elif getattr(origin, "_name", "") in ("Required", "NotRequired"):
            hint = args[0]
        elif is_optional(hint):
            rest = tuple(arg for arg in args if arg is not _NONE)
            hint = Union[rest]
        else:
            return hint, markers


def is_union(hint: Any) -> bool:
    """Reports whether a type is a union."""
    return typing.get_origin(hint) in _UNIONS


def is_optional(hint: Any) -> bool:
    """Reports whether a value may be None."""
    if typing.get_origin(hint) is typing.Annotated:
        return is_optional(typing.get_args(hint)[0])
    return is_union(hint) and _NONE in typing.get_args(hint)


@cache
def source_of(cls: Any) -> Source:
    """Returns descriptions from the source text of a class and its base classes."""
    fields: dict[str, tuple[int, str]] = {}
    file, line, description = "", 0, ""
    for base in reversed(getattr(cls, "__mro__", (cls,))):
        try:
            lines, line = inspect.getsourcelines(base)
            file = inspect.getsourcefile(base) or ""
        except (OSError, TypeError):
            continue  # a class of the interpreter, or one without a file
        (node,) = ast.parse(textwrap.dedent("".join(lines))).body
        if isinstance(node, ast.ClassDef):
            description = _text(ast.get_docstring(node))
            fields.update(_described(node, line))
    return Source(file, line, description, fields)


def _described(node: ast.ClassDef, first: int) -> dict[str, tuple[int, str]]:
    """Returns on which lines a class's fields are, and the docstrings below them."""
    found: dict[str, tuple[int, str]] = {}
    name: Optional[str] = None
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            found[name] = (first + statement.lineno - 1, "")
            continue
        value = statement.value if isinstance(statement, ast.Expr) else None
        if name and isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[name] = (found[name][0], _text(inspect.cleandoc(value.value)))
        name = None
    return found


def _text(description: Optional[str]) -> str:
    """Joins the lines of each paragraph."""
    paragraphs = re.split(r"\n\s*\n", (description or "").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _default(field: "dataclasses.Field[Any]") -> tuple[Any, bool]:
    """Returns a field's default, and whether there is none."""
    if field.default is not dataclasses.MISSING:
        return field.default, False
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory(), False
    return None, True


def _name(attribute: str, hint: Any) -> str:
    for marker in plain(hint)[1]:
        if isinstance(marker, Name):
            return str(marker.value)
    first, *rest = attribute.rstrip("_").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)
