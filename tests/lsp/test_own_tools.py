"""Tools that no file defines, in an editor: calls of Tamis's own tools are checked, and further handler types are known where the operator named them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.lsp.lsp_client import Client

CALLS = """
<ACTION><ReadWorldStateTool><path>a.b</path><default_valu>x</default_valu></ReadWorldStateTool></ACTION>

<|[REQUEST_TOOL]|>
command:»»»File.ApplyEdit«««
file_path:»»»fam://notes/a.txt«««
search_string:»»»a«««
replace_string:»»»b«««
<|[END_TOOL]|>
"""


def manifest(**handler: Any) -> str:
    fields = {
        "toolId": "shop:orders",
        "displayName": "Orders",
        "description": "Lists the orders of one customer, the newest first, for a person who asks.",
        "version": "1.0.0",
        "handler": handler,
    }
    return json.dumps(fields, indent=2)


def test_calls_of_own_tools_are_checked_like_others(tmp_path: Path) -> None:  # D36, seed 000 §4.2, seed 002 §5.1
    uri = (tmp_path / "a.md").as_uri()
    with Client() as client:
        client.start(tmp_path)
        client.open(uri, CALLS)
        found = client.published(uri, 1)
        assert [item["code"] for item in found if item["severity"] == 1] == ["VA403"]
        assert "did you mean 'default_value'" in found[0]["message"]


def test_a_handler_type_is_known_where_the_settings_name_it(tmp_path: Path) -> None:  # D33
    (tmp_path / "tamis.toml").write_text('handlers = ["sqlite"]\n')
    known, unknown = (tmp_path / "a.tool.json").as_uri(), (tmp_path / "b.tool.json").as_uri()
    with Client() as client:
        client.start(tmp_path)
        client.open(known, manifest(type="sqlite", query="select 1"))
        assert [item for item in client.published(known, 1) if item["severity"] <= 2] == []
        client.open(unknown, manifest(type="mysql", query="select 1"))
        assert [item["code"] for item in client.published(unknown, 1) if item["severity"] <= 2] == ["MF503"]
