"""What an editor question is asked of: one document, the registry as it was, the facts about the disk that matter.

Everything in a snapshot is frozen, so an answer can be computed anywhere and at any time. Facts about the disk arrive in
it; nothing here reads a file. What is read from the text is read once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal
from typing import Protocol as TypingProtocol

import msgspec

from tamis.protocols.model import REASONING_TAGS, Json, ReadOptions, ToolHint
from tamis.protocols.plugins import BUILT_IN
from tamis.protocols.schema.words import is_list, is_object
from tamis.server.analysis.kinds import DocumentKind
from tamis.server.runtime.tools.versions import DependencyFault

if TYPE_CHECKING:
    from tamis.protocols.jsontext.tree import JsonTree
    from tamis.protocols.manifest.embedded import SchemaExtension
    from tamis.protocols.manifest.profile import ProfileReading
    from tamis.protocols.manifest.reading import Manifest, ManifestReading, Memory
    from tamis.protocols.model import Document
    from tamis.protocols.schema.plan import Plan
    from tamis.protocols.workflow.reading import WorkflowReading
    from tamis.server.analysis.index import WorkspaceIndex
    from tamis.server.runtime.settings.config import Settings as RootSettings
    from tamis.server.runtime.settings.faults import Fault

Protocol = Literal["auto", "action", "tam", "vcp"]

_ENDINGS: tuple[tuple[str, Protocol], ...] = tuple((f".{name}", name) for name in BUILT_IN)


def promised_protocol(path: str) -> Protocol:
    """The protocol that a file's name promises by its ending (``.tam``), else ``auto``."""
    for ending, name in _ENDINGS:
        if path.endswith(ending):
            return name
    return "auto"


class ToolView(TypingProtocol):
    """A registered tool as far as editors need it."""

    @property
    def tool_id(self) -> str:
        """Its id."""
        ...

    @property
    def manifest(self) -> Manifest:
        """Its manifest."""
        ...

    @property
    def plan(self) -> Plan:
        """Its compiled parameters."""
        ...

    path: str
    available: bool
    reason: str


class ErrorView(TypingProtocol):
    """A manifest that gives no tool; ``line`` from one, 0 where it is not known."""

    @property
    def path(self) -> str:
        """Its file."""
        ...

    @property
    def message(self) -> str:
        """What is wrong with it."""
        ...

    @property
    def line(self) -> int:
        """Where."""
        ...

    @property
    def tool_id(self) -> str:
        """The id that it declares, where it can be read."""
        ...


class ConflictView(TypingProtocol):
    """Two manifests that claim the same name."""

    @property
    def tool_id(self) -> str:
        """The id in question."""
        ...

    @property
    def version(self) -> str:
        """The version that both declare."""
        ...

    @property
    def kept(self) -> str:
        """Path of the one in force."""
        ...

    @property
    def dropped(self) -> str:
        """Path of the other."""
        ...

    @property
    def message(self) -> str:
        """What happened, as a sentence."""
        ...


class ResolvedView(TypingProtocol):
    """What a call's name leads to."""

    @property
    def tool(self) -> ToolView | None:
        """The tool; None where the name leads to none."""
        ...

    @property
    def candidates(self) -> Sequence[str]:
        """The ids that the name could mean, where it could mean several."""
        ...

    @property
    def takes_command(self) -> bool:
        """Whether VCP's ``command`` was part of the name, and is no argument."""
        ...


class RegistryView(TypingProtocol):
    """The registered tools as far as editors need them."""

    @property
    def tools(self) -> Sequence[ToolView]:
        """All tools in a stable order."""
        ...

    @property
    def errors(self) -> Sequence[ErrorView]:
        """What is declared and cannot be used."""
        ...

    @property
    def conflicts(self) -> Sequence[ConflictView]:
        """Names that several manifests claim."""
        ...

    def get(self, name: str, version: str | None = None) -> ToolView | None:
        """The tool of an id or alias."""
        ...

    def resolve_call(self, name: str, protocol: str, args: object) -> ResolvedView:
        """What a call in a text means: its name, and in VCP its ``command`` (ruling 30)."""
        ...

    def dependency_faults(self, tool_id: str, version: str, dependencies: dict[str, str]) -> Sequence[DependencyFault]:
        """What is wrong with the dependencies of a tool as if it stood among the others (D91)."""
        ...

    def names(self) -> Sequence[str]:
        """Every name that a call may use."""
        ...

    def hints(self) -> dict[str, ToolHint]:
        """What readers may know of the tools."""
        ...


class FolderFacts(msgspec.Struct, frozen=True):
    """What stands beside a manifest: paths relative to its folder with ``/``.

    ``complete`` is false when the list was cut. ``others`` says of paths that are no readable files what they are: ``link``,
    ``folder``, ``special`` (a pipe, a device) or ``unreadable``; a path in neither is not there.
    """

    files: frozenset[str] = frozenset()
    complete: bool = True
    others: Mapping[str, str] = {}


class ScriptFile(msgspec.Struct, frozen=True):
    """The script that a manifest names: its path relative to the manifest, its text, and whether all of it was read."""

    path: str
    text: str
    complete: bool = True
    sha256: str = ""
    """What ``execution.integrity`` has to be: the hash of its bytes where all of them were read, with ``execution.files`` that of
    the files together; empty: not known."""


class Settings(msgspec.Struct, frozen=True):
    """Settings that change what an analysis says."""

    schema_diagnostics: bool = True
    """False: the client's own JSON service reports what the manifest schema says; only semantic rules are ours."""
    strict_json: bool = False
    reasoning_calls: Literal["ignore", "run"] = "ignore"
    reasoning_tags: tuple[str, ...] = REASONING_TAGS
    assume_open_reasoning: bool = False
    fenced_calls: Literal["auto", "run", "ignore"] = "auto"
    allow_multiple_blocks: bool = False
    strict: bool = False
    """True: what reading a text repaired is an error, and ACTION blocks must be well-formed XML."""
    runtimes: tuple[str, ...] = ()
    """Runtimes of the operator's own, which a manifest's ``handler.language`` may name."""
    handlers: tuple[str, ...] = ()
    """Handler types of installed packages that the operator lets manifests use."""
    extensions: tuple[SchemaExtension, ...] = ()
    """What manifests have to fit besides the rules of Tamis."""
    also: tuple[str, ...] = ()
    """Registered protocols that ``auto`` reads besides the built-in ones."""
    config: RootSettings | None = None
    """The settings of the document's root, for lints: levels, what the policy grants, the limits of runs. None: not known."""


class Snapshot:
    """One document at one version, with what is needed to answer about it."""

    def __init__(
        self,
        path: str,
        kind: DocumentKind,
        text: str,
        registry: RegistryView | None,
        *,
        folder: FolderFacts | None = None,
        settings: Settings | None = None,
        neighbours: Mapping[str, str] | None = None,
        index: WorkspaceIndex | Callable[[], WorkspaceIndex] | None = None,
        script: ScriptFile | None = None,
        memory: Memory | None = None,
        tree: Callable[[bool], JsonTree] | None = None,
        workflows: Mapping[str, str] | None = None,
        settings_faults: Sequence[Fault] = (),
        is_graph: bool = False,
        mcp: Mapping[str, str] | None = None,
        roots: tuple[str, ...] = (),
    ) -> None:
        """``path`` names the document in messages; ``registry`` is None while it is not known, which turns checks against tools off.

        ``neighbours`` holds the texts of other manifests by path, so that a finding can point into them; ``index`` knows what the
        files of the workspace say about tools; ``script`` is the script that a manifest names. ``memory`` is what an earlier version's manifest was known
        by (``known``): it saves work and changes no answer. ``tree`` gives the text as JSON, strict or not, from whoever keeps its tree.
        ``workflows`` are the files of the workflows that a profile may list, by id; None: not known (yet).
        ``settings_faults`` is what a ``tamis.toml`` names that is not on the machine. ``is_graph``: the file stands
        in a workflow folder, or its user named it. ``mcp`` says of the root's MCP servers why they cannot be started, empty where they can.
        ``roots`` are the open folders, in the client's order: each has settings of its own.
        """
        self.path = path
        self.kind: DocumentKind = kind
        self.text = text
        self.registry = registry
        self.folder = folder
        self.settings = settings or Settings()
        self.neighbours: Mapping[str, str] = neighbours or {}
        self._index = index
        self.script = script
        self._memory = memory
        self._tree = tree
        self.workflows = workflows
        self.settings_faults = settings_faults
        self.is_graph = is_graph
        self.mcp = mcp
        self.roots = roots

    def with_text(self, text: str) -> Snapshot:
        """The same document with another text, and all else as it is."""
        return Snapshot(
            self.path,
            self.kind,
            text,
            self.registry,
            folder=self.folder,
            settings=self.settings,
            neighbours=self.neighbours,
            index=self._index,
            script=self.script,
            workflows=self.workflows,
            settings_faults=self.settings_faults,
            is_graph=self.is_graph,
            mcp=self.mcp,
            roots=self.roots,
        )

    @property
    def protocol(self) -> Protocol:
        """The protocol that the file's name promises, else ``auto``."""
        return promised_protocol(self.path)

    @cached_property
    def document(self) -> Document:
        """The text as calls and what is between them."""
        return self.read(self.text)

    def read(self, text: str) -> Document:
        """Another text, read as this document is."""
        from tamis.protocols.reader import read_text

        return read_text(text, self.protocol, self.reading)

    @property
    def reading(self) -> ReadOptions:
        """How the texts of this folder are read."""
        settings = self.settings
        return ReadOptions(
            reasoning_calls=settings.reasoning_calls,
            reasoning_tags=settings.reasoning_tags,
            assume_open_reasoning=settings.assume_open_reasoning,
            fenced_calls=settings.fenced_calls,
            # In an editor each block is a call of its own; which one a model's turn would be left with is a finding (`diagnostics.py`).
            allow_multiple_blocks=True,
            strict=settings.strict,
            tools=self.registry.hints() if self.registry is not None else {},
            also=settings.also,
        )

    @cached_property
    def tree(self) -> JsonTree:
        """The text as JSON, as strictly as the settings say."""
        from tamis.protocols.jsontext.parse import parse_json

        strict = self.settings.strict_json
        return parse_json(self.text, comments=not strict) if self._tree is None else self._tree(strict)

    @cached_property
    def manifest(self) -> ManifestReading:
        """The text as a manifest."""
        from tamis.protocols.manifest.reading import read_manifest

        return read_manifest(
            self.text,
            strict=self.settings.strict_json,
            runtimes=self.settings.runtimes,
            handlers=self.settings.handlers,
            extensions=self.settings.extensions,
            tree=self.tree,
            memory=self._memory,
        )

    @cached_property
    def workflow(self) -> WorkflowReading:
        """The text as a workflow."""
        from tamis.protocols.workflow.reading import read_workflow

        name = self.path.rpartition("/")[2].rsplit(".", 1)[0]
        return read_workflow(self.text, name, strict=self.settings.strict_json, tree=self.tree)

    @property
    def index(self) -> WorkspaceIndex | None:
        """What the files of the workspace say about tools; made when it is asked for, since a manifest's own findings need none."""
        return self._index() if callable(self._index) else self._index

    def text_at(self, path: str) -> str:
        """The text of another file: as the editor has it, else as the index has it; empty where neither has."""
        text = self.neighbours.get(path)
        if text is None:
            text = self.index.text(path) if self.index is not None else ""
        return text

    @property
    def known(self) -> Memory | None:
        """What the next version of the document starts from."""
        reading = self.__dict__.get("manifest")
        return self._memory if reading is None else reading.memory

    @cached_property
    def profile(self) -> ProfileReading:
        """The text as an agent profile."""
        from tamis.protocols.manifest.profile import read_profile

        # Without a single registered tool every id would be unknown; Tamis's own ones, which no list shows, are always there.
        known = self.registry.names() if self.registry is not None and self.registry.tools else ()
        return read_profile(
            self.text, known or None, strict=self.settings.strict_json, tree=self.tree, workflows=self.workflows
        )

    def tool(self, name: str, protocol: str = "") -> ToolView | None:
        """The registered tool of that name, if the registry is known; of a call also by what exports call the tool."""
        if self.registry is None:
            return None
        tool_view = self.registry.get(name)
        if tool_view is None and (protocol or self.kind == "text"):
            return self.registry.resolve_call(name, protocol or self.protocol, None).tool
        return tool_view

    def properties(self, tool_id: str) -> dict[str, Json]:
        """The declared parameters' schemas of a tool by name; empty for an unknown tool."""
        tool = self.tool(tool_id)
        if tool is None:
            return {}
        properties = (tool.manifest.parameters or {}).get("properties")
        return properties if is_object(properties) else {}

    def required(self, tool_id: str) -> list[Json]:
        """The names of the parameters that a tool needs; empty for an unknown tool."""
        tool = self.tool(tool_id)
        required = (tool.manifest.parameters or {}).get("required") if tool is not None else None
        return required if is_list(required) else []
