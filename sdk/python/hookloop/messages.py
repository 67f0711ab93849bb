"""The requests that Hookloop sends to a hook, and the responses that a hook returns.

At run time all of them are plain dicts, which look like the JSON of webhooks (hook version v2). The
types in this module help type checkers. Members of enumerations are strings: ConditionStatus.TRUE
== "True".
"""

import enum
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, TypedDict, Union

from hookloop.objects import LabelSelector, Object

# Group holds observed objects by name. For objects outside the parent's namespace the key is
# "namespace/name".
Group = MutableMapping[str, Object]


class SyncRequest(TypedDict):
    """Describes one parent as Hookloop observed it."""

    controller: Object
    parent: Object
    # By kind: "ConfigMap.v1" or "Deployment.apps/v1". There is a group, maybe an empty one, for
    # each kind that the controller declares.
    children: Mapping[str, Group]
    # By the name of the rule or, if it has no name, by resource: "configmaps.v1". If Hookloop could
    # not read a group, any access to it raises RelatedUnknown.
    related: Mapping[str, Mapping[str, Object]]
    # True while the parent is being deleted, or after it is no longer selected.
    finalizing: bool


class DecorateRequest(TypedDict):
    """Describes an object to decorate as Hookloop observed it. See SyncRequest for the fields."""

    controller: Object
    object: Object
    attachments: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]
    finalizing: bool


class MapRequest(TypedDict):
    """Describes one input of a parent as Hookloop observed it. See SyncRequest for the fields."""

    controller: Object
    parent: Object
    # Identifies the input within the parent. It is made of the input's group, kind, namespace and
    # name, so an input that is deleted and created again gets the same key.
    mapKey: str
    input: Object
    # The outputs that exist for this input, as in SyncRequest.children.
    outputs: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]
    finalizing: bool


class MapFinalizeRequest(TypedDict):
    """Describes one input while the parent is being deleted, or after it is no longer selected. See
    MapRequest for the fields; input is None if the input is gone.
    """

    controller: Object
    parent: Object
    mapKey: str
    input: Optional[Object]
    outputs: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]
    finalizing: bool


class TombstoneRequest(TypedDict):
    """Lists the outputs of an input that was deleted or is no longer selected. See MapRequest for
    the fields.
    """

    controller: Object
    parent: Object
    mapKey: str
    outputs: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]


class CustomizeRequest(TypedDict):
    """Asks which related objects the hook needs for a parent."""

    controller: Object
    parent: Object


class ConditionStatus(str, enum.Enum):
    """Says whether a Condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class _RequiredCondition(TypedDict):
    type: str
    status: Union[ConditionStatus, Literal["True", "False", "Unknown"]]
    reason: str


class Condition(_RequiredCondition, total=False):
    """Is written to the parent's status.conditions.

    Use each type once. reason should be one CamelCase word. Hookloop sets lastTransitionTime and
    observedGeneration.
    """

    message: str


class EventType(str, enum.Enum):
    """Says whether an Event is a warning."""

    NORMAL = "Normal"
    WARNING = "Warning"


class _RequiredEvent(TypedDict):
    reason: str


class Event(_RequiredEvent, total=False):
    """Is recorded on the parent, unless the last response contained the same Event.

    reason should be one CamelCase word. type defaults to NORMAL.
    """

    type: Union[EventType, Literal["Normal", "Warning"]]
    message: str


class Severity(str, enum.Enum):
    """Decides what Hookloop does with a Result.

    INFO is written to the log, and WARNING is also recorded as an Event. FATAL rejects the whole
    response: Hookloop writes nothing, shows the reason on the parent, and calls the hook again with
    backoff.
    """

    INFO = "Info"
    WARNING = "Warning"
    FATAL = "Fatal"


class _RequiredResult(TypedDict):
    reason: str


class Result(_RequiredResult, total=False):
    """Tells users something about the response.

    reason should be one CamelCase word. severity defaults to INFO.
    """

    severity: Union[Severity, Literal["Info", "Warning", "Fatal"]]
    message: str


class _RequiredRelatedRule(TypedDict):
    apiVersion: str
    resource: str


class RelatedRule(_RequiredRelatedRule, total=False):
    """Selects related objects. Without names and selectors, it selects every object of the
    resource.

    resource is the plural in lower case, such as "configmaps". names cannot be used with
    labelSelector or namespaceSelector, and namespace cannot be used with namespaceSelector. Only
    requirements may set name: it becomes the key in request["related"], and may have 63 letters,
    digits, "-" and "_".
    """

    name: str
    namespace: str
    names: list[str]
    labelSelector: LabelSelector
    namespaceSelector: LabelSelector


@dataclass(frozen=True)
class Dependency:
    """Refers to a desired object that must exist and be ready first.

    If namespace is empty, the parent's is used. condition is a condition type that must be True in
    the object's status; if it is empty, the object only has to exist. If the response sets ready
    for that object, Hookloop looks at ready instead.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    condition: str = ""


@dataclass(frozen=True)
class Child:
    """Adds dependencies or readiness to a desired object. Put it into children or attachments
    instead of the plain dict.

    depends_on lists objects that Hookloop creates before this one and deletes after it. ready tells
    Hookloop whether this object is ready; if it is None, Hookloop looks at the conditions.
    """

    object: Object
    depends_on: Sequence[Dependency] = ()
    ready: Optional[bool] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "depends_on", tuple(self.depends_on))


class _Remarks(TypedDict, total=False):
    events: Optional[Sequence[Event]]
    results: Optional[Sequence[Result]]
    # Select related objects for the next request, so that the hook needs no customize function.
    requirements: Optional[Sequence[RelatedRule]]
    # Calls the hook again after so many seconds. 0 and None mean that Hookloop waits for a change.
    resyncAfterSeconds: Optional[float]


class _Response(_Remarks, total=False):
    # Replaces the parent's status.
    status: Optional[Mapping[str, Any]]
    # Are merged into the status.
    conditions: Optional[Sequence[Condition]]
    # Allows Hookloop to remove its finalizer. Only finalize functions should set it.
    finalized: Optional[bool]


class SyncResponse(_Response, total=False):
    """Describes what should exist for one parent.

    children lists every object that should exist. Hookloop deletes an existing child that is not in
    the list.
    """

    children: Optional[Sequence[Union[Object, Child]]]


class DecorateResponse(_Response, total=False):
    """Describes what to add to one object.

    A label or an annotation with the value None is removed, and other keys stay as they are.
    attachments lists every object that should exist beside the decorated one.
    """

    labels: Optional[Mapping[str, Optional[str]]]
    annotations: Optional[Mapping[str, Optional[str]]]
    attachments: Optional[Sequence[Union[Object, Child]]]


class _RequiredOutputs(TypedDict):
    # Every output that should exist for the input. Hookloop deletes existing outputs that are not
    # in the list.
    outputs: Optional[Sequence[Union[Object, Child]]]


class MapResponse(_RequiredOutputs, _Remarks, total=False):
    """Lists the outputs that should exist for one input.

    Hookloop computes the parent's status from all inputs and outputs, so there is no status and
    there are no conditions here. finalized tells Hookloop that the input needs no more cleanup;
    only finalize functions should set it.
    """

    finalized: Optional[bool]


class _RequiredKept(TypedDict):
    # Outputs from the request that Hookloop should keep. Only kind, namespace and name are read.
    outputs: Optional[Sequence[Object]]


class TombstoneResponse(_RequiredKept, _Remarks, total=False):
    """Lists outputs to keep after their input is gone. Hookloop deletes all others.

    Set resyncAfterSeconds to be called again, for example when the next output expires.
    """


class CustomizeResponse(TypedDict, total=False):
    """Lists rules that select related objects."""

    relatedResources: Optional[Sequence[RelatedRule]]
