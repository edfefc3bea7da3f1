"""The front door of the lints: all advice on a document, as catalogue findings with the places that belong to them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.levels import Levels
from tamis.protocols.model import Block, Diag, Edit, Fix
from tamis.protocols.schema.check import Draft, draft_of
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.answers import Related
from tamis.server.analysis.lints.local import Collector, Scans, moved, text_of
from tamis.server.analysis.snapshot import Snapshot

Found = list[tuple[Diag, tuple[Related, ...]]]

_SUPPORTED: tuple[Draft, ...] = ("2020-12", "draft-07")
_URIS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
}


def lint_manifest(snapshot: Snapshot, levels: Levels, limit: int) -> Found:
    """The advice on a manifest, at least so much of each schema where there is as much; none on one of another project's shape."""
    root = snapshot.manifest.tree.root
    read = snapshot.manifest.diagnostics
    said = {(diag.code, diag.severity) for diag in read} if read else set[tuple[str, str | None]]()
    if root is None or root.kind != "object" or (said and any(code == "MF516" for code, _ in said)):
        return []
    from tamis.server.analysis.lints.grants import lint_grants
    from tamis.server.analysis.lints.handler import lint_handler
    from tamis.server.analysis.lints.names import lint_names_across, taken_names
    from tamis.server.analysis.lints.tool import lint_examples, lint_tool
    from tamis.server.analysis.lints.walk import MAX_KEPT, lint_schemas

    collector = Collector()
    scans = snapshot.manifest.memory.scans
    diags: list[Diag] = []
    for field in ("parameters", "output"):
        node = root.get(field)
        if field == "parameters" and ("MF535", None) in said:
            continue  # what is in a schema of another type is judged when it is one of an object
        if node is not None and node.kind == "object":
            draft = _dialect(node, collector) if "$schema" in node.keys else "2020-12"
            if draft in _SUPPORTED:
                most = max(limit, MAX_KEPT)
                diags += lint_schemas(node, draft, parameters=field == "parameters", scans=scans, limit=most)
    lint_examples(root, levels, collector)
    seen = _looked_at(snapshot, root, levels)
    across: Found = []
    if seen is None or scans.get("across") != seen:
        across = lint_names_across(snapshot, root)
        scans["across"] = None if across else seen

    def of_what_is_said() -> Found:
        outside = Collector()
        lint_tool(root, snapshot.text, taken_names(snapshot), levels, outside)
        return [(diag, ()) for diag in outside.found]

    def of_what_is_asked() -> Found:
        outside = Collector()
        lint_grants(root, snapshot.settings.config, outside)
        folder = posixpath.dirname(snapshot.path)
        handler = lint_handler(root, snapshot.text, snapshot.script, folder, levels)
        return [*[(diag, ()) for diag in outside.found], *handler]

    outer = _kept_outer(scans, "said", _listened_to(snapshot, root, levels, seen), root, of_what_is_said)
    outer += _kept_outer(scans, "asked", seen, root, of_what_is_asked)
    if levels.targets:
        from tamis.server.analysis.lints.targets import lint_targets

        diags += lint_targets(snapshot, levels)
    return [*[(diag, ()) for diag in (*diags, *collector.found)], *across, *outer]


def _kept_outer(scans: Scans, key: str, seen: object, root: JsonNode, look: Callable[[], Found]) -> Found:
    """What ``look`` finds in values of the outermost object; what it found the last time where all that it looks at is as ``seen`` then."""
    known = scans.get(key)
    if seen is not None and known is not None and known[0] == seen:
        return _placed(known[1], root) if known[1] else []
    found = look()
    kept = None if seen is None else _displaced(found, root)
    scans[key] = None if kept is None else (seen, kept)
    return found


def _displaced(diagnostics: Found, root: JsonNode) -> list[tuple[int, Diag, tuple[Related, ...]]] | None:
    """Findings that lie in values of the outermost object, by index and relative to the value; None where one does not.

    A fix that writes beside a value may look at the blanks there, which are no part of what was looked at.
    """
    placed: list[tuple[int, Diag, tuple[Related, ...]]] = []
    for diag, related in diagnostics:
        start, end = diag.span
        at = next((i for i in range(len(root.greens)) if _holds(root.child(i), start, end)), -1)
        value = root.child(at) if at >= 0 else None
        edits = diag.fix.edits if diag.fix is not None else ()
        if value is None or any(edit.end <= edit.start or not _holds(value, edit.start, edit.end) for edit in edits):
            return None
        placed.append((at, moved(diag, -value.start), related))
    return placed


def _holds(value: JsonNode | None, start: int, end: int) -> bool:
    return value is not None and value.start <= start <= end <= value.end


def _placed(kept: list[tuple[int, Diag, tuple[Related, ...]]], root: JsonNode) -> Found:
    diagnostics: Found = []
    for at, diag, related in kept:
        value = root.child(at)
        assert value is not None
        diagnostics.append((moved(diag, value.start), related))
    return diagnostics


_SAID = ("description", "displayName", "tags")
_UNSEEN = frozenset(("parameters", "output", "examples", *_SAID))
_DEEPER = ("LN734", "LN735")
"""Rules that look at the parameters themselves; they are off unless asked for."""


def _looked_at(snapshot: Snapshot, root: JsonNode, levels: Levels) -> tuple[object, ...] | None:
    """All that the lints of the outer fields look at besides what the tool says of itself: where it is the same, they find the same.

    None where they look deeper into the parameters than at their names. None of them looks at the output.
    """
    parameters = root.get("parameters")
    properties = parameters.get("properties") if parameters is not None else None
    if properties is not None and snapshot.manifest.tree.diagnostics and None in properties.greens:
        return None  # a name without a schema declares nothing
    keys = root.keys
    outer = [green for key, green in zip(keys, root.greens, strict=True) if key not in _UNSEEN]
    inner: Sequence[str] = ()
    around: list[object] = []
    if parameters is not None:
        inner = parameters.keys
        around = [green for key, green in zip(inner, parameters.greens, strict=False) if key != "properties"]
    names = properties.keys if properties is not None else ()
    facts = (snapshot.path, snapshot.registry, snapshot.settings.config, snapshot.script, levels)
    return (keys, outer, parameters is None or inner, around, names, facts)


def _listened_to(
    snapshot: Snapshot, root: JsonNode, levels: Levels, seen: tuple[object, ...] | None
) -> tuple[object, ...] | None:
    """All that the lints of what a tool says of itself look at; None where they look deeper into the parameters than at their names."""
    if seen is None or levels.says_any(_DEEPER):
        return None
    node = root.get("description")
    if node is not None and _names_something(node, snapshot.manifest.memory.scans):
        return None
    said = [green for key, green in zip(root.keys, root.greens, strict=True) if key in _SAID]
    return (seen, said)


def _names_something(node: JsonNode, scans: Scans) -> bool:
    """Whether a description sets anything off by marks."""
    known = scans.get("marks")
    if known is not None and known[0] is node.green:
        return known[1]
    text = text_of(node) or ""
    has_quotes = "`" in text or "'" in text or '"' in text
    scans["marks"] = (node.green, has_quotes)
    return has_quotes


def lint_text(snapshot: Snapshot, blocks: list[Block], levels: Levels) -> list[Diag]:
    """The advice on the blocks of a text that are requests."""
    from tamis.server.analysis.lints.texts import lint_text as look

    return look(snapshot, blocks, levels)


def _dialect(node: JsonNode, collector: Collector) -> Draft:
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
        collector.add("LN701", named.span, {"v": name, "what": what, "hint": ""}, severity="information", fix=fix)
        return draft
    near = best(name, _URIS.values())
    fix = Fix(f"Change to '{near}'", (Edit(named.start, named.end, f'"{near}"'),), "unsafe") if near else None
    what = "no dialect that is known, so it is read as 2020-12"
    collector.add("LN701", named.span, {"v": name, "what": what, "hint": hint(near)}, fix=fix)
    return "2020-12"
