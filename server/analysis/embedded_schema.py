"""What a tool's schema says about the JSON inside a value of its calls: completion, hover, and findings at their inner place."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.check import LocatedFinding, Written
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, Path, from_pointer
from tamis.protocols.model import Call, Diag, Edit, Fix, Value
from tamis.protocols.schema.words import index_in, is_object
from tamis.protocols.suggest import normalised, same_name
from tamis.server.analysis.answers import HoverText, Proposal
from tamis.server.analysis.completion.schema_place import Schema, schemas_at
from tamis.server.analysis.completion.schema_proposals import JsonAsk, propose_json
from tamis.server.analysis.describe import code, describe_schema, type_name
from tamis.server.analysis.embedded import Embedded, of_value
from tamis.server.analysis.snapshot import Snapshot

MAX_SYNTAX_FINDINGS = 20
MAX_JSON_CHARS = 1024 * 1024
"""Longer JSON inside one value is checked, but not proposed into."""
_STRUCTURED = frozenset(("object", "array"))


def value_schemas(snapshot: Snapshot, tool_id: str, path: Path) -> list[Schema]:
    """The schemas of an argument, or of a part of one, by the names that lead there; names are compared loosely (ruling 20)."""
    tool = snapshot.tool(tool_id)
    root: Any = tool.manifest.parameters if tool is not None else None
    if not is_object(root):
        return []
    here = schemas_at(root, None, ())
    for token in path:
        below = _below(root, here, token)
        if not below and isinstance(token, str):
            below = _below(root, here, None, token)
        here = below
    return here


def _below(root: object, schemas: list[Schema], token: str | int | None, loose: str = "") -> list[Schema]:
    inner_schemas: list[Schema] = []
    for schema in schemas:
        name: str | int | None = token
        if name is None:
            properties: Any = schema.get("properties")
            wanted = normalised(loose)
            known = list(cast("Schema", properties)) if isinstance(properties, dict) else []
            name = next((key for key in known if normalised(key) == wanted), None)
            if name is None and isinstance(schema.get("items"), dict):
                # A list as tags write it (ruling 15): ``item`` stands for each of its items, any other tag for a member of one.
                inside = schemas_at(schema["items"], None, (), root)
                inner_schemas += inside if loose == "item" else _below(root, inside, loose)
                continue
            if name is None:
                continue
        elif isinstance(name, str) and not (
            isinstance(schema.get("properties"), dict) and name in schema["properties"]
        ):
            continue
        inner_schemas += schemas_at(schema, None, (name,), root)
    return inner_schemas


def is_structured(schemas: list[Schema], text: str) -> bool:
    """Whether a value is JSON text: its schema wants an object or a list, or it looks like one and no text is wanted."""
    kinds: set[str] = set()
    for schema in schemas:
        named: Any = schema.get("type")
        kinds.update(str(item) for item in (cast("list[Any]", named) if isinstance(named, list) else [named]) if item)
        if "properties" in schema:
            kinds.add("object")
        if "items" in schema and named is None:
            kinds.add("array")
    begins = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
    if kinds & _STRUCTURED:
        return begins or not text.strip() or not kinds - _STRUCTURED
    return begins and "string" not in kinds


# Completion


def propose_embedded(snapshot: Snapshot, inside: Embedded, tool_id: str, path: Path, offset: int) -> list[Proposal]:
    """Proposals at a source offset inside JSON text: keys and values by the schema of the argument at ``path``."""
    if len(inside.text) > MAX_JSON_CHARS:
        return []
    tool = snapshot.tool(tool_id)
    root: Any = tool.manifest.parameters if tool is not None else None
    above = value_schemas(snapshot, tool_id, path)
    tree = inside.tree

    def schemas(inner: Path) -> list[Schema] | None:
        inner_schemas = [item for schema in above for item in schemas_at(schema, tree.root, inner, root)]
        return _unique(inner_schemas) if above else None

    items: list[Proposal] = []
    for item in propose_json(JsonAsk(tree, schemas), inside.to_text(offset)):
        text, snippet = inside.escape(item.text), inside.escape_stops(item.snippet) if item.snippet else ""
        if text is None or snippet is None:
            continue
        items.append(
            msgspec.structs.replace(
                item,
                span=inside.source_span(item.span),
                text=text,
                snippet=snippet,
                filter=inside.escape(item.filter) or item.filter,
            )
        )
    return items


def _unique(schemas: list[Schema]) -> list[Schema]:
    return list({id(schema): schema for schema in schemas}.values())


# Hover


def explain_embedded(snapshot: Snapshot, offset: int) -> HoverText | None:
    """What the schema says about the key or value under an offset inside JSON text; None elsewhere."""
    embedded = embedded_at(snapshot, offset)
    if embedded is None:
        return None
    call, path, inside = embedded
    place = inside.tree.pointer_at(inside.to_text(offset))
    if not place.path or place.slot == "gap":
        return None
    member = place.member
    span = member.key_span if member is not None and place.slot == "key" else place.node.span if place.node else None
    if span is None or (place.node is not None and place.slot != "key" and place.node.kind in _STRUCTURED):
        return None
    tool = snapshot.tool(call.tool_id)
    root: Any = tool.manifest.parameters if tool is not None else None
    if not is_object(root):
        return None
    names = [str(token) for token in (*path, *place.path)]
    above = value_schemas(snapshot, call.tool_id, path)
    own = [item for schema in above for item in schemas_at(schema, inside.tree.root, place.path, root)]
    if not own:
        return None
    needed = _is_required(above, inside.tree.root, place.path, root)
    description = next((text for schema in own if (text := describe_schema(schema))), "")
    title = f"**{'.'.join(names)}** ({type_name(own[0])}{', required' if needed else ''})"
    value = f"\n\nvalue: {code(place.node.to_python())}" if place.node is not None and place.slot == "value" else ""
    return HoverText(inside.source_span(span), f"{title}\n\n{description}{value}".strip())


def _is_required(above: list[Schema], node: JsonNode | None, path: Path, root: object) -> bool:
    holders = [item for schema in above for item in schemas_at(schema, node, path[:-1], root)]
    return any(
        path[-1] in cast("list[Any]", holder["required"])
        for holder in holders
        if isinstance(holder.get("required"), list)
    )


def embedded_at(snapshot: Snapshot, offset: int) -> tuple[Call, Path, Embedded] | None:
    """The JSON text around an offset: its call, the names that lead to the value, and the text."""
    from tamis.server.analysis.embedded import block_at, calls_at

    block = block_at(snapshot.document.blocks, offset)
    for call in calls_at(block, offset) if block is not None else ():
        for param in call.params:
            if not param.value.span[0] <= offset <= param.value.span[1]:
                continue
            for pointer, value in param.value.walk():
                if value.kind != "text" or not value.span[0] <= offset <= value.span[1]:
                    continue
                path: Path = (param.name, *_steps(param.value, pointer))
                inside = of_value(call, value, snapshot.text)
                if inside is not None and is_structured(value_schemas(snapshot, call.tool_id, path), inside.text):
                    return call, path, inside
    return None


def _steps(value: Value, pointer: str) -> Path:
    """A pointer's tokens as keys and indices."""
    steps: list[str | int] = []
    for token in from_pointer(pointer):
        if value.kind == "list":
            steps.append(int(token))
            value = value.items[int(token)]
        else:
            steps.append(token)
            value = value.entries[token]
    return tuple(steps)


# Findings


def refined(call: Call, source: str, problems: list[LocatedFinding]) -> list[Diag]:
    """A call's findings, those inside JSON text at their inner place and with a fix that its container can hold.

    Of a text that is no JSON every fault is said, not only the first.
    """
    diagnostics: list[Diag] = []
    written = Written(call, source)
    # Many findings may lie in one text: it is read once.
    read: dict[int, Embedded | None] = {}
    for problem in problems:
        value = _value_of(written, problem.finding.path) if problem.diag.fix is None else None
        inside = None
        if value is not None:
            if id(value[0]) not in read:
                read[id(value[0])] = of_value(call, value[0], source)
            inside = read[id(value[0])]
        if inside is None or value is None:
            diagnostics.append(problem.diag)
        elif problem.finding.code == "VA420" and problem.finding.severity == "error":
            diagnostics += _syntax(problem.diag, inside)
        elif problem.finding.code == "VA420":
            diagnostics.append(msgspec.structs.replace(problem.diag, fix=_without_commas(inside)))
        elif problem.finding.code == "VA421":
            diagnostics.append(msgspec.structs.replace(problem.diag, fix=_closing(inside)))
        elif value[1]:
            diagnostics.append(_with_inner_fix(problem, inside, value[1]))
        else:
            diagnostics.append(_with_whole_fix(problem, inside))
    return diagnostics


def _value_of(written: Written, pointer: str) -> tuple[Value, list[str]] | None:
    """The text that holds a finding, and the rest of the way inside it."""
    tokens = from_pointer(pointer)
    param = written.param(tokens[0]) if tokens else None
    if param is None:
        return None
    value, rest = param.value, tokens[1:]
    while rest and value.kind in ("list", "object"):
        if value.kind == "list" and (index := index_in(value.items, rest[0])) >= 0:
            value = value.items[index]
        elif value.kind == "object" and rest[0] in value.entries:
            value = value.entries[rest[0]]
        else:
            return None
        rest = rest[1:]
    return (value, rest) if value.kind == "text" else None


def _syntax(first: Diag, inside: Embedded) -> list[Diag]:
    tree = parse_json(inside.text, comments=False)
    errors = [
        diag
        for diag in tree.diagnostics
        if (diag.severity or "error") == "error" and diag.code not in ("MF524", "MF527")
    ]
    cut = any(diag.code == "MF521" for diag in errors)
    diagnostics: list[Diag] = []
    for diag in errors:
        span = inside.source_span(diag.span)
        fix = None if cut or diag.fix is None else _mapped(diag.fix, inside)
        if span == first.span and not diagnostics:
            diagnostics.append(msgspec.structs.replace(first, fix=fix))
        elif (
            diag.code != "MF521"
            and (not diagnostics or span != diagnostics[-1].span)
            and len(diagnostics) < MAX_SYNTAX_FINDINGS
        ):
            before = inside.text[: diag.span[0]]
            line, column = before.count("\n") + 1, diag.span[0] - (before.rfind("\n") + 1) + 1
            args = {**first.args, "reason": f"{message(diag)} (line {line}, column {column})"}
            diagnostics.append(Diag(first.code, span, args, severity=first.severity, fix=fix, data=first.data))
    if not any(diag.span == first.span for diag in diagnostics):
        return [first]
    return diagnostics


def _without_commas(inside: Embedded) -> Fix | None:
    """Trailing commas removed, where they are all that keeps a text from being JSON."""
    edits: list[Edit] = []
    for diag in parse_json(inside.text, comments=False).diagnostics:
        if (diag.severity or "error") != "error":
            continue
        fix = _mapped(diag.fix, inside) if diag.code == "MF526" and diag.fix is not None else None
        if fix is None:
            return None
        edits += fix.edits
    title = "Remove the trailing comma" if len(edits) == 1 else "Remove the trailing commas"
    return Fix(title, tuple(edits), "safe") if edits else None


def _closing(inside: Embedded) -> Fix | None:
    """What is open at the end of the text, closed; None where more than that is missing."""
    closers: list[str] = []
    node = inside.tree.root
    while node is not None and node.kind in _STRUCTURED and not node.closed:
        closers.append("}" if node.kind == "object" else "]")
        last = node.members[-1].value if node.members else node.items[-1] if node.items else None
        node = last
    text = inside.text.rstrip()
    for quote in ("", '"'):
        closing = quote + "".join(reversed(closers))
        if closing and parse_json(text + closing, comments=False).ok:
            edit = inside.edit((len(text), len(text)), closing)
            return None if edit is None else Fix(f"Close it: {closing}", (edit,), "unsafe")
    return None


def _with_whole_fix(problem: LocatedFinding, inside: Embedded) -> Diag:
    """The proposed value in place of a whole text, with the escapes of its container."""
    finding, diag = problem.finding, problem.diag
    if finding.suggestion is None or finding.code not in ("VA422", "VA430", "VA431"):
        return diag
    whole = (len(inside.text) - len(inside.text.lstrip()), len(inside.text.rstrip()))
    if finding.code == "VA422" and diag.span in (inside.span, inside.source_span(whole)):
        edit = inside.edit(whole, finding.suggestion)
        title = "Make it a list of one" if finding.expected == "array" else "Write the JSON itself"
        return diag if edit is None else msgspec.structs.replace(diag, fix=Fix(title, (edit,), "unsafe"))
    if inside.span != diag.span:
        return diag
    edit = inside.edit((0, len(inside.text)), finding.suggestion)
    if edit is None or not inside.text:
        return diag
    sure = "safe" if same_name(finding.suggestion, inside.text) else "unsafe"
    return msgspec.structs.replace(diag, fix=Fix(f"Replace by '{finding.suggestion}'", (edit,), sure))


def _mapped(fix: Fix, inside: Embedded) -> Fix | None:
    """A fix of the decoded text as one of the source; a person decides, since a call that could not run may run with it."""
    edits: list[Edit] = []
    for edit in fix.edits:
        mapped_edit = inside.edit((edit.start, edit.end), edit.new_text)
        if mapped_edit is None:
            return None
        edits.append(mapped_edit)
    return Fix(fix.title, tuple(edits), "unsafe")


def _with_inner_fix(problem: LocatedFinding, inside: Embedded, rest: list[str]) -> Diag:
    """The proposed name or value, written as JSON and as its container writes it."""
    finding, diag = problem.finding, problem.diag
    suggestion = finding.suggestion
    if suggestion is None or finding.code not in ("VA403", "VA430", "VA431"):
        return diag
    start, end = inside.to_text(diag.span[0]), inside.to_text(diag.span[1])
    written = inside.text[start:end]
    if finding.code == "VA403" and _has_member(inside, rest, suggestion):
        return diag
    if written[:1] != '"' or inside.source_span((start, end)) != diag.span:
        return diag
    edit = inside.edit((start, end), json.dumps(suggestion, ensure_ascii=False))
    if edit is None:
        return diag
    sure = "safe" if finding.code == "VA403" and same_name(suggestion, rest[-1]) else "unsafe"
    title = f"Rename to '{suggestion}'" if finding.code == "VA403" else f"Replace by '{suggestion}'"
    return msgspec.structs.replace(diag, fix=Fix(title, (edit,), sure))


def _has_member(inside: Embedded, path: list[str], name: str) -> bool:
    owner = inside.tree.root.at(path[:-1]) if inside.tree.root is not None else None
    return owner is not None and owner.kind == "object" and owner.member(name) is not None
