"""The wire form of a reading (interface: ParseResult, Call, Diagnostic)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.protocols.reader import read_text
from tamis.protocols.wire import parse_result, to_range

TEXT = "去🎉\n<ACTION><T><args><file><path>a</path></file><file><path>b &amp; c</path></file></args><x/y>1</x/y></T></ACTION>\ntail"


def _wire(text: str, encoding: PositionEncoding | None = None) -> dict[str, Any]:
    return msgspec.to_builtins(parse_result(read_text(text), encoding))


def test_argument_ranges_name_every_container_and_leaf() -> None:
    call = _wire(TEXT)["calls"][0]
    ranges = call["argRanges"]
    assert list(ranges) == [
        "/args",
        "/args/file",
        "/args/file/0",
        "/args/file/0/path",
        "/args/file/1",
        "/args/file/1/path",
        "/x~1y",
    ]
    start, end = ranges["/args/file/1/path"]["offset"]
    assert TEXT[start:end] == "b &amp; c"
    assert call["args"] == {"args": {"file": [{"path": "a"}, {"path": "b & c"}]}, "x/y": "1"}


def test_fields_of_a_call() -> None:
    result = _wire(TEXT)
    call = result["calls"][0]
    assert (call["callId"], call["index"], call["protocol"], call["toolId"]) == ("call-1", 0, "action", "T")
    assert (call["complete"], call["executable"]) == (True, True)
    assert result["responseText"] == "去🎉\n"
    assert result["trailingText"] == "\ntail"
    assert result["blocks"][0]["complete"] is True


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 7), ("utf-16", 3), ("utf-32", 2)])
def test_ranges_count_in_the_negotiated_encoding(encoding: PositionEncoding, column: int) -> None:  # ruling 9
    text = "去🎉<ACTION><T/></ACTION>"
    block = _wire(text, encoding)["blocks"][0]
    assert block["range"]["start"] == {"line": 0, "character": column}
    assert "offset" not in block["range"]


def test_a_finding_has_its_edits_and_how_safe_they_are() -> None:
    text = "<ACTION><T><a>1</T></ACTION>"
    found = _wire(text)["diagnostics"][0]
    assert (found["code"], found["slug"], found["severity"]) == ("AX102", "missing-param-close", "warning")
    assert found["fix"] == [
        {
            "range": {"start": {"line": 0, "character": 15}, "end": {"line": 0, "character": 15}, "offset": (15, 15)},
            "newText": "</a>",
        }
    ]
    assert found["data"]["applicability"] == "safe"
    assert "<a> is never closed" in found["message"]


def test_repairs_are_in_the_diagnostics_too() -> None:
    result = _wire("<ACTION><T><a>x && y</a></T></ACTION>")
    repairs = result["calls"][0]["repairs"]
    assert [repair["code"] for repair in repairs] == ["AX111"]
    assert {repair["code"] for repair in repairs} <= {found["code"] for found in result["diagnostics"]}


def test_hints_are_never_repairs() -> None:
    result = _wire("```\n<ACTION><core:x/></ACTION>\n```")
    assert result["calls"][0]["repairs"] == []
    assert {found["severity"] for found in result["diagnostics"]} <= {"hint", "information"}


def test_seed_names_are_aliases() -> None:
    result = _wire("<|[REQUEST_TOOL]|>\ncommand:>>>T.t<<<\n<|[END_TOOL]|>")
    mixed = next(found for found in result["diagnostics"] if found["code"] == "TM210")
    assert mixed["data"]["aliases"] == ["mixed_delimiters_used"]


def test_the_result_is_json() -> None:
    encoded = msgspec.json.encode(parse_result(read_text(TEXT), "utf-16"))
    assert msgspec.json.decode(encoded)["calls"][0]["toolId"] == "T"


def test_an_empty_range_stays_empty() -> None:
    lines = LineIndex("ab\ncd")
    place = to_range((3, 3), lines, "utf-16")
    assert place.start == place.end
