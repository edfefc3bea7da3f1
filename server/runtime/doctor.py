"""What ``tamis doctor`` reports: each part of the machine and the configuration with its state and, if needed, the remedy."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from tamis.protocols.manifest.reading import LANGUAGES, ExternalScript
from tamis.server.runtime.health import audit_state
from tamis.server.runtime.interpreters import describe, interpreters_of, missing_for, missing_runtime, outdated
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.sandbox_checks import State, check, folder_checks, installer_checks, sandbox_checks


def examine(runtime: Runtime) -> dict[str, Any]:
    """The report: ``ok`` and a list of checks ``{name, state, text, remedy?}``."""
    checks = [
        *sandbox_checks(runtime.settings),
        *_runtimes(runtime),
        *installer_checks(runtime.settings, _declared(runtime)),
        *_configuration(runtime),
        *folder_checks(),
        _audit(runtime),
        *_roots(runtime),
        *_tools(runtime),
        *_dependencies(runtime),
    ]
    return {"ok": all(item["state"] != "error" for item in checks), "checks": checks}


def _declared(runtime: Runtime) -> set[str]:
    """The kinds of packages that registered tools declare."""
    from tamis.sandbox.environments.declared import declares
    from tamis.sandbox.model import PathRefused
    from tamis.server.runtime.interpreters import built_in

    kinds: set[str] = set()
    for tool in runtime.registry.tools:
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript) and handler.language in LANGUAGES:
            language = built_in(handler.language)
            with contextlib.suppress(PathRefused):
                if declares(tool.folder, handler.script_path, language):
                    kinds.add("python" if language == "python" else "javascript")
    return kinds


def _dependencies(runtime: Runtime) -> list[dict[str, Any]]:
    """What tools declare that cannot be used, and the lint for what is not pinned (D78)."""
    from tamis.server.runtime.dependencies import look_at, tools_with_scripts

    checks: list[dict[str, Any]] = []
    for tool, handler in tools_with_scripts(runtime.registry):
        looked = look_at(tool, handler, runtime.settings, runtime.registry)
        if looked.problem:
            checks.append(check("dependencies", "warning", f"{tool.tool_id}: {looked.problem}", looked.remedy))
        for one in looked.findings:
            place = f"{one.file}:{one.line}" if one.line else one.file
            checks.append(check("dependencies", "warning", f"{tool.tool_id}: {place}: {one.message}"))
    return checks


def _audit(runtime: Runtime) -> dict[str, Any]:
    state = audit_state(runtime, look=True)
    if not state["enabled"]:
        return check("audit log", "warning", "switched off: nothing of the calls is kept", "audit.enabled = true")
    if "problem" in state:
        remedy = "mend the folder's rights or free its disk, or set audit.path or TAMIS_STATE_DIR to another place"
        return check("audit log", "warning", f"{state['problem']}; calls run and are not written down", remedy)
    return check("audit log", "ok", state["path"])


def _runtimes(runtime: Runtime) -> list[dict[str, Any]]:
    from tamis.sandbox.interpreters import Interpreter, find_interpreter

    chosen = interpreters_of(runtime.settings)
    handlers = [tool.manifest.handler for tool in runtime.registry.tools]
    used = {handler.language for handler in handlers if isinstance(handler, ExternalScript)}
    checks: list[dict[str, Any]] = []
    for language in ("python", "nodejs", "bun"):
        found = find_interpreter(language, chosen)
        if isinstance(found, Interpreter):
            old = outdated(found)
            text = f"{describe(found)}; {old}" if old else describe(found)
            checks.append(check(language, "warning" if old else "ok", text, "install a newer one" if old else ""))
        else:
            # A runtime that no registered tool needs is worth a word, not a failure.
            state: State = "error" if language in used else "warning"
            checks.append(check(language, state, found.reason, found.remedy))
    for name in runtime.settings.sandbox.runtimes:
        fault = missing_for(ExternalScript("", name), runtime.settings)
        reason, _, remedy = fault.partition("; fix: ")
        words = " ".join(runtime.settings.sandbox.runtimes[name].command)
        checks.append(check(name, ("error" if name in used else "warning") if fault else "ok", reason or words, remedy))
    return checks


def _configuration(runtime: Runtime) -> list[dict[str, Any]]:
    path = runtime.root / "tamis.toml"
    where = str(path) if path.is_file() else f"no tamis.toml; the defaults hold in {runtime.root}"
    problems = [*runtime.problems, _default_protocol(runtime), *_policy_problems(runtime), runtime.agent.problem]
    found = [check("configuration", "error", problem, f"mend {path}") for problem in problems if problem]
    return found or [check("configuration", "ok", where)]


def _default_protocol(runtime: Runtime) -> str:
    from tamis.server.runtime.protocols import load_protocol

    problem = load_protocol(runtime.settings.protocol.default)
    return f"protocol.default: {problem}" if problem else ""


def _policy_problems(runtime: Runtime) -> list[str]:
    from tamis.sandbox.network.hosts import parse_cidr, parse_policy_rule, pin_faults

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
    problems.extend(f"policy.pin: {fault}" for fault in pin_faults(policy.pin.items(), policy.allow_cidrs))
    for name, roots in (("readRoots", policy.read_roots), ("writeRoots", policy.write_roots)):
        problems.extend(
            f"policy.{name}: '{root}' is not an absolute path" for root in roots if not root.startswith("/")
        )
    return problems


def _roots(runtime: Runtime) -> list[dict[str, Any]]:
    """Roots of the policy that grant nothing because they are not there, or that hold every file of the machine."""
    checks: list[dict[str, Any]] = []
    policy = runtime.settings.policy
    for name, roots in (("readRoots", policy.read_roots), ("writeRoots", policy.write_roots)):
        for root in roots:
            if not root.startswith("/"):
                continue  # an error of the configuration
            if not os.path.exists(root):
                text = f"policy.{name}: {root} is not there, so nothing below it is granted"
                checks.append(check("policy", "warning", text, "make the folder, or take it out of tamis.toml"))
            elif os.path.realpath(root) == "/":
                text = f"policy.{name}: {root} opens the whole file system, but for what is closed to every tool"
                checks.append(check("policy", "warning", text, "name the folders that tools need"))
    return checks


def _tools(runtime: Runtime) -> list[dict[str, Any]]:
    registry = runtime.registry
    checks = [check("tools", "ok", f"{len(registry.tools)} registered")]
    for error in registry.errors:
        place = f":{error.line}:{error.column}" if error.line else ""
        checks.append(check("manifest", "error", f"{error.path}{place}: {error.message}", "mend or move the file"))
    checks.extend(check("manifest", "warning", f"{item.dropped}: {item.message}") for item in registry.conflicts)
    checks.extend(
        check("tool", "warning", f"{tool.tool_id} is not available: {reason}")
        for tool, reason in (
            (tool, tool.reason or missing_runtime(tool.manifest, runtime.settings)) for tool in registry.tools
        )
        if reason
    )
    return checks
