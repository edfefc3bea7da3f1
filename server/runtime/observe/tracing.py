"""W3C trace context: which trace a call belongs to, read from a host and passed on to everything the call starts (D94).

`traceparent` is version, trace id, parent id and flags in lower-case hex; `tracestate` is the vendors' own and goes through as it came.
A value that does not follow the recommendation counts as none, as the recommendation asks. Must not know who collects traces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from tamis import __version__
from tamis.protocols.contract import ExecutionResult

# https://www.w3.org/TR/trace-context/: a higher version may append fields, ff is no version
_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_STATE = re.compile(r"[\x20-\x7e\t]*")
MAX_STATE_CHARS = 512


class Trace(msgspec.Struct, frozen=True):
    """A place in a trace."""

    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits: what is started now is a child of it."""
    flags: str = "00"
    state: str = ""

    @property
    def parent(self) -> str:
        """The `traceparent` of what is started now."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"

    def child(self) -> Trace:
        """A new place below this one."""
        return msgspec.structs.replace(self, span_id=os.urandom(8).hex())

    def headers(self) -> dict[str, str]:
        """As HTTP headers and MCP metadata spell it."""
        return {"traceparent": self.parent} | ({"tracestate": self.state} if self.state else {})

    def variables(self) -> dict[str, str]:
        """As environment variables, which OpenTelemetry's libraries for command line programs read."""
        return {name.upper(): value for name, value in self.headers().items()}


def read_trace(parent: str | None, state: str | None = None) -> Trace | None:
    """The trace that a host names; None for none and for a `traceparent` that is not valid."""
    match = _PARENT.fullmatch(parent) if parent is not None and len(parent) <= 1_000 else None
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    fits = state is not None and len(state) <= MAX_STATE_CHARS and _STATE.fullmatch(state)
    # of the flags only those of version 00 are known
    return Trace(trace_id, span_id, f"{int(flags, 16) & 0x03:02x}", (state or "").strip() if fits else "")


# Spans of calls for OpenTelemetry, with the extra ``otel`` and ``[telemetry] traces = "otlp"``; nothing is sent otherwise. Each call is a span named
# by the GenAI conventions (``execute_tool ID``) below the host's trace, and what the call starts is told the span as its parent. Arguments and
# results are never part of a span. Whatever goes wrong with the collector never disturbs a call.


MISSING = "install the extra: pip install 'tamis[otel]'"


class Span:
    """One call's span; what it starts is a child of ``trace``."""

    def __init__(self, span: Any, trace: Trace | None) -> None:
        self._span = span
        self.trace = trace

    def ended(self, result: ExecutionResult | None) -> None:
        """Ends the span with what came of the call; None for one that was broken off."""
        from opentelemetry.trace import Status, StatusCode

        attributes: dict[str, str | int] = {"tamis.status": "aborted" if result is None else result.status}
        if result is not None:
            attributes |= {"gen_ai.tool.name": result.tool_id, "tamis.tool.version": result.version}
            attributes |= {"tamis.attempts": result.attempts}
            if result.error is not UNSET:
                attributes["error.type"] = result.error.type
        self._span.set_attributes(attributes)
        if result is None or result.status not in ("success", "accepted"):
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class Telemetry:
    """The tracer of one runtime; made by ``open_telemetry``."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("tamis", __version__)

    def begin(self, call_id: str, name: str, trace: Trace | None, attributes: Mapping[str, str]) -> Span:
        """Begins the span of a call, below the host's trace if there is one."""
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        propagator = TraceContextTextMapPropagator()
        context = propagator.extract(trace.headers()) if trace is not None else None
        told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": call_id}
        kept = {key: value for key, value in attributes.items() if value}
        span = self._tracer.start_span(
            f"execute_tool {name[:200]}", context=context, kind=SpanKind.INTERNAL, attributes={**told, **kept}
        )
        from opentelemetry.trace import set_span_in_context

        carrier: dict[str, str] = {}
        propagator.inject(carrier, set_span_in_context(span))
        return Span(span, read_trace(carrier.get("traceparent"), carrier.get("tracestate")))

    def close(self) -> None:
        """Sends what is left, within the exporter's own time limit."""
        self._provider.shutdown()


def open_telemetry(endpoint: str, say: Callable[[str], object]) -> Telemetry | None:
    """The tracer that sends to a collector; None, and the reason said, where it cannot be had.

    An empty ``endpoint`` leaves it to the variables that OpenTelemetry defines (``OTEL_EXPORTER_OTLP_ENDPOINT`` and its like).
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        say(f"telemetry.traces is 'otlp', but {error.name} is not installed; {MISSING}")
        return None
    _tell_of_failures(say)
    try:
        address = f"{endpoint.rstrip('/')}/v1/traces" if endpoint else None
        exporter = OTLPSpanExporter(endpoint=address, session=_straight_session())
        provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "tamis", SERVICE_VERSION: __version__}))
        provider.add_span_processor(BatchSpanProcessor(exporter))
    except Exception as error:  # a collector's address that the library refuses
        say(f"telemetry cannot be opened: {type(error).__name__}: {error}")
        return None
    return Telemetry(provider)


def _straight_session() -> Any:
    """A session that stays with the collector that the operator named: a redirect is an answer like any other."""
    import requests  # the exporter's own client library, of the same extra

    session: Any = requests.Session()
    session.get_redirect_target = _no_target
    return session


def _no_target(_response: object) -> None:
    return None


def _tell_of_failures(say: Callable[[str], object]) -> None:
    import logging

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"telemetry: {record.getMessage()[:300]}")

    # without a handler of its own the library's words would stand on standard error in their own form
    library = logging.getLogger("opentelemetry")
    library.handlers[:] = [Told()]
    library.propagate = False
