"""What one file of a workspace says about tools: the names that it declares, the names that it uses, the script that it runs.

Workflows and node definitions name the tools that do their work: those are dependencies, as in manifests.

Facts of a file come from its text alone, so they hold until it changes. Which tool a name means is the index's matter
(``index.py``). Must not know other files, the disk or LSP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Call, Document, ReadOptions
from tamis.protocols.plugins import BUILT_IN, extras_of, find_protocol
from tamis.protocols.positions import Span
from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS, DocumentKind, function_of, kind_of, serves
from tamis.server.analysis.snapshot import Protocol, promised_protocol

Role = Literal["declaration", "alias", "call", "profile", "dependency"]

INTERFACE = ("interfaceInputs", "interfaceOutputs", "inputInterface", "outputInterface")
"""The fields by which a JSON file is a workflow: those of seed 004, and those of seed 000 §7.1."""


class Use(msgspec.Struct, frozen=True, gc=False):
    """One place where a name stands.

    ``span`` covers the name as it is written, without quotes or tags; ``close`` the same name in an ACTION closing tag.
    ``aside``: it stands in an example or in reasoning, where nothing runs (rulings 5 and 7).
    """

    name: str
    span: Span
    role: Role
    close: Span | None = None
    protocol: str = ""
    tag: bool = False
    """The name is an ACTION tag, opening and closing."""
    aside: bool = False


class Declared(msgspec.Struct, frozen=True):
    """The tool that a manifest, a workflow or a node definition declares, as far as it can be read; a broken manifest declares what it says."""

    tool_id: str
    span: Span
    display_name: str = ""
    display_span: Span = (0, 0)
    version: str = ""
    aliases: tuple[str, ...] = ()
    """Other names that calls may use, the VCP command last (A16, V18)."""
    method_name: str = ""
    """Of a service method: VCP reaches it as ``toolId_methodName`` (ruling 30)."""
    script_path: str = ""
    script_span: Span = (0, 0)
    entry_point: str = ""
    kind: Literal["tool", "workflow", "node"] = "tool"
    service_name: str = ""
    """Of a service method: VCP reaches it as ``serviceName_methodName`` too."""
    own_id: str = ""
    """Of a workflow: the ``id`` in its file, which is one of its aliases."""


class Facts(msgspec.Struct, frozen=True):
    """All that a file says."""

    kind: DocumentKind
    declared: Declared | None = None
    uses: tuple[Use, ...] = ()
    nodes: tuple[Declared, ...] = ()
    """The tools of a file of node definitions, which declares no single one."""

    @property
    def declares(self) -> tuple[Declared, ...]:
        """Every tool that the file declares."""
        return self.nodes if self.declared is None else (self.declared,)


NOTHING = Facts("other")


def protocol_of(path: str) -> Protocol:
    """The protocol that a file's name promises, else ``auto``."""
    return promised_protocol(path)


def holds_graphs(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a file stands where ``nodes`` alone make a workflow: in one of the settings' workflow folders, given as absolute paths."""
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def may_matter(path: str, text: str, also: tuple[str, ...] = (), graphs: tuple[str, ...] = ()) -> bool:
    """Whether a text can hold facts at all: one search, so that a folder of prose costs nothing.

    ``also``: the protocols that are read besides the built-in ones; ``graphs``: the folders of workflows (``holds_graphs``).
    """
    kind = kind_of(path, "")
    if len(text) > MAX_ANALYSED_CHARS or not serves(kind, "facts"):
        return False
    if kind == "workflow":
        return any(f'"{word}"' in text for word in INTERFACE) or ('"nodes"' in text and holds_graphs(path, graphs))
    if kind == "nodes":
        return '"fullType"' in text
    if kind != "text":
        return True
    head = text[:64].lstrip("\ufeff \t\r\n")
    if head[:1] in ("{", "[", "`", "~", "") and text:
        return True
    return _has_opener(text, also)


_CANDIDATE = re.compile(r"[<＜《](?=[^\w]{0,12}+(?i:ac|t|r))")
"""Where an opening marker of a built-in protocol can begin; cheap to look for."""


def _has_opener(text: str, also: tuple[str, ...]) -> bool:
    if "<" in text or "＜" in text or "《" in text:
        opener = _openers(BUILT_IN)
        for match in _CANDIDATE.finditer(text):
            if opener.match(text, match.start()) is not None:
                return True
    return bool(also) and _openers(also).search(text) is not None


@cache
def _openers(names: tuple[str, ...]) -> re.Pattern[str]:
    call_protocols = [find_protocol(name) for name in names]
    parts = [f"(?:{protocol.opener.pattern})" for protocol in call_protocols if protocol is not None]
    return re.compile("|".join(parts) or r"(?!)")


def facts_of(path: str, text: str, also: tuple[str, ...] = (), graphs: tuple[str, ...] = ()) -> Facts:
    """The facts of a file; ``also`` and ``graphs`` as in ``may_matter``. Never raises."""
    read = function_of(kind_of(path, ""), "facts")
    return read(path, text, also, graphs) if read is not None else NOTHING


def inner(text: str, start: int, end: int) -> Span:
    """A JSON string's place without its quotes; a string that is not closed has only the first."""
    if end - start >= 2 and text[start] in "\"'" and text[end - 1] == text[start]:
        return start + 1, end - 1
    return (start + 1, end) if text[start : start + 1] in ("'", '"') else (start, end)


def string_at(tree: JsonTree, *path: str) -> tuple[str, Span]:
    """A text of a JSON file with its place inside the quotes; empty where there is none."""
    node = tree.root.at(path) if tree.root is not None else None
    if node is None or node.kind != "string" or not isinstance(node.value, str):
        return "", (0, 0)
    return node.value, inner(tree.text, node.start, node.end)


# Manifests


def of_manifest(_path: str, text: str, *_: object) -> Facts:
    """The facts of a manifest."""
    tree = parse_json(text)
    root = tree.root
    if root is None or root.kind != "object":
        return Facts("manifest")
    tool_id, span = string_at(tree, "toolId")
    display_name, display_span = string_at(tree, "displayName")
    script_path, script_span = string_at(tree, "handler", "scriptPath")
    uses: list[Use] = []
    if tool_id:
        uses.append(Use(tool_id, span, "declaration"))
    names = list(_texts(tree, root.get("aliases")))
    command, where = string_at(tree, "protocolConfig", "vcpCommand")
    if command:
        names.append((command, where))
    uses += [Use(name, place, "alias") for name, place in names]
    uses += [Use(key, place, "dependency") for key, place in _keys(tree, root.get("dependencies"))]
    declared = Declared(
        tool_id,
        span,
        display_name,
        display_span,
        string_at(tree, "version")[0],
        tuple(name for name, _ in names),
        string_at(tree, "handler", "methodName")[0],
        script_path,
        script_span,
        string_at(tree, "handler", "entryPoint")[0],
        service_name=string_at(tree, "handler", "serviceName")[0],
    )
    return Facts("manifest", declared if tool_id or script_path else None, tuple(uses))


def _texts(tree: JsonTree, node: JsonNode | None) -> Iterator[tuple[str, Span]]:
    for item in node.items if node is not None and node.kind == "array" else ():
        if item.kind == "string" and isinstance(item.value, str) and item.value:
            yield item.value, inner(tree.text, item.start, item.end)


def _keys(tree: JsonTree, node: JsonNode | None) -> Iterator[tuple[str, Span]]:
    members: list[Member] = node.members if node is not None and node.kind == "object" else []
    for member in members:
        if member.key:
            yield member.key, inner(tree.text, member.key_start, member.key_end)


# Profiles, workflows, node definitions


def of_profile(_path: str, text: str, *_: object) -> Facts:
    """The facts of a profile."""
    tree = parse_json(text)
    root = tree.root
    if root is None or root.kind != "object":
        return Facts("profile")
    uses = [Use(name, place, "profile") for name, place in _texts(tree, root.get("tool_ids_inventory"))]
    config = root.get("toolCallConfig")
    toggles = config.get("toolToggles") if config is not None and config.kind == "object" else None
    uses += [Use(name, place, "profile") for name, place in _keys(tree, toggles)]
    return Facts("profile", uses=tuple(uses))


def workflow_id(path: str) -> str:
    """The tool id of a workflow file: its name without extension behind the prefix (W02)."""
    name = path.rsplit("/", 1)[-1]
    return PREFIX + name.rsplit(".", 1)[0]


def of_workflow(path: str, text: str, _also: tuple[str, ...], graphs: tuple[str, ...]) -> Facts:
    """The facts of a workflow; none of any other JSON file."""
    graph = holds_graphs(path, graphs)
    tree = parse_json(text)
    root = tree.root
    if root is None or root.kind != "object":
        return NOTHING
    # Elsewhere `nodes` alone do not tell: many editors store graphs.
    words = (*INTERFACE, "nodes") if graph else INTERFACE
    if all(root.get(name) is None for name in words):
        return NOTHING
    name, place = string_at(tree, "name")
    tool_id = workflow_id(path)
    at = (root.start, root.start)
    # Calls reach it by its bare name and the id in its file too (seed 000 §3.3, §7).
    own_id = string_at(tree, "id")[0]
    names = dict.fromkeys((tool_id.removeprefix(PREFIX), own_id))
    aliases = tuple(other for other in names if other and other != tool_id)
    version = string_at(tree, "version")[0]
    declared = Declared(tool_id, at, name, place, version, aliases, kind="workflow", own_id=own_id)
    uses = [Use(tool_id, at, "declaration")]
    if own_id and own_id != tool_id:
        uses.append(Use(own_id, string_at(tree, "id")[1], "alias"))
    uses += [Use(named, span, "dependency") for named, span in _types(tree, root)]
    return Facts("workflow", declared, tuple(uses))


def _types(tree: JsonTree, root: JsonNode) -> Iterator[tuple[str, Span]]:
    """The types of a graph's nodes besides the built-in kinds: the names of the tools that it runs."""
    from tamis.protocols.workflow.kinds import kind_of_node
    from tamis.protocols.workflow.model import MAX_NODES
    from tamis.protocols.workflow.reading import NODE_FIELDS

    nodes = root.get("nodes")
    for node in nodes.items[:MAX_NODES] if nodes is not None and nodes.kind == "array" else ():
        if node.kind != "object":
            continue
        named = _first(node, NODE_FIELDS["type"])
        config = _first(node, NODE_FIELDS["config"])
        # What a map runs for each item is named in its configuration.
        inner_type = config.get("type") if config is not None and config.kind == "object" else None
        is_map = named is not None and isinstance(named.value, str) and kind_of_node(named.value) == "map"
        for candidate in (named, inner_type if is_map else None):
            name = candidate.value if candidate is not None and candidate.kind == "string" else ""
            if candidate is not None and isinstance(name, str) and name and not kind_of_node(name):
                yield name, inner(tree.text, candidate.start, candidate.end)


def _first(node: JsonNode, names: tuple[str, ...]) -> JsonNode | None:
    return next((member for name in names if (member := node.get(name)) is not None), None)


def of_nodes(_path: str, text: str, *_: object) -> Facts:
    """The facts of a file of node definitions."""
    from tamis.protocols.workflow.model import MAX_NODES

    tree = parse_json(text)
    root = tree.root
    items = [] if root is None else [root] if root.kind == "object" else root.items
    nodes: list[Declared] = []
    uses: list[Use] = []
    for item in [item for item in items if item.kind == "object"][:MAX_NODES]:
        tool_id, span = _string(tree, item, "fullType")
        if not tool_id:
            continue
        name, place = _string(tree, item, "displayName")
        version = _string(tree, item, "version")[0]
        nodes.append(Declared(tool_id, span, name, place, version, kind="node"))
        uses.append(Use(tool_id, span, "declaration"))
        worker, where = _string(tree, item, "toolId")
        if worker:
            uses.append(Use(worker, where, "dependency"))
    return Facts("nodes", uses=tuple(uses), nodes=tuple(nodes))


def _string(tree: JsonTree, item: JsonNode, name: str) -> tuple[str, Span]:
    node = item.get(name)
    if node is None or node.kind != "string" or not isinstance(node.value, str):
        return "", (0, 0)
    return node.value, inner(tree.text, node.start, node.end)


# Settings


def of_settings(_path: str, _text: str, *_: object) -> Facts:
    """A ``tamis.toml`` says nothing about tools; the index keeps its text, where variables are declared."""
    return Facts("settings")


# Calls


def of_text(path: str, text: str, also: tuple[str, ...], *_: object) -> Facts:
    """The facts of a text with calls."""
    from tamis.protocols.reader import read_text

    # A second ACTION block is not run, and names its tools all the same (ruling 14).
    return facts_of_reading(read_text(text, protocol_of(path), ReadOptions(allow_multiple_blocks=True, also=also)))


def facts_of_reading(document: Document) -> Facts:
    """The facts of a text that was read already."""
    uses: dict[Span, Use] = {}
    for block in document.blocks:
        for call in block.calls:
            # The commands of a VCP batch share one name.
            if call.tool_id and call.tool_span not in uses:
                uses[call.tool_span] = use_of(call, document.text, aside=block.aside)
    return Facts("text", uses=tuple(uses.values()))


def use_of(call: Call, text: str, *, aside: bool = False) -> Use:
    """The place of a call's tool name, with its closing tag where it is one."""
    start, end = call.tool_span
    tag = (
        extras_of(call.protocol).elements
        and text[call.span[0] : start].strip(" \t\r\n`'\"") in ("<", "＜")
        and call.shape == "tag"
    )
    close = closing_of(text, call) if tag else None
    return Use(call.tool_id, (start, end), "call", close, call.protocol, tag, aside)


def closing_of(text: str, call: Call) -> Span | None:
    """The name in the closing tag that ends a call; None for an element that is empty or not closed."""
    end = call.span[1]
    at = text.rfind("</", call.tool_span[1], end)
    if at < 0 or not text.endswith(">", at, end):
        return None
    name = text[at + 2 : end - 1]
    start = at + 2 + len(name) - len(name.lstrip())
    span = (start, start + len(name.strip()))
    return span if name.strip() and "<" not in name else None
