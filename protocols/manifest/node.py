"""Node definitions (``*.node.json``, seed 000 §7.1): a node of a graph as a tool of its own.

A file holds one definition, or a list of them as a node manager gives them out: ``fullType``, ``displayName``, ``description``, ``inputs`` and
``outputs``, each slot with the fields that workflows know (``dataFlowType``, ``required``, ``description`` …; ruling 36). ``toolId`` names the registered
tool that does the node's work; without it the workflow engine runs the node, wrapped as a graph of one node (seed 000 §7.3.2). Other fields are an
editor's own. Must not know files, engines, or which tools there are.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.catalogue import severity
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.manifest.fields import Findings, value_of
from tamis.protocols.manifest.reading import Manifest, WorkflowHandler, is_semver, tool_id_fault
from tamis.protocols.manifest.workflow import slot_parameters
from tamis.protocols.model import Diag, Json
from tamis.protocols.schema.words import is_object
from tamis.protocols.workflow.model import SLOTS_WORD

SUFFIX = ".node.json"
NO_VERSION = "0.0.0"
MAX_NODES = 1_000
"""Definitions in one file."""


class NodeTool(msgspec.Struct, frozen=True):
    """A node as a tool. ``implemented_by`` is the tool that does its work, ``id`` or ``id@range``; empty: the workflow engine runs it."""

    manifest: Manifest
    implemented_by: str = ""


class NodeReading(msgspec.Struct, eq=False):
    """A file of node definitions as it was read: every definition without a fault of error level, and all findings."""

    tree: JsonTree
    diagnostics: list[Diag]
    nodes: list[NodeTool]
    faults: list[tuple[str, Diag]]
    """Why definitions cannot be used: the ``fullType`` as far as it can be read, and the first error; an empty name where all the file cannot."""


def read_nodes(text: str, *, strict: bool = False) -> NodeReading:
    """Reads a file of node definitions; ``strict`` refuses comments and trailing commas. Never raises."""
    tree = parse_json(text, comments=not strict)
    findings = Findings("MF")
    nodes: list[NodeTool] = []
    faults = [("", diag) for diag in tree.diagnostics if severity(diag) == "error"][:1]
    broken = bool(faults)
    root = tree.root
    if root is not None and root.kind not in ("object", "array"):
        findings.wrong_type(root, "the file", "a node definition or a list of them")
        faults += [("", diag) for diag in findings.diags[:1]]
    elif root is not None:
        items = [root] if root.kind == "object" else list(root.items)
        if len(items) > MAX_NODES:
            findings.add("WF922", items[MAX_NODES].span, {"limit": MAX_NODES, "what": "node definitions"})
            faults.append(("", findings.diags[-1]))
        for item in items[:MAX_NODES]:
            before = len(findings.diags)
            node_tool = _node(item, findings)
            error = next((diag for diag in findings.diags[before:] if severity(diag) == "error"), None)
            if error is not None:
                faults.append((_name(item), error))
            elif node_tool is not None and not broken:
                nodes.append(node_tool)
    diagnostics = sorted([*tree.diagnostics, *findings.diags], key=lambda diag: diag.span)
    return NodeReading(tree, diagnostics, nodes, faults)


def _name(node: JsonNode) -> str:
    name = node.get("fullType") if node.kind == "object" else None
    return name.value if name is not None and isinstance(name.value, str) else ""


def _node(node: JsonNode, findings: Findings) -> NodeTool | None:
    if node.kind != "object":
        findings.wrong_type(node, "a node definition", "an object")
        return None
    members = {member.key: member for member in node.members}
    if "fullType" not in members:
        findings.missing(node, "fullType", " of a node definition")
        return None
    where = value_of(members, "fullType")
    full_type = findings.text(where, "fullType", empty=False)
    display_name = findings.text(value_of(members, "displayName"), "displayName")
    description = findings.text(value_of(members, "description"), "description")
    version = findings.text(value_of(members, "version"), "version")
    category = value_of(members, "category")
    inputs = _slots(value_of(members, "inputs"), "inputs", findings)
    outputs = _slots(value_of(members, "outputs"), "outputs", findings)
    given_tool = value_of(members, "toolId")
    tool_id = findings.text(given_tool, "toolId", empty=False)
    if full_type is None or where is None:
        return None
    fault = tool_id_fault(full_type)
    if fault is not None:
        findings.add("MF506", where.span, {"v": full_type, "what": "a tool id", "reason": fault})
    if tool_id is not None and given_tool is not None:
        fault = tool_id_fault(tool_id.partition("@")[0])
        if fault is not None:
            findings.add("MF506", given_tool.span, {"v": tool_id, "what": "a tool id", "reason": fault})
    raw = node.to_python()
    if not is_object(raw):
        return None
    tags = (category.value,) if category is not None and isinstance(category.value, str) and category.value else ()
    manifest = Manifest(
        full_type,
        display_name or full_type,
        description or "",
        version if version is not None and is_semver(version) else NO_VERSION,
        WorkflowHandler(full_type),
        parameters=slot_parameters(inputs),
        output=output_schema(outputs),
        tags=tags,
        raw=raw,
    )
    return NodeTool(manifest, tool_id or "")


def _slots(node: JsonNode | None, label: str, findings: Findings) -> dict[str, Json]:
    if node is None:
        return {}
    if node.kind != "object":
        findings.wrong_type(node, label, f"an object of {label} by name")
        return {}
    for member in node.members:
        if member.value is not None and member.value.kind not in ("object", "error"):
            findings.wrong_type(member.value, f"{label}.{member.key}", "an object with dataFlowType and description")
    slots = node.to_python()
    return slots if is_object(slots) else {}


def output_schema(outputs: dict[str, Json]) -> Json:
    """What a call gives: the bare value of a single output, else an object of them (W18); None without outputs. Types are not enforced."""
    if not outputs:
        return None
    kinds: dict[str, Json] = {}
    for name, slot in outputs.items():
        kind = slot.get("dataFlowType") if is_object(slot) else None
        kinds[name] = kind if isinstance(kind, str) else "WILDCARD"
    return {SLOTS_WORD: kinds} if len(kinds) == 1 else {"type": "object", SLOTS_WORD: kinds}
