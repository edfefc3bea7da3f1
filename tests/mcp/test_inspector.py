"""The official Inspector's command line against the server, on stdio and over HTTP (mcp, Referees); ``--long`` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `http` is not installed")

from tests.mcp.http_client import TOKEN, HttpServer
from tests.node_runtime import NODE, npm

HERE = Path(__file__).parent / "inspector"


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    if not pytestconfig.getoption("--long"):
        pytest.skip("npm brings 110 MB for it: --long runs it")
    folder = tmp_path_factory.mktemp("inspector")
    for name in ("package.json", "package-lock.json", ".npmrc"):
        (folder / name).write_bytes((HERE / name).read_bytes())
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    return folder / "node_modules" / ".bin" / "mcp-inspector"


def ask(inspector: Path, where: list[str], *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [NODE, str(inspector), "--cli", *where, *words],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=os.environ | {"PATH": f"{Path(NODE).parent}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def shows(inspector: Path, where: list[str]) -> None:
    tools = ask(inspector, where, "--method", "tools/list")["tools"]
    assert "core_echo" in [tool["name"] for tool in tools]
    called = ask(inspector, where, "--method", "tools/call", "--tool-name", "core_echo", "--tool-arg", "text=x")
    assert called["isError"] is False
    assert called["structuredContent"] == {"text": "x"}


@pytest.mark.slow
def test_it_lists_and_calls_on_stdio(inspector: Path, root: Path) -> None:
    shows(inspector, [sys.executable, "-m", "tamis.server.cli.main", "mcp", "--root", str(root)])


@pytest.mark.slow
def test_it_lists_and_calls_over_http(inspector: Path, root: Path) -> None:
    with HttpServer(root) as server:
        token = f"Authorization: Bearer {TOKEN}"
        shows(inspector, [f"http://127.0.0.1:{server.port}/mcp", "--transport", "http", "--header", token])
