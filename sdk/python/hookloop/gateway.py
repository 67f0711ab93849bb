"""Reaches an engine's gateway: TLS, and who the hook is."""

import pathlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import grpc

from hookloop.errors import TriggerError
from hookloop.stream.v1 import gateway_pb2, stream_pb2
from hookloop.triggers import trigger_message

SERVICE = "hookloop.stream.v1.GatewayService"
MAX_MESSAGE_BYTES = 16 << 20  # bytes; larger messages come in fragments
PING_MS, PONG_MS = 10_000, 2_000  # so that a connection that died without a word, behind NAT for example, is noticed


@dataclass(frozen=True)
class Gateway:
    """Where a gateway is, and the files with which a hook proves who it is: a ServiceAccount's token, or a certificate and its key. Files
    are read for each connection, so that they may be rotated. Without a CA file, gRPC's own roots verify the gateway. server_name is the
    name in its certificate, where that is not the address's."""

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
            raise ValueError("gateway: one of client_cert and client_key is missing; expected both files, or neither")
        if not self.client_cert and not self.token_file:
            raise ValueError("gateway: neither token_file nor client_cert is set, expected one of them")

    def channel(self) -> grpc.Channel:
        """A new connection. OSError says which file cannot be read."""
        credentials = grpc.ssl_channel_credentials(*map(_read, (self.ca_file, self.client_key, self.client_cert)))
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.keepalive_time_ms", PING_MS),
            ("grpc.keepalive_timeout_ms", PONG_MS),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.enable_retries", 0),
        ]
        if self.server_name:
            options.append(("grpc.ssl_target_name_override", self.server_name))
        return grpc.secure_channel(self.address, credentials, options)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What says who calls. OSError says that the token cannot be read."""
        if not self.token_file:
            return ()
        return (("authorization", f"Bearer {pathlib.Path(self.token_file).read_text(encoding='ascii').strip()}"),)

    def attach(self, channel: grpc.Channel, messages: Iterable[Any]) -> Any:
        """Opens a stream: an iterator of what the engine sends."""
        method = channel.stream_stream(
            f"/{SERVICE}/Attach",
            request_serializer=stream_pb2.HookMessage.SerializeToString,
            response_deserializer=stream_pb2.EngineMessage.FromString,
        )
        return method(messages, metadata=self.metadata())


def _read(file: str) -> Any:
    return pathlib.Path(file).read_bytes() if file else None


def trigger(gateway: Gateway, worker: str, *, timeout: float = 30.0, **what: Any) -> int:
    """Asks for syncs of parents whose controllers refer to a worker, and returns how many there will be. No stream is needed for it.

    parents names them ("namespace/name", or "name" without a namespace), labels selects them as kubectl does, and controller limits them to
    one controller; reason, a few words, stands in the log and in traces. TriggerError says why there will be none.
    """
    request = gateway_pb2.TriggerRequest(worker=worker, trigger=trigger_message(**what))
    with gateway.channel() as channel:
        method = channel.unary_unary(
            f"/{SERVICE}/Trigger",
            request_serializer=gateway_pb2.TriggerRequest.SerializeToString,
            response_deserializer=gateway_pb2.TriggerResponse.FromString,
        )
        try:
            return method(request, timeout=timeout, metadata=gateway.metadata()).parents
        except grpc.RpcError as error:
            raise TriggerError(error.code().value[0], f"{gateway.address}: {error.details()}") from error
