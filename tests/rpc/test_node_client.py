"""A host in another language: Node with vscode-jsonrpc, which knows nothing of Tamis, drives ``tamis rpc``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.mcp.kept_packages import project as node_project
from tests.node_runtime import NODE
from tests.sample_tools import make_tool


def test_vscode_jsonrpc_drives_the_daemon(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    make_tool(tools, "test:echo")
    make_tool(tools, "test:hang", "import time\ntime.sleep(86400)")
    project = node_project(Path(__file__).parent / "node", tmp_path / "node")
    done = subprocess.run(
        [NODE, "drive.js", sys.executable, str(tools)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["initialize"]["capabilities"]["positionEncoding"] == "utf-16"
    assert report["initialize"]["capabilities"]["experimental"]["tamis"]["rpc"] == 1
    assert [tool["toolId"] for tool in report["list"]["tools"]] == ["test:echo", "test:hang"]
    assert report["parse"]["calls"][0]["toolIdRange"]["start"]["character"] == 12
    assert report["execute"]["output"] == {"text": "你好 😀"}
    assert [result["status"] for result in report["text"]["results"]] == ["success"]
    assert report["cancelled"]["status"] == "cancelled"
    assert report["unknown"]["code"] == -32601
    assert report["exitCode"] == 0
