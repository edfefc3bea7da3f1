"""What is counted, and how it is told (D94, D86)."""

from __future__ import annotations

import gc
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from prometheus_client.parser import text_string_to_metric_families

from tamis.protocols.contract import ExecutionResult, Granted, Permissions, SandboxInfo, Status, Usage
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.observe.metrics import BUCKETS_S, MAX_LABELS, OTHER, Metrics, Times, prometheus, report


def ended(tool_id: str, status: Status = "success", ms: float = 5.0, *, warm: bool = True) -> ExecutionResult:
    return ExecutionResult(
        call_id="c",
        tool_id=tool_id,
        version="1.0.0",
        status=status,
        error=UNSET if status == "success" else failure("ScriptError", "x"),
        duration_ms=ms,
        usage=Usage(cpu_ms=2.0, max_rss_bytes=0),
        sandbox=SandboxInfo(backend="bubblewrap", version="1", layers=[], warm=warm),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
        attempts=1,
    )


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = prometheus(metrics).text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_calls_are_counted_by_tool_and_status() -> None:
    metrics = Metrics()
    for result in (ended("a:x"), ended("a:x", "error", warm=False), ended("b:y", "timeout")):
        metrics.ended(result, known=True)
    told = report(metrics)
    assert (told.calls, told.by_status) == (3, {"error": 1, "success": 1, "timeout": 1})
    assert [(tool.tool_id, tool.calls) for tool in told.tools] == [("a:x", 2), ("b:y", 1)]
    assert told.starts == {"warm": 2, "cold": 1}
    assert told.by_error_type == {"ScriptError": 2}
    assert told.script_cpu_seconds == 0.006


def test_a_result_that_is_given_again_starts_and_uses_nothing() -> None:
    metrics, again = Metrics(), ended("a:x", ms=1_000.0)
    again.replayed = True
    metrics.ended(again, known=True)
    told = report(metrics)
    assert (told.calls, told.tools[0].replayed, told.tools[0].attempts) == (1, 1, 0)
    assert (told.starts, told.script_cpu_seconds) == ({"warm": 0, "cold": 0}, 0.0)
    assert (told.tools[0].calls, told.tools[0].duration_ms.count) == (1, 0)


def test_what_the_nodes_of_a_workflow_used_is_counted_once() -> None:
    metrics, workflow = Metrics(), ended("workflow:w")
    workflow.sandbox = None
    metrics.ended(ended("a:x"), known=True)
    metrics.ended(workflow, known=True)
    assert report(metrics).script_cpu_seconds == 0.002


def test_a_name_that_no_tool_has_makes_no_row() -> None:
    """A model can make up any number of names; the numbers stay bounded."""
    metrics = Metrics()
    for number in range(MAX_LABELS + 50):
        metrics.ended(ended(f"made:up{number}", "error"), known=False)
        metrics.ended(ended(f"real:{number}"), known=True)
        metrics.answered(f"m/{number}", 0.1, failed=False)
    told = report(metrics)
    assert len(told.tools) == MAX_LABELS + 1 - 1
    assert OTHER in {tool.tool_id for tool in told.tools}
    assert told.calls == 2 * (MAX_LABELS + 50)
    assert len(told.methods) <= MAX_LABELS + 1


@given(st.lists(st.floats(0, 1_000, allow_nan=False), min_size=1, max_size=60), st.floats(0.01, 1))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(seconds: list[float], share: float) -> None:
    times = Times()
    for one in seconds:
        times.add(one)
    true = sorted(seconds)[max(0, math.ceil(share * len(seconds) - 1e-9) - 1)]
    low = max(bound for bound in (0.0, *BUCKETS_S) if bound < true or bound == 0.0)
    high = min(bound for bound in (*BUCKETS_S, math.inf) if bound >= true)
    assert low <= times.quantile(share) <= max(min(high, times.most), low)
    assert times.count == len(seconds)


def test_the_text_is_what_a_scraper_reads() -> None:
    metrics = Metrics()
    metrics.ended(ended('odd:"quoted"\\\n工具', ms=3.0), known=True)
    metrics.answered("tool/execute", 0.2, failed=True)
    metrics.answers["allow_once"] += 2
    found = samples(metrics)
    tool = ("tool", 'odd:"quoted"\\\n工具')
    assert found["tamis_calls_total", frozenset({tool, ("status", "success")})] == 1
    assert found["tamis_call_duration_seconds_count", frozenset({tool})] == 1
    assert found["tamis_call_duration_seconds_bucket", frozenset({tool, ("le", "+Inf")})] == 1
    assert found["tamis_call_duration_seconds_bucket", frozenset({tool, ("le", "0.0025")})] == 0
    assert found["tamis_call_duration_seconds_bucket", frozenset({tool, ("le", "0.005")})] == 1
    assert found["tamis_request_errors_total", frozenset({("method", "tool/execute")})] == 1
    assert found["tamis_approvals_total", frozenset({("answer", "allow_once")})] == 2
    assert found["process_resident_memory_bytes", frozenset()] > 1_000_000


def test_every_family_has_a_type_and_base_units() -> None:
    metrics = Metrics()
    metrics.ended(ended("a:x"), known=True)
    for family in text_string_to_metric_families(prometheus(metrics).text):
        assert family.type in ("counter", "gauge", "histogram")
        assert family.documentation
        assert not family.name.endswith(("_ms", "_milliseconds", "_kb"))


def test_the_process_is_measured(tmp_path: Path) -> None:
    gc.collect()  # what earlier tests left open
    before = report(Metrics()).process
    with (tmp_path / "open").open("w"):
        held = report(Metrics()).process
    assert held.open_files == before.open_files + 1
    assert before.resident_bytes > 1_000_000
