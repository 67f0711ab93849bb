"""Continues the engine's traces (W3C traceparent) where the program has OpenTelemetry; without it, nothing is traced.

Which spans are exported, and where to, is the program's business: opentelemetry-instrument, or a TracerProvider of its own.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None


def span(method: str, metadata: Iterable[tuple[str, Any]]) -> AbstractContextManager:
    """The span of one call, a child of the caller's; it is the current one within the block."""
    if trace is None:
        return nullcontext()
    carrier = {key: value for key, value in metadata if isinstance(value, str)}
    return trace.get_tracer("hookloop").start_as_current_span(
        method.lstrip("/"), context=propagate.extract(carrier), kind=trace.SpanKind.SERVER
    )
