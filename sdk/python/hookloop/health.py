"""The standard health service (grpc.health.v1): whether the server takes questions."""

import threading
from collections.abc import Iterator
from typing import Any

import grpc

from hookloop.wellknown import HealthCheckRequest, HealthCheckResponse

SERVICE = "grpc.health.v1.Health"
SERVING, NOT_SERVING = 1, 2


class Health:
    """Says SERVING for some services until it is told to shut down.

    A watch occupies one of the server's threads. So that watches never take all of them, no more are served than given; further ones are
    told UNIMPLEMENTED, with which clients do without.
    """

    def __init__(self, services: set[str], watches: int):
        self._services = services | {""}
        self._free_watches = threading.Semaphore(watches)
        self._changed = threading.Condition()  # guards _serving, and what a watch waits for
        self._serving = True

    def shutdown(self) -> None:
        """Says NOT_SERVING from now on, to those who watch too."""
        with self._changed:
            self._serving = False
            self._changed.notify_all()

    def handler(self) -> grpc.GenericRpcHandler:
        """What a gRPC server needs."""
        codec = {"request_deserializer": HealthCheckRequest.FromString, "response_serializer": HealthCheckResponse.SerializeToString}
        return grpc.method_handlers_generic_handler(SERVICE, {
            "Check": grpc.unary_unary_rpc_method_handler(self._check, **codec),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch, **codec),
        })

    def _check(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._check_service(request.service, context)
        return HealthCheckResponse(status=SERVING if self._serving else NOT_SERVING)

    def _watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        self._check_service(request.service, context)
        if not self._free_watches.acquire(blocking=False):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "this server is watched by as many clients as it allows")
        try:
            if not context.add_callback(self._notify):  # the client has gone already
                return
            if self._serving:
                yield HealthCheckResponse(status=SERVING)
                with self._changed:
                    self._changed.wait_for(lambda: not self._serving or not context.is_active())
            if context.is_active():
                yield HealthCheckResponse(status=NOT_SERVING)
        finally:
            self._free_watches.release()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _check_service(self, service: str, context: grpc.ServicerContext) -> None:
        if service not in self._services:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no service {service!r}; expected one of {sorted(self._services)}")
