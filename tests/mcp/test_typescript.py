"""The official TypeScript SDK as a client, 1.x and 2.x, on stdio and over HTTP (mcp, Referees; issue of MCP, Shows)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `http` is not installed")

from tests.mcp.http_client import TOKEN, HttpServer
from tests.mcp.kept_packages import project as node_project
from tests.node_runtime import NODE

HERE = Path(__file__).parent / "typescript"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return node_project(HERE, tmp_path_factory.mktemp("typescript") / "project")


def session(project: Path, line: str, where: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [NODE, "session.mjs", line, json.dumps(where)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("line", ["v1", "v2"])
def test_its_client_lists_calls_asks_and_reads(project: Path, root: Path, line: str, over: str) -> None:
    if over == "stdio":
        arguments = ["-m", "tamis.server.cli.main", "mcp", "--root", str(root)]
        seen = session(project, line, {"command": sys.executable, "args": arguments})
    else:
        with HttpServer(root) as server:
            seen = session(project, line, {"url": f"http://127.0.0.1:{server.port}/mcp", "token": TOKEN})
    if line == "v2":
        assert seen["version"] == "2026-07-28"
    assert seen["tools"] == ["core_asks", "core_echo", "core_fails", "core_slow"]
    assert seen["echoed"] == {"text": "x"}
    assert seen["wrong"][0] is True
    assert "did you mean 'text'?" in seen["wrong"][1]
    # interop §2.1: this client drops progress that comes in one piece with the answer
    assert seen["told"][:2] == [1, 2]
    assert seen["approved"] == {"text": "y"}
    assert len(seen["asked"]) == 1
    assert "core:asks" in seen["asked"][0]
    assert seen["unknown"] == -32602
    assert seen["prompts"] == ["tools-action", "tools-tam", "tools-vcp"]
    assert seen["read"] == "core:asks"
