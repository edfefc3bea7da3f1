"""Hover: what is under the cursor, in a call, a manifest or a profile."""

from __future__ import annotations

import re
from functools import cache

from tamis.protocols.check import check_call
from tamis.protocols.jsontext.tree import from_pointer
from tamis.protocols.lossless import Token, block_tokens
from tamis.protocols.model import Block, Call, Json, Param, escape_pointer
from tamis.protocols.plugins import SHIPPED, editing_of, extras_of
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.answers import HoverText
from tamis.server.analysis.completion.cursor import find_cursor
from tamis.server.analysis.describe import code, describe_schema, type_name
from tamis.server.analysis.embedded import block_at, calls_at, param_at
from tamis.server.analysis.hover.tools import HoverFacts, fenced, tool_card
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.shown.schema_parts import part, resolved, told
from tamis.server.analysis.snapshot import Snapshot, ToolView

# What markers, marks and a protocol's own fields mean, in a sentence or two (seeds 000 to 002, rulings 12 to 30).


def about_field(protocol: str, key: str, calls: list[Call]) -> str:
    """What a key means that is no parameter, as Markdown; empty for one that means nothing."""
    return editing_of(protocol).about_field(key, calls)


@cache
def lone_marker() -> re.Pattern[str]:
    """A marker of any protocol, wherever it stands."""
    return re.compile("(?i)" + "|".join(marker for name in SHIPPED if (marker := editing_of(name).marker)))


def about_marker(text: str) -> str:
    """What a marker or mark means, as Markdown; empty for any other text."""
    text = text.strip()
    explained = (row for name in SHIPPED for row in editing_of(name).explained)
    return next((meaning for pattern, meaning in explained if pattern.fullmatch(text)), "")


MAX_VALUE_CHARS = 2_000


def explain(snapshot: Snapshot, offset: int, facts: HoverFacts | None = None) -> HoverText | None:
    """What to say about an offset, or None."""
    explainer = answer(snapshot, "hover")
    return explainer(snapshot, offset, facts or HoverFacts()) if explainer is not None else None


def in_graph(snapshot: Snapshot, offset: int, facts: HoverFacts) -> HoverText | None:
    """The tools that a workflow or a node definition names."""
    file_facts = snapshot.index.facts(snapshot.path) if snapshot.index is not None else None
    for use in file_facts.uses if file_facts is not None else ():
        if use.span[0] <= offset <= use.span[1] and use.span[0] < use.span[1]:
            return _tool(snapshot, use.name, use.span, facts)
    return None


def in_text(snapshot: Snapshot, offset: int, facts: HoverFacts) -> HoverText | None:
    """In a text: a tool, an argument, a part of a block."""
    block = block_at(snapshot.document.blocks, offset)
    if block is None:
        return in_expected(snapshot, offset) or _mention(snapshot.text, offset) or _half_typed(snapshot, offset, facts)
    put = _reference(snapshot, offset)
    if put is not None:
        return put
    for call in calls_at(block, offset):
        if call.tool_span[0] <= offset <= call.tool_span[1]:
            return _tool(snapshot, call.tool_id, call.tool_span, facts, call.protocol)
        hover = _argument(snapshot, call, offset)
        if hover is not None:
            return hover
    return _part(snapshot, block, offset, facts)


def _reference(snapshot: Snapshot, offset: int) -> HoverText | None:
    """What ``{{…}}`` stands for: a variable's value and environment, a block's result, a secret's name and nothing more."""
    from tamis.server.analysis.running.variables import reference_at, told, variables_in

    reference = reference_at(snapshot, offset)
    if reference is None:
        return None
    text = told(reference[0], variables_in(snapshot), reference[1])
    return HoverText(reference[0].span, text) if text else None


def in_expected(snapshot: Snapshot, offset: int) -> HoverText | None:
    """The same of what is expected, and of a manifest's examples."""
    if "{{" not in snapshot.text[max(0, offset - 512) : offset + 2]:
        return None
    from tamis.server.analysis.running.mentions import mentions_here
    from tamis.server.analysis.running.variables import Reference, told, variables_in

    for mention in mentions_here(snapshot):
        if mention.span[0] <= offset <= mention.span[1]:
            text = told(
                Reference(mention.span, mention.written, "", whole=False), variables_in(snapshot), mention.block
            )
            return HoverText(mention.span, text) if text else None
    return None


def _mention(text: str, offset: int) -> HoverText | None:
    """A marker that begins or ends nothing."""
    for match in lone_marker().finditer(text, max(0, offset - 40), offset + 40):
        if match.start() <= offset <= match.end():
            phrase = about_marker(match[0])
            return HoverText(match.span(), phrase) if phrase else None
    return None


def _half_typed(snapshot: Snapshot, offset: int, facts: HoverFacts) -> HoverText | None:
    """A tool's name in a block that cannot be read yet."""
    for match in re.finditer(r"[^\s<>/»«「」,，]{1,256}", snapshot.text[max(0, offset - 256) : offset + 256]):
        start, end = (at + max(0, offset - 256) for at in match.span())
        if start <= offset <= end and snapshot.tool(match[0]) is not None:
            return _tool(snapshot, match[0], (start, end), facts) if find_cursor(snapshot.text, start) else None
    return None


def _tool(snapshot: Snapshot, name: str, span: Span, facts: HoverFacts, protocol: str = "") -> HoverText | None:
    tool = snapshot.tool(name, protocol)
    return HoverText(span, tool_card(snapshot, tool, facts)) if tool is not None else None


def _part(snapshot: Snapshot, block: Block, offset: int, facts: HoverFacts) -> HoverText | None:
    """Markers, marks, a protocol's own fields, and the closing tag of a tool."""
    text = snapshot.text
    tile = _tile_at(block_tokens(snapshot.document, block), offset)
    if tile is None:
        return None
    span = (tile.start, tile.end)
    word = text[tile.start : tile.end]
    if tile.kind == "key":
        if extras_of(block.protocol).elements and snapshot.tool(word) is not None:
            return _tool(snapshot, word, span, facts)
        phrase = about_field(block.protocol, word, block.calls)
    elif tile.kind in ("marker", "delimiter", "fence"):
        phrase = about_marker(word)
    else:
        phrase = ""
    return HoverText(span, phrase) if phrase else None


def _tile_at(tiles: list[Token], offset: int) -> Token | None:
    """The token around an offset; between two of them the one that says something."""
    near = [tile for tile in tiles if tile.start <= offset <= tile.end and tile.kind not in ("blank", "noise")]
    named = [tile for tile in near if tile.kind == "key"]
    return named[0] if named else near[-1] if near else None


# Arguments


def _argument(snapshot: Snapshot, call: Call, offset: int) -> HoverText | None:
    param = param_at(call, offset)
    if param is None:
        return None
    if param.value.span[0] <= offset <= param.value.span[1]:
        from tamis.server.analysis.embedded_schema import explain_embedded

        inner = explain_embedded(snapshot, offset)
        if inner is not None:
            return HoverText(inner.span, re.sub(r"\n{3,}", "\n\n", inner.markdown))
    elif not param.name_span[0] <= offset <= param.name_span[1]:
        # A closing tag or mark speaks for itself.
        word = snapshot.text[param.span[0] : param.span[1]]
        at = offset - param.span[0]
        mark = next(
            (m for m in ("»»»", "«««", "「始", "「末", "<![CDATA[", "]]>") if m in word[max(0, at - 9) : at + 9]), ""
        )
        if mark:
            return None
    tool = snapshot.tool(call.tool_id)
    schema = snapshot.properties(call.tool_id).get(param.name)
    if tool is None or schema is None:
        return None
    return _element(tool, param, schema, offset) or HoverText(
        param.span, _parameter_card(snapshot, tool, call, param, schema)
    )


def _element(tool: ToolView, param: Param, schema: Json, offset: int) -> HoverText | None:
    """A value inside nested elements, by its own part of the schema."""
    if param.value.kind == "text":
        return None
    root = tool.manifest.parameters
    for pointer, value in param.value.walk():
        if value.kind == "text" and value.span[0] <= offset <= value.span[1]:
            names = from_pointer(pointer)
            here = resolved(schema, root)
            for name in names:
                here = part(here, name, root)
            if not here:
                return None
            title = f"**{'.'.join((param.name, *names))}** ({type_name(here)}) of {code(tool.tool_id)}"
            return HoverText(value.span, f"{title}\n\n{describe_schema(told(here))}".strip())
    return None


def _parameter_card(snapshot: Snapshot, tool: ToolView, call: Call, param: Param, schema: Json) -> str:
    here = resolved(schema, tool.manifest.parameters)
    need = ", required" if param.name in snapshot.required(call.tool_id) else ""
    gone = " — deprecated" if here.get("deprecated") is True else ""
    shared = about_field(call.protocol, param.raw_name, []) if param.origin == "common" else ""
    parts = [f"**{param.name}** ({type_name(here)}{need}) of {code(tool.tool_id)}{gone}", describe_schema(told(here))]
    if shared:
        parts.append(shared.partition("\n\n")[2])
    parts.append(_value(snapshot, tool, call, param, here))
    return "\n\n".join(part for part in parts if part)


def _value(snapshot: Snapshot, tool: ToolView, call: Call, param: Param, schema: dict[str, Json]) -> str:
    """The value that the tool will get, and what the schema made of it."""
    if schema.get("x-secret") is True:
        return "The value is masked in logs, observations and records."
    written = param.value.python(snapshot.text)
    if isinstance(written, str) and not written.strip() and not call.complete:
        return ""
    if param.name in call.uris:
        return f"The tool gets the path of the file that {code(call.uris[param.name])} names."
    read = _coerced(snapshot, tool, call, param)
    if read is None:
        return ""
    value, problem = read
    if problem:
        return f"As it stands it does not fit: {problem}"
    if type(value) is type(written) and value == written:
        return f"The tool gets {_shown(value)}"
    origin = f"the text {code(written)}" if isinstance(written, str) else "the elements that stand there"
    return f"The tool gets {_shown(value)} ({_type_of(value)}, from {origin})"


def _coerced(snapshot: Snapshot, tool: ToolView, call: Call, param: Param) -> tuple[Json, str] | None:
    """The value after coercion, or what is wrong with it; the other arguments do not matter."""
    whole = check_call(call, snapshot.text, tool.plan)
    if whole.valid:
        return whole.coerced.get(param.name), ""
    from tamis.protocols.catalogue import message
    from tamis.protocols.schema.plan import compile_plan

    own = next(
        (problem for problem in whole.problems if problem.finding.path.split("/")[1:2] == [escape_pointer(param.name)]),
        None,
    )
    if own is not None and own.finding.severity == "error":
        return None, message(own.diag)
    # Something else is wrong with the call: this argument is read alone.
    root = tool.manifest.parameters or {}
    kept: dict[str, Json] = {key: root[key] for key in ("$schema", "$defs", "definitions") if key in root}
    properties = root.get("properties")
    declared = properties[param.name] if is_object(properties) and param.name in properties else True
    plan = compile_plan({**kept, "type": "object", "properties": {param.name: declared}})
    alone = Call(call.protocol, call.tool_id, call.tool_span, call.span, [param], type_hints=call.type_hints)
    checked = check_call(alone, snapshot.text, plan)
    return (checked.coerced.get(param.name), "") if checked.valid else None


def _type_of(value: Json) -> str:
    from tamis.protocols.schema.words import type_of

    return type_of(value)


def _shown(value: Json) -> str:
    """A value as inline code, or in a fence where it has several lines."""
    import json

    if isinstance(value, str):
        if "\n" in value:
            more = f"\n\n… {len(value)} characters in all" if len(value) > MAX_VALUE_CHARS else ""
            return f"this text:\n\n{fenced(value[:MAX_VALUE_CHARS])}{more}"
        return code(value) if value else "an empty text"
    return code(json.dumps(value, ensure_ascii=False, default=str))
