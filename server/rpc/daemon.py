"""The daemon of itself: its description, its numbers, its registry and how it is. A thin face; holds no rules of its own."""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.contract import Health, OpenRpcDocument, RegistryChanges
from tamis.protocols.measured import MetricsReport, MetricsText
from tamis.server.rpc.aside import aside
from tamis.server.rpc.params import Empty, Group, Host, Params
from tamis.server.rpc.session import Request
from tamis.server.runtime.health import health


def _description(host: Host) -> Group:
    kept: OpenRpcDocument | None = None

    async def discover(_request: Request, _params: Empty) -> OpenRpcDocument:
        """Gives the OpenRPC document of this daemon; needs neither trust nor tools."""
        # What writes descriptions is loaded with the first one: most sessions need none.
        from tamis.server.rpc.described.openrpc import document

        nonlocal kept
        if kept is None:
            kept = await aside(lambda: document(host.declared))
        return kept

    return {"rpc.discover": (Empty, discover)}


class Metrics(Params, kw_only=True):
    """Params of ``server/metrics``."""

    format: Literal["json", "prometheus"] = "json"
    """``prometheus``: the text that a scraper reads."""


def _numbers(host: Host) -> Group:

    def numbers(_request: Request, params: Metrics) -> MetricsReport | MetricsText:
        """What was counted since the daemon started: calls, outcomes, times, requests, approvals, its own process."""
        from tamis.server.runtime.observe.metrics import prometheus, report

        runtime = host.runtime
        counted, dropped = runtime.parts.metrics, runtime.dropped_log_lines
        counted.running = runtime.running
        if params.format == "prometheus":
            return prometheus(counted, dropped_log_lines=dropped)
        return report(counted, dropped_log_lines=dropped)

    return {"server/metrics": (Metrics, numbers)}


def _registry(host: Host) -> Group:

    async def reload(_request: Request, _params: Empty) -> RegistryChanges:
        """Reads settings, tools, workflows and the agent profile again, and says what changed since the last reload."""
        runtime = host.runtime
        # What was there before counts, also where nobody asked for it yet.
        assert runtime.registry is not None
        runtime.take(await aside(runtime.read_again))
        return runtime.changes_since_reload(reset=True)

    def status(_request: Request, _params: Empty) -> RegistryChanges:
        """Says what is wrong with definitions, and what changed since the last reload; reads nothing."""
        return host.runtime.changes_since_reload()

    def state(_request: Request, _params: Empty) -> Health:
        """Says how the daemon is: versions, the sandbox, what runs, what is wrong."""
        return msgspec.convert(health(host.runtime), Health)

    return {"registry/reload": (Empty, reload), "registry/status": (Empty, status), "server/health": (Empty, state)}


def methods(host: Host) -> Group:
    """The methods of this group."""
    return {**_description(host), **_numbers(host), **_registry(host)}
