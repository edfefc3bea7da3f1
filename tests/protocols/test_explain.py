"""What a reading assumed and what it did not take; and repairs that keep every call (P4)."""

from __future__ import annotations

import random

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Document, Edit, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.repair import MAX_ALTERNATIVES, apply_edits, explain, mended, repair, says
from tests.growth import growth
from tests.protocols.tam_vcp_blocks import tam, vcp

COMMAND, NAME = "command:»»»T.t«««", "tool_name:「始」A「末」,"


def alternatives(text: str) -> list[tuple[str, str, list[dict[str, object]]]]:
    """Title, code and the arguments of the calls of each reading that was not taken."""
    found = explain(read_text(text), read_text, None).alternatives
    return [(one.title, one.code, [call.args for call in one.calls]) for one in found]


def test_an_assumption_names_the_call_it_touches_and_the_edit_that_makes_it_unnecessary() -> None:
    text = tam("command_1:»»»A.a«««", "command_2:»»»B.b«««", "x_2:>>>1<<<")
    (found,) = explain(read_text(text), read_text, None).assumptions
    assert (found.code, found.slug, found.calls, found.applicability) == ("TM210", "mixed-delimiters", [1], "safe")
    assert found.message == ">>> … <<< used as delimiter"
    assert isinstance(found.fix, list)
    edits = [Edit(*edit.range.offset, edit.new_text) for edit in found.fix if isinstance(edit.range.offset, tuple)]
    assert apply_edits(text, edits) == text.replace(">>>1<<<", "»»»1«««")


def test_hints_and_errors_are_no_assumptions() -> None:
    text = tam(COMMAND, "fileName:»»»1«««", "x:»»»a ««« b«««")
    assert [severity(d) for d in read_text(text).diagnostics] == ["hint", "error"]
    assert explain(read_text(text), read_text, None).assumptions == []


# F4
def test_both_readings_of_a_value_that_holds_its_own_delimiter_are_shown() -> None:
    assert alternatives(vcp(NAME, "x:「始」他写「末」这个字「末」")) == [
        ("The value ends at its last closing delimiter", "VC315", [{"x": "他写「末」这个字"}]),
        ("The value ends at its first closing delimiter", "VC315", [{"x": "他写"}]),
    ]
    assert alternatives(tam(COMMAND, "x:»»»a ««« b«««")) == [
        ("The value ends at its last closing delimiter", "TM216", [{"x": r'"a \u00ab\u00ab\u00ab b"'}]),
        ("The value ends at its first closing delimiter", "TM216", [{"x": "a"}]),
    ]


@pytest.mark.parametrize(
    ("text", "title", "args"),
    [
        (tam(COMMAND, "x:»»»1«««", "x:»»»2«««"), "The first one is used", {"x": "1"}),
        (vcp(NAME, "x:「始」1「末」,", "x:「始」2「末」"), "The first one is used", {"x": "1"}),
        (
            "<ACTION><t><p>a </p> b</p></t></ACTION>",
            "The value ends at its first closing tag",
            {"p": "a "},
        ),
        (
            "<ACTION><t><p>hello <b>x</b> y</p></t></ACTION>",
            "The elements are read and the text beside them is left out",
            {"p": {"b": "x"}},
        ),
        (tam("command_1:»»»A.a«««", "command_2:»»»B.b«««", "x:»»»1«««"), "Rename it to common_x", {"x": "1"}),
        (tam(COMMAND, 'x: "1"'), "Write »»»…«««", {"x": '"1"'}),
        (f"<<<[TOOL_REQUEST]>>>\n{NAME}\nx:「始」1「末」", "Insert <<<[END_TOOL_REQUEST]>>>", {"x": "1"}),
    ],
)
def test_a_construct_with_two_readings_shows_the_other(text: str, title: str, args: dict[str, object]) -> None:
    found = alternatives(text)
    assert [one[0] for one in found] == [title]
    assert found[0][2][0] == args


def test_the_first_of_two_tool_names_is_another_reading() -> None:
    text = vcp(NAME, "tool_name:「始」B「末」")
    (other,) = explain(read_text(text), read_text, None).alternatives
    assert [call.tool_id for call in other.calls] == ["A"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"<think>{tam(COMMAND)}</think>", {"reasoningCalls": "run"}),  # ruling 5
        (f"An example:\n```\nlike so\n{tam(COMMAND)}\n```", {"fencedCalls": "run"}),  # ruling 7
        (f"```\n{vcp(NAME)}\n```", {"fencedCalls": "run"}),
        (
            "<ACTION><a><p>1</p></a></ACTION> <ACTION><b><p>2</p></b></ACTION>",
            {"allowMultipleBlocks": True},
        ),  # ruling 14
    ],
)
def test_a_block_that_was_set_aside_shows_the_option_under_which_it_runs(text: str, options: object) -> None:
    (other,) = explain(read_text(text), read_text, None).alternatives
    assert other.options == options
    assert len(other.calls) == 1


def test_what_has_one_reading_has_no_alternative() -> None:
    assert alternatives(tam(COMMAND, "x：>>>1<<<", "- y:»»»2")) == []
    assert alternatives("Just text.") == []


@pytest.mark.slow
def test_alternatives_are_bounded_and_so_is_their_time() -> None:
    def build(n: int) -> str:
        return vcp(NAME, *(f"x{i}:「始」a「末」b「末」," for i in range(n)))

    text = build(199)
    assert len(explain(read_text(text), read_text, None).alternatives) <= MAX_ALTERNATIVES
    assert growth(build, lambda text: explain(read_text(text), read_text, None), 60) <= 8


# P4
def test_a_repaired_text_reads_clean_to_the_same_calls() -> None:
    text = f"Text.\n{tam('command：»»»T.t«««', 'x:>>>1<<<', '- filePath:»»2««', 'z: 3')}\n{vcp('toolName:{始}A{末}', 'x：「始」1「末」')}"
    before = read_text(text)
    done = repair(before, read_text, None)
    after = read_text(done.text)
    assert [says(call, done.text) for call in after.calls] == [says(call, text) for call in before.calls]
    assert after.diagnostics == []
    assert [call.args for call in done.calls] == [{"x": "1", "file_path": "2", "z": "3"}, {"x": "1"}]
    assert [done.text[slice(*call.tool_id_range.offset or (0, 0))] for call in done.calls] == ["T.t", "A"]


# P6
def test_the_edits_of_a_repair_are_sorted_disjoint_and_give_its_text() -> None:
    text = tam("co\u200bmmandX:»»»T.t«««", "command：>>>A.a<<<", "- **fileP\u200bath:** »»2««", "x:»»»3", "y:»»»4«««;")
    done = mended(read_text(text), read_text)
    assert all(a.end <= b.start for a, b in zip(done.edits, done.edits[1:], strict=False))
    assert apply_edits(text, done.edits) == done.document.text


# P4: whatever the texts are, also such that a safe edit of one block would change another
def test_random_texts_keep_their_calls_when_they_are_repaired() -> None:
    parts = [
        "<|[REQUEST_TOOL]|>\n",
        "<|[END_TOOL]|>\n",
        "command:»»»T.t«««\n",
        "x:>>>1<<<\n",
        "y：»»2««\n",
        "z: 3\n",
        "```\n",
    ]
    parts += [
        "<<<[TOOL_REQUEST]>>>\n",
        "<<<[END_TOOL_REQUEST]>>>\n",
        "tool_name:「始」A「末」\n",
        "x:{始}1「末」,",
        "a「末」\n",
        "»»»",
        "\n",
    ]
    parts += [
        "<ACTION>",
        "</ACTION>",
        "<t>",
        "</t>",
        "<p>1</p>",
        "<p>a & b",
        "</p>",
        "<think>",
        "</think>",
        "&lt;",
        "`",
    ]
    for seed in range(1500):
        rng = random.Random(seed)
        text = "".join(rng.choice(parts) for _ in range(rng.randint(2, 14)))
        before = read_text(text)
        done = mended(before, read_text)
        assert apply_edits(text, done.edits) == done.document.text, text
        after = [says(call, done.document.text) for call in done.document.calls]
        assert after == [says(call, text) for call in before.calls], text


# F1
@pytest.mark.parametrize("text", [f"<|[REQUEST_TOOL]|>\n{COMMAND}\nx:»»»1", f"<|[REQUEST_TOOL]|>\n{COMMAND}"])
def test_a_repair_never_makes_a_cut_text_run(text: str) -> None:
    def read(text: str) -> Document:
        return read_text(text, options=ReadOptions(complete=False))

    done = repair(read(text), read, None)
    assert not any(call.executable for call in done.calls)
