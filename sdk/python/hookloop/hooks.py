"""Composite and Decorator: the functions that a hook consists of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional, Union

from hookloop.messages import (
    CustomizeRequest,
    CustomizeResponse,
    DecorateRequest,
    DecorateResponse,
    SyncRequest,
    SyncResponse,
)

SyncFunction = Callable[[SyncRequest], SyncResponse]
DecorateFunction = Callable[[DecorateRequest], DecorateResponse]
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


Hook = Union[Composite, Decorator]
