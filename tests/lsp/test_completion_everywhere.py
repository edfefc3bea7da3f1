"""Completion at every offset of half-typed texts, in large ones, with many tools (issue 5: bad input)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.manifest.reading import read_manifest
from tamis.server.analysis.completion.cursor import find_cursor
from tamis.server.analysis.completion.proposals import MAX_PROPOSALS, complete, documentation_of
from tamis.server.analysis.completion.schema_place import schemas_at
from tamis.server.analysis.completion.schema_proposals import JsonAsk, propose_json
from tamis.server.analysis.completion.texts import embedded_of
from tamis.server.analysis.embedded_schema import explain_embedded
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.snapshot import FolderFacts, Settings, Snapshot
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.protocols import load_also
from tamis.server.runtime.tools.loader import FoundFile, Scan
from tamis.server.runtime.tools.reading import build_registry
from tamis.server.runtime.tools.registry import Registry
from tests.lsp.markers import FOLDER, language, opened, read_case

CASES = sorted((FOLDER / "words").glob("*.txt"))
ALSO = load_also(["hermes"])[0]


def manifest(tool_id: str, **more: Any) -> str:
    given: dict[str, Any] = {
        "toolId": tool_id,
        "displayName": tool_id.title(),
        "description": "Plans a trip through several places and gives back the stages.",
        "version": "1.0.0",
        "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
    return json.dumps({**given, **more}, ensure_ascii=False)


_READ = read_manifest(manifest("custom:a")).manifest
assert _READ is not None
PLAIN = _READ


def registry_of(tmp_path: Path, *texts: str) -> Registry:
    found = tuple(FoundFile(f"/t/{index}.tool.json", text) for index, text in enumerate(texts))
    return build_registry(Scan(found, ()), load_settings(tmp_path).settings)


def labels(snapshot: Snapshot, offset: int) -> list[str]:
    items = sorted(complete(snapshot, offset).items, key=lambda item: item.sort)
    return [item.label for item in items]


@pytest.mark.parametrize("step", range(4))
def test_nothing_raises_at_any_place_of_half_a_text(step: int, tmp_path: Path, is_long: bool) -> None:
    draw = random.Random(step)
    for path in CASES[step::4]:
        case = read_case(path)
        manifests = [text for name, text in case.documents.items() if name.endswith(".tool.json")]
        registry = registry_of(tmp_path, *manifests)
        for name, text in opened(case):
            if not case.marks[name]:
                continue
            ends = range(len(text) + 1) if is_long else [mark.offset for mark in case.marks[name]]
            if not is_long:
                ends += [draw.randint(0, len(text)) for _ in range(8)]
            for end in ends:
                facts = FolderFacts(frozenset(case.documents))
                settings = Settings(also=ALSO)
                kind = kind_of(name, language(name))
                snapshot = Snapshot(name, kind, text[:end], registry, folder=facts, settings=settings)
                for offset in {end, draw.randint(0, end)}:
                    found = complete(snapshot, offset)
                    for item in found.items:
                        assert 0 <= item.span[0] <= item.span[1] <= end
                        documentation_of(item)
                    if kind == "text":
                        explain_embedded(snapshot, offset)


def test_a_list_is_cut_by_what_is_typed_and_says_so(tmp_path: Path) -> None:
    registry = registry_of(tmp_path, *(manifest(f"custom:tool-{index:04}") for index in range(600)))
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»custom:tool-0599«««\n<|[END_TOOL]|>\n"
    offset = text.index("0599") + 4
    found = complete(Snapshot("/t/a.md", "text", text, registry), offset)
    assert found.cut
    assert len(found.items) == MAX_PROPOSALS
    assert found.items[0].label == "custom:tool-0599"


def test_a_short_list_is_not_cut(tmp_path: Path) -> None:
    registry = registry_of(tmp_path, manifest("custom:a"), manifest("custom:b"))
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»«««\n<|[END_TOOL]|>\n"
    assert not complete(Snapshot("/t/a.md", "text", text, registry), text.index("«««")).cut


def test_namespaces_are_proposed_where_there_are_several(tmp_path: Path) -> None:
    tools = [manifest(f"one:{name}") for name in "abc"] + [manifest(f"two:{name}") for name in "abc"]
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»«««\n<|[END_TOOL]|>\n"
    found = labels(Snapshot("/t/a.md", "text", text, registry_of(tmp_path, *tools)), text.index("«««"))
    assert found[-2:] == ["one:", "two:"]


def test_what_the_workspace_calls_most_comes_first(tmp_path: Path) -> None:
    index = WorkspaceIndex()
    call = "<|[REQUEST_TOOL]|>\ncommand:»»»custom:b«««\ncity:»»»K«««\n<|[END_TOOL]|>\n"
    index.update("/t/other.md", call * 3)
    index.settle()
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»«««\n<|[END_TOOL]|>\n"
    registry = registry_of(tmp_path, *(manifest(f"custom:{name}") for name in "abc"))
    snapshot = Snapshot("/t/a.md", "text", text, registry, index=index)
    assert labels(snapshot, text.index("«««")) == ["custom:b", "custom:a", "custom:c"]


def test_what_was_called_last_here_comes_before_that(tmp_path: Path) -> None:
    index = WorkspaceIndex()
    block = "<|[REQUEST_TOOL]|>\ncommand:»»»{}«««\ncity:»»»K«««\n<|[END_TOOL]|>\n"
    index.update("/t/other.md", block.format("custom:b") * 3)
    index.settle()
    text = block.format("custom:c") + "<|[REQUEST_TOOL]|>\ncommand:»»»«««\n<|[END_TOOL]|>\n"
    registry = registry_of(tmp_path, *(manifest(f"custom:{name}") for name in "abc"))
    snapshot = Snapshot("/t/a.md", "text", text, registry, index=index)
    assert labels(snapshot, text.rindex("«««")) == ["custom:c", "custom:b", "custom:a"]


@pytest.mark.slow
def test_a_large_manifest_is_completed_in_place() -> None:
    many = {f"p{index:05}": {"type": "string", "description": "x" * 40} for index in range(12_000)}
    text = manifest("custom:big", parameters={"type": "object", "properties": many}).replace(
        '"displayName"', '"dis": 0, "displayName"', 1
    )
    assert len(text) > 900_000
    snapshot = Snapshot("/t/big.tool.json", "manifest", text, None)
    assert "execution" in labels(snapshot, text.index('"dis"') + 4)
    inside = text.index('"p11999": {') + len('"p11999": {')
    assert "minLength" in labels(snapshot, inside)


def test_without_tools_blocks_are_proposed_all_the_same() -> None:
    found = labels(Snapshot("/t/a.md", "text", "", None), 0)
    assert found[:2] == ["<ACTION>", "<|[REQUEST_TOOL]|>"]


def test_a_profile_is_offered_the_workflows_of_the_workspace(tmp_path: Path) -> None:  # W01, W02
    index = WorkspaceIndex()
    flow = {"name": "Summary", "interfaceInputs": {"text": {"dataFlowType": "STRING"}}, "interfaceOutputs": {}}
    index.update("/t/flows/summary.json", json.dumps(flow))
    text = '{ "tool_ids_inventory": ["custom:a", ""] }'
    registry = registry_of(tmp_path, manifest("custom:a"), manifest("custom:b"))
    snapshot = Snapshot("/t/agent_profile.json", "profile", text, registry, index=index)
    assert labels(snapshot, text.index('""') + 1) == ["custom:b", "workflow:summary", "workflow:", "system:", "kb:"]


def _faults(tree: JsonTree) -> int:
    return sum(diag.severity in (None, "error") and diag.code not in ("MF525", "MF526") for diag in tree.diagnostics)


@pytest.mark.parametrize(
    "path",
    [path for path in CASES if path.stem.startswith(("manifest", "schema", "example", "broken"))],
    ids=lambda path: path.stem,
)
def test_what_is_chosen_in_a_manifest_leaves_no_new_fault(path: Path, tmp_path: Path) -> None:
    case = read_case(path)
    texts = [text for name, text in case.documents.items() if name.endswith(".tool.json")]
    registry = registry_of(tmp_path, *texts)
    facts = FolderFacts(frozenset(case.documents))
    for name, text in opened(case):
        for mark in case.marks[name]:
            before = _faults(parse_json(text))
            for item in complete(Snapshot(name, "manifest", text, registry, folder=facts), mark.offset).items:
                after = text[: item.span[0]] + item.text + text[item.span[1] :]
                assert _faults(parse_json(after)) <= before, (item.label, after)


@pytest.mark.parametrize(
    "path",
    [path for path in CASES if path.stem.startswith("json_") and path.stem != "json_text_is_text"],
    ids=lambda path: path.stem,
)
def test_what_is_chosen_in_a_value_leaves_no_new_fault(path: Path, tmp_path: Path) -> None:
    case = read_case(path)
    texts = [text for name, text in case.documents.items() if name.endswith(".tool.json")]
    registry = registry_of(tmp_path, *texts)
    for name, text in opened(case):
        for mark in case.marks[name]:
            cursor = find_cursor(text, mark.offset)
            if cursor is None or cursor.expect != "value" or "{" not in text[slice(*cursor.value)]:
                continue
            before = _faults(embedded_of(text, cursor).tree)
            for item in complete(Snapshot(name, "text", text, registry), mark.offset).items:
                after = text[: item.span[0]] + item.text + text[item.span[1] :]
                again = find_cursor(after, item.span[0] + len(item.text))
                assert again is not None, (item.label, after)
                assert _faults(embedded_of(after, again).tree) <= before, (item.label, after)


_WORDS = [
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "default",
    "examples",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "not",
    "$ref",
    "$defs",
    "definitions",
    "prefixItems",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "uniqueItems",
    "defaultSnippets",
    "enumDescriptions",
    "markdownEnumDescriptions",
    "enumSortTexts",
    "enumDetails",
    "deprecated",
    "doNotSuggest",
    "suggestSortText",
    "body",
    "bodyText",
    "label",
    "description",
    "dependentSchemas",
    "minimum",
]
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["a", "#", "#/$defs/a", "object", "array", "string", "(", "^$1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*_WORDS, "a", "b"]), inner, max_size=5)
    ),
    max_leaves=20,
)
_TEXT = st.text(st.sampled_from(list('{}[]",: ab/*\n1t\\')), max_size=25)


@given(schema=_JSON, text=_TEXT, data=st.data())
def test_no_schema_however_broken_makes_it_raise(schema: Any, text: str, data: st.DataObject) -> None:
    tree = parse_json(text)
    offset = data.draw(st.integers(0, len(text)))
    for item in propose_json(JsonAsk(tree, lambda path: schemas_at(schema, tree.root, path)), offset):
        assert 0 <= item.span[0] <= item.span[1] <= len(text)
        documentation_of(item)


@given(schema=_JSON, data=st.data())
def test_no_parameters_however_broken_make_it_raise(schema: Any, data: st.DataObject) -> None:
    tool = json.loads(manifest("custom:a"))
    tool["parameters"] = schema
    text = json.dumps(tool, indent=1)
    offset = data.draw(st.integers(text.index('"parameters"'), len(text)))
    complete(Snapshot("/t/a.tool.json", "manifest", text, None), offset)
    fake = type("Tool", (), {"tool_id": "custom:a", "available": True, "reason": "", "path": "/t/a.tool.json"})()
    fake.manifest = msgspec.structs.replace(PLAIN, parameters=schema if isinstance(schema, dict) else None)
    registry: Any = type(
        "Tools", (), {"tools": [fake], "get": lambda _self, _name: fake, "names": lambda _self: ["custom:a"]}
    )()
    for call in (
        '<|[REQUEST_TOOL]|>\ncommand:»»»custom:a«««\n§\na:»»»§«««\nb:»»»{"a": §}«««\n',
        "<ACTION><custom:a><§<a><§",
        "<ACTION><custom:a a='§",
    ):
        for at in [index for index, char in enumerate(call) if char == "§"]:
            before = call[:at].replace("§", "")
            snapshot = Snapshot("/t/a.md", "text", before + call[at:].replace("§", ""), registry)
            for item in complete(snapshot, len(before)).items:
                documentation_of(item)
