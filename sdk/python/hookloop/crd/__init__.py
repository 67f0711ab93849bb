"""Types of custom resources: dataclasses, from which the CRD is generated.

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

"python3 -m hookloop.crd api -o crd.yaml" writes the CRDs of the module api. In a hook,
decode(Shop, request["parent"]) returns a Shop, and encode returns the dict of a dataclass.

A field's name in snake case is in camel case in the CRD. A docstring below a field is its
description. Functions are pure, except for the program. The tests compare CRDs of many types with
files, and decode and encode values.
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
