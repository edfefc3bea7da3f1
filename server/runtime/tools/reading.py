"""Manifests on disk to tools, and the registry of them.

A file that cannot be read is an error with its place. Must not know what a tool is run for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.reading import ExternalScript, Manifest, ManifestReading, read_manifest
from tamis.protocols.positions import LineIndex
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.paths import can_be_path
from tamis.server.runtime.tools.loader import FoundFile, LoadProblem, Scan, scan
from tamis.server.runtime.tools.patterns import BadPattern, read_pattern
from tamis.server.runtime.tools.registry import Registry
from tamis.server.runtime.tools.script_service import is_script_service
from tamis.server.runtime.tools.tool import RegistryError, Tool

if TYPE_CHECKING:
    from tamis.protocols.manifest.extension import SchemaExtension


def build_registry(found: Scan, settings: Settings, write_roots: Iterable[str] = ()) -> Registry:
    """Reads every found manifest and registers what reads clean; ``write_roots`` are folders in the searched ones that tools may write."""
    tools: list[Tool] = []
    errors = [load_error(problem) for problem in found.problems]
    for file in found.files:
        result = read_tool(file, settings)
        if isinstance(result, Tool):
            tools.append(result)
        else:
            errors.append(result)
    return register(tools, errors, settings, write_roots)


def register(
    tools: Iterable[Tool], errors: list[RegistryError], settings: Settings, write_roots: Iterable[str] = ()
) -> Registry:
    """The registry of tools that were read, without those that another tool could have put there."""
    kept, planted = unplanted(list(tools), write_roots)
    return Registry(kept, errors=[*errors, *planted], on_conflict=settings.on_conflict)


def unplanted(tools: list[Tool], write_roots: Iterable[str]) -> tuple[list[Tool], list[RegistryError]]:
    """The tools that no tool could have put there, and an error for each of the others."""
    # standing in a tool folder makes a tool callable (ruling 34): no tool may do that for another
    writable = dict.fromkeys(write_roots, "policy.writeRoots")
    writable |= writable_folders((tool.path, tool.manifest.security_context.file_access.allow_write) for tool in tools)
    if not writable:
        return tools, []
    kept: list[Tool] = []
    errors: list[RegistryError] = []
    for tool in tools:
        folder = planted_in(tool.path, writable)
        if folder:
            text = f"stands in {folder}, which tools may write ({writable[folder]}): a tool could have put it there; move it"
            errors.append(RegistryError(tool.path, text, tool_id=tool.tool_id))
        else:
            kept.append(tool)
    return kept, errors


def writable_folders(asked: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    """The folders that manifests ask to write below their own, each with the manifest that asks; given (manifest path, patterns)."""
    folders: dict[str, str] = {}
    for manifest, patterns in asked:
        for text in patterns:
            try:
                pattern = read_pattern(text)
            except BadPattern:
                continue
            if pattern.parts and not (pattern.absolute or pattern.glob):
                folders.setdefault(os.path.join(os.path.dirname(manifest), *pattern.parts), manifest)
    return folders


def planted_in(path: str, writable: Mapping[str, str]) -> str:
    """The writable folder that a manifest stands in, or an empty text."""
    return next((folder for folder in _above(path) if folder in writable), "")


def _above(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    while folder != path:
        yield folder
        path, folder = folder, os.path.dirname(folder)


def load_registry(root: Path, settings: Settings) -> Registry:
    """Scans the configured folders and builds the registry of their manifests alone; ``sources.py`` knows the other sources."""
    return build_registry(scan(root, settings.tools), settings, inner_write_roots(root, settings))


def inner_write_roots(root: Path, settings: Settings) -> list[str]:
    """The operator's writable folders that lie in the searched ones."""
    searched = [os.path.realpath(root / name) for name in (*settings.tools, *settings.workflows) if can_be_path(name)]
    roots = [
        os.path.realpath(name) for name in settings.policy.write_roots if name.startswith("/") and can_be_path(name)
    ]
    return [name for name in roots if any(name.startswith(top.rstrip("/") + "/") for top in searched)]


def read_tool(file: FoundFile, settings: Settings, extensions: Sequence[SchemaExtension] = ()) -> Tool | RegistryError:
    """One file's tool, or the first error in it with its place."""
    return tool_of(
        file, read_manifest(file.text, strict=settings.strict_json, handlers=settings.handlers, extensions=extensions)
    )


def tool_of(file: FoundFile, reading: ManifestReading) -> Tool | RegistryError:
    """The tool of a file that was read already, or the first error in it with its place."""
    if reading.manifest is None:
        return _first_error(file, reading)
    reason = why_unavailable(reading.manifest, os.path.dirname(file.path))
    return Tool(reading.manifest, file.path, available=not reason, reason=reason)


def why_unavailable(manifest: Manifest, folder: str) -> str:
    """Why a tool that is registered cannot be called as the disk is now; empty when it can."""
    handler = manifest.handler
    if isinstance(handler, ExternalScript):
        path = os.path.join(folder, handler.script_path)
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return f"the script '{handler.script_path}' does not exist beside the manifest"
        if stat.S_ISLNK(mode):
            return f"the script '{handler.script_path}' is a symbolic link; put the file itself there"
        if stat.S_ISDIR(mode):
            return f"the script '{handler.script_path}' is a folder"
        if not stat.S_ISREG(mode):
            return f"the script '{handler.script_path}' does not exist beside the manifest"
        return "" if os.access(path, os.R_OK) else f"the script '{handler.script_path}' cannot be read; mend its rights"
    if is_script_service(manifest):
        return ""
    # Services come and go while the registry stands: their handlers know (``Runner.problem``).
    return ""


def _first_error(file: FoundFile, reading: ManifestReading) -> RegistryError:
    diagnostics = reading.diagnostics
    declared = reading.tree.node_at("/toolId")
    found = declared.to_python() if declared is not None else ""
    tool_id = found if isinstance(found, str) else ""
    worst = next((diag for diag in diagnostics if severity(diag) == "error"), None)
    if worst is None:
        return RegistryError(file.path, "holds no manifest", tool_id=tool_id)
    line, column = LineIndex(file.text).position(worst.span[0])
    more = sum(1 for diag in diagnostics if severity(diag) == "error") - 1
    suffix = f" (and {more} more; `tamis check` lists all)" if more else ""
    return RegistryError(file.path, message(worst) + suffix, line + 1, column + 1, tool_id)


def load_error(problem: LoadProblem) -> RegistryError:
    """What kept a file out."""
    return RegistryError(problem.path, problem.message)
