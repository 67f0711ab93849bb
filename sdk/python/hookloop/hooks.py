"""What an author writes with: sets of functions, one for each question that a controller's spec.hooks declares, and what answers say
beside dicts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

# Question is what is observed. A function of a Composite finds "controller", "parent", "children", "related" and "finalizing" in it; one
# of a Decorator "object" and "attachments" instead of the parent and its children; a customize function only "controller" and "parent".
Question = dict[str, Any]
# Function answers a question: "status", "children" (a Decorator's: "attachments", "labels", "annotations"), "conditions", "events",
# "results", "requirements", "resyncAfterSeconds" and "finalized"; a customize function "relatedResources".
Function = Callable[[Question], Mapping[str, Any]]


@dataclass(frozen=True)
class Composite:
    """The hook of a CompositeController. A function that the controller does not declare may be None; asking for it is answered with
    UNIMPLEMENTED. sync and finalize may be the same function: request["finalizing"] tells."""

    sync: Optional[Function] = None
    finalize: Optional[Function] = None
    customize: Optional[Function] = None


@dataclass(frozen=True)
class Decorator:
    """The hook of a DecoratorController. Functions may be None as in Composite."""

    sync: Optional[Function] = None
    finalize: Optional[Function] = None
    customize: Optional[Function] = None


@dataclass(frozen=True)
class Dependency:
    """Another desired object that must be there, and ready, before an object is made."""

    api_version: str
    kind: str
    name: str
    namespace: str
    condition: str


@dataclass(frozen=True)
class Child:
    """A desired object with what Hookloop should know about it beside its content."""

    object: Mapping[str, Any]
    ready: Optional[bool]
    depends_on: tuple[Dependency, ...]


def dependency(api_version: str, kind: str, name: str, *, namespace: str = "", condition: str = "") -> Dependency:
    """Names another desired object. Without a namespace it is in the parent's. condition is the type of a condition that must be True in
    its status; without one its existence is enough. Where an answer says whether that object is ready, that counts instead."""
    return Dependency(api_version, kind, name, namespace, condition)


def child(object: Mapping[str, Any], *, ready: Optional[bool] = None, depends_on: Iterable[Dependency] = ()) -> Child:
    """A desired object that says more than its content: whether the observed one is ready, where the hook knows better than its
    conditions, and which others must be there before it is made. It stands in "children" or "attachments" as a plain dict does."""
    return Child(object, ready, tuple(depends_on))
