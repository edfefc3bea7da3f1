"""The daemon's numbers as JSON and in the text format of Prometheus (version 0.0.4). Must not count anything."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from tamis import __version__
from tamis.protocols.measured import (
    MethodReport,
    MetricsReport,
    MetricsText,
    ProcessNumbers,
    TimeNumbers,
    ToolReport,
)
from tamis.server.runtime.observe.metrics import BUCKETS_S, Metrics, Times, process_numbers

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def report(metrics: Metrics, *, dropped_log_lines: int = 0) -> MetricsReport:
    """The numbers as data; tools and methods in the order of their names."""
    own = dict(process_numbers())
    statuses = metrics.by_status()
    return MetricsReport(
        uptime_ms=round((time.monotonic() - metrics.started) * 1000),
        process=ProcessNumbers(
            cpu_seconds=own["cpuSeconds"],
            resident_bytes=int(own["residentBytes"]),
            open_files=int(own.get("openFiles", 0)),
        ),
        running=metrics.running,
        calls=statuses.total(),
        by_status=dict(sorted(statuses.items())),
        by_error_type=dict(sorted(metrics.errors.items())),
        starts={"warm": metrics.starts["warm"], "cold": metrics.starts["cold"]},
        approvals=dict(sorted(metrics.answers.items())),
        script_cpu_seconds=round(metrics.cpu_s, 3),
        tools=[
            ToolReport(
                tool_id=name,
                calls=numbers.statuses.total(),
                by_status=dict(sorted(numbers.statuses.items())),
                attempts=numbers.attempts,
                replayed=numbers.replayed,
                duration_ms=_times(numbers.times),
            )
            for name, numbers in sorted(metrics.tools.items())
        ],
        methods=[
            MethodReport(
                method=name, requests=numbers.times.count, errors=numbers.errors, duration_ms=_times(numbers.times)
            )
            for name, numbers in sorted(metrics.methods.items())
        ],
        dropped_log_lines=dropped_log_lines,
    )


def _times(times: Times) -> TimeNumbers:
    count = times.count
    return TimeNumbers(
        count=count,
        mean=round(1000 * times.total / count, 3) if count else 0.0,
        p50=round(1000 * times.quantile(0.5), 3),
        p95=round(1000 * times.quantile(0.95), 3),
        p99=round(1000 * times.quantile(0.99), 3),
        max=round(1000 * times.most, 3),
    )


def prometheus(metrics: Metrics, *, dropped_log_lines: int = 0) -> MetricsText:
    """The numbers as a scraper reads them: base units (seconds, bytes), one help and type line a family."""
    return MetricsText(content_type=CONTENT_TYPE, text="\n".join(_lines(metrics, dropped_log_lines)) + "\n")


Sample = tuple[Mapping[str, str], float]


def _lines(metrics: Metrics, dropped_log_lines: int) -> Iterator[str]:
    own = dict(process_numbers())
    tools, methods = sorted(metrics.tools.items()), sorted(metrics.methods.items())
    yield from _family("tamis_build_info", "gauge", "Which version runs.", [({"version": __version__}, 1)])
    uptime = time.monotonic() - metrics.started
    yield from _family("tamis_uptime_seconds", "gauge", "Since the daemon started.", [({}, uptime)])
    yield from _family("process_cpu_seconds_total", "counter", "Processor time.", [({}, own["cpuSeconds"])])
    yield from _family("process_resident_memory_bytes", "gauge", "Resident memory.", [({}, own["residentBytes"])])
    yield from _family("process_open_fds", "gauge", "Open descriptors.", [({}, own.get("openFiles", 0))])
    yield from _family("tamis_calls_running", "gauge", "Calls that run now.", [({}, metrics.running)])
    yield from _family(
        "tamis_calls_total",
        "counter",
        "Calls by tool and status.",
        [
            ({"tool": name, "status": status}, count)
            for name, numbers in tools
            for status, count in sorted(numbers.statuses.items())
        ],
    )
    errors, answers = sorted(metrics.errors.items()), sorted(metrics.answers.items())
    yield from _counts("tamis_call_errors_total", "Calls that failed, by error type.", "type", errors)
    attempts = [(name, numbers.attempts) for name, numbers in tools]
    yield from _counts("tamis_call_attempts_total", "Runs of a tool, with those of retries.", "tool", attempts)
    replayed = [(name, numbers.replayed) for name, numbers in tools if numbers.replayed]
    yield from _counts("tamis_calls_replayed_total", "Calls that were answered with a stored result.", "tool", replayed)
    yield from _histograms(
        "tamis_call_duration_seconds",
        "How long calls took.",
        [({"tool": name}, numbers.times) for name, numbers in tools],
    )
    starts = [(name, metrics.starts[name]) for name in ("warm", "cold")]
    told = "Runs in a sandbox that waited, or that was started for the call."
    yield from _counts("tamis_sandbox_starts_total", told, "start", starts)
    yield from _family("tamis_script_cpu_seconds_total", "counter", "Processor time of scripts.", [({}, metrics.cpu_s)])
    yield from _counts("tamis_approvals_total", "Questions to a person, by answer.", "answer", answers)
    failed = [(name, numbers.errors) for name, numbers in methods if numbers.errors]
    yield from _counts("tamis_request_errors_total", "Requests that were answered with an error.", "method", failed)
    yield from _histograms(
        "tamis_request_duration_seconds",
        "How long requests took.",
        [({"method": name}, numbers.times) for name, numbers in methods],
    )
    dropped = "Log lines that nobody took."
    yield from _family("tamis_log_lines_dropped_total", "counter", dropped, [({}, dropped_log_lines)])


def _family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    lines = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    if lines:
        yield f"# HELP {name} {help_text}"
        yield f"# TYPE {name} {kind}"
        yield from lines


def _counts(name: str, help_text: str, label: str, counts: Iterable[tuple[str, float]]) -> Iterator[str]:
    """A counter with one label."""
    return _family(name, "counter", help_text, [({label: of}, count) for of, count in counts])


def _histograms(name: str, help_text: str, rows: list[tuple[Mapping[str, str], Times]]) -> Iterator[str]:
    if not rows:
        return
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} histogram"
    for labels, times in rows:
        seen = 0
        for bound, count in zip((*BUCKETS_S, float("inf")), times.counts, strict=True):
            seen += count
            yield f"{name}_bucket{_labels({**labels, 'le': _number(bound)})} {seen}"
        yield f"{name}_sum{_labels(labels)} {_number(times.total)}"
        yield f"{name}_count{_labels(labels)} {times.count}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else f"{value:.6g}" if value < 1e6 else f"{value:.3f}"
