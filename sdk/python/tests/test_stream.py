"""Streams that an engine opens with a server on loopback."""

import contextlib
import json
import queue
import threading
import time
import unittest

import grpc

import hookloop
from hookloop import streams
from hookloop.composite.v1 import composite_pb2
from hookloop.rpc_status import Status
from hookloop.stream.v1 import stream_pb2
from tests.engine import Engine, assemble, fragments
from tests.requests import BIG, invoke, customize_request, decorator_request, serving, sync_request
from tests.test_server import WAIT, check
from tests.test_session import pods

END = None


class Stream:
    """The engine's side of a stream with a hook."""

    def __init__(self, channel, engine):
        self.engine, self._sent = engine, queue.Queue()
        method = channel.stream_stream(
            f"/{streams.SERVICE}/Connect",
            request_serializer=stream_pb2.EngineMessage.SerializeToString,
            response_deserializer=stream_pb2.HookMessage.FromString,
        )
        self.call = method(iter(self._sent.get, END), timeout=WAIT)

    def send(self, *messages):
        for message in messages:
            self._sent.put(message)

    def read(self):
        message = next(self.call)
        if not message.HasField("fragment"):
            return message
        parts = [message.fragment]
        while sum(len(part.data) for part in parts) < parts[0].total_bytes:
            parts.append(next(self.call).fragment)
        return assemble(parts)

    def open(self):
        self.send(self.engine.hello())
        self.welcome = self.read().welcome
        self.engine.apply_welcome(self.welcome)
        return self.welcome

    def invoke(self, request, **fields):
        self.send(self.engine.call(request, **fields))
        return self.engine.response(self.read().answer)

    def end(self):
        self._sent.put(END)


@contextlib.contextmanager
def streaming(*hooks, engine=None, **options):
    """Yields an open stream with hooks, and their server."""
    with serving(*hooks, **options) as (channel, server):
        stream = Stream(channel, engine or Engine())
        stream.open()
        yield stream, channel, server
        stream.end()


def echo(request):
    """Returns a ConfigMap for each Pod, and a status with a large integer."""
    children = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name.replace("/", "-")},
            "n": pod["spec"]["n"],
        }
        for name, pod in request["children"]["Pod.v1"].items()
    ]
    return {"status": {"n": request["parent"]["spec"]["n"]}, "children": children}


class Held:
    """A function that waits until the test releases it."""

    def __init__(self):
        self.entered, self.leave = threading.Event(), threading.Event()

    def __call__(self, _):
        self.entered.set()
        assert self.leave.wait(WAIT)
        return {"status": {"done": True}}


class Opening(unittest.TestCase):
    def test_an_engine_of_another_version_gets_unimplemented(self):
        with serving(hookloop.Composite(sync=echo)) as (channel, _):
            stream = Stream(channel, Engine())
            stream.send(stream.engine.hello(versions=[2, 3]))
            with self.assertRaises(grpc.RpcError) as raised:
                stream.read()
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            self.assertIn("versions [2, 3]", raised.exception.details())
            stream.end()

    def test_the_welcome_names_the_methods_that_have_a_function(self):
        with serving(hookloop.Composite(sync=echo), hookloop.Decorator(finalize=echo)) as (
            channel,
            _,
        ):
            stream = Stream(channel, Engine())
            self.assertEqual(
                stream.open().methods,
                [
                    "/hookloop.composite.v1.CompositeHookService/Sync",
                    "/hookloop.decorator.v1.DecoratorHookService/Finalize",
                ],
            )
            stream.end()


class Requests(unittest.TestCase):
    def test_the_response_is_that_of_a_single_call(self):
        requests = [
            sync_request(),
            decorator_request(),
            customize_request(),
            sync_request(composite_pb2.FinalizeRequest),
        ]
        hook = {
            "sync": lambda r: echo(r) if "parent" in r else {"labels": {"a": "b"}},
            "finalize": lambda r: echo(r) | {"finalized": True},
            "customize": lambda _: {
                "relatedResources": [{"apiVersion": "v1", "resource": "secrets"}]
            },
        }
        with streaming(hookloop.Composite(**hook), hookloop.Decorator(**hook)) as (
            stream,
            channel,
            _,
        ):
            for request, method in zip(requests, ("Sync", "Sync", "Customize", "Finalize")):
                for _ in range(2):
                    self.assertEqual(
                        stream.invoke(request, subject=type(request).__name__),
                        invoke(channel, method, request),
                    )

    def test_large_integers_survive(self):
        with streaming(hookloop.Composite(sync=echo)) as (stream, _, _):
            got = stream.invoke(sync_request())
            self.assertEqual(json.loads(got.status), {"n": BIG})
            self.assertEqual([json.loads(child.body)["n"] for child in got.children], [BIG, BIG])

    def test_changes_by_a_function_do_not_reach_the_state(self):
        def sync(request):
            found = [
                request["parent"],
                request["children"]["Pod.v1"]["near"],
                request["related"]["namespaces.v1"]["shop"],
            ]
            values = [one["spec"].pop("n") for one in found]
            request["children"]["Pod.v1"].clear()
            return {"status": {"n": values}}

        with streaming(hookloop.Composite(sync=sync)) as (stream, _, _):
            for _ in range(3):
                self.assertEqual(json.loads(stream.invoke(sync_request()).status), {"n": [BIG] * 3})

    def test_objects_are_decoded_at_the_first_access(self):
        request = pods(1, 2)
        request.children[0].objects[1].body = b"no JSON"
        hook = hookloop.Composite(
            sync=lambda r: {
                "status": {
                    "first": r["children"]["Pod.v1"]["p0001"],
                    "n": len(r["children"]["Pod.v1"]),
                }
            }
        )
        with streaming(hook) as (stream, _, _):
            self.assertEqual(json.loads(stream.invoke(request).status), {"first": {"v": 0}, "n": 2})

    def test_large_requests_and_responses(self):
        request = pods(1)
        request.children[0].objects[0].body = json.dumps({"text": "x" * (20 << 20)}).encode()

        def sync(r):
            return {
                "children": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
                    | r["children"]["Pod.v1"]["p0001"]
                ]
            }

        with streaming(hookloop.Composite(sync=sync)) as (stream, _, _):
            stream.send(*fragments(stream.engine.call(request)))
            got = stream.engine.response(stream.read().answer)
            self.assertEqual(len(json.loads(got.children[0].body)["text"]), 20 << 20)

    def test_failures_carry_details(self):
        cases = [
            (hookloop.Reject("NoSuchPlan", "plan gold"), 9, "plan gold", "ErrorInfo"),
            (hookloop.RetryAfter(2, "busy"), 8, "busy", "RetryInfo"),
            (KeyError("spec"), 13, "KeyError: 'spec'", None),
        ]
        for error, code, text, detail in cases:

            def sync(_, error=error):
                raise error

            with self.subTest(text), streaming(hookloop.Composite(sync=sync)) as (stream, _, _):
                with self.assertLogs("hookloop") if detail is None else contextlib.nullcontext():
                    stream.send(stream.engine.call(sync_request()))
                    got = stream.read().answer.error
                self.assertEqual((got.code, got.message), (code, text))
                self.assertEqual(
                    [d.type_url.rpartition(".")[2] for d in got.details], [detail] if detail else []
                )

    def test_methods_that_are_not_served(self):
        with streaming(hookloop.Composite(sync=echo)) as (stream, _, _):
            for request in (customize_request(), decorator_request()):
                stream.send(stream.engine.call(request))
                self.assertEqual(stream.read().answer.error.code, 12)

    def test_requests_with_objects_in_the_wrong_place(self):
        whole = sync_request().SerializeToString()
        shell = composite_pb2.SyncRequest().SerializeToString()
        for request, text in (
            (whole, "holds objects, expected them in the slots"),
            (shell, "no place for the objects in slot 2"),
        ):
            with self.subTest(text), streaming(hookloop.Composite(sync=echo)) as (
                stream,
                _,
                _,
            ), self.assertLogs("hookloop"):
                stream.send(stream.engine.call(sync_request(), envelope=request))
                self.assertIn(text, stream.read().answer.error.message)


class Streams(unittest.TestCase):
    def test_health(self):
        with serving(hookloop.Composite(sync=echo)) as (channel, _):
            self.assertEqual(check(channel, streams.SERVICE), 1)

    def test_the_window_is_as_wide_as_there_are_threads(self):
        with serving(hookloop.Composite(sync=echo), threads=5, build_id="v7") as (channel, _):
            stream = Stream(channel, Engine())
            welcome = stream.open()
            self.assertEqual((welcome.window.calls, welcome.build_id), (5, "v7"))
            stream.end()

    def test_answers_come_in_any_order(self):
        slow = Held()
        hook = hookloop.Composite(
            sync=lambda r: slow(r) if r["parent"]["metadata"]["name"] == "slow" else {}
        )
        with streaming(hook) as (stream, _, _):
            stream.send(
                stream.engine.call(pods(parent="slow"), subject="a"),
                stream.engine.call(pods(parent="fast"), subject="b"),
            )
            self.assertEqual(stream.read().answer.call_id, 2)
            slow.leave.set()
            self.assertEqual(stream.read().answer.call_id, 1)

    def test_cancel_is_answered_while_the_function_runs(self):
        slow = Held()
        with streaming(hookloop.Composite(sync=slow)) as (stream, _, _):
            stream.send(stream.engine.call(pods(1)))
            self.assertTrue(slow.entered.wait(WAIT))
            with self.assertLogs("hookloop", "WARNING") as logged:
                stream.send(stream_pb2.EngineMessage(cancel=stream_pb2.Cancel(call_id=1)))
                self.assertEqual(stream.read().answer.error.code, 1)
            self.assertRegex(
                logged.output[0],
                "Sync of Greeting shop/hi was given up: the engine has cancelled it",
            )
            slow.leave.set()
            self.assertEqual(json.loads(stream.invoke(pods(1)).status), {"done": True})

    def test_no_more_functions_run_than_there_are_threads(self):
        running, leave = [], threading.Event()

        def stuck(_):
            running.append(1)
            leave.wait(WAIT)
            return {}

        with self.assertLogs("hookloop", "WARNING"), streaming(
            hookloop.Composite(sync=stuck), threads=3
        ) as (stream, _, _):
            for number in range(1, 201):
                stream.send(stream.engine.call(pods(1), subject=str(number)))
                stream.send(stream_pb2.EngineMessage(cancel=stream_pb2.Cancel(call_id=number)))
                self.assertEqual(stream.read().answer.error.code, 1)
            leave.set()
        self.assertLessEqual(len(running), 3)

    def test_a_call_has_a_timeout(self):
        slow = Held()
        with streaming(hookloop.Composite(sync=slow)) as (stream, _, _):
            with self.assertLogs("hookloop", "WARNING") as logged:
                stream.send(stream.engine.call(pods(1), timeout=0.05))
                self.assertEqual(stream.read().answer.error.code, 4)
            self.assertRegex(
                logged.output[0],
                "Sync of Greeting shop/hi was given up: the hook's function took longer",
            )
            slow.leave.set()

    def test_a_resumed_stream_sends_changes(self):
        engine = Engine()
        with serving(hookloop.Composite(sync=echo)) as (channel, _):
            for number in range(3):
                engine.last = 0
                stream = Stream(channel, engine)
                self.assertEqual(len(stream.open().subjects), min(number, 1))
                call = engine.call(sync_request())
                self.assertEqual(len(call.call.upserts), 0 if number else 5)
                stream.send(call)
                self.assertEqual(len(engine.response(stream.read().answer).children), 2)
                stream.end()
                self.assertEqual(list(stream.call), [])

    def test_a_second_stream_with_the_same_id_ends_the_first(self):
        slow, engine = Held(), Engine()
        with streaming(hookloop.Composite(sync=slow), engine=engine) as (first, channel, _):
            first.send(engine.call(pods(1)))
            self.assertTrue(slow.entered.wait(WAIT))
            engine.last = 0
            second = Stream(channel, engine)
            self.assertEqual([state.subject for state in second.open().subjects], ["a"])
            with self.assertRaises(grpc.RpcError) as raised:
                next(first.call)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.ABORTED)
            slow.leave.set()
            self.assertEqual(json.loads(second.invoke(pods(1)).status), {"done": True})
            second.end()

    def test_calls_of_a_lost_stream_are_given_up(self):
        slow, engine = Held(), Engine()
        with serving(hookloop.Composite(sync=slow)) as (channel, server):
            for _ in range(5):
                engine.last = 0
                stream = Stream(channel, engine)
                stream.open()
                stream.send(*(engine.call(pods(1), subject=f"s{n}") for n in range(4)))
                self.assertTrue(slow.entered.wait(WAIT))
                stream.call.cancel()
            slow.leave.set()
            engine.last = 0
            last = Stream(channel, engine)
            last.open()
            self.assertEqual(json.loads(last.invoke(pods(1), subject="s0").status), {"done": True})
            self.assertEqual(len([one for one in server._streams.conversations() if one.open]), 1)
            last.end()

    def test_a_protocol_violation_ends_the_stream(self):
        with serving(hookloop.Composite(sync=echo)) as (channel, _):
            stream = Stream(channel, Engine())
            stream.send(stream.engine.call(pods(1)))
            with self.assertRaises(grpc.RpcError) as raised:
                stream.read()
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("expected hello first", raised.exception.details())

    def test_a_trigger_is_answered(self):
        with streaming(hookloop.Composite(sync=echo)) as (stream, _, server):
            with contextlib.closing(
                Later(
                    lambda: server.trigger(
                        hookloop.Trigger(
                            controller_kind=hookloop.ControllerKind.COMPOSITE,
                            controller_name="c",
                            parents=["shop/hi", "all"],
                            reason="new data",
                        )
                    )
                )
            ) as later:
                sent = stream.read().trigger
                self.assertEqual(
                    [(p.namespace, p.name) for p in sent.parents], [("shop", "hi"), ("", "all")]
                )
                self.assertEqual((sent.controller_name, sent.reason), ("c", "new data"))
                stream.send(
                    stream_pb2.EngineMessage(
                        trigger_result=stream_pb2.TriggerResult(id=sent.id, parents=7)
                    )
                )
                self.assertEqual(later.result(), 7)
            with contextlib.closing(
                Later(lambda: server.trigger(hookloop.Trigger(label_selector="a in")))
            ) as later:
                refusal = Status(code=3, message="a in: no selector")
                stream.send(
                    stream_pb2.EngineMessage(
                        trigger_result=stream_pb2.TriggerResult(
                            id=stream.read().trigger.id, error=refusal
                        )
                    )
                )
                with self.assertRaisesRegex(hookloop.TriggerError, "no selector"):
                    later.result()

    def test_a_trigger_that_one_stream_refuses(self):
        with streaming(hookloop.Composite(sync=echo), engine=Engine("one")) as (
            first,
            channel,
            server,
        ):
            second = Stream(channel, Engine("two"))
            second.open()

            def triggered(*answers):
                with contextlib.closing(
                    Later(lambda: server.trigger(hookloop.Trigger(controller_name="c")))
                ) as later:
                    for stream, answer in zip((first, second), answers):
                        stream.send(
                            stream_pb2.EngineMessage(
                                trigger_result=stream_pb2.TriggerResult(
                                    id=stream.read().trigger.id, **answer
                                )
                            )
                        )
                    return later.result()

            unknown = {"error": Status(code=5, message="no controller c here")}
            self.assertEqual(triggered(unknown, {"parents": 2}), 2)
            self.assertEqual(triggered({"parents": 0}, unknown), 0)
            with self.assertRaisesRegex(hookloop.TriggerError, "no controller c here"):
                triggered(unknown, unknown)
            second.end()

    def test_a_trigger_does_not_come_before_the_welcome(self):
        with serving(hookloop.Composite(sync=echo)) as (channel, server):
            stream = Stream(channel, Engine())
            end = time.monotonic() + WAIT
            while not server._streams.conversations():  # the stream is there, and no session yet
                self.assertLess(time.monotonic(), end, "the server has no stream")
            with self.assertRaisesRegex(ConnectionError, "no stream is open"):
                server.trigger(timeout=1)
            with self.assertRaisesRegex(ConnectionError, "no stream is open"):
                server._streams.conversations()[0].trigger(hookloop.Trigger()).result(1)
            stream.send(stream.engine.hello())
            self.assertEqual(stream.read().WhichOneof("message"), "welcome")
            stream.end()

    def test_a_trigger_from_within_a_function(self):
        servers = queue.Queue()

        def sync(_):
            server = servers.get(timeout=WAIT)
            return {"status": {"parents": server.trigger(hookloop.Trigger(reason="from within"))}}

        with streaming(hookloop.Composite(sync=sync), threads=1) as (stream, _, server):
            servers.put(server)
            stream.send(stream.engine.call(sync_request()))
            sent = stream.read().trigger
            stream.send(
                stream_pb2.EngineMessage(
                    trigger_result=stream_pb2.TriggerResult(id=sent.id, parents=2)
                )
            )
            self.assertEqual(
                json.loads(stream.engine.response(stream.read().answer).status), {"parents": 2}
            )

    def test_invalid_triggers(self):
        with serving(hookloop.Composite(sync=echo)) as (_, server):
            for fields, error, text in (
                ({}, ConnectionError, "no stream is open"),
                ({"parents": "shop/hi"}, ValueError, "expected a list"),
                ({"parents": ["shop/"]}, ValueError, 'expected "namespace/name" or "name"'),
                (
                    {"parents": ["a"], "label_selector": "b=c"},
                    ValueError,
                    "label_selector and parents are set",
                ),
                ({"reason": "x" * 257}, ValueError, "reason has 257 bytes, expected at most 256"),
            ):
                with self.subTest(text), self.assertRaisesRegex(error, text):
                    server.trigger(hookloop.Trigger(**fields))


class Later:
    """Calls a function in a thread."""

    def __init__(self, function):
        self._outcome = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(function,))
        self._thread.start()

    def _run(self, function):
        try:
            self._outcome.put((function(), None))
        except Exception as error:  # the test checks it
            self._outcome.put((None, error))

    def result(self):
        value, error = self._outcome.get(timeout=WAIT)
        if error is not None:
            raise error
        return value

    def close(self):
        self._thread.join(WAIT)


class Ends(unittest.TestCase):
    def end_while_busy(self, ending):
        """Ends a stream with an open call. The hook answers the call before the stream ends."""
        slow = Held()
        with streaming(hookloop.Composite(sync=slow)) as (stream, _, server):
            stream.send(stream.engine.call(pods(1)))
            self.assertTrue(slow.entered.wait(WAIT))
            ending(stream, server)
            slow.leave.set()
            self.assertEqual(
                json.loads(stream.engine.response(stream.read().answer).status), {"done": True}
            )
            self.assertEqual(list(stream.call), [])
            self.assertEqual(stream.call.code(), grpc.StatusCode.OK)

    def test_the_engine_drains(self):
        self.end_while_busy(
            lambda stream, _: stream.send(stream_pb2.EngineMessage(drain=stream_pb2.Drain()))
        )

    def test_the_engine_ends_its_side(self):
        self.end_while_busy(lambda stream, _: stream.end())

    def test_the_server_stops(self):
        def stop(stream, server):
            later = Later(lambda: server.stop(WAIT))
            self.addCleanup(later.close)
            self.assertTrue(stream.read().HasField("drain"))

        self.end_while_busy(stop)

    def test_a_function_that_does_not_return_has_the_grace_period(self):
        slow = Held()
        self.addCleanup(slow.leave.set)
        with streaming(hookloop.Composite(sync=slow)) as (stream, _, server):
            stream.send(stream.engine.call(pods(1)))
            self.assertTrue(slow.entered.wait(WAIT))
            with contextlib.closing(Later(lambda: server.stop(grace_period=0))) as stopped:
                stopped.result()

    def test_a_call_that_crosses_the_drain_is_answered(self):
        with streaming(hookloop.Composite(sync=echo)) as (stream, _, server):
            stopped = Later(lambda: server.stop(WAIT))
            self.assertTrue(stream.read().HasField("drain"))
            self.assertEqual(len(stream.invoke(sync_request()).children), 2)
            stream.send(stream_pb2.EngineMessage(drain=stream_pb2.Drain()))
            self.assertEqual(list(stream.call), [])
            stopped.result()
