"""What the cursor is on: a tool's name, a parameter, a script, a reference. The start of every question that moves.

Works in half-typed text: where reading finds no call yet, the block around the cursor is looked at alone. Must not know LSP.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member, Path
from tamis.protocols.model import Block, Call, Document, Param, ReadOptions
from tamis.protocols.plugins import extras_of
from tamis.protocols.positions import Span
from tamis.protocols.workflow.reading import INPUTS
from tamis.server.analysis.completion.cursor import Cursor, find_cursor
from tamis.server.analysis.facts import inner, protocol_of, use_of
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.navigation.schemas_here import (
    DEFINITIONS,
    SCHEMAS,
    declaring,
    example_chain,
    object_schema,
    property_of,
    resolve_reference,
)
from tamis.server.analysis.running.mentions import Inline, inline_at, setting_at
from tamis.server.analysis.running.mentions import Kind as InlineKind
from tamis.server.analysis.snapshot import Snapshot

SubjectKind = Literal["tool", "parameter", "script", "entry", "reference", "definition", InlineKind]
_WORD = re.compile(r"[^\s<>\"'`=&,;「」«»{}\[\]]{1,256}")


class Subject(msgspec.Struct, frozen=True):
    """What stands at an offset. ``span`` is its place in the document asked about, without quotes or marks.

    ``tool``: ``name`` is the name as used, ``tool_id`` the id that it means (the name itself where nothing declares it).
    ``parameter``: ``manifest`` is the file that declares it, ``schema`` the object schema there (of a call's: the arguments').
    ``script``, ``entry``: ``name`` is the path or function. ``reference``, ``definition``: ``path`` leads to the target in the file.
    ``variable``, ``environment``, ``result``, ``secret``: ``names`` lead to it; ``name`` is empty inside of what has a name.
    """

    kind: SubjectKind
    span: Span
    name: str
    tool_id: str = ""
    manifest: str = ""
    schema: Path = ()
    path: Path = ()
    declares: bool = False
    names: tuple[str, ...] = ()


def subject_at(snapshot: Snapshot, offset: int) -> Subject | None:
    """What stands at an offset, or None. Never raises on half-typed text."""
    look = answer(snapshot, "subject")
    return look(snapshot, offset) if look is not None else None


# Names and tools


def tool_id_of(snapshot: Snapshot, name: str, protocol: str = "") -> str | None:
    """The id that a name means, as running would resolve it; what no registry knows yet, by the declarations in the workspace."""
    tool = snapshot.tool(name, protocol)
    if tool is not None:
        return tool.tool_id
    return snapshot.index.resolve(name, protocol) if snapshot.index is not None else None


def manifest_of(snapshot: Snapshot, name: str, protocol: str = "") -> str:
    """The file of the tool that a name means; empty where none declares it. Of several versions the one that would run."""
    tool = snapshot.tool(name, protocol)
    index = snapshot.index
    # Methods of the host's services and Tamis's own tools stand in no file.
    path = tool.path if tool is not None and tool.path.startswith("/") else ""
    if index is None or (path and index.knows(path)):
        return path
    tool_id = tool.tool_id if tool is not None else index.resolve(name, protocol)
    declared = index.declarations(tool_id) if tool_id is not None else []
    # The registry may spell a path otherwise than the editor does (a link on the way).
    fitting = [
        candidate for candidate in declared if tool is None or candidate.declared.version == tool.manifest.version
    ]
    return (fitting or declared)[0].path if declared else path


def name_part(snapshot: Snapshot, name: str, span: Span, protocol: str = "") -> tuple[str, Span]:
    """The part of a written name that is the id or alias: without a version, without a VCP method's name."""
    index = snapshot.index
    if _declares(snapshot, name):
        return name, span
    head = name.rpartition("@")[0]
    if not head and index is not None:
        tool_id = index.resolve(name, protocol)
        if tool_id is not None and name.startswith(tool_id + "_"):
            head = tool_id
    if not head:
        return name, span
    return head, (span[0], span[0] + len(head)) if span[1] - span[0] == len(name) else span


def _declares(snapshot: Snapshot, name: str) -> bool:
    names = snapshot.registry.names() if snapshot.registry is not None else ()
    if name in names:
        return True
    return snapshot.index is not None and "@" not in name and snapshot.index.resolve(name) is not None


def tool_subject(snapshot: Snapshot, name: str, span: Span, protocol: str = "", *, declares: bool = False) -> Subject:
    """The subject of a written tool name."""
    part, place = name_part(snapshot, name, span, protocol)
    tool_id = tool_id_of(snapshot, name, protocol) or tool_id_of(snapshot, part)
    return Subject("tool", place, part, tool_id or part, manifest_of(snapshot, name, protocol), declares=declares)


# Texts


def read_file(snapshot: Snapshot, path: str, text: str) -> Document:
    """A text of the workspace, read with the tools that the snapshot knows."""
    if path == snapshot.path:
        return snapshot.document
    from tamis.protocols.reader import read_text

    hints = snapshot.registry.hints() if snapshot.registry is not None else {}
    options = ReadOptions(allow_multiple_blocks=True, tools=hints, also=snapshot.settings.also)
    return read_text(text, protocol_of(path), options)


def calls_of(document: Document) -> Iterator[tuple[Block, Call]]:
    """Every call with its block, also those that are only shown."""
    return ((block, call) for block in document.blocks for call in block.calls)


def closing_name(text: str, param: Param) -> Span | None:
    """The name in the closing tag of a parameter that is an element, where it is the same name."""
    if param.origin != "child":
        return None
    end = param.span[1]
    at = text.rfind("</", param.name_span[1], end)
    if at < 0:
        return None
    name = text[at + 2 : end].rstrip(">")
    start = at + 2 + len(name) - len(name.lstrip())
    span = (start, start + len(name.strip()))
    return span if text[slice(*span)] == text[slice(*param.name_span)] else None


_EXTRA_KEY = re.compile(r"(?im)^[ \t>*\-]*((?:uri|type_hint)_([^\n:：]{1,200}?))[ \t]*[:：]")


def extra_keys(text: str, block: Block, call: Call) -> Iterator[tuple[str, Span]]:
    """``uri_NAME_N`` and ``type_hint_NAME_N`` of a TAM call, which speak of a parameter too (seed 002 §3.3)."""
    if not extras_of(call.protocol).modifiers or not (call.uris or call.type_hints):
        return
    from tamis.protocols.tam.keys import parse_key, squash

    names = {squash(name): name for name in (*call.uris, *call.type_hints)}
    for match in _EXTRA_KEY.finditer(text, *block.span):
        key = parse_key(match[2])
        own = names.get(squash(key.base)) if key.number == call.step else None
        name = own or names.get(squash(key.normal))
        if name is not None:
            yield name, match.span(1)


def _touches(span: Span | None, offset: int) -> bool:
    return span is not None and span[0] <= offset <= span[1]


def in_settings(snapshot: Snapshot, offset: int) -> Subject | None:
    """In a ``tamis.toml``: a variable or environment."""
    return _inline(setting_at(snapshot, offset))


def _inline(inline: Inline | None) -> Subject | None:
    if inline is None:
        return None
    return Subject(inline.kind, inline.span, inline.name, declares=inline.declares, names=inline.path)


def in_text(snapshot: Snapshot, offset: int) -> Subject | None:
    """In a text: tools and parameters of calls, and what is put into them."""
    inline = _inline(inline_at(snapshot, offset))
    if inline is not None:
        return inline
    for block, call in calls_of(snapshot.document):
        if not block.span[0] <= offset <= block.span[1]:
            continue
        if _touches(call.tool_span, offset):
            return tool_subject(snapshot, call.tool_id, call.tool_span, call.protocol)
        close = use_of(call, snapshot.text).close
        if close is not None and _touches(close, offset):
            return tool_subject(snapshot, call.tool_id, close, call.protocol)
        for param in call.params:
            if not _touches(param.span, offset):
                continue
            place = next(
                (s for s in (param.name_span, closing_name(snapshot.text, param)) if _touches(s, offset)), None
            )
            if place is not None:
                return _parameter(snapshot, call.tool_id, param.name, place, call.protocol)
        for name, span in extra_keys(snapshot.text, block, call):
            if _touches(span, offset):
                return _parameter(snapshot, call.tool_id, name, span, call.protocol)
    return _half_typed(snapshot, offset)


def _parameter(snapshot: Snapshot, tool: str, name: str, span: Span, protocol: str) -> Subject:
    tool_id = tool_id_of(snapshot, tool, protocol) or ""
    manifest = manifest_of(snapshot, tool, protocol)
    return Subject("parameter", span, name, tool_id, manifest, ("parameters",))


def _half_typed(snapshot: Snapshot, offset: int) -> Subject | None:
    """A name in a block that reading finds no call in yet."""
    text = snapshot.text
    cursor: Cursor | None = find_cursor(text, offset)
    if cursor is None or cursor.expect not in ("tool", "parameter", "close"):
        return None
    start, end = offset, offset
    line = max(text.rfind("\n", 0, offset), offset - 256) + 1
    for word in _WORD.finditer(text, line, min(len(text), offset + 256)):
        if word.start() <= offset <= word.end():
            start, end = word.span()
            break
    name = text[start:end].strip("/:")
    if not name:
        return None
    if text[start:end] != name:
        start = text.index(name, start, end)
        end = start + len(name)
    if cursor.expect == "parameter" or (cursor.expect == "close" and cursor.tool_id not in ("", name)):
        if cursor.suffix and name.endswith(cursor.suffix):
            name = name.removesuffix(cursor.suffix)
        return _parameter(snapshot, cursor.tool_id, name, (start, end), cursor.protocol)
    return tool_subject(snapshot, name, (start, end), cursor.protocol)


# Manifests and profiles


def _string(tree: JsonTree, offset: int) -> tuple[Path, str, Span, bool] | None:
    """The text under the cursor: path, decoded text, place inside the quotes, and whether it is a key."""
    place = tree.pointer_at(offset)
    member = place.member
    if place.slot == "key" and member is not None and member.key_start <= offset <= member.key_end:
        return place.path, member.key, inner(tree.text, member.key_start, member.key_end), True
    node = place.node
    if place.slot != "value" or node is None or node.kind != "string" or not isinstance(node.value, str):
        return None
    if not node.start <= offset <= node.end:
        return None
    return place.path, node.value, inner(tree.text, node.start, node.end), False


def in_manifest(snapshot: Snapshot, offset: int) -> Subject | None:
    """In a manifest: its tool, its parameters, the parts of its schemas, the variables in its examples."""
    inline = _inline(inline_at(snapshot, offset))
    if inline is not None:
        return inline
    tree = snapshot.manifest.tree
    literal = _string(tree, offset)
    if literal is None:
        return None
    path, name, span, key = literal
    head = path[0] if path else ""
    if head == "toolId" and len(path) == 1:
        return _declared_here(snapshot, tree, offset)
    if not key and (path == ("protocolConfig", "vcpCommand") or (head == "aliases" and len(path) == 2)):
        return Subject("tool", span, name, _own_id(tree), snapshot.path, declares=True)
    if head == "dependencies" and len(path) == 2:
        return tool_subject(snapshot, str(path[1]), span if key else _key_span(tree, path) or span)
    if path == ("handler", "scriptPath") and not key:
        return Subject("script", span, name, _own_id(tree), snapshot.path)
    if path == ("handler", "entryPoint") and not key:
        return Subject("entry", span, name, _own_id(tree), snapshot.path)
    return _in_schema(snapshot, tree, path, name, span, key=key)


def _declared_here(snapshot: Snapshot, tree: JsonTree, offset: int) -> Subject | None:
    node = tree.root.get("toolId") if tree.root is not None else None
    if node is None or node.kind != "string" or not isinstance(node.value, str) or not node.value:
        return None
    return Subject("tool", inner(tree.text, *node.span), node.value, node.value, snapshot.path, declares=True)


def _own_id(tree: JsonTree) -> str:
    node = tree.root.get("toolId") if tree.root is not None and tree.root.kind == "object" else None
    return node.value if node is not None and isinstance(node.value, str) else ""


def _key_span(tree: JsonTree, path: Path) -> Span | None:
    parent = tree.root.at(path[:-1]) if tree.root is not None else None
    member = parent.member(str(path[-1])) if parent is not None and parent.kind == "object" else None
    return inner(tree.text, member.key_start, member.key_end) if member is not None else None


def _in_schema(snapshot: Snapshot, tree: JsonTree, path: Path, name: str, span: Span, *, key: bool) -> Subject | None:
    example = example_chain(path)
    if key and example is not None:
        declaration = declaring(tree, example[1], example[0])
        schema = declaration[0] if declaration is not None else (example[0],)
        return Subject("parameter", span, name, _own_id(tree), snapshot.path, schema)
    if len(path) < 2 or path[0] not in SCHEMAS:
        return None
    if key and path[-2] == "properties":
        return _property(snapshot, tree, path[:-2], name, span)
    if key and path[-2] in DEFINITIONS:
        return Subject("definition", span, name, _own_id(tree), snapshot.path, path=path, declares=True)
    if not key and path[-1] == "$ref":
        target = resolve_reference(tree, name, path[:-1])
        return Subject("reference", span, name, _own_id(tree), snapshot.path, path=target) if target else None
    if not key and len(path) >= 3 and path[-2] == "required":
        return _property(snapshot, tree, path[:-2], name, span)
    return None


def _property(snapshot: Snapshot, tree: JsonTree, path: Path, name: str, span: Span) -> Subject:
    schema = object_schema(path)
    declaration = property_of(tree, schema, name)
    declares = declaration is not None and inner(tree.text, declaration[1].key_start, declaration[1].key_end) == span
    return Subject("parameter", span, name, _own_id(tree), snapshot.path, schema, declares=declares)


def in_graph(snapshot: Snapshot, offset: int) -> Subject | None:
    """In a workflow or a file of node definitions: the tools that they name, and their inputs, which are parameters (W08, ruling 36)."""
    facts = snapshot.index.facts(snapshot.path) if snapshot.index is not None else None
    if facts is None or not facts.declares:
        return None
    for use in facts.uses:
        # A workflow's own id stands nowhere in it.
        if use.span[0] < use.span[1] and _touches(use.span, offset):
            return tool_subject(snapshot, use.name, use.span, declares=use.role in ("declaration", "alias"))
    tree = parse_json(snapshot.text)
    literal = _string(tree, offset)
    if literal is None or not literal[3] or len(literal[0]) < 2:
        return None
    path, name, span, _ = literal
    owner = tree.root.at(path[:-2]) if tree.root is not None else None
    if owner is None or owner.kind != "object" or str(path[-2]) not in _inputs_of(owner):
        return None
    tool_id = facts.declared.tool_id if facts.declared is not None else _full_type(owner)
    return (
        Subject("parameter", span, name, tool_id, snapshot.path, (str(path[-2]),), declares=True) if tool_id else None
    )


def input_of(tree: JsonTree, name: str, tool_id: str) -> Member | None:
    """The member that declares an input of a workflow, or of the node of this type."""
    root = tree.root
    for owner in () if root is None else [root] if root.kind == "object" else root.items:
        if owner.kind != "object" or _full_type(owner) not in ("", tool_id):
            continue
        inputs = next((node for group in _inputs_of(owner) if (node := owner.get(group)) is not None), None)
        member = inputs.member(name) if inputs is not None and inputs.kind == "object" else None
        if member is not None:
            return member
    return None


def _full_type(owner: JsonNode) -> str:
    node = owner.get("fullType")
    return node.value if node is not None and isinstance(node.value, str) else ""


def _inputs_of(owner: JsonNode) -> tuple[str, ...]:
    """The fields that may hold the inputs of a workflow, or of a node definition."""
    return ("inputs",) if _full_type(owner) else INPUTS


def in_profile(snapshot: Snapshot, offset: int) -> Subject | None:
    """In a profile: the tools that it names."""
    literal = _string(snapshot.profile.tree, offset)
    if literal is None:
        return None
    path, name, span, key = literal
    listed = not key and len(path) == 2 and path[0] == "tool_ids_inventory"
    toggled = key and len(path) == 3 and path[:2] == ("toolCallConfig", "toolToggles")
    return tool_subject(snapshot, name, span) if listed or toggled else None


def script_of(manifest: str, script_path: str) -> str:
    """The absolute path of a manifest's script; empty for one that leaves the manifest's folder."""
    if not script_path or script_path.startswith("/") or "\\" in script_path or ":" in script_path:
        return ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(manifest), script_path))
    return path if path.startswith(posixpath.dirname(manifest).rstrip("/") + "/") else ""


def has_slots(snapshot: Snapshot, path: str) -> bool:
    """Whether a file declares a workflow or nodes: their parameters are input slots."""
    facts = snapshot.index.facts(path) if snapshot.index is not None else None
    return facts is not None and facts.kind in ("workflow", "nodes")
