"""Connects to an engine's gateway with TLS and the hook's credentials."""

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
    """Says where a hook dials in, and with which credentials.

    address is host:port. token_file names a file with a ServiceAccount token that was issued for
    the gateway's audience. Instead of a token, client_cert and client_key can name PEM files with a
    client certificate. ca_file names a PEM file with the authorities that may sign the gateway's
    certificate; if it is empty, gRPC's own roots are used. Set server_name if the certificate is
    not for the host in address.

    Each connection reads the files again, so that you can rotate them. A wrong combination raises
    ValueError.
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
    """Opens a connection. If a file cannot be read, OSError names it."""
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
    """Opens a stream. Iterate over the returned call to read the engine's messages."""
    method = channel.stream_stream(
        f"/{SERVICE}/Attach",
        request_serializer=stream_pb2.HookMessage.SerializeToString,
        response_deserializer=stream_pb2.EngineMessage.FromString,
    )
    return method(messages, metadata=_metadata(gateway))


def trigger(
    gateway: Gateway, worker: str, request: Trigger = Trigger(), *, timeout: float = 30.0
) -> int:
    """Asks Hookloop to sync the parents of a worker, and returns how many it will sync.

    This makes a single call and needs no open stream. timeout is in seconds. TriggerError tells why
    Hookloop refused the trigger; OSError names a file that cannot be read.
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
