"""The daemon itself: what it can do, how it is, what its contract says. What it counts is in ``protocols/measured.py``. Must not
know how any of it is found out.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Wire


class SandboxHealth(Wire, kw_only=True):
    """The sandbox as it was last tried; ``reason`` and ``remedy`` when there is none."""

    available: bool
    backend: str
    version: str
    network: str
    memory: str
    pids: str
    reason: str | UnsetType = UNSET
    remedy: str | UnsetType = UNSET


class WarmHealth(Wire, kw_only=True):
    """Sandboxes that wait for calls; counts since the start, ``idle`` and ``memory_bytes`` of now."""

    idle: int
    starting: int
    hits: int
    misses: int
    cold: int
    refills: int
    failed: int
    discarded: dict[str, int]
    memory_bytes: int


class AuditHealth(Wire, kw_only=True):
    """Whether calls are written down, where, and what keeps them from it."""

    enabled: bool
    path: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET


class Health(Wire, kw_only=True):
    """Result of ``server/health``."""

    status: Literal["ok", "degraded"]
    version: str
    rpc: int
    uptime_ms: int
    root: str
    tools: int
    manifest_errors: int
    conflicts: int
    running: int
    """Requests that run calls at this moment."""
    sandbox: SandboxHealth
    warm: WarmHealth | None
    audit: AuditHealth
    problems: list[str]


class OfferedSandbox(Wire, kw_only=True):
    """The sandbox as ``initialize`` tells of it."""

    backend: str
    version: str
    network: str
    memory: str
    pids: str
    available: bool


class Offered(Wire, kw_only=True):
    """What this daemon brings: its methods, the protocols that it reads, its sandbox and limits."""

    rpc: int
    methods: dict[str, Literal["stable", "experimental"]]
    protocols: list[str]
    exports: list[str]
    sandbox: OfferedSandbox
    limits: dict[str, int]


class OfferedExperimental(Wire, kw_only=True):
    """Where LSP keeps what is not of LSP."""

    tamis: Offered


class ServerCapabilities(Wire, kw_only=True):
    """What the daemon can do; ``position_encoding`` counts all positions from now on."""

    position_encoding: Literal["utf-8", "utf-16", "utf-32"]
    experimental: OfferedExperimental


class ServerInfo(Wire, kw_only=True):
    """The daemon's name and version."""

    name: str
    version: str


class InitializeResult(Wire, kw_only=True):
    """Result of ``initialize``."""

    capabilities: ServerCapabilities
    server_info: ServerInfo


class OpenRpcDocument(Wire, kw_only=True):
    """Result of ``rpc.discover``: the OpenRPC description of this daemon, with what it sends by itself under ``x-``."""

    openrpc: str
    info: dict[str, Any]
    methods: list[dict[str, Any]]
    components: dict[str, Any]
    notifications: list[dict[str, Any]] = msgspec.field(name="x-notifications")
    requests: list[dict[str, Any]] = msgspec.field(name="x-requests")
