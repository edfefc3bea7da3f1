"""The sources of tools (A43, D69) and the registry that is made of them.

Read from files: manifests, node definitions (seed 000 §7.1), workflows (seed 004). Given by others: methods of the host's services, and
Tamis's own. Reading (``find``) takes a while and touches nothing that is shared, so a thread may do it; composing (``compose``) is quick, and
belongs to the thread that owns the runtime. Where two sources say the same id and version, the order is that of ``compose``, and ruling 35
decides; Tamis's own tools give way to everybody's. Must not know what a tool is run for.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.positions import LineIndex
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.registry.loader import FoundFile, can_be_path, scan, shown_name
from tamis.server.runtime.registry.naming import split_pin
from tamis.server.runtime.registry.reading import inner_write_roots, load_error, read_tool, unplanted, why_unavailable
from tamis.server.runtime.registry.registry import Registry
from tamis.server.runtime.registry.tool import RegistryError, Tool
from tamis.server.runtime.settings.config import Settings

Known = dict[str, tuple[str, bool, Tool | RegistryError]]
"""By path: a manifest's text, whether it was read strictly, and what it gave."""


class NodeTool(Tool):
    """A node definition as a tool; ``implemented_by`` names the tool that does its work, empty: the workflow engine runs it."""

    __slots__ = ("implemented_by",)

    def __init__(self, manifest: Manifest, path: str, implemented_by: str, *, folder: str | None = None) -> None:
        super().__init__(manifest, path, origin="node", folder=folder)
        self.implemented_by = implemented_by


class Found(msgspec.Struct):
    """What the files of a root define, with what is wrong in them. ``known`` spares reading again what did not change."""

    tools: list[Tool]
    errors: list[RegistryError]
    known: Known


def find(root: Path, settings: Settings, known: Known | None = None) -> Found:
    """Reads the definitions below the configured folders. Never raises; safe in a thread."""
    seen = scan(root, settings.tools)
    errors = [load_error(problem) for problem in seen.problems]
    found = Found([], errors, {})
    for file in seen.files:
        result = _manifest(file, settings, known or {})
        found.known[file.path] = (file.text, settings.strict_json, result)
        if isinstance(result, Tool):
            found.tools.append(result)
        else:
            errors.append(result)
    if seen.nodes:
        _take_nodes(seen.nodes, settings, found)
    if settings.workflows:
        from tamis.server.runtime.workflows.source import workflow_tools

        flows = tuple(name for name in settings.workflows if can_be_path(name))
        bad = [shown_name(name) for name in settings.workflows if not can_be_path(name)]
        errors += [RegistryError(name, "cannot be a folder's name; mend `workflows` in tamis.toml") for name in bad]
        workflows, more = workflow_tools(root, msgspec.structs.replace(settings, workflows=flows))
        found.tools += workflows
        errors += more
    found.tools, planted = unplanted(found.tools, inner_write_roots(root, settings))
    errors += planted
    return found


def compose(found: Found, root: Path, settings: Settings, parts: Parts) -> Registry:
    """The registry of what was read and what is there now besides."""
    from tamis.server.runtime.services.source import builtin_tools, host_tools

    tools = [*found.tools, *host_tools(parts)]
    taken = {name for tool in tools for name in tool.names}
    tools += [tool for tool in builtin_tools(root, settings, parts) if taken.isdisjoint(tool.names)]
    if any(isinstance(tool, NodeTool) for tool in tools):
        tools = _implemented(tools, settings)
    return Registry(tools, errors=found.errors, on_conflict=settings.on_conflict)


def _manifest(file: FoundFile, settings: Settings, known: Known) -> Tool | RegistryError:
    before = known.get(file.path)
    if before is None or before[:2] != (file.text, settings.strict_json):
        return read_tool(file, settings)
    result = before[2]
    if isinstance(result, Tool):
        # The text is the same; its script may have come or gone.
        reason = why_unavailable(result.manifest, result.folder)
        if reason != result.reason:
            return Tool(result.manifest, file.path, available=not reason, reason=reason)
    return result


def _take_nodes(files: Iterable[FoundFile], settings: Settings, found: Found) -> None:
    from tamis.protocols.manifest.node import read_nodes

    for file in files:
        reading = read_nodes(file.text, strict=settings.strict_json)
        found.tools += [NodeTool(node.manifest, file.path, node.implemented_by) for node in reading.nodes]
        lines = LineIndex(file.text) if reading.faults else None
        for name, diag in reading.faults:
            line, column = lines.position(diag.span[0]) if lines is not None else (0, 0)
            found.errors.append(RegistryError(file.path, message(diag), line + 1, column + 1, name))


def _implemented(tools: list[Tool], settings: Settings) -> list[Tool]:
    """Nodes with the handler of the tool that does their work: they keep their own name, words and slots."""
    others = Registry((tool for tool in tools if not isinstance(tool, NodeTool)), on_conflict=settings.on_conflict)
    return [_done_by(tool, others) if isinstance(tool, NodeTool) and tool.implemented_by else tool for tool in tools]


def _done_by(node: NodeTool, others: Registry) -> Tool:
    name = node.implemented_by
    target = others.get(name)
    if target is None:
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
    return (
        made
        if target.available
        else made.unavailable(f"'{target.tool_id}' does its work: {target.reason}", target.problem_type)
    )
