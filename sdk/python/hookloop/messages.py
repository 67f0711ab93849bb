"""The requests that a hook's functions receive, and the responses that they return.

All are plain dicts in the form of the JSON of webhooks (hook version v2). The types here are for
type checkers. A value of an enumeration is a string: ConditionStatus.TRUE == "True".
"""

import enum
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, TypedDict, Union

from hookloop.objects import LabelSelector, Object

# Group holds observed objects by name: "name", or "namespace/name" for an object in a namespace
# other than the parent's.
Group = MutableMapping[str, Object]


class SyncRequest(TypedDict):
    """The observed state of one parent."""

    controller: Object
    parent: Object
    # By kind: "ConfigMap.v1", "Deployment.apps/v1". Each kind that the controller declares has a
    # group.
    children: Mapping[str, Group]
    # By the rule's name or, if the rule has none, by resource: "configmaps.v1". Access to a group
    # that could not be read raises RelatedUnknown.
    related: Mapping[str, Mapping[str, Object]]
    # Whether the parent is being deleted, or is no longer selected by the controller.
    finalizing: bool


class DecorateRequest(TypedDict):
    """The observed state of one object to decorate. The fields are those of SyncRequest."""

    controller: Object
    object: Object
    attachments: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]
    finalizing: bool


class MapRequest(TypedDict):
    """The observed state of one input of a parent. The fields are those of SyncRequest."""

    controller: Object
    parent: Object
    # Identifies the input within the parent by its group, kind, namespace and name. An input that
    # is deleted and created again has the same key.
    mapKey: str
    input: Object
    # The outputs of this input, as in SyncRequest.children.
    outputs: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]
    finalizing: bool


class MapFinalizeRequest(TypedDict):
    """The observed state of one input of a parent that is being deleted, or is no longer selected.
    The fields are those of MapRequest; input is None if the input is gone."""

    controller: Object
    parent: Object
    mapKey: str
    input: Optional[Object]
    outputs: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]
    finalizing: bool


class TombstoneRequest(TypedDict):
    """The observed state of the outputs of an input that is deleted or no longer selected. The
    fields are those of MapRequest."""

    controller: Object
    parent: Object
    mapKey: str
    outputs: Mapping[str, Group]
    related: Mapping[str, Mapping[str, Object]]


class CustomizeRequest(TypedDict):
    """Asks which objects are related to a parent."""

    controller: Object
    parent: Object


class ConditionStatus(str, enum.Enum):
    """The status of a Condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class _RequiredCondition(TypedDict):
    type: str
    status: Union[ConditionStatus, Literal["True", "False", "Unknown"]]
    reason: str


class Condition(_RequiredCondition, total=False):
    """An entry of the parent's status.conditions.

    Each type may occur once. reason is one word in CamelCase. Hookloop sets lastTransitionTime and
    observedGeneration.
    """

    message: str


class EventType(str, enum.Enum):
    """The type of an Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class _RequiredEvent(TypedDict):
    reason: str


class Event(_RequiredEvent, total=False):
    """A Kubernetes Event on the parent.

    reason is one word in CamelCase, and the default type is NORMAL. Hookloop records an event if
    the previous response did not have it.
    """

    type: Union[EventType, Literal["Normal", "Warning"]]
    message: str


class Severity(str, enum.Enum):
    """The severity of a Result.

    INFO appears in the log, WARNING also as an Event. After FATAL Hookloop writes nothing of the
    response, reports the reason on the parent, and calls the hook again with backoff.
    """

    INFO = "Info"
    WARNING = "Warning"
    FATAL = "Fatal"


class _RequiredResult(TypedDict):
    reason: str


class Result(_RequiredResult, total=False):
    """A remark about the response.

    reason is one word in CamelCase, and the default severity is INFO.
    """

    severity: Union[Severity, Literal["Info", "Warning", "Fatal"]]
    message: str


class _RequiredRelatedRule(TypedDict):
    apiVersion: str
    resource: str


class RelatedRule(_RequiredRelatedRule, total=False):
    """Selects related objects: by names, by labels, or all objects of a resource.

    resource is the plural in lower case: "configmaps". names exclude labelSelector and
    namespaceSelector; namespace excludes namespaceSelector. name is the key of the group in
    request["related"], at most 63 letters, digits, "-" and "_"; only requirements have it.
    """

    name: str
    namespace: str
    names: list[str]
    labelSelector: LabelSelector
    namespaceSelector: LabelSelector


@dataclass(frozen=True)
class Dependency:
    """Another desired object that must exist, and be ready, before an object is created.

    Without a namespace it is in the parent's. condition is the type of a condition that must be
    True in its status; without one the object only has to exist. If the response sets ready for
    that object, ready counts instead.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    condition: str = ""


@dataclass(frozen=True)
class Child:
    """A desired object with its dependencies and readiness. It replaces the plain dict in
    "children" or "attachments".

    depends_on lists objects that are created before this one and deleted after it. ready reports
    whether the observed object is ready; with None its conditions decide.
    """

    object: Object
    depends_on: Sequence[Dependency] = ()
    ready: Optional[bool] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "depends_on", tuple(self.depends_on))


class _Remarks(TypedDict, total=False):
    events: Optional[Sequence[Event]]
    results: Optional[Sequence[Result]]
    # Rules for the related objects of the next request. They make a customize function optional.
    requirements: Optional[Sequence[RelatedRule]]
    # Requests another call after so many seconds; 0 and None request none.
    resyncAfterSeconds: Optional[float]


class _Response(_Remarks, total=False):
    # Replaces the observed status.
    status: Optional[Mapping[str, Any]]
    # Merged into the status.
    conditions: Optional[Sequence[Condition]]
    # Lets Hookloop remove its finalizer. Only responses of finalize functions use it.
    finalized: Optional[bool]


class SyncResponse(_Response, total=False):
    """The desired state of one parent.

    children lists every object that should exist; Hookloop deletes an existing child that is not in
    the list.
    """

    children: Optional[Sequence[Union[Object, Child]]]


class DecorateResponse(_Response, total=False):
    """The desired state of one decorated object.

    A label or an annotation with the value None is removed; keys that are absent are left alone.
    attachments lists every object that should exist beside the decorated one.
    """

    labels: Optional[Mapping[str, Optional[str]]]
    annotations: Optional[Mapping[str, Optional[str]]]
    attachments: Optional[Sequence[Union[Object, Child]]]


class _RequiredOutputs(TypedDict):
    # Every output that should exist for the input. Hookloop deletes an existing one that is not in
    # the list.
    outputs: Optional[Sequence[Union[Object, Child]]]


class MapResponse(_RequiredOutputs, _Remarks, total=False):
    """The desired outputs of one input. Hookloop computes the parent's status from all inputs and
    outputs, so a response has neither status nor conditions.

    finalized reports that the hook is done with the input; only responses of finalize functions use
    it.
    """

    finalized: Optional[bool]


class _RequiredKept(TypedDict):
    # The outputs of the request to keep. Only their identities count.
    outputs: Optional[Sequence[Object]]


class TombstoneResponse(_RequiredKept, _Remarks, total=False):
    """The outputs to keep of an input that is gone. Hookloop deletes all others.

    With resyncAfterSeconds it calls the function again, for example when an output expires.
    """


class CustomizeResponse(TypedDict, total=False):
    """The rules for related objects."""

    relatedResources: Optional[Sequence[RelatedRule]]
