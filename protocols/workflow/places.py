"""Graph findings as diagnostics at the exact key or value of the file. Must not know how they are found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tamis.protocols.jsontext.quote import quoted
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.model import Diag, Edit, Fix, escape_pointer
from tamis.protocols.positions import Span
from tamis.protocols.workflow.graph import About, GraphFinding
from tamis.protocols.workflow.reading import edge_pointer, interface_pointer, node_pointer


def findings_at(found: Iterable[GraphFinding], tree: JsonTree) -> list[Diag]:
    """Graph findings as diagnostics at the exact value or key of the file."""
    diags: list[Diag] = []
    for one in found:
        span, is_value = _span(one.about, tree)
        fix = None
        if one.suggestion is not None and is_value:
            fix = Fix(f"Replace by '{one.suggestion}'", (Edit(span[0], span[1], quoted(one.suggestion)),), "unsafe")
        data = {"suggestion": one.suggestion} if one.suggestion is not None else {}
        diags.append(Diag(one.code, span, dict(one.args), fix=fix, data=dict(data)))
    return diags


def _span(about: About, tree: JsonTree) -> tuple[Span, bool]:
    """Where something stands, and whether that is a text which a better one can replace."""
    if about.what in ("input", "output"):
        side: Literal["input", "output"] = "input" if about.what == "input" else "output"
        return tree.key_span(interface_pointer(tree, side, about.name)) or _start(tree), False
    if about.what == "node" and about.part == "inputs":
        pointer = f"{node_pointer(tree, about.index, 'inputs')}/{escape_pointer(about.name)}"
        return tree.key_span(pointer) or _start(tree), False
    if about.what == "node" and about.part == "config":
        base = node_pointer(tree, about.index, "config")
        node = tree.node_at(base + "/type") or tree.node_at(base)
    elif about.what == "node":
        base = node_pointer(tree, about.index, about.part)
        node = (tree.node_at(base + "/goto") if about.part == "onError" else None) or tree.node_at(base)
    elif about.what == "edge":
        side_of: Literal["source", "target"] = "source" if about.name == "source" else "target"
        part: Literal["node", "slot"] = "slot" if about.part == "slot" else "node"
        node = tree.node_at(edge_pointer(tree, about.index, side_of, part))
    else:
        group = "interfaceInputMappings" if about.what == "inputMapping" else "outputInterfaceMappings"
        return tree.key_span(f"/{group}/{escape_pointer(about.name)}") or _start(tree), False
    if node is None:
        return _start(tree), False
    if node.kind in ("object", "array"):
        return (node.start, min(node.end, node.start + 1)), False
    return node.span, node.kind == "string"


def _start(tree: JsonTree) -> Span:
    root = tree.root
    return (0, 0) if root is None else (root.start, min(root.end, root.start + 1))
