"""Real hosts without an account, each told of the server by `tamis mcp install` (mcp, Referees; issue of MCP, Shows); ``--long`` runs them."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.node_runtime import NODE, npm

PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169.0",
    "gemini": "@google/gemini-cli@0.61.0",
}
FASTMCP = "fastmcp==4.1.2"
PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code/cli-wrapper.cjs",
    "codex": "@openai/codex/bin/codex.js",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
}
ONLY_LONG = "it installs the host, up to 400 MB: --long runs it"


@pytest.fixture(autouse=True)
def only_long(is_long: bool) -> None:
    if not is_long:
        pytest.skip(ONLY_LONG)


def environment(home: Path) -> dict[str, str]:
    """A user without settings, who trusts the folder."""
    kept = {name: value for name, value in os.environ.items() if name not in ("XDG_CONFIG_HOME", "CODEX_HOME")}
    places = {"HOME": str(home), "PATH": f"{Path(NODE).parent}:{os.environ['PATH']}"}
    return kept | places | {"GEMINI_CLI_TRUST_WORKSPACE": "true", "DISABLE_AUTOUPDATER": "1"}


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path, root: Path) -> tuple[list[str], dict[str, str]]:
    """The command of a host that was told of the server, and what it is run with."""
    host: str = request.param
    folder, home = tmp_path / "host", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "package.json").write_text('{"private": true}')
    try:
        npm("install", "--ignore-scripts", "--no-audit", "--no-fund", PACKAGES[host], cwd=folder)
    except AssertionError as error:
        pytest.skip(f"{PACKAGES[host]} cannot be had here: {str(error)[-300:]}")
    env = environment(home)
    words = [sys.executable, "-m", "tamis.server.cli.main", "mcp", "install", host, "--root", str(root), "--yes"]
    subprocess.run(words, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return [NODE, str(folder / "node_modules" / PROGRAMS[host])], env


def said(program: tuple[list[str], dict[str, str]], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command, env = program
    done = subprocess.run(
        [*command, *words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize("program", ["claude-code"], indirect=True)
def test_claude_code_connects(program: tuple[list[str], dict[str, str]], root: Path) -> None:
    listed = said(program, "mcp", "list", cwd=root).stdout
    assert any(line.startswith("tamis:") and "Connected" in line for line in listed.splitlines()), listed
    shown = said(program, "mcp", "get", "tamis", cwd=root).stdout
    assert "Connected" in shown
    assert str(root) in shown


@pytest.mark.slow
@pytest.mark.parametrize("program", ["gemini"], indirect=True)
def test_gemini_cli_connects(program: tuple[list[str], dict[str, str]], root: Path) -> None:
    done = said(program, "mcp", "list", cwd=root)
    listed = done.stdout + done.stderr
    assert any("tamis:" in line and line.rstrip().endswith("Connected") for line in listed.splitlines()), listed


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="there is no Codex for this machine")
@pytest.mark.parametrize("program", ["codex"], indirect=True)
def test_the_app_server_of_codex_lists_the_tools(program: tuple[list[str], dict[str, str]], root: Path) -> None:
    command, env = program
    with subprocess.Popen(
        [*command, "app-server"],
        cwd=root,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            ask(process, 1, "initialize", {"clientInfo": {"name": "test", "title": "test", "version": "1"}})
            servers = ask(process, 2, "mcpServerStatus/list", {})["data"]
        finally:
            process.kill()
    (server,) = [server for server in servers if server["name"] == "tamis"]
    assert server["serverInfo"]["name"] == "tamis"
    assert server["tools"].keys() == {"core_asks", "core_echo", "core_fails", "core_slow"}
    # interop §2.2: Codex passes `_meta` through
    assert server["tools"]["core_echo"]["_meta"]["dev.tamis/toolId"] == "core:echo"


def ask(process: subprocess.Popen[str], identity: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        message = json.loads(line)
        if message.get("id") == identity:
            return message["result"]
    raise AssertionError("the app-server has ended")


@pytest.mark.slow
def test_the_command_line_of_fastmcp_lists_and_calls(tmp_path: Path, root: Path) -> None:
    venv.create(tmp_path / "v", with_pip=True)
    python = tmp_path / "v" / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "install", "-q", FASTMCP], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{FASTMCP} cannot be had here: {done.stderr[-300:]}")
    server = shlex.join([sys.executable, "-m", "tamis.server.cli.main", "mcp", "--root", str(root)])
    fastmcp = ([str(python), "-m", "fastmcp.cli"], environment(tmp_path))
    listed = json.loads(said(fastmcp, "list", "--command", server, "--json", cwd=tmp_path).stdout)
    assert "core_echo" in json.dumps(listed)
    words = ("--target", "core_echo", "--input-json", '{"text": "x"}', "--json")
    called = json.loads(said(fastmcp, "call", "--command", server, *words, cwd=tmp_path).stdout)
    assert called["structured_content"] == {"text": "x"}
