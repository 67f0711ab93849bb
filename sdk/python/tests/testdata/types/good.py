"""A hook that uses the whole public API. mypy must find no error in it."""

from typing import TypedDict, cast

import hookloop.testing
from hookloop import (
    Attachment,
    Backoff,
    BaseObject,
    Child,
    Composite,
    ConditionStatus,
    ControllerKind,
    CustomizeRequest,
    CustomizeResponse,
    DecorateRequest,
    DecorateResponse,
    Decorator,
    Dependency,
    EventType,
    Gateway,
    Intercept,
    LabelSelector,
    MapFinalizeRequest,
    Mapper,
    MapRequest,
    MapResponse,
    Object,
    ObjectMeta,
    Operator,
    Options,
    Reject,
    RelatedRule,
    RetryAfter,
    Server,
    Severity,
    SyncRequest,
    SyncResponse,
    TombstoneRequest,
    TombstoneResponse,
    Trigger,
    attach,
    require_related,
    serve,
    trigger,
)


class WebsiteSpec(TypedDict):
    html: dict[str, str]
    replicas: int


class Website(BaseObject):
    spec: WebsiteSpec


def sync(request: SyncRequest) -> SyncResponse:
    website = cast(Website, request["parent"])
    metadata, spec = website["metadata"], website["spec"]
    if not spec["html"]:
        raise Reject("NoPages", "spec.html is empty")
    if spec["replicas"] > 9:
        raise RetryAfter(0.5, "there is no room")
    owners = [owner["uid"] for owner in metadata.get("ownerReferences", [])]
    ready = 0
    for name, deployment in request["children"]["Deployment.apps/v1"].items():
        status: dict[str, int] = deployment.get("status", {})
        ready += status.get("readyReplicas", 0)
    labels = {"app": metadata["name"]}
    child: ObjectMeta = {"name": metadata["name"], "labels": labels}
    pages: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": child, "data": spec["html"]}
    response: SyncResponse = {
        "status": {"ready": ready, "owners": owners},
        "conditions": [
            {"type": "Ready", "status": ConditionStatus.TRUE, "reason": "AllUp"},
            {"type": "Old", "status": "False", "reason": "No", "message": "It is new."},
        ],
        "events": [
            {"reason": "Scaled", "message": "to 2"},
            {"type": EventType.WARNING, "reason": "Slow"},
        ],
        "results": [{"severity": Severity.INFO, "reason": "Fine"}],
        "children": [
            pages,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
            Child(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": child,
                    "spec": {"selector": labels, "ports": [{"port": 80}]},
                },
                depends_on=[Dependency("v1", "ConfigMap", metadata["name"], condition="Ready")],
                ready=True,
            ),
        ],
        "resyncAfterSeconds": 1.5,
    }
    selector: LabelSelector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "tier", "operator": Operator.IN, "values": ["web"]}],
    }
    rule: RelatedRule = {
        "name": "settings",
        "apiVersion": "v1",
        "resource": "configmaps",
        "labelSelector": selector,
    }
    settings = require_related(request, response, rule)
    if settings is not None:
        response["status"] = {name: found.get("data", {}) for name, found in settings.items()}
    return response


def finalize(request: SyncRequest) -> SyncResponse:
    return {"finalized": not request["children"]["Deployment.apps/v1"]}


def customize(request: CustomizeRequest) -> CustomizeResponse:
    namespace = request["parent"]["metadata"].get("namespace", "")
    rule: RelatedRule = {"apiVersion": "v1", "resource": "secrets", "namespace": namespace}
    return {"relatedResources": [rule]}


def decorate(request: DecorateRequest) -> DecorateResponse:
    name = request["object"]["metadata"]["name"]
    return {"labels": {"seen": "true", "old": None}, "annotations": {"name": name}}


def map_input(request: MapRequest) -> MapResponse:
    found: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": request["input"]["metadata"]["name"]}}
    response: MapResponse = {"outputs": [found], "resyncAfterSeconds": 60}
    require_related(request, response, {"apiVersion": "v1", "resource": "pods", "name": "pods"})
    return response


def finalize_input(request: MapFinalizeRequest) -> MapResponse:
    return {"outputs": [], "finalized": request["input"] is None}


def tombstone(request: TombstoneRequest) -> TombstoneResponse:
    return {"outputs": list(request["outputs"]["ConfigMap.v1"].values()), "resyncAfterSeconds": 60}


def programs() -> None:
    mapper = Mapper(map=map_input, tombstone=tombstone, finalize=finalize_input, customize=customize)
    hooks = (Composite(sync, finalize, customize), Decorator(sync=decorate), mapper)
    options = Options(threads=4, build_id="v1", grace_period=5)
    server = Server(*hooks, listen="127.0.0.1:0", options=options)
    server.start()
    count: int = server.trigger(Trigger(parents=["shop/hi"], reason="tick"), timeout=1)
    gateway = Gateway("gateway.example.com:9444", token_file="token")
    attachment: Attachment = attach(
        Composite(sync=sync),
        gateway=gateway,
        intercept=Intercept("CompositeController", "hello", label_selector="team=blue"),
        options=options,
        backoff=Backoff(maximum=5),
    )
    count += trigger(gateway, "greeter", Trigger(controller_kind=ControllerKind.COMPOSITE, controller_name="hello"))
    attachment.stop()
    hookloop.testing.call(sync, "website.yaml", children=["Pod.v1"])["children"]
    hookloop.testing.decorate(decorate, [{"apiVersion": "v1", "kind": "Pod"}])
    hookloop.testing.map_input(map_input, "schedule.yaml", outputs=["ConfigMap.v1"])
    hookloop.testing.tombstone(tombstone, "schedule.yaml", map_key="Pod/shop/in")
    hookloop.testing.customize(customize, "website.yaml")
    serve(*hooks, args=[])
