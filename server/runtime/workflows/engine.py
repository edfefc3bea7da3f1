"""What runs a workflow's payload: the interface of engines, and which one the settings choose (W17).

An engine gets a ``WorkflowExecutionPayload`` and a ``Run``: through that it has tools called, tells what its nodes do, and gives values early. Third
parties bring engines by entry point (``tamis.engines``). Must not know how any of them works.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import SplitResult, urlsplit

from tamis.protocols.contract import ExecutionError, Status
from tamis.protocols.suggest import best, hint
from tamis.protocols.workflow.payload import Payload
from tamis.server.runtime.installed import Brought, bring, names, words
from tamis.server.runtime.settings.config import EngineSettings, Settings

if TYPE_CHECKING:
    from tamis.server.runtime.workflows.run import Run

GROUP = "tamis.engines"
BUILT_IN = "builtin"
HTTP = "http"
_LOADED: dict[str, Brought | str] = {}
"""By name: what a package brings, or why it cannot be used. An installation does not change while a process runs."""


class EngineError(Exception):
    """The engine cannot run the payload, or gave what is no result; the text says why."""


class NodeFailed(Exception):  # noqa: N818 (an outcome, not a fault)
    """A node did not succeed, so the workflow does not."""

    def __init__(
        self,
        node_id: str,
        node_type: str,
        status: Status,
        error: ExecutionError | None,
        item: int | None = None,
        comment: str = "",
    ) -> None:
        """``comment``: what the person said who refused the node's call."""
        super().__init__(node_id)
        self.node_id = node_id
        self.node_type = node_type
        self.status: Status = status
        self.error = error
        self.item = item
        self.comment = comment


class Engine(Protocol):
    """Runs payloads."""

    async def run(self, payload: Payload, run: Run) -> dict[str, Any]:
        """The values of the payload's ``outputInterfaceMappings`` by name; one that was not taken is left out.

        Ends soon after ``run.stopping`` is set. Raises ``NodeFailed`` or ``EngineError``.
        """
        ...


def engine_of(settings: Settings) -> tuple[Engine | None, str]:
    """The engine that the settings choose, or why there is none."""
    own = settings.engine
    if own.type == BUILT_IN:
        from tamis.server.runtime.workflows.builtin import BuiltInEngine

        return BuiltInEngine(), ""
    if own.type == HTTP:
        fault = url_fault(own.url, settings)
        if fault:
            return None, f"engine.url {fault}"
        from tamis.server.runtime.workflows.http_engine import HttpEngine

        return HttpEngine(own.url), ""
    return _installed(own)


def missing_engine(name: str) -> str:
    """That no installed package brings an engine; empty when one does. Loads nothing."""
    known = names(GROUP)
    if name in known:
        return ""
    listed = f"; installed are {', '.join(known)}" if known else ""
    missing = f"no installed package brings an engine of that name (entry points {GROUP})"
    return f"engine.type is '{name}', and {missing}{hint(best(name, known)) or listed}"


def _installed(own: EngineSettings) -> tuple[Engine | None, str]:
    if own.type not in _LOADED:
        # lists ask for each workflow, and looking at what is installed takes long
        _LOADED[own.type] = bring(GROUP, own.type, "the engine") or missing_engine(own.type)
    brought = _LOADED[own.type]
    if isinstance(brought, str):
        return None, brought
    try:
        made = brought.plugin
        engine = made() if isinstance(made, type) else made
        runs = callable(getattr(engine, "run", None))
    except BaseException as error:  # a stranger's code; also SystemExit
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        return None, f"{brought.where} cannot be used: {words(error)}"
    return (cast("Engine", engine), "") if runs else (None, f"{brought.where} cannot be used: it has no method 'run'")


def url_fault(url: str, settings: Settings) -> str:
    """Why an engine's URL cannot be used, cause and remedy; empty when it can."""
    if not url:
        return "is missing; write where the engine listens"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        return f"is no URL: {error}"
    if parts.scheme not in ("http", "https") or not host:
        return "must begin with http:// or https:// and a host"
    if parts.username is not None or parts.password is not None:
        return "must hold no user or password"
    return "" if _is_near(host) else _policy_fault(parts, settings)


def _is_near(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _policy_fault(parts: SplitResult, settings: Settings) -> str:
    from tamis.sandbox.network.hosts import narrow, parse_cidr, parse_policy_rule, parse_rule, refusal_of

    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        wanted = parse_rule(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        rules = [parse_policy_rule(rule) for rule in settings.policy.allow_hosts]
        ranges = [parse_cidr(one) for one in settings.policy.allow_cidrs]
    except ValueError as error:
        return f"cannot be used: {error}"
    if any(narrow(rule, wanted, ranges) is not None for rule in rules):
        return ""
    return f"names '{host}', which is not this machine: {refusal_of(rules, wanted, ranges)}"
