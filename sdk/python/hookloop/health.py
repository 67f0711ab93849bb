"""Serves the standard health service (grpc.health.v1), which tells whether the server accepts
calls.
"""

import threading
from collections.abc import Iterator
from typing import Any

import grpc

from hookloop.wellknown import HealthCheckRequest, HealthCheckResponse

SERVICE = "grpc.health.v1.Health"
SERVING, NOT_SERVING = 1, 2


class Health:
    """Reports SERVING for these services until shutdown.

    Each watch uses a thread of the server, so their number is limited. When there are too many, a
    watch fails with UNIMPLEMENTED, and the client works without health checks.
    """

    def __init__(self, services: set[str], watches: int):
        self._services = services | {""}
        self._free_watches = threading.Semaphore(watches)
        self._changed = threading.Condition()  # guards _serving; watches wait for it
        self._serving = True

    def shutdown(self) -> None:
        """Reports NOT_SERVING from now on, to open watches too."""
        with self._changed:
            self._serving = False
            self._changed.notify_all()

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns a handler for a gRPC server."""
        codec = {
            "request_deserializer": HealthCheckRequest.FromString,
            "response_serializer": HealthCheckResponse.SerializeToString,
        }
        methods = {
            "Check": grpc.unary_unary_rpc_method_handler(self._check, **codec),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch, **codec),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def _check(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._check_service(request.service, context)
        return HealthCheckResponse(status=SERVING if self._serving else NOT_SERVING)

    def _watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        self._check_service(request.service, context)
        if not self._free_watches.acquire(blocking=False):
            text = "the server has as many watches as it allows"
            context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        try:
            if not context.add_callback(self._notify):  # the call has ended already
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
            text = f"no service {service!r}; expected one of {sorted(self._services)}"
            context.abort(grpc.StatusCode.NOT_FOUND, text)
