"""A gRPC server for hooks, for programs that have a main function of their own. hookloop.serve is a whole one."""

import pathlib
from typing import Any, Optional

import grpc

from hookloop import build, service, streams
from hookloop.callers import CallerInterceptor, Tokens, warn_if_open
from hookloop.streams import StreamService
from hookloop.errors import TriggerError
from hookloop.health import Health
from hookloop.pool import Pool
from hookloop.session import Limits
from hookloop.triggers import trigger_message
from hookloop.unary import Unary

DEFAULT_LISTEN = "127.0.0.1:9443"  # on loopback, because without TLS a hook speaks plain text
DEFAULT_GRACE_PERIOD = 10.0  # seconds that calls under way may take once the server is told to stop
DEFAULT_THREADS = 32
MAX_MESSAGE_BYTES = 16 << 20  # bytes of a question or an answer; the engine's limit
MIN_PING_MS = 20_000  # clients may ping more often than gRPC's default allows, so that engines notice a dead connection soon


class Server:
    """Serves hooks, by single calls and over streams. Functions are called concurrently, in as many threads as `threads` says; a quarter as
    many clients may watch the server's health.

    With tls_cert and tls_key, PEM files, it speaks TLS. With client_ca, the authorities of callers' certificates, only who has one can
    connect, and with client_name only who has one for that name (its common name, or an alternative one) can call. With token_file, which has
    one token in each line, a call has the header "authorization: Bearer TOKEN" with one of them. Files are read anew: those of TLS for each
    connection, that of tokens when it changes.
    Port 0 takes a free one; address is where the server listens once it is started. build_id names the hook's version: engines ask again
    about everything when it changes. Without one it is a hash of the files in which the functions stand.
    """

    def __init__(
        self,
        *hooks: service.Hook,
        listen: str = DEFAULT_LISTEN,
        tls_cert: str = "",
        tls_key: str = "",
        client_ca: str = "",
        client_name: str = "",
        token_file: str = "",
        threads: int = DEFAULT_THREADS,
        build_id: str = "",
    ):
        routes = service.routes(hooks)
        self._functions = Pool(threads, "hookloop")
        self._streams = StreamService(routes, self._functions, Limits(calls=threads), build_id or build.build_id(routes.values()))
        watches = max(1, threads // 4)
        self._health = Health({route.shape.service for route in routes.values()} | {streams.SERVICE}, watches)
        # Threads of calls wait for functions. There are some for each way to occupy one, so that no way keeps the others out.
        self._calls = Pool(threads + watches + streams.MAX_STREAMS, "hookloop-call")
        interceptors = []
        if client_name or token_file:
            interceptors.append(CallerInterceptor(client_name, Tokens(token_file) if token_file else None))
        self._server = grpc.server(self._calls, interceptors=interceptors, options=(
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", MIN_PING_MS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.so_reuseport", 0),  # a second hook at the same address is a mistake
        ))
        self._server.add_generic_rpc_handlers((self._health.handler(), Unary(routes, self._functions), self._streams.handler()))
        self.address = self._bind(listen, _credentials(tls_cert, tls_key, client_ca, client_name))
        if not client_ca and not token_file:
            warn_if_open(self.address)

    def _bind(self, listen: str, credentials: Optional[grpc.ServerCredentials]) -> str:
        host, colon, _ = listen.rpartition(":")
        if not colon:
            raise ValueError(f"listen is {listen!r}, expected host:port")
        if not host:  # all addresses
            host, listen = "[::]", f"[::]{listen}"
        add = self._server.add_insecure_port
        port = add(listen) if credentials is None else self._server.add_secure_port(listen, credentials)
        if port == 0:
            raise OSError(f"cannot listen on {listen}")
        return f"{host}:{port}"

    def start(self) -> None:
        """Begins to serve; it returns at once."""
        self._server.start()

    def trigger(self, *, timeout: float = 30.0, **what: Any) -> int:
        """Asks for syncs over every open stream, and returns how many parents will be synced; one that is reached over two streams counts
        twice. The arguments are those of hookloop.trigger, without the gateway's. TriggerError says why not, where no stream took it: each
        serves one controller. ConnectionError says that no stream is open, or that it ended. timeout is how long an engine may take, in
        seconds."""
        wanted = trigger_message(**what)
        asked = [conversation.trigger(wanted) for conversation in self._streams.conversations() if conversation.open]
        if not asked:
            raise ConnectionError("no stream is open")
        counts, failures = [], []
        for future in asked:
            try:
                counts.append(future.result(timeout))
            except (TriggerError, ConnectionError) as error:
                failures.append(error)
        if not counts:
            raise failures[0]
        return sum(counts)

    def stop(self, grace: float = DEFAULT_GRACE_PERIOD) -> None:
        """Takes no new calls, and returns when those under way have ended, at the latest after the grace period in seconds."""
        self._health.shutdown()
        self._streams.drain()
        self._server.stop(grace).wait()
        self._functions.shutdown(wait=False, cancel_futures=True)
        self._calls.shutdown(wait=False)


def _credentials(cert: str, key: str, client_ca: str, client_name: str) -> Optional[grpc.ServerCredentials]:
    """TLS if files are named. They are read once here, so that a wrong name is an error at start."""
    if bool(cert) != bool(key):
        raise ValueError("TLS: one of certificate and key is missing; expected both files, or neither")
    if client_name and not client_ca:
        raise ValueError("client name: without client authorities no caller has a certificate; expected both")
    if client_ca and not cert:
        raise ValueError("client authorities: callers have certificates over TLS only; expected a certificate and its key, too")
    if not cert:
        return None

    def load() -> grpc.ServerCertificateConfiguration:
        pair = (pathlib.Path(key).read_bytes(), pathlib.Path(cert).read_bytes())
        authorities = pathlib.Path(client_ca).read_bytes() if client_ca else None
        return grpc.ssl_server_certificate_configuration([pair], authorities)

    return grpc.dynamic_ssl_server_credentials(load(), load, require_client_authentication=bool(client_ca))
