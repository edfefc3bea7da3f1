"""Which modules may start a process, and why (ruling 59: nothing outside the sandbox but its own programs)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("protocols", "sandbox", "environments", "server", "client", "tamis")
MAY_START = {
    "client/blocking.py": "starts the daemon for a program that uses the client",
    "client/asynchronous.py": "as above, on an event loop",
    "sandbox/launch.py": "the sandbox itself: every script, installer and question runs below what is started here",
    "sandbox/paths/idmapped.py": "a user namespace for a mount: `unshare` by its fixed place, with nothing of a tool's",
    "server/runtime/policy/secret_values.py": "a program that the operator named under [secrets] (ruling 60)",
    "server/cli/mcp_install.py": "Tamis itself as a host would start it, to see that it answers before a host is told of it",
    "server/cli/mcp_login.py": "the person's browser, with the address of a login that was judged, while they watch",
    "server/logs/workers.py": "forks of the command itself that read texts; they open no file and start nothing",
    "sandbox/lifeline.py": "a shell that ends what the daemon leaves when it is killed",
    "sandbox/backends/choice.py": "bubblewrap's own version and its behaviour, by its fixed place",
    "sandbox/backends/keeper.py": "runs below the daemon where an operator insists on no sandbox",
    "environments/compile_bytecode.py": "runs inside the sandbox, as a step of an installation",
}
_MODULES = frozenset({"subprocess", "multiprocessing", "pty", "webbrowser", "concurrent.futures.process"})
_CALLS = ("exec", "spawn", "posix_spawn", "fork", "system", "popen", "startfile")
_ASYNC = (
    "create_subprocess_exec",
    "create_subprocess_shell",
    "subprocess_exec",
    "subprocess_shell",
    "ProcessPoolExecutor",
)


_MODULES_OR_CALLS = re.compile(
    rf"\b(?:os|posix)\.(?:{'|'.join(_CALLS)})|from os import|"
    + "|".join([*(name.partition(".")[0] for name in _MODULES), *_ASYNC])
)
"""What a source that starts a process holds; reading the others takes seconds."""


def starts(source: str) -> list[str]:
    """What of a module can start a process, as it is written."""
    found: list[str] = []
    if not _MODULES_OR_CALLS.search(source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [
                name.name for name in node.names if name.name.partition(".")[0] in _MODULES or name.name in _MODULES
            ]
        elif isinstance(node, ast.ImportFrom):
            names = [name.name for name in node.names]
            if (node.module or "").partition(".")[0] in _MODULES:
                found.append(node.module or "")
            if node.module == "os":
                found += [name for name in names if name.startswith(_CALLS)]
            found += [name for name in names if name in _ASYNC]
        elif isinstance(node, ast.Attribute):
            on_os = isinstance(node.value, ast.Name) and node.value.id in ("os", "posix")
            if (on_os and node.attr.startswith(_CALLS)) or node.attr in _ASYNC:
                found.append(node.attr)
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.execv('/bin/sh', [])",
        "from os import posix_spawn",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
        "import os\nos.system('x')",
        "from concurrent.futures import ProcessPoolExecutor",
        "def late():\n    import multiprocessing",
    ],
)
def test_every_way_to_start_a_process_is_seen(source: str) -> None:
    assert starts(source)


@pytest.mark.slow
def test_only_the_sandboxs_own_modules_start_a_process() -> None:  # ruling 59, trust 1
    found = {
        str(path.relative_to(ROOT)): names
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if (names := starts(path.read_text("utf-8")))
    }
    assert set(found) <= set(MAY_START), {path: found[path] for path in set(found) - set(MAY_START)}
    assert set(MAY_START) <= set(found), "an entry whose module starts nothing any more is left out"
