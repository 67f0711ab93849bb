"""Composite, Decorator and Mapper: the functions that a hook consists of."""

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
    """The hook of a CompositeController.

    A function that the controller does not declare may be None; a call of it fails with
    UNIMPLEMENTED. sync and finalize may be the same function, which reads request["finalizing"].
    """

    sync: Optional[SyncFunction] = None
    finalize: Optional[SyncFunction] = None
    customize: Optional[CustomizeFunction] = None


@dataclass(frozen=True)
class Decorator:
    """The hook of a DecoratorController. The functions may be None as in Composite."""

    sync: Optional[DecorateFunction] = None
    finalize: Optional[DecorateFunction] = None
    customize: Optional[CustomizeFunction] = None


@dataclass(frozen=True)
class Mapper:
    """The hook of a MapController, which is called for each input of a parent. The functions may be
    None as in Composite."""

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
