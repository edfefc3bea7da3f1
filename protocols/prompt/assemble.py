"""A whole prompt text: instructions, definitions and examples, within a token budget.

Over the budget, worked examples go first (from the last), then the definitions become compact, beside as many examples as fit again;
when that is still too much, the prompt is refused, never cut. Must not know where the tools come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tamis.protocols.base import CallProtocol, PromptTool, Shape, Style
from tamis.protocols.prompt import MAX_FEW_SHOT, listing
from tamis.protocols.prompt.fewshot import FewShot, few_shot
from tamis.protocols.prompt.instructions import instructions
from tamis.protocols.prompt.unsaid import without_secret_values
from tamis.protocols.tokens import estimate_tokens

CountTokens = Callable[[str], int]


class PromptWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt is to hold. ``max_tokens`` bounds the whole text, a template around it included."""

    style: Style = "full"
    shape: Shape = "tag"
    few_shot: int = 0
    instructions: bool = True
    max_tokens: int | None = None


class Prompt(msgspec.Struct, frozen=True):
    """A prompt text; ``style`` and ``few_shot`` are what it has in the end, ``notes`` what was left out, ``per_tool`` tokens by name."""

    text: str
    tokens: int
    style: Style
    few_shot: int
    per_tool: dict[str, int]
    notes: tuple[str, ...] = ()


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural but for one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class PromptTooLargeError(Exception):
    """Even the smallest form has more tokens than allowed."""

    def __init__(self, tools: int, needed: int, allowed: int) -> None:
        super().__init__(
            f"{counted(tools, 'tool')} need{'s' if tools == 1 else ''} about {needed} tokens in the compact style, more than maxTokens {allowed};"
            " choose fewer with toolIds or filter"
        )
        self.needed = needed


def build_prompt(
    protocol: CallProtocol,
    tools: Sequence[PromptTool],
    wish: PromptWish,
    *,
    wrap: Callable[[str], str] = lambda text: text,
    count: CountTokens = estimate_tokens,
) -> Prompt:
    """The prompt for ``tools`` (V34: the same text for the same tools in any order); empty without tools.

    ``wrap`` puts the text where it belongs (a template). Raises ``PromptTooLargeError``.
    """
    if not tools:
        text = wrap("")
        return Prompt(text, count(text), wish.style, 0, {}, ())
    tools = [msgspec.structs.replace(tool, parameters=without_secret_values(tool.parameters)) for tool in tools]
    head = instructions(protocol, wish.shape) if wish.instructions else ""
    examples = few_shot(protocol, tools, min(wish.few_shot, MAX_FEW_SHOT), wish.shape)
    notes = list(examples.left_out)
    limit = wish.max_tokens
    styles: tuple[Style, ...] = ("full", "compact") if wish.style == "full" else ("compact",)
    tokens = 0
    for style in styles:
        definitions = define(protocol, tools, style, wish.shape)
        shown = len(examples.calls)
        if style != wish.style:
            notes.append(
                f"the definitions are in the compact style: the full ones have more tokens than maxTokens {limit}"
            )
        while True:
            text = wrap(_joined(head, definitions, examples.text(shown)))
            tokens = count(text)
            if limit is None or tokens <= limit or shown == 0:
                break
            shown = _fewer(examples, shown, tokens - limit, count)
        if limit is None or tokens <= limit:
            if shown < len(examples.calls):
                left = len(examples.calls) - shown
                notes.insert(
                    0,
                    f"{left} of {counted(len(examples.calls), 'example')} {'is' if left == 1 else 'are'} left out: more would be above maxTokens {limit}",
                )
            return Prompt(
                text, tokens, style, shown, _per_tool(protocol, tools, style, wish.shape, count), tuple(notes)
            )
    raise PromptTooLargeError(len(tools), tokens, limit or 0)


def define(protocol: CallProtocol, tools: Sequence[PromptTool], style: Style, shape: Shape) -> str:
    """The definitions alone, for either ACTION shape."""
    if protocol.id == "action" and shape == "inputs":
        from tamis.protocols.prompt.action import action_definitions

        return action_definitions(tools, style, shape)
    return protocol.generate_tool_definitions(tools, style)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _fewer(examples: FewShot, shown: int, over: int, count: CountTokens) -> int:
    """How many examples to try next: as many as their own sizes say, at least one fewer."""
    while shown > 0:
        shown -= 1
        over -= count(examples.calls[shown])
        if over <= 0:
            break
    return shown


def _per_tool(
    protocol: CallProtocol, tools: Sequence[PromptTool], style: Style, shape: Shape, count: CountTokens
) -> dict[str, int]:
    found: dict[str, int] = {}
    for tool in tools:
        found[tool.tool_id or tool.name] = count(_alone(define(protocol, (tool,), style, shape)))
    return found


def tool_text(protocol: CallProtocol, tool: PromptTool, style: Style = "full", shape: Shape = "tag") -> str:
    """What a prompt says about one tool, without the headings that it shares with others: what ``per_tool`` counts."""
    shown = msgspec.structs.replace(tool, parameters=without_secret_values(tool.parameters))
    return _alone(define(protocol, (shown,), style, shape))


def _alone(definitions: str) -> str:
    for heading in (listing.HEAD, listing.TOOLS, listing.SKILLS):
        definitions = definitions.replace(heading, "", 1)
    return definitions.strip()
