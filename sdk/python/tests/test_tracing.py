"""The engine's trace continues within a call. Fakes replace OpenTelemetry, which is optional."""

import contextlib
import types
import unittest
from unittest import mock

import hookloop
from hookloop import tracing
from tests.requests import invoke, serving, sync_request
from tests.test_stream import streaming

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Tracer:
    """Records the started spans and the current one."""

    def __init__(self):
        self.started, self.current = [], None

    @contextlib.contextmanager
    def start_as_current_span(self, name, context, kind):
        self.started.append((name, context["traceparent"], kind))
        self.current = name
        try:
            yield
        finally:
            self.current = None


class Tracing(unittest.TestCase):
    def test_the_callers_trace_continues(self):
        tracer, within = Tracer(), []
        trace = types.SimpleNamespace(
            get_tracer=lambda _: tracer, SpanKind=types.SimpleNamespace(SERVER="server")
        )
        propagate = types.SimpleNamespace(extract=lambda carrier: carrier)

        def sync(_):
            within.append(tracer.current)
            return {}

        with mock.patch.multiple(tracing, trace=trace, propagate=propagate):
            with streaming(hookloop.Composite(sync=sync)) as (stream, channel, _):
                invoke(
                    channel,
                    "Sync",
                    sync_request(),
                    metadata=(("traceparent", PARENT), ("blob-bin", b"\0")),
                )
                call = stream.engine.call(sync_request())
                call.call.trace_context["traceparent"] = PARENT
                stream.send(call)
                stream.read()
        name = "hookloop.composite.v1.CompositeHookService/Sync"
        self.assertEqual(tracer.started, [(name, PARENT, "server")] * 2)
        self.assertEqual(within, [name] * 2)

    def test_without_opentelemetry_nothing_is_traced(self):
        with mock.patch.multiple(tracing, trace=None, propagate=None), serving(
            hookloop.Composite(sync=lambda _: {})
        ) as (channel, _):
            self.assertEqual(
                list(
                    invoke(
                        channel, "Sync", sync_request(), metadata=(("traceparent", PARENT),)
                    ).children
                ),
                [],
            )
