"""The sources of tools (A43, D69) and the registry that is made of them.

Read from files: manifests, node definitions (seed 000 §7.1), workflows (seed 004). Given by others: methods of the host's services,
manifests of installed packages (``source_packages.py``, for faces that read with ``find``), and Tamis's own. Reading (``find``) takes a while and touches nothing that is shared, so a thread may do it; composing (``compose``) is quick, and
belongs to the thread that owns the runtime. A face that keeps the files' texts itself (an editor) does the same in steps: ``definitions``,
``read_definition`` of each, ``gathered``, ``composed``. Where two sources say the same id and version, the order is that of ``composed``, and
ruling 35 decides; Tamis's own tools give way to everybody's. Must not know what a tool is run for.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.manifest.reading import ManifestReading
from tamis.protocols.positions import LineIndex
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import can_be_path, shown_name
from tamis.server.runtime.store.collector import uncollected
from tamis.server.runtime.tools.loader import (
    NODE_SUFFIX,
    SUFFIX,
    FileStamp,
    FoundFile,
    Listing,
    Listings,
    definition_files,
    file_stamp,
    read_manifest_file,
    scan,
)
from tamis.server.runtime.tools.reading import (
    inner_write_roots,
    load_error,
    read_tool,
    tool_of,
    unplanted,
    why_unavailable,
)
from tamis.server.runtime.tools.registry import Registry
from tamis.server.runtime.tools.tool import NodeTool, RegistryError, Tool
from tamis.server.runtime.tools.versions import split_pin

if TYPE_CHECKING:
    from tamis.protocols.manifest.embedded import SchemaExtension
    from tamis.protocols.workflow.reading import WorkflowReading
    from tamis.server.runtime.tools.host_services import HostServices
    from tamis.server.runtime.tools.reading_cache import KeptRoot


# The files of the setting ``schemaExtension``: rules that manifests have to fit besides those of Tamis (T4).


MAX_KEPT = 64
_kept: dict[str, tuple[FileStamp, str, SchemaExtension]] = {}
"""By path, as the file was read; its rules are compiled once."""


def extensions_of(root: Path, settings: Settings) -> tuple[SchemaExtension, ...]:
    """The rules in force, as their files are now. Never raises."""
    return tuple(_extension(root, name) for name in settings.schema_extension)


def _extension(root: Path, name: str) -> SchemaExtension:
    from tamis.protocols.manifest.embedded import SchemaExtension

    shown = shown_name(name)
    if not can_be_path(name):
        return SchemaExtension(shown, "", "cannot be a file's name")
    path = str(root / name)
    stamp = file_stamp(path)
    kept = _kept.get(path)
    if (
        kept is not None
        and stamp is not None
        and kept[0] == stamp
        and kept[2].name == shown
        and max(stamp[1], stamp[2]) + STEP_NS < time.time_ns()
    ):
        return kept[2]
    file = read_manifest_file(path)
    if not isinstance(file, FoundFile):
        return SchemaExtension(shown, "", file.message)
    if kept is not None and kept[1] == file.text and kept[2].name == shown:
        schema_extension = kept[2]
    else:
        schema_extension = SchemaExtension(shown, file.text.removeprefix("\ufeff"))
    if file.stamp is not None:
        if len(_kept) >= MAX_KEPT:
            _kept.clear()
        _kept[path] = file.stamp, file.text, schema_extension
    return schema_extension


WORTH = 100
"""Definitions from which on what reading gave is kept for the next process: fewer are read faster than that is looked for."""
STEP_NS = 2_000_000_000
"""The longest step in which a file system counts time (FAT): a second change within one leaves no sign."""
MAX_WAY = 8
"""Nodes of a circle that a message names."""


class Meaning(msgspec.Struct, frozen=True):
    """What one file defines, and what is wrong in it."""

    tools: tuple[Tool, ...] = ()
    errors: tuple[RegistryError, ...] = ()


class KnownFile(msgspec.Struct, frozen=True):
    """What one file gave: it gives the same while it has this stamp or, where the stamp would not show a change, this text."""

    how: tuple[object, ...]
    stamp: FileStamp | None
    text: str
    meaning: Meaning


Known = dict[str, KnownFile]
"""By path."""


class Found(msgspec.Struct):
    """What the files of a root define, with what is wrong in them. ``known`` spares reading again what did not change, ``folders`` listing it."""

    tools: list[Tool]
    errors: list[RegistryError]
    known: Known
    folders: Mapping[str, Listing] = {}


class Definitions(msgspec.Struct):
    """The files that may define tools, in the order in which they count, and what kept others out."""

    files: list[FoundFile]
    errors: list[RegistryError]


# From files


def find(
    root: Path, settings: Settings, known: Known | None = None, folders: Mapping[str, Listing] | None = None
) -> Found:
    """Reads the definitions below the configured folders. ``known`` and ``folders`` are those of the reading before. Never raises; safe in a
    thread."""
    began = time.time_ns()
    how = (settings.strict_json, settings.handlers, extensions_of(root, settings))
    cache = _Cache(root, settings, how) if known is None else None
    lists = Listings(1, lambda: folders or {}) if cache is None else cache.lists
    paths, problems = definition_files(root, settings.tools, lists)
    paths.sort(key=lambda path: path.endswith(NODE_SUFFIX))  # node definitions come behind manifests
    before = known or {}
    if cache is not None and len(paths) >= WORTH:
        before = cache.files()
    read: Known = {}
    again: list[str] = []
    for path in paths:
        earlier = before.get(path)
        if earlier is not None and earlier.how != how:
            earlier = None
        if earlier is not None and earlier.stamp is not None and earlier.stamp == file_stamp(path):
            read[path] = _as_known(earlier)
            continue
        again.append(path)
        file = read_manifest_file(path)
        if isinstance(file, FoundFile):
            read[path] = _known(file, earlier, root, settings, how, began)
        else:
            problems.append(file)
    if cache is not None and len(paths) >= WORTH:
        cache.store(read, again, began)
    errors = [load_error(problem) for problem in problems]
    flows = workflow_definitions(root, settings)
    for file in flows.files:
        earlier = before.get(file.path)
        read[file.path] = _known(file, earlier if earlier and earlier.how == how else None, root, settings, how, 0)
    gathering = gathered((file.meaning for file in read.values()), inner_write_roots(root, settings))
    tools, errors = gathering.tools, [*errors, *flows.errors, *gathering.errors]
    if settings.sources:
        # most roots name none
        from tamis.server.runtime.tools.source_packages import source_tools

        brought, wrong = source_tools(settings, extensions_of(root, settings))
        tools, errors = [*tools, *brought], [*errors, *wrong]
    return Found(tools, errors, read, _sure(lists, began))


def _sure(lists: Listings, began: int) -> dict[str, Listing]:
    """The folders that can change no more without a sign: what changed shortly before it was listed may change again in the same step of
    the clock."""
    limit = began - STEP_NS
    sure = {folder: now for folder, now in lists.listed.items() if max(now.stamp[1], now.stamp[2]) <= limit}
    return sure | lists.known()


def _known(
    file: FoundFile, earlier: KnownFile | None, root: Path, settings: Settings, how: tuple[object, ...], began: int
) -> KnownFile:
    """What a file that was read now defines. Where it may have changed since without a sign, its text is kept to be compared."""
    limit = began - STEP_NS
    stamp = file.stamp if file.stamp is not None and max(file.stamp[1], file.stamp[2]) <= limit else None
    if earlier is not None and earlier.stamp is None and earlier.text == file.text:
        meaning = as_it_is(earlier.meaning)
    else:
        meaning = read_definition(file, root, settings)
    return KnownFile(how, stamp, "" if stamp is not None else file.text, meaning)


def _as_known(earlier: KnownFile) -> KnownFile:
    now = as_it_is(earlier.meaning)
    return earlier if now is earlier.meaning else msgspec.structs.replace(earlier, meaning=now)


class _Cache:
    """What the process before kept of a root; looked for only where there are many folders or definitions."""

    def __init__(self, root: Path, settings: Settings, how: tuple[object, ...]) -> None:
        self._root, self._settings, self._how = root, settings, how
        self.lists = Listings(WORTH, lambda: self._kept.folders)

    @functools.cached_property
    def _kept(self) -> KeptRoot:
        from tamis.server.runtime.tools.reading_cache import load

        with uncollected():
            return load(self._root, self._settings.tools, self._how)

    def files(self) -> Known:
        """The files that were read."""
        how = self._how
        with uncollected():
            return {
                kept.path: KnownFile(
                    how,
                    kept.stamp,
                    "",
                    Meaning(
                        ()
                        if kept.brief is None
                        else (Tool(kept.brief, kept.path, folder=kept.path[: kept.path.rfind("/")] or "/"),),
                        () if kept.error is None else (kept.error,),
                    ),
                )
                for kept in self._kept.files
            }

    def store(self, read: Known, again: list[str], began: int) -> None:
        """Keeps what was read for the next process, where that is much more than is kept; ``again``: the files that were read anew."""
        kept, lists = self._kept.folders, self.lists
        new = sum(1 for path in again if (file := read.get(path)) and file.stamp and path.endswith(SUFFIX))
        listed = _sure(lists, began)
        other = sum(1 for folder, now in listed.items() if (old := kept.get(folder)) is None or old.stamp != now.stamp)
        if _is_little(new, len(read)) and _is_little(other, len(listed)):
            return
        from tamis.server.runtime.tools.reading_cache import Kept, store

        files = {
            path: (
                file.stamp,
                Kept(
                    next((tool.manifest for tool in file.meaning.tools), None),
                    next(iter(file.meaning.errors), None),
                ),
            )
            for path, file in read.items()
            if file.stamp is not None and path.endswith(SUFFIX)
        }
        store(self._root, self._settings.tools, self._how, files, listed)


def _is_little(new: int, among: int) -> bool:
    return new == 0 or (new < WORTH // 2 and new * 20 < among)


def definitions(root: Path, settings: Settings) -> Definitions:
    """The files below the configured folders: manifests, node definitions, workflows."""
    seen = scan(root, settings.tools)
    flows = workflow_definitions(root, settings)
    errors = [load_error(problem) for problem in seen.problems]
    return Definitions([*seen.files, *seen.nodes, *flows.files], [*errors, *flows.errors])


def workflow_definitions(root: Path, settings: Settings) -> Definitions:
    """The workflow files of the configured folders."""
    if not settings.workflows:
        return Definitions([], [])
    from tamis.server.runtime.tools.workflows import workflow_files

    bad = [shown_name(name) for name in settings.workflows if not can_be_path(name)]
    errors = [RegistryError(name, "cannot be a folder's name; mend `workflows` in tamis.toml") for name in bad]
    files, more = workflow_files(root, [name for name in settings.workflows if can_be_path(name)])
    return Definitions(files, [*errors, *more])


def read_definition(
    file: FoundFile, root: Path, settings: Settings, reading: ManifestReading | WorkflowReading | None = None
) -> Meaning:
    """What a file defines; its name says what kind of definition it is. ``reading`` is the file as it was read already."""
    if file.path.endswith(NODE_SUFFIX):
        return _nodes(file, settings)
    if file.path.endswith(SUFFIX):
        candidate = (
            tool_of(file, reading)
            if isinstance(reading, ManifestReading)
            else read_tool(file, settings, extensions_of(root, settings))
        )
    else:
        from tamis.server.runtime.tools.workflows import read_workflow_file

        known = None if isinstance(reading, ManifestReading) else reading
        candidate = read_workflow_file(file, root, strict=settings.strict_json, reading=known)
    if candidate is None:
        return Meaning()
    return Meaning((candidate,)) if isinstance(candidate, Tool) else Meaning(errors=(candidate,))


def as_it_is(meaning: Meaning) -> Meaning:
    """What a file that did not change defines as the disk is now: the scripts of its tools may have come or gone."""
    tools = meaning.tools
    for tool in tools:
        if why_unavailable(tool.brief, tool.folder) != tool.reason:
            break
    else:
        return meaning
    reasons = [why_unavailable(tool.brief, tool.folder) for tool in tools]
    standing = (
        tool if tool.reason == reason else tool.standing(reason) for tool, reason in zip(tools, reasons, strict=True)
    )
    return Meaning(tuple(standing), meaning.errors)


def gathered(meanings: Iterable[Meaning], write_roots: Iterable[str]) -> Found:
    """The tools of all files, in the files' order, without those that another tool could have put there (ruling 34)."""
    tools: list[Tool] = []
    errors: list[RegistryError] = []
    for meaning in meanings:
        tools += meaning.tools
        errors += meaning.errors
    workflows = [tool for tool in tools if tool.origin == "workflow"]
    if workflows:
        from tamis.server.runtime.tools.workflows import reader_tool, streams

        if any(streams(tool) for tool in workflows):
            tools.append(reader_tool())
    tools, planted = unplanted(tools, write_roots)
    return Found(tools, [*errors, *planted], {})


def _nodes(file: FoundFile, settings: Settings) -> Meaning:
    from tamis.protocols.manifest.node import read_nodes

    reading = read_nodes(file.text, strict=settings.strict_json)
    errors: list[RegistryError] = []
    lines = LineIndex(file.text) if reading.faults else None
    for name, diag in reading.faults:
        line, column = lines.position(diag.span[0]) if lines is not None else (0, 0)
        errors.append(RegistryError(file.path, message(diag), line + 1, column + 1, name))
    tools = (NodeTool(node.manifest, file.path, node.implemented_by) for node in reading.nodes)
    return Meaning(tuple(tools), tuple(errors))


# With the tools of others


def compose(gathering: Found, root: Path, settings: Settings, services: HostServices | None) -> Registry:
    """The registry of what was read and what is there now besides; ``services`` are the host's, None where it never registered one."""
    from tamis.server.runtime.tools.host_tools import builtin_tools, host_tools

    return composed(gathering, settings, host_tools(services), builtin_tools(root, settings))


def composed(gathering: Found, settings: Settings, service_tools: Iterable[Tool], own: Iterable[Tool]) -> Registry:
    """The registry of what was read, the methods that a host has ``given``, and Tamis's ``own`` tools."""
    tools = [*gathering.tools, *service_tools]
    origins = {tool.origin for tool in tools}
    if "workflow" in origins:
        from tamis.server.runtime.tools.workflows import told_apart

        tools = told_apart(tools, settings.on_conflict)
    taken = {tool.brief.tool_id for tool in tools}
    taken.update(name for tool in tools if tool.brief.aliases or tool.brief.vcp_command for name in tool.names)
    tools += [tool for tool in own if taken.isdisjoint(tool.names)]
    if "node" in origins:
        tools = _implemented(tools, settings)
    registry = Registry(tools, errors=gathering.errors, on_conflict=settings.on_conflict)
    if "workflow" in origins or "node" in origins:
        from tamis.server.runtime.tools.workflow_secrets import with_marks

        marked = with_marks(tools, registry)
        if marked is not None:
            return Registry(marked, errors=gathering.errors, on_conflict=settings.on_conflict)
    return registry


def _implemented(tools: list[Tool], settings: Settings) -> list[Tool]:
    """Nodes with the handler of the tool that does their work: they keep their own name, words and slots."""
    others = Registry((tool for tool in tools if not isinstance(tool, NodeTool)), on_conflict=settings.on_conflict)
    nodes = {tool.tool_id: tool for tool in reversed(tools) if isinstance(tool, NodeTool)}
    return [
        _done_by(tool, others, nodes) if isinstance(tool, NodeTool) and tool.implemented_by else tool for tool in tools
    ]


def _without_pin(name: str) -> str:
    return (split_pin(name) or (name,))[0]


def _among_nodes(node: NodeTool, nodes: Mapping[str, NodeTool]) -> str:
    """What is wrong with a node whose ``toolId`` names a node: none does the work of another. Empty for one that names none."""
    # The node itself is the first step: another node may have its id, and do its work by itself.
    way = [node.tool_id, _without_pin(node.implemented_by)]
    while (here := nodes.get(way[-1])) is not None and here.implemented_by and way.count(way[-1]) == 1:
        way.append(_without_pin(here.implemented_by))
    if way[1] not in nodes:
        return ""
    mend = "name a tool that is no node, or leave it out: then the workflow engine runs the node"
    if way[1] == node.tool_id:
        return f"`toolId` names the node itself; {mend}"
    if way[-1] == node.tool_id:
        shown = " → ".join(way) if len(way) <= MAX_WAY else f"{' → '.join(way[: MAX_WAY - 1])} → … → {way[-1]}"
        return f"`toolId` leads in a circle, {shown}; {mend}"
    return f"`toolId` names '{way[1]}', which is a node too; {mend}"


def _done_by(node: NodeTool, others: Registry, nodes: Mapping[str, NodeTool]) -> Tool:
    name = node.implemented_by
    target = others.get(name)
    if target is None:
        if fault := _among_nodes(node, nodes):
            return node.unavailable(fault, "DependencyError")
        versions, pin = others.versions(name), split_pin(name)
        if versions and pin:
            lacks = f"'{pin[0]}' that does its work has no version '{pin[1]}'; there is {', '.join(versions[:8])}"
        else:
            lacks = f"'{name}' that does its work is not registered{hint(best(name, others.names()))}"
        return node.unavailable(f"the tool {lacks}", "DependencyError")
    own = target.manifest
    manifest = msgspec.structs.replace(
        node.manifest,
        handler=own.handler,
        security_context=own.security_context,
        execution=own.execution,
        output=own.output if node.manifest.output is None else node.manifest.output,
        dependencies=own.dependencies,
    )
    node_tool = NodeTool(manifest, node.path, name, folder=target.folder)
    node_tool.target = target
    return (
        node_tool
        if target.available
        else node_tool.unavailable(f"'{target.tool_id}' does its work: {target.reason}", target.problem_type)
    )
