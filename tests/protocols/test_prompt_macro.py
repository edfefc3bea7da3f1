"""The ``{{tools}}`` macro and the token budget (V30, V31, V35)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import Shape
from tamis.protocols.prompt.assemble import Prompt, PromptTooLargeError, PromptWish, build_prompt
from tamis.protocols.prompt.macro import MACRO, TOOLS_MACRO, fill
from tests.protocols.prompt_tools import TOOLS
from tests.protocols.test_prompt_definitions import definitions, example_tools, forms, protocol_of


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


@forms
def test_a_budget_drops_examples_then_goes_compact_then_refuses(name: str, shape: Shape) -> None:
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
    with pytest.raises(PromptTooLargeError, match=rf"^\d+ tools need about {least} tokens"):
        build(name, shape, least - 1)


def test_a_budget_counts_the_template_too() -> None:
    wish = PromptWish(max_tokens=1_000)
    with pytest.raises(PromptTooLargeError):
        build_prompt(protocol_of("vcp"), TOOLS, wish, wrap=lambda text: text + "x" * 1_001, count=len)


def test_each_tool_is_told_with_its_tokens() -> None:  # V35
    prompt = build_prompt(protocol_of("vcp"), TOOLS, PromptWish(few_shot=2), count=len)
    assert prompt.per_tool == {tool.name: len(definitions("vcp", tool)) for tool in TOOLS}
    listed = build_prompt(protocol_of("action"), TOOLS, PromptWish(), count=len)
    assert sum(listed.per_tool.values()) < len(definitions("action", *TOOLS)) < sum(listed.per_tool.values()) + 200
