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
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.mcp_hosts import HOSTS, NAME_RULE, HostError, HostProgram, changed, entry
from tamis.server.cli.outputs import warn, write_line, write_note
from tamis.server.cli.trust_command import ask

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
    if not arguments.yes and not ask(f"Write this for {host.title}? [y/N] "):
        write_note("nothing was written")
        return 1
    return _write(host, path, before, after)


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
        process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in asked))
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
