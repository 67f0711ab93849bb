"""Write hooks for Hookloop controllers in Python.

A hook is a function. It receives the observed state of a parent object, and returns the objects
that should exist for it. serve makes a program of this function:

    from hookloop import Composite, Object, SyncRequest, SyncResponse, serve

    def sync(request: SyncRequest) -> SyncResponse:
        name = request["parent"]["metadata"]["name"]
        page: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        return {"children": [page]}

    serve(Composite(sync=sync))

Use Composite, Decorator or Mapper, after the kind of the controller that will call the hook. If
your program has a main function of its own, use Server to listen, or attach to connect to a
gateway.

Hookloop may call the function at any time, also with a request that it has seen before. The
function should then return the same response. Calls for different parents run at the same time, in
threads. An exception is shown on the parent and retried with backoff; raise Reject or RetryAfter to
choose something else.

Requests and responses are dicts that look like the JSON of webhooks, so the same function can
serve webhooks and gRPC. The type annotations help mypy and pyright; you can leave them out. To test
a function, call it with hookloop.testing, which needs neither a server nor a cluster.

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
