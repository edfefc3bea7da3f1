"""The daemon's numbers (``server/metrics``). A thin face; holds no rules of its own."""

from __future__ import annotations

from typing import Literal

from tamis.protocols.measured import MetricsReport, MetricsText
from tamis.server.rpc.params import Group, Host, Params
from tamis.server.rpc.session import Request


class Metrics(Params, kw_only=True):
    """Params of ``server/metrics``."""

    format: Literal["json", "prometheus"] = "json"
    """``prometheus``: the text that a scraper reads."""


def methods(host: Host) -> Group:
    """The methods of this group."""

    def numbers(_request: Request, params: Metrics) -> MetricsReport | MetricsText:
        """What was counted since the daemon started: calls, outcomes, times, requests, approvals, its own process."""
        from tamis.server.runtime.observe.exposition import prometheus, report

        runtime = host.runtime
        counted, dropped = runtime.parts.metrics, runtime.dropped_log_lines
        counted.running = runtime.running
        if params.format == "prometheus":
            return prometheus(counted, dropped_log_lines=dropped)
        return report(counted, dropped_log_lines=dropped)

    return {"server/metrics": (Metrics, numbers)}
