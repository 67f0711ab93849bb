"""Types of Kubernetes objects, for type checkers. At run time every object is a plain dict.

Fields have the same names as in the Kubernetes API (see "Object Meta" and "Label Selector" in the
API reference). mypy and pyright report keys that do not exist and values with a wrong type.
"""

import enum
from typing import Any, Literal, TypedDict, Union


class _RequiredOwnerReference(TypedDict):
    apiVersion: str
    kind: str
    name: str
    uid: str


class OwnerReference(_RequiredOwnerReference, total=False):
    """Describes an entry in metadata.ownerReferences."""

    controller: bool
    blockOwnerDeletion: bool


class _RequiredObjectMeta(TypedDict):
    name: str


class ObjectMeta(_RequiredObjectMeta, total=False):
    """Describes metadata. A desired object needs only a name.

    Times are strings in RFC 3339. The API server sets times, uid, resourceVersion and generation;
    leave them out of desired objects.
    """

    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    finalizers: list[str]
    ownerReferences: list[OwnerReference]
    uid: str
    resourceVersion: str
    generation: int
    generateName: str
    creationTimestamp: str
    deletionTimestamp: str
    deletionGracePeriodSeconds: int


class BaseObject(TypedDict):
    """Holds the fields that every object has. Extend it for your own custom resource:

        class Website(BaseObject):
            spec: WebsiteSpec

        website = cast(Website, request["parent"])
    """

    apiVersion: str
    kind: str
    metadata: ObjectMeta


class Object(BaseObject, total=False):
    """Holds the top-level fields of all built-in kinds.

    Use typing.cast for an object with other fields at the top level.
    """

    spec: dict[str, Any]
    status: dict[str, Any]
    # ConfigMap, Secret
    data: dict[str, str]
    binaryData: dict[str, str]
    stringData: dict[str, str]
    type: str
    immutable: bool
    # ServiceAccount
    secrets: list[dict[str, Any]]
    imagePullSecrets: list[dict[str, Any]]
    automountServiceAccountToken: bool
    # Role, ClusterRole, RoleBinding, ClusterRoleBinding
    rules: list[dict[str, Any]]
    aggregationRule: dict[str, Any]
    roleRef: dict[str, str]
    subjects: list[dict[str, str]]
    # EndpointSlice, Endpoints
    addressType: str
    endpoints: list[dict[str, Any]]
    ports: list[dict[str, Any]]
    subsets: list[dict[str, Any]]
    # StorageClass
    provisioner: str
    parameters: dict[str, str]
    reclaimPolicy: str
    mountOptions: list[str]
    allowVolumeExpansion: bool
    volumeBindingMode: str
    allowedTopologies: list[dict[str, Any]]
    # PriorityClass
    value: int
    globalDefault: bool
    description: str
    preemptionPolicy: str
    # RuntimeClass
    handler: str
    overhead: dict[str, Any]
    scheduling: dict[str, Any]
    # ValidatingWebhookConfiguration, MutatingWebhookConfiguration
    webhooks: list[dict[str, Any]]


class Operator(str, enum.Enum):
    """Says how a Requirement compares a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class _RequiredRequirement(TypedDict):
    key: str
    operator: Union[Operator, Literal["In", "NotIn", "Exists", "DoesNotExist"]]


class Requirement(_RequiredRequirement, total=False):
    """Restricts the value of one label. IN and NOT_IN need values; the other operators take none.
    """

    values: list[str]


class LabelSelector(TypedDict, total=False):
    """Selects objects by their labels. Labels must satisfy all parts; an empty selector matches
    everything.
    """

    matchLabels: dict[str, str]
    matchExpressions: list[Requirement]
