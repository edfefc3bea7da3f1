"""Who may set what (ruling 58): one class for every setting, and what "stricter" means where a folder may narrow it.

The loader, the settings page, the schema, completion, hover and findings go by this table. *Narrowing*: a folder's file may set what is
stricter than the operator's. *Folder*: about the folder alone. *Operator*: acts only from the operator's own files, ``--config``, the
host, or a folder that the user trusted. Must not know files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import stays_inside

Kind = Literal["narrowing", "folder", "operator"]
Join = Callable[[Any, Any], tuple[Any, Any]]
"""What a folder asks for, and what holds without it: what holds then, and the part of it that is not in force (None: nothing)."""
Keep = Callable[[Any, str], tuple[Any, Any]]
"""What a folder asks for, and its real path: what of it is about the folder alone, and the rest (None: nothing)."""


class SettingClass(NamedTuple):
    """The class of a setting; ``told`` says in the settings page what a folder may do with it."""

    kind: Kind
    told: str
    join: Join | None = None
    """How a folder's value narrows what holds; None: not at all."""
    keep: Keep | None = None
    """What a folder may say; None for a folder setting: everything."""


# Orders


def _smaller(asked: int, held: int) -> tuple[int, int | None]:
    return (asked, None) if asked <= held else (held, asked)


def _smaller_bound(asked: int, held: int) -> tuple[int, int | None]:
    """0 is no bound."""
    if held == 0 or 0 < asked <= held:
        return asked, None
    return held, asked


def _bounds(asked: Mapping[str, int], held: Mapping[str, int]) -> tuple[dict[str, int], Any]:
    """Bounds by name, ``*`` for every name that has none of its own, 0 for none: the smaller one for each name."""
    joined: dict[str, int] = {}
    refused: dict[str, int] = {}
    for name in dict.fromkeys((*held, *asked)):
        wanted, before = asked.get(name, asked.get("*", 0)), held.get(name, held.get("*", 0))
        joined[name] = min((item for item in (wanted, before) if item > 0), default=0)
        if name in asked and joined[name] != wanted:
            refused[name] = wanted
    return joined, refused or None


def _words(*strictest_first: object) -> Join:
    def join(asked: object, held: object) -> tuple[object, object]:
        stricter = strictest_first.index(asked) <= strictest_first.index(held)
        return (asked, None) if stricter else (held, asked)

    return join


def _fewer(asked: Sequence[str], held: Sequence[str]) -> tuple[Sequence[str], Any]:
    """A list narrows where it holds nothing else; else what else it holds is not in force, and the operator's list stays."""
    more = tuple(item for item in asked if item not in held)
    return (held, more) if more else (asked, None)


def _more(asked: Sequence[str], held: Sequence[str]) -> tuple[Sequence[str], Any]:
    """A list narrows where it holds everything that holds without it; what it leaves out stays."""
    left_out = tuple(item for item in held if item not in asked)
    return (*asked, *left_out), left_out or None


def _added(asked: Sequence[str], held: Sequence[str]) -> tuple[Sequence[str], Any]:
    """A list narrows by what it adds; what holds without it holds."""
    return tuple(dict.fromkeys((*held, *asked))), None


def _unless_set(asked: str, held: str) -> tuple[str, str | None]:
    return (held, asked) if held not in ("", asked) else (asked, None)


# What a folder may say


def is_inside(path: str, root: str) -> bool:
    """Whether a path, relative to ``root`` and with its links resolved, is in the folder ``root`` (a real path)."""
    try:
        real = os.path.realpath(os.path.join(root, path))
    except ValueError:  # a zero byte: no path at all
        return False
    return real == root or real.startswith(root.rstrip("/") + "/")


def _inner_paths(asked: Sequence[str], root: str) -> tuple[tuple[str, ...], Any]:
    outside = tuple(path for path in asked if "\0" not in path and not stays_inside(path, root))
    return tuple(path for path in asked if path not in outside), outside or None


def _inner_path(asked: str, root: str) -> tuple[str | None, Any]:
    return (asked, None) if not asked or "\0" in asked or stays_inside(asked, root) else (None, asked)


def _inner_places(asked: Mapping[str, str], root: str) -> tuple[dict[str, str], Any]:
    outside = {name: path for name, path in asked.items() if "\0" not in path and not stays_inside(path, root)}
    return {name: path for name, path in asked.items() if name not in outside}, outside or None


def _shipped(asked: str, _root: str) -> tuple[str | None, Any]:
    from tamis.protocols.plugins import SHIPPED  # loads every protocol, which a start does not wait for

    return (asked, None) if asked in SHIPPED else (None, asked)


_FINAL = "policy.final"
_IN_SHORT: Mapping[Kind, str] = {
    "operator": "operator only, until trusted",
    "narrowing": "folders: stricter only",
    "folder": "",
}
_OPERATOR = SettingClass("operator", "operator")
_FOLDER = SettingClass("folder", "folder")
_SMALLER = SettingClass("narrowing", "narrowing: a smaller number", _smaller)
_LIST = SettingClass("operator", "operator; a folder may list fewer", _fewer)
_INSIDE = "folder, for what is inside it; else operator"


def _narrowing(*strictest_first: object) -> SettingClass:
    shown = [str(item).lower() if isinstance(item, bool) else f'"{item}"' for item in strictest_first]
    told = "narrowing; the strictest first: " + ", ".join(f"`{item}`" for item in shown)
    return SettingClass("narrowing", told, _words(*strictest_first))


CLASSES: Mapping[str, SettingClass] = {
    "tools": SettingClass("folder", _INSIDE, keep=_inner_paths),
    "workflows": SettingClass("folder", _INSIDE, keep=_inner_paths),
    "builtin": _FOLDER,
    # their code runs in the daemon itself
    "handlers": _LIST,
    "sources": _LIST,
    # bounds what is called, so a folder's own stands only where the operator named none
    "profile": SettingClass("folder", f"{_INSIDE}. The operator's own goes before it", _unless_set, _inner_path),
    "strictJson": _narrowing(True, False),
    # more rules refuse more: a folder's own come to those that the operator asks for
    "schemaExtension": SettingClass(
        "narrowing", "narrowing: more, for what is inside the folder", _added, _inner_paths
    ),
    "onConflict": _narrowing("error", "keepFirst", "replace"),
    # what the operator reads of the calls
    "logLevel": _OPERATOR,
    "logFormat": _OPERATOR,
    _FINAL: SettingClass("operator", "operator; acts in the machine's file alone"),
    "policy.readRoots": _LIST,
    "policy.writeRoots": _LIST,
    "policy.allowHosts": _LIST,
    "policy.allowCidrs": _LIST,
    # a name without its pin is looked up: fewer are not stricter
    "policy.pin": _OPERATOR,
    "policy.capabilities": _LIST,
    "policy.secrets": _OPERATOR,
    "policy.hosts": _OPERATOR,
    "policy.requireConfirmation": _narrowing("always", "writes", "never"),
    "policy.approvalTimeoutMs": _SMALLER,
    # joined by `rules.py`, which looks at both: the stricter verdict on a call holds
    "policy.tools": SettingClass("narrowing", 'narrowing: `"ask"` and `"deny"`'),
    "policy.rules": SettingClass("narrowing", 'narrowing: `"ask"` and `"deny"`'),
    "policy.callsPerMinute": SettingClass("narrowing", "narrowing: a smaller number, not `0`", _smaller_bound),
    "policy.toolCallsPerMinute": SettingClass("narrowing", "narrowing: smaller numbers, not `0`", _bounds),
    "policy.agentCallsPerMinute": SettingClass("narrowing", "narrowing: smaller numbers, not `0`", _bounds),
    "policy.sessionCallsPerMinute": SettingClass("narrowing", "narrowing: a smaller number, not `0`", _smaller_bound),
    "policy.allowBuild": SettingClass("operator", "operator; a folder may say `false`", _words(False, True)),
    "sandbox.backend": _OPERATOR,
    "sandbox.warm": _narrowing("off", "waiting", "auto"),
    "sandbox.wallMs": _SMALLER,
    "sandbox.cpuSeconds": _SMALLER,
    "sandbox.memoryBytes": _SMALLER,
    "sandbox.processes": _SMALLER,
    "sandbox.openFiles": _SMALLER,
    "sandbox.fileBytes": _SMALLER,
    "sandbox.tmpBytes": _SMALLER,
    "sandbox.stdinBytes": _SMALLER,
    "sandbox.stdoutBytes": _SMALLER,
    "sandbox.stderrBytes": _SMALLER,
    "sandbox.interpreters.python": _OPERATOR,
    "sandbox.interpreters.nodejs": _OPERATOR,
    "sandbox.interpreters.bun": _OPERATOR,
    "sandbox.interpreters.uv": _OPERATOR,
    "sandbox.runners.python": _OPERATOR,
    "sandbox.runners.nodejs": _OPERATOR,
    "sandbox.runtimes": _OPERATOR,
    "dependencies.install": _narrowing("off", "auto"),
    # no list is every index that is configured: fewer are not stricter
    "dependencies.indexes": _OPERATOR,
    # what is kept of all roots together
    "dependencies.cacheBytes": _OPERATOR,
    "dependencies.wallMs": _SMALLER,
    "audit.enabled": _OPERATOR,
    "audit.path": _OPERATOR,
    "audit.maxBytes": _OPERATOR,
    "audit.keep": _OPERATOR,
    "telemetry.traces": _OPERATOR,
    "telemetry.endpoint": _OPERATOR,
    # what is kept of all roots together
    "idempotency.keep": _OPERATOR,
    "idempotency.keepSeconds": _OPERATOR,
    "tasks.wallMs": _SMALLER,
    "tasks.keep": _OPERATOR,
    "tasks.keepSeconds": _OPERATOR,
    "tasks.callbackUrl": _OPERATOR,
    "engine.type": _OPERATOR,
    "engine.url": _OPERATOR,
    "engine.wallMs": _SMALLER,
    "engine.maxParallel": _SMALLER,
    "resources": SettingClass("folder", _INSIDE, keep=_inner_places),
    "mcpServers": _OPERATOR,
    "secrets": _OPERATOR,
    # another name loads the code of an installed package
    "protocol.default": SettingClass("folder", "folder, for those that come with Tamis; else operator", keep=_shipped),
    "protocol.also": SettingClass("narrowing", "narrowing: fewer", _fewer),
    "protocol.reasoningCalls": _narrowing("ignore", "run"),
    "protocol.reasoningTags": SettingClass("narrowing", "narrowing: more", _more),
    "protocol.assumeOpenReasoning": _narrowing(True, False),
    "protocol.fencedCalls": _narrowing("ignore", "auto", "run"),
    "protocol.allowMultipleBlocks": _narrowing(False, True),
    "protocol.stderrFails": _narrowing(True, False),
    "lint": _FOLDER,
    "diagnostics.workspace": _FOLDER,
    # data for arguments that a person runs; a model's text never sees it
    "environment": _FOLDER,
    "environments": _FOLDER,
}
"""The class of every setting by its dotted name; tables with free names are one setting."""


def leaves(kind: type[msgspec.Struct] = Settings, prefix: str = "") -> dict[str, msgspec.structs.FieldInfo]:
    """Every setting by its dotted name; tables with free names are one setting."""
    fields: dict[str, msgspec.structs.FieldInfo] = {}
    for field in msgspec.structs.fields(kind):
        of: Any = cast("Any", field).type
        if isinstance(of, type) and issubclass(of, msgspec.Struct):
            fields |= leaves(of, f"{prefix}{field.encode_name}.")
        else:
            fields[f"{prefix}{field.encode_name}"] = field
    return fields


def class_of(dotted: str) -> SettingClass | None:
    """The class of a setting, also of an entry of a table or list; None for a table of settings, and for what is none."""
    names = dotted.split(".")
    return next((CLASSES[name] for at in range(len(names), 0, -1) if (name := ".".join(names[:at])) in CLASSES), None)


def whose_word(dotted: str) -> str:
    """What a folder may do with a setting, as a sentence; empty for a table of settings, and for what is none."""
    known = class_of(dotted)
    if known is None:
        return ""
    if dotted == _FINAL:
        return "Acts in the machine's own file alone."
    if known.told == "operator":
        return "Set by the operator only, until the folder is trusted."
    if known.kind == "operator":
        return f"Set by the operator only, until the folder is trusted ({known.told.removeprefix('operator; ')})."
    if known.told == "folder":
        return "A folder may set it."
    if known.kind == "folder":
        return f"A folder may set it ({known.told.removeprefix('folder, ')})."
    return f"A folder may make it stricter ({known.told.removeprefix('narrowing: ').removeprefix('narrowing; ')}), and wider once it is trusted."


def short_word(dotted: str) -> str:
    """The same in a few words."""
    known = class_of(dotted)
    if dotted == _FINAL:
        return "the machine's file only"
    return "" if known is None else _IN_SHORT[known.kind]


def is_default(settings: Settings, dotted: str) -> bool:
    """Whether a setting has the value that it has when nobody sets it."""
    value: Any = settings
    kind: Any = Settings
    for name in dotted.split("."):
        field = next(field for field in msgspec.structs.fields(kind) if field.encode_name == name)
        value, kind = getattr(value, field.name), cast("Any", field).type
    return value == default_of(dotted)


def default_of(dotted: str) -> Any:
    """The value of a setting that nobody sets."""
    field = leaves()[dotted]
    return field.default if field.default is not msgspec.NODEFAULT else cast("Any", field).default_factory()
