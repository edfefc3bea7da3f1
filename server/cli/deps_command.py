"""What tools depend on: install it ahead of the first call, list what is installed, check what is declared, make room."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from tamis.server.cli.inputs import UsageError, root_of, tell_settings
from tamis.server.cli.outputs import print_json, warn, write_line, write_note

if TYPE_CHECKING:
    from tamis.protocols.manifest.reading import ExternalScript
    from tamis.server.runtime.handlers.script.dependencies import Audited
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.registry import Tool

SHOWN_KEY_CHARS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis deps``."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "install", "check", "audit", "prune"),
        help="list the environments (the default), install those of the tools, check what is declared, audit what is installed, or prune",
    )
    parser.add_argument(
        "tools", nargs="*", metavar="TOOL", help="only these tools: id, alias or id@version (not for prune)"
    )
    parser.add_argument(
        "--all", action="store_true", help="prune: everything that is not in use, and the download caches"
    )
    parser.add_argument(
        "--advisories",
        action="append",
        default=[],
        metavar="PATH",
        help="audit: known vulnerabilities: OSV's JSON, a folder or an all.zip of it, or a report of pip-audit (several: all of them)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked; 0 well, 1 something could not be installed or used, or is vulnerable, 2 wrong usage, 3 no sandbox, closed, or nothing can be known."""
    try:
        root = root_of(arguments.root)
        if arguments.action == "prune" and arguments.tools:
            raise UsageError("prune takes no tools: an environment may be several tools'")
        if arguments.all and arguments.action != "prune":
            raise UsageError("--all is for prune")
        if arguments.advisories and arguments.action != "audit":
            raise UsageError("--advisories is for audit")
        from tamis.server.runtime.runtime import Runtime

        runtime = Runtime(root)
        chosen = _chosen(runtime, arguments.tools)
        tell_settings(runtime.loaded)
        if arguments.action == "audit":
            return _audit(runtime, chosen, arguments.advisories, as_json=arguments.json)
    except UsageError as error:
        warn(str(error))
        return 2
    if arguments.action == "install":
        from tamis.server.cli.interrupts import run_to_end

        return run_to_end(_install(runtime, chosen, as_json=arguments.json))
    if arguments.action == "check":
        return _check(runtime, chosen, as_json=arguments.json)
    if arguments.action == "prune":
        return _prune(runtime, everything=arguments.all, as_json=arguments.json)
    return _list(runtime, chosen, whole=not arguments.tools, as_json=arguments.json)


def _chosen(runtime: Runtime, names: list[str]) -> list[tuple[Tool, ExternalScript]]:
    from tamis.server.runtime.handlers.script.dependencies import tools_with_scripts

    pairs = tools_with_scripts(runtime.registry)
    if not names:
        return pairs
    wanted: list[Tool] = []
    for name in names:
        tool = runtime.registry.get(name, None)
        if tool is None:
            raise UsageError(f"no tool '{name}' is registered; `tamis list` shows them")
        wanted.append(tool)
    return [pair for pair in pairs if pair[0] in wanted]


async def _install(runtime: Runtime, chosen: list[tuple[Tool, ExternalScript]], *, as_json: bool) -> int:
    from tamis.server.cli.interrupts import cancel_on_interrupt
    from tamis.server.runtime.handlers.script.dependencies import install, was_cancelled

    if runtime.loaded.closed:
        warn(runtime.loaded.closed)
        return 3
    cancelled = cancel_on_interrupt()
    results: list[Any] = []
    code = 0
    for tool, handler in chosen:
        shown = _Shown(tool.tool_id, quiet=as_json)
        try:
            done = await install(tool, handler, runtime.settings, on_progress=shown.say, cancelled=cancelled)
        except Exception as error:
            if not was_cancelled(error):
                raise
            warn("cancelled; what was begun is removed")
            return 1
        if not done.form and not done.error:
            continue
        results.append(done)
        if done.error:
            code = max(code, 3 if done.error.type == "SandboxUnavailable" else 1)
            shown.say(f"{done.error.type}: {done.error.message}", always=True)
            if done.error.details and done.error.details.text:
                for last in done.error.details.text.splitlines()[-12:]:
                    write_note(f"    {last}")
        elif not as_json:
            packages = f"{done.packages} package{'' if done.packages == 1 else 's'}"
            write_line(f"{tool.tool_id}: {packages} ready, {_size(done.bytes)} ({done.form})")
    if as_json:
        print_json({"tools": results})
    elif not results:
        write_line("no tool declares dependencies")
    return code


class _Shown:
    """Progress on standard error: each word once."""

    def __init__(self, tool_id: str, *, quiet: bool) -> None:
        self._tool_id = tool_id
        self._quiet = quiet
        self._last = "ready"  # is said with what was installed

    def say(self, text: str, *, always: bool = False) -> None:
        if (always or not self._quiet) and text != self._last and text != "ready":
            write_note(f"{self._tool_id}: {text}")
            self._last = text


def _check(runtime: Runtime, chosen: list[tuple[Tool, ExternalScript]], *, as_json: bool) -> int:
    from tamis.server.runtime.handlers.script.dependencies import look_at, unreached_hosts

    dependencies = [look_at(tool, handler, runtime.settings, runtime.registry) for tool, handler in chosen]
    declared = [
        dependencies
        for dependencies in dependencies
        if dependencies.form or dependencies.problem or dependencies.findings
    ]
    code = 1 if any(dependencies.problem for dependencies in declared) else 0
    unreached = unreached_hosts(declared, runtime.settings)
    if as_json:
        print_json({"tools": declared, "unreached": unreached})
        return code
    for status in declared:
        state = "installed" if status.ready else "not installed yet"
        nothing = "cannot be used" if status.problem else "declares no packages"
        write_line(f"{status.tool_id}: {status.form}, {state}" if status.form else f"{status.tool_id}: {nothing}")
        if status.problem:
            write_line(f"  error: {status.problem}" + (f"; fix: {status.remedy}" if status.remedy else ""))
        for finding in status.findings:
            place = f"{finding.file}:{finding.line}" if finding.line else finding.file
            write_line(f"  warning: {place}: {finding.message}")
    for host in unreached:
        write_line(f"warning: {host.reason}; fix: {host.remedy}")
    if not declared:
        write_line("no tool declares dependencies")
    return code


def _audit(runtime: Runtime, chosen: list[tuple[Tool, ExternalScript]], paths: list[str], *, as_json: bool) -> int:
    """Holds what is installed for the tools against advisories. What they do not speak of is said not to be known: silence is no good news."""
    from tamis.server.runtime.handlers.script.dependencies import audit

    try:
        advisories, rows = audit(chosen, runtime.settings, paths)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if as_json:
        print_json({"advisories": advisories, "tools": rows})
    else:
        _tell_audit(rows, advisories)
    if any(row.vulnerabilities for row in rows):
        return 1
    return 3 if any(row.unknown or row.reason for row in rows) else 0


def _tell_audit(rows: list[Audited], advisories: int) -> None:
    for row in rows:
        vulnerabilities, unknown = row.vulnerabilities, row.unknown
        if row.reason:
            write_line(f"{row.tool_id}: cannot be known: {row.reason}")
            continue
        packages = f"{row.packages} package{'' if row.packages == 1 else 's'}"
        told = f"{len(vulnerabilities)} known vulnerabilit{'y' if len(vulnerabilities) == 1 else 'ies'}"
        write_line(
            f"{row.tool_id}: {packages}, " + (f"of {len(unknown)} nothing can be known, {told}" if unknown else told)
        )
        for vulnerability in vulnerabilities:
            names = f" ({', '.join(vulnerability.aliases)})" if vulnerability.aliases else ""
            fixed = f"; fixed in {', '.join(vulnerability.fixed)}" if vulnerability.fixed else ""
            write_line(
                f"  {vulnerability.package} {vulnerability.version}: {vulnerability.id}{names}: {vulnerability.summary or 'no summary'}{fixed}"
            )
    if not rows:
        write_line("no tool declares dependencies")
    elif not advisories:
        write_line(
            "no advisories were given, so nothing can be known; fix: --advisories with OSV's all.zip of PyPI or npm, or a report of pip-audit"
        )


def _list(runtime: Runtime, chosen: list[tuple[Tool, ExternalScript]], *, whole: bool, as_json: bool) -> int:
    from tamis.server.runtime.handlers.script.dependencies import environments, look_at

    users: dict[str, list[str]] = {}
    for tool, handler in chosen:
        looked = look_at(tool, handler, runtime.settings)
        if looked.key:
            users.setdefault(looked.key, []).append(tool.tool_id)
    rows: list[dict[str, Any]] = []
    for entry in environments(runtime.settings):
        meta = entry.meta
        if whole or meta.key in users:
            rows.append(
                {
                    "key": meta.key,
                    "kind": meta.kind,
                    "form": meta.form,
                    "packages": [{"name": name, "version": version} for name, version in meta.packages],
                    "bytes": meta.bytes,
                    "created": meta.created,
                    "lastUsed": entry.last_used,
                    "tools": users.get(meta.key, []),
                }
            )
    if as_json:
        print_json({"environments": rows})
        return 0
    for row in rows:
        tools = ", ".join(row["tools"]) or "no tool of this root"
        first = ", ".join(f"{package['name']} {package['version']}" for package in row["packages"][:4])
        more = f" and {len(row['packages']) - 4} more" if len(row["packages"]) > 4 else ""
        used = _ago(row["lastUsed"])
        write_line(
            f"{row['key'][:SHOWN_KEY_CHARS]}  {row['kind']:<10} {_size(row['bytes']):>9}  used {used:<11}  {tools}"
        )
        write_line(f"{'':{SHOWN_KEY_CHARS}}  {first}{more}")
    if not rows:
        write_line("no environment is installed")
    return 0


def _prune(runtime: Runtime, *, everything: bool, as_json: bool) -> int:
    from tamis.server.runtime.handlers.script.dependencies import prune

    pruned = prune(runtime.settings, everything=everything)
    if as_json:
        print_json(pruned)
    else:
        write_line(f"{len(pruned.removed)} removed, {_size(pruned.freed_bytes)} freed, {_size(pruned.kept_bytes)} kept")
    return 0


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def _ago(moment: float) -> str:
    seconds = max(0, time.time() - moment)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
