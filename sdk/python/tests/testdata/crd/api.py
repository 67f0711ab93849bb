"""Types of every form that a CRD can have."""

import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from hookloop import LabelSelector, ObjectMeta
from hookloop.crd import (
    Column,
    Format,
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


class Tier(str, enum.Enum):
    """An enumeration."""

    GOLD = "Gold"
    SILVER = "Silver"


@dataclass
class Door:
    """A door of a shop."""

    name: Annotated[str, MinLength(1), MaxLength(10)]
    width: float = 0.9


class Owner(TypedDict, total=False):
    """A person."""

    name: str
    phones: list[str]


@dataclass
class ShopSpec:
    """The desired state.

    It has a second paragraph
    over two lines.
    """

    message: Annotated[str, Pattern("^[A-Z]")]
    """The text of the ConfigMaps,
    in one line."""
    doors: Annotated[list[Door], MinItems(1), MaxItems(3)]
    style: Literal["Plain", "Loud"] = "Plain"
    tier: Tier = Tier.SILVER
    level: Literal[1, 2, 3] = 2
    copies: Annotated[int, Minimum(0), Maximum(5), Format("int32")] = 1
    """The number of ConfigMaps."""
    open_on_sunday: bool = False
    api_url: Annotated[Optional[str], Name("apiURL")] = None
    labels: dict[str, str] = field(default_factory=dict)
    rooms: dict[str, list[int]] = field(default_factory=lambda: {"hall": [1]})
    selector: Optional[LabelSelector] = None
    port: Optional[Union[int, str]] = None
    owner: Optional[Owner] = None
    front: Door = field(default_factory=lambda: Door("front"))
    anything: Any = None
    settings: Optional[dict[str, Any]] = None


@dataclass
class ShopStatus:
    """The observed state."""

    copies: int


@custom_resource(
    group="example.com",
    version="v1",
    columns=[Column("Message", ".spec.message"), Column("Copies", ".status.copies", "integer")],
    short_names=["sh"],
)
@dataclass
class Shop:
    """A message in several ConfigMaps."""

    metadata: ObjectMeta
    spec: ShopSpec
    status: Optional[ShopStatus] = None


@dataclass
class PolicySpec:
    limit: int = 3


@custom_resource(group="example.com", version="v1alpha1", kind="ShopPolicy", scope="Cluster")
@dataclass
class Policy:
    metadata: ObjectMeta
    spec: PolicySpec = field(default_factory=PolicySpec)
    status: Optional[dict[str, Any]] = None
