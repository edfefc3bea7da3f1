"""The verbs that show, as clients with more and with fewer capabilities get them over the wire (D93, editors ring 0)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.lsp_client import Client, edit

MANIFEST = """{
  "toolId": "core:echo",
  "displayName": "Echo",
  "description": "Gives back the text that it is given, so that a call can be tried out.",
  "version": "1.2.0",
  "handler": { "type": "external-script", "scriptPath": "echo.py", "language": "python" },
  "parameters": {
    "type": "object",
    "properties": {
      "text": { "type": "string", "description": "What **comes** back." },
      "times": { "type": "integer", "default": 1 }
    }
  }
}
"""
TEXT = """<|[REQUEST_TOOL]|>
command:»»»core:echo«««
# 😋
text:»»»😋 one
two«««
<|[END_TOOL]|>

<ACTION>
  <core:echo>
    <text>a</text>
  </core:echo>
</ACTION>
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "echo.tool.json").write_text(MANIFEST)
    (tmp_path / "echo.py").write_text("print('{}')")
    return tmp_path


@pytest.fixture
def bare(root: Path) -> Iterator[tuple[Client, dict[str, Any], str]]:
    """A client that declares nothing, with the text open."""
    with Client(cwd=root) as client:
        found = client.start(root)["capabilities"]
        uri = (root / "a.md").as_uri()
        client.open(uri, TEXT)
        yield client, found, uri


def test_a_client_that_declares_nothing_gets_what_every_client_understands(
    bare: tuple[Client, dict[str, Any], str],
) -> None:
    client, found, uri = bare
    document = {"textDocument": {"uri": uri}}
    assert "semanticTokensProvider" not in found, "without a legend of the client there is none"
    assert found["documentRangeFormattingProvider"] is True
    assert found["inlayHintProvider"] == {"resolveProvider": False}
    folds = client.call("textDocument/foldingRange", document)
    assert folds[0] == {"startLine": 0, "startCharacter": 18, "endLine": 5, "endCharacter": 0}
    hover = client.call("textDocument/hover", {**document, "position": {"line": 3, "character": 2}})
    assert hover["contents"]["kind"] == "plaintext"
    assert (
        hover["contents"]["value"]
        == "text (string) of core:echo\n\nWhat comes back.\n\nThe tool gets this text:\n\n    😋 one\n    two"
    )
    signature = client.call("textDocument/signatureHelp", {**document, "position": {"line": 3, "character": 9}})
    (only,) = signature["signatures"]
    assert only["label"] == "core:echo(text?: string, times?: integer = 1)"
    assert [one["label"] for one in only["parameters"]] == ["text?: string", "times?: integer = 1"]
    assert only["parameters"][0]["documentation"] == {"kind": "plaintext", "value": "What comes back."}
    assert "activeParameter" not in only and signature["activeParameter"] == 0
    nowhere = client.call("textDocument/signatureHelp", {**document, "position": {"line": 6, "character": 0}})
    assert nowhere is None


def test_a_document_that_is_not_open_or_not_ours_is_answered_with_nothing(
    bare: tuple[Client, dict[str, Any], str], root: Path
) -> None:
    client, _, _ = bare
    other = (root / "b.json").as_uri()
    client.open(other, "[]", "json")
    place = {"line": 0, "character": 0}
    span = {"start": place, "end": place}
    options = {"tabSize": 2, "insertSpaces": True}
    asked: dict[str, dict[str, Any]] = {
        "textDocument/hover": {"position": place},
        "textDocument/signatureHelp": {"position": place},
        "textDocument/foldingRange": {},
        "textDocument/selectionRange": {"positions": [place]},
        "textDocument/inlayHint": {"range": span},
        "textDocument/formatting": {"options": options},
        "textDocument/rangeFormatting": {"options": options, "range": span},
        "textDocument/onTypeFormatting": {"options": options, "position": place, "ch": ">"},
    }
    for method, params in asked.items():
        for uri in (other, (root / "gone.md").as_uri()):
            assert client.call(method, {"textDocument": {"uri": uri}, **params}) is None, method


def test_an_editor_with_everything_gets_tokens_by_its_legend_and_only_what_changed(root: Path) -> None:
    capabilities = {
        "general": {"positionEncodings": ["utf-16"]},
        "textDocument": {
            "semanticTokens": {
                "requests": {"full": {"delta": True}, "range": True},
                "tokenTypes": ["keyword", "function", "string", "own"],
                "tokenModifiers": ["readonly"],
                "formats": ["relative"],
            },
            "foldingRange": {"lineFoldingOnly": True, "rangeLimit": 2},
            "hover": {"contentFormat": ["plaintext", "markdown"]},
            "inlayHint": {},
        },
    }
    with Client(cwd=root) as client:
        found = client.start(root, capabilities)["capabilities"]
        provider = found["semanticTokensProvider"]
        assert provider["legend"] == {"tokenTypes": ["keyword", "function", "string"], "tokenModifiers": ["readonly"]}
        uri = (root / "a.md").as_uri()
        client.open(uri, TEXT)
        document = {"textDocument": {"uri": uri}}
        full = client.call("textDocument/semanticTokens/full", document)
        rows = [full["data"][at : at + 5] for at in range(0, len(full["data"]), 5)]
        assert rows[0] == [0, 0, 18, 0, 0]
        assert rows[2] == [0, 11, 9, 1, 1], "the tool, known and without any right to write"
        assert [2, 8, 6, 2, 0] in rows and [1, 0, 3, 2, 0] in rows, "a value over two lines is two tokens"
        client.change(uri, edit((9, 10), (9, 11), "bcd"))
        change = client.call(
            "textDocument/semanticTokens/full/delta", {**document, "previousResultId": full["resultId"]}
        )
        assert len(change["edits"]) == 1
        (only,) = change["edits"]
        assert only["deleteCount"] <= 5 and len(only["data"]) <= 5
        again = client.call("textDocument/semanticTokens/full", document)["data"]
        made = list(full["data"])
        made[only["start"] : only["start"] + only["deleteCount"]] = only["data"]
        assert made == again
        stale = client.call("textDocument/semanticTokens/full/delta", {**document, "previousResultId": "?"})
        assert stale["data"] == again, "an unknown result is answered in full"
        folds = client.call("textDocument/foldingRange", document)
        assert folds == [{"startLine": 0, "endLine": 4}, {"startLine": 7, "endLine": 10}]
        hover = client.call("textDocument/hover", {**document, "position": {"line": 8, "character": 6}})
        assert hover["contents"]["kind"] == "plaintext", "the client's first choice"
        assert "**" not in hover["contents"]["value"].split("What a model reads")[0]
        manifest = (root / "echo.tool.json").as_uri()
        client.open(manifest, MANIFEST, "json")
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 20, "character": 0}}
        (hint,) = client.call("textDocument/inlayHint", {"textDocument": {"uri": manifest}, "range": whole})
        assert "Tokens of what a model reads" in hint["tooltip"]["value"], "no resolve, so the tooltip comes at once"
        assert client.stop() == 0


def test_switching_hints_off_takes_effect_without_a_restart(root: Path) -> None:
    with Client(cwd=root) as client:
        client.start(root, {}, {"settings": {"inlayHints": {"tokens": False}}})
        uri = (root / "a.md").as_uri()
        client.open(uri, TEXT)
        manifest = (root / "echo.tool.json").as_uri()
        client.open(manifest, MANIFEST, "json")
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 20, "character": 0}}

        def hints(uri: str) -> list[str]:
            found = client.call("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole})
            return ["".join(part["value"] for part in hint["label"]) for hint in found]

        assert hints(manifest) == ["at most 30000 ms"]
        assert hints(uri) == ["times: 1", "times: 1"]
        client.notify(
            "workspace/didChangeConfiguration",
            {
                "settings": {
                    "tamis": {"inlayHints.tokens": True, "inlayHints.parameters": False, "prompt.protocol": "tam"}
                }
            },
        )
        assert hints(uri) == []
        (shown,) = hints(manifest)
        assert "(TAM)" in shown
        assert client.stop() == 0


def test_an_edit_of_a_manifest_lets_the_client_ask_again_for_what_depends_on_it(root: Path) -> None:
    """Tokens and hints of other documents say something else once a tool is another one."""
    capabilities = {
        "workspace": {"semanticTokens": {"refreshSupport": True}, "inlayHint": {"refreshSupport": True}},
        "textDocument": {"semanticTokens": {"tokenTypes": ["function"], "tokenModifiers": ["defaultLibrary"]}},
    }
    with Client(cwd=root) as client:
        client.start(root, capabilities)
        uri, manifest = (root / "a.md").as_uri(), (root / "echo.tool.json").as_uri()
        client.open(uri, TEXT)
        client.open(manifest, MANIFEST, "json")
        document = {"textDocument": {"uri": uri}}
        before = client.call("textDocument/semanticTokens/full", document)["data"]
        assert before[4] == 1, "the tool is known"
        del client.messages[:]
        client.change(manifest, edit((1, 13), (1, 22), "core:other"))
        wanted = {"workspace/semanticTokens/refresh", "workspace/inlayHint/refresh"}
        while wanted:
            wanted.discard(str(client.next().get("method")))
        assert client.call("textDocument/semanticTokens/full", document)["data"][4] == 0
        assert client.stop() == 0
