"""The front door of the lints: all advice on a document, as catalogue findings with the places that belong to them."""

from __future__ import annotations

import posixpath

from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.levels import Levels
from tamis.protocols.model import Block, Diag, Edit, Fix
from tamis.protocols.schema.check import Draft, draft_of
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.answers import Related
from tamis.server.analysis.lints.local import Collector, text_of
from tamis.server.analysis.snapshot import Snapshot

Found = list[tuple[Diag, tuple[Related, ...]]]

_SUPPORTED: tuple[Draft, ...] = ("2020-12", "draft-07")
_URIS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
}


def lint_manifest(snapshot: Snapshot, levels: Levels) -> Found:
    """The advice on a manifest; none on one of another project's shape."""
    root = snapshot.manifest.tree.root
    if root is None or root.kind != "object" or any(diag.code == "MF516" for diag in snapshot.manifest.diagnostics):
        return []
    from tamis.server.analysis.lints.grants import lint_grants
    from tamis.server.analysis.lints.handler import lint_handler
    from tamis.server.analysis.lints.names import lint_names_across, taken_names
    from tamis.server.analysis.lints.tool import lint_examples, lint_tool
    from tamis.server.analysis.lints.walk import lint_schemas

    found = Collector()
    scans = snapshot.manifest.memory.scans
    diags: list[Diag] = []
    for field in ("parameters", "output"):
        node = root.get(field)
        if node is not None and node.kind == "object":
            draft = _dialect(node, found)
            if draft in _SUPPORTED:
                diags += lint_schemas(node, draft, parameters=field == "parameters", scans=scans)
    lint_examples(root, levels, found)
    across: Found = lint_names_across(snapshot, root)
    seen = _looked_at(snapshot, root, levels)
    if seen is None or scans.get("outer") != seen:
        outer = Collector()
        lint_tool(root, snapshot.text, taken_names(snapshot), levels, outer)
        lint_grants(root, snapshot.settings.config, outer)
        handler = lint_handler(root, snapshot.text, snapshot.script, posixpath.dirname(snapshot.path), levels)
        scans["outer"] = None if outer.found or handler else seen
        across += [*((diag, ()) for diag in outer.found), *handler]
    return [*((diag, ()) for diag in (*diags, *found.found)), *across]


def _looked_at(snapshot: Snapshot, root: JsonNode, levels: Levels) -> tuple[object, ...] | None:
    """All that the lints of the outer fields look at: where it is the same as when they found nothing, they find nothing.

    None where they look deeper into the parameters than at their names.
    """
    if snapshot.manifest.tree.diagnostics or any(levels.says(code) for code in ("LN733", "LN734", "LN735")):
        return None
    said = text_of(root.get("description"))
    if said is not None and any(mark in said for mark in "`'\""):
        return None
    parameters = root.get("parameters")
    properties = parameters.get("properties") if parameters is not None else None
    outer = tuple(
        green for key, green in zip(root.keys, root.greens, strict=True) if key not in ("parameters", "examples")
    )
    around: tuple[object, ...] = ()
    if parameters is not None:
        around = tuple(
            green for key, green in zip(parameters.keys, parameters.greens, strict=False) if key != "properties"
        )
    names = properties.keys if properties is not None else ()
    facts = (snapshot.path, snapshot.registry, snapshot.settings.config, snapshot.script, levels)
    return (root.keys, outer, parameters is None or parameters.keys, around, names, facts)


def lint_text(snapshot: Snapshot, blocks: list[Block], levels: Levels) -> list[Diag]:
    """The advice on the blocks of a text that are requests."""
    from tamis.server.analysis.lints.texts import lint_text as look

    return look(snapshot, blocks, levels)


def _dialect(node: JsonNode, found: Collector) -> Draft:
    """The dialect of an embedded schema; one that tools' schemas are not written in gets this one finding."""
    named = node.get("$schema")
    name = text_of(named)
    if named is None or name is None:
        return "2020-12"
    draft = draft_of({"$schema": name})
    plain = name.rstrip("#")
    if plain.replace("http://", "https://") in {
        uri.rstrip("#").replace("http://", "https://") for uri in _URIS.values()
    }:
        return "draft-07" if "draft-07" in plain else "2020-12"
    if draft != "2020-12":
        fix = Fix("Name 2020-12", (Edit(named.start, named.end, f'"{_URIS["2020-12"]}"'),), "unsafe")
        what = f"{draft}, which is checked for its faults only"
        found.add("LN701", named.span, {"v": name, "what": what, "hint": ""}, severity="information", fix=fix)
        return draft
    near = best(name, _URIS.values())
    fix = Fix(f"Change to '{near}'", (Edit(named.start, named.end, f'"{near}"'),), "unsafe") if near else None
    what = "no dialect that is known, so it is read as 2020-12"
    found.add("LN701", named.span, {"v": name, "what": what, "hint": hint(near)}, fix=fix)
    return "2020-12"
