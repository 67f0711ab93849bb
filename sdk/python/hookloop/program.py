"""Runs a hook program: flags, environment variables, signals, and a graceful stop."""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any, Optional, Union

from hookloop.attachment import Attachment, Intercept
from hookloop.gateway import Gateway
from hookloop.hooks import Hook
from hookloop.options import Options
from hookloop.server import DEFAULT_LISTEN, Server


def serve(*hooks: Hook, args: Optional[Sequence[str]] = None) -> None:
    """Serves hooks until SIGTERM or SIGINT. Running calls may finish first.

    It reads flags from the command line, or from args. A flag defaults to its environment variable,
    such as HOOKLOOP_HOOK_TLS_CERT for --tls-cert. serve listens and prints "listening on ADDRESS".
    With --attach it connects to a gateway, prints "attached to ADDRESS" when the gateway has
    accepted the hook, and listens only if --listen is given too.

    Call serve in the main thread. It ends the program if it cannot serve the hooks.
    """
    flags = _parse(args)
    if not logging.getLogger().handlers:
        layout = "%(asctime)s %(levelname)s %(name)s %(message)s"
        logging.basicConfig(level=logging.INFO, format=layout)
    try:
        services = _services(hooks, flags)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(f"hookloop: {error}")
    with _Signals(signal.SIGTERM, signal.SIGINT) as stopped:
        for service in services:
            service.start()
            threading.Thread(target=_print_address, args=(service, flags), daemon=True).start()
        stopped.wait()
        stops = [threading.Thread(target=service.stop) for service in services]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()


class _Signals:
    """Signals that the main thread waits for. Within the context they do nothing else.

    The handler itself writes them to a socket. Without that, a signal that comes just before the
    main thread waits, or in another thread, does not end the wait.
    """

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def __enter__(self) -> "_Signals":
        self._received, self._sent = socket.socketpair()
        self._sent.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._sent.fileno(), warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, lambda *_: None) for number in self._numbers}
        return self

    def __exit__(self, *_: object) -> None:
        """Restores the handlers, and the descriptor before it closes the socket.

        Another file may soon have the closed descriptor's number.
        """
        for number, handler in self._handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
        signal.set_wakeup_fd(self._wakeup)
        self._received.close()
        self._sent.close()

    def wait(self) -> None:
        """Returns after the next one of the signals."""
        while not any(number in self._numbers for number in self._received.recv(64)):
            pass


def _services(hooks: Sequence[Hook], flags: argparse.Namespace) -> list[Union[Server, Attachment]]:
    options = Options(threads=flags.threads, build_id=flags.build_id)
    services: list[Union[Server, Attachment]] = []
    if flags.attach:
        services.append(_attachment(hooks, flags, options))
    if flags.listen or not flags.attach:
        server = Server(
            *hooks,
            listen=flags.listen or DEFAULT_LISTEN,
            tls_cert=flags.tls_cert,
            tls_key=flags.tls_key,
            client_ca=flags.client_ca,
            client_name=flags.client_name,
            token_file="" if flags.attach else flags.token_file,
            options=options,
        )
        services.append(server)
    return services


def _attachment(hooks: Sequence[Hook], flags: argparse.Namespace, options: Options) -> Attachment:
    gateway = Gateway(
        flags.attach,
        ca_file=flags.ca_file,
        token_file=flags.token_file,
        client_cert=flags.client_cert,
        client_key=flags.client_key,
        server_name=flags.server_name,
    )
    intercept = None
    if flags.intercept:
        kind, _, name = flags.intercept.partition("/")
        intercept = Intercept(kind, name, flags.namespace, flags.name, flags.labels)
    return Attachment(
        *hooks, gateway=gateway, worker=flags.worker, intercept=intercept, options=options
    )


def _print_address(service: Union[Server, Attachment], flags: argparse.Namespace) -> None:
    if isinstance(service, Server):
        print(f"listening on {service.address}", flush=True)
    elif service.wait_attached():
        print(f"attached to {flags.attach}", flush=True)


# Flags and their help texts.
_FLAGS = {
    "--listen": "address to listen on, host:port or unix:///path; port 0 takes a free one "
    f"(default: {DEFAULT_LISTEN}, or none with --attach)",
    "--tls-cert": "PEM file with the certificate; empty means plain text",
    "--tls-key": "PEM file with the certificate's key",
    "--client-ca": "PEM file with the authorities of callers' certificates; "
    "empty requires no certificate",
    "--client-name": "with --client-ca: name that a caller's certificate must have",
    "--token-file": "file with the tokens of callers, one in each line; "
    "with --attach, with the token for the gateway",
    "--build-id": "version of the hook; after a change engines call it for all parents again "
    "(default: a hash of the functions' files)",
}
_ATTACH_FLAGS = {
    "--worker": "name by which controllers refer to the hook",
    "--namespace": "with --intercept: only parents in this namespace",
    "--name": "with --intercept: only the parent with this name",
    "--ca-file": "PEM file with the authorities of the gateway's certificate "
    "(default: gRPC's roots)",
    "--client-cert": "PEM file with a client certificate, instead of --token-file",
    "--client-key": "PEM file with the key of --client-cert",
    "--server-name": "name in the gateway's certificate, if it is not the host of the address",
}


def _parse(args: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="A hook of Hookloop controllers, served over gRPC.",
        epilog="Each flag defaults to an environment variable: --tls-cert to HOOKLOOP_HOOK_TLS_CERT.",
    )
    for name, usage in _FLAGS.items():
        _flag(parser, name, usage)
    threads = "maximum number of concurrent calls (default: %(default)s)"
    _flag(parser, "--threads", threads, default=str(Options.threads), type=int)
    dial = parser.add_argument_group("connecting to an engine's gateway")
    _flag(dial, "--attach", "address of the gateway, host:port", metavar="GATEWAY")
    intercept = "controller to take parents from, instead of --worker"
    _flag(dial, "--intercept", intercept, metavar="KIND/NAME")
    labels = "with --intercept: only parents with these labels"
    _flag(dial, "--labels", labels, metavar="SELECTOR")
    for name, usage in _ATTACH_FLAGS.items():
        _flag(dial, name, usage)
    return parser.parse_args(args)


def _flag(group: Any, name: str, usage: str, default: str = "", **more: Any) -> None:
    """Adds a flag. Its environment variable is its default."""
    variable = "HOOKLOOP_HOOK_" + name[2:].upper().replace("-", "_")
    group.add_argument(name, default=os.environ.get(variable) or default, help=usage, **more)
