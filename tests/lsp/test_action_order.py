"""The order of code actions, which clients show as it comes: what mends is first, what silences last."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.lsp.lsp_client import Client

IGNORE = "quickfix.tamis.ignore"
ABLE = {
    "workspace": {"workspaceEdit": {"documentChanges": True, "resourceOperations": ["create"]}},
    "textDocument": {
        "codeAction": {"isPreferredSupport": True, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}
    },
}
MANIFEST = """{
  "toolId": "t:a",
  "displayName": "A tool",
  "description": "Gives back the text that it is given, so that a call can be tried out.",
  "version": "1.0.0",
  "handler": { "type": "external-script", "scriptPath": "gone.py", "language": "python" },
  "parameters": { "type": "object", "properties": { "n": { "type": "number", "minLength": 1 } } },
  "examples": [{ "input": {} }]
}
"""


def actions(root: Path, line: int) -> list[dict[str, Any]]:
    with Client() as client:
        client.start(root, ABLE)
        uri = (root / "a.tool.json").as_uri()
        client.open(uri, MANIFEST, "json")
        where = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 200}}
        return client.call(
            "textDocument/codeAction",
            {"textDocument": {"uri": uri}, "range": where, "context": {"diagnostics": []}},
        )


def rank(action: dict[str, Any]) -> int:
    if action["kind"] == IGNORE:
        return 3
    if action["kind"] != "quickfix":
        return 2
    return 0 if action.get("isPreferred") else 1


def test_preferred_fixes_come_first_and_ignoring_last(tmp_path: Path) -> None:
    for line, title in ((5, "Create the script 'gone.py'"), (6, "Add a description")):
        found = actions(tmp_path, line)
        assert found[0]["title"] == title
        assert all(rank(one) <= rank(two) for one, two in pairwise(found))
        assert found[-1]["kind"] == IGNORE
