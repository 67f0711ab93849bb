"""Generates CRDs from dataclasses, and converts objects into them and back.

    @dataclass
    class ShopSpec:
        message: Annotated[str, MinLength(1)]
        \"\"\"The text of the ConfigMaps.\"\"\"
        copies: Annotated[int, Minimum(0), Maximum(5)] = 1

    @custom_resource(group="example.com", version="v1")
    @dataclass
    class Shop:
        \"\"\"A message in several ConfigMaps.\"\"\"
        metadata: ObjectMeta
        spec: ShopSpec

Run "python3 -m hookloop.crd api -o crd.yaml" to write the CRDs of the module api. In a hook, call
decode(Shop, request["parent"]) to get a Shop, and encode to turn a dataclass into a dict.

A field in snake case gets a name in camel case in the CRD. A docstring below a field becomes its
description.
"""

from hookloop.crd.definition import definition
from hookloop.crd.markers import (
    Column,
    Format,
    Marker,
    Maximum,
    MaxItems,
    MaxLength,
    Minimum,
    MinItems,
    MinLength,
    Name,
    Pattern,
    custom_resource,
)
from hookloop.crd.schema import UnsupportedType
from hookloop.crd.values import WrongValue, decode, encode

__all__ = [
    "Column",
    "Format",
    "Marker",
    "MaxItems",
    "MaxLength",
    "Maximum",
    "MinItems",
    "MinLength",
    "Minimum",
    "Name",
    "Pattern",
    "UnsupportedType",
    "WrongValue",
    "custom_resource",
    "decode",
    "definition",
    "encode",
]
