"""The folders that a client has open: what analyses need to know of them, as it stands on disk and in the editor.

Folders are read by the scanner's thread (``scanning.py``, ``roots.py``); the index of tools and calls takes open documents as
the editor has them. Must not know LSP methods.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS, uses_tools
from tamis.server.analysis.snapshot import FolderFacts, ScriptFile, Settings, Snapshot
from tamis.server.lsp.client_settings import (
    ClientSettings,
    changed,
    merged,
    read_options,
    without_client_settings,
)
from tamis.server.lsp.documents import Document
from tamis.server.lsp.workspace.roots import Root, tool_names

if TYPE_CHECKING:
    from tamis.protocols.manifest.embedded import SchemaExtension
    from tamis.protocols.manifest.reading import ManifestReading, Memory
    from tamis.protocols.workflow.reading import WorkflowReading
    from tamis.server.analysis.index import WorkspaceIndex
    from tamis.server.runtime.settings.config import LoadedSettings
    from tamis.server.runtime.settings.config import Settings as RuntimeSettings
    from tamis.server.runtime.settings.faults import Fault
    from tamis.server.runtime.tools.registry import Registry

FACTS_SECONDS = 2.0


class Workspace:
    """All open folders; a document outside them is read with the tools of the first."""

    def __init__(self) -> None:
        self._roots: list[Root] = []
        self._overlay: Mapping[str, Any] | None = None
        self._initial: Mapping[str, Any] = {}
        self._schema_diagnostics = True
        self._settings: tuple[LoadedSettings, Settings] | None = None
        self._facts: dict[str, tuple[float, FolderFacts]] = {}
        self._scripts: dict[str, tuple[float, str, ScriptFile | None]] = {}
        self._faults: dict[str, tuple[float, tuple[object, ...], tuple[Fault, ...]]] = {}
        self._snapshots: dict[str, tuple[Document, Snapshot]] = {}
        self._past: dict[str, tuple[Document, Snapshot]] = {}
        self._open: dict[str, Document] = {}
        self._owed: dict[str, Document] = {}
        self._index: WorkspaceIndex | None = None
        self._index_lock = threading.Lock()
        self._settle_lock = threading.Lock()
        """Held from taking a document to the end of its entry in the index: two threads would leave the older text there."""
        self.client = ClientSettings()
        """The editor's own settings."""

    @property
    def roots(self) -> tuple[Root, ...]:
        """The open folders, in the client's order."""
        return tuple(self._roots)

    def configure(self, folders: Iterable[str], options: Mapping[str, Any]) -> None:
        """Sets the folders and ``initializationOptions``; nothing is read from disk yet."""
        settings: Any = options.get("settings")
        self.client = read_options(options)
        self._initial = cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}
        self._overlay = without_client_settings(self._initial) if isinstance(settings, dict) else None
        self._schema_diagnostics = options.get("schemaDiagnostics") != "off"
        for folder in folders:
            self.add(folder)

    def change_settings(self, settings: object) -> bool:
        """New editor settings (``workspace/didChangeConfiguration``), laid over those of ``initialize``; the folders must be
        loaded again. What is no object changes nothing. Says whether any setting is another one now."""
        whole = cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}
        inner: Any = whole.get("tamis", whole)
        if not isinstance(inner, dict) or not isinstance(settings, dict):
            return False
        before = (self._overlay or {}, self.client)
        if inner.keys() == {"trusted"}:
            # Only trust is told, and the settings stay what they are.
            self.client = changed(self.client, cast("dict[str, Any]", inner))
            for root in self._roots:
                self._tell(root)
            return before != (self._overlay or {}, self.client)
        merged_settings = merged(self._initial, cast("dict[str, Any]", inner))
        self._overlay = without_client_settings(merged_settings)
        self.client = changed(self.client, merged_settings)
        for root in self._roots:
            self._tell(root)
        return before != (self._overlay, self.client)

    def _tell(self, root: Root) -> None:
        root.configure(self._overlay, self.client.word)
        root.exclude(self.client.exclude)

    def add(self, folder: str) -> Root:
        """A folder that was opened."""
        root = next((root for root in self._roots if root.path == folder), None)
        if root is None:
            root = Root(folder, self._overlay, self.client.word)
            root.exclude(self.client.exclude)
            root.reading_of = self._reading_of
            self._roots.append(root)
        return root

    def remove(self, folder: str) -> Root | None:
        """A folder that was closed; what it was."""
        removed = next((root for root in self._roots if root.path == folder), None)
        self._roots = [root for root in self._roots if root is not removed]
        return removed

    # The index

    @property
    def index(self) -> WorkspaceIndex:
        """What the files of all folders say about tools, as of the last ``settle``."""
        if self._index is None:
            from tamis.server.analysis.index import WorkspaceIndex

            with self._index_lock:
                if self._index is None:
                    self._index = WorkspaceIndex()
        return self._index

    def note(self, document: Document) -> bool:
        """A document was opened or edited: it counts instead of its file. Says whether it is a workflow now and was none, or the other way
        round; of what is no JSON it costs nothing until the index is asked."""
        name = index_name(document)
        if name is None:
            return False
        may_be_one = document.kind == "workflow"
        known = may_be_one and self.index.knows(name)
        self._open[name] = self._owed[name] = document
        if not may_be_one:
            return False
        self.settle()
        return self.index.knows(name) != known

    def settle(self) -> None:
        """Brings the index up to date with the open documents; any thread."""
        while self._owed:
            with self._settle_lock:
                try:
                    name, document = self._owed.popitem()
                except KeyError:  # another thread took the last one
                    return
                if self._open.get(name) is document:  # neither closed nor edited meanwhile
                    self.index.update(name, document.text)

    def renote_all(self) -> None:
        """Other files matter to the index now, open ones too."""
        self._owed.update(self._open)

    def renote(self, path: str) -> None:
        """An open document's file was read all the same; the editor's text counts again."""
        document = self._open.get(path)
        if document is not None:
            self._owed[path] = document

    def also(self) -> tuple[str, ...]:
        """The protocols that any of the folders reads besides the built-in ones."""
        names = [
            name for root in self._roots if root.settings is not None for name in root.settings.settings.protocol.also
        ]
        return _also(tuple(dict.fromkeys(names)))

    def graphs(self) -> tuple[str, ...]:
        """The workflow folders of all folders' settings, where ``nodes`` alone make a workflow."""
        return tuple(dict.fromkeys(root.spelled(top) for root in self._roots for top in root.flows))

    def open_document(self, path: str) -> Document | None:
        """The document of a path, if the editor has it open."""
        return self._open.get(path)

    def is_open(self, path: str) -> bool:
        """Whether the editor has a file open, so that its text counts and not the disk's."""
        return path in self._open

    def forget(self, document: Document) -> None:
        """A document was closed; its file, if it has one, is to be read again."""
        self._snapshots.pop(document.uri, None)
        self._past.pop(document.uri, None)
        name = index_name(document)
        if name is not None and self._open.get(name) is document:
            with self._settle_lock:
                del self._open[name]
                self._owed.pop(name, None)
            inside = any(root.contains(name) for root in self._roots)
            if not inside and self._index is not None:
                self._index.remove(name)

    def root_of(self, path: str | None) -> Root | None:
        """The innermost open folder of a path, else the first one."""
        innermost: Root | None = None
        for root in self._roots:
            if path is not None and root.contains(path) and (innermost is None or len(root.path) > len(innermost.path)):
                innermost = root
        return innermost if innermost is not None or not self._roots else self._roots[0]

    def waits(self, document: Document) -> bool:
        """Whether the tools of a document's folder are still being read, and worth waiting for."""
        root = self.root_of(document.path)
        return root is not None and not root.loaded.is_set() and not root.waited

    def waited(self, document: Document) -> None:
        """The tools did not come in time; whatever is asked until they do is answered without them."""
        root = self.root_of(document.path)
        if root is not None:
            root.waited = True

    def snapshot(self, document: Document, *, wait: float = 0.0) -> Snapshot:
        """What an analysis of ``document`` needs; waits up to ``wait`` seconds for the tools of its folder.

        While nothing changed it is the same snapshot, with what was read from the text already.
        """
        root = self.root_of(document.path)
        if root is not None and wait and uses_tools(document.kind):
            root.loaded.wait(wait)
        before = self._snapshots.get(document.uri)
        known = before[1] if before is not None and before[0] is document else None
        snapshot = self._snapshot(document, root, known, None if before is None else before[1].known)
        if before is not None and before[1] is not snapshot:
            # To free all that was looked at in a large document takes longer than an edit of it.
            self._past.setdefault(document.uri, before)
        self._snapshots[document.uri] = (document, snapshot)
        return snapshot

    def let_go(self) -> None:
        """Frees what versions before left; for a pause."""
        self._past.clear()

    def fresh_snapshot(self, document: Document) -> Snapshot:
        """The snapshot of a document that may not be open; only those of open ones are kept."""
        if index_name(document) in self._open:
            return self.snapshot(document)
        return self._snapshot(document, self.root_of(document.path), None)

    def _snapshot(
        self, document: Document, root: Root | None, known: Snapshot | None, memory: Memory | None = None
    ) -> Snapshot:
        loaded = root.settings if root is not None else None
        settings = self._settings_of(root)
        facts = None
        script = None
        if document.kind == "manifest" and document.path is not None:
            facts = self._folder_facts(os.path.dirname(document.path))
            script = self._script(document, settings.strict_json)
        reading: ManifestReading | None = None
        registry: Registry | None = None
        if root is not None and loaded is not None:
            if document.kind == "manifest" and document.path is not None and len(document.text) <= MAX_ANALYSED_CHARS:
                reading = _reading(document, settings, known, memory)
                registry = root.registry_beside(document.path, tool_names(reading.manifest))
            elif document.path is not None and not uses_tools(document.kind):
                # A workflow's own findings go by the graph as it is typed.
                registry = root.registry_beside(document.path)
            else:
                registry = root.registry
        workflows = None
        names = document.kind == "profile" or _may_be_workflow(document)
        if root is not None and loaded is not None and names and root.indexed.is_set():
            from tamis.server.analysis.navigation.workflows import workflow_files

            self.settle()
            workflows = workflow_files(self.index, loaded.settings.workflows, document.path or document.uri)
        is_graph = loaded is not None and _is_graph(document, loaded.settings.workflows)
        mcp = None
        if reading is not None and root is not None and loaded is not None and _handler_type(reading) == "mcp":
            from tamis.server.runtime.settings.mcp_servers import problems

            mcp = problems(Path(root.path), loaded.settings)
        faults: tuple[Fault, ...] = ()
        if document.kind == "settings" and document.path is not None:
            faults = self._settings_faults(document.path, document.text, root)
        roots = tuple([root.path for root in self._roots])
        neighbours = None
        if root is not None and document.kind == "manifest" and registry is not None and registry.conflicts:
            neighbours = root.texts
        if known is not None and known.settings == settings:
            same = known.registry is registry and known.folder == facts and known.script == script
            same = same and known.settings_faults == faults and known.is_graph == is_graph and known.mcp == mcp
            same = same and known.roots == roots
            if same and known.neighbours == (neighbours or {}) and known.workflows == workflows:
                return known
        else:
            known = None
        snapshot = Snapshot(
            document.path or document.uri,
            document.kind,
            document.text,
            registry,
            folder=facts,
            settings=settings,
            neighbours=neighbours,
            index=lambda: self.index,
            script=script,
            tree=document.tree,
            memory=memory,
            workflows=workflows,
            settings_faults=faults,
            is_graph=is_graph,
            mcp=mcp,
            roots=roots,
        )
        if reading is not None:
            snapshot.__dict__["manifest"] = reading
        for name in ("manifest", "workflow") if known is not None else ():
            # Reading depends on the text and the settings alone.
            if known is not None and name in known.__dict__:
                snapshot.__dict__.setdefault(name, known.__dict__[name])
        return snapshot

    def _settings_of(self, root: Root | None) -> Settings:
        """The settings of a folder as analyses have them; the same object while no others are in force, where they name no files and no
        packages, which may change by themselves."""
        loaded = root.settings if root is not None else None
        if loaded is None:
            return Settings(schema_diagnostics=self._schema_diagnostics)
        known = self._settings
        if known is not None and known[0] is loaded and known[1].schema_diagnostics == self._schema_diagnostics:
            return known[1]
        protocol = loaded.settings.protocol
        settings = Settings(
            schema_diagnostics=self._schema_diagnostics,
            strict_json=loaded.settings.strict_json,
            runtimes=tuple(loaded.settings.sandbox.runtimes),
            handlers=loaded.settings.handlers,
            extensions=_extensions(root, loaded.settings),
            reasoning_calls=protocol.reasoning_calls,
            reasoning_tags=protocol.reasoning_tags,
            assume_open_reasoning=protocol.assume_open_reasoning,
            fenced_calls=protocol.fenced_calls,
            allow_multiple_blocks=protocol.allow_multiple_blocks,
            also=_also(protocol.also),
            config=loaded.settings,
        )
        if not settings.extensions and not protocol.also and not loaded.settings.schema_extension:
            self._settings = (loaded, settings)
        return settings

    def _reading_of(self, path: str, text: str, strict: bool) -> ManifestReading | WorkflowReading | None:
        """What an open manifest or workflow was read as already; any thread."""
        for document, snapshot in list(self._snapshots.values()):
            if document.path == path and document.text == text and snapshot.settings.strict_json == strict:
                return snapshot.__dict__.get("manifest" if document.kind == "manifest" else "workflow")
        return None

    def forget_facts(self) -> None:
        """Files changed on disk: facts are looked up anew."""
        # New tables: what another thread is just looking up goes into the old ones.
        self._facts, self._scripts, self._faults = {}, {}, {}

    def _script(self, document: Document, strict: bool) -> ScriptFile | None:
        """The script that a manifest names, as it is on disk; looked up again after a while or when its name changed."""
        from tamis.server.runtime.texts.checkables import pins_files, script_beside

        if document.path is None:
            return None
        # the tree remembers which words are not there: a look through a large text costs more than most edits of it
        says = document.text.__contains__
        if len(document.text) <= MAX_ANALYSED_CHARS:
            says = document.tree(strict).says
        at = document.text.find('"scriptPath"') if says('"scriptPath"') else -1
        named = document.text[at : at + 1_024] if at >= 0 else ""
        whole = document.text if pins_files(says) else ""
        if whole:
            files = whole.find('"files"')
            named += whole[files : files + 1_024]
        now = time.monotonic()
        scripts = self._scripts
        known = scripts.get(document.path)
        if known is not None and now - known[0] < FACTS_SECONDS and known[1] == named:
            return known[2]
        read = script_beside(document.path, whole or named)
        script = ScriptFile(*read) if read is not None else None
        scripts[document.path] = (now, named, script)
        return script

    def _settings_faults(self, path: str, text: str, root: Root | None) -> tuple[Fault, ...]:
        """What a settings file names that is not there; looked up again after a while, or when it or what is in force changed."""
        from tamis.server.runtime.settings.faults import disk_faults
        from tamis.server.runtime.settings.files import MAX_FILE_BYTES

        if len(text) > MAX_FILE_BYTES:
            return ()
        # What the editor says of trust, it says of its own folders.
        trusted = root.trusted if root is not None and root.contains(path) else None
        asked = text, trusted, None if root is None else root.settings
        looked_up = self._faults
        known = looked_up.get(path)
        if known is not None and time.monotonic() - known[0] < FACTS_SECONDS and known[1] == asked:
            return known[2]
        faults = disk_faults(Path(path).parent, text, trusted)
        looked_up[path] = time.monotonic(), asked, faults
        return faults

    def _folder_facts(self, folder: str) -> FolderFacts | None:
        now = time.monotonic()
        folders = self._facts
        known = folders.get(folder)
        if known is not None and now - known[0] < FACTS_SECONDS:
            return known[1]
        from tamis.server.runtime.texts.checkables import files_beside

        if not os.path.isdir(folder):  # a manifest that was never saved
            return None
        facts = FolderFacts(*files_beside(folder))
        folders[folder] = (now, facts)
        return facts


def index_name(document: Document) -> str | None:
    """The name of a document in the index, which is its snapshot's: its path, or the URI of one that was never saved.

    Other schemes (a version of a file in a repository, a result) show what stands elsewhere too.
    """
    return document.path or (document.uri if document.uri.startswith("untitled:") else None)


def _reading(document: Document, settings: Settings, known: Snapshot | None, memory: Memory | None) -> ManifestReading:
    """The manifest of a document; reading it depends on its text and the settings alone."""
    if known is not None and known.settings == settings and "manifest" in known.__dict__:
        return known.manifest
    from tamis.protocols.manifest.reading import read_manifest

    strict = settings.strict_json
    return read_manifest(
        document.text,
        strict=strict,
        runtimes=settings.runtimes,
        handlers=settings.handlers,
        extensions=settings.extensions,
        tree=document.tree(strict),
        memory=memory,
    )


def _handler_type(reading: ManifestReading) -> object:
    from tamis.protocols.manifest.reading import McpTool

    if reading.manifest is not None:
        return "mcp" if isinstance(reading.manifest.handler, McpTool) else None
    # from the tree, which is there: a look through the text would take a millisecond of each keystroke in a large file
    root = reading.tree.root
    handler = root.get("handler") if root is not None and root.kind == "object" else None
    node = handler.get("type") if handler is not None and handler.kind == "object" else None
    return None if node is None else node.value


def _may_be_workflow(document: Document) -> bool:
    if document.kind != "workflow" or document.path is None:
        return False
    from tamis.server.analysis.navigation.workflows import may_be_graph

    return may_be_graph(document.path, document.text)


def _is_graph(document: Document, folders: Sequence[str]) -> bool:
    """Whether a file stands where `nodes` alone make a workflow."""
    if document.path is None or not folders or not _may_be_workflow(document):
        return False
    from tamis.server.analysis.navigation.workflows import in_workflow_folder

    return in_workflow_folder(document.path, folders)


def _extensions(root: Root | None, settings: RuntimeSettings) -> tuple[SchemaExtension, ...]:
    """What manifests have to fit besides the rules of Tamis."""
    if root is None or not settings.schema_extension:
        return ()
    from tamis.server.runtime.tools.sources import extensions_of

    return extensions_of(Path(root.path), settings)


def _also(names: tuple[str, ...]) -> tuple[str, ...]:
    """The protocols besides the built-in ones that documents are read with; `tamis doctor` names the ones that cannot be."""
    if not names:
        return ()
    from tamis.server.runtime.settings.protocols import load_also

    return load_also(names)[0]
