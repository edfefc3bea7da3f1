"""The verbs that move take time in proportion to the text: many references by anchor, many calls, hostile scripts."""

from __future__ import annotations

import json

from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.navigation.definition import find_function
from tamis.server.analysis.navigation.links import linked_names, links_of
from tamis.server.analysis.navigation.references import find_references, highlights
from tamis.server.analysis.navigation.symbols import outline
from tamis.server.analysis.snapshot import Snapshot
from tests.growth import growth


def manifest(count: int) -> str:
    properties = {f"p{i}": {"$ref": f"#a{i}"} for i in range(count)}
    definitions = {f"d{i}": {"$anchor": f"a{i}"} for i in range(count)}
    parameters = {"type": "object", "properties": properties, "$defs": definitions}
    return json.dumps({"toolId": "x:a", "parameters": parameters}, indent=1)


def ask_manifest(text: str) -> None:
    index = WorkspaceIndex()
    index.update("/a.tool.json", text)
    snapshot = Snapshot("/a.tool.json", "manifest", text, None, index=index)
    links_of(snapshot)
    outline(snapshot)
    assert len(find_references(snapshot, text.index('"d1"') + 2)) == 2
    assert find_references(snapshot, text.index('"p1"') + 2)


def calls(count: int) -> str:
    return (
        "<ACTION><x:a><text>1</text></x:a></ACTION>\n<|[REQUEST_TOOL]|>\ncommand: »»»x:a«««\n<|[END_TOOL]|>\n" * count
    )


def ask_calls(text: str) -> None:
    index = WorkspaceIndex()
    index.update("/a.md", text)
    snapshot = Snapshot("/a.md", "text", text, None, index=index)
    assert highlights(snapshot, 9)
    assert outline(snapshot)
    assert linked_names(snapshot, 9)


def test_references_by_anchor_are_linear() -> None:
    assert growth(manifest, ask_manifest, 100) < 8


def test_many_calls_are_linear() -> None:
    assert growth(calls, ask_calls, 50) < 8


def test_hostile_scripts_are_linear() -> None:
    def ask(text: str) -> None:
        assert find_function(text, "run", "/a.js") is None

    for line in ("run():):):", "export { a ", "module.exports = { \n"):
        assert growth(lambda count, line=line: line * count, ask, 500) < 8
