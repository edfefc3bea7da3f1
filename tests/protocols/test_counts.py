"""Counts over many texts, and their page (C3)."""

from __future__ import annotations

import doctest
import json
import pickle
import random
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols import Counts, count, counts, make_reader, read
from tamis.protocols.counts import MAX_NAMES, OTHERS, ModelNumbers, Numbers, page
from tests.protocols.fuzz import TOKENS, WORDS

ACTION = "<ACTION><t:a><x>1</x></t:a></ACTION>"
TOOLS = [{"toolId": "t:a", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}]
TEXTS = st.lists(st.sampled_from([*TOKENS, *WORDS, ACTION]), max_size=20).map("".join)
HOSTILE = "<script>alert(1)</script>\"'&\x1b]0;x\x07\u202e--></title><img src=//x onerror=y>"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (ACTION, {"executable": 1}),
        (ACTION + ACTION, {"executable": 1, "refused": 1}),
        (f"<think>{ACTION}</think>", {"setAside": 1}),
        (f"> {ACTION}", {"setAside": 1}),
        (ACTION.removesuffix("ACTION>"), {"cutOff": 1}),
        (ACTION.removesuffix("/t:a></ACTION>"), {"cutOffBlocks": 1}),
        ("<<<[TOOL_REQUEST]>>>\nx:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>", {"refusedBlocks": 1}),
        (ACTION.removesuffix("</ACTION>"), {"executable": 1, "repaired": 1}),
        ("prose <ACTION> prose", {}),
    ],
)
def test_every_call_is_one_of_four(text: str, wanted: dict[str, int]) -> None:
    """C3: calls, set-aside and cut-off ones."""
    data = count([text]).data()
    names = ("executable", "setAside", "cutOff", "refused", "repaired", "cutOffBlocks", "refusedBlocks")
    found = {name: data[name] for name in names if data[name]}
    assert found == wanted
    assert data["calls"] == len(read(text)["calls"])


@given(TEXTS)
def test_what_is_counted_is_what_is_read(text: str) -> None:
    """C3: the numbers of `read`, and parts that add up."""
    found, result = count([text]), read(text)
    assert found.calls == len(result["calls"]) == found.executable + found.set_aside + found.cut_off + found.refused
    assert found.executable == sum(call["executable"] for call in result["calls"])
    assert found.repaired == sum(bool(call["repairs"]) for call in result["calls"])
    assert sum(found.errors.values()) == sum(d["severity"] == "error" for d in result["diagnostics"])
    assert sum(found.contexts.values()) == found.set_aside
    for table in (found.protocols, found.tools):
        total = Numbers()
        for numbers in table.values():
            total.merge(numbers)
        assert total == Numbers(**{name: getattr(found, name) for name in Numbers.__struct_fields__})


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", "m", "n"])), max_size=6), st.integers(0, 6), st.randoms())
def test_the_division_and_the_order_do_not_matter(
    texts: list[tuple[str, str]], at: int, randomly: random.Random
) -> None:
    """C4: what other engines rely on; through pickle, as they send it."""
    whole = count(texts, tools=TOOLS)
    parts = [count(texts[:at], tools=TOOLS), count(texts[at:], tools=TOOLS)]
    randomly.shuffle(parts)
    total = Counts()
    for part in parts:
        total.merge(pickle.loads(pickle.dumps(part)))
    assert total.data() == whole.data() and json.dumps(total.data()) == json.dumps(whole.data())


def test_unknown_names_are_those_that_no_tool_has() -> None:
    """C3: neither of set-aside calls nor of cut-off ones; without tools nothing is known."""
    texts = [ACTION.replace("t:a", "t:b"), ACTION.replace("x>", "y>"), f"> {ACTION.replace('t:a', 't:c')}"]
    found = count(texts, tools=TOOLS)
    assert (found.unknown_tools, found.unknown_parameters) == ({"t:b": 1}, {"t:a": {"y": 1}})
    alone = count(texts)
    assert (alone.tools_known, alone.unknown_tools, alone.unknown_parameters) == (False, {}, {})


def test_a_schema_that_is_open_knows_every_name() -> None:
    """C3: as `tool/validate` judges them."""
    open_tool = [
        {"toolId": "t:a", "parameters": {"type": "object", "additionalProperties": True, "properties": {"z": {}}}}
    ]
    assert count([ACTION], tools=open_tool).unknown_parameters == {}
    assert count([ACTION], tools=[{"toolId": "t:a"}]).unknown_parameters == {}


def test_a_method_in_vcps_command_is_known() -> None:
    """C3: `tool_name` and `command` together name a tool."""
    text = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Files「末」,\ncommand:「始」read「末」\n<<<[END_TOOL_REQUEST]>>>"
    assert count([text], tools=[{"toolId": "Files_read", "parameters": {"properties": {}}}]).unknown_tools == {}
    assert count([text], tools=TOOLS).unknown_tools == {"Files": 1}


def test_models_have_their_texts() -> None:
    """C3: also those without a call."""
    found = count([(ACTION, "m"), ("prose", "m"), (ACTION, "")])
    assert found.models == {"m": ModelNumbers(calls=1, executable=1, texts=2)}


@pytest.mark.slow
def test_names_are_bounded() -> None:
    """C3: a hostile log with a new name in every call, and names of any length."""
    found = count(f"<ACTION><t:{n}{'x' * 300}><a>1</a></t:{n}{'x' * 300}></ACTION>" for n in range(MAX_NAMES + 50))
    assert len(found.tools) <= MAX_NAMES + 1 and found.tools[OTHERS].calls >= 50
    assert max(map(len, found.tools)) <= 256
    assert sum(numbers.calls for numbers in found.tools.values()) == MAX_NAMES + 50


def test_a_reader_s_options_hold() -> None:
    """C3: the same reader as for `read`."""
    reader = make_reader(options={"reasoningCalls": "run"})
    assert count([f"<think>{ACTION}</think>"], reader).executable == 1


class Seen(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


def hostile_counts() -> Counts:
    found = Counts(tools_known=True)
    one = Numbers(calls=3, executable=1, set_aside=1, refused=1)
    found.merge(one)
    for table in (found.protocols, found.tools):
        table[HOSTILE] = one
    found.models[HOSTILE] = ModelNumbers(calls=3, executable=3, texts=9)
    for table in (found.repairs, found.errors, found.contexts, found.unknown_tools):
        table[HOSTILE] = 2
    found.unknown_parameters[HOSTILE] = {HOSTILE: 1}
    return found


def test_the_page_escapes_every_text() -> None:
    """C3: the log is hostile: names, codes, contexts, models and the title."""
    text = page(hostile_counts(), HOSTILE)
    seen = Seen(text)
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "span", "i", "dl", "div", "dt", "dd"}
    assert seen.tags <= allowed | {"section", "figure", "figcaption", "svg", "g", "text", "rect"}
    assert not any(name.startswith("on") or name in ("src", "href", "style") for name, _ in seen.attributes)
    assert "<script>" in seen.words and "\\x1b" in seen.words
    assert not any(char in text for char in "\x1b\x07\u202e")


def test_the_page_stands_alone() -> None:
    """C3: nothing from elsewhere, and a policy that would forbid it."""
    text = page(count([ACTION]), "Tool calls")
    assert "default-src 'none'" in text
    assert (
        "http:" not in text
        and "https:" not in text
        and "//" not in text
        and "url(" not in text
        and "@import" not in text
    )


def test_the_page_tells_the_numbers() -> None:
    """C3: cards, bars with their numbers, and what is not shown of a long list."""
    found = count([*(f"<ACTION><t:{n}><a>1</a></t:{n}></ACTION>" for n in range(60)), (ACTION, "m")], tools=TOOLS)
    words = Seen(page(found, "x")).words
    for wanted in ("Calls by tool", "and 21 more", "Calls by model", "1 in 1 texts", "Calls of unknown tools", "61"):
        assert wanted in words
    assert "No tools were registered" in Seen(page(count([ACTION]), "x")).words


def test_an_empty_log_has_a_page() -> None:
    """C3: nothing to draw."""
    assert "<svg" not in page(Counts(), "x")


def test_the_examples_of_the_documentation_run() -> None:
    """House: a public docstring has an example that runs."""
    assert doctest.testmod(counts).failed == 0
