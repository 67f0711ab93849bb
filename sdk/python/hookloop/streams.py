"""Serves HookStreamService, whose streams the engine opens."""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Any

import grpc

from hookloop import service, status
from hookloop.conversation import Conversation
from hookloop.service import Route
from hookloop.session import Limits, Machine, ProtocolError
from hookloop.states import States
from hookloop.stream.v1 import stream_pb2

SERVICE = "hookloop.stream.v1.HookStreamService"
_STATUS_CODES = {
    status.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    status.ABORTED: grpc.StatusCode.ABORTED,
    status.UNIMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
}
# How many streams may be open: an engine opens one for each hook of a controller. Each uses one of
# the server's threads.
MAX_STREAMS = 512


class StreamService:
    """Serves streams that engines open. Functions run in the pool."""

    def __init__(self, routes: Mapping[str, Route], pool: Executor, limits: Limits, build_id: str):
        self._routes, self._pool, self._limits, self._build_id = routes, pool, limits, build_id
        self._states = States()
        self._free = threading.Semaphore(MAX_STREAMS)
        self._lock = threading.Lock()  # guards the fields below
        self._open: set[Conversation] = set()
        self._stopping = False

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns a handler for a gRPC server."""
        method = grpc.stream_stream_rpc_method_handler(
            self._connect,
            request_deserializer=stream_pb2.EngineMessage.FromString,
            response_serializer=stream_pb2.HookMessage.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Connect": method})

    def conversations(self) -> list[Conversation]:
        """Returns the open conversations."""
        with self._lock:
            return list(self._open)

    def drain(self) -> None:
        """Asks for no more calls. A stream ends when its running calls are answered."""
        with self._lock:
            self._stopping = True
        for conversation in self.conversations():
            conversation.drain()

    def _connect(self, messages: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        if not self._free.acquire(blocking=False):
            text = f"this hook has {MAX_STREAMS} streams open, which is its limit"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        try:
            yield from self._converse(messages, context)
        finally:
            self._free.release()

    def _converse(self, messages: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        machine = Machine(
            lambda session_id: self._states.acquire(session_id, conversation.revoke),
            self._limits,
            self._build_id,
            methods=service.implemented_methods(self._routes),
        )
        conversation = Conversation(machine, self._routes, self._pool)
        with self._lock:
            self._open.add(conversation)
            stopping = self._stopping
        if stopping:
            conversation.drain()
        try:
            if context.add_callback(conversation.close):  # False if the call has ended already
                arguments = (messages, conversation)
                threading.Thread(
                    target=_read, args=arguments, name="hookloop-read", daemon=True
                ).start()
                yield from conversation.outgoing()
        finally:
            conversation.close()
            self._states.release(conversation.revoke)
            with self._lock:
                self._open.discard(conversation)
        if conversation.reason is not None:
            context.abort(_STATUS_CODES[conversation.reason.code], conversation.reason.message)


def _read(messages: Iterator[Any], conversation: Conversation) -> None:
    """Passes messages from the engine to the conversation until the stream ends."""
    try:
        for message in messages:
            conversation.receive(message)
    except ProtocolError:
        return  # the conversation has the reason
    except Exception:  # gRPC raises an untyped exception if the stream is lost
        conversation.close()
        return
    conversation.finish()
