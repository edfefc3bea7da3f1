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
from tests.mcp.kept_packages import node_modules
from tests.node_runtime import NODE

HERE = Path(__file__).parent / "inspector"


@pytest.fixture(scope="module")
def inspector(pytestconfig: pytest.Config) -> Path:
    if not pytestconfig.getoption("--long"):
        pytest.skip("npm brings 110 MB for it: --long runs it")
    return node_modules(HERE) / ".bin" / "mcp-inspector"


def ask(inspector: Path, where: list[str], *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [NODE, str(inspector), "--cli", *where, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": f"{Path(NODE).parent}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def shown_root(root: Path) -> Path:
    """The folder with a place that is shown."""
    (root / "tamis.toml").write_text('[resources]\nnotes = "notes"\n')
    (root / "notes").mkdir()
    (root / "notes" / "a b.md").write_text("# A\n")
    return root


def shows(inspector: Path, where: list[str]) -> None:
    tools = ask(inspector, where, "--method", "tools/list")["tools"]
    assert "core_echo" in [tool["name"] for tool in tools]
    called = ask(inspector, where, "--method", "tools/call", "--tool-name", "core_echo", "--tool-arg", "text=x")
    assert called["isError"] is False
    assert called["structuredContent"] == {"text": "x"}
    listed = {one["uri"]: one for one in ask(inspector, where, "--method", "resources/list")["resources"]}
    assert listed["fam://notes/a%20b.md"]["mimeType"] == "text/markdown"
    for uri, text in (("fam://notes/a%20b.md", "# A"), ("tamis:tool/core_echo", '"core:echo"')):
        (held,) = ask(inspector, where, "--method", "resources/read", "--uri", uri)["contents"]
        assert text in held["text"]
    templates = ask(inspector, where, "--method", "resources/templates/list")["resourceTemplates"]
    assert "fam://{place}/{+path}" in [one["uriTemplate"] for one in templates]
    prompts = ask(inspector, where, "--method", "prompts/list")["prompts"]
    assert [one["name"] for one in prompts] == ["tools-action", "tools-tam", "tools-vcp"]
    words = (
        "--method",
        "prompts/get",
        "--prompt-name",
        "tools-tam",
        "--prompt-args",
        "style=compact",
        "tools=core_echo",
    )
    told = ask(inspector, where, *words)["messages"][0]["content"]["text"]
    assert "core:echo" in told
    assert "core:slow" not in told


@pytest.mark.slow
def test_it_lists_calls_and_reads_on_stdio(inspector: Path, shown_root: Path) -> None:
    shows(inspector, [sys.executable, "-m", "tamis.server.cli.main", "mcp", "--root", str(shown_root)])


@pytest.mark.slow
def test_it_lists_calls_and_reads_over_http(inspector: Path, shown_root: Path) -> None:
    with HttpServer(shown_root) as server:
        token = f"Authorization: Bearer {TOKEN}"
        shows(inspector, [f"http://127.0.0.1:{server.port}/mcp", "--transport", "http", "--header", token])
