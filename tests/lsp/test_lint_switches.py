"""Levels and silencing of findings: settings, comments, and the actions that write the comments (issue 5, W01, D48)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.levels import LEVELS, codes_of, is_binding, read_levels
from tamis.server.analysis.answers import Finding
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.lints.ignore import ignore_actions
from tamis.server.analysis.snapshot import Settings, Snapshot
from tamis.server.cli.main import main
from tamis.server.runtime.settings.config import Settings as RootSettings
from tamis.server.runtime.settings.loading import load_settings
from tests.lsp.lsp_client import Client

MANIFEST = """\
{
  "toolId": "t:a",
  "displayName": "A",
  "description": "Gives back the text that it is given, so that a call can be tried out.",
  "version": "1.0.0",
  "handler": { "type": "service-method", "serviceName": "S", "methodName": "m" },
  "parameters": {
    "type": "object",
    "properties": {
      "n": { "type": "number", "minLength": 1 },
      "m": { "type": "number", "description": "How much.", "maxLength": 1 }
    }
  },
  "examples": [{ "input": {} }]
}
"""
TEXT = "Words.\n\n<ACTION>\n<t:a><n>a & b</n></t:a>\n</ACTION>\n\n```\n<|[REQUEST_TOOL]|>\ncommand:>>>x<<<\n<|[END_TOOL]|>\n```\n"


def snapshot(
    text: str, path: str = "/w/a.tool.json", lint: dict[str, Any] | None = None, strict: bool = False
) -> Snapshot:
    settings = Settings(config=RootSettings(lint=lint or {}), strict_json=strict)
    return Snapshot(path, kind_of(path, ""), text, None, settings=settings)


def said(text: str, **more: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in diagnose(snapshot(text, **more))]


def applied(text: str, finding: Finding, title: str, **more: Any) -> str:
    (fix,) = [fix for fix in ignore_actions(snapshot(text, **more), finding) if fix.title == title]
    for edit in sorted(fix.edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.new_text + text[edit.end :]
    return text


def first(text: str, code: str, **more: Any) -> Finding:
    return next(finding for finding in diagnose(snapshot(text, **more)) if finding.code == code)


PLAIN = [("LN721", "hint"), ("LN704", "hint"), ("LN704", "hint")]


def test_without_settings_the_catalogue_says_how_grave_a_finding_is() -> None:
    assert said(MANIFEST) == PLAIN


@pytest.mark.parametrize("name", ["LN704", "ln704", "keyword-for-other-type", "LN70", "LN"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_chosen_by_code_slug_or_beginning(name: str, level: str) -> None:
    wanted = [] if level == "off" else [("LN704", level)] * 2
    assert [one for one in said(MANIFEST, lint={name: level}) if one[0] == "LN704"] == wanted


def test_the_most_exact_name_wins_whatever_the_order() -> None:
    for table in (
        {"LN": "off", "LN70": "warning", "LN704": "error"},
        {"LN704": "error", "LN70": "warning", "LN": "off"},
    ):
        assert said(MANIFEST, lint=table) == [("LN704", "error")] * 2


def test_a_rule_that_is_off_by_default_is_said_where_it_has_a_level() -> None:
    assert ("LN730", "hint") not in said(MANIFEST)
    assert ("LN730", "warning") in said(MANIFEST, lint={"id-not-for-providers": "warning"})


def test_what_keeps_a_manifest_from_loading_cannot_be_turned_off() -> None:
    broken = MANIFEST.replace('"type": "number", "d', '"type": "numbr", "d').replace('  "version": "1.0.0",\n', "")
    lint = dict.fromkeys(CATALOGUE, "off")
    assert said(broken, lint=lint) == [("MF501", "error"), ("VA450", "error")]
    silenced = "// tamis-ignore\n" + broken
    assert [one for one in said(silenced) if one[1] == "error"] == [("MF501", "error"), ("VA450", "error")]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"LN9999": "off"}, "'lint.LN9999' is no rule"),
        ({"keyword-for-othr-type": "off"}, "did you mean 'keyword-for-other-type'?"),
        ({"LN704": "warn"}, "did you mean 'warning'?"),
        ({"LN704": False}, "did you mean 'off'?"),
        ({"LN704": 3}, "'lint.LN704' must be one of off, hint, information, warning, error"),
        ({"MF501": "off"}, "stays an error"),
        ({"": "off"}, "is no rule"),
    ],
)
def test_a_wrong_entry_is_a_problem_of_the_settings_and_has_no_effect(
    table: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    assert said(MANIFEST, lint=table) == PLAIN
    loaded = load_settings(tmp_path, {"lint": table})
    assert len(loaded.problems) == 1
    assert problem in loaded.problems[0]
    # Advice bounds nothing: tools run all the same.
    assert loaded.closed == ""


def test_a_right_entry_is_no_problem(tmp_path: Path) -> None:
    table = {"LN": "off", "MF509": "warning", "not-flat": "hint", "VA450": "error", "targets": ["mcp"]}
    assert load_settings(tmp_path, {"lint": table}).problems == ()


def test_levels_change_nothing_that_runs() -> None:
    """The runtime reads ``[lint]`` for its own ``formats`` alone; else only the analysis and the check of the settings name it."""
    root = Path(__file__).resolve().parents[2] / "server" / "runtime"
    users = {path.name for path in root.rglob("*.py") if "read_levels" in path.read_text("utf-8")}
    assert users == {"reading.py", "checking.py"}


# In the editor and on the command line


def test_the_editor_and_the_command_line_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tool.json").write_text(MANIFEST)
    (tmp_path / "tamis.toml").write_text('[lint]\nkeyword-for-other-type = "warning"\nLN721 = "off"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--format", "json", "--strict"]) == 1
    files = json.loads(capsys.readouterr().out)["files"]
    found = [(item["code"], item["severity"]) for file in files for item in file["diagnostics"]]
    assert found == [("LN704", "warning")] * 2
    with Client(cwd=tmp_path) as client:
        client.start(tmp_path, {}, {})
        uri = (tmp_path / "a.tool.json").as_uri()
        client.open(uri, MANIFEST, "json")
        items = client.published(uri)
        assert [(item["code"], item["severity"]) for item in items] == [("LN704", 2)] * 2
        assert all(item["codeDescription"]["href"].endswith("diagnostics.md#ln704") for item in items)
        client.stop()


# The actions that write the comments


@pytest.mark.parametrize("title", ["Ignore LN704 here", "Ignore LN704 in this file"])
@pytest.mark.parametrize("strict", [False, True])
def test_an_action_writes_the_comment_that_silences(title: str, strict: bool) -> None:
    finding = first(MANIFEST, "LN704", strict=strict)
    titles = [fix.title for fix in ignore_actions(snapshot(MANIFEST, strict=strict), finding)]
    assert titles == (["Ignore LN704 in this file"] if strict else ["Ignore LN704 here", "Ignore LN704 in this file"])
    if title not in titles:
        return
    after = applied(MANIFEST, finding, title, strict=strict)
    left = [one for one in said(after, strict=strict) if one[0] == "LN704"]
    assert len(left) == (1 if "here" in title else 0)
    assert len(said(after, strict=strict)) == len(PLAIN) - (2 - len(left))


def test_a_second_rule_joins_the_comment_that_is_there() -> None:
    once = applied(MANIFEST, first(MANIFEST, "LN704"), "Ignore LN704 here")
    twice = applied(once, first(once, "LN721"), "Ignore LN721 here")
    assert "      // tamis-ignore LN704, LN721\n" in twice
    assert said(twice) == [("LN704", "hint")]


def test_a_comment_goes_before_the_fence_so_that_the_block_stays_a_call() -> None:
    path = "/w/a.md"
    after = applied(TEXT, first(TEXT, "TM210", path=path), "Ignore TM210 here", path=path)
    assert "<!-- tamis-ignore TM210 -->\n```\n" in after
    assert "TM210" not in [code for code, _ in said(after, path=path)]
    calls = [(call.tool_id, call.executable) for call in snapshot(after, path).document.blocks[-1].calls]
    assert calls == [("x", True)]


def test_a_file_of_texts_is_silenced_behind_its_front_matter() -> None:
    text = "---\ntitle: x\n---\n" + TEXT
    after = applied(text, first(text, "AX111", path="/w/a.md"), "Ignore AX111 in this file", path="/w/a.md")
    assert after.startswith("---\ntitle: x\n---\n<!-- tamis-ignore-file AX111 -->\n")
    assert "AX111" not in [code for code, _ in said(after, path="/w/a.md")]


def test_what_is_always_said_offers_no_such_action() -> None:
    broken = MANIFEST.replace('"type": "number", "d', '"type": "numbr", "d')
    assert ignore_actions(snapshot(broken), first(broken, "VA450")) == []


# Properties


@given(
    st.dictionaries(
        st.text(max_size=30) | st.sampled_from([*CATALOGUE, "LN", "not-flat"]),
        st.text(max_size=8) | st.sampled_from(LEVELS),
        max_size=6,
    )
)
def test_any_table_is_read(table: dict[str, str]) -> None:
    levels = read_levels(table)
    for problem in levels.problems:
        assert problem.name in table
    for code, level in levels.by_code.items():
        assert level in LEVELS
        assert any(code in codes_of(name) for name in table)


@given(
    st.integers(0, len(MANIFEST)),
    st.sampled_from(
        [
            "",
            "{",
            '"',
            "// tamis-ignore LN704\n",
            "/* tamis-ignore",
            "tamis-ignore",
            "\x00",
            "}",
            '"x-tamis-ignore": ["LN704"],',
        ]
    ),
    st.integers(0, 40),
)
def test_half_typed_manifests_are_analysed(at: int, put: str, cut: int) -> None:
    text = MANIFEST[:at] + put + MANIFEST[at + cut :]
    for finding in diagnose(snapshot(text)):
        assert 0 <= finding.span[0] <= finding.span[1] <= len(text)
        for fix in ignore_actions(snapshot(text), finding):
            assert all(0 <= edit.start <= edit.end <= len(text) for edit in fix.edits)


@given(
    st.integers(0, len(TEXT)),
    st.sampled_from(
        [
            "",
            "<!-- tamis-ignore",
            "<!-- tamis-ignore TM210 -->\n",
            "# tamis-ignore-file\n",
            "\n# tamis-ignore AX1",
            "```\n",
            "<think>",
        ]
    ),
    st.integers(0, 20),
)
def test_half_typed_texts_are_analysed(at: int, put: str, cut: int) -> None:
    text = TEXT[:at] + put + TEXT[at + cut :]
    here = snapshot(text, "/w/a.md")
    for finding in diagnose(here):
        assert 0 <= finding.span[0] <= finding.span[1] <= len(text)
        ignore_actions(here, finding)


@given(st.data())
def test_a_silenced_finding_disappears_and_nothing_else_changes(data: st.DataObject) -> None:
    lines = MANIFEST.splitlines(keepends=True)
    before = diagnose(snapshot(MANIFEST))
    finding = data.draw(st.sampled_from(before))
    title = data.draw(st.sampled_from([fix.title for fix in ignore_actions(snapshot(MANIFEST), finding)]))
    after = applied(MANIFEST, finding, title)
    left = [(one.code, one.message) for one in diagnose(snapshot(after))]
    line = MANIFEST.count("\n", 0, finding.span[0])
    gone = [
        one
        for one in before
        if one.code == finding.code and ("file" in title or MANIFEST.count("\n", 0, one.span[0]) == line)
    ]
    assert left == [(one.code, one.message) for one in before if one not in gone]
    assert [one for one in after.splitlines(keepends=True) if "tamis-ignore" not in one] == lines


def test_binding_errors_are_those_of_reading_files() -> None:
    assert is_binding("MF501", "error")
    assert not is_binding("MF540", "error")
    assert not is_binding("VA401", "error")
    assert not is_binding("MF509", "hint")
