"""Files of the workflow folders in an editor: judged as the registry judges them, others left alone (W02, D92)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lsp.lsp_client import Client

NODES = '{"nodes": [{"id": "a"}]}'


def codes(client: Client, path: Path, text: str) -> list[str]:
    path.write_text(text, "utf-8")
    client.open(path.as_uri(), text, "json")
    return [item["code"] for item in client.published(path.as_uri())]


def test_nodes_alone_make_a_workflow_in_a_workflow_folder(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "tamis.toml").write_text('workflows = ["flows"]\n')
    with Client() as client:
        client.start(tmp_path)
        assert "WF902" in codes(client, tmp_path / "flows" / "a.json", NODES)
        assert "MF521" in codes(client, tmp_path / "flows" / "b.json", '{"nodes": [')
        assert codes(client, tmp_path / "c.json", NODES) == []


def test_the_server_of_an_mcp_handler_is_looked_up_in_the_settings(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text('[mcpServers.time]\nscript = "time.py"\n')
    (tmp_path / "time.py").write_text("")
    manifest = {"toolId": "core:now", "displayName": "Now", "description": "Says what time it is.", "version": "1.0.0"}
    with Client() as client:
        client.start(tmp_path)
        for name, expected in (("time", False), ("tim", True)):
            text = json.dumps(manifest | {"handler": {"type": "mcp", "server": name, "tool": "now"}})
            assert ("MF547" in codes(client, tmp_path / f"{name}.tool.json", text)) is expected
