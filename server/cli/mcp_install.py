"""``tamis mcp install HOST``: the server in a host's own list, after the difference was shown, a person said yes, and the server shook hands.

Written is exactly what was shown: a file that changed meanwhile is left alone. Must not know how a host's file is written.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from tamis import __version__
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode
from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import warn, write_line, write_note
from tamis.server.cli.trust_command import ask

# Where each host program keeps its MCP servers, and its file with one of them added, changed or taken away. A change is made in the text, so that
# comments and order stay, and proved by reading the new text: everything but that one server is as it was, else nothing is changed. Pure but for the
# name of the user's folder; must not write or start anything.


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
    fields: dict[str, Any] = {"type": "stdio"} if host.typed else {}
    return fields | {"command": command[0], "args": command[1:]}


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
    new_text = (_with_toml if host.toml else _with_json)(text, host.table, name, server)
    try:
        after = read(new_text)
    except HostError:
        after = {}
    if after != wanted and not (server is None and {host.table: {}, **after} == wanted):
        raise HostError(
            "it is written in a way that cannot be changed safely; change it by hand (--print shows the entry)"
        )
    return new_text


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
    at = next(index for index, member in enumerate(members) if member.key == name)
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
    body = "".join(kept)
    if server is None:
        return body
    # a JSON text is a basic string of TOML, but for the letters that JSON leaves as they are
    written = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in server.items())
    gap = "" if not body.strip() else "\n" if body.endswith("\n") else "\n\n"
    return f"{body}{gap}[{table}.{name}]\n{written}"


HANDSHAKE_SECONDS = 30.0
END_SECONDS = 3.0
MAX_FILE_BYTES = 16 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


def install(arguments: argparse.Namespace) -> int:
    """Adds the server to a host, or takes it away with ``--remove``; 0 when the host's file is as it was asked for."""
    host = HOSTS.get(arguments.host or "")
    if host is None:
        warn(f"name the host: {', '.join(HOSTS)}")
        return 2
    if not _NAME.fullmatch(arguments.name):
        warn(f"--name: a server is called by {NAME_RULE}")
        return 2
    try:
        command = [*own_command(), "mcp", "--root", str(root_of(arguments.root))]
    except UsageError as error:
        warn(str(error))
        return 2
    server = None if arguments.remove else entry(host, command)
    path = Path(os.path.realpath(host.file()))
    if arguments.print:
        return _print(host, path, arguments.name, entry(host, command))
    try:
        before = _read(path)
        after = changed(host, before, arguments.name, server)
    except HostError as error:
        warn(f"'{path}': {error}")
        return 1
    if after == before:
        write_line(f"{host.title}: nothing to change in {path}")
        return 0
    for line in difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), f"{path} (new)", lineterm="", n=2
    ):
        write_line(line)
    if server is not None:
        told = shake_hands(command)
        if isinstance(told, str):
            warn(f"nothing was written: the server does not answer: {told}")
            return 1
        write_line(f"the server answers with {len(told)} tool{'' if len(told) == 1 else 's'} on its first page")
    if not arguments.yes and not _agreed(host, is_removed=arguments.remove):
        write_note("nothing was written")
        return 1
    return _write(host, path, before, after)


def _agreed(host: HostProgram, *, is_removed: bool) -> bool:
    """Whether a person on the terminal says yes to the change that was shown; no where there is none."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        warn(f"there is no terminal to ask on; --yes {'removes' if is_removed else 'writes'} the entry without asking")
        return False
    return ask(f"Write this for {host.title}? [y/N] ")


def own_command() -> list[str]:
    """How this Tamis is started from anywhere: a host has another PATH, and another folder."""
    beside = Path(sys.executable).with_name("tamis")
    return [str(beside)] if os.access(beside, os.X_OK) else [sys.executable, "-m", "tamis.server.cli.main"]


def _print(host: HostProgram, path: Path, name: str, server: dict[str, Any]) -> int:
    write_note(f"{host.title}: {path}")
    for line in changed(host, "", name, server).splitlines():
        write_line(line)
    return 0


def _read(path: Path) -> str:
    try:
        if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
            raise HostError("it is too large")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise HostError("it is no UTF-8") from None
    except OSError as error:
        raise HostError(f"it cannot be read: {error.strerror}") from None


def _write(host: HostProgram, path: Path, before: str, after: str) -> int:
    """Puts the new text in the place of the old one, whole or not at all."""
    try:
        if _read(path) != before:
            warn(f"'{path}' changed meanwhile; nothing was written")
            return 1
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(after)
                os.fchmod(file.fileno(), mode)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except (OSError, HostError) as error:
        warn(f"cannot write '{path}': {error}")
        return 1
    write_line(f"{host.title}: written to {path}; start it anew to use the tools")
    return 0


def shake_hands(command: list[str], seconds: float = HANDSHAKE_SECONDS) -> list[str] | str:
    """The names of a server's first page of tools, as a host asks for them; a text says why there are none."""
    asked = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "tamis mcp install", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    try:
        # another folder than this one, as hosts have it
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror}"
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **item}).encode() + b"\n" for item in asked))
        process.stdin.flush()
        for line in process.stdout:
            message = json.loads(line)
            if message.get("id") == 2:
                return [tool["name"] for tool in message["result"]["tools"]]
        return f"it ended, or said nothing for {seconds:g} s"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        # its sandboxes end with it when it is left time for that
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            process.stdin.close()
            process.wait(END_SECONDS)
        timer.cancel()
        process.kill()
        process.wait()


# ``tamis mcp bundle FILE``: the server as an MCP bundle (``.mcpb``), which a desktop host installs by a click and asks for the folder of tools. The
# bundle holds a manifest and a script that starts the Tamis of the machine; it holds no tool, so what is called is what stands in the folder.


SUFFIX = ".mcpb"
LAUNCHER = "server/tamis"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can tell: the same settings give the same bytes."""
_EXECUTABLE, _PLAIN = 0o100755, 0o100644


def bundle(arguments: argparse.Namespace) -> int:
    """Writes the bundle; 0 when it stands where it was asked for. A file that is there is left alone."""
    try:
        root = root_of(arguments.root)
        if not arguments.host:
            raise UsageError("name the file to write: tamis mcp bundle tools.mcpb")
    except UsageError as error:
        warn(str(error))
        return 2
    path = Path(arguments.host)
    path = path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
    files = {
        "manifest.json": (json.dumps(manifest(root), ensure_ascii=False, indent=2) + "\n", _PLAIN),
        LAUNCHER: (launcher(own_command()), _EXECUTABLE),
    }
    try:
        with path.open("xb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, (text, mode) in files.items():
                about = zipfile.ZipInfo(name, _WHEN)
                about.external_attr = mode << 16
                about.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(about, text)
    except FileExistsError:
        warn(f"'{path}' is there already; nothing was written")
        return 1
    except OSError as error:
        warn(f"cannot write '{path}': {error.strerror}")
        return 1
    write_line(f"{path}: open it with a desktop host that takes MCP bundles; it asks for the folder of tools")
    return 0


def manifest(root: Path) -> dict[str, Any]:
    """What a host reads of the bundle (manifest version 0.3)."""
    return {
        "manifest_version": "0.3",
        "name": "tamis",
        "display_name": "Tamis",
        "version": __version__,
        "description": "Checked, sandboxed tools from a folder of *.tool.json manifests",
        "author": {"name": "Tamis"},
        "license": "Apache-2.0",
        "server": {
            "type": "binary",
            "entry_point": LAUNCHER,
            "mcp_config": {
                "command": "${__dirname}/" + LAUNCHER,
                "args": ["mcp", "--root", "${user_config.folder}"],
                "env": {},
            },
        },
        "tools_generated": True,
        "prompts_generated": True,
        "user_config": {
            "folder": {
                "type": "directory",
                "title": "Folder of tools",
                "description": "The folder with the *.tool.json manifests; tamis.toml in it or above it holds the settings",
                "required": True,
                "default": str(root),
            }
        },
        "compatibility": {"platforms": ["linux"]},
    }


def launcher(command: list[str]) -> str:
    """The script that a host starts: the Tamis that made the bundle, else one that the person installed."""
    return f"""#!/bin/sh
if [ -x {shlex.quote(command[0])} ]; then exec {shlex.join(command)} "$@"; fi
for program in "$HOME/.local/bin/tamis" tamis; do
  if command -v "$program" >/dev/null 2>&1; then exec "$program" "$@"; fi
done
echo "Tamis is not installed for this user; install it with pipx or uv, then start the host again" >&2
exit 127
"""
