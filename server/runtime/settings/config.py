"""Settings: ``tamis.toml`` in the root, overlaid by what an editor or a host sends.

One spelling everywhere (interface, Configuration). A wrong setting is reported with its place in the file's terms and the
default stays in force, except in ``[policy]``, where a value that cannot be read means the closed default. Must not know
tools or faces.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import msgspec

from tamis.protocols.suggest import best, hint

FILE_NAME = "tamis.toml"
MAX_FILE_BYTES = 1024 * 1024

# A mistake in one of these must not open what was meant to be closed; an unknown name there may be a misspelled bound.
_BINDING_NAMES = ("policy", "sandbox", "dependencies", "profile", "tools", "onConflict")
_BINDING = tuple(f"{FILE_NAME}: {what}'{name}" for what in ("", "unknown setting ") for name in _BINDING_NAMES)

_RULE = (
    "; a mistake in tools, profile, onConflict, [policy], [sandbox] or [dependencies], or an unknown name that may be meant as one of"
    " them, keeps every tool from running"
)

Verdict = Literal["allow", "ask", "deny"]
"""What a rule says of a call: it may run unasked, a person is asked, it never runs."""


class PolicyRule(msgspec.Struct, rename="camel", frozen=True):
    """A rule on calls: of which tools, by whom, with which value of a parameter (D81). The texts are patterns with ``*`` and ``?``."""

    verdict: Verdict = "ask"
    tool: str = "*"
    face: str = "*"
    client: str = "*"
    agent: str = "*"
    session: str = "*"
    parameter: str = ""
    matches: str = "*"
    reason: str = ""


class Policy(msgspec.Struct, rename="camel", frozen=True):
    """What a manifest's ``securityContext`` may at most be granted. Everything is closed by default."""

    read_roots: tuple[str, ...] = ()
    write_roots: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow_cidrs: tuple[str, ...] = ()
    pin: dict[str, str] = {}
    capabilities: tuple[str, ...] = ()
    require_confirmation: Literal["never", "writes", "always"] = "never"
    approval_timeout_ms: int = 300_000
    tools: dict[str, Verdict] = {}
    rules: tuple[PolicyRule, ...] = ()
    calls_per_minute: int = 0
    tool_calls_per_minute: dict[str, int] = {}
    allow_build: bool = False


class Interpreters(msgspec.Struct, frozen=True):
    """Paths of interpreters that the operator chose; empty means look for one."""

    python: str = ""
    nodejs: str = ""
    bun: str = ""
    uv: str = ""


class Runners(msgspec.Struct, frozen=True):
    """What starts the scripts of a language (seed 003 §2.1.2): argv only, never a shell's text."""

    python: Literal["python", "uv"] = "python"
    nodejs: Literal["node", "bun"] = "node"


class CustomRuntime(msgspec.Struct, frozen=True):
    """A runtime of the operator's: the words that run a script, ``{script}`` for its path, and what they need to see."""

    command: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    show: tuple[str, ...] = ()


class SandboxSettings(msgspec.Struct, rename="camel", frozen=True):
    """Limits of one run and the choice of backend."""

    backend: Literal["auto", "bubblewrap", "nsjail"] = "auto"
    warm: Literal["auto", "off"] = "auto"
    wall_ms: int = 30_000
    cpu_seconds: int = 60
    memory_bytes: int = 268_435_456
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 67_108_864
    tmp_bytes: int = 67_108_864
    stdin_bytes: int = 1_048_576
    stdout_bytes: int = 1_048_576
    stderr_bytes: int = 262_144
    interpreters: Interpreters = Interpreters()
    runners: Runners = Runners()
    runtimes: dict[str, CustomRuntime] = {}


class DependencySettings(msgspec.Struct, rename="camel", frozen=True):
    """Where tools' dependencies come from, and how much of them is kept."""

    install: Literal["auto", "off"] = "auto"
    indexes: tuple[str, ...] = ()
    cache_bytes: int = 4_294_967_296
    wall_ms: int = 120_000


class AuditSettings(msgspec.Struct, rename="camel", frozen=True):
    """Whether and where what happens to calls is written down; ``path`` empty is the user's state folder."""

    enabled: bool = True
    path: str = ""
    max_bytes: int = 8_388_608
    keep: int = 5


class IdempotencySettings(msgspec.Struct, rename="camel", frozen=True):
    """How many results by idempotency key are kept, and for how long."""

    keep: int = 10_000
    keep_seconds: int = 86_400


class TaskSettings(msgspec.Struct, rename="camel", frozen=True):
    """Calls of asynchronous tools: how long they may run, how many that ended are kept and for how long, who is told of their end."""

    wall_ms: int = 3_600_000
    keep: int = 1_000
    keep_seconds: int = 604_800
    callback_url: str = ""


class McpServer(msgspec.Struct, rename="camel", frozen=True):
    """An MCP server that is run in the sandbox; what it asks to read, write and reach is bounded by the policy."""

    script: str = ""
    language: str = "python"
    folder: str = "."
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    start_ms: int = 15_000
    idle_ms: int = 300_000


class TelemetrySettings(msgspec.Struct, frozen=True):
    """Where the spans of calls are sent."""

    traces: Literal["off", "otlp"] = "off"
    endpoint: str = ""


class EngineSettings(msgspec.Struct, rename="camel", frozen=True):
    """What runs workflows, and how much of one at once."""

    type: str = "builtin"
    url: str = ""
    wall_ms: int = 300_000
    max_parallel: int = 4


class ProtocolSettings(msgspec.Struct, rename="camel", frozen=True):
    """How calls are read."""

    default: str = "vcp"
    also: tuple[str, ...] = ()
    reasoning_calls: Literal["ignore", "run"] = "ignore"
    fenced_calls: Literal["auto", "run", "ignore"] = "auto"
    allow_multiple_blocks: bool = False
    stderr_fails: bool = False


class DiagnosticsSettings(msgspec.Struct, frozen=True):
    """Whose findings an editor gets: with ``workspace`` also those of files that are not open."""

    workspace: Literal["off", "on"] = "off"


class Settings(msgspec.Struct, rename="camel", frozen=True):
    """All settings of a root, with the defaults of the interface."""

    tools: tuple[str, ...] = (".",)
    workflows: tuple[str, ...] = ()
    builtin: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    profile: str = ""
    strict_json: bool = False
    on_conflict: Literal["error", "keepFirst", "replace"] = "keepFirst"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    policy: Policy = Policy()
    sandbox: SandboxSettings = SandboxSettings()
    dependencies: DependencySettings = DependencySettings()
    audit: AuditSettings = AuditSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    idempotency: IdempotencySettings = IdempotencySettings()
    tasks: TaskSettings = TaskSettings()
    engine: EngineSettings = EngineSettings()
    resources: dict[str, str] = {}
    mcp_servers: dict[str, McpServer] = {}
    protocol: ProtocolSettings = ProtocolSettings()
    lint: dict[str, Any] = {}
    diagnostics: DiagnosticsSettings = DiagnosticsSettings()


class LoadedSettings(msgspec.Struct, frozen=True):
    """Settings with what was wrong in them; ``problems`` are sentences for ``tamis doctor`` and the log."""

    root: Path
    settings: Settings
    problems: tuple[str, ...] = ()
    closed: str = ""
    """Why nothing may run: the file, or a part of it that bounds what tools may do, cannot be read."""


def find_root(start: Path) -> Path:
    """The nearest folder upwards from ``start`` that holds a ``tamis.toml``, else ``start`` itself."""
    start = start.resolve()
    for folder in (start, *start.parents):
        # A file that is there but cannot be read still marks the root: what it wanted must not be passed over.
        if os.path.lexists(folder / FILE_NAME):
            return folder
    return start


def load_settings(root: Path, overlay: Mapping[str, Any] | None = None, whose: str = "host settings") -> LoadedSettings:
    """Reads the root's settings and lays ``overlay`` (same names) over them, which problems call ``whose``; never raises."""
    problems: list[str] = []
    path = root / FILE_NAME
    raw = _read_file(path, problems) if os.path.lexists(path) else {}
    unreadable = bool(problems)
    of_file = dict(raw)
    for name, value in _said(overlay or {}).items():
        here = raw.get(name)
        if isinstance(value, dict) and isinstance(here, dict):
            raw[name] = {**cast("dict[str, Any]", here), **cast("dict[str, Any]", value)}
        else:
            raw[name] = value
    if unreadable:
        # What the operator wanted is not known: no tools, rather than the ones below the whole root.
        raw = cast("dict[str, Any]", {"tools": ()})
    settings = _checked(raw, problems)
    binding = [problem for problem in problems if unreadable or _binds(problem)]
    if overlay and problems:
        said = {f"{FILE_NAME}: {problem}" for problem, _ in settings_problems(of_file)}
        mark = f"{FILE_NAME}: "
        renamed = {
            one: f"{whose}: {one.removeprefix(mark)}" for one in problems if one.startswith(mark) and one not in said
        }
        problems = [renamed.get(problem, problem) for problem in problems]
        binding = [renamed.get(problem, problem) for problem in binding]
    closed = f"the configuration cannot be trusted: {binding[0]}{'' if unreadable else _RULE}" if binding else ""
    return LoadedSettings(root, settings, tuple(problems), closed)


def _said(overlay: Mapping[str, Any]) -> dict[str, Any]:
    """What a host's settings say: an editor writes null for what is not set, and a TOML file cannot."""
    return {
        name: _said(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
        for name, value in overlay.items()
        if value is not None
    }


def _checked(raw: Mapping[str, Any], problems: list[str]) -> Settings:
    settings = cast("Settings", _read(Settings, raw, "", problems))
    problems.extend(_runtime_problems(settings.sandbox.runtimes))
    problems.extend(_lint_problems(settings.lint))
    return settings


def settings_problems(raw: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """What is wrong with settings as they stand in the file, in the words of ``LoadedSettings``, each with whether it keeps tools
    from running. The first name in quotes is the setting."""
    problems: list[str] = []
    _checked(raw, problems)
    return [(problem.removeprefix(f"{FILE_NAME}: "), _binds(problem)) for problem in problems]


def settings_of(raw: Mapping[str, Any]) -> Settings:
    """Settings as they stand in the file, with the default for every one that is wrong."""
    return _checked(raw, [])


def _runtime_problems(runtimes: Mapping[str, CustomRuntime]) -> list[str]:
    from tamis.protocols.manifest.reading import LANGUAGE_NAME, LANGUAGES

    problems: list[str] = []
    for name, runtime in runtimes.items():
        place = f"{FILE_NAME}: 'sandbox.runtimes.{name}"
        if name in LANGUAGES:
            problems.append(f"{place}' is built in; its program is sandbox.interpreters.{name}")
        elif not re.fullmatch(LANGUAGE_NAME, name):
            problems.append(f"{place}' cannot be a runtime's name: small letters, digits, '+', '-' and '_'")
        if not runtime.command or not os.path.isabs(runtime.command[0]):
            problems.append(f"{place}.command' must begin with a program's absolute path")
        problems.extend(
            f"{place}.show' holds '{path}', which is not absolute" for path in runtime.show if not os.path.isabs(path)
        )
        problems.extend(
            f"{place}.extensions' holds '{one}', which does not begin with a dot"
            for one in runtime.extensions
            if not one.startswith(".")
        )
    return problems


def _lint_problems(table: Mapping[str, Any]) -> list[str]:
    if not table:
        return []
    from tamis.protocols.levels import read_levels

    # The name is what the message begins with.
    return [f"{FILE_NAME}: 'lint.{problem.message[1:]}" for problem in read_levels(table).problems]


def _binds(problem: str) -> bool:
    # A table that is not known (`[policies]`) may be a misspelled bound; so may a near miss of a binding name.
    return problem.startswith((*_BINDING, f"{FILE_NAME}: unknown table")) or any(
        f"did you mean '{name}'" in problem for name in _BINDING_NAMES
    )


def read_bounded(path: Path, limit: int) -> bytes:
    """The first ``limit`` bytes of a file. Raises ``OSError``, also for a FIFO and a device, where reading could wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            return stream.read(limit)
    finally:
        os.close(descriptor)


def _read_file(path: Path, problems: list[str]) -> dict[str, Any]:
    import tomllib

    try:
        data = read_bounded(path, MAX_FILE_BYTES + 1)
        if len(data) <= MAX_FILE_BYTES:
            return tomllib.loads(data.decode("utf-8-sig"))
        cause = f"is larger than {MAX_FILE_BYTES} bytes"
    except OSError as error:
        cause = f"cannot be read: {error.strerror}"
    except RecursionError:
        cause = "is no TOML: it is nested too deep"
    except ValueError as error:  # numbers of thousands of digits are no TOMLDecodeError
        cause = f"is no TOML: {error}"
    problems.append(f"{path} {cause}; no tool is run until it is mended")
    return {}


def _wanted(kind: Any) -> str:
    """What a setting takes, in words."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f'"{value}"' for value in get_args(kind))
    names = {str: "a text", int: "a whole number", bool: "true or false"}
    if get_origin(kind) is tuple:
        return "a list of texts" if get_args(kind)[0] is str else "a list of tables"
    return names.get(kind, "a table")


def _shown(value: object) -> str:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _table_of(kind: Any) -> type[msgspec.Struct] | None:
    """What the entries of a table with free names are."""
    entry = get_args(kind)[1] if get_origin(kind) is dict else None
    return entry if isinstance(entry, type) and issubclass(entry, msgspec.Struct) else None


def _is_one(value: object, kind: Any) -> bool:
    """Whether an entry of a table with free names is of its kind."""
    return value in get_args(kind) if get_origin(kind) is Literal else type(value) is kind


def _list_of(kind: Any) -> type[msgspec.Struct] | None:
    """What the tables of a list are."""
    entry = get_args(kind)[0] if get_origin(kind) is tuple else None
    return entry if isinstance(entry, type) and issubclass(entry, msgspec.Struct) else None


def _read(kind: type[msgspec.Struct], raw: Mapping[str, Any], prefix: str, problems: list[str]) -> msgspec.Struct:
    """Converts field by field, so that one wrong value costs that value only."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for name, value in raw.items():
        field = fields.get(name)
        if field is None:
            found = best(name, fields)
            meant = hint(f"{prefix}{found}" if found else None)
            what = "table" if isinstance(value, dict) else "setting"
            problems.append(f"{FILE_NAME}: unknown {what} '{prefix}{name}'{meant}")
            continue
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            if isinstance(value, dict):
                values[field.name] = _read(field.type, cast("dict[str, Any]", value), f"{prefix}{name}.", problems)
            else:
                problems.append(f"{FILE_NAME}: '{prefix}{name}' must be a table")
            continue
        entry = _table_of(cast("Any", field).type)
        if entry is not None and isinstance(value, dict):
            table = cast("dict[str, object]", value)
            values[field.name] = {
                key: _read(entry, cast("dict[str, Any]", item), f"{prefix}{name}.{key}.", problems)
                for key, item in table.items()
                if isinstance(item, dict)
            }
            problems.extend(
                f"{FILE_NAME}: '{prefix}{name}.{key}' must be a table"
                for key, item in table.items()
                if not isinstance(item, dict)
            )
            continue
        of: Any = cast("Any", field).type
        item_kind: Any = get_args(of)[1] if get_origin(of) is dict else Any
        if (item_kind in (str, int, bool) or get_origin(item_kind) is Literal) and isinstance(value, dict):
            table = cast("dict[str, object]", value)
            right = {key: item for key, item in table.items() if _is_one(item, item_kind)}
            problems.extend(
                f"{FILE_NAME}: '{prefix}{name}.{key}' must be {_wanted(item_kind)}, not {_shown(item)}"
                for key, item in table.items()
                if key not in right
            )
            values[field.name] = right
            continue
        listed = _list_of(of)
        if listed is not None and isinstance(value, list | tuple):
            items = list(enumerate(cast("list[object]", value), 1))
            values[field.name] = tuple(
                _read(listed, cast("dict[str, Any]", item), f"{prefix}{name}.{number}.", problems)
                for number, item in items
                if isinstance(item, dict)
            )
            problems.extend(
                f"{FILE_NAME}: '{prefix}{name}.{number}' must be a table"
                for number, item in items
                if not isinstance(item, dict)
            )
            continue
        try:
            converted: object = msgspec.convert(value, cast("Any", field).type)
        except (msgspec.ValidationError, RecursionError):
            wanted = _wanted(cast("Any", field).type)
            problems.append(f"{FILE_NAME}: '{prefix}{name}' must be {wanted}, not {_shown(value)}")
            continue
        if isinstance(converted, int) and not isinstance(converted, bool) and converted < 0:
            problems.append(f"{FILE_NAME}: '{prefix}{name}' must not be negative")
            continue
        values[field.name] = converted
    return kind(**values)
