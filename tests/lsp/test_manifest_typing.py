"""What an author of a manifest meets while typing: keys where a comma is missing, fixes in half-typed text, plain clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Edit
from tamis.server.analysis.actions.fixes import faults, quick_fixes
from tamis.server.analysis.completion.proposals import complete
from tamis.server.analysis.navigation.proof import apply
from tests.lsp.lsp_client import Client
from tests.lsp.marker_core import core_of
from tests.lsp.markers import Case


def _case(text: str) -> tuple[Case, int]:
    offset = text.index("¦") if "¦" in text else 0
    return Case(Path("typed"), "", {"a.tool.json": text.replace("¦", "")}, {"a.tool.json": []}, {}, ""), offset


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ('{\n  "toolId": "a:b"\n  ¦\n}', '{\n  "toolId": "a:b",\n  "version": ""\n}'),
        ('{\n  "toolId": "a:b" // so\n  "ver¦\n}', '{\n  "toolId": "a:b", // so\n  "version": ""\n}'),
        ('{\n  "agentCallable": true\n  ver¦\n}', '{\n  "agentCallable": true,\n  "version": ""\n}'),
        ('{\n  "handler": {}\n  ¦\n  "tags": []\n}', '{\n  "handler": {},\n  "version": "",\n  "tags": []\n}'),
    ],
)
def test_a_key_on_a_line_of_its_own_brings_the_comma_that_is_missing_before_it(
    text: str, done: str, tmp_path: Path
) -> None:
    case, offset = _case(text)
    items = complete(core_of(case, tmp_path).snapshot("a.tool.json"), offset).items
    item = next(item for item in items if item.label == "version")
    edits = [Edit(*item.span, item.text), *(Edit(*edit) for edit in item.extra)]
    made = apply(case.documents["a.tool.json"], edits)
    assert made.replace("1.0.0", "") == done
    assert parse_json(made).ok


@pytest.mark.parametrize(
    "text",
    ['{"toolId": "a:b" ¦}', '{\n  "toolId": "a:b\n  ¦\n}', '{\n  "toolId": tru\n  ¦\n}', '{\n  "x":\n  [1\n ¦]}'],
)
def test_no_key_is_proposed_behind_a_value_that_may_go_on(text: str, tmp_path: Path) -> None:
    case, offset = _case(text)
    assert not any(item.extra for item in complete(core_of(case, tmp_path).snapshot("a.tool.json"), offset).items)


def test_no_fix_makes_half_typed_text_worse(tmp_path: Path) -> None:
    whole = (
        '{\n  "toolId": "demo",\n  "handler": { "type": "service-method", "scriptPath": "x.py" },\n  "tags": ["a", "a"],\n'
        '  "parameters": { "type": "object", "properties": { "a": { "type": "strin", "required": true } },\n'
        '    "required": ["b", "b"] },\n  "examples": [{ "input": { "c": 1 } }],\n  "version": 1,\n  "more": {}\n}\n'
    )
    for at in range(20, len(whole), 7):
        for text in (whole[:at], whole[:at] + '"' + whole[at:], whole[:at] + whole[at + 1 :]):
            case, _ = _case(text)
            snapshot = core_of(case, tmp_path).snapshot("a.tool.json")
            before = faults(snapshot.manifest.tree)
            for action in quick_fixes(snapshot, (0, len(text))):
                if not action.finding.code.startswith("MF52"):
                    after = faults(parse_json(apply(text, action.fix.edits)))
                    assert after <= before, (text, action.fix)


def test_a_client_that_names_no_format_gets_plain_words(tmp_path: Path) -> None:
    with Client(cwd=tmp_path, inside=True) as client:
        client.start(tmp_path, {})
        uri = (tmp_path / "a.tool.json").as_uri()
        client.open(uri, '{"toolId": "a:b", ', "json")
        asked = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 18}}
        items = client.call("textDocument/completion", asked)["items"]
        said = [item["documentation"] for item in items if item.get("documentation")]
        assert said
        assert {one["kind"] for one in said} == {"plaintext"}
        assert client.stop() == 0
