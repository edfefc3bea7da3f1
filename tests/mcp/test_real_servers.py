"""MCP servers of npm and PyPI, imported and called in the sandbox as docs/mcp.md says it (mcp, Referees): with ``--long``, from the indexes that this machine is configured for."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tamis.environments.configured_indexes import npm_settings, pip_settings


class Case(NamedTuple):
    """A server, as a user writes it down, and what its calls give. ``{data}`` is the folder that it is shown."""

    package: str
    """With an ``@`` a package of npm, else one of PyPI with what it needs beside it."""
    settings: str
    works: tuple[str, dict[str, Any], str]
    """A tool, its arguments, and words of what it gives."""
    fails: tuple[str, dict[str, Any], str]
    """The same of a call that fails: words of what the model reads."""
    apart: tuple[str, dict[str, Any], str]
    """The same of a call that would leave the sandbox, or tell of what is outside."""


SHOWN = 'allowRead = ["{data}"]'
WRITES = 'allowWrite = ["{data}"]'
CASES = {
    "everything": Case(
        "@modelcontextprotocol/server-everything",
        "",
        ("get-sum", {"a": 2, "b": 3}, "The sum of 2 and 3 is 5."),
        ("get-sum", {"a": "x", "b": 3}, "must be a number"),
        ("get-env", {}, '"PWD": "/tool"'),
    ),
    "filesystem": Case(
        "@modelcontextprotocol/server-filesystem",
        f'args = ["{{data}}"]\n{SHOWN}',
        ("read_text_file", {"path": "{data}/a.txt"}, "hello"),
        ("read_text_file", {"path": "{data}/none.txt"}, "ENOENT"),
        ("write_file", {"path": "{data}/b.txt", "content": "x"}, "read-only"),
    ),
    "memory": Case(
        "@modelcontextprotocol/server-memory",
        f'env = {{ MEMORY_FILE_PATH = "{{data}}/memory.json" }}\n{WRITES}',
        ("create_entities", {"entities": [{"name": "Ann", "entityType": "t", "observations": ["o"]}]}, "Ann"),
        ("add_observations", {"observations": [{"entityName": "Bob", "contents": ["o"]}]}, "not found"),
        ("read_graph", {}, "entities"),
    ),
    "time": Case(
        "mcp-server-time",
        "",
        ("get_current_time", {"timezone": "Asia/Tokyo"}, "+09:00"),
        ("get_current_time", {"timezone": "Nowhere/X"}, "Invalid timezone"),
        ("get_current_time", {"timezone": "../../../etc/passwd"}, "Invalid timezone"),
    ),
    "git": Case(
        "mcp-server-git",
        f'{SHOWN}\nenv = {{ GIT_CONFIG_COUNT = "1", GIT_CONFIG_KEY_0 = "safe.directory", GIT_CONFIG_VALUE_0 = "{{data}}" }}',
        ("git_log", {"repo_path": "{data}"}, "Message: first"),
        ("git_log", {"repo_path": "/nowhere"}, "failed"),
        ("git_create_branch", {"repo_path": "{data}", "branch_name": "x"}, "failed"),
    ),
    "sqlite": Case(
        "mcp-server-sqlite\nmcp<2",
        f'args = ["--db-path", "{{data}}/a.db"]\n{WRITES}',
        ("create_table", {"query": "CREATE TABLE t(a)"}, "created"),
        ("create_table", {"query": "SELECT 1"}, "Only CREATE TABLE"),
        ("write_query", {"query": "ATTACH '/etc/x.db' AS x"}, "unable to open database"),
    ),
}


def addresses() -> list[str]:
    """The ranges of the configured indexes: their addresses may be no public ones."""
    urls = [npm_settings().registry[0], pip_settings().default[0]]
    ranges: list[str] = []
    for url in urls:
        parts = urlsplit(url)
        try:
            with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=5) as connection:
                address = str(connection.getpeername()[0])
        except OSError as error:
            pytest.skip(f"an index that this machine is configured for is not reached: {error}")
        ranges.append(f"{address}/{128 if ':' in address else 32}")
    return ranges


def tamis(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tamis.server.cli.main", *words, "--trust"],
        cwd=root,
        env=os.environ | {"XDG_CONFIG_HOME": str(root / "none")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def write_folder(root: Path, name: str, case: Case) -> Path:
    """The folder as a user writes it; gives the one that the server is shown."""
    data, folder = root / "data", root / "server"
    data.mkdir()
    folder.mkdir()
    (data / "a.txt").write_text("hello\n")
    if name == "git":
        words = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "first")
        subprocess.run(["git", "init", "--quiet", data], check=True)
        subprocess.run(["git", "-C", data, *words], check=True)
    if case.package.startswith("@"):
        start = 'language = "nodejs"\nscript = "server.js"'
        declared = {"name": "s", "private": True, "type": "module", "dependencies": {case.package: "*"}}
        (folder / "package.json").write_text(json.dumps(declared))
        (folder / "server.js").write_text(f'import "{case.package}/dist/index.js"\n')
    else:
        start = 'script = "server.py"'
        module = case.package.split()[0].replace("-", "_")
        (folder / "requirements.txt").write_text(case.package + "\n")
        (folder / "server.py").write_text(f"from {module} import main\nmain()\n")
    opened = json.dumps(addresses())
    (root / "tamis.toml").write_text(
        f'[mcpServers.{name}]\nfolder = "server"\nstartMs = 600000\n{start}\n{case.settings.replace("{data}", str(data))}\n'
        f'[policy]\nallowCidrs = {opened}\nreadRoots = ["{data}"]\nwriteRoots = ["{data}"]\n'
    )
    return data


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_real_server_is_imported_checked_and_called(tmp_path: Path, name: str, is_long: bool) -> None:
    """mcp, Referees: clean manifests, a call that works, one that fails in words, one that does not get out."""
    if not is_long:
        pytest.skip("it installs a server of npm or PyPI, up to 60 MB: --long runs it")
    case = CASES[name]
    data = write_folder(tmp_path, name, case)
    imported = tamis(tmp_path, "import", "mcp", "--server", name, "--out", "tools")
    assert imported.returncode == 0, imported.stderr
    checked = tamis(tmp_path, "check", "tools")
    assert " 0 errors, 0 warnings" in checked.stderr, checked.stdout
    for tool, args, words in (case.works, case.fails, case.apart):
        text = json.dumps(args).replace("{data}", str(data))
        called = tamis(tmp_path, "call", f"custom:{tool}", "--args", text, "--yes")
        assert words in called.stdout + called.stderr, (tool, called.stdout, called.stderr)
    assert sorted(path.name for path in data.glob("*.txt")) == ["a.txt"]
