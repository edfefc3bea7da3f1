"""Findings of tamis.toml while it is edited: what `tamis doctor` says, at its place (interface, Configuration)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import message
from tamis.protocols.positions import LineIndex
from tamis.protocols.tomltext import toml_places
from tamis.server.analysis.configuration.findings import settings_findings
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.settings.loading import load_settings
from tests.conftest import ROOT
from tests.lsp.lsp_client import Client
from tests.lsp.wrong_settings import WRONG


def found(text: str) -> list[tuple[str, str, str, str]]:
    path = "/w/tamis.toml"
    snapshot = Snapshot(path, kind_of(path, "toml"), text, None)
    return [
        (text[finding.span[0] : finding.span[1]], finding.code, finding.severity, finding.message)
        for finding in diagnose(snapshot)
    ]


def test_each_problem_stands_at_its_key_or_value() -> None:
    assert [(what, code, level) for what, code, level, _ in found(WRONG)] == [
        ("strctJson", "ST802", "warning"),
        ('"replce"', "ST803", "error"),
        ("allowHost", "ST802", "error"),
        ('"x"', "ST803", "error"),
        ('"10"', "ST803", "error"),
        ("pyton", "ST802", "error"),
        ("python", "ST803", "error"),
        ('["x"]', "ST803", "error"),
        ("LN9999", "ST802", "warning"),
        ("parameter-undescrbed", "ST802", "warning"),
        ('"warn"', "ST803", "warning"),
    ]


def test_the_words_are_those_of_loading(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text(WRONG)
    places = [LineIndex(WRONG).position(diag.span[0]) for diag in settings_findings(WRONG)]
    shown = [
        f"tamis.toml:{line + 1}:{column + 1}: {message(diag)}"
        for (line, column), diag in zip(places, settings_findings(WRONG), strict=True)
    ]
    assert shown == list(load_settings(tmp_path).problems)


def test_a_misspelled_name_has_a_fix() -> None:
    path = "/w/tamis.toml"
    fixes = {
        WRONG[edit.start : edit.end]: edit.new_text
        for finding in diagnose(Snapshot(path, "settings", WRONG, None))
        if finding.fix is not None
        for edit in finding.fix.edits
    }
    assert fixes == {
        "strctJson": "strictJson",
        '"replce"': '"replace"',
        "allowHost": "allowHosts",
        "pyton": "python",
        "parameter-undescrbed": "parameter-undescribed",
        '"warn"': '"warning"',
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [("[policy\n", "\n"), ("a = \n", ""), ("a = 1\na = 2\n", ""), ('x = "a\n', ""), ("[a]\n[a]\n", "")],
)
def test_what_is_no_toml_is_one_error(text: str, what: str) -> None:
    (one,) = found(text)
    assert one[1:3] == ("ST801", "error")
    assert what in text


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/**/tamis.toml")))
def test_right_settings_are_silent(path: Path) -> None:
    assert found(path.read_text("utf-8")) == []


def test_the_editor_gets_them_as_they_are_typed(tmp_path: Path) -> None:
    uri = (tmp_path / "tamis.toml").as_uri()
    with Client(cwd=tmp_path) as client:
        client.start(tmp_path, {}, {})
        client.open(uri, "strictJson = 1\n", "toml")
        (item,) = client.published(uri)
        assert (item["code"], item["severity"]) == ("ST803", 2)
        assert item["range"]["start"] == {"line": 0, "character": 13}
        client.stop()


KEYS = st.text("abc-_\"'. é", min_size=1, max_size=5)


@given(
    st.recursive(
        st.integers(-9, 9) | st.booleans() | st.text(max_size=6),
        lambda part: st.lists(part, max_size=2) | st.dictionaries(KEYS, part, max_size=3),
    )
)
def test_the_scan_finds_every_key_of_inline_tables(value: Any) -> None:
    text = f"top = {written(value)}\n"
    assert tomllib.loads(text) == {"top": value}
    places = toml_places(text)
    for path in paths(value, ("top",)):
        assert path in places
        key, span = places[path]
        assert tomllib.loads(f"{text[slice(*key)]} = {text[slice(*span)]}")


@given(st.text("[]{}=,.\"'#\n ab1é", max_size=40), st.integers(0, len(WRONG)), st.integers(0, 30))
def test_half_typed_settings_are_analysed(put: str, at: int, cut: int) -> None:
    text = WRONG[:at] + put + WRONG[at + cut :]
    snapshot = Snapshot("/w/tamis.toml", "settings", text, None)
    for finding in diagnose(snapshot):
        assert 0 <= finding.span[0] <= finding.span[1] <= len(text)


def written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return "{ " + ", ".join(f"{quoted(key)} = {written(part)}" for key, part in value.items()) + " }"


def quoted(text: str) -> str:
    return '"' + "".join(char if char.isalnum() or char in " -_.'" else f"\\U{ord(char):08x}" for char in text) + '"'


def paths(value: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [path]
    return [path, *(below for key, part in value.items() for below in paths(part, (*path, key)))]
