"""A whole main function around hooks: flags and variables, signals, a graceful stop."""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, Optional, Union

from hookloop.attachment import Attachment, Intercept
from hookloop.gateway import Gateway
from hookloop.server import DEFAULT_LISTEN, DEFAULT_THREADS, Server
from hookloop.service import Hook


def serve(*hooks: Hook, args: Optional[Sequence[str]] = None) -> None:
    """Serves hooks until SIGTERM or SIGINT; calls under way finish.

    It reads the command line (or args), where each flag has a variable: HOOKLOOP_HOOK_TLS_CERT is that of --tls-cert. It listens, and prints "listening on ADDRESS"; with --attach it dials in to a gateway instead, prints "attached to
    ADDRESS" once that has accepted it, and listens only where --listen says so. It is for the main thread of a program. A hook that cannot
    be served ends the program.
    """
    options = _parse(args)
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        services = _services(hooks, options)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(f"hookloop: {error}")
    stop_requested = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop_requested.set())
    for service in services:
        service.start()
        threading.Thread(target=_print_address, args=(service, options), daemon=True).start()
    stop_requested.wait()
    stops = [threading.Thread(target=service.stop) for service in services]
    for stop in stops:
        stop.start()
    for stop in stops:
        stop.join()


def _services(hooks: Sequence[Hook], options: argparse.Namespace) -> list[Union[Server, Attachment]]:
    services: list[Union[Server, Attachment]] = []
    if options.attach:
        services.append(_attachment(hooks, options))
    if options.listen or not options.attach:
        services.append(Server(
            *hooks, listen=options.listen or DEFAULT_LISTEN, tls_cert=options.tls_cert, tls_key=options.tls_key,
            client_ca=options.client_ca, client_name=options.client_name, token_file="" if options.attach else options.token_file,
            threads=options.threads, build_id=options.build_id,
        ))
    return services


def _attachment(hooks: Sequence[Hook], options: argparse.Namespace) -> Attachment:
    gateway = Gateway(
        options.attach, ca_file=options.ca_file, token_file=options.token_file,
        client_cert=options.client_cert, client_key=options.client_key, server_name=options.server_name,
    )
    intercept = None
    if options.intercept:
        intercept = Intercept(options.intercept, namespace=options.namespace, name=options.name, labels=options.labels)
    return Attachment(
        *hooks, gateway=gateway, worker=options.worker, intercept=intercept, threads=options.threads, build_id=options.build_id
    )


def _print_address(service: Union[Server, Attachment], options: argparse.Namespace) -> None:
    """Prints where a hook is served."""
    if isinstance(service, Server):
        print(f"listening on {service.address}", flush=True)
    elif service.wait_attached():
        print(f"attached to {options.attach}", flush=True)


def _parse(args: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="A hook of Hookloop controllers, served over gRPC.",
        epilog="Each flag has a variable: HOOKLOOP_HOOK_TLS_CERT is that of --tls-cert.",
    )
    _flag(parser, "--listen", f"address to listen on, host:port; port 0 takes a free one (default: {DEFAULT_LISTEN}, or none with --attach)")
    _flag(parser, "--tls-cert", "PEM file with the certificate; empty means plain text")
    _flag(parser, "--tls-key", "PEM file with the certificate's key")
    _flag(parser, "--client-ca", "PEM file with the authorities of callers' certificates; empty asks for none")
    _flag(parser, "--client-name", "with --client-ca: name that a caller's certificate must have")
    _flag(parser, "--token-file", "file with the tokens of callers, one in each line; with --attach, with the token that is sent to the gateway")
    _flag(parser, "--threads", "how many calls are answered at a time (default: %(default)s)", default=str(DEFAULT_THREADS), type=int)
    _flag(parser, "--build-id", "name of the hook's build; a change has everything asked again (default: a hash of the functions' files)")
    dial = parser.add_argument_group("dialling in to an engine")
    _flag(dial, "--attach", "address of the gateway, host:port", metavar="GATEWAY")
    _flag(dial, "--worker", "the name by which controllers refer to the hook")
    _flag(dial, "--intercept", "a controller to take parents from, instead of --worker", metavar="KIND/NAME")
    _flag(dial, "--namespace", "with --intercept: only parents in this namespace")
    _flag(dial, "--name", "with --intercept: only the parent with this name")
    _flag(dial, "--labels", "with --intercept: only parents with these labels", metavar="SELECTOR")
    _flag(dial, "--ca-file", "PEM file with the authorities of the gateway's certificate (default: gRPC's roots)")
    _flag(dial, "--client-cert", "PEM file with a client's certificate, instead of --token-file")
    _flag(dial, "--client-key", "PEM file with the key of --client-cert")
    _flag(dial, "--server-name", "the name in the gateway's certificate, if it is not the address's host")
    return parser.parse_args(args)


def _flag(group: Any, name: str, usage: str, default: str = "", **more: Any) -> None:
    """Adds a flag, with its variable as the default."""
    variable = "HOOKLOOP_HOOK_" + name[2:].upper().replace("-", "_")
    group.add_argument(name, default=os.environ.get(variable) or default, help=usage, **more)
