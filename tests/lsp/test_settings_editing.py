"""tamis.toml in an editor: one source of words, the published schema, every place answers (V58), profiles and workflows (W01 to W23)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from tamis.protocols.manifest.profile import read_profile
from tamis.server.analysis.completion.json_words import profile_schema
from tamis.server.analysis.completion.proposals import complete, documentation_of
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.hover.explain import explain
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.navigation.symbols import outline
from tamis.server.analysis.navigation.workflows import workflow_files
from tamis.server.analysis.shown.folding import folds
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.settings.classes import CLASSES
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.reading import settings_problems
from tamis.server.runtime.settings.schema import meaning, settings_schema
from tamis.server.runtime.settings.words import WORDS, default_text
from tests.conftest import ROOT
from tests.lsp.lsp_client import Client
from tests.lsp.wrong_settings import WRONG

PATH = "/w/tamis.toml"
PAGE = (ROOT / "docs" / "settings.md").read_text("utf-8")


def snapshot(text: str, path: str = PATH, **more: Any) -> Snapshot:
    return Snapshot(path, kind_of(path, ""), text, None, **more)


def labels(text: str, mark: str = "⟦⟧") -> list[str]:
    at = text.index(mark)
    return [item.label for item in complete(snapshot(text.replace(mark, "")), at).items]


def settings(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, part in schema.get("properties", {}).items():
        yield f"{prefix}{name}", part
        if name != "lint":
            yield from settings(part, f"{prefix}{name}.")


# One source


@pytest.mark.parametrize("name", WORDS)
def test_the_page_has_the_words_of_hover_and_schema(name: str) -> None:
    word = WORDS[name]
    known = CLASSES.get(name)
    told = known.told if known is not None else ""
    row = " | ".join((f"| `{name}`", word.kind, default_text(name), told, word.means, word.example)).rstrip()
    assert f"{row} |\n" in PAGE, f"docs/settings.md and server/runtime/settings/words.py differ about {name}"


def test_every_setting_has_words_and_every_word_a_setting() -> None:
    known = dict(settings(settings_schema()))
    assert [name for name in known if not meaning(name)] == []
    assert [name for name in WORDS if name not in known] == []


def test_defaults_on_the_page_are_those_in_force() -> None:
    for name, schema in settings(settings_schema()):
        if name in WORDS and "default" in schema:
            said = default_text(name).split("`")[1]
            assert tomllib.loads(f"k = {said}")["k"] == schema["default"], name


@pytest.mark.parametrize("name", [name for name, word in WORDS.items() if word.example])
def test_examples_fit_the_schema_and_the_reader(name: str) -> None:
    value: Any = tomllib.loads(f"k = {WORDS[name].example.strip('`')}")["k"]
    for part in reversed(name.split(".")):
        value = {part: value}
    assert list(Draft7Validator(settings_schema()).iter_errors(value)) == []
    assert settings_problems(value) == []


# The published schema


def test_the_schema_is_one_of_draft_07() -> None:
    Draft7Validator.check_schema(settings_schema())
    Draft7Validator.check_schema(profile_schema())


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("", True),
        ('tools = ["a"]\n[lint]\nnot-flat = "off"\nLN72 = "hint"\nLN721 = "error"', True),
        ('[sandbox.runtimes.perl]\ncommand = ["/usr/bin/perl", "{script}"]', True),
        ('[policy.pin]\n"a.b" = "10.0.0.1"', True),
        ("strictJson = 1", False),
        ("strictJsn = true", False),
        ('onConflict = "first"', False),
        ("[sandbox]\nwallMs = -1", False),
        ("[sandbox]\nwallMs = 1.5", False),
        ("[sandbox]\nwalMs = 1", False),
        ("[policy]\nreadRoots = [1]", False),
        ('[lint]\nnot-flat = "loud"', False),
        ('[lint]\nno-such-rule = "off"', False),
        ("resources = 1", False),
    ],
)
def test_schema_and_reader_give_the_same_verdict(text: str, good: bool) -> None:
    raw = tomllib.loads(text)
    assert Draft7Validator(settings_schema()).is_valid(raw) == good
    assert (settings_problems(raw) == []) == good


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/**/tamis.toml")))
def test_the_examples_fit_the_schema(path: Path) -> None:
    assert Draft7Validator(settings_schema()).is_valid(tomllib.loads(path.read_text("utf-8")))


@pytest.mark.parametrize(
    ("profile", "good"),
    [
        (
            {
                "tool_ids_inventory": ["core:a", "workflow:b"],
                "toolCallConfig": {"enabled": True},
                "name": "of the host",
            },
            True,
        ),
        ({"tool_ids_inventory": "core:a"}, False),
        ({"toolCallConfig": {"mode": "automatic"}}, False),
        ({"toolCallConfig": {"maxIterations": 0}}, False),
        ({"toolCallConfig": {"timeout": 86_400_001}}, False),
        ({"toolCallConfig": {"toolToggles": {"a": 1}}}, False),
    ],
)
def test_the_schema_of_profiles_and_their_reader_agree(profile: dict[str, Any], good: bool) -> None:
    assert Draft7Validator(profile_schema()).is_valid(profile) == good
    assert (read_profile(json.dumps(profile)).profile is not None) == good


def _without(keyword: str, schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without(keyword, part) for key, part in schema.items() if key != keyword}
    return [_without(keyword, part) for part in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("name", ["tamis.schema.json", "agent_profile.schema.json"])
def test_the_committed_schemas_are_what_the_source_gives(name: str) -> None:
    # what only our own editor features read is left out of the file, see `tests/protocols/test_published_schemas.py`
    made = _without("x-tamis-class", settings_schema()) if name.startswith("tamis") else profile_schema()
    committed = (ROOT / "schemas" / name).read_text("utf-8")
    assert committed == json.dumps(made, ensure_ascii=False, indent=2) + "\n", "run python tools/published_schemas.py"


# Completion


def test_what_completion_writes_is_right_where_it_is_put() -> None:
    for prefix in (
        "",
        "[policy]\n",
        "[sandbox]\n",
        "[sandbox.runners]\n",
        "[audit]\n",
        "[protocol]\n",
        "[dependencies]\n",
    ):
        items = complete(snapshot(prefix), len(prefix)).items
        assert items
        for item in items:
            if item.label in ("[sandbox.runtimes.…]", "[secrets.…]"):
                continue  # a runtime is nothing without its command, a secret nothing without its source
            text = prefix + item.text + "\n"
            assert settings_problems(tomllib.loads(text)) == [], text


def test_every_key_is_described() -> None:
    for prefix in ("", "[policy]\n", "[sandbox]\n", "[lint]\n"):
        for item in complete(snapshot(prefix), len(prefix)).items:
            assert documentation_of(item), item.label


def test_codes_are_found_when_they_are_typed() -> None:
    assert "LN721" in labels("[lint]\nLN721⟦⟧")


def test_a_table_that_stands_inline_or_dotted_gets_no_header() -> None:
    assert "[audit]" not in labels("audit = { keep = 1 }\n⟦⟧")
    assert "[policy.pin]" not in labels("[policy]\npin.a = 'x'\n⟦⟧")


@given(
    st.integers(0, len(WRONG)),
    st.integers(0, 30),
    st.text("[]{}=,.\"'#\n apolicy.tools", max_size=20),
    st.integers(0, 60),
)
def test_every_place_of_half_typed_settings_answers(at: int, cut: int, put: str, ahead: int) -> None:
    text = WRONG[:at] + put + WRONG[at + cut :]
    here = snapshot(text)
    offset = min(len(text), at + ahead)
    for item in complete(here, offset).items:
        assert 0 <= item.span[0] <= offset <= item.span[1] <= len(text)
    said = explain(here, offset)
    assert said is None or said.span[0] <= offset <= said.span[1]
    assert all(fold.span[0] <= fold.span[1] for fold in folds(here))
    stack = outline(here)
    while stack:
        symbol = stack.pop()
        assert symbol.span[0] <= symbol.selection[0] <= symbol.selection[1] <= symbol.span[1]
        stack += symbol.children


def test_other_toml_files_are_left_alone() -> None:
    here = snapshot("to", "/w/pyproject.toml")
    assert (list(complete(here, 2).items), explain(here, 1), outline(here), folds(here)) == ([], None, [], [])


# Profiles and workflows

FLOW = '{ "interfaceInputs": {} }'


def test_ids_of_workflows_are_known_by_their_files() -> None:  # W02
    index = WorkspaceIndex()
    for path in ("/w/flows/a.json", "/w/other/b.json"):
        index.update(path, FLOW)
    index.update("/w/flows/c.json", '{ "no": "workflow" }')
    assert workflow_files(index, (), "/w/agent_profile.json") == {
        "workflow:a": "/w/flows/a.json",
        "workflow:b": "/w/other/b.json",
    }
    for folders in (("flows",), ("/w/flows",), ("./flows/",)):
        assert list(workflow_files(index, folders, "/w/agents/agent_profile.json")) == ["workflow:a"]


def test_nothing_is_missing_while_the_files_are_not_known() -> None:  # W02
    text = '{"toolCallConfig": {}, "tool_ids_inventory": ["workflow:a"]}'
    assert diagnose(snapshot(text, "/w/agent_profile.json")) == []
    assert [one.code for one in diagnose(snapshot(text, "/w/agent_profile.json", workflows={}))] == ["PF611"]


def test_a_description_that_is_there_is_enough() -> None:  # W07
    def codes(text: str) -> list[str]:
        return [one.code for one in diagnose(snapshot(text, "/w/flows/a.json"))]

    assert codes(FLOW) == ["LN780"]
    assert codes('{ "description": "x", "interfaceInputs": {} }') == []
    assert codes('{ "other": "interfaceInputs" }') == []
    assert codes('{ "interfaceInputs": {') == ["MF521"]


def test_a_profile_hears_of_a_workflow_that_comes(tmp_path: Path) -> None:  # W02, W20
    profile = tmp_path / "agent_profile.json"
    text = '{"toolCallConfig": {}, "tool_ids_inventory": ["workflow:a"]}'
    profile.write_text(text)
    uri = profile.as_uri()
    with Client(cwd=tmp_path) as client:
        client.start(tmp_path, {}, {})
        client.open(uri, text, "json")
        while [item["code"] for item in client.published(uri)] != ["PF611"]:
            pass
        (tmp_path / "a.json").write_text('{ "description": "x", "interfaceInputs": {} }')
        changed = {"uri": (tmp_path / "a.json").as_uri(), "type": 1}
        client.notify("workspace/didChangeWatchedFiles", {"changes": [changed]})
        while client.published(uri):
            pass
        client.stop()


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 3000])
def test_what_tomllib_gives_up_on_is_a_finding_and_closes_everything(value: str, tmp_path: Path) -> None:
    text = f"a = {value}\n"
    (finding,) = diagnose(snapshot(text))
    assert (finding.code, finding.severity) == ("ST801", "error")
    (tmp_path / "tamis.toml").write_text(text)
    assert "is no TOML" in load_settings(tmp_path).closed
