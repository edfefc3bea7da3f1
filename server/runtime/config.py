"""Settings: ``tamis.toml`` in the root, overlaid by what an editor or a host sends.

One spelling everywhere (interface, Configuration). A wrong setting is reported with its place in the file's terms and the
default stays in force, except in ``[policy]``, where a value that cannot be read means the closed default. Must not know
tools or faces.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from tamis.protocols.suggest import best, hint

FILE_NAME = "tamis.toml"
MAX_FILE_BYTES = 1024 * 1024


class Policy(msgspec.Struct, rename="camel", frozen=True):
    """What a manifest's ``securityContext`` may at most be granted. Everything is closed by default."""

    read_roots: tuple[str, ...] = ()
    write_roots: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow_cidrs: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    require_confirmation: Literal["never", "writes", "always"] = "never"
    approval_timeout_ms: int = 300_000
    calls_per_minute: int = 0
    allow_build: bool = False


class Interpreters(msgspec.Struct, frozen=True):
    """Paths of interpreters that the operator chose; empty means look for one."""

    python: str = ""
    nodejs: str = ""
    bun: str = ""


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


class ProtocolSettings(msgspec.Struct, rename="camel", frozen=True):
    """How calls are read."""

    default: Literal["action", "tam", "vcp"] = "vcp"
    reasoning_calls: Literal["ignore", "run"] = "ignore"
    fenced_calls: Literal["auto", "run", "ignore"] = "auto"
    allow_multiple_blocks: bool = False
    stderr_fails: bool = False


class Settings(msgspec.Struct, rename="camel", frozen=True):
    """All settings of a root, with the defaults of the interface."""

    tools: tuple[str, ...] = (".",)
    workflows: tuple[str, ...] = ()
    profile: str = ""
    strict_json: bool = False
    on_conflict: Literal["error", "keepFirst", "replace"] = "keepFirst"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    policy: Policy = Policy()
    sandbox: SandboxSettings = SandboxSettings()
    resources: dict[str, str] = {}
    protocol: ProtocolSettings = ProtocolSettings()
    lint: dict[str, Any] = {}


class LoadedSettings(msgspec.Struct, frozen=True):
    """Settings with what was wrong in them; ``problems`` are sentences for ``tamis doctor`` and the log."""

    root: Path
    settings: Settings
    problems: tuple[str, ...] = ()


def find_root(start: Path) -> Path:
    """The nearest folder upwards from ``start`` that holds a ``tamis.toml``, else ``start`` itself."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder
    return start


def load_settings(root: Path, overlay: Mapping[str, Any] | None = None) -> LoadedSettings:
    """Reads the root's settings and lays ``overlay`` (same names) over them; never raises."""
    problems: list[str] = []
    raw: dict[str, Any] = {}
    path = root / FILE_NAME
    try:
        if path.is_file():
            with path.open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                problems.append(f"{path}: larger than {MAX_FILE_BYTES} bytes; the defaults are used")
            else:
                raw = tomllib.loads(data.decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(f"{path}: {error}; the defaults are used")
    for name, value in (overlay or {}).items():
        here = raw.get(name)
        if isinstance(value, dict) and isinstance(here, dict):
            raw[name] = {**cast("dict[str, Any]", here), **cast("dict[str, Any]", value)}
        else:
            raw[name] = value
    settings = cast("Settings", _read(Settings, raw, "", problems))
    return LoadedSettings(root, settings, tuple(problems))


def _read(kind: type[msgspec.Struct], raw: Mapping[str, Any], prefix: str, problems: list[str]) -> msgspec.Struct:
    """Converts field by field, so that one wrong value costs that value only."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for name, value in raw.items():
        field = fields.get(name)
        if field is None:
            found = best(name, fields)
            meant = hint(f"{prefix}{found}" if found else None)
            problems.append(f"{FILE_NAME}: unknown setting '{prefix}{name}'{meant}")
            continue
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            if isinstance(value, dict):
                values[field.name] = _read(field.type, cast("dict[str, Any]", value), f"{prefix}{name}.", problems)
            else:
                problems.append(f"{FILE_NAME}: '{prefix}{name}' must be a table; the default is used")
            continue
        try:
            converted: object = msgspec.convert(value, cast("Any", field).type)
        except (msgspec.ValidationError, RecursionError) as error:
            problems.append(f"{FILE_NAME}: '{prefix}{name}': {error}; the default is used")
            continue
        if isinstance(converted, int) and not isinstance(converted, bool) and converted < 0:
            problems.append(f"{FILE_NAME}: '{prefix}{name}' must not be negative; the default is used")
            continue
        values[field.name] = converted
    return kind(**values)
