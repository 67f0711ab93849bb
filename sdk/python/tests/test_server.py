"""The server and the program: health, graceful stop, TLS, invalid arguments."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

import hookloop
from hookloop import health
from hookloop.wellknown import HealthCheckRequest, HealthCheckResponse
from tests.requests import invoke, serving, sync_request

ROOT = pathlib.Path(__file__).parent.parent
WAIT = 30  # seconds, a deadline
SERVE = "import hookloop; hookloop.serve(hookloop.Composite(sync=lambda request: {}))"


@contextlib.contextmanager
def running(code, *flags):
    """Runs a Python program, and kills it at the end if it has not ended."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        try:
            yield program
        finally:
            program.kill()


def empty(_):
    return {}


def codec():
    return {
        "request_serializer": HealthCheckRequest.SerializeToString,
        "response_deserializer": HealthCheckResponse.FromString,
    }


def check(channel, service=""):
    return channel.unary_unary(f"/{health.SERVICE}/Check", **codec())(
        HealthCheckRequest(service=service), timeout=WAIT
    ).status


def watch(channel):
    return channel.unary_stream(f"/{health.SERVICE}/Watch", **codec())(
        HealthCheckRequest(), timeout=WAIT
    )


class Health(unittest.TestCase):
    def test_services_that_are_served_are_healthy(self):
        with serving(hookloop.Composite(sync=empty)) as (channel, _):
            self.assertEqual(check(channel), health.SERVING)
            self.assertEqual(
                check(channel, "hookloop.composite.v1.CompositeHookService"), health.SERVING
            )
            with self.assertRaises(grpc.RpcError) as raised:
                check(channel, "hookloop.decorator.v1.DecoratorHookService")
            self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_watches_leave_threads_for_calls_and_see_the_end(self):
        with serving(hookloop.Composite(sync=empty), threads=4) as (channel, server):
            first = watch(channel)
            self.assertEqual(next(first).status, health.SERVING)
            second = watch(channel)
            with self.assertRaises(grpc.RpcError) as raised:
                next(second)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            invoke(channel, "Sync", sync_request())
            server.stop()
            self.assertEqual([response.status for response in first], [health.NOT_SERVING])

    def test_a_watch_that_ends_makes_room(self):
        with serving(hookloop.Composite(sync=empty), threads=4) as (channel, _):
            for _ in range(3):
                one = watch(channel)
                while True:  # the server notices the end of the previous watch later
                    try:
                        self.assertEqual(next(one).status, health.SERVING)
                        break
                    except grpc.RpcError as error:
                        self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
                        one = watch(channel)
                one.cancel()


class Stopping(unittest.TestCase):
    def test_a_call_under_way_is_answered(self):
        entered, leave = threading.Event(), threading.Event()

        def function(_):
            entered.set()
            self.assertTrue(leave.wait(WAIT))
            return {"status": {"done": True}}

        with serving(hookloop.Composite(sync=function)) as (channel, server):
            call = threading.Thread(
                target=lambda: answers.append(invoke(channel, "Sync", sync_request()))
            )
            answers = []
            call.start()
            self.assertTrue(entered.wait(WAIT))
            stop = threading.Thread(target=server.stop, kwargs={"grace_period": WAIT})
            stop.start()
            leave.set()
            stop.join(WAIT)
            call.join(WAIT)
            self.assertEqual(answers[0].status, b'{"done":true}')

    def test_a_program_ends_at_sigterm(self):
        self.end_by_sigterm(SERVE)

    def test_a_signal_in_another_thread(self):
        """The system chooses the thread; a handler in Python waits for the main thread."""
        self.end_by_sigterm(
            """
import signal, threading, hookloop
def sync(request):
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    return {}
hookloop.serve(hookloop.Composite(sync=sync))
""",
            send=False,
        )

    def test_a_program_that_continues_has_its_signals_again(self):
        self.end_by_sigterm(
            f"""
import signal
before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
{SERVE}
assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
assert signal.set_wakeup_fd(-1) == -1
"""
        )

    def end_by_sigterm(self, code, send=True):
        with running(code, "--listen", "127.0.0.1:0") as program:
            line = program.stdout.readline()
            address = re.fullmatch(r"listening on (127\.0\.0\.1:\d+)\n", line)[1]
            with grpc.insecure_channel(address) as channel:
                invoke(channel, "Sync", sync_request())
            if send:
                program.send_signal(signal.SIGTERM)
            self.assertEqual(program.wait(WAIT), 0)


class UnixSockets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "hook.sock")

    def test_a_program_listens_on_a_socket(self):
        with running(SERVE, "--listen", f"unix://{self.path}") as program:
            self.assertEqual(program.stdout.readline(), f"listening on unix://{self.path}\n")
            with grpc.insecure_channel(f"unix://{self.path}") as channel:
                invoke(channel, "Sync", sync_request())

    def test_a_socket_that_a_killed_process_left_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as killed:
            killed.bind(self.path)
        with self.serve() as server, grpc.insecure_channel(server.address) as channel:
            invoke(channel, "Sync", sync_request())

    def test_a_socket_in_use_is_left_alone(self):
        with self.serve() as server:
            with self.assertRaisesRegex(OSError, "a process serves this socket"), self.serve():
                pass
            with grpc.insecure_channel(server.address) as channel:
                invoke(channel, "Sync", sync_request())

    def test_a_file_is_left_alone(self):
        pathlib.Path(self.path).write_text("a file")
        with self.assertRaises((OSError, RuntimeError)), self.serve():
            pass
        self.assertEqual(pathlib.Path(self.path).read_text(), "a file")

    def test_a_relative_path_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "expected an absolute path"):
            hookloop.Server(hookloop.Composite(sync=empty), listen="unix://hook.sock")

    @contextlib.contextmanager
    def serve(self):
        server = hookloop.Server(hookloop.Composite(sync=empty), listen=f"unix://{self.path}")
        server.start()
        try:
            yield server
        finally:
            server.stop()


class Deadlines(unittest.TestCase):
    def test_no_function_begins_after_its_deadline(self):
        began, entered, leave = [], threading.Event(), threading.Event()

        def stuck(_):
            began.append(1)
            entered.set()
            leave.wait(WAIT)
            return {}

        with self.assertLogs("hookloop", "WARNING") as logged, serving(
            hookloop.Composite(sync=stuck), threads=1
        ) as (channel, server):
            first = begin(channel, timeout=WAIT)
            self.assertTrue(entered.wait(WAIT))
            late = [begin(channel, timeout=0.5) for _ in range(20)]
            self.assertEqual({call.code() for call in late}, {grpc.StatusCode.DEADLINE_EXCEEDED})
            for _ in range(
                WAIT * 100
            ):  # the server notices the end of each call later than its caller
                if not server._functions._tasks:
                    break
                leave.wait(0.01)
            self.assertEqual(
                len(server._functions._tasks), 0, "calls that nobody waits for are queued"
            )
            leave.set()
            self.assertEqual(first.code(), grpc.StatusCode.OK)
            invoke(channel, "Sync", sync_request())
        self.assertEqual(len(began), 2)
        self.assertRegex(logged.output[0], "Sync of Greeting shop/hi was given up")


def begin(channel, timeout):
    """Starts a Sync call."""
    return channel.unary_unary(
        "/hookloop.composite.v1.CompositeHookService/Sync",
        request_serializer=type(sync_request()).SerializeToString,
    ).future(sync_request(), timeout=timeout)


class InvalidArguments(unittest.TestCase):
    def test_arguments(self):
        cases = [
            (ValueError, "got no hook", (), {}),
            (
                TypeError,
                "got a hook of type function, expected Composite, Decorator or Mapper",
                (empty,),
                {},
            ),
            (
                ValueError,
                "two composite hooks have no name",
                (hookloop.Composite(), hookloop.Composite()),
                {},
            ),
            (ValueError, "expected host:port", (hookloop.Composite(),), {"listen": "9443"}),
            (
                ValueError,
                "expected both files, or neither",
                (hookloop.Composite(),),
                {"tls_cert": "a"},
            ),
            (
                ValueError,
                "expected a certificate and its key, too",
                (hookloop.Composite(),),
                {"client_ca": "ca.crt"},
            ),
            (
                ValueError,
                "without client authorities",
                (hookloop.Composite(),),
                {"client_name": "engine"},
            ),
            (FileNotFoundError, "missing", (hookloop.Composite(),), {"token_file": "missing"}),
            (
                FileNotFoundError,
                "missing.key",
                (hookloop.Composite(),),
                {"tls_cert": "missing.crt", "tls_key": "missing.key"},
            ),
        ]
        for error, text, hooks, options in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                hookloop.Server(*hooks, **({"listen": "127.0.0.1:0"} | options))

    def test_an_address_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken, self.assertRaises(
            SystemExit
        ) as ended:
            hookloop.serve(
                hookloop.Composite(), args=["--listen", f"127.0.0.1:{taken.getsockname()[1]}"]
            )
        self.assertRegex(str(ended.exception), r"^hookloop: .*127\.0\.0\.1")


class TLS(unittest.TestCase):
    def test_certificates_are_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            files = pathlib.Path(folder)
            cert, key = files / "tls.crt", files / "tls.key"
            make_certificate(cert, key)
            server = hookloop.Server(
                hookloop.Composite(sync=empty),
                listen="127.0.0.1:0",
                tls_cert=str(cert),
                tls_key=str(key),
            )
            server.start()
            try:
                self.invoke(server, cert)
                make_certificate(cert, key)
                self.invoke(server, cert)
            finally:
                server.stop(grace_period=0)

    def invoke(self, server, cert):
        with grpc.secure_channel(
            server.address, grpc.ssl_channel_credentials(cert.read_bytes())
        ) as channel:
            self.assertEqual(list(invoke(channel, "Sync", sync_request()).children), [])


def make_certificate(cert, key):
    """Writes a new self-signed certificate for 127.0.0.1."""
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=hook",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-out",
            str(cert),
            "-keyout",
            str(key),
        ],
        check=True,
        capture_output=True,
    )
