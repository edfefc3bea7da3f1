"""The ``{{tools}}`` macro and the token budget (V30, V31, V35)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PromptTool, Shape
from tamis.protocols.prompt.assemble import (
    MACRO,
    TOOLS_MACRO,
    Prompt,
    PromptTooLargeError,
    PromptWish,
    build_prompt,
    fill,
)
from tests.protocols.prompt_forms import definitions, example_tools, forms, protocol_of
from tests.protocols.prompt_tools import TOOLS


def test_the_metadata_is_the_seeds() -> None:  # V30
    found = msgspec.to_builtins(TOOLS_MACRO)
    assert found.pop("description")
    assert found == {
        "name": "tools",
        "type": "VALUE",
        "phase": "SUBSTITUTE",
        "example": "{{tools}}",
        "acceptsArgs": False,
        "priority": 95,
        "supported": True,
        "contextFree": False,
    }


@given(
    st.lists(
        st.sampled_from(
            ["{{tools}}", "{{", "}}", "tools", "{{ tools }}", "{{tools::x}}", "{{user}}", "\r\n", "天", " "]
        )
    )
)
def test_only_the_macro_is_replaced(parts: list[str]) -> None:
    template = "".join(parts)
    filled, count = fill(template, "\x00")
    assert filled.replace("\x00", MACRO) == template
    assert filled.count("\x00") == count == template.count(MACRO)


def test_the_escaped_form_is_the_letters_themselves() -> None:
    assert fill(r"write \{{tools}} or {{tools}}", "X") == ("write {{tools}} or X", 1)


def test_what_was_filled_in_is_not_looked_at_again() -> None:
    assert fill("{{tools}}!", "{{tools}} \\1 \\{{tools}}") == ("{{tools}} \\1 \\{{tools}}!", 1)


def test_without_tools_the_macro_is_empty() -> None:  # V31
    prompt = build_prompt(
        protocol_of("vcp"), (), PromptWish(few_shot=3), wrap=lambda text: fill("a{{tools}}b", text)[0]
    )
    assert prompt.text == "ab"


def build(name: str, shape: Shape, limit: int | None, few: int = 6) -> Prompt:
    wish = PromptWish(shape=shape, few_shot=few, max_tokens=limit)
    return build_prompt(protocol_of(name), example_tools(), wish, count=len)


@pytest.mark.slow
@forms
def test_a_budget_drops_examples_then_goes_compact_then_leaves_tools_out(name: str, shape: Shape) -> None:
    whole = build(name, shape, None)
    assert (whole.style, whole.few_shot, whole.notes) == ("full", 6, ())
    fewer = build(name, shape, whole.tokens - 1)
    assert fewer.style == "full"
    assert 0 < fewer.few_shot < 6
    assert fewer.tokens == len(fewer.text) < whole.tokens
    assert "of 6 examples" in fewer.notes[0]
    bare = build(name, shape, None, few=0)
    assert build(name, shape, bare.tokens).text == bare.text
    compact = build(name, shape, bare.tokens - 1)
    assert (compact.style, compact.few_shot) == ("compact", 6)  # the examples fit again beside the compact definitions
    assert [note for note in compact.notes if "left out" in note] == []
    assert any("compact style" in note for note in compact.notes)
    assert build(name, shape, compact.tokens).text == compact.text
    assert 0 < build(name, shape, compact.tokens - 1).few_shot < 6
    least = build(name, shape, bare.tokens - 1, few=0).tokens
    assert build(name, shape, least).few_shot == 0
    # R4: it was refused
    chosen = build(name, shape, least - 1)
    assert (chosen.style, chosen.few_shot) == ("compact", 0)
    assert chosen.tokens == len(chosen.text) < least
    left_out = {tool.tool_id or tool.name for tool in example_tools()} - set(chosen.per_tool)
    assert left_out and all(name in chosen.notes[0] for name in left_out)
    with pytest.raises(PromptTooLargeError, match=rf"^\d+ tools need about {least} tokens"):
        build(name, shape, 20)


@given(st.integers(1, 4000), st.permutations(TOOLS))
def test_a_budget_chooses_tools_in_their_order_and_names_the_others(limit: int, tools: list[PromptTool]) -> None:
    # R4
    wish = PromptWish(max_tokens=limit, few_shot=1)
    try:
        prompt = build_prompt(protocol_of("tam"), tools, wish, count=len)
    except PromptTooLargeError:
        return
    assert len(prompt.text) <= limit
    assert list(prompt.per_tool) == [tool.name for tool in tools if tool.name in prompt.per_tool]
    for tool in tools:
        assert (f"`{tool.name}`" in prompt.text) is (tool.name in prompt.per_tool)
        assert tool.name in prompt.per_tool or tool.name in prompt.notes[0]


def test_of_many_tools_that_are_left_out_the_first_are_named() -> None:
    tools = [PromptTool(f"tool_{n:03}", "Does a thing.", {}) for n in range(100)]
    prompt = build_prompt(protocol_of("tam"), tools, PromptWish(max_tokens=2_500, instructions=False), count=len)
    left = 100 - len(prompt.per_tool)
    assert 20 < left < 100
    assert prompt.notes[0].startswith(f"{left} of 100 tools are left out")
    assert prompt.notes[0].endswith(f" and {left - 20} more")


def test_what_did_not_change_is_not_counted_again() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    pieces: dict[bytes, int] = {}
    first = build_prompt(protocol_of("vcp"), TOOLS, PromptWish(), count=count, pieces=pieces)
    before = len(counted)
    changed = msgspec.structs.replace(TOOLS[0], description="Another one.")
    second = build_prompt(protocol_of("vcp"), [changed, *TOOLS[1:]], PromptWish(), count=count, pieces=pieces)
    # the whole text, and the one that changed
    assert len(counted) - before == 2
    assert {name: first.per_tool[name] for name in first.per_tool if name != changed.name} == {
        name: second.per_tool[name] for name in second.per_tool if name != changed.name
    }


def test_a_budget_counts_the_template_too() -> None:
    wish = PromptWish(max_tokens=1_000)
    with pytest.raises(PromptTooLargeError):
        build_prompt(protocol_of("vcp"), TOOLS, wish, wrap=lambda text: text + "x" * 1_001, count=len)


def test_each_tool_is_told_with_its_tokens() -> None:  # V35
    prompt = build_prompt(protocol_of("vcp"), TOOLS, PromptWish(few_shot=2), count=len)
    assert prompt.per_tool == {tool.name: len(definitions("vcp", tool)) for tool in TOOLS}
    listed = build_prompt(protocol_of("action"), TOOLS, PromptWish(), count=len)
    assert sum(listed.per_tool.values()) < len(definitions("action", *TOOLS)) < sum(listed.per_tool.values()) + 200
