"""The call that is being written (``parse/feed``): what is shown of it is what the finished call holds (rulings 11, 17, 22, 25, 28, 56)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.model import Json, ReadOptions, ToolHint
from tamis.protocols.reader import read_text
from tamis.protocols.streaming.partial import Partial
from tamis.protocols.streaming.reader import progress_of
from tests.growth import growth
from tests.protocols.reader_helpers import codes
from tests.protocols.streams import feed, pieces

TAM_OPEN, TAM_CLOSE = "<|[REQUEST_TOOL]|>", "<|[END_TOOL]|>"
VCP_OPEN, VCP_CLOSE = "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>"


class Shown:
    """What a display knows of a block."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.tools: list[str] = []
        self.done: set[str] = set()

    def take(self, partial: Partial | None) -> None:
        if partial is None:
            return
        if partial.tool_id is not None and partial.tool_id not in self.tools:
            self.tools.append(partial.tool_id)
        self.done |= set(partial.done)
        for new in partial.new:
            before = "" if new.length == len(new.text) else self.values[new.argument]
            self.values[new.argument] = before + new.text
            assert len(self.values[new.argument]) == new.length


def shown(chunks: list[str], protocol: str, options: ReadOptions | None = None) -> Shown:
    """What is shown of the one block that the pieces are."""
    progress = progress_of(protocol, options or ReadOptions())
    result = Shown()
    for chunk in chunks:
        result.take(progress.feed(chunk))
    return result


def agree(text: str, cuts: Sequence[int], protocol: str) -> None:
    """What was shown at any time is the beginning of what the call holds that the reader gives."""
    document = read_text(text, protocol)
    if len(document.calls) != 1 or not document.calls[0].executable or {"TM223", "TC060"} & set(codes(document)):
        return
    (call,) = document.calls
    args = call.args(text)
    result = shown(pieces(text, cuts), protocol)
    assert result.tools in ([], [call.tool_id]), text
    assert result.done <= set(args), (text, result.done)
    for name, value in result.values.items():
        whole = args[name]
        assert isinstance(whole, str)
        assert whole.lstrip().startswith(value.strip()), (text, name, value, whole)


FRAGMENTS = st.sampled_from(
    [
        *("a", "b c", "word word word word", " ", "\n", "\n\n", "\n# x", "# y: »»»z", "«", "««", "»", "»»", "»»»", "<", "<<", "<<<", ">", ">>"),
        *(TAM_OPEN, TAM_CLOSE, "<|[", "<|[END", "\nkey: ", "\nkey:", "\nkey:»»", "\nkey: >>", "key:»»»", ", x:", "\n- k:", ",", ";", "|", "`"),
        *(VCP_CLOSE, VCP_OPEN, "「末」", "「末", "「始」", "「", "\nkey:「始", "末", "<<<[", "\nkey:「始」", "[end]", "(末)", "//", "```\n", "🎉", "\u200b"),
    ]
)  # fmt: skip
VALUES = st.lists(FRAGMENTS, max_size=6).map("".join)
CUTS = st.lists(st.integers(0, 200), max_size=20) | st.sampled_from([range(400), range(0, 400, 3)])
HEADS = st.sampled_from(["»»»", "»»»", "»»»", "»»»»", "»»»»»", ">>>", " »»»", "\n»»»"])
TAILS = st.sampled_from(["«««", "«««", "«««", "««««", "«««««", "<<<", "««", ""])
GAPS = st.sampled_from(
    ["\n", "\n", "\n", "\n# note: »»» x «««\n", "\n# <b>\n", "  # c\n", "\n// y\n", ", ", "\n\n", "\n```\n", ";\n", "\n- ", "\nnoise\n", "\n# END <|[\n"]
)  # fmt: skip
FIELDS = st.lists(st.tuples(GAPS, HEADS, VALUES, TAILS), max_size=4)


@given(FIELDS, HEADS, TAILS, GAPS, CUTS)
def test_what_is_shown_of_a_tam_block_is_in_the_finished_call(
    fields: list[tuple[str, str, str, str]], head: str, tail: str, last: str, cuts: Sequence[int]
) -> None:  # rulings 11, 22, 25, 56
    text = f"{TAM_OPEN}\ncommand:{head}write{tail}"
    for number, (gap, begin, value, end) in enumerate(fields):
        text += f"{gap}{'pqrs'[number] * 2}:{begin}{value}{end}"
    agree(f"{text}{last}{TAM_CLOSE}", cuts, "tam")


VCP_ENDS = st.sampled_from(
    [
        ("「始」", "「末」"),
        ("「始」", "「末」"),
        ("「始ESCAPE」", "「末ESCAPE」"),
        ("「始exp」", "「末exp」"),
        ("「始」", ""),
    ]
)
VCP_GAPS = st.sampled_from([",\n", ",\n", "\n", ",", "、\n", "\n\n", "\n- ", ",\n```\n", "\nnoise\n"])


@given(st.lists(st.tuples(VCP_GAPS, VCP_ENDS, VALUES), max_size=4), VCP_GAPS, CUTS)
def test_what_is_shown_of_a_vcp_block_is_in_the_finished_call(
    fields: list[tuple[str, tuple[str, str], str]], last: str, cuts: Sequence[int]
) -> None:  # rulings 11, 28
    text = f"{VCP_OPEN}\ntool_name:「始」write「末」"
    for number, (gap, (begin, end), value) in enumerate(fields):
        text += f"{gap}{'pqrs'[number] * 2}:{begin}{value}{end}"
    agree(f"{text}{last}{VCP_CLOSE}", cuts, "vcp")


COMMENTED = st.lists(st.sampled_from(["<!-- c -->", "<!--", "-->", " ", "\n", "a", "b ", "<![CDATA[", "x]]>", "&amp;", "--", "<"]), max_size=6).map("".join)  # fmt: skip


@given(COMMENTED, CUTS)
def test_a_comment_in_a_text_value_of_action_is_shown_as_it_is_kept(
    value: str, cuts: Sequence[int]
) -> None:  # ruling 17
    text = f"<ACTION><w><p>{value}</p></w></ACTION>"
    document = read_text(text, "action")
    if len(document.calls) != 1 or not document.calls[0].executable or document.calls[0].repairs:
        return
    whole = document.calls[0].args(text).get("p")
    if isinstance(whole, str) and "&" not in text:
        assert whole.strip().startswith(shown(pieces(text, cuts), "action").values.get("p", "").strip())


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize(
    ("block", "args"),
    [
        ("command:»»»w«««\np:»»»»a««««\nq:»»»b«««", {"p": "»a«", "q": "b"}),
        ("command:»»»»w««««\np:»»»»a««««\nq:»»»b«««", {"p": "»a«", "q": "b"}),
        ("command:»»»w«««\n# p:»»»no«««\np:»»»a«««  # q:»»»no«««\nq:»»»b # c«««", {"p": "a", "q": "b # c"}),
        ("command:»»»w«««\np:>>>a<<<\nfilePath:»»»b«««", {"p": "a", "file_path": "b"}),
        ("command:»»»w«««\np:»»»a\nq:»»»b«««", {"p": "a", "q": "b"}),
        ("command:»»»w«««\non_error:»»»stop«««\nuri_z:»»»x:y«««\np:»»»a\n# k\nb «« c«««", {"p": "a\n# k\nb «« c"}),
        ("command_1:»»»w«««\np_1:»»»a«««\nq1:»»»b«««", {"p": "a", "q": "b"}),
    ],
)
def test_the_whole_of_each_tam_value_is_shown(block: str, args: dict[str, Json], size: int) -> None:
    """Rulings 20, 22, 25, 56: nothing of a value is left out when it is closed."""
    text = f"{TAM_OPEN}\n{block}\n{TAM_CLOSE}"
    (call,) = read_text(text).calls
    assert (call.executable, call.args(text)) == (True, args)
    # All but the last piece, with which the call comes.
    whole = text[: -len(TAM_CLOSE)]
    result = shown([whole[at : at + size] for at in range(0, len(whole), size)], "tam")
    assert {name: value.strip() for name, value in result.values.items()} == args
    assert result.done == set(args)


@pytest.mark.parametrize("size", [1, 4, 1_000])
def test_a_vcp_value_that_holds_markers_is_shown_when_it_is_closed(size: int) -> None:  # ruling 28
    value = f"before {VCP_CLOSE}\n{VCP_OPEN} after"
    block = f"{VCP_OPEN}\ntool_name:「始」w「末」,\np:「始」{value}「末」,\nq:「始」x「末」\n"
    (call,) = read_text(block + VCP_CLOSE).calls
    assert call.args(block + VCP_CLOSE) == {"p": value, "q": "x"}
    assert shown([block[at : at + size] for at in range(0, len(block), size)], "vcp").values == {"p": value, "q": "x"}


def test_arguments_have_the_names_that_the_schema_declares() -> None:  # ruling 20
    tools = {"w": ToolHint("w", {"properties": {"scriptPath": {}, "comment": {}}})}
    block = f"{TAM_OPEN}\ncommand:»»»w«««\nscript_path:»»»a«««\ncomment:»»»b«««\n"
    assert shown([block], "tam", ReadOptions(tools=tools)).values == {"scriptPath": "a", "comment": "b"}


def test_a_step_shows_its_own_arguments() -> None:  # rulings 20, 28
    tam = f"{TAM_OPEN}\ncommand_1:»»»a«««\np_1:»»»x«««\ncommand_2:»»»b«««\np_2:»»»y«««\np_1:»»»z«««\n"
    vcp = f"{VCP_OPEN}\ntool_name:「始」a「末」\ncommand1:「始」c「末」\np1:「始」x「末」\ncommand2:「始」d「末」\np2:「始」y「末」\n"
    for text, protocol, wanted in ((tam, "tam", ["a", "b"]), (vcp, "vcp", ["a"])):
        result = shown([*text], protocol)
        assert result.tools == wanted
        assert result.values["p"] == "y"


def test_what_is_undecided_is_not_shown() -> None:
    """Rulings 18, 22, 50: a marker in a value, a line that may be the next field, the beginning of a delimiter."""
    head = f"{TAM_OPEN}\ncommand:»»»w«««\np:»»»a"
    for rest in (f" {TAM_CLOSE}\nmore", " <|[END", "\nq:»»", "\nq: ", " ««", " <<<", "\n# note", f" {TAM_OPEN}\nx"):
        assert shown([*head, *rest], "tam").values["p"].strip() == "a", rest
    for rest in ("\nq: x", "\none two three four", " « b", " <b", ", that is: it"):
        assert len(shown([*head, *rest, "! "], "tam").values["p"]) > len("a") + 1, rest


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize(
    "unit", ["word ", "\nkey:", "«« ", TAM_CLOSE, "\n# c", "\n", ">>", "\nk:»» ", "<", "»»»» «", "、"]
)
def test_the_cost_of_a_piece_does_not_grow(unit: str) -> None:  # ruling 11
    def run(text: str) -> None:
        progress = progress_of("tam", ReadOptions())
        for at in range(0, len(text), 16):
            progress.feed(text[at : at + 16])

    def text(count: int) -> str:
        return f"{TAM_OPEN}\ncommand:»»»w«««\np:»»»{unit * count}"

    # Patterns are compiled at their first use.
    run(text(100))
    assert growth(text, run, 6_000) <= 9


def test_a_stream_shows_the_block_that_it_reads() -> None:
    text = f"{TAM_OPEN}\ncommand:»»»w«««\n# p:»»»no«««\np:»»»»a«««\n"
    result = Shown()
    for fed in feed([text[at : at + 3] for at in range(0, len(text), 3)]):
        result.take(fed.partial)
    assert (result.tools, result.values) == (["w"], {"p": "»a"})
