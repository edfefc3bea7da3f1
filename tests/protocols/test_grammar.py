"""GBNF grammars (``prompt/grammar``): well formed, wide enough for the writer, narrow enough for the reader."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PlainCall, PromptTool, Shape, WriteOptions
from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.check import check_call
from tamis.protocols.grammar.gbnf import GrammarError, gbnf
from tamis.protocols.model import Json, ReadOptions
from tamis.protocols.plugins import find_protocol
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan
from tests.protocols.gbnf_machine import Grammar, parse
from tests.protocols.grammar_tools import ARGUMENTS, FORMS, HINTS, NOTHING, SEARCH, TOOLS

every_form = pytest.mark.parametrize(("name", "shape"), FORMS, ids=[f"{name}-{shape}" for name, shape in FORMS])


def grammar_text(name: str, shape: Shape = "tag", tools: list[PromptTool] = TOOLS) -> str:
    protocol = find_protocol(name)
    assert protocol is not None
    return gbnf(protocol, tools, shape)


def write(name: str, shape: Shape, tool: str, args: dict[str, Json]) -> str:
    """The canonical text of a call; empty when the protocol refuses it."""
    protocol = find_protocol(name)
    assert protocol is not None
    written = protocol.write_calls((PlainCall(tool, args),), WriteOptions(shape, HINTS))
    return "" if written.refusals else written.text


def one_tool(**properties: Json) -> PromptTool:
    return PromptTool("t", "", {"type": "object", "properties": dict(properties)})


@pytest.fixture(scope="module")
def grammars() -> dict[tuple[str, Shape], Grammar]:
    return {(name, shape): parse(grammar_text(name, shape)) for name, shape in FORMS}


@every_form
def test_every_rule_is_defined_used_and_productive(name: str, shape: Shape) -> None:
    grammar = parse(grammar_text(name, shape))
    assert grammar.undefined() == set()
    assert grammar.unused() == set()
    assert grammar.left_recursive() == set(), "llama.cpp refuses left recursion"
    assert set(grammar.rules) - set(grammar.least()) == set(), "a rule that no text fits"


@every_form
def test_another_implementation_takes_the_grammar(name: str, shape: Shape) -> None:
    llguidance = pytest.importorskip("llguidance", reason="llguidance is not installed")
    from llguidance.gbnf_to_lark import gbnf_to_lark

    lark = llguidance.LLMatcher.grammar_from_lark(gbnf_to_lark(grammar_text(name, shape)))
    assert llguidance.LLMatcher.validate_grammar(lark) == ""


@pytest.mark.slow
@every_form
def test_what_the_writer_writes_is_a_sentence(
    grammars: dict[tuple[str, Shape], Grammar], name: str, shape: Shape
) -> None:
    refused = 0
    for tool, args in ARGUMENTS:
        text = write(name, shape, tool, args)
        if not text:
            refused += 1
            continue
        assert grammars[name, shape].accepts(text), text
    assert refused <= 4, "most of the arguments can be written"


@every_form
def test_every_sentence_is_read_as_whole_valid_calls_without_a_finding(
    grammars: dict[tuple[str, Shape], Grammar], name: str, shape: Shape, is_long: bool
) -> None:
    grammar = grammars[name, shape]
    rng = random.Random(20261122)
    plans = {tool: compile_plan(hint.parameters) for tool, hint in HINTS.items()}
    for _ in range(1500 if is_long else 40):
        text = grammar.sentence(rng, 250)
        document = read_text(text, "auto", ReadOptions(tools=HINTS, also=("hermes",)))
        assert document.calls, text
        assert all(call.executable and call.complete and call.protocol == name for call in document.calls), text
        severe = [
            one.code
            for one in document.diagnostics
            if (one.severity or CATALOGUE[one.code].severity) in ("error", "warning")
        ]
        assert severe == [], text
        for call in document.calls:
            check = check_call(call, text, plans[call.tool_id])
            assert check.valid, (text, check.errors)
            assert check.warnings == [], text


@every_form
@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("serach", {"q": "x", "opts": {"tags": []}}),
        ("search", {"q": "x"}),
        ("search", {"opts": {"tags": []}}),
        ("search", {"q": "x", "opts": {}}),
        ("search", {"q": "x", "opts": {"tags": [1]}}),
        ("search", {"q": "x", "opts": {"tags": [], "other": 1}}),
        ("search", {"q": "x", "limit": -1, "opts": {"tags": []}}),
        ("search", {"q": "x", "mode": "other", "opts": {"tags": []}}),
        ("search", {"q": "x", "opts": {"tags": []}, "unknown": "x"}),
        ("search", {"q": "x", "opts": {"tags": []}, "tree": {"v": 1, "kids": [{}]}}),
        ("names", {"base64": True, "q_2": 1.5}),
        ("names", {"base64": True, "request_id": "r-2"}),
        ("shapes", {"pair": [1]}),
        ("shapes", {"few": []}),
        ("shapes", {"few": ["a", "a", "a", "a"]}),
        ("nothing", {"x": "y"}),
    ],
)
def test_a_call_that_the_schema_forbids_is_no_sentence(
    grammars: dict[tuple[str, Shape], Grammar], name: str, shape: Shape, tool: str, args: dict[str, Json]
) -> None:
    protocol = find_protocol(name)
    assert protocol is not None
    # Without the schemas the writer writes it.
    written = protocol.write_calls((PlainCall(tool, args),), WriteOptions(shape))
    assert written.text, written.refusals
    assert not grammars[name, shape].accepts(written.text)


@every_form
def test_prose_may_precede_a_call_and_hold_no_marker(
    grammars: dict[tuple[str, Shape], Grammar], name: str, shape: Shape
) -> None:
    call = write(name, shape, "nothing", {})
    assert grammars[name, shape].accepts(f"I look it up, 好的:\n\n{call}") is (name != "json")
    for opener in ("<think>", "```\n", "<ACTION>", "~~~\n", "\\"):
        assert not grammars[name, shape].accepts(opener + call), opener


CONTEXTS = [
    *("Observation: x\n", "OBSERVATION ：", "[INST] ", "[THINK]\n", "◁think▷", "[TOOL_RESULTS]", "[[VCP调用结果信息汇总:\n"),
    *('{"a": "', "> ", "| ", "// ", "/* ", "12:00 INFO a\n12:00 INFO ", 'He said "', "“", "「", "Set it to 5\" wide.\n"),
    *("@@ -1 +1 @@\n+", "<!--", "＜!--\n", "<pre>\n", "<|im_start|>user\n", "<tool_response>\n", "<start_of_turn>user\n"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.share(4)
@every_form
@pytest.mark.parametrize("context", CONTEXTS)
def test_prose_that_sets_a_call_aside_is_no_sentence(
    grammars: dict[tuple[str, Shape], Grammar], name: str, shape: Shape, context: str
) -> None:
    """Rulings 44 to 49: what the grammar accepts behind a mark of a context is a call that runs."""
    quoting = write(name, shape, "search", {"q": 'a " b ” c', "opts": {"tags": []}})
    assert quoting
    for call in (quoting, f"{write(name, shape, 'nothing', {})}\n{quoting}"):
        for text in (context + call, f"{context}\n{call}", f"{context}\n\n{call}", f"a\n\n{context}\n\n{call}"):
            if grammars[name, shape].accepts(text):
                options = ReadOptions(allow_multiple_blocks=True, tools=HINTS)
                calls = read_text(text, "auto" if name != "hermes" else name, options).calls
                assert calls, text
                assert all(one.executable for one in calls), text


PROSE_PARTS = [
    *("O", "О", "Ο", "Ｏ", "o", "о", "bservation", "BSERVATION", "ｂｓｅｒｖａｔｉｏｎ", "bservаtiоn", "bservati", "ОN", "Οn", "on"),
    *(":", "：", " ", "\n", "\n\n", "word", "Result: ", '"', "'", "“", "”", "> ", "| ", "- ", "// ", "12:00 INFO ", "】", "▷", "]]"),
    *("V", "VCP调用结果结束", "＞", "ＡＣＴＩＯＮ", "ACTION>", "tool_name:「始」", "command:»»»t«««", "〈", "‹", "⟨", "≪"),
]  # fmt: skip
SIGNS = [
    *("[", "{", "<", "＜", "◁", "《", "`", "~", "\\", "\u200b", "\u00ad", "\u034f", "\u061c", "\u3164", "\ufe0f", "\ufff0"),
    *("\U0001bca0", "\U0001d173", "\U000e0041", "\u2028"),
]  # fmt: skip
CONFUSABLES = st.lists(st.sampled_from(PROSE_PARTS), max_size=12).map("".join) | st.lists(
    st.sampled_from([*PROSE_PARTS, *SIGNS]), max_size=6
).map("".join)


@pytest.mark.slow
@given(prose=CONFUSABLES)
@pytest.mark.parametrize("name", ["action", "tam", "vcp", "hermes"])
def test_no_prose_of_the_grammar_is_a_call_or_sets_one_aside(
    grammars: dict[tuple[str, Shape], Grammar], name: str, prose: str
) -> None:
    """Rulings 44 to 49: neither characters that look alike nor those that nobody sees make a mark in it."""
    call = write(name, "tag", "nothing", {})
    text = f"{prose}\n\n{call}"
    if not grammars[name, "tag"].accepts(text):
        return
    reader = "auto" if name != "hermes" else name
    assert read_text(prose, reader).calls == []
    assert [one.executable for one in read_text(text, reader, ReadOptions(tools=HINTS)).calls] == [True], ascii(text)


@every_form
@pytest.mark.parametrize(
    "char", ["\u200b", "\u00ad", "\u034f", "\u061c", "\u3164", "\ufe0f", "\ufff8", "\U0001bca0", "\U0001d17a", "\U000e0fff"], ids=ascii
)  # fmt: skip
def test_prose_holds_no_invisible_character(
    grammars: dict[tuple[str, Shape], Grammar], name: str, shape: Shape, char: str
) -> None:  # rulings 44 to 49
    assert not grammars[name, shape].accepts(f"a{char}b\n\n" + write(name, shape, "nothing", {}))


@pytest.mark.parametrize(
    "word", ["Оbservation", "Ｏbservation", "ОBSERVATIОN", "Observаtiоn", "Obser\u034fvation"], ids=ascii
)
def test_prose_holds_no_word_that_looks_like_an_echo(grammars: dict[tuple[str, Shape], Grammar], word: str) -> None:
    """Ruling 48; words of other scripts that only share a letter with it are prose."""
    call = write("tam", "tag", "nothing", {})
    assert not grammars["tam", "tag"].accepts(f"{word}: x\n\n{call}")
    assert grammars["tam", "tag"].accepts(f"Область О Ο, observation\n\n{call}")


@pytest.mark.parametrize(("name", "mark"), [("tam", "«««"), ("vcp", "「末」"), ("action", "]]>")])
def test_a_text_ends_at_the_first_closing_mark(
    grammars: dict[tuple[str, Shape], Grammar], name: str, mark: str
) -> None:
    text = write(name, "tag", "search", {"q": "<in\nside>", "opts": {"tags": []}})
    assert grammars[name, "tag"].accepts(text)
    assert not grammars[name, "tag"].accepts(text.replace("<in", f"<i{mark}n"))


@every_form
def test_a_grammar_is_the_same_for_the_same_tools(name: str, shape: Shape) -> None:
    assert grammar_text(name, shape) == grammar_text(name, shape)


@every_form
def test_a_grammar_grows_linearly_with_the_schema(name: str, shape: Shape) -> None:
    def size(count: int) -> int:
        inner: dict[str, Json] = {f"f{i:03}": {"type": ["string", "integer"]} for i in range(count)}
        tool = one_tool(
            o={"type": "object", "properties": inner}, **{f"p{i:03}": {"enum": ["a", "b"]} for i in range(count)}
        )
        return len(grammar_text(name, shape, [tool]))

    assert (size(80) - size(40)) < 2.3 * (size(40) - size(20))


def test_what_a_grammar_cannot_say_is_named_in_its_head() -> None:
    tool = one_tool(
        a={"type": "string", "pattern": "^x"},
        b={"type": "object", "properties": {"c": {"type": "integer", "multipleOf": 5}}},
        d={"oneOf": [{"type": "integer"}, {"type": "boolean"}]},
        e={"$ref": "https://example.org/x"},
    )
    text = grammar_text("json", "tag", [tool])
    for part in (
        "/a: wider than pattern",
        "/b/c: wider than multipleOf",
        "/d: wider than",
        "/e: wider than $ref https://example.org/x",
    ):
        assert part in text


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"$ref": "#/$defs/a"}, {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}]
)
def test_a_reference_that_leads_to_itself_ends(schema: dict[str, Json]) -> None:
    definitions: dict[str, Json] = {
        "a": {"$ref": "#/$defs/a"},
        "b": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "integer"}]},
    }
    tool = PromptTool("t", "", {"type": "object", "properties": {"p": schema}, "$defs": definitions})
    for name, shape in FORMS:
        grammar = parse(grammar_text(name, shape, [tool]))
        assert grammar.left_recursive() == set()
        assert grammar.least()["root"] > 0


def test_a_deep_schema_ends_in_any_value() -> None:
    schema: Json = {"type": "integer"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"x": schema}}
    text = grammar_text("json", "tag", [one_tool(p=schema)])
    assert "too deep" in text
    assert parse(text).undefined() == set()


def test_alternatives_of_all_parameters_have_their_own_form() -> None:
    tool = PromptTool(
        "t",
        "",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    )
    for name, shape in FORMS:
        grammar = parse(grammar_text(name, shape, [tool]))
        assert grammar.accepts(write(name, shape, "t", {"a": 1}) or "-")
        assert grammar.accepts(write(name, shape, "t", {"b": 1}) or "-")
        assert not grammar.accepts(write(name, shape, "t", {}))


def test_a_tool_that_a_protocol_cannot_carry_is_left_out_with_a_remark() -> None:
    odd = PromptTool("has blanks", "", {})
    text = grammar_text("action", "tag", [odd, NOTHING])
    assert "# t1 is left out" in text
    assert parse(text).accepts("<ACTION>\n  <nothing></nothing>\n</ACTION>")
    with pytest.raises(GrammarError, match="can carry none of the tools"):
        grammar_text("action", "tag", [odd])


def test_a_parameter_that_a_protocol_cannot_carry_is_left_out() -> None:
    tool = one_tool(**{"a b": {"type": "string"}, "c": {"type": "string"}})
    assert "has no parameter 'a b'" in grammar_text("vcp", "tag", [tool])
    assert '"\\"a b\\""' in grammar_text("json", "tag", [tool])


def test_without_tools_there_is_no_grammar() -> None:
    with pytest.raises(GrammarError, match="no tool fits"):
        grammar_text("vcp", "tag", [])


def test_several_calls_of_one_answer_are_a_sentence(grammars: dict[tuple[str, Shape], Grammar]) -> None:
    first, second = (write("vcp", "tag", tool, {}) for tool in ("nothing", "shapes"))
    assert grammars["vcp", "tag"].accepts(f"{first}\n{second}\n")
    assert grammars["action", "tag"].accepts("<ACTION>\n  <nothing></nothing>\n  <shapes></shapes>\n</ACTION>")
    # Several pairs in one block are read with a warning (AX162).
    pair = "\n  <tool_id>nothing</tool_id>\n  <inputs></inputs>"
    assert not grammars["action", "inputs"].accepts(f"<ACTION>{pair}{pair}\n</ACTION>")


def test_the_name_shown_for_a_tool_is_the_one_in_the_grammar() -> None:
    assert '"\\"search\\""' in grammar_text("hermes", "tag", [SEARCH])
