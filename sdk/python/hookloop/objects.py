"""Types of Kubernetes objects, for type checkers. At run time every object is a plain dict.

The names of the fields are those of the Kubernetes API (API reference, "Object Meta" and
"Label Selector"). mypy and pyright report a key that does not exist and a value of a wrong type.
"""

import enum
from typing import Any, Literal, TypedDict, Union


class _RequiredOwnerReference(TypedDict):
    apiVersion: str
    kind: str
    name: str
    uid: str


class OwnerReference(_RequiredOwnerReference, total=False):
    """An entry of metadata.ownerReferences."""

    controller: bool
    blockOwnerDeletion: bool


class _RequiredObjectMeta(TypedDict):
    name: str


class ObjectMeta(_RequiredObjectMeta, total=False):
    """The metadata of an object. A desired object needs only a name.

    Times are strings in RFC 3339. The API server sets uid, resourceVersion, generation and the
    times; a desired object does not have them.
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
    """The fields of every object. An author's type of a custom resource extends it:

        class Website(BaseObject):
            spec: WebsiteSpec

        website = cast(Website, request["parent"])
    """

    apiVersion: str
    kind: str
    metadata: ObjectMeta


class Object(BaseObject, total=False):
    """Any object: the fields at the top level of the built-in kinds.

    Use typing.cast for an object with other fields at its top level.
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
    """Relates a label to the values of a Requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class _RequiredRequirement(TypedDict):
    key: str
    operator: Union[Operator, Literal["In", "NotIn", "Exists", "DoesNotExist"]]


class Requirement(_RequiredRequirement, total=False):
    """A requirement on one label. The operators IN and NOT_IN need values; the others have none."""

    values: list[str]


class LabelSelector(TypedDict, total=False):
    """Selects objects by their labels. All parts must match; an empty selector matches all."""

    matchLabels: dict[str, str]
    matchExpressions: list[Requirement]
