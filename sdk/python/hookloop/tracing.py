"""Continues the engine's traces (W3C traceparent) if the program has OpenTelemetry.

The program configures the export of spans: with opentelemetry-instrument, or with a TracerProvider
of its own.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None


def span(method: str, metadata: Iterable[tuple[str, Any]]) -> AbstractContextManager[Any]:
    """Returns the span of one call, a child of the caller's span. It is the current span within the
    block."""
    if trace is None:
        return nullcontext()
    carrier = {key: value for key, value in metadata if isinstance(value, str)}
    started: AbstractContextManager[Any] = trace.get_tracer("hookloop").start_as_current_span(
        method.lstrip("/"), context=propagate.extract(carrier), kind=trace.SpanKind.SERVER
    )
    return started
