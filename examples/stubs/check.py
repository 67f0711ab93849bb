"""Asks a hook of this folder directly, without an engine, and prints what it answers.

    check.py ADDRESS CERTIFICATES [ANSWER]

CERTIFICATES is the folder that prove.sh fills; ANSWER is the file for the hook's answer, as JSON
with sorted fields. Exit status 1: a check fails. It needs python3-grpcio, the Python SDK's
messages, and buf.
"""

import json
import os
import pathlib
import subprocess
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hookloop.composite.v1 import composite_pb2
from hookloop.rpc_status import status_pb2

HERE = pathlib.Path(__file__).parent
SERVICE = "hookloop.composite.v1.CompositeHookService"
SECONDS = 10  # the deadline of a call


def main(address, certificates, answer=None):
    certificates = pathlib.Path(certificates)
    failed = False
    with connect(address, certificates, "client") as channel:
        for name, expected, check in checks(channel, address, certificates):
            got = check()
            failed |= got != expected
            print(f"  {name}: {got}" if got == expected else f"✗ {name}: expected {expected!r}, got {got!r}")
        if answer:
            pathlib.Path(answer).write_text(normalized(ask(channel)), encoding="utf-8")
    return 1 if failed else 0


def checks(channel, address, certificates):
    """The checks: name, expected text, function."""
    for service in "", SERVICE:
        yield f"health of {service or 'the server'}", "SERVING", lambda s=service: health(channel, s)
    for who, names in ("nobody", None), ("another authority's client", "stranger"), ("another hook", "server"):
        yield f"called by {who}", "refused", lambda n=names: refusal(address, certificates, n)
    invalid, pending = "INVALID_ARGUMENT InvalidImage", "UNAVAILABLE ImagePending, again after 1 s"
    yield "an image with a space", invalid, lambda: error(channel, image="a b")
    yield "an image that is not built", pending, lambda: error(channel, image="pending")
    large = {"a": "é" * (5 << 19)}
    yield "a page of 5 MiB within 1 ms", "DEADLINE_EXCEEDED", lambda: error(channel, 0.001, html=large).split()[0]
    yield "a page of 5 MiB", "no error", lambda: error(channel, html=large)


def connect(address, certificates, who):
    """Opens a channel with the certificate of who; None presents none."""
    read = lambda name: (certificates / name).read_bytes()
    key, chain = (read(who + ".key"), read(who + ".crt")) if who else (None, None)
    return grpc.secure_channel(
        address, grpc.ssl_channel_credentials(read("ca.crt"), key, chain),
        [("grpc.ssl_target_name_override", "website.stubs.svc"), ("grpc.max_receive_message_length", 16 << 20)])


def ask(channel, seconds=SECONDS, **spec):
    """Asks for the desired state of a Website."""
    spec = {"replicas": 2, "unreachableSeconds": 2**53 + 1, "html": {"a.html": "咖啡 🍰", "b.html": ""}} | spec
    parent = {"apiVersion": "demo.example.com/v1", "kind": "Website", "spec": spec,
              "metadata": {"name": "shop", "namespace": "stubs"}}
    request = composite_pb2.SyncRequest()
    request.parent.api_version, request.parent.kind = parent["apiVersion"], parent["kind"]
    request.parent.namespace, request.parent.name = "stubs", "shop"
    request.parent.body = json.dumps(parent, ensure_ascii=False).encode()
    for version, kind in ("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("v1", "Service"):
        request.children.add(api_version=version, kind=kind)
    method = channel.unary_unary(f"/{SERVICE}/Sync", composite_pb2.SyncRequest.SerializeToString,
                                 composite_pb2.SyncResponse.FromString)
    return method(request, timeout=seconds)


def normalized(response):
    """The answer as text: bodies as JSON with sorted fields, the rest as protobuf's text."""
    parts = [json.loads(response.status)] + [json.loads(child.body) for child in response.children]
    for child in response.children:
        child.ClearField("body")
        child.ClearField("encoding")
    response.ClearField("status")
    return "".join(json.dumps(p, sort_keys=True, ensure_ascii=False) + "\n" for p in parts) + str(response)


def health(channel, service):
    """Asks the health service. Its messages have one field each: a name, and a number."""
    call = channel.unary_unary("/grpc.health.v1.Health/Check")
    request = bytes([0x0A, len(service)]) + service.encode() if service else b""
    return {b"\x08\x01": "SERVING"}.get(call(request, timeout=SECONDS), "not SERVING")


def refusal(address, certificates, who):
    """Asks with a certificate that the hook must not accept."""
    try:
        with connect(address, certificates, who) as channel:
            health(channel, "")
    except grpc.RpcError as e:
        return "refused" if e.code() == grpc.StatusCode.UNAVAILABLE else str(e.code())
    return "accepted"


def error(channel, seconds=SECONDS, **spec):
    """Asks, and describes the error: the code, and the details of google.rpc.Status."""
    try:
        ask(channel, seconds, **spec)
    except grpc.RpcError as e:
        return e.code().name + details(dict(e.trailing_metadata() or {}).get("grpc-status-details-bin"), e)
    return "no error"


def details(encoded, failure):
    if encoded is None:
        return f" without google.rpc.Status: {failure.details()}"
    status = status_pb2.Status.FromString(encoded)
    if (status.code, status.message) != (failure.code().value[0], failure.details()):
        return f": its google.rpc.Status differs: {status}"
    text = ""
    for detail in status.details:
        message = DETAILS[detail.type_url.removeprefix("type.googleapis.com/")]()
        detail.Unpack(message)
        text += f" {message.reason}" if hasattr(message, "reason") else f", again after {message.retry_delay.seconds} s"
    return text


def load_details():
    """The classes of ErrorInfo and RetryInfo, which Debian has no Python package for."""
    buf = os.environ.get("BUF", HERE / "../../.cache/bin/buf")
    command = [buf, "build", HERE / "proto", "--path", HERE / "proto/google", "-o", "-#format=binpb"]
    built = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    files = descriptor_pb2.FileDescriptorSet.FromString(built)
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName(name))
            for name in ("google.rpc.ErrorInfo", "google.rpc.RetryInfo")}


DETAILS = load_details()

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
