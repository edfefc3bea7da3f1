"""``tamis mcp install``: a host's own file, changed as it was shown, proved by a handshake (mcp, install)."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.jsontext.parse import parse_json
from tamis.server.cli import mcp_install
from tamis.server.cli.mcp_install import HOSTS, HostError, changed, entry
from tests.cli.in_process import Ended, tamis
from tests.sample_tools import make_tool

PLACES = {
    "claude": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
}
SERVER = {"command": "/a/tamis", "args": ["mcp", "--root", "/t é\"'\\"]}


def run(home: Path, root: Path, *words: str) -> Ended:
    env = {name: value for name, value in os.environ.items() if name not in ("XDG_CONFIG_HOME", "CODEX_HOME")}
    return tamis("mcp", "install", "--root", str(root), *words, cwd=root, env={**env, "HOME": str(home)})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # a busy machine starts a server late
    monkeypatch.setattr(mcp_install.shake_hands, "__defaults__", (600.0,))
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "tamis.toml").write_text("")
    make_tool(folder, "core:echo")
    return folder


def read(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def test_the_hosts_are_those_of_the_specification() -> None:
    assert HOSTS.keys() == PLACES.keys()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the places are those of Linux")
@pytest.mark.parametrize("host", HOSTS)
def test_a_server_is_added_where_the_host_looks_and_its_command_answers(
    home: Path, root: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the hosts starts the command; with the others it is the same command, which is not started again."""
    shaken: list[list[str]] = []
    if host != "claude":
        monkeypatch.setattr(mcp_install, "shake_hands", lambda command: shaken.append(command) or ["core_echo"])
    done = run(home, root, host, "--yes")
    assert done.returncode == 0, done.stderr
    path = home / PLACES[host]
    written = read(path)[HOSTS[host].table]["tamis"]
    assert f"+++ {path} (new)" in done.stdout
    assert "answers with 1 tool on" in done.stdout
    command = [*mcp_install.own_command(), "mcp", "--root", str(root)]
    assert [written["command"], *written["args"]] == command
    if host == "claude":
        assert mcp_install.shake_hands(command) == ["core_echo"]
    else:
        assert shaken == [command]
    assert path.stat().st_mode & 0o077 == 0
    assert "nothing to change" in run(home, root, host, "--yes").stdout
    assert run(home, root, host, "--yes", "--remove").returncode == 0
    assert "tamis" not in read(path).get(HOSTS[host].table, {})


@pytest.mark.slow
def test_nobody_who_can_be_asked_means_no(home: Path, root: Path) -> None:
    done = run(home, root, "cursor")
    assert done.returncode == 1
    assert '+    "tamis": {' in done.stdout
    assert "there is no terminal to ask on; --yes writes the entry without asking" in done.stderr
    assert list(home.iterdir()) == []


def test_print_shows_the_entry_and_writes_nothing(home: Path, root: Path) -> None:
    done = run(home, root, "vscode", "--print", "--name", "mine")
    assert json.loads(done.stdout)["servers"]["mine"]["type"] == "stdio"
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"mcpServers": []}', '{"mcpServers": "x"}'])
def test_a_file_that_cannot_be_read_is_left_alone(home: Path, root: Path, text: str) -> None:
    path = home / PLACES["gemini"]
    path.parent.mkdir()
    path.write_text(text)
    done = run(home, root, "gemini", "--yes")
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert path.read_text() == text


@pytest.mark.parametrize("words", [(), ("emacs",), ("cursor", "--name", "a b"), ("cursor", "--name", "")], ids=str)
def test_wrong_usage_is_said(home: Path, root: Path, words: tuple[str, ...]) -> None:
    assert run(home, root, *words).returncode == 2
    assert list(home.iterdir()) == []


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_not_written(
    home: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tamis.server.cli.main import main

    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(mcp_install, "own_command", lambda: [sys.executable, "-c", "print('hello')"])
    assert main(["mcp", "install", "cursor", "--yes", "--root", str(root)]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert list(home.iterdir()) == []


@pytest.mark.slow
def test_a_file_that_is_a_link_stays_one(home: Path, root: Path) -> None:
    (home / "kept.json").write_text('{"a": 1}')
    (home / ".cursor").mkdir()
    (home / PLACES["cursor"]).symlink_to(home / "kept.json")
    assert run(home, root, "cursor", "--yes").returncode == 0
    assert (home / PLACES["cursor"]).is_symlink()
    assert read(home / "kept.json")["a"] == 1


COMMENTED = """// kept
{
  "theme": "x", // kept too
  "context_servers": {
    // the others
    "b": {"command": "c"},
  },
}
"""


def test_comments_and_order_stay() -> None:
    made = changed(HOSTS["zed"], COMMENTED, "tamis", SERVER)
    assert [line for line in COMMENTED.splitlines() if line in made.splitlines()] == COMMENTED.splitlines()
    assert changed(HOSTS["zed"], made, "tamis", None).count("//") == 3


CODEX = 'model = "x" # kept\n\n[mcp_servers.other]\ncommand = "o"\n\n[mcp_servers.tamis]\ncommand = "old"\n[mcp_servers.tamis.env]\nA = "1"\n\n[tui]\nb = 1\n'


def test_a_table_of_codex_is_replaced_with_all_below_it() -> None:
    made = changed(HOSTS["codex"], CODEX, "tamis", SERVER)
    assert tomllib.loads(made)["mcp_servers"] == {"other": {"command": "o"}, "tamis": SERVER}
    assert "# kept" in made
    assert tomllib.loads(changed(HOSTS["codex"], CODEX, "tamis", None))["mcp_servers"] == {"other": {"command": "o"}}


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = {tamis = {command = "x"}}', 'a = """\n[mcp_servers.tamis]\n"""\n[mcp_servers.tamis]\ncommand="x"'],
)
def test_what_cannot_be_changed_alone_is_refused(text: str) -> None:
    with pytest.raises(HostError):
        changed(HOSTS["codex"], text, "tamis", SERVER)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    before=st.dictionaries(st.text(max_size=5), VALUES, max_size=4),
    servers=st.none() | st.dictionaries(st.sampled_from(["tamis", "a", "b"]), VALUES, max_size=3),
    indent=st.sampled_from([None, 2, 4]),
)
def test_any_file_changes_in_that_one_server_alone(before: dict[str, Any], servers: Any, indent: int | None) -> None:
    host = HOSTS["claude"]
    document = before if servers is None else {**before, host.table: servers}
    text = json.dumps(document, indent=indent)
    made = changed(host, text, "tamis", SERVER)
    assert json.loads(made) == {**document, host.table: {**(servers or {}), "tamis": SERVER}}
    rest = {name: value for name, value in (servers or {}).items() if name != "tamis"}
    assert json.loads(changed(host, made, "tamis", None)) == {**document, host.table: rest}
    assert parse_json(made).ok


def test_an_entry_is_what_each_host_reads() -> None:
    assert entry(HOSTS["vscode"], ["t", "mcp"]) == {"type": "stdio", "command": "t", "args": ["mcp"]}
    assert entry(HOSTS["cursor"], ["t", "mcp"]) == {"command": "t", "args": ["mcp"]}
