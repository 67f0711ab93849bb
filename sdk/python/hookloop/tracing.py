"""Continues the engine's traces (W3C traceparent) if OpenTelemetry is installed.

The program decides where spans are exported: with opentelemetry-instrument, or with a
TracerProvider of its own.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None


def span(method: str, metadata: Iterable[tuple[str, Any]]) -> AbstractContextManager[Any]:
    """Returns a span for one call, as a child of the caller's span. Within the block it is the
    current span.
    """
    if trace is None:
        return nullcontext()
    carrier = {key: value for key, value in metadata if isinstance(value, str)}
    started: AbstractContextManager[Any] = trace.get_tracer("hookloop").start_as_current_span(
        method.lstrip("/"), context=propagate.extract(carrier), kind=trace.SpanKind.SERVER
    )
    return started
