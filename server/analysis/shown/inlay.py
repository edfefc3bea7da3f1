"""Inlay hints: what a call leaves unsaid (types, defaults), what a tool costs a prompt, how long it may run, what its last run gave.

A default is told, never passed on (ruling 2): its hint says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

import msgspec

from tamis.protocols.model import Block, Call, Param, escape_pointer
from tamis.protocols.plugins import extras_of
from tamis.protocols.positions import Span
from tamis.server.analysis.describe import describe_schema, type_name
from tamis.server.analysis.embedded import blocks_in
from tamis.server.analysis.hover.tools import MAX_TOOL_CHARS, PromptView, heading, own_tool, prompt_texts
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.shown.schema_parts import resolved, told, types_of
from tamis.server.analysis.snapshot import Snapshot, ToolView

MAX_DEFAULTS = 5
MAX_VALUE_CHARS = 32
_READ_AS_TEXT = frozenset({"string"})


class Part(msgspec.Struct, frozen=True):
    """A piece of a hint's label; ``path`` and ``pointer`` lead to the key of a manifest that it speaks of."""

    text: str
    path: str = ""
    pointer: str = ""
    tooltip: str = ""


class Hint(msgspec.Struct, frozen=True):
    """What is shown at an offset beside the text. ``later`` names what its tooltip needs to be made."""

    offset: int
    parts: tuple[Part, ...]
    kind: Literal["type", "parameter", ""] = ""
    tooltip: str = ""
    left: bool = False
    right: bool = False
    later: Literal["tokens", ""] = ""


class HintWish(msgspec.Struct, frozen=True):
    """Which hints are wanted; ``results`` are the outcomes of runs by the span that was run."""

    view: PromptView = PromptView()
    tokens: bool = True
    parameters: bool = True
    results: Mapping[Span, str] = {}


def inlay_hints(snapshot: Snapshot, span: Span | None = None, wish: HintWish | None = None) -> list[Hint]:
    """The hints of a document, or those within ``span``, by place."""
    find = answer(snapshot, "hints")
    hints: list[Hint] = find(snapshot, span, wish or HintWish()) if find is not None else []
    kept = [hint for hint in hints if span is None or span[0] <= hint.offset <= span[1]]
    kept.sort(key=lambda hint: hint.offset)
    return kept


def of_text(snapshot: Snapshot, span: Span | None, wish: HintWish) -> list[Hint]:
    """The hints of a text: what its runs gave, types and defaults of arguments."""
    hints = list(_results(snapshot, wish))
    for block in blocks_in(snapshot.document.blocks, span) if wish.parameters else ():
        hints.extend(_in_block(snapshot, block))
    return hints


def of_manifest(snapshot: Snapshot, _span: Span | None, wish: HintWish) -> list[Hint]:
    """The hints of a manifest: what its examples gave, its tokens, its time."""
    return [*_results(snapshot, wish), *_in_manifest(snapshot, wish)]


def of_results(snapshot: Snapshot, _span: Span | None, wish: HintWish) -> list[Hint]:
    """What was run gave this."""
    return list(_results(snapshot, wish))


def _results(snapshot: Snapshot, wish: HintWish) -> Iterator[Hint]:
    for span, outcome in wish.results.items():
        if span[1] <= len(snapshot.text):
            yield Hint(span[1], (Part(outcome),), left=True)


# Calls


def _in_block(snapshot: Snapshot, block: Block) -> Iterator[Hint]:
    if block.aside:
        return
    seen: set[int] = set()
    for call in block.calls:
        tool = snapshot.tool(call.tool_id)
        if tool is None:
            continue
        for param in call.params:
            hint = _type(snapshot, call, param, tool)
            if hint is not None and hint.offset not in seen:
                seen.add(hint.offset)
                yield hint
        if call.complete and call.executable:
            yield from _defaults(snapshot, block, call, tool)


def _type(snapshot: Snapshot, call: Call, param: Param, tool: ToolView) -> Hint | None:
    """The type of a parameter whose value is not simply the text that stands there."""
    schema = resolved(snapshot.properties(call.tool_id).get(param.name), tool.manifest.parameters)
    if not schema or (types_of(schema) <= _READ_AS_TEXT and "format" not in schema):
        return None
    named: Any = schema.get("format")
    name = named if isinstance(named, str) and type_name(schema) == "string" else type_name(schema)
    if name in ("any", "enum"):
        return None
    at = param.name_span[1]
    if snapshot.text[at : at + 1] in ("'", '"'):
        at += 1
    part = Part(f": {name}", tool.path, _pointer(param.name), describe_schema(told(schema)))
    return Hint(at, (part,), "type")


def _pointer(name: str) -> str:
    return "/parameters/properties/" + escape_pointer(name)


def _defaults(snapshot: Snapshot, block: Block, call: Call, tool: ToolView) -> Iterator[Hint]:
    """What the manifest says of the parameters that were left out."""
    param_names = {param.name for param in call.params}
    left: list[tuple[str, str]] = []
    for name, schema in snapshot.properties(call.tool_id).items():
        here = resolved(schema, tool.manifest.parameters)
        if (
            name not in param_names
            and "default" in here
            and here.get("deprecated") is not True
            and here.get("x-secret") is not True
        ):
            left.append((name, _short(here["default"])))
    if not left:
        return
    parts: list[Part] = []
    for name, value in left[:MAX_DEFAULTS]:
        if parts:
            parts.append(Part(", "))
        parts.append(Part(f"{name}: {value}", tool.path, _pointer(name)))
    if len(left) > MAX_DEFAULTS:
        parts.append(Part(f", … {len(left) - MAX_DEFAULTS} more"))
    listed = "\n".join(f"- `{name}`: {value}" for name, value in left)
    tooltip = f"Left out; the manifest's defaults. The tool is told nothing of them.\n\n{listed}"
    yield Hint(_end_of(snapshot.text, block, call), tuple(parts), "parameter", tooltip, left=True)


def _end_of(text: str, block: Block, call: Call) -> int:
    """Behind the last thing that a call says."""
    own = [param.span[1] for param in call.params if call.span[0] <= param.span[0] < call.span[1]]
    if own:
        return max(own)
    if extras_of(block.protocol).elements:
        opened = text.find(">", call.tool_span[1], call.span[1])
        return opened + 1 if opened >= 0 else call.tool_span[1]
    return call.span[1]


def _short(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"


# Manifests


def _in_manifest(snapshot: Snapshot, wish: HintWish) -> Iterator[Hint]:
    tree = snapshot.manifest.tree
    root = tree.root
    if root is None or root.kind != "object":
        return
    wall = _operator_wall(snapshot)
    asked: list[int] = []
    for pointer in ("/execution/timeoutMs", "/execution/limits/wallMs"):
        node = tree.node_at(pointer)
        if node is None or node.kind != "number" or not isinstance(node.value, int):
            continue
        asked.append(node.value)
        if wall is not None and node.value > wall:
            tooltip = "sandbox.wallMs of the settings is less: a run is ended after that."
            yield Hint(node.end, (Part(f"→ {wall}"),), tooltip=tooltip, left=True)
    parts: list[str] = []
    later: Literal["tokens", ""] = ""
    if wish.tokens and len(snapshot.text) > MAX_TOOL_CHARS:
        parts.append(f"tokens are not counted above {MAX_TOOL_CHARS} characters")
    elif wish.tokens and (tool := own_tool(snapshot)) is not None:
        first = next(prompt_texts(snapshot, tool, wish.view, first_only=True), None)
        if first is not None:
            parts.append(f"{first.count} ({heading(first.protocol)})")
            later = "tokens"
    handler = snapshot.manifest.manifest.handler if snapshot.manifest.manifest is not None else None
    if wall is not None and not asked and handler is not None and hasattr(handler, "script_path"):
        parts.append(f"at most {wall} ms")
    if parts:
        yield Hint(root.start + 1, (Part(" · ".join(parts)),), left=True, later=later)


def _operator_wall(snapshot: Snapshot) -> int | None:
    """The longest that the settings let a run take, in milliseconds, where they are known."""
    config = snapshot.settings.config
    return config.sandbox.wall_ms if config is not None else None


def token_tooltip(snapshot: Snapshot, view: PromptView) -> str:
    """What a manifest costs in each protocol, as Markdown; empty while it is not sound."""
    tool = own_tool(snapshot)
    if tool is None:
        return ""
    lines = ["Tokens of what a model reads about this tool:", ""]
    lines += [
        f"- {heading(prompt_text.protocol)}: {prompt_text.count}" for prompt_text in prompt_texts(snapshot, tool, view)
    ]
    handler = cast("object", tool.manifest.handler)
    wall = _operator_wall(snapshot)
    if wall is not None and hasattr(handler, "script_path"):
        lines += ["", f"A run takes at most {wall} ms (sandbox.wallMs); execution.timeoutMs can lower it."]
    return "\n".join(lines)
