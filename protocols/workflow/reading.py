"""Workflow files, read with places: every fault is a finding at the exact key or value (seed 004 §2.3, seed 000 §7; rulings 31, 36).

A file has the seeds' interface (``interfaceInputs``, ``interfaceOutputs``, or ``inputInterface``, ``outputInterface``) and the graph as graph
editors store it: nodes with slots, edges between slots. Fields of an editor's own (places, colours) are free. What the graph lacks is
``graph.py``'s matter. Must not know files or which tools there are.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.catalogue import severity
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member
from tamis.protocols.manifest.fields import Findings, value_of
from tamis.protocols.manifest.reading import tool_id_fault
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Diag, Json, escape_pointer
from tamis.protocols.patterns import lazy
from tamis.protocols.schema.words import excerpt, is_object
from tamis.protocols.suggest import best, hint
from tamis.protocols.workflow.model import (
    MAX_EDGES,
    MAX_NODES,
    MAX_RETRIES,
    SKIP,
    STOP,
    TYPES,
    Edge,
    Node,
    Place,
    Slot,
    Workflow,
    fits,
)

# Workflow files of other projects, known by their shape, so that one finding names them instead of many that miss the point.


Kind = Literal["comfyui-api", "comfyui", "n8n", "node-red", "langflow"]
KINDS: dict[Kind, str] = {
    "comfyui-api": "a ComfyUI workflow in API form (class_type, inputs)",
    "comfyui": "a ComfyUI workflow (nodes, links)",
    "n8n": "an n8n workflow (nodes, connections)",
    "node-red": "a Node-RED flow (a list of nodes with wires)",
    "langflow": "a Langflow flow (data with nodes and edges)",
}
MARKS = ("class_type", "wires")
"""Words of those that have neither nodes nor an interface at their root."""
_LOOKED_AT = 50


def foreign_kind(root: JsonNode | None) -> tuple[Kind, JsonNode] | None:
    """Which other project's workflow a file is, and the node that shows it; None for one that may be ours."""
    if root is None:
        return None
    if root.kind == "array":
        first = root.items[:_LOOKED_AT]
        wired = [item for item in first if item.kind == "object" and item.member("wires") is not None]
        known = all(item.kind == "object" and item.member("type") is not None for item in first)
        return ("node-red", root) if wired and known else None
    if root.kind != "object":
        return None
    nodes = root.get("nodes")
    if nodes is not None and nodes.kind == "array":
        links, connections = root.get("links"), root.get("connections")
        if connections is not None and connections.kind == "object":
            return "n8n", connections
        marked = any(root.member(name) is not None for name in ("last_node_id", "last_link_id"))
        return ("comfyui", links) if links is not None and links.kind == "array" and marked else None
    data = root.get("data")
    if data is not None and data.kind == "object":
        inner = [data.get(name) for name in ("nodes", "edges")]
        return ("langflow", data) if all(node is not None and node.kind == "array" for node in inner) else None
    called = [member.value for member in root.members[:_LOOKED_AT] if member.value is not None]
    shown = [node for node in called if node.kind == "object" and node.member("class_type") is not None]
    return ("comfyui-api", shown[0]) if shown and len(shown) == len(called) else None


INPUTS = ("interfaceInputs", "inputInterface")
OUTPUTS = ("interfaceOutputs", "outputInterface")
NODE_FIELDS = {
    "id": ("id",),
    "type": ("type", "fullType"),
    "inputs": ("inputs", "inputValues"),
    "config": ("config", "configValues"),
    "onError": ("onError",),
    "retry": ("retry",),
}
"""The fields of a node, each with the names that graph editors give it; the first that is there counts."""
_FIELDS = (
    *("id", "name", "description", "version", *INPUTS, *OUTPUTS, "nodes", "edges"),
    *("interfaceInputMappings", "outputInterfaceMappings", "execution"),
)
_SIDES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "source": (("source", "sourceNodeId"), ("sourceHandle", "sourceSlotKey")),
    "target": (("target", "targetNodeId"), ("targetHandle", "targetSlotKey")),
}
_PLACE = (("nodeId", "sourceNodeId", "targetNodeId", "node"), ("slotKey", "sourceSlotKey", "targetSlotKey", "slot"))
_MEANT = lazy(r'"(?:nodes"|interface|(?:in|out)putInterface|' + "|".join(f'{mark}"' for mark in MARKS) + ")")
_OTHER_TYPES = {
    **dict.fromkeys(("STR", "TEXT"), "STRING"),
    **dict.fromkeys(("INT", "LONG"), "INTEGER"),
    **dict.fromkeys(("NUMBER", "DOUBLE", "REAL", "DECIMAL"), "FLOAT"),
    **dict.fromkeys(("BOOL", "FLAG"), "BOOLEAN"),
    **dict.fromkeys(("DICT", "MAP", "JSON", "RECORD"), "OBJECT"),
    **dict.fromkeys(("LIST", "TUPLE", "SET", "SEQUENCE"), "ARRAY"),
    **dict.fromkeys(("ANY", "UNKNOWN"), "WILDCARD"),
    **dict.fromkeys(("BYTES", "BLOB", "FILE", "IMAGE", "AUDIO"), "BINARY"),
}
"""What other languages and graph editors call the data types."""
ON_ERROR = "'stop', 'skip', {\"goto\": a node's id} or {\"value\": …}"
MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000
MODES = ("sync", "async")
Side = Literal["source", "target"]


class WorkflowReading(msgspec.Struct, eq=False):
    """A workflow file as it was read; ``workflow`` is None exactly when a diagnostic has error level."""

    workflow: Workflow | None
    tree: JsonTree
    diagnostics: list[Diag]
    draft: Workflow | None = None
    """What could be read in spite of errors, for editors."""


def is_workflow(root: JsonNode | None) -> bool:
    """Whether a JSON text is meant as a workflow."""
    return (
        root is not None and root.kind == "object" and any(name in root.keys for name in (*INPUTS, *OUTPUTS, "nodes"))
    )


def may_be_workflow(text: str) -> bool:
    """Whether a text has a word of workflows: one search, so that other JSON costs nothing."""
    return _MEANT.search(text) is not None


def is_meant(text: str, root: JsonNode | None) -> bool:
    """Whether a text of a workflow folder, or one named by its user, is to be judged as a workflow, broken ones too.

    Elsewhere ``nodes`` alone do not tell: many editors store graphs.
    """
    if not may_be_workflow(text):
        return False
    if is_workflow(root) or foreign_kind(root) is not None or any(f'"{word}"' in text for word in (*INPUTS, *OUTPUTS)):
        return True
    findings = Findings("WF")
    if root is not None and root.kind == "object":
        _misspelled(root, findings)
    return bool(findings.diags)


def read_workflow(
    text: str, workflow_id: str, *, strict: bool = False, tree: JsonTree | None = None
) -> WorkflowReading:
    """Reads a workflow file. ``workflow_id`` is its name without extension; ``strict`` refuses comments and trailing commas.

    ``tree`` is the text as it was read already, in the same strictness. Never raises.
    """
    tree = tree or parse_json(text, comments=not strict)
    findings = Findings("WF")
    draft = None
    root = tree.root
    if (foreign := foreign_kind(root)) is not None:
        kind, shown = foreign
        span = (shown.start, min(shown.end, shown.start + 1))
        return WorkflowReading(None, tree, [Diag("WF924", span, {"shape": KINDS[kind]}, data={"shape": kind})])
    if root is not None and root.kind != "object":
        findings.wrong_type(root, "the workflow", "an object")
    elif root is not None:
        fault = tool_id_fault(PREFIX + workflow_id) if workflow_id else "it is empty"
        if fault is not None:
            findings.add("WF923", (root.start, root.start + 1), {"id": PREFIX + workflow_id, "reason": fault})
        draft = _read(root, workflow_id, findings)
    syntax_diags = _without_consequences(tree, root)
    diagnostics = sorted([*syntax_diags, *findings.diags], key=lambda diag: diag.span)
    broken = any(severity(diag) == "error" for diag in diagnostics)
    return WorkflowReading(None if broken else draft, tree, diagnostics, draft)


def _without_consequences(tree: JsonTree, root: JsonNode | None) -> list[Diag]:
    """The faults of the JSON text, without those that come of a list which is opened as an object: that is said of the list."""
    lists = [root.get(name) for name in ("nodes", "edges")] if root is not None and root.kind == "object" else []
    cut = min((node.start for node in lists if node is not None and node.kind == "object"), default=None)
    return [diag for diag in tree.diagnostics if cut is None or diag.span[0] < cut]


def _read(root: JsonNode, workflow_id: str, findings: Findings) -> Workflow:
    members = {member.key: member for member in root.members}
    _misspelled(root, findings)
    inputs = _slots(members, INPUTS, "input", findings)
    outputs = _slots(members, OUTPUTS, "output", findings)
    has_nodes = value_of(members, "nodes") is not None
    raw = root.to_python()

    def text(name: str) -> str:
        return findings.text(value_of(members, name), name) or ""

    execution = value_of(members, "execution")
    limits = (
        {} if execution is None or execution.kind != "object" else {member.key: member for member in execution.members}
    )
    return Workflow(
        workflow_id,
        declared_id=text("id"),
        name=text("name"),
        description=text("description"),
        version=text("version"),
        inputs=inputs,
        outputs=outputs,
        nodes=_nodes(value_of(members, "nodes"), findings) if has_nodes else None,
        edges=_edges(value_of(members, "edges"), findings),
        input_mappings=_input_mappings(value_of(members, "interfaceInputMappings"), inputs, findings),
        output_mappings=_output_mappings(value_of(members, "outputInterfaceMappings"), outputs, findings),
        timeout_ms=findings.whole(value_of(limits, "timeoutMs"), "execution.timeoutMs", 1, MAX_TIMEOUT_MS),
        asynchronous=_mode(value_of(limits, "mode"), findings) == "async",
        raw=raw if is_object(raw) else {},
    )


def _mode(node: JsonNode | None, findings: Findings) -> str:
    mode = findings.text(node, "execution.mode") or "sync"
    if node is not None and mode not in MODES:
        findings.add(
            "WF903", node.span, {"p": "execution.mode", "expected": "'sync' or 'async'", "received": excerpt(mode)}
        )
    return mode


def _first(members: dict[str, Member], names: tuple[str, ...]) -> JsonNode | None:
    return next((node for name in names if (node := value_of(members, name)) is not None), None)


def _misspelled(root: JsonNode, findings: Findings) -> None:
    """Editors keep fields of their own in workflow files; only near misses of the known ones are reported."""
    wanted = [name for name in _FIELDS if root.member(name) is None]
    for member in root.members:
        near = best(member.key, wanted) if member.key not in _FIELDS and len(member.key) > 3 else None
        if near is not None:
            # without its nodes a workflow cannot run
            findings.unknown_field(member, wanted, ["nodes"] if near == "nodes" else ())


# The interface


def _slots(members: dict[str, Member], names: tuple[str, ...], side: str, findings: Findings) -> dict[str, Slot]:
    node = _first(members, names)
    if node is None:
        return {}
    if node.kind != "object":
        name = next(name for name in names if value_of(members, name) is node)
        findings.wrong_type(node, name, f"an object of {side}s by name")
        return {}
    slots: dict[str, Slot] = {}
    for member in node.members:
        value = member.value
        if value is None or value.kind == "error":
            continue
        if value.kind != "object":
            findings.wrong_type(value, member.key, "an object with dataFlowType and description")
            continue
        slots[member.key] = _slot(member.key, value, findings)
    return slots


def _slot(name: str, node: JsonNode, findings: Findings) -> Slot:
    fields = {member.key: member for member in node.members}
    kind = _type(value_of(fields, "dataFlowType"), name, findings)
    slot = Slot(
        name,
        kind,
        required=findings.flag(value_of(fields, "required"), f"{name}.required") is True,
        is_stream=findings.flag(value_of(fields, "isStream"), f"{name}.isStream") is True,
    )
    config = value_of(fields, "config")
    held = {} if config is None or config.kind != "object" else {member.key: member for member in config.members}
    default = value_of(held, "default")
    if default is None:
        return slot
    value = default.to_python()
    if not fits(value, kind):
        findings.add("WF920", default.span, {"p": name, "type": kind})
    return msgspec.structs.replace(slot, default=value)


def _type(node: JsonNode | None, name: str, findings: Findings) -> str:
    text = findings.text(node, f"{name}.dataFlowType")
    if text is None or node is None or text in TYPES:
        return text or "WILDCARD"
    near = best(text, TYPES) or best(text.upper(), TYPES) or _OTHER_TYPES.get(text.upper())
    findings.add("WF918", node.span, {"v": text, "hint": hint(near)}, data={"suggestion": near} if near else None)
    return "WILDCARD"


# The graph


def _objects(node: JsonNode | None, label: str, limit: int, findings: Findings) -> list[JsonNode]:
    """The objects of a list; what is none is reported and left out, and so is what stands behind the limit."""
    if node is None:
        return []
    if node.kind != "array":
        findings.wrong_type(node, label, "a list of objects")
        return []
    items = node.items
    if len(items) > limit:
        findings.add("WF922", items[limit].span, {"limit": limit, "what": label})
    kept: list[JsonNode] = []
    for item in items[:limit]:
        if item.kind == "object":
            kept.append(item)
        else:
            findings.wrong_type(item, f"an item of {label}", "an object")
            # the place stays taken, so that pointers into the file stay right
            kept.append(item)
    return kept


def _nodes(node: JsonNode | None, findings: Findings) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for item in _objects(node, "nodes", MAX_NODES, findings):
        fields = {member.key: member for member in item.members}
        if item.kind == "object":
            _mistyped(item, NODE_FIELDS, findings)
        kind = _named(item, fields, NODE_FIELDS["type"], "a node", findings)
        name = _named(item, fields, NODE_FIELDS["id"], "a node", findings)
        title = value_of(fields, "displayName")
        nodes.append(
            Node(
                name,
                kind,
                _table(_first(fields, NODE_FIELDS["inputs"]), "inputs", findings),
                _table(_first(fields, NODE_FIELDS["config"]), "config", findings),
                title.value if title is not None and isinstance(title.value, str) else "",
                _on_error(value_of(fields, "onError"), findings),
                findings.whole(value_of(fields, "retry"), "retry", 0, MAX_RETRIES) or 0,
            )
        )
    return tuple(nodes)


def _on_error(node: JsonNode | None, findings: Findings) -> Json:
    """What a node's failure means, as it is written."""
    if node is None or node.kind == "error":
        return STOP
    value = node.to_python()
    if value in (STOP, SKIP):
        return value
    if is_object(value) and (
        [*value] == ["value"] or ([*value] == ["goto"] and isinstance(value["goto"], str) and value["goto"])
    ):
        return value
    received = f"'{value[:40]}'" if isinstance(value, str) else "something else"
    findings.add(
        "WF901",
        node.span if node.kind != "object" else (node.start, node.start + 1),
        {"p": "onError", "expected": ON_ERROR, "received": received},
    )
    return STOP


def _mistyped(item: JsonNode, known: dict[str, tuple[str, ...]], findings: Findings) -> None:
    names = [name for group in known.values() for name in group]
    missing = [name for group in known.values() if not any(alias in item.keys for alias in group) for name in group]
    for member in item.members if missing else ():
        if member.key not in names and len(member.key) > 2 and best(member.key, missing) is not None:
            findings.unknown_field(member, missing)


def _named(item: JsonNode, fields: dict[str, Member], names: tuple[str, ...], what: str, findings: Findings) -> str:
    """A text that must be there and not be blank; empty when it is not."""
    if item.kind != "object":
        return ""
    node = _first(fields, names)
    if node is None:
        if item.closed:
            args = {"what": what.capitalize(), "p": names[0], "expected": "a text"}
            findings.add("WF902", (item.start, item.start + 1), args)
        return ""
    value = node.value
    if node.kind == "number" and isinstance(value, int):
        return str(value)
    if node.kind != "string" or not isinstance(value, str):
        findings.wrong_type(node, names[0], "a text")
        return ""
    if not value.strip():
        findings.add(
            "WF901", node.span, {"p": names[0], "expected": "a text with characters in it", "received": "blank"}
        )
    return value


def _table(node: JsonNode | None, label: str, findings: Findings) -> dict[str, Json]:
    if node is None:
        return {}
    value = node.to_python()
    if is_object(value):
        return value
    findings.wrong_type(node, label, "an object")
    return {}


def _edges(node: JsonNode | None, findings: Findings) -> tuple[Edge, ...]:
    edges: list[Edge] = []
    for item in _objects(node, "edges", MAX_EDGES, findings):
        fields = {member.key: member for member in item.members}
        ends: list[Place] = []
        for nodes, handles in _SIDES.values():
            end = _named(item, fields, nodes, "an edge", findings)
            ends.append(Place(end, _named(item, fields, handles, "an edge", findings)))
        edges.append(Edge(ends[0], ends[1]))
    return tuple(edges)


def _input_mappings(
    node: JsonNode | None, inputs: dict[str, Slot], findings: Findings
) -> tuple[tuple[str, Place], ...]:
    mappings: list[tuple[str, Place]] = []
    for member in _mapped(node, "interfaceInputMappings", "input", inputs, findings):
        value = member.value
        assert value is not None
        for item in value.items if value.kind == "array" else (value,):
            place = _place(item, member.key, findings)
            if place is not None:
                mappings.append((member.key, place))
    return tuple(mappings)


def _output_mappings(node: JsonNode | None, outputs: dict[str, Slot], findings: Findings) -> dict[str, Place]:
    mappings: dict[str, Place] = {}
    for member in _mapped(node, "outputInterfaceMappings", "output", outputs, findings):
        assert member.value is not None
        place = _place(member.value, member.key, findings)
        if place is not None:
            mappings[member.key] = place
    return mappings


def _mapped(node: JsonNode | None, label: str, side: str, known: dict[str, Slot], findings: Findings) -> list[Member]:
    if node is None:
        return []
    if node.kind != "object":
        findings.wrong_type(node, label, f"an object of {side}s")
        return []
    members: list[Member] = []
    for member in node.members:
        if member.value is None or member.value.kind == "error":
            continue
        if member.key not in known:
            args = {"p": member.key, "side": side, "hint": hint(best(member.key, known))}
            findings.add("WF921", member.key_span, args)
        else:
            members.append(member)
    return members


def _place(node: JsonNode, label: str, findings: Findings) -> Place | None:
    if node.kind != "object":
        findings.wrong_type(node, label, "an object with nodeId and slotKey")
        return None
    fields = {member.key: member for member in node.members}
    name = _named(node, fields, _PLACE[0], "a mapping", findings)
    slot = _named(node, fields, _PLACE[1], "a mapping", findings)
    return Place(name, slot) if name and slot else None


# Where something stands, for findings about the graph


def node_pointer(tree: JsonTree, index: int, field: str = "") -> str:
    """The JSON Pointer of a node, or of one of its fields under the name that the file gives it."""
    base = f"/nodes/{index}"
    return _existing(tree, base, NODE_FIELDS.get(field, ())) if field else base


def edge_pointer(tree: JsonTree, index: int, side: Side, part: Literal["node", "slot"]) -> str:
    """The JSON Pointer of one end of an edge."""
    return _existing(tree, f"/edges/{index}", _SIDES[side][part == "slot"])


def interface_pointer(tree: JsonTree, side: Literal["input", "output"], name: str) -> str:
    """The JSON Pointer of an interface's input or output."""
    groups = INPUTS if side == "input" else OUTPUTS
    return f"{_existing(tree, '', groups)}/{escape_pointer(name)}"


def _existing(tree: JsonTree, base: str, names: tuple[str, ...]) -> str:
    node = tree.node_at(base) if base else tree.root
    for name in names:
        if node is not None and node.get(name) is not None:
            return f"{base}/{name}"
    return base
