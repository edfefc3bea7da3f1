"""The registry: which tools there are, under which names and versions, and why one is not available.

Filled from manifest texts (``loader.py`` finds them); reading and checking a manifest is ``protocols``' business. A bad file
becomes an error here and never stops the others (D48); conflicts follow ruling 35. Must not know faces or run anything.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.reading import ExternalScript, Manifest, ManifestReading, ServiceMethod, read_manifest
from tamis.protocols.model import ToolHint
from tamis.protocols.positions import LineIndex
from tamis.protocols.schema.plan import Plan, compile_plan
from tamis.server.runtime.registry.loader import FoundFile, LoadProblem, Scan, scan
from tamis.server.runtime.registry.planted import planted_in, writable_folders
from tamis.server.runtime.registry.versions import satisfies, version_key
from tamis.server.runtime.scripts.service import is_script_service
from tamis.server.runtime.settings.config import Settings

Origin = Literal["manifest", "workflow", "node", "host", "builtin"]
"""Where a tool's definition comes from: a manifest or workflow file, a node definition, a service of the host, Tamis itself."""
ConflictPolicy = Literal["error", "keepFirst", "replace"]


class Tool:
    """A registered tool: its manifest, where it stands, and its compiled parameter plan."""

    __slots__ = ("_output_plan", "_plan", "available", "folder", "manifest", "origin", "path", "reason")

    def __init__(
        self, manifest: Manifest, path: str, *, available: bool = True, reason: str = "", origin: Origin = "manifest"
    ) -> None:
        self.manifest = manifest
        self.origin: Origin = origin
        self.path = path
        self.folder = os.path.dirname(path)
        self.available = available
        self.reason = reason
        self._plan: Plan | None = None
        self._output_plan: Plan | None = None

    @property
    def tool_id(self) -> str:
        """The manifest's ``toolId``."""
        return self.manifest.tool_id

    @property
    def namespace(self) -> str:
        """What stands before the colon of the id, or an empty text."""
        return self.manifest.namespace

    @property
    def callable(self) -> bool:
        """Whether agents may call it: a manifest in a tool folder may unless it says no, a host's method only if it says so (ruling 34)."""
        return self.manifest.agent_callable is True or (self.manifest.agent_callable is None and self.origin != "host")

    @property
    def kind(self) -> Literal["tool", "workflow", "service"]:
        """What lists call it: a script or another program, a workflow, or a method of a service."""
        if self.origin == "workflow":
            return "workflow"
        return "service" if isinstance(self.manifest.handler, ServiceMethod) else "tool"

    @property
    def plan(self) -> Plan:
        """The compiled plan of ``parameters``; compiled on first use (D55)."""
        if self._plan is None:
            # Without a schema any arguments are taken as they are (ruling 2).
            self._plan = compile_plan(self.manifest.parameters or {})
        return self._plan

    @property
    def output_plan(self) -> Plan | None:
        """The compiled plan of ``output``, if the manifest declares one."""
        if self._output_plan is None and self.manifest.output is not None:
            self._output_plan = compile_plan(self.manifest.output)
        return self._output_plan

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a call may use: the id, the aliases, the VCP command (A16, V18)."""
        vcp = self.manifest.vcp_command
        return (self.manifest.tool_id, *self.manifest.aliases, *((vcp,) if vcp else ()))

    def hint(self) -> ToolHint:
        """What a reader may know of it."""
        return ToolHint(self.tool_id, self.manifest.parameters or {}, self.names[1:])


class Conflict(msgspec.Struct, frozen=True):
    """Two manifests that claim the same id and version, or the same name."""

    tool_id: str
    version: str
    kept: str
    dropped: str
    message: str


class RegistryError(msgspec.Struct, frozen=True):
    """A manifest that was not registered, with the one-based place where there is a text."""

    path: str
    message: str
    line: int = 0
    column: int = 0
    tool_id: str = ""
    """The id that the broken manifest declares, where it can be read."""

    @property
    def place(self) -> str:
        """``path:line:column``, one-based, as far as there is a text."""
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


class Registry:
    """Tools by id and version. Replaced as a whole on reload, so that a running call keeps what it resolved."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        errors: Iterable[RegistryError] = (),
        on_conflict: ConflictPolicy = "keepFirst",
    ) -> None:
        self.errors = list(errors)
        self.conflicts: list[Conflict] = []
        self._versions: dict[str, dict[str, Tool]] = {}
        self._names: dict[str, str] = {}
        self._tools: list[Tool] | None = None
        for tool in tools:
            self._register(tool, on_conflict)
        for tool in self.tools:
            for name in tool.names[1:]:
                owner = self._names.get(name)
                if name in self._versions or (owner is not None and owner != tool.tool_id):
                    kept = self._versions[name if name in self._versions else owner or name]
                    self.conflicts.append(
                        Conflict(
                            tool.tool_id,
                            tool.manifest.version,
                            next(iter(kept.values())).path,
                            tool.path,
                            f"the name '{name}' already belongs to another tool; calls by it reach that one",
                        )
                    )
                else:
                    self._names[name] = tool.tool_id
        self._hints: dict[str, ToolHint] | None = None

    def _register(self, tool: Tool, policy: ConflictPolicy) -> None:
        versions = self._versions.setdefault(tool.tool_id, {})
        there = versions.get(tool.manifest.version)
        if there is None:
            versions[tool.manifest.version] = tool
            return
        what = f"toolId '{tool.tool_id}' version {tool.manifest.version} is declared twice"
        verdict = ""
        if policy == "replace":
            versions[tool.manifest.version] = tool
            kept, dropped = tool.path, there.path
        else:
            kept, dropped = there.path, tool.path
            if policy == "error":
                there.available, there.reason = False, f"{what}, also in {tool.path} (onConflict is 'error')"
                verdict = "neither is used (onConflict is 'error')"
        text = f"{what}; {verdict or f'{kept} is used'}"
        self.conflicts.append(Conflict(tool.tool_id, tool.manifest.version, kept, dropped, text))

    @property
    def tools(self) -> list[Tool]:
        """All tools, by id and then version, newest first."""
        if self._tools is None:
            self._tools = [
                tool
                for tool_id in sorted(self._versions)
                for tool in sorted(
                    self._versions[tool_id].values(), key=lambda tool: version_key(tool.manifest.version), reverse=True
                )
            ]
        return self._tools

    def names(self) -> list[str]:
        """Every name that a call may use, ids first."""
        return [*sorted(self._versions), *sorted(self._names)]

    def get(self, name: str, version: str | None = None) -> Tool | None:
        """The tool of that id, alias or VCP command; ``id@range`` pins a version, without one the newest is taken."""
        versions = self._lookup(name)
        if versions is None and version is None and "@" in name:
            name, _, version = name.rpartition("@")
            versions = self._lookup(name)
        if versions is None:
            return None
        fitting = [tool for key, tool in versions.items() if version is None or satisfies(key, version)]
        return max(fitting, key=lambda tool: version_key(tool.manifest.version)) if fitting else None

    def versions(self, name: str) -> list[str]:
        """The registered versions of a name, newest first; empty when the name is unknown."""
        found = self._lookup(name) or self._lookup(name.rpartition("@")[0]) or {}
        return sorted(found, key=version_key, reverse=True)

    def _lookup(self, name: str) -> dict[str, Tool] | None:
        return self._versions.get(name) or self._versions.get(self._names.get(name, ""))

    def hints(self) -> dict[str, ToolHint]:
        """What readers may know of the tools, by every name."""
        if self._hints is None:
            hints: dict[str, ToolHint] = {}
            for tool in reversed(self.tools):
                hints.update(dict.fromkeys(tool.names, tool.hint()))
            self._hints = hints
        return self._hints

    def etag(self) -> str:
        """A short hash that changes with any registered definition."""
        digest = hashlib.sha256()
        for tool in self.tools:
            digest.update(
                msgspec.json.encode([tool.path, tool.manifest.raw, tool.available, tool.reason], order="sorted")
            )
        return digest.hexdigest()[:16]


def build_registry(found: Scan, settings: Settings, write_roots: Iterable[str] = ()) -> Registry:
    """Reads every found file and registers what reads clean; ``write_roots`` are folders in the searched ones that tools may write."""
    tools: list[Tool] = []
    errors = [_load_error(problem) for problem in found.problems]
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
    tools = list(tools)
    errors = list(errors)
    # standing in a tool folder makes a tool callable (ruling 34): no tool may do that for another
    writable = dict.fromkeys(write_roots, "policy.writeRoots")
    writable |= writable_folders((tool.path, tool.manifest.security_context.file_access.allow_write) for tool in tools)
    kept: list[Tool] = []
    for tool in tools:
        folder = planted_in(tool.path, writable)
        if folder:
            text = f"stands in {folder}, which tools may write ({writable[folder]}): a tool could have put it there; move it"
            errors.append(RegistryError(tool.path, text, tool_id=tool.tool_id))
        else:
            kept.append(tool)
    return Registry(kept, errors=errors, on_conflict=settings.on_conflict)


def load_registry(root: Path, settings: Settings) -> Registry:
    """Scans the configured folders and builds the registry."""
    return build_registry(scan(root, settings.tools), settings, inner_write_roots(root, settings))


def inner_write_roots(root: Path, settings: Settings) -> list[str]:
    """The operator's writable folders that lie in the searched ones."""
    searched = [os.path.realpath(root / name) for name in settings.tools]
    roots = [os.path.realpath(name) for name in settings.policy.write_roots if name.startswith("/")]
    return [name for name in roots if any(name.startswith(top.rstrip("/") + "/") for top in searched)]


def read_tool(file: FoundFile, settings: Settings) -> Tool | RegistryError:
    """One file's tool, or the first error in it with its place."""
    return tool_of(file, read_manifest(file.text, strict=settings.strict_json))


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
        if os.path.islink(path):
            return f"the script '{handler.script_path}' is a symbolic link; put the file itself there"
        if os.path.isdir(path):
            return f"the script '{handler.script_path}' is a folder"
        if not os.path.isfile(path):
            return f"the script '{handler.script_path}' does not exist beside the manifest"
        return "" if os.access(path, os.R_OK) else f"the script '{handler.script_path}' cannot be read; mend its rights"
    if is_script_service(manifest):
        return ""
    # Services come and go while the registry stands: their handlers know (`calls/dispatch.py`).
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


def _load_error(problem: LoadProblem) -> RegistryError:
    return RegistryError(problem.path, problem.message)
