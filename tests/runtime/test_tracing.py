"""W3C trace context (D94): what counts as a trace, and who is told it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.observe.tracing import MAX_STATE_CHARS, Trace, read_trace
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool

ID, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{ID}-{SPAN}-01"


def test_a_valid_parent_is_passed_on_as_it_came() -> None:
    trace = read_trace(PARENT, "vendor=1,other=x:y")
    assert trace == Trace(ID, SPAN, "01", "vendor=1,other=x:y")
    assert trace is not None
    assert trace.headers() == {"traceparent": PARENT, "tracestate": "vendor=1,other=x:y"}
    assert trace.variables() == {"TRACEPARENT": PARENT, "TRACESTATE": "vendor=1,other=x:y"}


@pytest.mark.parametrize(
    "parent",
    [
        None,
        "",
        "nonsense",
        f"ff-{ID}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID.upper()}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01-more",
        f"00-{ID}-{SPAN}",
        f" {PARENT}",
        f"{PARENT}\n",
        "x" * 100_000,
    ],
)
def test_what_is_not_valid_is_no_trace(parent: str | None) -> None:
    assert read_trace(parent) is None


def test_a_later_version_is_read_by_its_known_part() -> None:
    assert read_trace(f"cc-{ID}-{SPAN}-ff-what-comes") == Trace(ID, SPAN, "03")


def test_a_state_that_cannot_be_a_header_is_left_out() -> None:
    for state in ("line\nbreak", "é", "x" * (MAX_STATE_CHARS + 1)):
        trace = read_trace(PARENT, state)
        assert trace is not None
        assert trace.headers() == {"traceparent": PARENT}


@given(st.text(max_size=80), st.text(max_size=80))
def test_nothing_that_a_host_sends_raises(parent: str, state: str) -> None:
    trace = read_trace(parent, state)
    assert trace is None or read_trace(trace.parent, trace.state) == trace


def test_a_child_has_the_same_trace_and_its_own_place() -> None:
    trace = Trace(ID, SPAN, "01")
    child = trace.child()
    assert (child.trace_id, child.flags) == (ID, "01")
    assert child.span_id != SPAN
    assert read_trace(child.parent) == child


SCRIPT = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('TRACE')}))"


def tool(root: Path, settings: str = "") -> Runtime:
    (root / "tamis.toml").write_text(settings, "utf-8")
    make_tool(root, "test:trace", SCRIPT)
    return Runtime(root)


def run(runtime: Runtime, trace: Trace | None) -> ExecutionResult:
    async def work() -> ExecutionResult:
        return await execute(CallRequest(call_id="c-1", name="test:trace"), runtime.call_context(trace=trace))

    return asyncio.run(work())


def test_a_script_is_told_the_trace_of_its_call(tmp_path: Path) -> None:
    result = run(tool(tmp_path), read_trace(PARENT, "a=b"))
    assert (result.status, result.output) == ("success", {"TRACEPARENT": PARENT, "TRACESTATE": "a=b"})


def test_without_a_trace_a_script_is_told_none(tmp_path: Path) -> None:
    assert run(tool(tmp_path), None).output == {}


def test_the_audit_log_names_the_trace(tmp_path: Path) -> None:
    run(tool(tmp_path, '[audit]\npath = "audit.jsonl"\n'), read_trace(PARENT))
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()]
    assert {(line["traceId"], line["spanId"]) for line in lines} == {(ID, SPAN)}


def test_with_telemetry_a_call_is_a_span_below_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from tamis.server.runtime.observe import tracing

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def opened(_endpoint: str, _say: Any) -> tracing.Telemetry:
        return tracing.Telemetry(provider)

    monkeypatch.setattr(tracing, "open_telemetry", opened)
    result = run(tool(tmp_path, '[telemetry]\ntraces = "otlp"\n'), read_trace(PARENT))
    (span,) = exporter.get_finished_spans()
    assert (span.name, f"{span.context.trace_id:032x}") == ("execute_tool test:trace", ID)
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == SPAN
    told = dict(span.attributes or {})
    assert told["gen_ai.operation.name"] == "execute_tool"
    assert (told["gen_ai.tool.name"], told["tamis.status"]) == ("test:trace", "success")
    # what the call starts is below the call's own span
    assert result.output == {"TRACEPARENT": f"00-{ID}-{span.context.span_id:016x}-01"}


def test_a_collector_that_cannot_be_had_is_said_and_disturbs_no_call(tmp_path: Path) -> None:
    settings = '[telemetry]\ntraces = "otlp"\nendpoint = "http://127.0.0.1:9"\n'
    assert run(tool(tmp_path, settings), read_trace(PARENT)).status == "success"


def test_without_the_setting_nothing_of_opentelemetry_is_loaded(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import asyncio, sys; from pathlib import Path; from tests.runtime.test_tracing import run, tool;"
        "import tamis.server.runtime.runtime; r = tool(Path(sys.argv[1])); run(r, None);"
        "print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
