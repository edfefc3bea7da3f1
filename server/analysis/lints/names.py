"""Lints of a tool's names against those of the other tools (D29, ruling 35).

The names of a registry are gathered once, so that a look from one manifest costs the same among ten tools and ten thousand. Must not know
schemas or the disk.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container
from weakref import WeakKeyDictionary

from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.model import Diag
from tamis.server.analysis.answers import Related
from tamis.server.analysis.lints.local import object_at, text_of, texts_of
from tamis.server.analysis.snapshot import ConflictView, RegistryView, Snapshot, ToolView

Found = list[tuple[Diag, tuple[Related, ...]]]
_SEPARATORS = re.compile(r"[\s_\-:./]+")


class Names:
    """The names of all tools: who has a name, and which ids look alike."""

    def __init__(self, registry: RegistryView) -> None:
        self.owners: dict[str, list[tuple[ToolView, str]]] = {}
        self.alike: dict[str, list[ToolView]] = {}
        self.twins: dict[tuple[str, str], list[ToolView]] = {}
        """By id and version."""
        self.conflicts: dict[tuple[str, str, str], list[ConflictView]] = {}
        """By id, version and the path that is in force."""
        for tool in registry.tools:
            manifest = tool.manifest
            command = manifest.vcp_command
            named = [(tool.tool_id, "the id"), *((alias, "an alias") for alias in manifest.aliases)]
            for name, what in (*named, *(((command, "the vcpCommand"),) if command else ())):
                self.owners.setdefault(name, []).append((tool, what))
            self.alike.setdefault(folded(tool.tool_id), []).append(tool)
            self.twins.setdefault((tool.tool_id, manifest.version), []).append(tool)
        for conflict in registry.conflicts:
            self.conflicts.setdefault((conflict.tool_id, conflict.version, conflict.kept), []).append(conflict)


_KNOWN: WeakKeyDictionary[RegistryView, Names] = WeakKeyDictionary()


def names_of(registry: RegistryView) -> Names:
    """The names of a registry, gathered once."""
    names = _KNOWN.get(registry)
    if names is None:
        names = _KNOWN[registry] = Names(registry)
    return names


def folded(name: str) -> str:
    """A name with one kind of separator and without case: ``Text:Shout`` and ``text-shout`` are alike."""
    return _SEPARATORS.sub("-", name).casefold()


class Taken:
    """The names that other manifests have than the one at ``path``."""

    def __init__(self, owners: dict[str, list[tuple[ToolView, str]]], path: str) -> None:
        self._owners = owners
        self._path = path

    def __contains__(self, name: object) -> bool:
        others = self._owners.get(name, ()) if isinstance(name, str) else ()
        return any(tool.path != self._path for tool, _ in others)


def taken_names(snapshot: Snapshot) -> Container[str]:
    """The names that other manifests have."""
    owners = {} if snapshot.registry is None else names_of(snapshot.registry).owners
    return Taken(owners, snapshot.path)


def lint_names_across(snapshot: Snapshot, root: JsonNode) -> Found:
    """The findings of this manifest's names; the other manifest gets its own."""
    registry = snapshot.registry
    node = root.get("toolId")
    tool_id = text_of(node)
    if registry is None or node is None or not tool_id:
        return []
    names = names_of(registry)
    config = object_at(root, "protocolConfig")
    command = config.get("vcpCommand") if config is not None else None
    own = [(tool_id, node, True), *((alias, item, False) for alias, item in texts_of(root.get("aliases")))]
    if command is not None and text_of(command):
        own.append((text_of(command) or "", command, False))
    diagnostics: Found = []
    for name, where, is_id in own:
        others = [
            (tool, what)
            for tool, what in names.owners.get(name, ())
            # Versions of one id share their names, and two equal ids have a finding of their own (MF541).
            if tool.path != snapshot.path and tool.tool_id != tool_id and not (is_id and what == "the id")
        ]
        if not others:
            continue
        tool, what = others[0]
        kept = registry.get(name)
        if kept is None:
            reach = "no tool (onConflict is 'error')"
        else:
            reach = "this one" if kept.path == snapshot.path else _beside(snapshot.path, tool.path)
        args: dict[str, str | int] = {
            "v": name,
            "what": what,
            "other": f"{tool.tool_id} ({_beside(snapshot.path, tool.path)})",
            "kept": reach,
        }
        related = tuple(place_of(snapshot, other.path, name) for other, _ in others[:4] if is_file(other.path))
        diagnostics.append((Diag("LN740", where.span, args), related))
    alike = [tool for tool in names.alike.get(folded(tool_id), ()) if tool.path != snapshot.path]
    alike = [tool for tool in alike if tool.tool_id != tool_id]
    if alike:
        other = alike[0]
        args = {"v": tool_id, "name": other.tool_id, "other": _beside(snapshot.path, other.path)}
        related = tuple(place_of(snapshot, tool.path, tool.tool_id) for tool in alike[:4] if is_file(tool.path))
        diagnostics.append((Diag("LN741", node.span, args), related))
    return diagnostics


def place_of(snapshot: Snapshot, path: str, name: str) -> Related:
    """Where another manifest says a name."""
    match = re.search('"' + re.escape(name) + '"', snapshot.text_at(path))
    return Related(f"'{name}' is declared here too", match.span() if match else (0, 0), path)


def is_file(path: str) -> bool:
    """Whether a tool stands in a file: methods of the host's services and Tamis's own tools do not."""
    return path.startswith("/")


def _beside(path: str, other: str) -> str:
    path, other = path.replace("\\", "/"), other.replace("\\", "/")
    if path.startswith("/") != other.startswith("/"):
        return other
    return posixpath.relpath(other, posixpath.dirname(path) or ".")
