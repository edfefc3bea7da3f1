"""A block in the value of another one is text: the outer block decides what runs (ruling 50)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tamis.protocols.hermes.protocol import HERMES
from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.plugins import find_protocol, register
from tamis.protocols.reader import read_text
from tests.protocols.nested_calls import FORMS, INNER_TOOL, OUTER_TOOL, inner_value, written

PAIRS = [(outer, inner) for outer in FORMS for inner in FORMS]
SAME_MARKS = {("tam", "tam"), ("vcp", "vcp"), ("vcp", "vcp escape"), ("vcp escape", "vcp escape")}
"""Where the inner block holds what closes the value around it: two readings, so that nothing runs (F4)."""


@pytest.fixture(scope="module", autouse=True)
def hermes() -> None:
    if find_protocol("hermes") is None:
        register(HERMES)


def read(text: str, *, complete: bool = True) -> Document:
    return read_text(text, options=ReadOptions(also=("hermes",), complete=complete))


def runs(document: Document) -> list[tuple[str, object]]:
    return [(call.tool_id, call.args(document.text)) for call in document.calls if call.executable]


def check_outer_decides(text: str, value: str, *, complete: bool = True) -> list[tuple[str, object]]:
    """Nothing runs but the outer call, with the inner block as text; gives what runs."""
    document = read(text, complete=complete)
    calls = runs(document)
    whole = {"first": "1", "body": value, "last": "z"}
    for tool_id, args in calls:
        assert tool_id == OUTER_TOOL, text
        assert isinstance(args, dict)
        assert args.items() <= whole.items(), text
    assert all(call.tool_id != INNER_TOOL or not call.executable for call in document.calls)
    return calls


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_a_closed_block_runs_with_the_inner_block_as_text(outer: str, inner: str) -> None:  # ruling 50
    value = inner_value(FORMS[inner])
    text = written(FORMS[outer], OUTER_TOOL, value)
    calls = check_outer_decides(text, value)
    if (outer, inner) in SAME_MARKS:
        assert calls == []
    else:
        assert calls == [(OUTER_TOOL, {"first": "1", "body": value, "last": "z"})]
        document = read(text)
        [block] = [block for block in document.blocks if block.state != "mention"]
        assert block.span == (0, len(text))
        [param] = [param for param in block.calls[0].params if param.name == "body"]
        assert param.value.text(text) == value if param.value.kind == "text" else param.value.python(text) == value


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_a_block_that_is_cut_off_anywhere_runs_nothing_of_what_it_quotes(
    outer: str, inner: str, is_long: bool
) -> None:  # rulings 50 and 51
    value = inner_value(FORMS[inner])
    text = written(FORMS[outer], OUTER_TOOL, value)
    step = 1 if is_long else 29
    for cut in range(len(outer) % step, len(text), step):
        for complete in (True, False):
            for rest in ("", "\n"):
                calls = check_outer_decides(text[:cut] + rest, value, complete=complete)
                assert complete or rest or not calls


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_prose_and_a_good_block_behind_a_block_that_is_cut_off_do_not_wake_the_inner_one(
    outer: str, inner: str
) -> None:  # ruling 50
    value = inner_value(FORMS[inner])
    form = FORMS[outer]
    text = written(form, OUTER_TOOL, value)
    end = text.index("like that.")
    if not form.json:
        check_outer_decides(f"I look.\n\n{text[:end]}\n\nThat was it.", value)


Parts = tuple[str, str]
"""What stands before and behind the value."""
Repair = Callable[[str, str], Parts | None]


def _without(*parts: str) -> Repair:
    def without(head: str, tail: str) -> Parts | None:
        for part in parts:
            at = tail.rfind(part)
            if at >= 0:
                return head, tail[:at] + tail[at + len(part) :]
        return None

    return without


def _instead(of: str, new: str) -> Repair:
    return lambda head, tail: (head.replace(of, new, 1), tail) if of in head else None


def _no_closer(head: str, tail: str) -> Parts | None:
    return None if tail.startswith('"') else (head, "\n" + tail.split("\n", 1)[1])


def _lower(head: str, tail: str) -> Parts | None:
    if tail.endswith("}") or "tool_call" in tail:
        return None
    first, last = head.split("\n", 1), tail.rsplit("\n", 1)
    return f"{first[0].lower()}\n{first[1]}", f"{last[0]}\n{last[1].lower()}"


REPAIRS: dict[str, Repair] = {
    "no closing marker": _without("</ACTION>", "<|[END_TOOL]|>", "<<<[END_TOOL_REQUEST]>>>", "</tool_call>"),
    "no tool closer": _without(f"</{OUTER_TOOL}>\n", "</inputs>\n"),
    "no closer of the last parameter": _without("</last>", "</input>", "«««", "「末」"),
    "no closer of the value": _no_closer,
    "no closer of the first parameter": _instead("1</", "1<"),
    "markers in lower case": _lower,
    "another attribute": _instead("<first>", '<first x="1">'),
    "full-width colon": _instead("first:", "first："),
    "other delimiters": _instead("»»»1«««", ">>>1<<<"),
    "other marks": _instead("「始」1「末」", "{始}1{末}"),
    "text between": _instead("<first>", "now <first>"),
    "single quotes": _instead('"first": "1"', "'first': '1'"),
    "no last bracket": _without("}"),
    "decorated name": _instead(f"<{OUTER_TOOL}>", f"<`{OUTER_TOOL}`>"),
}


def _spoilt(repair: str, outer: str, value: str) -> str | None:
    form = FORMS[outer]
    parts = REPAIRS[repair](*form.parts(OUTER_TOOL))
    return None if parts is None else parts[0] + form.value(value) + parts[1]


def _repaired() -> Iterator[tuple[str, str, str]]:
    for outer, inner in PAIRS:
        for repair in REPAIRS:
            if _spoilt(repair, outer, "") is not None:
                yield repair, outer, inner


@pytest.mark.parametrize(("repair", "outer", "inner"), list(_repaired()))
def test_a_block_that_needs_a_repair_never_gives_way_to_the_inner_one(
    repair: str, outer: str, inner: str
) -> None:  # ruling 50
    value = inner_value(FORMS[inner])
    text = _spoilt(repair, outer, value)
    assert text is not None
    check_outer_decides(text, value)


@pytest.mark.parametrize(
    "repair", ["no closing marker", "no tool closer", "no closer of the value", "markers in lower case"]
)
@pytest.mark.parametrize("outer", ["action tag", "action inputs"])
@pytest.mark.parametrize("inner", list(FORMS))
def test_an_action_block_with_one_repair_runs_with_the_inner_block_as_text(
    outer: str, inner: str, repair: str
) -> None:  # rulings 18 and 50
    value = inner_value(FORMS[inner])
    text = _spoilt(repair, outer, value)
    assert text is not None
    document = read(text)
    if inner == "hermes" and repair == "no closer of the value":
        # Its marker may as well be the next parameter.
        assert runs(document) == []
        return
    assert runs(document) == [(OUTER_TOOL, {"first": "1", "body": value, "last": "z"})]
    assert document.calls[0].repairs


@pytest.mark.parametrize("times", [2, 5, 40])
def test_blocks_quoted_in_quoted_blocks_belong_to_the_outermost_value(times: int) -> None:  # ruling 50
    value = "x"
    for _ in range(times):
        value = f"see <ACTION><{INNER_TOOL}><body>{value}</body></{INNER_TOOL}></ACTION> there"
    text = f"<ACTION><{OUTER_TOOL}><first>1</first><body>{value}</body><last>z</last></{OUTER_TOOL}></ACTION>"
    assert runs(read(text)) == [(OUTER_TOOL, {"first": "1", "body": value, "last": "z"})]
    assert runs(read(text[: -len("</ACTION>") - 20])) == []


def test_an_opener_behind_a_complete_tool_element_starts_the_next_block() -> None:  # rulings 14 and 18
    call = f"<ACTION><{OUTER_TOOL}><first>1</first></{OUTER_TOOL}>"
    document = read(f"{call}\n<ACTION><{INNER_TOOL}/></ACTION>")
    assert runs(document) == [(OUTER_TOOL, {"first": "1"})]
    assert [block.state for block in document.blocks] == ["complete", "rejected"]


def test_a_sentence_that_names_the_markup_hides_no_block() -> None:  # rulings 6 and 44
    good = written(FORMS["action tag"], OUTER_TOOL, "b")
    tam = written(FORMS["tam"], OUTER_TOOL, "b")
    for text in (
        f"Use the <ACTION><tool> form:\n\n{good}",
        f"Write <|[REQUEST_TOOL]|> with command:»»»name first.\n\n{tam}",
    ):
        assert [tool for tool, _ in runs(read(text))] == [OUTER_TOOL], text


def test_many_openers_in_an_open_value_are_read_in_linear_time() -> None:  # ruling 10
    for piece in ("<ACTION><a><b>x ", "<|[REQUEST_TOOL]|>\nx:»»»y\n", "<<<[TOOL_REQUEST]>>>\nx:「始」y\n"):
        assert runs(read(piece * 20_000)) == []
