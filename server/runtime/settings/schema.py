"""The settings as JSON Schema (draft-07): types and defaults from the Structs of ``config.py``, meanings from ``words.py``.

Published for editors' TOML extensions, and what this server's own completion and hover go by. Must not know editors.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal, cast, get_args, get_origin

import msgspec

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.export.names import TARGET_WORDS, TARGETS
from tamis.protocols.levels import LEVELS
from tamis.protocols.manifest.json_schema import SCHEMAS
from tamis.protocols.manifest.security import CAPABILITIES
from tamis.protocols.plugins import SHIPPED
from tamis.server.runtime.settings.classes import CLASSES
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.words import TABLES, WORDS

SCHEMA_ID = f"{SCHEMAS}settings/v1.json"
FILE = "tamis.schema.json"
"""The published file, in ``schemas/``."""
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_HOLE = re.compile(r"\{\w+\}")
_OTHERS = {
    "mcpServers.*.url": "The endpoint of a server over Streamable HTTP, in place of a script.",
    "mcpServers.*.script": "The server's script, relative to its folder.",
    "mcpServers.*.language": "`python`, `nodejs` or `bun`.",
    "mcpServers.*.folder": "The server's folder, relative to the root; what it declares beside its script is installed.",
    "mcpServers.*.args": "Words behind the script.",
    "mcpServers.*.env": "Variables of the server, none of them secret.",
    "mcpServers.*.secrets": "Secrets that it asks for; `policy.secrets` grants them to `mcp-server:NAME`.",
    "mcpServers.*.allowRead": "Path patterns that it asks to read, as in a manifest.",
    "mcpServers.*.allowWrite": "Path patterns that it asks to write, as in a manifest.",
    "mcpServers.*.allowHosts": "Hosts that it asks to reach, as in a manifest.",
    "mcpServers.*.startMs": "How long its start may take.",
    "mcpServers.*.idleMs": "After so long without a call it is ended.",
    "mcpServers.*.isolate": "`session`: each session of each agent has a process of its own; `shared`: all use one.",
    "mcpServers.*.oauth": "How Tamis is known to the server's authorization server.",
    "mcpServers.*.oauth.clientId": "The client's id, where it was registered by hand.",
    "mcpServers.*.oauth.clientSecret": "The name in `[secrets]` of the client's secret; wants `issuer`, the only place that it is sent to.",
    "mcpServers.*.oauth.clientMetadataUrl": "The address of a client id metadata document, which is the client's id then.",
    "mcpServers.*.oauth.issuer": "The authorization server; another one that the server names is refused.",
    "mcpServers.*.oauth.scopes": "What is asked for, in place of what the server names.",
    "mcpServers.*.oauth.redirectPort": "The port of this machine that a login comes back to; 0: any that is free.",
    "mcpServers.*.oauth.grant": "`authorizationCode`: a person logs in; `clientCredentials`: the client's secret is enough.",
    "sandbox.runtimes.*.command": "The program and its words: an absolute path first, `{script}` where the script's path goes.",
    "sandbox.runtimes.*.extensions": "The endings of its scripts, each with its dot.",
    "sandbox.runtimes.*.show": "Absolute folders that its scripts need to see, read only.",
    "secrets.*": "A secret: one of `env`, `file`, `command` and `keyring`.",
    "secrets.*.env": "The variable of Tamis's own environment that holds it.",
    "secrets.*.file": "The file that holds it, absolute or relative to the root; a newline at its end is left out.",
    "secrets.*.command": "A program with its words, by absolute path, that prints it; no shell, ten seconds, an empty environment.",
    "secrets.*.keyring": "`service/user` of the desktop's keyring; needs the extra `keyring`.",
    "secrets.*.form": "`variable`: scripts find it in the variable of its name; `file`: in a file that `NAME_FILE` names.",
    "policy.secrets.*": "The secrets that tools of this id or pattern may have; `*` for all.",
    "policy.hosts.*": "A header that the proxy puts on the requests to this host.",
    "policy.hosts.*.header": "The header's name.",
    "policy.hosts.*.secret": "The secret that is its value.",
    "policy.hosts.*.prefix": "What stands before the secret, such as `Bearer ` with its blank.",
    "policy.hosts.*.scheme": "How the proxy speaks to the host: `http` as the script does, or `https`.",
    "policy.hosts.*.tools": "Ids and patterns of the tools that it is for; left out: those that `policy.secrets` lets have the secret.",
    "policy.pin.*": "The address of this name.",
    "policy.tools.*": "What holds for the calls of this tool: `allow`, `ask` or `deny`.",
    "policy.rules.*": "A rule: the calls that fit all that it says.",
    "policy.rules.*.verdict": "`allow`: no question by policy or manifest; `ask`: a person is asked; `deny`: it never runs.",
    "policy.rules.*.tool": "The tools' ids, as a pattern with `*` and `?`; `id@version` for a version.",
    "policy.rules.*.face": "Where the call comes from: `rpc`, `mcp`, `lsp`, `cli`.",
    "policy.rules.*.client": "The host's `clientInfo.name`, as a pattern.",
    "policy.rules.*.agent": "The `context.agentId` of the call, as a pattern.",
    "policy.rules.*.session": "The `context.sessionId` of the call, as a pattern.",
    "policy.rules.*.parameter": "A parameter's name, or a JSON Pointer into the arguments in which `*` is any item.",
    "policy.rules.*.matches": "A pattern for its values, whole and as text.",
    "policy.rules.*.reason": "Why; the model and the user read it.",
    "environments.*": "The variables of this environment, each `name = value`.",
    "resources.*": "The folder behind `fam://` and this name.",
    "mcpServers.*": "An MCP server that is run in the sandbox, or reached from it.",
    "sandbox.runtimes.*": "A runtime of your own.",
    "lint.targets": "Targets of export that tools are to be portable to: what one refuses or loses is a finding (TH401 to TH403).",
}
"""Words for what the page has no row of its own for."""


LEVEL: dict[str, Any] = {
    "enum": list(LEVELS),
    "description": "The level of these findings; `off` leaves them out.",
}


@cache
def settings_schema() -> dict[str, Any]:
    """The schema. Shared: whoever gets it must not change it."""
    schema = _table(Settings, "")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_ID,
        "title": "Settings of Tamis (tamis.toml)",
        "definitions": {"level": LEVEL},
        **schema,
    }


def meaning(dotted: str) -> str:
    """What a setting or table means, as Markdown without links; empty for an unknown one."""
    word = WORDS.get(dotted)
    text = word.means if word is not None else TABLES.get(dotted) or _OTHERS.get(dotted, "")
    return _LINK.sub(r"\1", text)


def example(dotted: str) -> str:
    """An example of a setting's value as TOML; empty for none."""
    word = WORDS.get(dotted)
    return word.example.strip("` ") if word is not None else ""


def _table(kind: type[msgspec.Struct], prefix: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        dotted = f"{prefix}{name}"
        schema = _field(cast("Any", field).type, dotted)
        default: Any = field.default if field.default is not msgspec.NODEFAULT else None
        if "properties" not in schema and default is not None:
            schema["default"] = list(cast("tuple[Any, ...]", default)) if isinstance(default, tuple) else default
        properties[name] = schema
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _field(kind: Any, dotted: str) -> dict[str, Any]:
    text = meaning(dotted)
    about: dict[str, Any] = {"description": text} if text else {}
    if dotted in CLASSES:
        about["x-tamis-class"] = CLASSES[dotted].kind
    if dotted == "lint":
        return {**about, **_lint()}
    return {**about, **_type(kind, dotted)}


def _type(kind: Any, dotted: str) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _table(kind, f"{dotted}.")
    origin = get_origin(kind)
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if origin is tuple:
        entry_kind: Any = get_args(kind)[0]
        if entry_kind is not str:
            return {"type": "array", "items": _field(entry_kind, f"{dotted}.*")}
        item: dict[str, Any] = {"type": "string"}
        if dotted == "policy.capabilities":
            item["enum"] = sorted(CAPABILITIES)
        elif dotted == "protocol.also":
            item["examples"] = list(SHIPPED)
        return {"type": "array", "items": item}
    if origin is dict:
        entry = _field(get_args(kind)[1], f"{dotted}.*")
        return {"type": "object", "additionalProperties": entry}
    if kind is str and dotted == "protocol.default":
        return {"type": "string", "examples": list(SHIPPED)}
    if kind is Any:
        return {}
    names = {str: "string", bool: "boolean", int: "integer"}
    schema: dict[str, Any] = {"type": names[kind]}
    return {**schema, "minimum": 0} if kind is int else schema


def _lint() -> dict[str, Any]:
    """Rules by code and by slug with their sentences, and any beginning of codes."""
    properties: dict[str, Any] = {
        "targets": {
            "description": _OTHERS["lint.targets"],
            "type": "array",
            "items": {"enum": list(dict.fromkeys((*TARGET_WORDS, *TARGETS)))},
        }
    }
    for code, entry in sorted(CATALOGUE.items()):
        usual = "off" if entry.off else entry.severity
        for name, other in ((code, entry.slug), (entry.slug, code)):
            properties.setdefault(
                name,
                {
                    "description": f"{_HOLE.sub('…', entry.message)} ({other}; usually {usual})",
                    "allOf": [{"$ref": "#/definitions/level"}],
                },
            )
    properties["formats"] = {
        "description": "Texts that have not the format of their schema: error refuses the call, off says nothing (usually warning)",
        "allOf": [{"$ref": "#/definitions/level"}],
    }
    return {
        "type": "object",
        "properties": properties,
        # beginnings of codes, and codes in small letters; those in capitals stand above
        "patternProperties": {
            "^(?![A-Z]{2}[0-9]{3}$)[A-Za-z]{2}[0-9]{0,3}$": {"allOf": [{"$ref": "#/definitions/level"}]}
        },
        "additionalProperties": False,
    }
