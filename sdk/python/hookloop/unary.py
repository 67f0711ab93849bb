"""Serves hooks with one call for each question: the services of package hookloop.hook.v1."""

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NoReturn

import grpc

from hookloop import wellknown
from hookloop.service import Route, whole, within
from hookloop.status import Failure, failure

DETAILS = "grpc-status-details-bin"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Unary(grpc.GenericRpcHandler):
    """What a gRPC server needs for routes. Functions run in the pool."""

    def __init__(self, routes: Mapping[str, Route], pool: Executor):
        self._handlers = {path: _handler(route, pool) for path, route in routes.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a method; None where there is none."""
        return self._handlers.get(handler_call_details.method)


def _handler(route: Route, pool: Executor) -> grpc.RpcMethodHandler:
    def answer(message: Any, metadata: Any) -> Any:
        objects = within(route.shape, route.method, message).__getitem__
        return whole(route.shape, *route.ask(message, objects, metadata))

    def serve(message: Any, context: grpc.ServicerContext) -> Any:
        try:
            return pool.submit(answer, message, context.invocation_metadata()).result()
        except (Exception, SystemExit) as error:  # whatever a hook's function raises is an error of this call only
            failed = failure(error, route.path)
        return _abort(context, failed)

    return grpc.unary_unary_rpc_method_handler(
        serve,
        request_deserializer=route.shape.message(route.method, "Request").FromString,
        response_serializer=route.shape.message(route.method, "Response").SerializeToString,
    )


def _abort(context: grpc.ServicerContext, failed: Failure) -> NoReturn:
    if failed.detail is not None:
        full = wellknown.Status(code=failed.code, message=failed.message, details=[failed.detail])
        context.set_trailing_metadata(((DETAILS, full.SerializeToString()),))
    context.abort(_CODES[failed.code], failed.message)
