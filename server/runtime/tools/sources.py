"""The sources of tools (A43, D69) and the registry that is made of them.

Read from files: manifests, node definitions (seed 000 §7.1), workflows (seed 004). Given by others: methods of the host's services, and
Tamis's own. Reading (``find``) takes a while and touches nothing that is shared, so a thread may do it; composing (``compose``) is quick, and
belongs to the thread that owns the runtime. A face that keeps the files' texts itself (an editor) does the same in steps: ``definitions``,
``read_definition`` of each, ``gathered``, ``composed``. Where two sources say the same id and version, the order is that of ``composed``, and
ruling 35 decides; Tamis's own tools give way to everybody's. Must not know what a tool is run for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.manifest.reading import ManifestReading
from tamis.protocols.positions import LineIndex
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.paths import can_be_path, shown_name
from tamis.server.runtime.tools.loader import NODE_SUFFIX, SUFFIX, FoundFile, scan
from tamis.server.runtime.tools.naming import split_pin
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

if TYPE_CHECKING:
    # Most folders have no workflow.
    from tamis.protocols.workflow.reading import WorkflowReading
    from tamis.server.runtime.tools.host_services import HostServices

MAX_WAY = 8
"""Nodes of a circle that a message names."""


class Meaning(msgspec.Struct, frozen=True):
    """What one file defines, and what is wrong in it."""

    tools: tuple[Tool, ...] = ()
    errors: tuple[RegistryError, ...] = ()


Known = dict[str, tuple[tuple[object, ...], Meaning]]
"""By path: a file's text with the settings that it was read with, and what it gave."""


class Found(msgspec.Struct):
    """What the files of a root define, with what is wrong in them. ``known`` spares reading again what did not change."""

    tools: list[Tool]
    errors: list[RegistryError]
    known: Known


class Definitions(msgspec.Struct):
    """The files that may define tools, in the order in which they count, and what kept others out."""

    files: list[FoundFile]
    errors: list[RegistryError]


# From files


def find(root: Path, settings: Settings, known: Known | None = None) -> Found:
    """Reads the definitions below the configured folders. Never raises; safe in a thread."""
    there = definitions(root, settings)
    read: Known = {}
    for file in there.files:
        key = (file.text, settings.strict_json, settings.handlers)
        before = (known or {}).get(file.path)
        if before is not None and before[0] == key:
            read[file.path] = (key, as_it_is(before[1]))
        else:
            read[file.path] = (key, read_definition(file, root, settings))
    found = gathered((meaning for _, meaning in read.values()), inner_write_roots(root, settings))
    return Found(found.tools, [*there.errors, *found.errors], read)


def definitions(root: Path, settings: Settings) -> Definitions:
    """The files below the configured folders: manifests, node definitions, workflows."""
    seen = scan(root, settings.tools)
    found = Definitions([*seen.files, *seen.nodes], [load_error(problem) for problem in seen.problems])
    if settings.workflows:
        from tamis.server.runtime.tools.workflows import workflow_files

        bad = [shown_name(name) for name in settings.workflows if not can_be_path(name)]
        found.errors += [
            RegistryError(name, "cannot be a folder's name; mend `workflows` in tamis.toml") for name in bad
        ]
        files, errors = workflow_files(root, [name for name in settings.workflows if can_be_path(name)])
        found.files += files
        found.errors += errors
    return found


def read_definition(
    file: FoundFile, root: Path, settings: Settings, reading: ManifestReading | WorkflowReading | None = None
) -> Meaning:
    """What a file defines; its name says what kind of definition it is. ``reading`` is the file as it was read already."""
    if file.path.endswith(NODE_SUFFIX):
        return _nodes(file, settings)
    if file.path.endswith(SUFFIX):
        made = tool_of(file, reading) if isinstance(reading, ManifestReading) else read_tool(file, settings)
    else:
        from tamis.server.runtime.tools.workflows import read_workflow_file

        known = None if isinstance(reading, ManifestReading) else reading
        made = read_workflow_file(file, root, strict=settings.strict_json, reading=known)
    if made is None:
        return Meaning()
    return Meaning((made,)) if isinstance(made, Tool) else Meaning(errors=(made,))


def as_it_is(meaning: Meaning) -> Meaning:
    """What a file that did not change defines as the disk is now: the scripts of its tools may have come or gone."""
    reasons = [why_unavailable(tool.manifest, tool.folder) for tool in meaning.tools]
    if all(reason == tool.reason for reason, tool in zip(reasons, meaning.tools, strict=True)):
        return meaning
    tools = (
        tool if reason == tool.reason else Tool(tool.manifest, tool.path, available=not reason, reason=reason)
        for reason, tool in zip(reasons, meaning.tools, strict=True)
    )
    return Meaning(tuple(tools), meaning.errors)


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


def compose(found: Found, root: Path, settings: Settings, services: HostServices | None) -> Registry:
    """The registry of what was read and what is there now besides; ``services`` are the host's, None where it never registered one."""
    from tamis.server.runtime.tools.host_tools import builtin_tools, host_tools

    return composed(found, settings, host_tools(services), builtin_tools(root, settings))


def composed(found: Found, settings: Settings, given: Iterable[Tool], own: Iterable[Tool]) -> Registry:
    """The registry of what was read, the methods that a host has ``given``, and Tamis's ``own`` tools."""
    tools = [*found.tools, *given]
    if any(tool.origin == "workflow" for tool in tools):
        from tamis.server.runtime.tools.workflows import told_apart

        tools = told_apart(tools, settings.on_conflict)
    taken = {name for tool in tools for name in tool.names}
    tools += [tool for tool in own if taken.isdisjoint(tool.names)]
    if any(isinstance(tool, NodeTool) for tool in tools):
        tools = _implemented(tools, settings)
    registry = Registry(tools, errors=found.errors, on_conflict=settings.on_conflict)
    if any(tool.origin in ("workflow", "node") for tool in tools):
        from tamis.server.runtime.tools.workflow_secrets import with_marks

        marked = with_marks(tools, registry)
        if marked is not None:
            return Registry(marked, errors=found.errors, on_conflict=settings.on_conflict)
    return registry


def _implemented(tools: list[Tool], settings: Settings) -> list[Tool]:
    """Nodes with the handler of the tool that does their work: they keep their own name, words and slots."""
    others = Registry((tool for tool in tools if not isinstance(tool, NodeTool)), on_conflict=settings.on_conflict)
    nodes = {tool.tool_id: tool for tool in reversed(tools) if isinstance(tool, NodeTool)}
    return [
        _done_by(tool, others, nodes) if isinstance(tool, NodeTool) and tool.implemented_by else tool for tool in tools
    ]


def _among_nodes(node: NodeTool, nodes: Mapping[str, NodeTool]) -> str:
    """What is wrong with a node whose ``toolId`` names a node: none does the work of another. Empty for one that names none."""
    way = [node.tool_id]
    while (here := nodes.get(way[-1])) is not None and here.implemented_by and way.count(way[-1]) == 1:
        way.append((split_pin(here.implemented_by) or (here.implemented_by,))[0])
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
    made = NodeTool(manifest, node.path, name, folder=target.folder)
    made.target = target
    return (
        made
        if target.available
        else made.unavailable(f"'{target.tool_id}' does its work: {target.reason}", target.problem_type)
    )
