"""Properties of reading: it never raises, loses nothing, points at what it says, and never runs half a call."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis.protocols.action import protocol as action
from tamis.protocols.action.decode import as_cdata, escape
from tamis.protocols.model import Document, Param, Piece, ReadOptions, Value
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits, safe_edits

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda n: n.lower()
    not in {"action", "item", "tool", "inputs", "input", "param", "params", "arg", "args", "parameter", "call", "invoke",
            "function", "tool_id", "argument", "arguments", "parameters", "toolid", "tool_name"}
)  # fmt: skip
TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t<>&]![CDATA\"'/-—中🎉"), max_size=40
)
SNIPPETS = st.sampled_from(
    [
        "<ACTION>",
        "</ACTION>",
        "<T>",
        "</T>",
        "<a>",
        "</a>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "&",
        "&lt;",
        "<",
        ">",
        "text",
        "\n",
        "```",
        "`",
        "<think>",
        "</think>",
        "<tool_id>",
        "</tool_id>",
        "<inputs>",
        "</inputs>",
        "<input",
        "",
        "",
        'name="q"',
        ">",
        "<a/>",
        "<T",
        "<?",
        "?>",
        "<!DOCTYPE",
        "\u200b",
        "</",
        "<ACTION",
        "\\",
        "“",
        "＜ACTION＞",
        "＜/ACTION＞",
        "<|[REQUEST_TOOL]|>",
        "<|[END_TOOL]|>",
        "»»»",
        "«««",
        "command:",
        "<<<[TOOL_REQUEST]>>>",
        "<<<[END_TOOL_REQUEST]>>>",
        "「始」",
        "「末」",
        "tool_name:",
    ]
)
NOISY = st.lists(SNIPPETS, max_size=30).map("".join)


def _params(document: Document) -> list[Param]:
    return [param for call in document.calls for param in call.params]


def _canonical(tool: str, params: dict[str, str], shape: str) -> str:
    if shape == "tag":
        body = "".join(f"\n    <{k}>{as_cdata(v)}</{k}>" for k, v in params.items())
        return f"<ACTION>\n  <{tool}>{body}\n  </{tool}>\n</ACTION>"
    body = "".join(f'\n    <input name="{k}">{as_cdata(v)}</input>' for k, v in params.items())
    return f"<ACTION>\n  <tool_id>{tool}</tool_id>\n  <inputs>{body}\n  </inputs>\n</ACTION>"


CALLS = st.tuples(NAMES, st.dictionaries(NAMES, TEXTS, max_size=4), st.sampled_from(["tag", "inputs"]))


@given(st.text(max_size=200))
@example("\ud800<ACTION>\udfff")
def test_random_text_never_raises(text: str) -> None:
    read_text(text)


@given(NOISY, st.booleans())
def test_random_markup_never_raises_and_is_covered(text: str, complete: bool) -> None:
    document = read_text(text, options=ReadOptions(complete=complete))
    assert document.response_span[0] == 0
    assert document.trailing_span[1] == len(text)
    assert document.response_span[1] <= document.trailing_span[0]
    at = 0
    for block in document.blocks:  # blocks are in order and do not overlap
        assert at <= block.span[0] <= block.span[1] <= len(text)
        at = block.span[1]
    for diag in document.diagnostics:
        assert 0 <= diag.span[0] <= diag.span[1] <= len(text)


@given(NOISY)
def test_what_the_pieces_say_is_what_stands_there(text: str) -> None:
    for param in _params(read_text(text)):
        for _, value in param.value.walk():
            start, end = value.span
            assert 0 <= start <= end <= len(text)
            for piece in value.pieces:
                assert start <= piece.start <= piece.end <= end


@given(CALLS)
def test_canonical_calls_come_back_exactly(call: tuple[str, dict[str, str], str]) -> None:
    tool, params, shape = call
    text = _canonical(tool, params, shape)
    document = read_text(text, "action")
    assert [(c.tool_id, c.args(text), c.executable) for c in document.calls] == [(tool, params, True)]
    for name, value in params.items():
        param = document.calls[0].param(name)
        assert param is not None
        assert text[slice(*param.name_span)] == name
        if "]]>" not in value:
            assert text[slice(*param.value.span)] == value


@given(TEXTS)
def test_escaped_text_is_decoded_without_loss(value: str) -> None:
    # The tags stand on the value's own lines, so that nothing of it is layout.
    text = f"<ACTION><T><p>x{escape(value)}x</p></T></ACTION>"
    document = read_text(text, "action")
    assert document.calls[0].args(text) == {"p": f"x{value}x"}
    found = document.calls[0].params[0].value
    for at, char in enumerate(f"x{value}x"):  # every decoded character leads back to its source
        start, end = found.source_span(at, at + 1)
        assert text[start:end] == char or text[start:end].startswith("&")


@given(CALLS, st.data())
def test_no_prefix_runs_a_changed_call(call: tuple[str, dict[str, str], str], data: Any) -> None:  # F1 P9
    tool, params, shape = call
    text = f"Text.\n{_canonical(tool, params, shape)}\nMore."
    cut = data.draw(st.integers(0, len(text)))
    document = read_text(text[:cut], "action", ReadOptions(complete=False))
    runs = [(c.tool_id, c.args(text)) for c in document.calls if c.executable]
    assert runs in ([], [(tool, params)])
    assert (runs != []) == (
        text[:cut].find("</ACTION>\n") >= 0 or text[:cut].endswith("</ACTION>")
    ) or "</ACTION>" in str(params)


@given(CALLS)
def test_canonical_and_tolerant_path_agree(call: tuple[str, dict[str, str], str]) -> None:
    text = _canonical(*call)
    with pytest.MonkeyPatch.context() as patch:
        fast = msgspec.to_builtins(read_text(text, "action").blocks)
        patch.setattr(action, "read_canonical", lambda *_: None)
        assert msgspec.to_builtins(read_text(text, "action").blocks) == fast


@given(NOISY.map(lambda t: f"<ACTION>{t}</ACTION>"))
def test_whatever_the_canonical_path_takes_the_tolerant_reads_alike(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fast = msgspec.to_builtins(read_text(text, "action").blocks)
        patch.setattr(action, "read_canonical", lambda *_: None)
        assert msgspec.to_builtins(read_text(text, "action").blocks) == fast


@given(NOISY.map(lambda t: f"<ACTION><T><a>{t}</a></T></ACTION>"))
def test_safe_fixes_keep_the_calls(text: str) -> None:  # P4
    document = read_text(text, "action")
    if document.blocks and all(call.executable for call in document.calls) and len(document.blocks) == 1:
        edits = safe_edits(document.diagnostics)
        assert all(a.end <= b.start for a, b in itertools.pairwise(edits))  # P6
        repaired = apply_edits(text, edits)
        calls = [(c.tool_id, c.args(text)) for c in document.calls]
        assert [(c.tool_id, c.args(repaired)) for c in read_text(repaired, "action").calls] == calls


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_places_are_exact_with_cjk_and_emoji(encoding: PositionEncoding) -> None:  # ruling 9 S9
    text = "好的，🎉\n<ACTION>\n  <说>\n    <文本>👩‍💻 完成 🎉 &lt;ok&gt;</文本><b>二</b>\n  </说>\n</ACTION>"
    document = read_text(text)
    call = document.calls[0]
    lines = LineIndex(text)
    rows = text.split("\n")
    units = {"utf-8": lambda s: len(s.encode()), "utf-16": lambda s: len(s.encode("utf-16-le")) // 2, "utf-32": len}[
        encoding
    ]
    places = [call.tool_span, *(p.name_span for p in call.params), *(p.value.span for p in call.params)]
    shown = [text[slice(*span)] for span in places]
    assert shown == ["说", "文本", "b", "👩‍💻 完成 🎉 &lt;ok&gt;", "二"]
    for (start, end), written in zip(places, shown, strict=True):
        line, character = lines.position(start, encoding)
        assert units(rows[line][: rows[line].index(written)]) == character or written == "b"
        assert lines.position(end, encoding) == (line, character + units(written))
        assert lines.offset(line, character, encoding) == start


def test_a_value_knows_the_source_of_each_character() -> None:
    value = Value("text", (10, 20), (Piece(10, 12), Piece(12, 16, "<"), Piece(16, 20)))
    assert [value.source_offset(i) for i in range(7)] == [10, 11, 12, 16, 17, 18, 19]
