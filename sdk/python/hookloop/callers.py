"""Authenticates callers of a server by certificate name and by token."""

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

# gRPC's names for the names in a peer's certificate.
NAMES = ("x509_common_name", "x509_subject_alternative_name")

log = logging.getLogger("hookloop")


class Tokens:
    """Checks tokens against a file that lists one token on each line.

    It reads the file again when the file changes. While the file cannot be read, no token is
    accepted. The constructor raises OSError or ValueError if it cannot read the file.
    """

    def __init__(self, file: str):
        self._file = pathlib.Path(file)
        self._lock = threading.Lock()  # guards the fields below
        self._loaded_version: Any = None
        self._sums: list[bytes] = []
        self._error: Optional[str] = None
        self._loaded_version, self._sums = self._file_version(), self._read()

    def accepts(self, token: str) -> bool:
        """Reports whether the file contains the token. It takes the same time for every token.
        OSError is raised if the file cannot be read.
        """
        with self._lock:
            self._reload()
            if self._error is not None:
                raise OSError(self._error)
            sums = list(self._sums)
        actual = _sum(token)
        return any([hmac.compare_digest(actual, expected) for expected in sums])

    def _reload(self) -> None:
        try:
            version = self._file_version()
            if version == self._loaded_version:
                return
            self._loaded_version = version
            self._sums, self._error = self._read(), None
        except (OSError, ValueError) as error:
            if self._error != str(error):
                log.error("cannot read the tokens of callers; every call is refused: %s", error)
            self._loaded_version, self._error = None, str(error)

    def _file_version(self) -> tuple[int, ...]:
        found = os.stat(self._file)
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev

    def _read(self) -> list[bytes]:
        lines = self._file.read_text(encoding="ascii").splitlines()
        sums = [_sum(line.strip()) for line in lines if line.strip()]
        if not sums:
            raise ValueError(f"{self._file} has no token, expected one in each line")
        return sums


def _sum(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


class CallerInterceptor(grpc.ServerInterceptor):
    """Refuses calls before their bodies are read.

    Health checks are always accepted, because probes send no credentials. The TLS handshake has
    already checked who signed the caller's certificate.
    """

    def __init__(self, name: str, tokens: Optional[Tokens]):
        self._name, self._tokens = name, tokens

    def intercept_service(
        self,
        continuation: Callable[[Any], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Returns a method's handler, or None if the method is unknown."""
        handler = continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(f"/{health.SERVICE}/"):
            return handler
        codec = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.stream_stream is not None:
            stream = self._streamed(handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(stream, **codec)
        # gRPC calls a handler of single requests only after it has read the body, and a handler of
        # streams before.
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
        refusal = self._refusal(context)
        if refusal is not None:
            context.abort(*refusal)

    def _refusal(self, context: grpc.ServicerContext) -> Optional[tuple[grpc.StatusCode, str]]:
        """Returns the status with which to refuse a call, or None if the call is accepted."""
        refuse = grpc.StatusCode.UNAUTHENTICATED
        peer = context.auth_context()
        names = [name.decode(errors="replace") for key in NAMES for name in peer.get(key, ())]
        if self._name and self._name not in names:
            return refuse, f'the caller\'s certificate is for {names}, expected "{self._name}"'
        if self._tokens is None:
            return None
        sent = [value for key, value in context.invocation_metadata() if key == "authorization"]
        if len(sent) != 1:
            text = "the call has no token; expected the header authorization: Bearer TOKEN"
            return refuse, text
        kind, _, token = sent[0].partition(" ")
        if kind != "Bearer":
            return refuse, "the call has another kind of authorization; expected Bearer"
        try:
            accepted = self._tokens.accepts(token)
        except OSError:  # which Tokens has logged
            return grpc.StatusCode.UNAVAILABLE, "the hook cannot read its file of tokens"
        text = "the call's token is not one that this hook knows"
        return None if accepted else (refuse, text)


def warn_if_open(address: str) -> None:
    """Logs a warning if a server accepts everyone, unless it listens on loopback."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        text = "anyone who reaches %s can call the hook; set --client-ca or --token-file"
        log.warning(text, address)
