"""A whole prompt text: instructions, definitions and examples, within a token budget.

Over the budget, worked examples go first (from the last), then the definitions become compact, beside as many examples as fit again;
when that is still too much, tools are left out from the end of their order, and named. No text is ever cut. How a call is written
each protocol says of itself (`Extras.instructions`); one that a plug-in brought is described by its markers. Must not know where the tools come from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

import msgspec

from tamis.protocols.base import CallProtocol, PlainCall, PromptTool, Shape, Style, WriteOptions
from tamis.protocols.contract import PromptMacro
from tamis.protocols.plugins import extras_of
from tamis.protocols.prompt import MAX_FEW_SHOT, listing
from tamis.protocols.prompt.fewshot import FewShot, few_shot
from tamis.protocols.prompt.guard import code
from tamis.protocols.schema.secrets import without_secret_values
from tamis.protocols.tokens import estimate_tokens

CountTokens = Callable[[str], int]
Pieces = dict[bytes, int]
"""Tokens of single definitions, by all that they are made of: spares counting again what did not change. Bounded here."""
MAX_PIECES = 65_536
_TRIES = 4
FIRST = "You can call the tools that are listed below. A call is text that you write; what the tool gives comes back to you as an observation."
_WHEN = "- Call a tool only when you need one. When you need none, answer in plain text and write no {open}."
_WHY = "- First say in a sentence or two why you make the call, then write the call, and end your answer behind it."
_AFTER = (
    "- Write names exactly as they are listed. Give every required parameter; leave out an optional one that you do not need.",
    "- Never write an observation yourself. When one says that a call was wrong, correct what it names and call again.",
)
MAX_NAMED = 20
"""How many of the tools that were left out are named."""


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


def instructions(protocol: CallProtocol, shape: Shape = "tag") -> str:
    """How a model is told to call (seed 000 §4.1), a paragraph and a list; holds no call: markers stand in inline code, which readers
    take as text (ruling 6)."""
    extras = extras_of(protocol.id)
    own = extras.instructions(shape)
    if own is None:
        markers = protocol.markers
        own = (
            f"- Put the call between {code(markers.open)} and {code(markers.close)}, written as {_example(protocol)}.",
        )
    if extras.whole_text:
        lines = (_WHEN.replace("{open}", "call"),)
    else:
        lines = (_WHEN.replace("{open}", code(protocol.markers.open)), _WHY)
    return "\n".join([FIRST, "", *lines, *own, *_AFTER])


def _example(protocol: CallProtocol) -> str:
    """A made-up call in the words of a protocol that is not known here, in code, where readers take it as text; else where examples stand."""
    written = protocol.write_calls((PlainCall("tool", {"parameter": "value"}),), WriteOptions())
    text = "" if written.refusals else written.text.strip("\n")
    if not text:
        return "in the examples"
    if "\n" not in text:
        return f"here: {code(text)}"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"here:\n\n{fence}\n{text}\n{fence}\n\n"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural but for one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class PromptTooLargeError(Exception):
    """Even the smallest form of a single tool has more tokens than allowed."""

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
    pieces: Pieces | None = None,
) -> Prompt:
    """The prompt for ``tools`` (V34: the same text for the same tools in any order); empty without tools.

    Where not all of them fit into ``max_tokens``, the first ones that do are chosen, and the others are named in ``notes``. ``wrap`` puts the text where it belongs (a template). Raises ``PromptTooLargeError``.
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
            each = _per_tool(protocol, tools, style, wish.shape, count, pieces)
            return Prompt(text, tokens, style, shown, each, tuple(notes))
    each = _per_tool(protocol, tools, "compact", wish.shape, count, pieces)
    chosen = _chosen(protocol, tools, wish, each, lambda text: count(wrap(_joined(head, text))))
    if not chosen:
        raise PromptTooLargeError(len(tools), tokens, limit or 0)
    text = wrap(_joined(head, define(protocol, chosen, "compact", wish.shape)))
    own = {_id(tool): each[_id(tool)] for tool in chosen}
    left_out = [_id(tool) for tool in tools if _id(tool) not in own]
    notes = [note for note in notes if note not in examples.left_out]
    return Prompt(text, count(text), "compact", 0, own, (_left_out(left_out, len(tools), limit or 0), *notes))


def _chosen(
    protocol: CallProtocol, tools: Sequence[PromptTool], wish: PromptWish, each: dict[str, int], count: CountTokens
) -> list[PromptTool]:
    """The first tools whose compact definitions fit together; ``count`` is of definitions with all that stands around them."""
    limit = wish.max_tokens or 0
    chosen: list[PromptTool] = []
    left = limit - count("")
    for _ in range(_TRIES):
        # what they take together is not what each takes alone: headings are shared, and words are cut otherwise
        there = {id(tool) for tool in chosen}
        more = _first_fitting([tool for tool in tools if id(tool) not in there], each, left)
        if not more:
            break
        added = there.union(map(id, more))
        chosen = [tool for tool in tools if id(tool) in added]
        left = limit - count(define(protocol, chosen, "compact", wish.shape))
    while chosen and left < 0:
        while chosen and left < 0:
            left += max(1, each[_id(chosen.pop())])
        left = limit - count(define(protocol, chosen, "compact", wish.shape))
    return chosen


def _first_fitting(tools: Sequence[PromptTool], each: dict[str, int], left: int) -> list[PromptTool]:
    prompt_tools: list[PromptTool] = []
    for tool in tools:
        if each[_id(tool)] <= left:
            prompt_tools.append(tool)
            left -= each[_id(tool)]
    return prompt_tools


def _left_out(names: Sequence[str], count: int, limit: int) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    are = "is" if len(names) == 1 else "are"
    return f"{len(names)} of {counted(count, 'tool')} {are} left out, with which the text would be above maxTokens {limit}: {', '.join(names[:MAX_NAMED])}{more}"


def _id(tool: PromptTool) -> str:
    return tool.tool_id or tool.name


def define(protocol: CallProtocol, tools: Sequence[PromptTool], style: Style, shape: Shape) -> str:
    """The definitions alone, for a shape of calls."""
    own = extras_of(protocol.id).definitions(tools, style, shape)
    return protocol.generate_tool_definitions(tools, style) if own is None else own


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
    protocol: CallProtocol,
    tools: Sequence[PromptTool],
    style: Style,
    shape: Shape,
    count: CountTokens,
    pieces: Pieces | None,
) -> dict[str, int]:
    by_id: dict[str, int] = {}
    for tool in tools:
        key = b"" if pieces is None else _digest(protocol.id, style, shape, tool)
        known = pieces.get(key) if pieces is not None and key else None
        if known is None:
            known = count(_alone(define(protocol, (tool,), style, shape)))
            if pieces is not None and key:
                if len(pieces) >= MAX_PIECES:
                    pieces.clear()
                pieces[key] = known
        by_id[_id(tool)] = known
    return by_id


def _digest(*parts: object) -> bytes:
    """Names all that a definition is made of; empty where that cannot be written (lone surrogates, numbers beyond 64 bits)."""
    try:
        return hashlib.blake2b(msgspec.msgpack.encode(parts), digest_size=16).digest()
    except (UnicodeError, OverflowError, ValueError, TypeError):
        return b""


def tool_text(protocol: CallProtocol, tool: PromptTool, style: Style = "full", shape: Shape = "tag") -> str:
    """What a prompt says about one tool, without the headings that it shares with others: what ``per_tool`` counts."""
    shown = msgspec.structs.replace(tool, parameters=without_secret_values(tool.parameters))
    return _alone(define(protocol, (shown,), style, shape))


def _alone(definitions: str) -> str:
    for heading in (listing.HEAD, listing.TOOLS, listing.SKILLS):
        definitions = definitions.replace(heading, "", 1)
    return definitions.strip()


# The ``{{tools}}`` macro (seed 001 §6): its metadata, and the filling of a template.


MACRO = "{{tools}}"
_MACRO = re.compile(r"(\\?)\{\{tools\}\}")

TOOLS_MACRO = PromptMacro(
    name="tools",
    type="VALUE",
    phase="SUBSTITUTE",
    description="Injects the definitions of the tools that the current agent may call, in the protocol's format",
    example=MACRO,
    accepts_args=False,
    priority=95,
    supported=True,
    context_free=False,
)
"""What a macro engine registers it with (V30)."""


def fill(template: str, value: str) -> tuple[str, int]:
    """The template with ``value`` for every ``{{tools}}``, and how many there were.

    ``\\{{tools}}`` stands for the letters ``{{tools}}``. Nothing else is touched: other macros, ``{{ tools }}`` and ``{{tools::x}}``
    (the macro takes no arguments) stay byte for byte, and what was filled in is not looked at again.
    """
    count = 0

    def put(match: re.Match[str]) -> str:
        nonlocal count
        if match.group(1):
            return MACRO
        count += 1
        return value

    return _MACRO.sub(put, template), count
