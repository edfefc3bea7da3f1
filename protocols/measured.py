"""The wire form of what a daemon counts (``server/metrics``). Must not know how it is counted."""

from __future__ import annotations

from tamis.protocols.contract.base import Wire


class ProcessNumbers(Wire, kw_only=True):
    """The daemon's own process."""

    cpu_seconds: float
    resident_bytes: int
    open_files: int


class TimeNumbers(Wire, kw_only=True):
    """How long something took, in milliseconds; the quantiles are read off buckets and no finer than these."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class ToolReport(Wire, kw_only=True):
    """The calls of one tool; ``other`` are those of unknown names, and of tools beyond the first 500."""

    tool_id: str
    calls: int
    by_status: dict[str, int]
    attempts: int
    """Runs, with those of retries."""
    replayed: int
    """Calls that were answered with a stored result."""
    duration_ms: TimeNumbers


class MethodReport(Wire, kw_only=True):
    """The requests of one method."""

    method: str
    requests: int
    errors: int
    duration_ms: TimeNumbers


class MetricsReport(Wire, kw_only=True):
    """Everything that was counted since the daemon started."""

    uptime_ms: int
    process: ProcessNumbers
    running: int
    """Calls that run now."""
    calls: int
    by_status: dict[str, int]
    by_error_type: dict[str, int]
    starts: dict[str, int]
    """Runs in a sandbox that waited (``warm``) or was started for the call (``cold``)."""
    approvals: dict[str, int]
    """Questions to a person, by answer."""
    script_cpu_seconds: float
    tools: list[ToolReport]
    methods: list[MethodReport]
    dropped_log_lines: int


class MetricsText(Wire, kw_only=True):
    """The same in the text format of Prometheus."""

    content_type: str
    text: str
