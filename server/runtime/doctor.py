"""What ``tamis doctor`` reports: each part of the machine and the configuration with its state and, if needed, the remedy."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

from tamis.protocols.manifest.reading import LANGUAGES, ExternalScript
from tamis.server.runtime.handlers.runners import Ready
from tamis.server.runtime.handlers.script.doctor import State, check, folder_checks, installer_checks, sandbox_checks
from tamis.server.runtime.handlers.script.interpreters import describe, interpreters_of, missing_for, outdated
from tamis.server.runtime.health import audit_state
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.classes import is_default
from tamis.server.runtime.settings.faults import engine_faults, protocol_faults, root_faults, value_faults
from tamis.server.runtime.settings.files import MAX_FILE_BYTES, Unsafe, read_own
from tamis.server.runtime.settings.reading import level_of

_NOT_TRUSTED = "nothing to do, unless the folder is yours; then `tamis trust` shows what it asks for"
MAX_NAMED = 8
"""Tools that a line names."""


def examine(runtime: Runtime) -> dict[str, Any]:
    """The report: ``ok`` and a list of checks ``{name, state, text, remedy?}``."""
    checks = [
        *sandbox_checks(runtime.settings),
        *_runtimes(runtime),
        *installer_checks(runtime.settings, _declared(runtime)),
        *_configuration(runtime),
        *folder_checks(),
        _audit(runtime),
        _store(),
        *_rules(runtime),
        *_roots(runtime),
        *_secrets(runtime),
        *_tools(runtime),
        *_dependencies(runtime),
    ]
    return {"ok": all(item["state"] != "error" for item in checks), "checks": checks}


def _declared(runtime: Runtime) -> set[str]:
    """The kinds of packages that no registered script can do without."""
    from tamis.environments.declared import declares
    from tamis.sandbox.model import PathRefused
    from tamis.server.runtime.handlers.script.interpreters import built_in

    kinds: list[str] = []
    scripts = 0
    for tool in runtime.registry.tools:
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript) and handler.language in LANGUAGES:
            language = built_in(handler.language)
            scripts += 1
            with contextlib.suppress(PathRefused):
                if declares(tool.folder, handler.script_path, language):
                    kinds.append("python" if language == "python" else "javascript")
    return {kind for kind in kinds if kinds.count(kind) == scripts}


def _dependencies(runtime: Runtime) -> list[dict[str, Any]]:
    """What tools declare that cannot be used, and the lint for what is not pinned (D78)."""
    from tamis.server.runtime.handlers.script.dependencies import look_at, tools_with_scripts

    checks: list[dict[str, Any]] = []
    for tool, handler in tools_with_scripts(runtime.registry):
        looked = look_at(tool, handler, runtime.settings, runtime.registry)
        if looked.problem:
            checks.append(check("dependencies", "warning", f"{tool.tool_id}: {looked.problem}", looked.remedy))
        for finding in looked.findings:
            place = f"{finding.file}:{finding.line}" if finding.line else finding.file
            checks.append(check("dependencies", "warning", f"{tool.tool_id}: {place}: {finding.message}"))
    return checks


def _store() -> dict[str, Any]:
    from tamis.server.runtime.store.store import Store

    remarks: list[str] = []
    store = Store(say=remarks.append)
    problem = store.look() or " ".join(remarks)
    if problem:
        remedy = "mend the folder's rights or free its disk, or set TAMIS_STATE_DIR to another place"
        return check("store", "warning", problem, remedy)
    return check("store", "ok", str(store.path))


def _audit(runtime: Runtime) -> dict[str, Any]:
    state = audit_state(runtime, look=True)
    if not state["enabled"]:
        return check("audit log", "warning", "switched off: nothing of the calls is kept", "audit.enabled = true")
    if "problem" in state:
        remedy = "mend the folder's rights or free its disk, or set audit.path or TAMIS_STATE_DIR to another place"
        return check("audit log", "warning", f"{state['problem']}; calls run and are not written down", remedy)
    return check("audit log", "ok", state["path"])


def _secrets(runtime: Runtime) -> list[dict[str, Any]]:
    """Each secret by name: where it is from, and whether it can be had; never its value, nor how long it is."""
    from tamis.server.runtime.observe.masking import MIN_SECRET_CHARS
    from tamis.server.runtime.policy.secret_values import SecretError, is_open_to_others, read_secret, source_of

    checks: list[dict[str, Any]] = []
    for name, secret in sorted(runtime.settings.secrets.items()):
        text, what = source_of(secret), f"secret {name}"
        try:
            value = read_secret(secret, runtime.root)
        except SecretError as error:
            checks.append(check(what, "warning", f"{text}: {error.reason}", error.remedy))
            continue
        if len(value) < MIN_SECRET_CHARS:
            phrase = f"{text}: it is too short to be hidden in what tools print"
            checks.append(check(what, "warning", phrase, "use a longer key"))
        elif is_open_to_others(secret, runtime.root):
            checks.append(check(what, "warning", f"{text}: other users can read the file", f"chmod 600 {secret.file}"))
        else:
            checks.append(check(what, "ok", text))
    return checks


def _runtimes(runtime: Runtime) -> list[dict[str, Any]]:
    from tamis.sandbox.interpreters import find_interpreter
    from tamis.sandbox.model import Interpreter

    chosen = interpreters_of(runtime.settings)
    users, scripts = _users(runtime)
    checks: list[dict[str, Any]] = []
    for language in ("python", "nodejs", "bun"):
        interpreter = find_interpreter(language, chosen)
        if isinstance(interpreter, Interpreter):
            old = outdated(interpreter)
            text = f"{describe(interpreter)}; {old}" if old else describe(interpreter)
            checks.append(check(language, "warning" if old else "ok", text, "install a newer one" if old else ""))
        else:
            state, needed = _missed(users.get(language, []), scripts)
            checks.append(check(language, state, f"{interpreter.reason}; {needed}", interpreter.remedy))
    for name in runtime.settings.sandbox.runtimes:
        fault = missing_for(ExternalScript("", name), runtime.settings)
        reason, _, remedy = fault.partition("; fix: ")
        words = " ".join(runtime.settings.sandbox.runtimes[name].command)
        state, needed = _missed(users.get(name, []), scripts)
        checks.append(check(name, state if fault else "ok", f"{reason}; {needed}" if fault else words, remedy))
    return checks


def _users(runtime: Runtime) -> tuple[dict[str, list[str]], int]:
    """The tools that each runtime runs, and how many tools are scripts at all."""
    users: dict[str, list[str]] = {}
    for tool in runtime.registry.tools:
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript):
            users.setdefault(handler.language, []).append(tool.tool_id)
    return users, sum(map(len, users.values()))


def _missed(users: list[str], scripts: int) -> tuple[State, str]:
    """How bad it is that a runtime is missing: what only some tools need is optional, and worth a word."""
    if not users:
        return "warning", "optional: no registered tool needs it"
    named = ", ".join(users[:MAX_NAMED]) + (", …" if len(users) > MAX_NAMED else "")
    if len(users) < scripts:
        return "warning", f"optional: {scripts - len(users)} of {scripts} tools do without it, and not {named}"
    return "error", f"no tool can be called without it ({named})"


def _configuration(runtime: Runtime) -> list[dict[str, Any]]:
    path = runtime.root / "tamis.toml"
    where = str(path) if os.path.lexists(path) else f"no tamis.toml; the defaults hold in {runtime.root}"
    own = runtime.settings
    faults = [*protocol_faults(own), *value_faults(own), *engine_faults(own)]
    problems = [*runtime.loaded.problems, *(fault.sentence for fault in faults), runtime.agent.problem]
    files = {problem: Path(own) for own, problem in runtime.loaded.operators_problems}
    checks = [_problem(problem, files.get(problem, path)) for problem in problems if problem]
    return [*(checks or [check("configuration", "ok", where)]), *_sources(runtime)]


def _sources(runtime: Runtime) -> list[dict[str, Any]]:
    """Each setting that is not a default with who set it, what a folder asks for in vain, and whose word trusts it."""
    loaded = runtime.loaded
    checks = [
        check("setting", "ok", f"{name}: {where}")
        for name, where in sorted(loaded.sources.items())
        if not is_default(loaded.settings, name)
    ]
    checks += [
        check("trust", "warning", f"{setting.where}: {setting.sentence}")
        for setting in loaded.not_in_force
        if setting.final
    ]
    asked = [setting for setting in loaded.not_in_force if not setting.final]
    if asked:
        # one line for all: a list of warnings would push a person to trust a stranger
        names = ", ".join(dict.fromkeys(setting.setting for setting in asked))
        text = f"{', '.join(dict.fromkeys(setting.where for setting in asked))}: not in force: {names}"
        checks.append(check("trust", "warning", text, _NOT_TRUSTED))
    if loaded.trusted_by and loaded.asks:
        asked = ", ".join(dict.fromkeys(ask.setting for ask in loaded.asks))
        checks.append(check("trust", "ok", f"by {loaded.trusted_by} in force: {asked}"))
    return checks


def _problem(problem: str, path: Path) -> dict[str, Any]:
    text = problem.partition(": ")[2]
    text = text[:1].lower() + text[1:]
    # What keeps no tool from running is as grave here as in `tamis check`; a rule's level changes only what is said.
    lint = text.startswith("'lint.")
    level = level_of(text) if text.startswith("unknown ") else "error"
    placed = re.match(r".*?:(\d+):\d+: ", problem)
    line = int(placed[1]) if placed is not None else _lines(path).get(problem.partition(":")[0])
    where = f"mend line {line} of {path}" if line is not None else f"mend {path}"
    if lint:
        where += " (docs/diagnostics.md has the rules' names)"
    return check("configuration", "warning" if lint else level, problem, where)


def _lines(path: Path) -> dict[str, int]:
    """The lines of the settings, by dotted name; empty where the file cannot be read."""
    from tamis.protocols.tomltext import read_toml

    try:
        text = read_own(str(path), MAX_FILE_BYTES, str(path.parent)).decode("utf-8-sig")
    except (OSError, ValueError, Unsafe):
        return {}
    lines: dict[str, int] = {}
    for table in read_toml(text).tables:
        for entry in table.entries:
            for depth in range(len(entry.names)):
                name = ".".join((*table.names, *entry.names[: depth + 1]))
                lines.setdefault(name, text.count("\n", 0, entry.spans[depth][0]) + 1)
    return lines


def _rules(runtime: Runtime) -> list[dict[str, Any]]:
    from tamis.server.runtime.policy.rules import told

    final = {setting.where for setting in runtime.loaded.not_in_force if setting.final}
    checks: list[dict[str, Any]] = []
    for rule in told(runtime.settings.policy):
        if not rule.idle:
            checks.append(check("policy", "ok", rule.words))
        elif rule.where in final:
            text = f"{rule.words}: opens nothing, because the machine's policy is final"
            checks.append(check("policy", "warning", text, "only /etc/tamis/config.toml may say it"))
        else:
            text = f"{rule.words}: opens nothing, because the folder is not trusted"
            checks.append(check("policy", "warning", text, _NOT_TRUSTED))
    return checks


def _roots(runtime: Runtime) -> list[dict[str, Any]]:
    return [
        check("policy", fault.level, fault.sentence, fault.remedy) for fault in root_faults(runtime.settings.policy)
    ]


def _tools(runtime: Runtime) -> list[dict[str, Any]]:
    from tamis.server.runtime.tools.loader import is_definition

    registry = runtime.registry
    count = f"{len(registry.tools)} registered"
    checks = [check("tools", "ok", count)]
    if runtime.loaded.closed:
        unread = "" if registry.tools else "; none is looked for"
        text = f"{count}{unread}; none is run, because the configuration has a fault (above)"
        checks = [check("tools", "error", text, "mend the configuration")]
    for error in registry.errors:
        place = f":{error.line}:{error.column}" if error.line else ""
        what = "manifest" if is_definition(os.path.basename(error.path)) else "workflow"
        checks.append(check(what, "error", f"{error.path}{place}: {error.message}", "mend or move the file"))
    checks.extend(check("manifest", "warning", f"{item.dropped}: {item.message}") for item in registry.conflicts)
    ready: Ready = set()
    checks.extend(
        check("tool", "warning", f"{tool.tool_id} is not available: {reason}")
        for tool, reason in ((tool, runtime.why_not(tool, ready)) for tool in registry.tools)
        if reason
    )
    return checks
