"""Where each host program keeps its MCP servers, and its file with one of them added, changed or taken away.

A change is made in the text, so that comments and order stay, and proved by reading the new text: everything but that one server is as it was, else
nothing is changed. Pure but for the name of the user's folder; must not write or start anything.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode

NAME_RULE = "letters, digits, '_' and '-', at most 40"
_STEP = "  "
_COMMA = re.compile(r"\s*,")


class HostError(Exception):
    """Why a host's file cannot be changed, for a person."""


class HostProgram(msgspec.Struct, frozen=True):
    """A host: what people call it, its file, the table of servers in it, and how a server is written there."""

    title: str
    file: Callable[[], Path]
    table: str = "mcpServers"
    typed: bool = False
    """Whether a server says that it is one on stdio."""
    toml: bool = False


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _settings(*parts: str) -> Callable[[], Path]:
    """A file of the place where programs with windows keep their settings."""

    def file() -> Path:
        if sys.platform == "darwin":
            return Path.home().joinpath("Library", "Application Support", *parts)
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").joinpath(*parts)

    return file


def _codex() -> Path:
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"


HOSTS = {
    "claude": HostProgram("Claude Desktop", _settings("Claude", "claude_desktop_config.json")),
    "claude-code": HostProgram("Claude Code", _home(".claude.json"), typed=True),
    "codex": HostProgram("Codex", _codex, "mcp_servers", toml=True),
    "cursor": HostProgram("Cursor", _home(".cursor", "mcp.json")),
    "gemini": HostProgram("Gemini CLI", _home(".gemini", "settings.json")),
    "vscode": HostProgram("VS Code", _settings("Code", "User", "mcp.json"), "servers", typed=True),
    "windsurf": HostProgram("Windsurf", _home(".codeium", "windsurf", "mcp_config.json")),
    "zed": HostProgram("Zed", _home(".config", "zed", "settings.json"), "context_servers"),
}


def entry(host: HostProgram, command: list[str]) -> dict[str, Any]:
    """A server as the host writes it."""
    made: dict[str, Any] = {"type": "stdio"} if host.typed else {}
    return made | {"command": command[0], "args": command[1:]}


def changed(host: HostProgram, text: str, name: str, server: Mapping[str, Any] | None) -> str:
    """The host's file with that server; None takes it away. Raises ``HostError`` where the file cannot be read, or not be changed alone."""
    read = _read_toml if host.toml else _read_json
    before = read(text)
    held = before.get(host.table, {})
    if not isinstance(held, dict):
        raise HostError(f"'{host.table}' is no table of servers there")
    servers = cast("dict[str, Any]", held)
    if servers.get(name) == server:
        return text
    wanted: dict[str, Any] = {**before, host.table: {**servers, name: server}}
    if server is None:
        wanted[host.table] = {key: value for key, value in servers.items() if key != name}
    made = (_with_toml if host.toml else _with_json)(text, host.table, name, server)
    try:
        after = read(made)
    except HostError:
        after = {}
    if after != wanted and not (server is None and {host.table: {}, **after} == wanted):
        raise HostError(
            "it is written in a way that cannot be changed safely; change it by hand (--print shows the entry)"
        )
    return made


# JSON


def _read_json(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    tree = parse_json(text)
    if not tree.ok or tree.root is None or tree.root.kind != "object":
        raise HostError("it is no JSON object")
    return cast("dict[str, Any]", tree.root.to_python())


def _with_json(text: str, table: str, name: str, server: Mapping[str, Any] | None) -> str:
    if not text.strip():
        return json.dumps({table: {name: server}}, indent=2, ensure_ascii=False) + "\n"
    root = parse_json(text).root
    assert root is not None
    servers = root.get(table)
    member = None if servers is None else servers.member(name)
    if server is None:
        return text if servers is None or member is None else _without(text, servers, name)
    if servers is None:
        return _added(text, root, table, {name: server}, 1)
    if member is None or member.value is None:
        return _added(text, servers, name, server, 2)
    return text[: member.value.start] + _json(server, 2) + text[member.value.end :]


def _json(value: object, depth: int) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + _STEP * depth)


def _added(text: str, node: JsonNode, key: str, value: object, depth: int) -> str:
    written = f"{json.dumps(key, ensure_ascii=False)}: {_json(value, depth)}"
    line = "\n" + _STEP * depth
    if not node.members:
        return f"{text[: node.start + 1]}{line}{written}\n{_STEP * (depth - 1)}{text[node.end - 1 :]}"
    # in front of the first, where no comma or comment of the last can be in the way
    return f"{text[: node.start + 1]}{line}{written},{text[node.start + 1 :]}"


def _without(text: str, node: JsonNode, name: str) -> str:
    members = node.members
    at = next(index for index, one in enumerate(members) if one.key == name)
    start, end = members[at].span
    comma = _COMMA.match(text, end)
    if comma is not None:
        return text[:start].rstrip(" \t").removesuffix("\n") + text[comma.end() :]
    if at + 1 < len(members):
        return text[:start] + text[members[at + 1].key_start :]
    if at:
        return text[: members[at - 1].span[1]] + text[end:]
    return text[: node.start + 1] + text[node.end - 1 :]


# TOML


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HostError(f"it is no TOML: {error}") from None


def _with_toml(text: str, table: str, name: str, server: Mapping[str, Any] | None) -> str:
    lines = text.splitlines(keepends=True)
    own = (f"[{table}.{name}]", f"[{table}.{name}.")
    kept: list[str] = []
    inside = False
    for line in lines:
        if line.startswith("["):
            inside = line.startswith(own)
        if not inside:
            kept.append(line)
    made = "".join(kept)
    if server is None:
        return made
    # a JSON text is a basic string of TOML, but for the letters that JSON leaves as they are
    written = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in server.items())
    gap = "" if not made.strip() else "\n" if made.endswith("\n") else "\n\n"
    return f"{made}{gap}[{table}.{name}]\n{written}"
