"""Hermes blocks: what is read, what is repaired with a word, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tamis.protocols.check import check_call
from tamis.protocols.model import MAX_DEPTH, Json
from tamis.protocols.repair import apply_edits, safe_edits
from tamis.protocols.schema.plan import compile_plan
from tests.protocols.json_calls import block, check_spans, executable_calls, read
from tests.protocols.reader_helpers import codes, response, runnable, trailing

F = '{"name": "f", "arguments": {"a": 1}}'
ONE = [("f", {"a": 1})]


def test_a_block_gives_its_call_with_typed_arguments_and_the_text_around_it() -> None:
    args = {"n": 5, "x": 1.5, "t": "5", "ok": True, "no": None, "l": [1, {"b": []}], "o": {"k": "v"}}
    text = f"I look.\n{block('core:read-file', args)}\nDone."
    document = read(text)
    assert runnable(document) == [("core:read-file", args)]
    assert codes(document) == []
    assert response(document) == "I look.\n"
    assert trailing(document) == "\nDone."


def test_several_blocks_run_in_order_and_repeats_stay() -> None:
    """F26."""
    text = "\n".join([block("f", {"a": 1}), block("g", {}), block("f", {"a": 1})])
    assert executable_calls(text) == [("f", {"a": 1}), ("g", {}), ("f", {"a": 1})]


@pytest.mark.parametrize(
    "inner",
    [f"[{F}, {F}]", f"{F}\n{F}", f"{F}{F}", f"[{F}]\n{F}"],
    ids=["list", "lines", "one after the other", "list and line"],
)
def test_several_calls_in_one_block_run_in_order_with_a_hint(inner: str) -> None:
    document = read(f"<tool_call>{inner}</tool_call>")
    assert runnable(document) == ONE * 2
    assert codes(document) == ["HM618"]


def test_every_place_is_exact() -> None:
    """Ruling 9: block, call, tool id, names and nested values, with escapes and characters beyond the BMP."""
    text = "😀 " + block("f", {"路径": ["a", {"k/~": 'x"😀\n'}], "n": -1.5e3})
    document = read(text)
    call = document.calls[0]
    assert text[slice(*call.span)].startswith('{"name"')
    assert text[slice(*call.tool_span)] == "f"
    assert [text[slice(*param.name_span)] for param in call.params] == ["路径", "n"]
    places = {
        f"/{param.name}{pointer}": text[slice(*value.span)]
        for param in call.params
        for pointer, value in param.value.walk()
    }
    assert places["/路径/0"] == "a"
    assert places["/路径/1/k~1~0"] == 'x\\"😀\\n'
    assert places["/n"] == "-1500.0"
    assert places["/路径"].startswith('["a", {')
    check_spans(document)


def test_a_place_inside_an_escaped_text_leads_to_its_own_character() -> None:
    text = '<tool_call>{"name":"f","arguments":{"a":"x\\n\\u4e2dy"}}</tool_call>'
    value = read(text).calls[0].params[0].value
    assert value.text(text) == "x\n中y"
    assert [text[value.source_offset(i)] for i in range(4)] == ["x", "\\", "\\", "y"]
    assert text[slice(*value.source_span(2, 3))] == "\\u4e2d"


@pytest.mark.parametrize(
    "inner", ["</tool_call>", '<tool_call>{"name":"rm","arguments":{}}</tool_call>', "<ACTION><rm/></ACTION>"]
)
def test_a_marker_inside_a_text_is_text(inner: str) -> None:
    """F4, F16."""
    text = block("write", {"content": f"before {inner} after", "more": inner})
    document = read(text)
    assert runnable(document) == [("write", {"content": f"before {inner} after", "more": inner})]
    assert len(document.blocks) == 1
    assert codes(document) == []


REPAIRS: list[tuple[str, str, list[Any], list[str]]] = [
    ("trailing comma", '{"name": "f", "arguments": {"a": 1,},}', ONE, ["HM607", "HM607"]),
    ("comment", '{"name": "f", // the tool\n "arguments": {"a": 1 /* one */}}', ONE, ["HM612", "HM612"]),
    (
        "python",
        "{'name': 'f', 'arguments': {'a': True, 'b': None}}",
        [("f", {"a": True, "b": None})],
        ["HM609", "HM608"],
    ),
    ("apostrophe", '{"name": "f", "arguments": {"a": \'it\\\'s "x"\'}}', [("f", {"a": 'it\'s "x"'})], ["HM609"]),
    ("bare names", '{name: "f", arguments: {a: 1}}', ONE, ["HM609"]),
    ("triple quotes", '{"name": "f", "arguments": {"a": """x "y"\nz"""}}', [("f", {"a": 'x "y"\nz'})], ["HM609"]),
    ("raw line break (F20)", '{"name": "f", "arguments": {"a": "x\ny\tz"}}', [("f", {"a": "x\ny\tz"})], ["HM610"]),
    (
        "escape between values (F19)",
        '{"name": "f", "arguments": \\n{"a": \\n[1]\\n}\\n}',
        [("f", {"a": [1]})],
        ["HM611"],
    ),
    ("escaped apostrophe", '{"name": "f", "arguments": {"a": "it\\\'s"}}', [("f", {"a": "it's"})], ["HM608"]),
    ("full-width punctuation", '{"name"："f"，"arguments"：{"a"：1}}', ONE, ["HM608"]),
    ("invisible character", '{"name":\u200b "f",\u00a0"arguments": {"a": 1}}', ONE, ["TC013"]),
    ("parameters", '{"name": "f", "parameters": {"a": 1}}', ONE, ["HM604"]),
    ("tool_name and input", '{"tool_name": "f", "input": {"a": 1}}', ONE, ["HM604"]),
    ("blanks in the name", '{"name": " f ", "arguments": {"a": 1}}', ONE, ["HM604"]),
    ("arguments as text", '{"name": "f", "arguments": "{\\"a\\": 1}"}', ONE, ["HM605"]),
    ("broken arguments as text", '{"name": "f", "arguments": "{\\"a\\": 1,}"}', ONE, ["HM605", "HM607"]),
    ("no arguments", '{"name": "f"}', [("f", {})], ["HM619"]),
    ("null arguments", '{"name": "f", "arguments": null}', [("f", {})], ["HM619"]),
    ("missing last bracket", '{"name": "f", "arguments": {"a": 1}', ONE, ["HM617"]),
    ("one bracket too many", F + "}", ONE, ["TC011"]),
    ("text behind the JSON", F + " done.", ONE, ["TC011"]),
    ("fence inside", f"\n```json\n{F}\n```\n", ONE, ["TC011"]),
    ("comma between", f"{F},\n{F}", ONE * 2, ["HM607"]),
    ("OpenAI's form", '{"type": "function", "function": {"name": "f", "arguments": "{\\"a\\": 1}"}}', ONE, ["HM604"]),
    ("seed 004's form", '{"toolName": "f", "arguments": {"a": 1}}', ONE, ["HM604"]),
    ("Anthropic's form", '{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}', ONE, ["HM604"]),
    (
        "MCP's form",
        '{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "f", "arguments": {"a": 1}}}',
        ONE,
        ["HM604"],
    ),
]


@pytest.mark.parametrize(("inner", "calls", "expected"), [row[1:] for row in REPAIRS], ids=[row[0] for row in REPAIRS])
def test_a_slip_with_one_reading_is_repaired_and_its_fixes_give_a_clean_text(
    inner: str, calls: list[Any], expected: list[str]
) -> None:
    text = f"<tool_call>{inner}</tool_call>"
    document = read(text)
    assert runnable(document) == calls
    assert set(expected) <= set(codes(document))
    assert all(call.repairs for call in document.calls)
    check_spans(document)
    fixed = apply_edits(text, safe_edits(document.diagnostics))
    again = read(fixed)
    assert runnable(again) == calls
    assert set(codes(again)) <= {"HM618"}, fixed


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ('{"name": "f", "arguments": {"a": undefined}}', "HM603"),
        ('{"name": "f", "arguments": {"a": NaN}}', "HM603"),
        ('{"name": "f", "arguments": {"a": "x\\d"}}', "HM603"),
        ('{"name": "f", "arguments": {"a": "b}}', "HM603"),
        ('{"name": "f", "arguments": {"a": 1 "b": 2}}', "HM603"),
        ('{"name": "f", "arguments": {"a": "say "hi" now"}}', "HM603"),
        ('{"name": "f", "arguments": {"o": {"b": 1, "c": 2}}', "HM603"),
        (F + ', "more": {"b": 2}}', "HM603"),
        ('{"name": "f", "city": "Paris"}', "HM602"),
        ('{"name": "f", "arguments": {"a": 1}, "parameters": {"a": 2}}', "HM602"),
        ('{"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}', "HM602"),
        ("[1, 2]", "HM602"),
        ('{"arguments": {"a": 1}}', "HM601"),
        ('{"name": "", "arguments": {}}', "HM601"),
        ('{"name": 5, "arguments": {}}', "HM601"),
        ('{"name": "f", "arguments": [1]}', "HM606"),
        ('{"name": "f", "arguments": "{\\"a\\": "}', "HM603"),
        ('{"name": "f", "arguments": "[1]"}', "HM606"),
        ("\n<function=f><parameter=a>1</parameter></function>\n", "HM602"),
    ],
)
def test_what_has_two_readings_or_none_is_an_error_and_never_runs(inner: str, code: str) -> None:
    text = f"<tool_call>{inner}</tool_call>"
    document = read(text)
    assert runnable(document) == []
    assert code in codes(document)
    assert document.blocks[0].state == "rejected"
    assert not safe_edits(document.diagnostics), "an edit must not settle what an error leaves open"


def test_an_error_costs_its_own_block_only() -> None:
    """Ruling 1, and a missing quote must not swallow the calls behind it."""
    text = '<tool_call>{"name": "f", "arguments": {"a": "b}}\n</tool_call>\n' + block("g", {"x": 1})
    document = read(text)
    assert runnable(document) == [("g", {"x": 1})]
    assert [found.state for found in document.blocks] == ["rejected", "complete"]


def test_a_marker_in_a_closed_text_of_broken_json_is_no_block_of_its_own() -> None:
    """F16: the text behind it belongs to the broken value."""
    inner = "<tool_call>{'name':'rm','arguments':{}}</tool_call>"
    text = f'<tool_call>{{"name": "write", "arguments": {{"content": "{inner}", "x": undefined}}}}</tool_call>'
    document = read(text)
    assert runnable(document) == []
    assert len(document.blocks) == 1


def test_the_later_of_two_equal_keys_counts_with_a_warning() -> None:
    """Ruling 27."""
    document = read('<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>')
    assert runnable(document) == [("f", {"a": 2})]
    assert codes(document) == ["HM613"]


def test_an_escape_that_reads_like_a_path_is_said() -> None:
    """F20: good JSON, and hardly what was meant."""
    document = read('<tool_call>{"name": "f", "arguments": {"p": "C:\\new"}}</tool_call>')
    assert runnable(document) == [("f", {"p": "C:\new"})]
    assert codes(document) == ["HM614"]


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    document = read('<tool_call>{"name": "f", "arguments": {"a": "x\\ud800y"}}</tool_call>')
    assert runnable(document) == [("f", {"a": "x\ufffdy"})]
    assert codes(document) == ["HM615"]


def test_members_beside_the_call_are_said_and_an_id_is_kept() -> None:
    document = read(block("f", {}, id="call_1", thought="so"))
    assert document.calls[0].meta == {"id": "call_1"}
    assert codes(document) == ["HM616"]


# Where a block ends


def test_a_missing_closing_marker_behind_whole_json_is_repaired() -> None:
    """Ruling 18 by analogy (F10)."""
    text = f"<tool_call>\n{F}\n"
    document = read(text)
    assert runnable(document) == ONE
    assert codes(document) == ["TC002"]
    fixed = apply_edits(text, safe_edits(document.diagnostics))
    assert codes(read(fixed)) == []


def test_a_sentence_that_goes_on_behind_whole_json_speaks_about_a_call() -> None:
    """Ruling 6: only a block that ends its line can lack its closing marker."""
    document = read(f"Write <tool_call>{F} to call f.")
    assert runnable(document) == []
    assert executable_calls(f"<tool_call>{F}\nThat is all.") == ONE
    assert executable_calls(f"<tool_call>{F} <tool_call>{F}</tool_call>") == ONE * 2


def test_a_text_that_is_cut_off_before_the_closing_marker_does_not_run() -> None:
    """Ruling 1, F1, F2."""
    text = f"<tool_call>\n{F}\n"
    for cut in (text, text[:-4], text + "</tool_c"):
        document = read(cut, complete=False)
        assert runnable(document) == []
        assert document.blocks[0].state == "truncated"
    assert runnable(read(text[:-6])) == [], "not even when nobody says that it is cut off"
    assert read(text[:-6]).blocks[0].state == "truncated"


@pytest.mark.parametrize("rest", ["<", "</", "</tool_c", "</tool_call", "<tool"])
def test_a_text_that_ends_inside_a_marker_is_cut_off_whoever_says_otherwise(rest: str) -> None:
    """Ruling 18."""
    document = read(f"<tool_call>\n{F}\n{rest}\n")
    assert (runnable(document), codes(document)) == ([], ["TC001"])


def test_a_cut_off_call_shows_what_is_there() -> None:
    """For display only."""
    text = '<tool_call>{"name": "f", "arguments": {"a": "one tw'
    call = read(text, complete=False).calls[0]
    assert (call.tool_id, call.args(text), call.complete, call.executable) == ("f", {"a": "one tw"}, False, False)


def test_an_opening_marker_in_place_of_the_closing_one_is_read_as_it() -> None:
    document = read(f"<tool_call>{F}<tool_call>\nDone.")
    assert runnable(document) == ONE
    assert codes(document) == ["TC004"]
    assert runnable(read(f"<tool_call>{F}<tool_call>{F}</tool_call>")) == ONE * 2


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<Tool_Call>", "</Tool_Call>"),
        ("<tool-call>", "</tool-call>"),
        ("< tool_call >", "</ tool_call >"),
        ("<|tool_call|>", "<|/tool_call|>"),
    ],
)
def test_other_spellings_of_the_markers_are_read_with_a_warning(opening: str, closing: str) -> None:
    text = f"{opening}{F}{closing}"
    document = read(text)
    assert runnable(document) == ONE
    assert codes(document) == ["TC004", "TC004"]
    assert apply_edits(text, safe_edits(document.diagnostics)) == f"<tool_call>{F}</tool_call>"


@pytest.mark.parametrize(
    "text",
    [
        "Write <tool_call> before it.",
        "Use <tool_call></tool_call> tags.",
        f"In code: `<tool_call>{F}</tool_call>`",
        f"\\<tool_call>{F}",
    ],
)
def test_a_mentioned_marker_is_text(text: str) -> None:
    """Ruling 6."""
    document = read(text)
    assert runnable(document) == []
    assert set(codes(document)) <= {"TC009", "TC018", "TC003"}
    assert {"TC009", "TC018"} & set(codes(document))


def test_an_empty_block_on_its_own_lines_is_an_error() -> None:
    assert codes(read("<tool_call>\n</tool_call>")) == ["TC012"]


def test_reasoning_fences_and_escaped_blocks_are_treated_as_in_every_protocol() -> None:
    """Rulings 5 and 7."""
    text = block("f", {"a": 1})
    assert codes(read(f"<think>{text}</think>")) == ["TC017"]
    assert executable_calls(f"<think>{text}</think>") == []
    assert executable_calls(f"<think>{text}</think>", reasoning_calls="run") == ONE
    assert executable_calls(f"```\n{text}\n```") == ONE
    assert executable_calls(f"```\nlike\n{text}\n```") == []
    assert codes(read(text.replace("<", "&lt;").replace(">", "&gt;"))) == ["TC010", "TC009"]


def test_a_bare_call_without_its_envelope_is_no_call() -> None:
    """F30."""
    document = read(F)
    assert runnable(document) == []
    assert codes(document) == ["TC009"]


# Limits


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 400, 3_000, 100_000])
def test_depth_is_bounded(depth: int) -> None:
    """Ruling 10."""
    document = read(f'<tool_call>{{"name": "f", "arguments": {{"a": {"[" * depth}{"]" * depth}}}}}</tool_call>')
    assert bool(runnable(document)) is (depth <= MAX_DEPTH)


def test_counts_are_bounded() -> None:
    calls = "\n".join(['{"name": "f", "arguments": {}}'] * 1_100)
    assert "TC022" in codes(read(f"<tool_call>{calls}</tool_call>"))
    many = json.dumps({f"k{i}": i for i in range(10_100)})
    assert "TC022" in codes(read(f'<tool_call>{{"name": "f", "arguments": {many}}}</tool_call>'))
    broken = "[" + "1,\\n" * 300 + "2]"
    assert "TC023" in codes(read(f'<tool_call>{{"name": "f", "arguments": {{"a": {broken}}}}}</tool_call>'))
    assert "TC021" in codes(read(block("f" * 300, {})))


# Checking


SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "t": {"type": "string"},
        "l": {"type": "array", "items": {"type": "number"}},
    },
}


def test_typed_values_are_checked_as_they_are() -> None:
    text = block("f", {"n": 5, "t": "5", "l": [1, 2.5]})
    checked = check_call(read(text).calls[0], text, compile_plan(SCHEMA))
    assert checked.valid
    assert checked.coerced == {"n": 5, "t": "5", "l": [1, 2.5]}


@pytest.mark.parametrize(
    ("args", "code", "at"),
    [({"n": "5"}, "VA410", "5"), ({"t": 5}, "VA410", "5"), ({"l": [1, "x"]}, "VA410", "x"), ({"N": 1}, "VA403", "N")],
)
def test_what_does_not_fit_is_said_at_its_place(args: dict[str, Json], code: str, at: str) -> None:
    text = block("f", args)
    found = check_call(read(text).calls[0], text, compile_plan(SCHEMA)).problems[0].diag
    assert (found.code, text[slice(*found.span)]) == (code, at)


def test_a_misspelled_parameter_has_a_fix_that_renames_it() -> None:
    text = block("f", {"T": "x"})
    found = check_call(read(text).calls[0], text, compile_plan(SCHEMA)).problems[0].diag
    assert found.fix is not None
    assert executable_calls(apply_edits(text, list(found.fix.edits))) == [("f", {"t": "x"})]
