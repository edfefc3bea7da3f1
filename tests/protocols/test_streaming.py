"""What a stream gives, and when: text without markers, calls when they are certain, the call being written."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import Markers, Source
from tamis.protocols.model import Block, Call, ReadOptions
from tamis.protocols.plugins import find_protocol, register
from tamis.protocols.positions import LineCounter, LineIndex, PositionEncoding, Span
from tamis.protocols.reader import read_text
from tamis.protocols.streaming.reader import StreamReader
from tests.growth import growth
from tests.protocols.plugin_source import example_source
from tests.protocols.streams import called, check_stream, feed, shown

ACTION = "<ACTION><T><a>x</a></T></ACTION>"
TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»x«««\np:»»»v«««\n<|[END_TOOL]|>"
VCP = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」x「末」,\np:「始」v「末」\n<<<[END_TOOL_REQUEST]>>>"
MARKERS = [
    "<ACTION>",
    "<action>",
    '<ACTION id="1">',
    "< ACTION >",
    "＜ACTION＞",
    "<|[REQUEST_TOOL]|>",
    "<| [request tool] |>",
    "<<<[TOOL_REQUEST]>>>",
    "<<[TOOL_REQUEST_EXP]>>",
    "《《《[TOOL_REQUEST]》》》",
]


def chunked(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_in_pieces_never_leaks(marker: str, size: int) -> None:  # F17
    given = shown(feed(chunked(f"Text a < b. {marker}\nmore", size)))
    assert given == "Text a < b. "


@pytest.mark.parametrize("block", [ACTION, TAM, VCP])
def test_closing_markers_and_what_stands_in_a_block_are_not_shown(block: str) -> None:  # F17
    assert shown(feed(f"before {block} after.")) == "before  after."


@pytest.mark.parametrize("text", ["a < b and c <d> <ac", "`x` ``` <<< 《", "<aaaa" * 50, "<think>a</think> <<b 3 << 4"])
def test_no_more_is_held_back_than_could_begin_a_marker(text: str) -> None:  # F18
    reader = StreamReader()
    given = 0
    for at, char in enumerate(text, 1):
        given += len(reader.feed(char).text)
        assert at - given <= 5
    assert given + len(reader.rest.text) >= len(text) - 5


@pytest.mark.parametrize("block", [TAM, VCP])
def test_a_pair_block_is_a_call_with_the_last_character_of_its_closing_marker(block: str) -> None:
    feds = feed(block)
    assert [bool(fed.calls) for fed in feds] == [False] * (len(block) - 1) + [True]


WORDY = "<ACTION><T><a>x y </a></T></ACTION>"
"""Its closing tags could be quoted by its own value."""


@pytest.mark.parametrize(
    "block",
    [
        ACTION,
        "<ACTION><T><a>some words</a></T></ACTION>",
        "<ACTION>\n<T>\n<a>x y</a>\n</T>\n</ACTION>",
        "<ACTION><T><a><![CDATA[x y]]></a></T></ACTION>",
        "<ACTION><tool_id>T</tool_id><inputs><input name='a'>x</input></inputs></ACTION>",
    ],
)
def test_an_action_call_comes_with_the_last_character_of_its_closing_marker(block: str) -> None:
    feds = feed(block)
    assert [bool(fed.calls) for fed in feds] == [False] * (len(block) - 1) + [True]


def test_an_action_call_whose_end_its_own_value_may_quote_comes_with_the_next_marker_or_the_end() -> None:  # F4
    reader = StreamReader()
    assert called([reader.feed(f"{WORDY} and then text ")]) == []
    assert called([reader.feed("<ACTION>"), reader.feed(" ")]) == [("T", True)]
    reader = StreamReader()
    assert called([reader.feed(f"{WORDY} and then text ")]) == []
    reader.close()
    assert called([reader.rest]) == [("T", True)]


def test_an_action_call_without_parameters_comes_with_its_closing_marker() -> None:
    assert called(feed(["<ACTION><now/></ACTION>"])) == [("now", True)]


def test_a_second_run_of_closing_tags_keeps_a_call_from_running() -> None:  # F4, AX112
    feds = feed([WORDY, " y</a></T></ACTION>", " more"])
    assert [called([fed]) for fed in feds] == [[], [("T", False)], []]


def test_a_second_action_block_is_given_and_does_not_run() -> None:  # ruling 14
    assert called(feed([ACTION, ACTION])) == [("T", True), ("T", False)]
    assert (
        called(feed([ACTION, ACTION, " <ACTION> "], options=ReadOptions(allow_multiple_blocks=True)))
        == [("T", True)] * 2
    )


def test_several_tam_blocks_all_run_as_they_come() -> None:  # ruling 14
    assert [called([fed]) for fed in feed([TAM, "text", TAM])] == [[("x", True)], [], [("x", True)]]


def test_a_block_that_may_be_wrapped_by_its_fence_waits_for_the_end() -> None:  # ruling 7
    feds = feed(["```\n", TAM, "\n", "```\n", "more"])
    assert [called([fed]) for fed in feds] == [[], [], [], [], [("x", False)]]
    assert shown(feds) == f"```\n{TAM}\n```\nmore"
    reader = StreamReader()
    assert not reader.feed(f"```\n{TAM}\n```\n").calls
    assert [call.executable for call in reader.close().calls] == [True]
    assert [call.call.executable for call in reader.rest.calls] == [True]


def test_a_fence_with_other_lines_is_shown_whole_and_runs_nothing() -> None:  # ruling 7
    feds = feed(["```\n", TAM, "\nother", "\n```\n"])
    assert [called([fed]) for fed in feds] == [[], [], [("x", False)], []]
    assert shown(feds) == f"```\n{TAM}\nother\n```\n"


def test_a_fenced_vcp_block_is_an_example_at_once() -> None:  # ruling 7
    feds = feed(["```\n", VCP])
    assert called(feds) == [("x", False)]
    assert shown(feds) == f"```\n{VCP}"


def test_reasoning_is_text_and_runs_nothing() -> None:  # ruling 5
    text = f"<think>so {TAM} </think> yes"
    feds = feed(text)
    assert called(feds) == [("x", False)]
    assert shown(feds) == text
    assert called(feed(text, options=ReadOptions(reasoning_calls="run"))) == [("x", True)]


def test_a_marker_in_inline_code_is_text() -> None:  # ruling 6
    assert shown(feed("Write `<ACTION>` first.")) == "Write `<ACTION>` first."


def test_a_mention_is_shown_when_the_next_marker_shows_that_it_was_one() -> None:  # ruling 6
    feds = feed(["The <ACTION> tag. ", "<ACTION>", "<T/>"])
    assert [fed.text for fed in feds] == ["The ", "<ACTION> tag. ", ""]


@pytest.mark.parametrize("text", ["Wrap it in <ACTION>…</ACTION> tags.\nThen ", "Empty:\n<ACTION></ACTION>\nThen "])
def test_a_pair_of_markers_without_a_call_is_known_with_its_line(text: str) -> None:  # ruling 6
    feds = feed(text + "more")
    assert shown(feds).endswith("Then more")
    check_stream(list(text))


def test_a_definition_block_is_shown_while_it_comes() -> None:
    assert shown(feed("<<<[TOOL_DEFINITION]>>>\ntool_name: x\n")) == "<<<[TOOL_DEFINITION]>>>\ntool_name: x\n"


def test_a_repaired_block_comes_when_nothing_behind_it_reads_it_otherwise() -> None:
    text = "<ACTION><T><a>i < n && j</a></T></ACTION>"
    call = next(call for fed in feed([text, "<ACTION> "]) for call in fed.calls)
    assert call.args == {"a": "i < n && j"}
    assert {diag.code for diag in call.call.repairs} == {"AX110", "AX111"}


def test_call_json_is_one_block_that_its_end_decides() -> None:  # W14
    text = '{"toolName": "x", "arguments": {"a": "1"}}'
    reader = StreamReader()
    feds = [reader.feed(char) for char in text]
    assert (shown(feds), called(feds)) == ("", [])
    reader.close()
    assert called([reader.rest]) == [("x", True)]


def test_text_that_only_begins_like_json_flows() -> None:
    assert shown(feed(["[1]", " see ", "there ", TAM])) == "[1] see there "


def test_strict_calls_come_with_the_end() -> None:
    options = ReadOptions(strict=True)
    assert called(feed([TAM, " x"], options=options)) == []
    check_stream([TAM, " x ", ACTION, "</ACTION>\n", TAM], options=options)


def test_nothing_is_given_for_an_empty_piece() -> None:
    assert StreamReader().feed("").text == ""


def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(ValueError, match="unknown protocol 'x'; known: action, tam, vcp"):
        StreamReader("x")


@pytest.mark.parametrize("text", [ACTION[:-1], TAM[:-1], VCP[:-1], "<ACTION><T><a>", "<ACTION><T><a>x</a></T>"])
def test_a_text_that_was_cut_off_runs_nothing(text: str) -> None:  # F1
    reader = StreamReader()
    reader.feed(text)
    document = reader.close(complete=False)
    assert document == read_text(text, options=ReadOptions(complete=False))
    assert not any(call.executable for call in document.calls)


# --- the call that is being written -----------------------------------------------------------------------------------

VALUE = "line one\n  <b>two</b> & &lt; ]] 「末 «« 中🎉 three"
WRITTEN = {
    "tag": f"<ACTION>\n<w>\n<p>a</p><c>{VALUE}</c></w></ACTION>",
    "cdata": f"<ACTION><w><p>a</p><c><![CDATA[{VALUE}]]></c></w></ACTION>",
    "inputs": f'<ACTION><tool_id>w</tool_id><inputs><input name="p">a</input><input name="c">{VALUE}</input></inputs></ACTION>',
    "tam": f"<|[REQUEST_TOOL]|>\ncommand:»»»w«««\np:»»»a«««\nc:»»»{VALUE}«««\n<|[END_TOOL]|>",
    "vcp": f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」w「末」,\np:「始」a「末」,\nc:「始」{VALUE}「末」\n<<<[END_TOOL_REQUEST]>>>",
}


@pytest.mark.parametrize("size", [1, 4, 7, 30])
@pytest.mark.parametrize("form", WRITTEN)
def test_the_value_being_written_is_shown_piece_by_piece(form: str, size: int) -> None:
    values: dict[str, str] = {}
    tools: list[str | None] = []
    done: set[tuple[str, ...]] = set()
    for fed in feed(chunked(WRITTEN[form], size)):
        if fed.partial is None:
            continue
        tools.append(fed.partial.tool_id)
        done.add(fed.partial.done)
        for new in fed.partial.new:
            values[new.argument] = values.get(new.argument, "") + new.text
            assert new.length == len(values[new.argument])
    assert tools[-1] == "w"
    assert set(tools) <= {None, "w"}
    assert ("p",) in done
    # What came with the last piece of the block came as a call.
    assert values["p"] == "a"
    assert VALUE.startswith(values.get("c", ""))
    assert len(values.get("c", "")) >= len(VALUE) - size


def test_a_partial_call_names_the_argument_and_those_before() -> None:
    partial = feed(["<ACTION><w><p>a</p><c>some te"])[0].partial
    assert partial is not None
    assert (partial.protocol, partial.tool_id, partial.done, partial.argument) == ("action", "w", ("p",), "c")
    assert [(new.argument, new.text, new.length) for new in partial.new] == [("p", "a", 1), ("c", "some te", 7)]


def test_there_is_no_partial_call_outside_blocks() -> None:
    assert [fed.partial for fed in feed(["text ", TAM, " text"])] == [None, None, None]


# --- plug-ins ---------------------------------------------------------------------------------------------------------


class Curly:
    """``{{call x}}`` as a plug-in's whole protocol."""

    id = "curly"
    markers = Markers(open="{{call", close="}}", stray=r"(?!)", final_close=True)

    @property
    def opener(self) -> object:
        import re

        return re.compile(r"\{\{call ")

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        del options
        end = source.text.find("}}", opener[1], limit)
        if end < 0:
            return Block("curly", opener, opener, state="mention")
        name = (opener[1], end)
        call = Call("curly", source.text[opener[1] : end], name, (opener[0], end + 2))
        return Block("curly", (opener[0], end + 2), opener, (end, end + 2), calls=[call])


def test_a_plug_in_says_when_its_blocks_are_certain() -> None:
    if find_protocol("curly") is None:
        register(Curly())  # pyright: ignore[reportArgumentType] - reading is all that is asked of it here
    text = "a {{call x}} b { c {{call y}} d"
    feds = feed(text, "curly")
    assert called(feds) == [("x", True), ("y", True)]
    assert shown(feds) == "a  b { c  d"
    check_stream(list(text), "auto", ReadOptions(also=("curly",)))
    unsaid = msgspec.structs.replace(Curly.markers, final_close=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curly, "markers", unsaid)
        assert called(feed(text, "curly")) == []
        check_stream(list(text), "curly")


INVOKE = '<invoke name="core:x"><parameter name="p">text</parameter></invoke>'


@pytest.mark.parametrize("size", range(1, 11))
def test_the_plug_in_of_the_documentation_never_leaks(size: int) -> None:  # F17
    if find_protocol("invoke") is None:
        space: dict[str, object] = {}
        exec(compile(example_source(), "tamis_invoke.py", "exec"), space)
        register(space["INVOKE"])  # pyright: ignore[reportArgumentType] - the example has no types
    text = f"before {INVOKE} <inv {INVOKE} after"
    feds = feed(chunked(text, size), "invoke")
    assert called(feds) == [("core:x", True)] * 2
    assert shown(feds) == "before  <inv  after"
    check_stream(chunked(text, size), "auto", ReadOptions(also=("invoke",)))


# --- blocks with findings ---------------------------------------------------------------------------------------------

MISSPELT = "<ACTION><say><text>x</txt></say></ACTION>"


def test_text_flows_behind_a_block_that_no_later_tag_can_change() -> None:
    feds = feed([MISSPELT, " behind", "<ACTION> "])
    assert [fed.text for fed in feds] == ["", " behind", ""]
    assert [called([fed]) for fed in feds] == [[], [], [("say", True)]]


def test_text_waits_behind_a_block_that_a_later_tag_may_change() -> None:
    assert shown(feed(["<ACTION><say><text>x</text></ACTION>", " behind"])) == ""


MENDED = st.lists(
    st.sampled_from(
        [MISSPELT, *("<ACTION>", "</ACTION>", "<T>", "</T>", "<a>x", "</a>", "<b>", "</b>", " y ", "</a></T></ACTION>")]
        + [f"<ACTION><T><a>x{end}</ACTION>" for end in ("</T></a>", "</a>", "<b>y</a></T>", "</b></T>", "</b> y</a></T>")]
    ),
    max_size=9,
).map("".join)  # fmt: skip


@pytest.mark.slow
@given(MENDED, st.booleans())
def test_tags_that_do_not_fit_never_give_what_the_end_takes_back(text: str, several: bool) -> None:  # P8, P9
    check_stream(list(text), options=ReadOptions(allow_multiple_blocks=several))


@pytest.mark.parametrize("block", ["<ACTION><w><c>a <b> c</c></w></ACTION>", f"{TAM[:-1]}x"])
def test_there_is_no_partial_call_behind_the_closing_marker(block: str) -> None:
    assert [fed.partial for fed in feed([block, " then", " more"])] == [None] * 3


# --- places and cost --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_lines_are_counted_on(encoding: PositionEncoding) -> None:  # ruling 9
    text = f"😀\r\nab\r😀x {TAM}é{TAM}\n\n中{TAM}"
    reader = StreamReader()
    lines, index = LineCounter(reader.slice, encoding), LineIndex(text)
    found = 0
    for char in text:
        for call in reader.feed(char).calls:
            found += 1
            places = lines.block(call.block, call.start)
            for span in (call.call.span, call.call.tool_span, call.call.params[0].value.span):
                assert [places.position(at, encoding) for at in span] == [index.position(at, encoding) for at in span]
    assert found == 3


_FILL = "some words of a value, line after line\n"
STRESS = {
    "prose": lambda n: "3 < 5 & more, 中文.\n" * n,
    "one value": lambda n: "<ACTION><T><p><![CDATA[" + _FILL * n + "]]></p></T></ACTION>",
    "blocks": lambda n: (_FILL + TAM + "\n" + ACTION) * n,
    "openers": lambda n: "<ACTION> " * n,
    "pair openers": lambda n: "<|[REQUEST_TOOL]|> <<<[TOOL_REQUEST]>>> " * n,
    "closers in a value": lambda n: "<ACTION><T><p><![CDATA[" + "</p></T></ACTION>\n" * n,
    "end markers in a value": lambda n: VCP[:40] + "\n<<<[END_TOOL_REQUEST]>>>" * n,
    "fences": lambda n: "```a\nb\n~~~\n" * n,
    "fenced blocks": lambda n: "```\n" + (ACTION + "\n") * n,
    "backticks": lambda n: "` `` ``` x" * n,
    "one run": lambda n: "`" * n,
    "a marker without end": lambda n: "<ACTION " + "a" * n,
    "blanks in a marker": lambda n: "<" + " " * n,
    "a definition without end": lambda n: "<<<[TOOL_DEFINITION]>>>\n" + "<a `b` {c}\n" * n,
    "brackets": lambda n: "[" * n,
    "json": lambda n: '{"a": [' + '"x", {"b": 1}, ' * n,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.share(8)
@pytest.mark.parametrize("name", STRESS)
def test_each_token_costs_the_same(name: str) -> None:  # ruling 10, F18
    def read(text: str) -> None:
        feed(chunked(text, 4))

    # Below the size of the window that is looked at again, the cost of a token still grows.
    assert growth(STRESS[name], read, 800 if name == "backticks" else 20) <= 8


@pytest.mark.parametrize("size", [1, 4])
def test_text_behind_a_comparison_is_not_held_back(size: int) -> None:  # F17
    reader = StreamReader()
    text = "Where a < b the loop goes on, "
    given_so_far = "".join(reader.feed(piece).text for piece in chunked(text, size))
    assert given_so_far == text
