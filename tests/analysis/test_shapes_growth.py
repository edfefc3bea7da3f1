"""Documents of many of one thing are looked at, and mended, in time in proportion to their length (issue 16)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.protocols.convert.blocks import format_blocks
from tamis.protocols.model import ReadOptions
from tamis.protocols.reader import read_text
from tamis.server.analysis.actions import fixes
from tamis.server.analysis.actions.fixes import fix_all, quick_fixes
from tamis.server.analysis.configuration.findings import settings_findings
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.reading import load_registry
from tests.growth import growth
from tests.sample_tools import action, make_tool, tam, vcp

LINEAR = 8.0


def manifest(parameters: dict[str, object], **more: object) -> str:
    return json.dumps({"toolId": "x:a", "parameters": {"type": "object", **parameters}, **more}, indent=1)


def example(count: int, given: Callable[[int], object], declared: Callable[[int], object]) -> str:
    properties = {f"name{i}": declared(i) for i in range(count)}
    return manifest(
        {"properties": properties, "additionalProperties": False},
        examples=[{"input": {f"name{i}": given(i) for i in range(count)}}],
    )


def as_manifest(text: str) -> Snapshot:
    return Snapshot("/a.tool.json", "manifest", text, None)


def look(text: str) -> None:
    assert diagnose(as_manifest(text))


def mend(text: str) -> None:
    assert quick_fixes(as_manifest(text), (0, len(text)))


def wrong_example(count: int) -> str:
    return example(count, lambda i: "1", lambda i: {"type": "integer"})


def unknown_members(count: int) -> str:
    given = {f"nome{i}": 1 for i in range(count)}
    return manifest(
        {"properties": {"one": {}}, "additionalProperties": False}, examples=[{"input": given, "description": "x"}]
    )


def misspelt_required(count: int) -> str:
    return manifest(
        {
            "properties": {f"name{i}": {"type": "string"} for i in range(count)},
            "required": [f"nome{i}" for i in range(count)],
        }
    )


def unused_definitions(count: int) -> str:
    properties = {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(count)}
    return manifest({"properties": properties, "$defs": {f"e{i}": {} for i in range(count)}})


def alternatives(count: int) -> str:
    branches = [{"type": "object", "properties": {f"k{i}": {"const": i}}, "required": [f"k{i}"]} for i in range(count)]
    return manifest({"properties": {"one": {"anyOf": branches}}}, examples=[{"input": {"one": {"k": 1}}}])


def missing_commas(count: int) -> str:
    return manifest({"properties": {f"p{i}": {"type": "string"} for i in range(count)}}).replace("},", "}")


@pytest.mark.parametrize("build", [misspelt_required, unused_definitions])
def test_findings_of_many_are_linear(build: Callable[[int], str]) -> None:  # issue 16
    assert growth(build, look, 400) < LINEAR


def test_alternatives_are_compiled_in_linear_time() -> None:  # issue 16
    assert growth(alternatives, look, 150) < LINEAR


@pytest.mark.parametrize(
    "build", [wrong_example, unknown_members, misspelt_required, unused_definitions, missing_commas]
)
def test_fixes_of_many_findings_are_linear(build: Callable[[int], str]) -> None:  # issue 16
    assert growth(build, mend, 300) < LINEAR


def test_all_safe_fixes_are_put_together_without_comparing_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of lines that repeat, such as those of parameters, takes minutes (issue 16)."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compared")

    monkeypatch.setattr(difflib, "SequenceMatcher", refuse)
    properties = {f"p{i}": {"type": "string"} for i in range(100)}
    text = manifest({"properties": properties}).replace('"string"', '"string",')
    mended = apply(text, fix_all(as_manifest(text)))
    assert mended.count('"string",') == 0


def test_all_safe_fixes_are_made_also_of_findings_that_are_too_many_to_be_shown() -> None:
    """Issue 16: 200 findings are shown, *fix all* sees ten thousand."""
    twice = {"type": "string", "enum": ["a", "a"]}
    text = manifest({"properties": {f"p{i}": twice for i in range(300)}})
    shown = diagnose(as_manifest(text))
    assert shown[0].code == "TC025"
    mended = json.loads(apply(text, fix_all(as_manifest(text))))
    assert all(one["enum"] == ["a"] for one in mended["parameters"]["properties"].values())


def test_the_findings_whose_fixes_are_made_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16."""
    monkeypatch.setattr(fixes, "MAX_FIXED", 120)
    monkeypatch.setattr(fixes, "MAX_ROUNDS", 0)
    twice = {"type": "string", "enum": ["a", "a"]}
    text = manifest({"properties": {f"p{i}": twice for i in range(100)}})
    assert 0 < len(fix_all(as_manifest(text))) < 100


# Settings


def servers(count: int) -> str:
    return "".join(f'[mcpServers.s{i}]\nfolder = "s"\nscript = "x.py"\n' for i in range(count))


def unknown_settings(count: int) -> str:
    return "".join(f"[sandbox.x{i}]\ny = 1\n" for i in range(count))


def wrong_verdicts(count: int) -> str:
    return "[policy.tools]\n" + "".join(f'"x:t{i}" = {i}\n' for i in range(count))


@pytest.mark.parametrize("build", [servers, unknown_settings, wrong_verdicts])
def test_many_settings_are_linear(build: Callable[[int], str]) -> None:  # issue 16
    assert growth(build, settings_findings, 400) < LINEAR


def test_the_fields_of_a_table_are_looked_up_once_for_all_tables_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What msgspec evaluates at each look is asked for once (issue 16)."""
    import msgspec

    from tamis.server.runtime.settings import reading

    asked: list[object] = []
    fields = msgspec.structs.fields
    monkeypatch.setattr(msgspec.structs, "fields", lambda kind: asked.append(kind) or fields(kind))
    reading._fields.cache_clear()
    assert not settings_findings(servers(20))
    assert len(asked) == len(set(asked))


def test_settings_are_read_once_for_all_that_is_asked_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16: each request about 1,200 servers read them again, some several times (26 s for 38 requests)."""
    from tamis.protocols import tomltext
    from tamis.server.analysis.configuration import findings
    from tamis.server.analysis.hover.explain import explain
    from tamis.server.analysis.navigation.definition import definition
    from tamis.server.analysis.navigation.symbols import outline

    read: list[str] = []
    judged: list[str] = []
    reader, judge = tomltext._Reader, findings.settings_findings
    monkeypatch.setattr(tomltext, "_Reader", lambda text: (read.append(text), reader(text))[1])
    monkeypatch.setattr(
        findings, "settings_findings", lambda text, faults: (judged.append(text), judge(text, faults))[1]
    )
    tomltext.read_toml.cache_clear()
    text = servers(3).replace("script", "scirpt", 1)
    shot = Snapshot("/tamis.toml", kind_of("/tamis.toml", "toml"), text, None)
    for place in (20, 40):
        assert diagnose(shot)
        quick_fixes(shot, (place, place))
        explain(shot, place)
        definition(shot, place)
        assert outline(shot)
    assert read == judged == [text]


# Calls


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tools")
    item = {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "additionalProperties": False,
    }
    make_tool(root, "x:few", properties={"text": {"type": "string"}, "data": {"type": "array", "items": item}})
    make_tool(root, "x:wide", properties={f"p{i}": {"type": "integer"} for i in range(2_000)})
    return root


def looked_at(root: Path) -> Callable[[str], None]:
    registry = load_registry(root, Settings())

    def look(text: str) -> None:
        assert diagnose(Snapshot("/a.md", kind_of("/a.md", "markdown"), text, registry))

    return look


WRITERS = {"ACTION": action, "VCP": vcp, "TAM": lambda tool_id, **args: tam({"command": tool_id, **args})}


@pytest.mark.parametrize("protocol", WRITERS)
def test_findings_inside_one_json_text_are_linear(protocol: str, root: Path) -> None:  # issue 16
    def build(count: int) -> str:
        data = json.dumps([{"nomber": "&amp;", "x": i} for i in range(count)])
        return f"<pre>\n{WRITERS[protocol]('x:few', data=data)}"

    assert growth(build, looked_at(root), 400) < LINEAR


@pytest.mark.parametrize("protocol", WRITERS)
def test_a_call_with_many_wrong_parameters_is_linear(protocol: str, root: Path) -> None:  # issue 16
    def build(count: int) -> str:
        return WRITERS[protocol]("x:wide", **{f"p{i}": "many" for i in range(min(count, 2_000))})

    assert growth(build, looked_at(root), 500) < LINEAR


def test_the_line_ends_of_a_text_are_counted_once_for_all_of_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting them for each block makes formatting a square (issue 16)."""
    from tamis.protocols.convert import blocks

    asked: list[int] = []
    only = blocks.has_crlf_only
    monkeypatch.setattr(blocks, "has_crlf_only", lambda text: asked.append(len(text)) or only(text))
    text = "<ACTION><t><a>1</a></t></ACTION>\r\n\r\n" * 20
    reading = ReadOptions(allow_multiple_blocks=True)
    assert len(format_blocks(read_text(text, "auto", reading), reading).made) == 20
    assert asked == [len(text)]
