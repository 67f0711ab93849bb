"""Annotations for what types alone cannot express, on fields and on the resource."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Callable, ClassVar, Literal, TypeVar, Union

_T = TypeVar("_T")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
# The attribute of a class with its Resource.
_ATTRIBUTE = "__custom_resource__"


@dataclass(frozen=True)
class Marker:
    """Adds a rule to a schema. Use a subclass in Annotated: Annotated[int, Minimum(1)]."""

    value: Any

    # The schema types that have the rule, and its key there.
    types: ClassVar[tuple[str, ...]] = ()
    key: ClassVar[str] = ""


class Minimum(Marker):
    """The smallest value that a number may have."""

    types, key = ("integer", "number"), "minimum"


class Maximum(Marker):
    """The largest value that a number may have."""

    types, key = ("integer", "number"), "maximum"


class MinLength(Marker):
    """How many characters a string must have."""

    types, key = ("string",), "minLength"


class MaxLength(Marker):
    """How many characters a string may have."""

    types, key = ("string",), "maxLength"


class Pattern(Marker):
    """A regular expression that a string must match, in the API server's syntax (RE2)."""

    types, key = ("string",), "pattern"


class Format(Marker):
    """The format of a string or number, such as "date-time" or "int32"."""

    types, key = ("string", "integer", "number"), "format"


class MinItems(Marker):
    """How many items a list must have."""

    types, key = ("array",), "minItems"


class MaxItems(Marker):
    """How many items a list may have."""

    types, key = ("array",), "maxItems"


class Name(Marker):
    """The field's name in the CRD. Without it, the Python name is put into camel case."""


@dataclass(frozen=True)
class Column:
    """A column for "kubectl get". path is a JSON path such as ".status.copies"."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"


@dataclass(frozen=True)
class Resource:
    """Names, scope and columns of a CRD."""

    group: str
    version: str
    kind: str
    plural: str
    scope: str
    columns: Sequence[Column]
    short_names: Sequence[str]


def custom_resource(
    *,
    group: str,
    version: str,
    kind: str = "",
    plural: str = "",
    scope: Literal["Namespaced", "Cluster"] = "Namespaced",
    columns: Sequence[Column] = (),
    short_names: Sequence[str] = (),
) -> Callable[[type[_T]], type[_T]]:
    """Declares that a dataclass is the type of a custom resource.

    kind defaults to the name of the class, and plural to its plural in lower case. ValueError is
    raised for invalid names.
    """
    if not _GROUP.fullmatch(group):
        raise ValueError(f"group: got {group!r}, expected a DNS name with a dot, such as 'example.com'")
    if not _VERSION.fullmatch(version):
        raise ValueError(f"version: got {version!r}, expected one such as 'v1' or 'v1alpha1'")
    if scope not in ("Namespaced", "Cluster"):
        raise ValueError(f"scope: got {scope!r}, expected 'Namespaced' or 'Cluster'")

    def declare(cls: type[_T]) -> type[_T]:
        if not is_dataclass(cls):
            expected = "@custom_resource(…) above @dataclass"
            raise ValueError(f"{cls.__name__} is not a dataclass; expected {expected}")
        name = kind or cls.__name__
        resource = Resource(
            group, version, name, plural or _plural(name), scope, columns, short_names
        )
        setattr(cls, _ATTRIBUTE, resource)
        return cls

    return declare


def resource_of(cls: Any) -> Union[Resource, None]:
    """Returns a class's Resource or None. Subclasses do not inherit it."""
    resource = vars(cls).get(_ATTRIBUTE) if isinstance(cls, type) else None
    return resource if isinstance(resource, Resource) else None


def _plural(kind: str) -> str:
    name = kind.lower()
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return name + "es"
    if re.search(r"[^aeiou]y$", name):
        return name[:-1] + "ies"
    return name + "s"
