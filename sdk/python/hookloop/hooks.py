"""Composite, Decorator and Mapper hold the functions of a hook."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional, Union

from hookloop.messages import (
    CustomizeRequest,
    CustomizeResponse,
    DecorateRequest,
    DecorateResponse,
    MapFinalizeRequest,
    MapRequest,
    MapResponse,
    SyncRequest,
    SyncResponse,
    TombstoneRequest,
    TombstoneResponse,
)

SyncFunction = Callable[[SyncRequest], SyncResponse]
DecorateFunction = Callable[[DecorateRequest], DecorateResponse]
MapFunction = Callable[[MapRequest], MapResponse]
MapFinalizeFunction = Callable[[MapFinalizeRequest], MapResponse]
TombstoneFunction = Callable[[TombstoneRequest], TombstoneResponse]
CustomizeFunction = Callable[[CustomizeRequest], CustomizeResponse]


@dataclass(frozen=True)
class Composite:
    """Holds the functions for a CompositeController.

    Set a function for each hook that the controller's spec declares. The others may be None:
    Hookloop gets UNIMPLEMENTED when it calls them. sync and finalize may be the same function;
    request["finalizing"] tells them apart.
    """

    sync: Optional[SyncFunction] = None
    finalize: Optional[SyncFunction] = None
    customize: Optional[CustomizeFunction] = None


@dataclass(frozen=True)
class Decorator:
    """Holds the functions for a DecoratorController. As in Composite, they may be None."""

    sync: Optional[DecorateFunction] = None
    finalize: Optional[DecorateFunction] = None
    customize: Optional[CustomizeFunction] = None


@dataclass(frozen=True)
class Mapper:
    """Holds the functions for a MapController, which calls them for each input of a parent. As in
    Composite, they may be None.
    """

    map: Optional[MapFunction] = None
    tombstone: Optional[TombstoneFunction] = None
    finalize: Optional[MapFinalizeFunction] = None
    customize: Optional[CustomizeFunction] = None


@dataclass(frozen=True)
class Named:
    """A hook with a name, so that one program can serve several hooks of one kind:

        serve(Named("blog", Composite(sync=blog)), Named("shop", Composite(sync=shop)))

    A controller selects one by the field grpc.hook in its spec. A name has at most 63 letters,
    digits, "-", "_" and ".", and begins and ends with a letter or digit. Hooks of different kinds
    may have the same name.
    """

    name: str
    hook: Union[Composite, Decorator, Mapper]


Hook = Union[Composite, Decorator, Mapper, Named]
