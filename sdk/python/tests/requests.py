"""Requests like those of the engine, and a server on loopback."""

import contextlib
import json

import grpc

from hookloop import Options, Server
from hookloop.composite.v1 import composite_pb2
from hookloop.decorator.v1 import decorator_pb2
from hookloop.hook.v1 import observed_pb2
from hookloop.map.v1 import map_pb2
from tests.engine import shape_of

BIG = 2**53 + 1  # the first integer that a double cannot hold


def message(api_version, kind, namespace, name):
    """Returns an observed object with a large integer in it."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"n": BIG}}
    return observed_pb2.ObservedObject(
        api_version=api_version,
        kind=kind,
        namespace=namespace,
        name=name,
        body=json.dumps(body).encode(),
    )


def sync_request(kind=composite_pb2.SyncRequest):
    """Returns a request for a parent in the namespace shop with two Pods, one of them in another
    namespace, no Deployment, and three related resources."""
    request = kind(
        controller=message("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "hello"),
        parent=message("example.com/v1", "Greeting", "shop", "hi"),
        children=[
            observed_pb2.ObjectGroup(
                api_version="v1",
                kind="Pod",
                objects=[
                    message("v1", "Pod", "other", "far"),
                    message("v1", "Pod", "shop", "near"),
                ],
            ),
            observed_pb2.ObjectGroup(api_version="apps/v1", kind="Deployment"),
        ],
    )
    namespaces = request.related.add(api_version="v1", kind="Namespace", resource="namespaces")
    namespaces.items.objects.append(message("v1", "Namespace", "", "shop"))
    spaces = request.related.add(
        api_version="v1", kind="Namespace", resource="namespaces", name="spaces"
    )
    spaces.items.SetInParent()
    certificates = request.related.add(api_version="cert-manager.io/v1", resource="certificates")
    certificates.not_found.message = "no certificates"
    secrets = request.related.add(api_version="v1", kind="Secret", resource="secrets")
    secrets.error.code, secrets.error.message = 7, "not allowed"
    return request


def decorator_request(kind=decorator_pb2.SyncRequest):
    """Returns a request for an object to decorate."""
    return kind(
        controller=message("metacontroller.k8s.io/v1alpha1", "DecoratorController", "", "hello"),
        object=message("v1", "ConfigMap", "shop", "hi"),
    )


def map_request(kind=map_pb2.MapRequest, **fields):
    """Returns a request about an input in the namespace shop with two outputs, and no Secret."""
    return kind(
        controller=message("metacontroller.k8s.io/v1alpha1", "MapController", "", "hello"),
        parent=message("example.com/v1", "Greeting", "shop", "hi"),
        map_key="Pod/shop/in",
        outputs=[
            observed_pb2.ObjectGroup(
                api_version="v1",
                kind="ConfigMap",
                objects=[message("v1", "ConfigMap", "shop", name) for name in ("one", "two")],
            ),
            observed_pb2.ObjectGroup(api_version="v1", kind="Secret"),
        ],
        **fields,
    )


def customize_request():
    """Returns a request for rules."""
    return composite_pb2.CustomizeRequest(
        controller=message("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "hello"),
        parent=message("example.com/v1", "Greeting", "shop", "hi"),
    )


@contextlib.contextmanager
def serving(*hooks, threads=Options.threads, build_id="", **fields):
    """Yields a channel to a server on loopback, and the server."""
    options = Options(threads=threads, build_id=build_id)
    server = Server(*hooks, listen="127.0.0.1:0", options=options, **fields)
    server.start()
    try:
        with grpc.insecure_channel(server.address) as channel:
            yield channel, server
    finally:
        server.stop(grace_period=0)


def invoke(channel, method, request, **options):
    """Calls one of the services' methods."""
    shape = shape_of(request)
    call = channel.unary_unary(
        f"/{shape.service}/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=shape.message(method, "Response").FromString,
    )
    return call(request, timeout=30, **options)
