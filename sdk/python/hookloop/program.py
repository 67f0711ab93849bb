"""A whole main function around hooks: flags and variables, signals, a graceful stop."""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Optional, Union

from hookloop.attachment import Attachment, Intercept
from hookloop.gateway import Gateway
from hookloop.server import DEFAULT_LISTEN, DEFAULT_THREADS, Server
from hookloop.service import Hook


def serve(*hooks: Hook, args: Optional[Sequence[str]] = None) -> None:
    """Serves hooks until SIGTERM or SIGINT; calls under way finish.

    It reads the command line (or args) and the variables HOOKLOOP_HOOK_LISTEN, HOOKLOOP_HOOK_TLS_CERT, HOOKLOOP_HOOK_TLS_KEY and
    HOOKLOOP_HOOK_BUILD. It listens, and prints "listening on ADDRESS"; with --attach it dials in to a gateway instead, prints "attached to
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
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    for service in services:
        service.start()
        threading.Thread(target=_tell, args=(service, options), daemon=True).start()
    told.wait()
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


def _tell(service: Union[Server, Attachment], options: argparse.Namespace) -> None:
    """Prints where a hook is served."""
    if isinstance(service, Server):
        print(f"listening on {service.address}", flush=True)
    elif service.wait_attached():
        print(f"attached to {options.attach}", flush=True)


def _parse(args: Optional[Sequence[str]]) -> argparse.Namespace:
    env = os.environ.get
    parser = argparse.ArgumentParser(description="A hook of Hookloop controllers, served over gRPC.")
    parser.add_argument("--listen", default=env("HOOKLOOP_HOOK_LISTEN", ""),
                        help=f"address to listen on, host:port; port 0 takes a free one (default: {DEFAULT_LISTEN}, or none with --attach)")
    parser.add_argument("--tls-cert", default=env("HOOKLOOP_HOOK_TLS_CERT", ""), help="PEM file with the certificate; empty means plain text")
    parser.add_argument("--tls-key", default=env("HOOKLOOP_HOOK_TLS_KEY", ""), help="PEM file with the certificate's key")
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS, help="how many calls are answered at a time (default: %(default)s)")
    parser.add_argument("--build-id", default=env("HOOKLOOP_HOOK_BUILD", ""),
                        help="the hook's version; a change has everything asked again (default: a hash of the functions' files)")
    dial = parser.add_argument_group("dialling in to an engine")
    dial.add_argument("--attach", default="", metavar="GATEWAY", help="address of the gateway, host:port")
    dial.add_argument("--worker", default="", help="the name by which controllers refer to the hook")
    dial.add_argument("--intercept", default="", metavar="KIND/NAME", help="a controller to take parents from, instead of --worker")
    dial.add_argument("--namespace", default="", help="with --intercept: only parents in this namespace")
    dial.add_argument("--name", default="", help="with --intercept: only the parent with this name")
    dial.add_argument("--labels", default="", metavar="SELECTOR", help="with --intercept: only parents with these labels")
    dial.add_argument("--ca-file", default="", help="PEM file with the certificates that verify the gateway (default: gRPC's roots)")
    dial.add_argument("--token-file", default="", help="file with a ServiceAccount's token; it is read for each attempt")
    dial.add_argument("--client-cert", default="", help="PEM file with a client's certificate, instead of --token-file")
    dial.add_argument("--client-key", default="", help="PEM file with the key of --client-cert")
    dial.add_argument("--server-name", default="", help="the name in the gateway's certificate, where that is not the address's")
    return parser.parse_args(args)
