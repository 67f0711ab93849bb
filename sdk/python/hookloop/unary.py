"""Serves hooks with one call for each question: the services of package hookloop.hook.v1."""

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Executor, Future
from typing import Any, NoReturn

import grpc

from hookloop import wellknown
from hookloop.service import Route, display_name, objects_by_slot, with_desired
from hookloop.status import DEADLINE_EXCEEDED, Failure, failure, report_abandoned, report

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
        objects = objects_by_slot(route.shape, route.method, message).__getitem__
        return with_desired(route.shape, *route.call(message, objects, metadata))

    def serve(message: Any, context: grpc.ServicerContext) -> Any:
        parent = display_name(getattr(message, route.shape.parent))
        is_wanted = _wanted(context)

        def run() -> Any:
            if not is_wanted():
                raise CancelledError
            return answer(message, context.invocation_metadata())

        future = pool.submit(run)
        if not context.add_callback(lambda: _abandon(future, route.path, parent)):
            _abandon(future, route.path, parent)
        try:
            return future.result()
        except CancelledError:
            failed = Failure(DEADLINE_EXCEEDED, "the call ended before the hook's function began")
        except (Exception, SystemExit) as error:  # whatever a hook's function raises is an error of this call only
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
    """Says, whenever it is called, whether an answer is still wanted."""
    remaining = context.time_remaining()
    deadline = math.inf if remaining is None else time.monotonic() + remaining
    return lambda: time.monotonic() < deadline and context.is_active()


def _abandon(future: Future, method: str, parent: str) -> None:
    """Takes a call that has ended out of the pool's queue. A function that has begun runs on."""
    if not future.done():
        future.cancel()
        report_abandoned(method, parent, "its time is over, or the engine has cancelled it")


def _abort(context: grpc.ServicerContext, failed: Failure) -> NoReturn:
    if failed.detail is not None:
        full = wellknown.Status(code=failed.code, message=failed.message, details=[failed.detail])
        context.set_trailing_metadata(((DETAILS, full.SerializeToString()),))
    context.abort(_CODES[failed.code], failed.message)
