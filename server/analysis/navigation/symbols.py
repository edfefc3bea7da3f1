"""The outline of a document, and the tools of the workspace by name. Pure plain data. Must not know LSP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member
from tamis.protocols.model import Block, Call
from tamis.protocols.positions import Span
from tamis.server.analysis.describe import type_name
from tamis.server.analysis.facts import inner
from tamis.server.analysis.index import DeclaredTool, WorkspaceIndex
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.navigation.subject import closing_name
from tamis.server.analysis.snapshot import Snapshot

SymbolKind = Literal[
    "tool", "handler", "group", "parameter", "definition", "example", "field", "block", "call", "argument", "name"
]
MAX_SYMBOLS = 5_000
MAX_DEPTH = 12
MAX_FOUND = 256
_EXCERPT = 60


class Symbol(msgspec.Struct):
    """One entry of an outline; ``selection`` lies inside ``span``."""

    name: str
    kind: SymbolKind
    span: Span
    selection: Span
    detail: str = ""
    children: list[Symbol] = []


class _Count:
    """How many symbols there may still be."""

    def __init__(self) -> None:
        self.left = MAX_SYMBOLS

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def outline(snapshot: Snapshot) -> list[Symbol]:
    """The outline of a document: a manifest's tool with its parts, a text's blocks with their calls, a profile's tools."""
    outliner = answer(snapshot, "outline")
    return outliner(snapshot) if outliner is not None else []


# Texts


def outline_of_text(snapshot: Snapshot) -> list[Symbol]:
    """The blocks of a text with their calls."""
    count = _Count()
    return [
        _block(snapshot.text, block, count)
        for block in snapshot.document.blocks
        if block.state != "mention" and count.take()
    ]


def _block(text: str, block: Block, count: _Count) -> Symbol:
    state = {"truncated": "unfinished", "rejected": "not runnable"}.get(block.state, "")
    if block.aside:
        state = "reasoning" if any(diag.code == "TC017" for diag in block.diagnostics) else "example"
    symbol = Symbol(block.protocol.upper(), "block", block.span, block.open, state, [])
    for call in block.calls:
        if not count.take():
            break
        symbol.children.append(_call(text, call, block.span, count))
    return symbol


def _call(text: str, call: Call, around: Span, count: _Count) -> Symbol:
    span = (min(call.span[0], call.tool_span[0]), max(call.span[1], call.tool_span[1]))
    span = (max(span[0], around[0]), min(span[1], around[1]))
    step = f"step {call.step}" if call.step is not None else ""
    symbol = Symbol(call.tool_id or "(no tool)", "call", span, _within(call.tool_span, span), step, [])
    for param in call.params:
        if not count.take():
            break
        close = closing_name(text, param)
        whole = (param.span[0], max(param.span[1], close[1] if close else 0))
        detail = _excerpt(param.value.text(text))
        symbol.children.append(
            Symbol(param.name or "(no name)", "argument", whole, _within(param.name_span, whole), detail)
        )
    return symbol


def _within(part: Span, whole: Span) -> Span:
    return part if whole[0] <= part[0] and part[1] <= whole[1] else (whole[0], whole[0])


def _excerpt(text: str) -> str:
    line = " ".join(text[: _EXCERPT * 4].split())
    return line[: _EXCERPT - 1] + "…" if len(line) > _EXCERPT else line


# Manifests and profiles


def outline_of_manifest(snapshot: Snapshot) -> list[Symbol]:
    """The tool of a manifest with its parts."""
    count = _Count()
    tree = snapshot.manifest.tree
    root = tree.root
    if root is None or root.kind != "object":
        return []
    tool_id, shown, version = (_text(root.get(name)) for name in ("toolId", "displayName", "version"))
    name = tool_id or shown or snapshot.path.rsplit("/", 1)[-1]
    detail = " ".join(part for part in (shown if tool_id else "", version) if part)
    node = root.get("toolId")
    selection = inner(tree.text, *node.span) if node is not None else (root.start, root.start)
    symbol = Symbol(name, "tool", root.span, selection, detail, [])
    for member in root.members:
        child = _part(tree, member, count)
        if child is not None:
            symbol.children.append(child)
    return [symbol]


def _part(tree: JsonTree, member: Member, count: _Count) -> Symbol | None:
    value = member.value
    if value is None or not member.key or member.key in ("toolId", "displayName", "version") or not count.take():
        return None
    if member.key == "handler":
        what = _text(value.get("scriptPath")) or ".".join(
            part for part in (_text(value.get("serviceName")), _text(value.get("methodName"))) if part
        )
        entry = _text(value.get("entryPoint"))
        return _symbol(tree, member, "handler", f"{what} {entry}".strip() if value.kind == "object" else "")
    if member.key in ("parameters", "output"):
        symbol = _symbol(tree, member, "group", "")
        symbol.children = list(_schema(tree, value, count, 0))
        return symbol
    if member.key == "examples" and value.kind == "array":
        symbol = _symbol(tree, member, "group", "")
        for i, example in enumerate(value.items):
            if count.take():
                title = _text(example.get("description")) if example.kind == "object" else ""
                place = (example.start, min(example.end, example.start + 1))
                symbol.children.append(Symbol(f"example {i + 1}", "example", example.span, place, _excerpt(title)))
        return symbol
    return _field(tree, member, count, 0)


def _field(tree: JsonTree, member: Member, count: _Count, depth: int) -> Symbol:
    value = member.value
    detail = ""
    if value is not None and value.kind not in ("object", "array"):
        detail = _excerpt(str(value.value) if isinstance(value.value, str) else tree.text[value.start : value.end])
    elif value is not None and value.kind == "array":
        detail = _excerpt(", ".join(item.value for item in value.items if isinstance(item.value, str)))
    symbol = _symbol(tree, member, "group" if value is not None and value.kind == "object" else "field", detail)
    if value is not None and value.kind == "object" and depth < MAX_DEPTH:
        for below in value.members:
            if below.key and count.take():
                symbol.children.append(_field(tree, below, count, depth + 1))
    return symbol


def _schema(tree: JsonTree, node: JsonNode, count: _Count, depth: int) -> Iterator[Symbol]:
    """The properties and definitions of a schema, with those of their own schemas below them."""
    if node.kind != "object" or depth > MAX_DEPTH:
        return
    required = node.get("required")
    needed = (
        {item.value for item in required.items} if required is not None and required.kind == "array" else set[object]()
    )
    for keyword, kind in (("properties", "parameter"), ("$defs", "definition"), ("definitions", "definition")):
        listed = node.get(keyword)
        for member in listed.members if listed is not None and listed.kind == "object" else ():
            if not member.key or not count.take():
                continue
            value = member.value
            words = type_name(value.to_python()) if value is not None and value.kind == "object" else ""
            if keyword == "properties" and member.key in needed:
                words = f"{words}, required".lstrip(", ")
            symbol = _symbol(tree, member, "parameter" if kind == "parameter" else "definition", words)
            if value is not None:
                items = value.get("items") if value.kind == "object" else None
                symbol.children = list(_schema(tree, value, count, depth + 1))
                symbol.children += list(_schema(tree, items, count, depth + 1)) if items is not None else []
            yield symbol


def outline_of_profile(snapshot: Snapshot) -> list[Symbol]:
    """The tools of a profile."""
    tree, count = snapshot.tree, _Count()
    root = tree.root
    if root is None or root.kind != "object":
        return []
    symbols: list[Symbol] = []
    for member in root.members:
        value = member.value
        if value is None or not member.key or not count.take():
            continue
        if member.key == "tool_ids_inventory" and value.kind == "array":
            symbol = _symbol(tree, member, "group", "")
            for item in value.items:
                if isinstance(item.value, str) and item.value and count.take():
                    place = inner(tree.text, *item.span)
                    symbol.children.append(Symbol(item.value, "name", item.span, place))
            symbols.append(symbol)
        else:
            symbols.append(_field(tree, member, count, 0))
    return symbols


def outline_of_workflow(snapshot: Snapshot) -> list[Symbol]:
    """A workflow's tool with its inputs and outputs."""
    count = _Count()
    facts = snapshot.index.facts(snapshot.path) if snapshot.index is not None else None
    if facts is None or facts.kind != "workflow" or facts.declared is None:
        return []
    tree = parse_json(snapshot.text)
    root = tree.root
    if root is None:
        return []
    name = facts.declared.display_name
    symbol = Symbol(facts.declared.tool_id, "tool", root.span, (root.start, root.start), name, [])
    for keyword in ("interfaceInputs", "interfaceOutputs"):
        member = root.member(keyword)
        if member is None or member.value is None or not count.take():
            continue
        group = _symbol(tree, member, "group", "")
        for part in member.value.members:
            value = part.value
            if value is None or not part.key or not count.take():
                continue
            needed = value.get("required") if value.kind == "object" else None
            words = [_text(value.get("dataFlowType")) if value.kind == "object" else ""]
            words += ["required"] if needed is not None and needed.value is True else []
            group.children.append(_symbol(tree, part, "parameter", ", ".join(word for word in words if word)))
        symbol.children.append(group)
    return [symbol]


def _symbol(tree: JsonTree, member: Member, kind: SymbolKind, detail: str) -> Symbol:
    return Symbol(member.key, kind, member.span, inner(tree.text, member.key_start, member.key_end), detail, [])


def _text(node: JsonNode | None) -> str:
    return node.value if node is not None and isinstance(node.value, str) else ""


# The workspace


class ToolSymbol(msgspec.Struct, frozen=True):
    """A name of a tool in the workspace; ``container`` tells whose it is when it is not the id itself."""

    name: str
    container: str
    tool: DeclaredTool


def find_tools(index: WorkspaceIndex, query: str) -> list[ToolSymbol]:
    """The tools whose id, display name or alias has the letters of the query in order; the best first, at most 256.

    Exact names come before beginnings, these before beginnings of a word, these before letters anywhere; shorter before longer.
    """
    wanted = query.strip().casefold()
    ranked: list[tuple[int, int, str, str, ToolSymbol]] = []
    for tool in index.tools():
        declared = tool.declared
        names = [(tool.tool_id, declared.display_name), (declared.display_name, tool.tool_id)]
        # The bare name of a workflow is in its id already.
        names += [(alias, tool.tool_id) for alias in declared.aliases if not tool.tool_id.endswith(f":{alias}")]
        for i, (name, container) in enumerate(names):
            rank = _rank(name, wanted)
            if (
                not name
                or rank is None
                or (not wanted and i > 0)
                or (i == 1 and _rank(tool.tool_id, wanted) is not None)
            ):
                continue
            ranked.append((rank, len(name), name.casefold(), tool.path, ToolSymbol(name, container, tool)))
    ranked.sort(key=lambda item: item[:4])
    seen: dict[tuple[str, str], ToolSymbol] = {}
    for *_, symbol in ranked:
        seen.setdefault((symbol.name, symbol.tool.path), symbol)
    return list(seen.values())[:MAX_FOUND]


def _rank(name: str, wanted: str) -> int | None:
    have = name.casefold()
    if not wanted:
        return 0
    if have == wanted:
        return 0
    if have.startswith(wanted):
        return 1
    at = have.find(wanted)
    while at > 0:
        if not have[at - 1].isalnum() or (name[at - 1 : at].islower() and name[at : at + 1].isupper()):
            return 2
        at = have.find(wanted, at + 1)
    if wanted in have:
        return 3
    rest = iter(have)
    return 4 if all(char in rest for char in wanted) else None
