"""What ``tamis doctor`` reports: each part of the machine and the configuration with its state and, if needed, the remedy."""

from __future__ import annotations

from typing import Any, Literal

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.health import sandbox_state
from tamis.server.runtime.interpreters import interpreters_of
from tamis.server.runtime.runtime import Runtime

State = Literal["ok", "warning", "error"]


def examine(runtime: Runtime) -> dict[str, Any]:
    """The report: ``ok`` and a list of checks ``{name, state, text, remedy?}``."""
    checks = [_sandbox(), *_runtimes(runtime), *_configuration(runtime), *_tools(runtime)]
    return {"ok": all(check["state"] != "error" for check in checks), "checks": checks}


def _check(name: str, state: State, text: str, remedy: str = "") -> dict[str, Any]:
    return {"name": name, "state": state, "text": text} | ({"remedy": remedy} if remedy else {})


def _sandbox() -> dict[str, Any]:
    state = sandbox_state(refresh=True)
    if not state["available"]:
        return _check("sandbox", "error", f"{state['reason']}; no tool is run without one", state["remedy"])
    parts = f"memory by {state['memory']}, processes by {state['pids']}, network {state['network']}"
    return _check("sandbox", "ok", f"{state['backend']} {state['version']} works; {parts}")


def _runtimes(runtime: Runtime) -> list[dict[str, Any]]:
    from tamis.sandbox.interpreters import Interpreter, find_interpreter

    chosen = interpreters_of(runtime.settings)
    handlers = [tool.manifest.handler for tool in runtime.registry.tools]
    used = {handler.language for handler in handlers if isinstance(handler, ExternalScript)}
    checks: list[dict[str, Any]] = []
    for language in ("python", "nodejs", "bun"):
        found = find_interpreter(language, chosen)
        if isinstance(found, Interpreter):
            checks.append(_check(language, "ok", found.path))
        else:
            # A runtime that no registered tool needs is worth a word, not a failure.
            state: State = "error" if language in used else "warning"
            checks.append(_check(language, state, found.reason, found.remedy))
    return checks


def _configuration(runtime: Runtime) -> list[dict[str, Any]]:
    path = runtime.root / "tamis.toml"
    where = str(path) if path.is_file() else f"no tamis.toml; the defaults hold in {runtime.root}"
    problems = [*runtime.problems, _default_protocol(runtime), *_policy_problems(runtime), runtime.agent.problem]
    found = [_check("configuration", "error", problem, f"mend {path}") for problem in problems if problem]
    return found or [_check("configuration", "ok", where)]


def _default_protocol(runtime: Runtime) -> str:
    from tamis.server.runtime.protocols import load_protocol

    problem = load_protocol(runtime.settings.protocol.default)
    return f"protocol.default: {problem}" if problem else ""


def _policy_problems(runtime: Runtime) -> list[str]:
    from tamis.sandbox.hosts import parse_cidr, parse_policy_rule

    problems: list[str] = []
    policy = runtime.settings.policy
    for texts, parse, name in (
        (policy.allow_hosts, parse_policy_rule, "allowHosts"),
        (policy.allow_cidrs, parse_cidr, "allowCidrs"),
    ):
        for text in texts:
            try:
                parse(text)
            except ValueError as error:
                problems.append(f"policy.{name}: '{text}' opens nothing: {error}")
    for name, roots in (("readRoots", policy.read_roots), ("writeRoots", policy.write_roots)):
        problems.extend(
            f"policy.{name}: '{root}' is not an absolute path" for root in roots if not root.startswith("/")
        )
    return problems


def _tools(runtime: Runtime) -> list[dict[str, Any]]:
    registry = runtime.registry
    checks = [_check("tools", "ok", f"{len(registry.tools)} registered")]
    for error in registry.errors:
        place = f":{error.line}:{error.column}" if error.line else ""
        checks.append(_check("manifest", "error", f"{error.path}{place}: {error.message}", "mend or move the file"))
    checks.extend(_check("manifest", "warning", f"{item.dropped}: {item.message}") for item in registry.conflicts)
    checks.extend(
        _check("tool", "warning", f"{tool.tool_id} is not available: {tool.reason}")
        for tool in registry.tools
        if not tool.available
    )
    return checks
