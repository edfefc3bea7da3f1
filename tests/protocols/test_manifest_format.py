"""The canonical form of JSON files: nothing that means something changes, and formatting twice is formatting once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.manifest.format import FIELD_ORDER, format_json, format_manifest

values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=12,
)
manifests = st.dictionaries(st.one_of(st.sampled_from(FIELD_ORDER), st.text(max_size=4)), values, max_size=6)


@pytest.mark.slow
@given(manifests, st.sampled_from([None, 0, 1, 4]), st.booleans())
def test_meaning_stays_and_a_second_time_changes_nothing(
    made: dict[str, Any], indent: int | None, ascii_: bool
) -> None:
    text = json.dumps(made, indent=indent, ensure_ascii=ascii_)
    first = format_manifest(text).text
    assert first is not None
    assert json.loads(first) == made
    assert format_manifest(first).text == first
    assert [name for name in json.loads(first) if name in FIELD_ORDER] == [name for name in FIELD_ORDER if name in made]


@given(st.text(alphabet='{}[]",:/* \n\ra1.e-\\\ufeff', max_size=40))
def test_no_text_raises_and_what_is_formatted_stays_what_it_was(text: str) -> None:
    made = format_manifest(text)
    assert (made.text is None) == bool(made.why)
    if made.text is not None:
        assert format_manifest(made.text).text == made.text


def test_numbers_and_escapes_stay_as_they_are_written() -> None:
    text = '{"a":1.0,"b":1E5,"c":123456789012345678901234567890,"d":"\\u4e2d\\/","e":-0.0}'
    assert format_json(text).text == (
        '{\n  "a": 1.0,\n  "b": 1E5,\n  "c": 123456789012345678901234567890,\n  "d": "\\u4e2d\\/",\n  "e": -0.0\n}\n'
    )


def test_comments_stay_with_what_they_stand_at() -> None:  # ruling 31
    text = (
        '// head\n{\n  // about tags\n  "tags": [ // list\n    1, /* one */\n    // last\n  ], // behind\n'
        '  "toolId": "a" // id\n  // end\n}\n// foot\n'
    )
    made = format_manifest(text).text
    assert made == (
        '// head\n{\n  "toolId": "a", // id\n  // about tags\n  "tags": [\n    // list\n    1 /* one */\n    // last\n'
        "  ] // behind\n  // end\n}\n// foot\n"
    )
    assert format_manifest(made).text == made


def test_the_seeds_own_manifest_is_formatted_with_its_comments(tmp_path: Path) -> None:  # seed 003 §2.1
    text = (Path(__file__).parent / "seed_manifest.jsonc").read_text("utf-8")
    made = format_manifest(text)
    assert made.text is not None
    assert made.text.count("//") == text.count("//")


def test_deep_nesting_is_refused_in_words() -> None:
    assert "nested" in format_manifest("[" * 300 + "]" * 300).why or "nesting" in format_manifest("[" * 900).why
    assert format_manifest("[" * 100_000).why


def test_a_byte_order_mark_stays_and_the_handler_has_its_order() -> None:
    made = format_manifest(
        '\ufeff{"handler": {"x": 1, "language": "python", "scriptPath": "a.py", "type": "external-script"}}'
    )
    assert made.text is not None and made.text.startswith("\ufeff{")
    assert list(json.loads(made.text[1:])["handler"]) == ["type", "scriptPath", "language", "x"]
