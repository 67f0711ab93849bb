"""Runs a gRPC server for hooks, for programs with their own main function."""

import errno
import pathlib
import socket
from typing import Optional

import grpc

from hookloop import build, service, streams
from hookloop.callers import CallerInterceptor, Tokens, warn_if_open
from hookloop.errors import TriggerError
from hookloop.health import Health
from hookloop.hooks import Hook
from hookloop.options import Options
from hookloop.pool import Pool
from hookloop.session import Limits
from hookloop.streams import StreamService
from hookloop.triggers import Trigger
from hookloop.unary import Unary

DEFAULT_LISTEN = "127.0.0.1:9443"  # on loopback, because without TLS a hook uses plain text
UNIX = "unix://"  # before the path of a socket
MAX_MESSAGE_BYTES = 16 << 20  # of a request or a response; the engine's limit
# Clients may ping more often than gRPC's default allows, so that engines find a dead connection.
MIN_PING_MS = 20_000


class Server:
    """Serves hooks over unary calls and over streams that the engine opens.

    listen is host:port, or a unix socket, unix:///run/hooks/hello.sock, for an engine in the same
    Pod. Port 0 picks a free port, which address then shows. A socket that a killed process has left
    behind is replaced, and one in use is an error. tls_cert and tls_key are PEM files; without them
    the server uses plain text.

    With client_ca, a PEM file with certificate authorities, callers must present a certificate that
    one of these authorities signed. With client_name, this certificate must contain the name as its
    common name or as an alternative name. With token_file, which lists one token on each line,
    callers must send the header "authorization: Bearer TOKEN". Each connection reads the TLS files
    again, and the token file is read again when it changes.

    Clients that watch the server's health use its threads, so that only a quarter as many may watch
    as there are threads. A wrong argument raises ValueError or TypeError; an address or a file that
    cannot be used raises OSError or RuntimeError.
    """

    address: str

    def __init__(
        self,
        *hooks: Hook,
        listen: str = DEFAULT_LISTEN,
        tls_cert: str = "",
        tls_key: str = "",
        client_ca: str = "",
        client_name: str = "",
        token_file: str = "",
        options: Options = Options(),
    ):
        routes = service.routes(hooks)
        threads = options.threads
        self._options = options
        self._functions = Pool(threads, "hookloop")
        self._streams = StreamService(
            routes,
            self._functions,
            Limits(calls=threads),
            options.build_id or build.build_id(routes.values()),
        )
        watches = max(1, threads // 4)
        services = {route.shape.service for route in routes.values()} | {streams.SERVICE}
        self._health = Health(services, watches)
        # The threads of calls wait for functions. Unary calls, watches and streams each have a
        # share of them, so that none of the three can occupy all.
        self._calls = Pool(threads + watches + streams.MAX_STREAMS, "hookloop-call")
        interceptors = []
        if client_name or token_file:
            tokens = Tokens(token_file) if token_file else None
            interceptors.append(CallerInterceptor(client_name, tokens))
        self._server = grpc.server(
            self._calls,
            interceptors=interceptors,
            options=(
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", MIN_PING_MS),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.so_reuseport", 0),  # a second hook at the same address is an error
            ),
        )
        handlers = (self._health.handler(), Unary(routes, self._functions), self._streams.handler())
        self._server.add_generic_rpc_handlers(handlers)
        self.address = self._bind(listen, _credentials(tls_cert, tls_key, client_ca, client_name))
        # The permissions of a socket's folder decide who can call.
        if not client_ca and not token_file and not listen.startswith(UNIX):
            warn_if_open(self.address)

    def _bind(self, listen: str, credentials: Optional[grpc.ServerCredentials]) -> str:
        if listen.startswith(UNIX):
            _check_socket(listen[len(UNIX) :])
            self._add_port(listen, credentials)
            return listen
        host, colon, _ = listen.rpartition(":")
        if not colon:
            raise ValueError(f"listen is {listen!r}, expected host:port or unix:///path")
        if not host:  # all addresses
            host, listen = "[::]", f"[::]{listen}"
        return f"{host}:{self._add_port(listen, credentials)}"

    def _add_port(self, listen: str, credentials: Optional[grpc.ServerCredentials]) -> int:
        if credentials is None:
            port: int = self._server.add_insecure_port(listen)
        else:
            port = self._server.add_secure_port(listen, credentials)
        if port == 0:
            raise OSError(f"cannot listen on {listen}")
        return port

    def start(self) -> None:
        """Starts to serve and returns at once."""
        self._server.start()

    def trigger(self, request: Trigger = Trigger(), *, timeout: float = 30.0) -> int:
        """Asks Hookloop to sync parents, over every open stream, and returns how many it will sync.

        A parent that two streams reach counts twice. timeout is how many seconds to wait for each
        engine. Each stream belongs to one controller; if no stream accepts the trigger,
        TriggerError tells the reason of the first refusal. If no stream is open, or if one ends
        meanwhile, ConnectionError is raised.
        """
        conversations = [each for each in self._streams.conversations() if each.open]
        futures = [conversation.trigger(request) for conversation in conversations]
        if not futures:
            raise ConnectionError("no stream is open")
        counts: list[int] = []
        failures: list[Exception] = []
        for future in futures:
            try:
                counts.append(future.result(timeout))
            except (TriggerError, ConnectionError) as error:
                failures.append(error)
        if not counts:
            raise failures[0]
        return sum(counts)

    def stop(self, grace_period: Optional[float] = None) -> None:
        """Stops accepting calls, and returns when the running ones have ended.

        grace_period limits the wait in seconds; None means the grace period in options.
        """
        grace = self._options.grace_period if grace_period is None else grace_period
        self._health.shutdown()
        self._streams.drain()
        self._server.stop(grace).wait()
        self._functions.shutdown(wait=False, cancel_futures=True)
        self._calls.shutdown(wait=False)


def _check_socket(path: str) -> None:
    """Raises OSError if a process serves the socket. gRPC replaces every socket, in use or not."""
    if not path.startswith("/"):
        raise ValueError(f"listen is {UNIX + path!r}, expected an absolute path as in unix:///path")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return
    raise OSError(errno.EADDRINUSE, "a process serves this socket", path)


def _credentials(
    cert: str, key: str, client_ca: str, client_name: str
) -> Optional[grpc.ServerCredentials]:
    """Returns TLS credentials, or None if no file is given. It reads the files once, so that a
    wrong file name is reported at the start.
    """
    if bool(cert) != bool(key):
        problem = "one of certificate and key is missing; expected both files, or neither"
        raise ValueError(f"TLS: {problem}")
    if client_name and not client_ca:
        problem = "without client authorities no caller has a certificate; expected both"
        raise ValueError(f"client name: {problem}")
    if client_ca and not cert:
        problem = "callers have certificates over TLS only; expected a certificate and its key, too"
        raise ValueError(f"client authorities: {problem}")
    if not cert:
        return None

    def load() -> grpc.ServerCertificateConfiguration:
        pair = (pathlib.Path(key).read_bytes(), pathlib.Path(cert).read_bytes())
        authorities = pathlib.Path(client_ca).read_bytes() if client_ca else None
        return grpc.ssl_server_certificate_configuration([pair], authorities)

    return grpc.dynamic_ssl_server_credentials(
        load(), load, require_client_authentication=bool(client_ca)
    )
