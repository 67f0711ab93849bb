"""Serves the hook services with one call for each request."""

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

import grpc

from hookloop.rpc_status import Status
from hookloop.service import Route, display_name, objects_by_slot, with_desired
from hookloop.status import DEADLINE_EXCEEDED, Failure, failure, report, report_abandoned

DETAILS = "grpc-status-details-bin"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Unary(grpc.GenericRpcHandler):
    """Handles unary calls for a gRPC server. Functions run in the pool."""

    def __init__(self, routes: Mapping[str, Route], pool: Executor):
        self._handlers = {path: _handler(route, pool) for path, route in routes.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Returns a method's handler, or None if the method is unknown."""
        return self._handlers.get(handler_call_details.method)


def _handler(route: Route, pool: Executor) -> grpc.RpcMethodHandler:
    def call(message: Any, metadata: Any) -> Any:
        objects = objects_by_slot(route.shape, route.method, message).__getitem__
        return with_desired(route.shape, *route.call(message, objects, metadata))

    def serve(message: Any, context: grpc.ServicerContext) -> Any:
        parent = display_name(getattr(message, route.shape.parent))
        is_wanted = _wanted(context)

        def run() -> Any:
            if not is_wanted():
                raise CancelledError
            return call(message, context.invocation_metadata())

        future = pool.submit(run)
        if not context.add_callback(lambda: _abandon(future, route.path, parent)):
            _abandon(future, route.path, parent)
        try:
            return future.result()
        except CancelledError:
            text = "the call ended before the hook's function began"
            failed = Failure(DEADLINE_EXCEEDED, text)
        except (Exception, SystemExit) as error:  # an exception of a function ends only its call
            if is_wanted():
                report(error, route.path, parent)
            failed = failure(error)
        return _abort(context, failed)

    return grpc.unary_unary_rpc_method_handler(
        serve,
        request_deserializer=route.shape.message(route.method, "Request").FromString,
        response_serializer=route.shape.message(route.method, "Response").SerializeToString,
    )


def _wanted(context: grpc.ServicerContext) -> Callable[[], bool]:
    """Returns a function that tells whether the caller still waits for the response."""
    remaining = context.time_remaining()
    deadline = math.inf if remaining is None else time.monotonic() + remaining
    return lambda: time.monotonic() < deadline and bool(context.is_active())


def _abandon(future: "Future[Any]", method: str, parent: str) -> None:
    """Removes a call that has ended from the pool's queue. A function that has started runs on."""
    if not future.done():
        future.cancel()
        report_abandoned(method, parent, "its timeout passed, or the engine cancelled it")


def _abort(context: grpc.ServicerContext, failed: Failure) -> None:
    """Ends a call with a status. It raises the exception that context.abort raises."""
    if failed.detail is not None:
        status = Status(code=failed.code, message=failed.message, details=[failed.detail])
        context.set_trailing_metadata(((DETAILS, status.SerializeToString()),))
    context.abort(_CODES[failed.code], failed.message)
