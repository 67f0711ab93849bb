"""Hooks that attach to a gateway on loopback."""

import contextlib
import dataclasses
import pathlib
import queue
import signal
import sys
import tempfile
import unittest
from concurrent import futures
from unittest import mock

import grpc

import hookloop
from hookloop import attachment, gateway
from hookloop.attachment import Backoff
from hookloop.stream.v1 import gateway_pb2, stream_pb2
from tests.engine import Engine
from tests.requests import sync_request
from tests.test_server import SERVE, WAIT, make_certificate, running
from tests.test_stream import Held, Later, echo
from tests.test_session import pods

QUICK = Backoff(initial=0.01, maximum=0.02, refused=0.03)


@dataclasses.dataclass(frozen=True)
class Noted(Backoff):
    """Returns short delays, and records the arguments."""

    calls: list = dataclasses.field(default_factory=list)

    def delay(self, failures, refused):
        self.calls.append((failures, refused))
        return 0.01


class Session:
    """A stream that a hook has opened. The test plays the engine's side."""

    def __init__(self, messages, context):
        self._messages, self._sent = messages, queue.Queue()
        self.metadata = dict(context.invocation_metadata())
        self.identity = context.auth_context().get("x509_common_name")
        self.attach = next(messages).attach

    def send(self, *messages):
        for message in messages:
            self._sent.put(message)

    def read(self):
        return next(self._messages)

    def open(self, engine):
        self.send(engine.hello())
        welcome = self.read().welcome
        engine.apply_welcome(welcome)
        return welcome

    def invoke(self, engine, request):
        self.send(engine.call(request))
        return engine.response(self.read().answer)

    def end(self, code=None, text=""):
        """Ends the stream, with a status if a code is given."""
        self._sent.put((code, text))

    def run(self, context):
        context.add_callback(self.end)
        while not isinstance(message := self._sent.get(timeout=WAIT), tuple):
            yield message
        if message[0] is not None:
            context.abort(*message)


class Gateway:
    """A gateway with a certificate for 127.0.0.1. Its sessions are in a queue."""

    def __init__(self, folder, mutual=False):
        self.folder, self.sessions, self.triggers = folder, queue.Queue(), queue.Queue()
        cert, key = folder / "ca.crt", folder / "tls.key"
        make_certificate(cert, key)
        (folder / "token").write_text("first\n", encoding="ascii")
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    gateway.SERVICE,
                    {
                        "Attach": grpc.stream_stream_rpc_method_handler(
                            self._attach,
                            stream_pb2.HookMessage.FromString,
                            stream_pb2.EngineMessage.SerializeToString,
                        ),
                        "Trigger": grpc.unary_unary_rpc_method_handler(
                            self._trigger,
                            gateway_pb2.TriggerRequest.FromString,
                            gateway_pb2.TriggerResponse.SerializeToString,
                        ),
                    },
                ),
            )
        )
        clients = cert.read_bytes() if mutual else None
        credentials = grpc.ssl_server_credentials(
            [(key.read_bytes(), cert.read_bytes())], clients, require_client_auth=mutual
        )
        self.address = f"127.0.0.1:{self._server.add_secure_port('127.0.0.1:0', credentials)}"
        self._server.start()

    def reached(self, **fields):
        """Returns the gateway's address and files for a hook."""
        files = {"ca_file": str(self.folder / "ca.crt"), "token_file": str(self.folder / "token")}
        return hookloop.Gateway(self.address, **(files | fields))

    def next(self):
        return self.sessions.get(timeout=WAIT)

    def stop(self):
        self._server.stop(0).wait()

    def _attach(self, messages, context):
        session = Session(messages, context)
        self.sessions.put(session)
        yield from session.run(context)

    def _trigger(self, request, context):
        self.triggers.put((request, dict(context.invocation_metadata())["authorization"]))
        if request.worker == "other":
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "may not serve hookworkers/other")
        return gateway_pb2.TriggerResponse(parents=3)


class Attached(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.gateway = Gateway(pathlib.Path(folder.name))
        self.addCleanup(self.gateway.stop)

    @contextlib.contextmanager
    def attached(self, function=echo, options=hookloop.Options(), **fields):
        fields = {"worker": "web", "backoff": QUICK} | fields
        hook, reached = hookloop.Composite(sync=function), self.gateway.reached()
        attachment = hookloop.attach(hook, gateway=reached, options=options, **fields)
        try:
            yield attachment
        finally:
            attachment.stop(grace_period=0)

    def test_requests_are_answered(self):
        with self.attached(options=hookloop.Options(build_id="v1", threads=6)) as attachment:
            session, engine = self.gateway.next(), Engine()
            self.assertEqual((session.attach.worker, session.attach.session_id), ("web", ""))
            self.assertFalse(session.attach.HasField("intercept"))
            self.assertEqual(session.metadata["authorization"], "Bearer first")
            welcome = session.open(engine)
            self.assertEqual((welcome.build_id, welcome.window.calls), ("v1", 6))
            self.assertTrue(attachment.wait_attached(WAIT))
            self.assertEqual(len(session.invoke(engine, sync_request()).children), 2)
            session.end()

    def test_an_intercept(self):
        intercept = hookloop.Intercept(
            hookloop.ControllerKind.COMPOSITE, "web", namespace="shop", label_selector="team=blue"
        )
        with self.attached(worker="", intercept=intercept):
            session = self.gateway.next()
            self.assertEqual(
                session.attach.intercept,
                stream_pb2.Intercept(
                    controller_kind="CompositeController",
                    controller_name="web",
                    namespace="shop",
                    label_selector="team=blue",
                ),
            )
            session.end()

    def test_after_a_loss_only_changes_travel(self):
        with self.attached():
            engine = Engine()
            first = self.gateway.next()
            first.open(engine)
            first.invoke(engine, sync_request())
            (self.gateway.folder / "token").write_text("second", encoding="ascii")
            with self.assertLogs("hookloop", "WARNING"):
                first.end(grpc.StatusCode.UNAVAILABLE, "going down")
                second = self.gateway.next()
            self.assertEqual(
                (second.attach.session_id, second.metadata["authorization"]),
                ("session", "Bearer second"),
            )
            self.assertEqual([state.subject for state in second.open(engine).subjects], ["a"])
            engine.last = 0
            call = engine.call(sync_request())
            self.assertEqual(len(call.call.upserts), 0)
            second.send(call)
            self.assertEqual(len(engine.response(second.read().answer).children), 2)
            second.end()

    def test_another_session_has_a_new_state(self):
        with self.attached():
            for number in range(2):
                session, engine = self.gateway.next(), Engine(session_id=f"s{number}")
                self.assertEqual(list(session.open(engine).subjects), [])
                session.invoke(engine, sync_request())
                session.end()

    def test_a_refusal_is_logged_and_retried(self):
        with self.assertLogs("hookloop", "ERROR") as logged, self.attached():
            self.gateway.next().end(
                grpc.StatusCode.PERMISSION_DENIED, "may not serve hookworkers/web"
            )
            session = self.gateway.next()
            session.open(Engine())
            session.end()
        self.assertIn(
            'refuses worker "web": PERMISSION_DENIED: may not serve hookworkers/web',
            logged.output[0],
        )

    def test_only_consecutive_refusals_are_slow(self):
        backoff = Noted()
        refuse = [
            grpc.StatusCode.UNAUTHENTICATED,
            grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.INVALID_ARGUMENT,
        ]
        with self.assertLogs("hookloop", "WARNING"), self.attached(backoff=backoff):
            for code in refuse:  # each ends an open session
                session = self.gateway.next()
                session.open(Engine())
                session.end(code, "no longer")
            for code in (
                *refuse[:2],
                grpc.StatusCode.UNAVAILABLE,
                refuse[0],
                refuse[0],
            ):  # none of them opens
                self.gateway.next().end(code, "not yet")
            session = self.gateway.next()
            session.open(Engine())
            session.end(refuse[0], "no longer")
            self.gateway.next().end()
        self.assertEqual(
            backoff.calls[:9],
            [
                (1, False),
                (2, False),
                (3, False),
                (4, True),
                (5, True),
                (6, False),
                (7, False),
                (8, True),
                (9, False),
            ],
        )

    def test_the_backoff_starts_again_after_a_session_that_lasted_or_had_a_call(self):
        """A session that the engine ends right after its Hello is none: such a hook would reconnect
        several times a second for ever."""
        for stable_after, calls, want in (
            (attachment.STABLE_AFTER, False, [1, 2, 3, 4]),
            (attachment.STABLE_AFTER, True, [0, 0, 0, 0]),
            (0, False, [0, 0, 0, 0]),
        ):
            backoff = Noted()
            with (
                self.subTest(stable_after=stable_after, calls=calls),
                mock.patch.object(attachment, "STABLE_AFTER", stable_after),
                self.assertLogs("hookloop", "WARNING"),
                self.attached(backoff=backoff),
            ):
                for _ in want:
                    session = self.gateway.next()
                    engine = Engine()
                    session.open(engine)
                    if calls:
                        session.invoke(engine, sync_request())
                    session.end(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many sessions")
                self.gateway.next().end()
                self.assertEqual(backoff.calls[: len(want)], [(n, False) for n in want])

    def test_a_function_that_does_not_return_blocks_nothing(self):
        slow = Held()
        self.addCleanup(slow.leave.set)

        def sync(request):
            return slow(request) if request["parent"]["metadata"]["name"] == "slow" else {}

        with self.attached(sync) as attachment:
            session, engine = self.gateway.next(), Engine()
            session.open(engine)
            session.send(engine.call(pods(parent="slow")))
            self.assertTrue(slow.entered.wait(WAIT))
            with self.assertLogs("hookloop", "WARNING"):
                session.end(grpc.StatusCode.UNAVAILABLE, "going down")
                session, engine = self.gateway.next(), Engine("another")
            session.open(engine)
            self.assertEqual(list(session.invoke(engine, pods(parent="fast")).children), [])
            session.send(engine.call(pods(parent="slow"), subject="b"))
            with contextlib.closing(Later(lambda: attachment.stop(grace_period=0))) as stopped:
                stopped.result()

    def test_a_function_that_does_not_return_does_not_keep_the_program(self):
        code = """import sys, threading, hookloop
entered = threading.Event()
def sync(request):
    entered.set()
    threading.Event().wait()
address, ca, token = sys.argv[1:]
gateway = hookloop.Gateway(address, ca_file=ca, token_file=token)
attachment = hookloop.attach(hookloop.Composite(sync=sync), gateway=gateway, worker="web")
entered.wait()
attachment.stop(grace_period=0)
"""
        files = [str(self.gateway.folder / name) for name in ("ca.crt", "token")]
        with running(code, self.gateway.address, *files) as program:
            session, engine = self.gateway.next(), Engine()
            session.open(engine)
            session.send(engine.call(pods(1)))
            self.assertEqual(program.wait(WAIT), 0)

    def test_a_token_that_is_not_there_yet(self):
        token = self.gateway.folder / "token"
        token.unlink()
        with self.assertLogs("hookloop", "WARNING") as logged, self.attached():
            while not logged.output:
                self.assertTrue(self.gateway.sessions.empty())
            token.write_text("late", encoding="ascii")
            session = self.gateway.next()
            self.assertEqual(session.metadata["authorization"], "Bearer late")
            session.end()
        self.assertIn("No such file", logged.output[0])

    def test_protocol_violations(self):
        with self.assertLogs("hookloop", "ERROR") as logged, self.attached():
            self.gateway.next().send(stream_pb2.EngineMessage(drain=stream_pb2.Drain()))
            self.gateway.next().end()
        self.assertIn("expected hello first", logged.output[0])

    def test_a_drain_lets_work_finish_and_another_stream_follows(self):
        slow = Held()
        with self.attached(slow):
            session, engine = self.gateway.next(), Engine()
            session.open(engine)
            session.send(engine.call(pods(1)))
            self.assertTrue(slow.entered.wait(WAIT))
            session.send(stream_pb2.EngineMessage(drain=stream_pb2.Drain()))
            slow.leave.set()
            self.assertEqual(engine.response(session.read().answer).status, b'{"done":true}')
            with self.assertRaises(StopIteration):
                session.read()
            session.end()
            second = self.gateway.next()
            self.assertEqual(second.attach.session_id, "session")
            second.end()

    def test_stopping_lets_work_finish(self):
        slow = Held()
        with self.attached(slow) as attachment:
            session, engine = self.gateway.next(), Engine()
            session.open(engine)
            session.send(engine.call(pods(1)))
            self.assertTrue(slow.entered.wait(WAIT))
            with contextlib.closing(Later(lambda: attachment.stop(WAIT))) as later:
                self.assertTrue(session.read().HasField("drain"))
                slow.leave.set()
                self.assertEqual(engine.response(session.read().answer).status, b'{"done":true}')
                session.send(stream_pb2.EngineMessage(drain=stream_pb2.Drain()))
                with self.assertRaises(StopIteration):
                    session.read()
                session.end()
                later.result()

    def test_a_trigger_over_the_stream(self):
        with self.attached() as attachment:
            with self.assertRaisesRegex(ConnectionError, "no stream is open"):
                attachment.trigger(hookloop.Trigger(reason="too soon"))
            session = self.gateway.next()
            session.open(Engine())
            with contextlib.closing(
                Later(lambda: attachment.trigger(hookloop.Trigger(parents=["shop/hi"])))
            ) as later:
                sent = session.read().trigger
                session.send(
                    stream_pb2.EngineMessage(
                        trigger_result=stream_pb2.TriggerResult(id=sent.id, parents=1)
                    )
                )
                self.assertEqual(later.result(), 1)
            with contextlib.closing(Later(lambda: attachment.trigger())) as later:
                session.read()
                session.end()
                with self.assertRaisesRegex(ConnectionError, "ended before"):
                    later.result()

    def test_a_trigger_without_a_stream(self):
        self.assertEqual(
            hookloop.trigger(
                self.gateway.reached(), "web", hookloop.Trigger(label_selector="a=b", reason="tick")
            ),
            3,
        )
        request, token = self.gateway.triggers.get(timeout=WAIT)
        self.assertEqual(
            (request.worker, request.trigger.label_selector, request.trigger.reason),
            ("web", "a=b", "tick"),
        )
        self.assertEqual(token, "Bearer first")
        with self.assertRaisesRegex(
            hookloop.TriggerError, "may not serve hookworkers/other"
        ) as raised:
            hookloop.trigger(self.gateway.reached(), "other")
        self.assertEqual(raised.exception.code, 7)

    def test_a_program_dials_in_and_ends_at_sigterm(self):
        flags = [
            "--attach",
            self.gateway.address,
            "--worker",
            "web",
            "--ca-file",
            str(self.gateway.folder / "ca.crt"),
            "--token-file",
            str(self.gateway.folder / "token"),
        ]
        with running(SERVE, *flags) as program:
            session, engine = self.gateway.next(), Engine()
            session.open(engine)
            self.assertEqual(program.stdout.readline(), f"attached to {self.gateway.address}\n")
            self.assertEqual(list(session.invoke(engine, sync_request()).children), [])
            program.send_signal(signal.SIGTERM)
            self.assertTrue(session.read().HasField("drain"))
            session.send(stream_pb2.EngineMessage(drain=stream_pb2.Drain()))
            session.end()
            self.assertEqual(program.wait(WAIT), 0)


class Certificates(unittest.TestCase):
    def test_a_certificate_identifies_the_hook(self):
        with tempfile.TemporaryDirectory() as folder:
            gate = Gateway(pathlib.Path(folder), mutual=True)
            self.addCleanup(gate.stop)
            cert, key = str(gate.folder / "ca.crt"), str(gate.folder / "tls.key")
            reach = gate.reached(token_file="", client_cert=cert, client_key=key)
            attachment = hookloop.attach(
                hookloop.Composite(sync=echo), gateway=reach, worker="web", backoff=QUICK
            )
            session = gate.next()
            self.assertNotIn("authorization", session.metadata)
            self.assertEqual(session.identity, [b"hook"])
            session.open(Engine())
            session.end()
            attachment.stop(grace_period=0)


class InvalidArguments(unittest.TestCase):
    def test_arguments(self):
        reach = hookloop.Gateway("a:1", token_file="t")
        hook = hookloop.Composite()
        cases = {
            "neither token_file nor client_cert": lambda: hookloop.Gateway("a:1"),
            "address is empty": lambda: hookloop.Gateway("", token_file="t"),
            "expected both files, or neither": lambda: hookloop.Gateway("a:1", client_cert="c"),
            "expected either a worker or an intercept": lambda: hookloop.attach(
                hook, gateway=reach
            ),
            "got no hook": lambda: hookloop.attach(gateway=reach, worker="w"),
            "expected CompositeController/name or": lambda: hookloop.Intercept("web", "a"),
        }
        for text, make in cases.items():
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                make()

    def test_delays_grow_and_are_longest_after_refusals(self):
        backoff = Backoff()
        for failures, refused, longest in (
            (0, False, 0.2),
            (1, False, 0.4),
            (3, False, 1.6),
            (100, False, 10),
            (0, True, 30),
        ):
            self.assertTrue(longest / 2 <= backoff.delay(failures, refused) <= longest)
