"""Connections to an engine's gateway: TLS, and the identity of the hook."""

import pathlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

import grpc

from hookloop.errors import TriggerError
from hookloop.stream.v1 import gateway_pb2, stream_pb2
from hookloop.triggers import Trigger, trigger_message

SERVICE = "hookloop.stream.v1.GatewayService"
MAX_MESSAGE_BYTES = 16 << 20  # larger messages travel in fragments
# Keepalive finds a dead connection, for example behind NAT.
KEEPALIVE_TIME_MS, KEEPALIVE_TIMEOUT_MS = 10_000, 2_000


@dataclass(frozen=True)
class Gateway:
    """The address of a gateway, and the files for TLS and authentication.

    address is host:port. token_file holds a ServiceAccount's token of the gateway's audience;
    client_cert and client_key are PEM files that replace it. ca_file is a PEM file with the
    authorities of the gateway's certificate (default: gRPC's roots), and server_name the name in
    that certificate if it is not the host of the address. Each connection reads the files again, so
    that they can be rotated. A wrong combination raises ValueError.
    """

    address: str
    ca_file: str = ""
    token_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    server_name: str = ""

    def __post_init__(self) -> None:
        if not self.address:
            raise ValueError("gateway: the address is empty, expected host:port")
        if bool(self.client_cert) != bool(self.client_key):
            raise ValueError(
                "gateway: one of client_cert and client_key is missing; "
                "expected both files, or neither"
            )
        if not self.client_cert and not self.token_file:
            raise ValueError(
                "gateway: neither token_file nor client_cert is set, expected one of them"
            )


def open_channel(gateway: Gateway) -> grpc.Channel:
    """Opens a new connection. OSError names a file that cannot be read."""
    files = (gateway.ca_file, gateway.client_key, gateway.client_cert)
    credentials = grpc.ssl_channel_credentials(*map(_read, files))
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.enable_retries", 0),
    ]
    if gateway.server_name:
        options.append(("grpc.ssl_target_name_override", gateway.server_name))
    return grpc.secure_channel(gateway.address, credentials, options)


def open_stream(gateway: Gateway, channel: grpc.Channel, messages: Iterable[Any]) -> Any:
    """Opens a stream, and returns the call, which iterates over the engine's messages."""
    method = channel.stream_stream(
        f"/{SERVICE}/Attach",
        request_serializer=stream_pb2.HookMessage.SerializeToString,
        response_deserializer=stream_pb2.EngineMessage.FromString,
    )
    return method(messages, metadata=_metadata(gateway))


def trigger(
    gateway: Gateway, worker: str, request: Trigger = Trigger(), *, timeout: float = 30.0
) -> int:
    """Requests syncs of parents of a worker without an open stream.

    It returns the number of parents that Hookloop will sync. timeout is in seconds. TriggerError
    has the reason of a refusal, OSError the file that cannot be read.
    """
    message = gateway_pb2.TriggerRequest(worker=worker, trigger=trigger_message(request))
    with open_channel(gateway) as channel:
        method = channel.unary_unary(
            f"/{SERVICE}/Trigger",
            request_serializer=gateway_pb2.TriggerRequest.SerializeToString,
            response_deserializer=gateway_pb2.TriggerResponse.FromString,
        )
        try:
            response = method(message, timeout=timeout, metadata=_metadata(gateway))
        except grpc.RpcError as error:
            text = f"{gateway.address}: {error.details()}"
            raise TriggerError(error.code().value[0], text) from error
    return int(response.parents)


def _metadata(gateway: Gateway) -> tuple[tuple[str, str], ...]:
    if not gateway.token_file:
        return ()
    token = pathlib.Path(gateway.token_file).read_text(encoding="ascii").strip()
    return (("authorization", f"Bearer {token}"),)


def _read(file: str) -> Optional[bytes]:
    return pathlib.Path(file).read_bytes() if file else None
