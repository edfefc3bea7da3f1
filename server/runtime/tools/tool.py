"""One registered tool, and what kept another from being registered. Must not know how tools are found or resolved."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from tamis.protocols.manifest.reading import Manifest, ServiceMethod
from tamis.protocols.model import ToolHint

if TYPE_CHECKING:
    from tamis.protocols.contract import ErrorType
    from tamis.protocols.schema.plan import Plan
    from tamis.server.runtime.tools.reading_cache import KeptBrief

Origin = Literal["manifest", "workflow", "node", "host", "builtin"]
"""Where a tool's definition comes from: a manifest or workflow file, a node definition, a service of the host, Tamis itself."""


class Tool:
    """A registered tool: its manifest, where it stands, and its compiled parameter plan."""

    __slots__ = (
        *("_manifest", "_output_plan", "_plan", "_secretive", "_targets", "available", "brief", "folder", "listed"),
        *("origin", "path", "problem_type", "reason"),
    )

    def __init__(
        self,
        manifest: Manifest | KeptBrief,
        path: str,
        *,
        available: bool = True,
        reason: str = "",
        origin: Origin = "manifest",
        listed: bool = True,
        folder: str | None = None,
    ) -> None:
        """``listed``: whether lists, prompts and searches show it; ``folder``: where its script is, unless that is beside its file."""
        self.brief: Manifest | KeptBrief = manifest
        """The manifest as far as registries and lists ask of it."""
        self._manifest: Manifest | None = None
        self.listed = listed
        self.origin: Origin = origin
        self.path = path
        self.folder = os.path.dirname(path) if folder is None else folder
        self.available = available
        self.reason = reason
        self.problem_type: ErrorType = "ScriptError"
        """The error type of a call while the tool is not available."""
        self._plan: Plan | None = None
        self._output_plan: Plan | None = None
        self._secretive: bool | None = None
        self._targets: tuple[str, ...] | None = None

    def unavailable(self, reason: str, problem_type: ErrorType = "ScriptError") -> Tool:
        """The same tool where it cannot be called for this reason; tools are shared by registries, so none is changed."""
        twin = copy.copy(self)
        twin.available, twin.reason, twin.problem_type = False, reason, problem_type
        return twin

    def standing(self, reason: str) -> Tool:
        """The same tool as the disk is now: it cannot be called for this reason, or can where that is empty."""
        twin = copy.copy(self)
        twin.available, twin.reason = not reason, reason
        return twin

    def defined_by(self, manifest: Manifest) -> Self:
        """The same tool with another manifest; tools are shared by registries, so none is changed."""
        twin = copy.copy(self)
        twin.brief = twin._manifest = manifest
        twin._plan = twin._output_plan = twin._secretive = twin._targets = None
        return twin

    @property
    def manifest(self) -> Manifest:
        """The definition as a whole."""
        if self._manifest is None:
            self._manifest = self.brief if isinstance(self.brief, Manifest) else self.brief.whole()
        return self._manifest

    @property
    def content(self) -> object:
        """All that the definition says, as plain data: what is equal here is the same tool to everyone who knew it."""
        return self.manifest.raw if self.origin == "manifest" else self.manifest

    @property
    def tool_id(self) -> str:
        """The manifest's ``toolId``."""
        return self.brief.tool_id

    @property
    def version(self) -> str:
        """The manifest's ``version``."""
        return self.brief.version

    @property
    def namespace(self) -> str:
        """What stands before the colon of the id, or an empty text."""
        head, colon, _ = self.brief.tool_id.partition(":")
        return head if colon else ""

    @property
    def callable(self) -> bool:
        """Whether agents may call it: a manifest in a tool folder may unless it says no, a host's method only if it says so (ruling 34)."""
        says = self.brief.agent_callable
        return says is True or (says is None and self.origin != "host")

    @property
    def kind(self) -> Literal["tool", "workflow", "service"]:
        """What lists call it: a script or another program, a workflow, or a method of a service."""
        if self.origin == "workflow":
            return "workflow"
        return "service" if isinstance(self.brief.handler, ServiceMethod) else "tool"

    @property
    def plan(self) -> Plan:
        """The compiled plan of ``parameters``; compiled on first use (D55)."""
        if self._plan is None:
            # Without a schema any arguments are taken as they are (ruling 2).
            from tamis.protocols.schema.plan import compile_plan

            self._plan = compile_plan(self.manifest.parameters or {})
        return self._plan

    @property
    def output_plan(self) -> Plan | None:
        """The compiled plan of ``output``, if the manifest declares one."""
        if self._output_plan is None and self.manifest.output is not None:
            from tamis.protocols.schema.plan import compile_plan

            self._output_plan = compile_plan(self.manifest.output)
        return self._output_plan

    @property
    def may_have_secrets(self) -> bool:
        """Whether the parameter schema says ``x-secret`` anywhere; where it does not, there is nothing to mask."""
        if self._secretive is None:
            self._secretive = "x-secret" in str(self.manifest.parameters)
        return self._secretive

    @property
    def targets(self) -> tuple[str, ...]:
        """The parameters whose value names a resource that the tool writes (``x-resource: "write"``, T36)."""
        if self._targets is None:
            properties = (self.manifest.parameters or {}).get("properties")
            members = properties.items() if isinstance(properties, dict) else ()
            self._targets = tuple(
                name for name, schema in members if isinstance(schema, dict) and schema.get("x-resource") == "write"
            )
        return self._targets

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a call may use: the id, the aliases, the VCP command (A16, V18)."""
        brief = self.brief
        vcp = brief.vcp_command
        return (brief.tool_id, *brief.aliases, *((vcp,) if vcp else ()))

    def hint(self) -> ToolHint:
        """What a reader may know of it."""
        return ToolHint(self.tool_id, self.manifest.parameters or {}, self.names[1:])


class RegistryError(msgspec.Struct, frozen=True):
    """What was not registered, or cannot be called as it is registered, with the one-based place where there is a text."""

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


class NodeTool(Tool):
    """A node definition as a tool; ``implemented_by`` names the tool that does its work, empty: the workflow engine runs it."""

    __slots__ = ("implemented_by", "target")

    def __init__(self, manifest: Manifest, path: str, implemented_by: str, *, folder: str | None = None) -> None:
        super().__init__(manifest, path, origin="node", folder=folder)
        self.implemented_by = implemented_by
        self.target: Tool | None = None
        """The tool that does its work, once it was found."""
