"""Completion items over the wire: the forms that a client declares, and resolve (editors, ring 0; Neovim row 18)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.lsp_client import Client

TOOL: dict[str, Any] = {
    "toolId": "custom:plan",
    "displayName": "Plan",
    "description": "Plans a **trip** through several places and gives back the stages with their times.",
    "version": "1.0.0",
    "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where the trip begins."},
            "mode": {"type": "string", "enum": ["train", "car"], "default": "train", "description": "How."},
            "old": {"type": "string", "deprecated": True, "description": "No longer read."},
        },
        "required": ["city"],
    },
}
FIELDS = "<|[REQUEST_TOOL]|>\ncommand:»»»custom:plan«««\n\n<|[END_TOOL]|>\n"
VALUE = "<|[REQUEST_TOOL]|>\ncommand:»»»custom:plan«««\nmode:»»»tr«««\n<|[END_TOOL]|>\n"
RESOLVE: dict[str, Any] = {"resolveSupport": {"properties": ["documentation", "detail"]}}


def asked(
    root: Path, text: str, line: int, character: int, item: dict[str, Any], more: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The list at a place for a client with these abilities, and the first item that can be resolved, resolved."""
    (root / "plan.tool.json").write_text(json.dumps(TOOL), "utf-8")
    capabilities = {
        "general": {"positionEncodings": ["utf-32"]},
        "textDocument": {"completion": {"completionItem": item, **(more or {})}},
    }
    with Client(cwd=root) as client:
        client.start(root, capabilities)
        uri = (root / "call.md").as_uri()
        client.open(uri, text)
        where = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        found = client.call("textDocument/completion", where)
        first = next((one for one in found["items"] if "data" in one), None)
        resolved = client.call("completionItem/resolve", first) if first is not None else {}
        assert client.stop() == 0
    return found, resolved


def named(found: dict[str, Any], label: str) -> dict[str, Any]:
    return next(item for item in found["items"] if item["label"] == label)


def test_a_client_without_snippets_never_gets_a_tab_stop(tmp_path: Path) -> None:
    found, _ = asked(tmp_path, FIELDS, 2, 0, {})
    assert found["items"]
    assert all(
        item.get("insertTextFormat", 1) == 1 and "$" not in item["textEdit"]["newText"] for item in found["items"]
    )
    assert named(found, "city")["textEdit"]["newText"] == "city:»»»«««"


def test_documentation_comes_at_once_where_nothing_is_resolved(tmp_path: Path) -> None:
    found, resolved = asked(tmp_path, FIELDS, 2, 0, {"documentationFormat": ["markdown"]})
    assert named(found, "city")["documentation"] == {"kind": "markdown", "value": "Where the trip begins."}
    assert resolved == {}


def test_documentation_comes_on_resolve_where_the_client_asks_for_it(tmp_path: Path) -> None:
    found, resolved = asked(tmp_path, FIELDS, 2, 0, {**RESOLVE, "documentationFormat": ["markdown"]})
    assert all("documentation" not in item for item in found["items"])
    assert all(len(json.dumps(item["data"])) < 20 for item in found["items"] if "data" in item)
    assert resolved["documentation"]["value"] == "Where the trip begins."
    assert resolved["label"] == "city"


def test_plain_text_for_a_client_that_shows_no_markdown(tmp_path: Path) -> None:
    found, _ = asked(tmp_path, FIELDS, 2, 0, {"documentationFormat": ["plaintext"]})
    said = named(found, "mode")["documentation"]
    assert said["kind"] == "plaintext"
    assert "`" not in said["value"]


def test_an_item_of_a_list_that_is_gone_comes_back_as_it_is(tmp_path: Path) -> None:
    with Client(cwd=tmp_path) as client:
        client.start(tmp_path, {"textDocument": {"completion": {"completionItem": RESOLVE}}})
        for data in ([99, 0], "x", None, [1], ["a", "b"], {"a": 1}):
            item = {"label": "x", "data": data}
            assert client.call("completionItem/resolve", item) == item
        assert client.stop() == 0


def test_insert_and_replace_where_the_client_knows_both(tmp_path: Path) -> None:
    found, _ = asked(tmp_path, VALUE, 2, 9, {"insertReplaceSupport": True})
    edit = named(found, "car")["textEdit"]
    assert edit["insert"]["end"]["character"] == 9
    assert edit["replace"]["end"]["character"] == 10
    assert edit["newText"] == "car"


def test_the_default_is_chosen_first_and_once(tmp_path: Path) -> None:
    found, _ = asked(tmp_path, VALUE, 2, 8, {"preselectSupport": True})
    assert [item["label"] for item in found["items"] if item.get("preselect")] == ["train"]


@pytest.mark.parametrize(
    ("ability", "shown"),
    [({"tagSupport": {"valueSet": [1]}}, {"tags": [1]}), ({"deprecatedSupport": True}, {"deprecated": True}), ({}, {})],
)
def test_what_is_deprecated_is_marked_as_the_client_can_show_it(
    tmp_path: Path, ability: dict[str, Any], shown: dict[str, Any]
) -> None:
    found, _ = asked(tmp_path, FIELDS, 2, 0, ability)
    old = named(found, "old")
    assert {name: old[name] for name in ("tags", "deprecated") if name in old} == shown


def test_the_range_is_said_once_for_the_whole_list(tmp_path: Path) -> None:
    defaults = {"completionList": {"itemDefaults": ["editRange", "insertTextFormat"]}}
    found, _ = asked(tmp_path, FIELDS, 2, 0, {"snippetSupport": True}, defaults)
    assert found["itemDefaults"]["editRange"]["start"] == {"line": 2, "character": 0}
    assert found["itemDefaults"]["insertTextFormat"] == 2
    assert all("textEdit" not in item for item in found["items"])
    assert named(found, "city")["textEditText"] == "city:»»»$1«««"


def test_a_tool_shows_its_name_beside_its_id(tmp_path: Path) -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»«««\n<|[END_TOOL]|>\n"
    found, _ = asked(tmp_path, text, 1, 11, {"labelDetailsSupport": True})
    assert named(found, "custom:plan")["labelDetails"] == {"description": "Plan"}


def test_kinds_that_a_client_does_not_list_are_left_out(tmp_path: Path) -> None:
    found, _ = asked(tmp_path, FIELDS, 2, 0, {}, {"completionItemKind": {"valueSet": [1]}})
    assert all("kind" not in item for item in found["items"])
