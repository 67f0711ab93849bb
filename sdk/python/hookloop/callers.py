"""Who may call a server: the authority and the name of a caller's certificate, or a token."""

import hashlib
import hmac
import ipaddress
import logging
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Optional

import grpc

from hookloop import health

NAMES = ("x509_common_name", "x509_subject_alternative_name")  # of a peer's certificate, as gRPC calls them

log = logging.getLogger("hookloop")


class Tokens:
    """The tokens that callers may send, one in each line of a file. It is read anew when it has changed; while it cannot be read, no token
    is accepts. OSError and ValueError say at the beginning why it cannot be read."""

    def __init__(self, file: str):
        self._file = pathlib.Path(file)
        self._lock = threading.Lock()  # guards all below
        self._loaded_version: Any = None
        self._sums: list[bytes] = []
        self._error: Optional[str] = None
        self._loaded_version, self._sums = self._file_version(), self._read()

    def accepts(self, token: str) -> bool:
        """Whether a token is one of the file, in a time that does not depend on them. OSError says that the file cannot be read."""
        with self._lock:
            self._reload()
            if self._error is not None:
                raise OSError(self._error)
            sums = list(self._sums)
        asked = _sum(token)
        return any([hmac.compare_digest(asked, known) for known in sums])

    def _reload(self) -> None:
        try:
            version = self._file_version()
            if version == self._loaded_version:
                return
            self._loaded_version = version
            self._sums, self._error = self._read(), None
        except (OSError, ValueError) as error:
            if self._error != str(error):
                log.error("the tokens of callers cannot be read; every call is refused: %s", error)
            self._loaded_version, self._error = None, str(error)

    def _file_version(self) -> tuple[int, ...]:
        found = os.stat(self._file)
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev

    def _read(self) -> list[bytes]:
        tokens = [line.strip() for line in self._file.read_text(encoding="ascii").splitlines()]
        sums = [_sum(token) for token in tokens if token]
        if not sums:
            raise ValueError(f"{self._file} has no token, expected one in each line")
        return sums


def _sum(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


class CallerInterceptor(grpc.ServerInterceptor):
    """Refuses calls before their bodies are read. The health service is for everyone: probes have no credentials. That a caller's
    certificate is of the right authority, the TLS handshake has checked."""

    def __init__(self, name: str, tokens: Optional[Tokens]):
        self._name, self._tokens = name, tokens

    def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a method; None where there is none."""
        handler = continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(f"/{health.SERVICE}/"):
            return handler
        codec = {"request_deserializer": handler.request_deserializer, "response_serializer": handler.response_serializer}
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(self._streamed(handler.stream_stream), **codec)
        # As a stream of one request, because a handler of single requests is called when the body is there.
        return grpc.stream_unary_rpc_method_handler(self._single(handler.unary_unary), **codec)

    def _streamed(self, serve: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def admitted(messages: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            self._admit(context)
            yield from serve(messages, context)

        return admitted

    def _single(self, serve: Callable[..., Any]) -> Callable[..., Any]:
        def admitted(messages: Iterator[Any], context: grpc.ServicerContext) -> Any:
            self._admit(context)
            message = next(messages, None)
            if message is None:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call has no request")
            return serve(message, context)

        return admitted

    def _admit(self, context: grpc.ServicerContext) -> None:
        refused = self._refusal(context)
        if refused is not None:
            context.abort(*refused)

    def _refusal(self, context: grpc.ServicerContext) -> Optional[tuple[grpc.StatusCode, str]]:
        names = [name.decode(errors="replace") for field in NAMES for name in context.auth_context().get(field, ())]
        if self._name and self._name not in names:
            return grpc.StatusCode.UNAUTHENTICATED, f'the caller\'s certificate is for {names}, expected "{self._name}"'
        if self._tokens is None:
            return None
        sent = [value for key, value in context.invocation_metadata() if key == "authorization"]
        if len(sent) != 1:
            return grpc.StatusCode.UNAUTHENTICATED, "the call has no token; expected the header authorization: Bearer TOKEN"
        kind, _, token = sent[0].partition(" ")
        if kind != "Bearer":
            return grpc.StatusCode.UNAUTHENTICATED, "the call has another kind of authorization; expected Bearer"
        try:
            accepts = self._tokens.accepts(token)
        except OSError:  # which is logged
            return grpc.StatusCode.UNAVAILABLE, "the hook cannot read its file of tokens"
        return None if accepts else (grpc.StatusCode.UNAUTHENTICATED, "the call's token is not one that this hook knows")


def warn_if_open(address: str) -> None:
    """Warns of a server that anyone may call."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        log.warning("anyone who reaches %s can call the hook; set --client-ca or --token-file", address)
