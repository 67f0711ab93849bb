"""Mistakes that mypy must find. A comment names a part of the message for its line."""

from hookloop import (
    Attachment,
    Child,
    Composite,
    ConditionStatus,
    CustomizeResponse,
    DecorateRequest,
    DecorateResponse,
    Dependency,
    Gateway,
    Intercept,
    Mapper,
    MapRequest,
    MapResponse,
    Object,
    ObjectMeta,
    Options,
    RelatedRule,
    Server,
    SyncRequest,
    SyncResponse,
    TombstoneRequest,
    TombstoneResponse,
    Trigger,
    attach,
    serve,
)


def read(request: SyncRequest) -> SyncResponse:
    request["paren"]  # error: paren
    request["parent"]["metdata"]  # error: metdata
    request["parent"]["metadata"]["nam"]  # error: nam
    request["parent"]["metadata"]["name"] + 1  # error: Unsupported operand
    request["parent"]["metadata"].get("labels", {})["a"].missing  # error: missing
    request["children"]["Pod.v1"]["a"]["metdata"]  # error: metdata
    return {}


def write(request: SyncRequest) -> SyncResponse:
    metadata: ObjectMeta = {"name": "a", "label": {"app": "a"}}  # error: label
    page: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metdata": metadata}  # error: metdata
    page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 1}}  # error: "int"
    page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": 1}}  # error: "int"
    return {"childs": [page]}  # error: childs


def inline(request: SyncRequest) -> SyncResponse:
    return {
        "children": [
            {"apiVersion": "v1", "kind": "Pod", "metdata": {"name": "a"}},  # error: incompatible type
        ],
        "resyncAfterSeconds": "1s",  # error: resyncAfterSeconds
    }


def remarks(request: SyncRequest) -> SyncResponse:
    response: SyncResponse = {}
    response["conditions"] = [
        {"type": "Ready", "status": "true", "reason": "Up"},  # error: status
    ]
    response["conditions"] = [
        {"type": "Ready", "status": ConditionStatus.TRUE},  # error: reason
    ]
    response["events"] = [{"severity": "Warning", "reason": "Slow"}]  # error: severity
    response["results"] = [{"severity": "Bad", "reason": "Slow"}]  # error: severity
    response["labels"] = {}  # error: labels
    return response


def rules(request: SyncRequest) -> CustomizeResponse:
    rule: RelatedRule = {"apiVersion": "v1", "resource": "pods", "selector": {}}  # error: selector
    rule["labelSelector"] = {"matchExpressions": [{"key": "a", "operator": "Is"}]}  # error: operator
    return {"relatedResources": [rule]}


def decorate(request: DecorateRequest) -> DecorateResponse:
    request["parent"]  # error: parent
    return {"labels": {"a": 1}}  # error: "int"


def map_input(request: MapRequest) -> MapResponse:
    request["children"]  # error: children
    if not request["outputs"]:
        return {"events": []}  # error: outputs
    return {"outputs": [], "status": {}}  # error: status


def tombstone(request: TombstoneRequest) -> TombstoneResponse:
    request["input"]  # error: input
    return {"outputs": [], "finalized": True}  # error: finalized


def programs(gateway: Gateway, server: Server, attachment: Attachment) -> None:
    Child({"apiVersion": "v1", "kind": "Pod"})  # error: metadata
    Child({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, depend_on=[])  # error: depend_on
    Dependency("v1", "Pod")  # error: name
    Composite(sync=decorate)  # error: sync
    Mapper(map=tombstone)  # error: map
    serve(decorate)  # error: serve
    Intercept("Composite", "web")  # error: Intercept
    attach(gateway=gateway, workers="a")  # error: workers
    Server(threads=3)  # error: threads
    Options(threads="3")  # error: threads
    server.trigger(reason="tick")  # error: reason
    attachment.trigger(Trigger(parent=["a"]))  # error: parent
