"""Hooks of Hookloop controllers in Python.

A hook is a function from the observed state of one parent to its desired state. serve is a whole
program:

    from hookloop import Composite, Object, SyncRequest, SyncResponse, serve

    def sync(request: SyncRequest) -> SyncResponse:
        name = request["parent"]["metadata"]["name"]
        page: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        return {"children": [page]}

    serve(Composite(sync=sync))

The function is level-triggered: Hookloop may call it again at any time with the same request, and
it should return the same response. Calls for different parents run concurrently, in threads. A test
needs no API server and no running hook: hookloop.testing calls the function.

Requests and responses are dicts in the form of the JSON of webhooks, so that one function serves
all transports: webhooks, single gRPC calls, and streams that the engine (Server) or the hook
(attach) opens. The annotations are for mypy and pyright, and may be left out.

Only the names in __all__ of hookloop, hookloop.crd and hookloop.testing are public.
"""

from hookloop.attachment import Attachment, Backoff, Intercept, attach
from hookloop.cachestats import CacheStats, all_cache_stats
from hookloop.errors import (
    InvalidResponse,
    NotServed,
    Reject,
    RelatedUnknown,
    RetryAfter,
    TriggerError,
)
from hookloop.gateway import Gateway, trigger
from hookloop.hooks import (
    Composite,
    CustomizeFunction,
    DecorateFunction,
    Decorator,
    Hook,
    MapFinalizeFunction,
    MapFunction,
    Mapper,
    Named,
    SyncFunction,
    TombstoneFunction,
)
from hookloop.messages import (
    Child,
    Condition,
    ConditionStatus,
    CustomizeRequest,
    CustomizeResponse,
    DecorateRequest,
    DecorateResponse,
    Dependency,
    Event,
    EventType,
    Group,
    MapFinalizeRequest,
    MapRequest,
    MapResponse,
    RelatedRule,
    Result,
    Severity,
    SyncRequest,
    SyncResponse,
    TombstoneRequest,
    TombstoneResponse,
)
from hookloop.objects import (
    BaseObject,
    LabelSelector,
    Object,
    ObjectMeta,
    Operator,
    OwnerReference,
    Requirement,
)
from hookloop.options import Options
from hookloop.program import serve
from hookloop.related import require_related
from hookloop.server import Server
from hookloop.triggers import ControllerKind, Trigger

__all__ = [
    "Attachment",
    "Backoff",
    "BaseObject",
    "CacheStats",
    "Child",
    "Composite",
    "Condition",
    "ConditionStatus",
    "ControllerKind",
    "CustomizeFunction",
    "CustomizeRequest",
    "CustomizeResponse",
    "DecorateFunction",
    "DecorateRequest",
    "DecorateResponse",
    "Decorator",
    "Dependency",
    "Event",
    "EventType",
    "Gateway",
    "Group",
    "Hook",
    "Intercept",
    "InvalidResponse",
    "LabelSelector",
    "MapFinalizeFunction",
    "MapFinalizeRequest",
    "MapFunction",
    "MapRequest",
    "MapResponse",
    "Mapper",
    "Named",
    "NotServed",
    "Object",
    "ObjectMeta",
    "Operator",
    "Options",
    "OwnerReference",
    "Reject",
    "RelatedRule",
    "RelatedUnknown",
    "Requirement",
    "Result",
    "RetryAfter",
    "Server",
    "Severity",
    "SyncFunction",
    "SyncRequest",
    "SyncResponse",
    "TombstoneFunction",
    "TombstoneRequest",
    "TombstoneResponse",
    "Trigger",
    "TriggerError",
    "all_cache_stats",
    "attach",
    "require_related",
    "serve",
    "trigger",
]
