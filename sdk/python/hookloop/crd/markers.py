"""The parts of a CRD that types alone cannot express: annotations of fields and of the resource."""

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
    """A rule of a schema. Use a subclass in Annotated: Annotated[int, Minimum(1)]."""

    value: Any

    # The schema types that have the rule, and its key there.
    types: ClassVar[tuple[str, ...]] = ()
    key: ClassVar[str] = ""


class Minimum(Marker):
    """The smallest value of a number."""

    types, key = ("integer", "number"), "minimum"


class Maximum(Marker):
    """The largest value of a number."""

    types, key = ("integer", "number"), "maximum"


class MinLength(Marker):
    """The smallest number of characters of a string."""

    types, key = ("string",), "minLength"


class MaxLength(Marker):
    """The largest number of characters of a string."""

    types, key = ("string",), "maxLength"


class Pattern(Marker):
    """A regular expression that a string matches, in the syntax of the API server (RE2)."""

    types, key = ("string",), "pattern"


class Format(Marker):
    """A format of a string or number, such as "date-time" or "int32"."""

    types, key = ("string", "integer", "number"), "format"


class MinItems(Marker):
    """The smallest number of items of a list."""

    types, key = ("array",), "minItems"


class MaxItems(Marker):
    """The largest number of items of a list."""

    types, key = ("array",), "maxItems"


class Name(Marker):
    """The name of the field in the CRD, if it is not the field's name in camel case."""


@dataclass(frozen=True)
class Column:
    """A column of "kubectl get". path is a JSON path such as ".status.copies"."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"


@dataclass(frozen=True)
class Resource:
    """The names, scope and columns of a CRD."""

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
    """Declares a dataclass as the type of a custom resource.

    kind is by default the name of the class, plural its plural in lower case. It raises ValueError
    for wrong names.
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
    """Returns the Resource of a class, or None. A subclass does not inherit it."""
    resource = vars(cls).get(_ATTRIBUTE) if isinstance(cls, type) else None
    return resource if isinstance(resource, Resource) else None


def _plural(kind: str) -> str:
    name = kind.lower()
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return name + "es"
    if re.search(r"[^aeiou]y$", name):
        return name[:-1] + "ies"
    return name + "s"
