"""The folders that a client has open: their settings, their tools, and the disk facts that analyses need.

The only part of the language server that reads files. Tools are loaded behind the first messages, in a thread; an open
manifest counts as it stands in the editor, and while it is broken the last version that read clean stays in force. Must
not know LSP methods.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tamis.server.analysis.snapshot import FolderFacts, Settings, Snapshot
from tamis.server.lsp.documents import Document

if TYPE_CHECKING:
    from tamis.server.runtime.config import LoadedSettings
    from tamis.server.runtime.registry import Registry, RegistryError, Tool

FACTS_SECONDS = 2.0


class Root:
    """One open folder with its settings and tools."""

    def __init__(self, path: str, overlay: Mapping[str, Any] | None) -> None:
        self.path = path
        self.loaded = threading.Event()
        self._overlay = overlay
        self._lock = threading.Lock()
        self._settings: LoadedSettings | None = None
        self._files: dict[str, str] = {}
        self._scan_errors: list[RegistryError] = []
        self._open: dict[str, str] = {}
        self._read: dict[str, tuple[str, Tool | RegistryError]] = {}
        self._registry: Registry | None = None

    def contains(self, path: str) -> bool:
        """Whether a path is in this folder."""
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")

    def configure(self, overlay: Mapping[str, Any] | None) -> None:
        """Takes new editor settings; they hold from the next load on."""
        self._overlay = overlay

    def load(self) -> None:
        """Reads settings and manifests from disk; the first thing that needs a while."""
        from tamis.server.runtime.config import load_settings
        from tamis.server.runtime.loader import scan
        from tamis.server.runtime.registry import RegistryError

        settings = load_settings(Path(self.path), self._overlay)
        found = scan(Path(self.path), settings.settings.tools)
        with self._lock:
            self._settings = settings
            self._files = {file.path: file.text for file in found.files}
            self._scan_errors = [RegistryError(problem.path, problem.message) for problem in found.problems]
            self._registry = None
        self.loaded.set()

    def show(self, path: str, text: str) -> bool:
        """An open manifest's present text; says whether it may have changed the tools."""
        with self._lock:
            if path not in self._files or self._open.get(path, self._files[path]) == text:
                return False
            self._open[path] = text
            self._registry = None
            return True

    def hide(self, path: str) -> bool:
        """A manifest was closed: the file on disk counts again; says whether that may have changed the tools."""
        with self._lock:
            if self._open.pop(path, None) is None:
                return False
            self._registry = None
            return True

    @property
    def settings(self) -> LoadedSettings | None:
        """The settings, once they are loaded."""
        return self._settings

    @property
    def texts(self) -> Mapping[str, str]:
        """The manifests' texts by path, as the editor has them."""
        with self._lock:
            return {**self._files, **self._open}

    @property
    def registry(self) -> Registry | None:
        """The tools as they stand, or None before the first load."""
        with self._lock:
            if self._settings is None:
                return None
            if self._registry is None:
                self._registry = self._build()
            return self._registry

    def _build(self) -> Registry:
        from tamis.server.runtime.loader import FoundFile
        from tamis.server.runtime.registry import Registry, RegistryError, read_tool

        assert self._settings is not None
        settings = self._settings.settings
        tools: list[Tool] = []
        errors = list(self._scan_errors)
        for path, text in {**self._files, **self._open}.items():
            before = self._read.get(path)
            if before is None or before[0] != text:
                result = read_tool(FoundFile(path, text), settings)
                if isinstance(result, RegistryError) and path in self._open and before is not None:
                    # Half-typed: calls elsewhere keep meaning what they meant.
                    result = before[1]
                self._read[path] = before = (text, result)
            if isinstance(before[1], RegistryError):
                errors.append(before[1])
            else:
                tools.append(before[1])
        for path in self._read.keys() - self._files.keys() - self._open.keys():
            del self._read[path]
        return Registry(tools, errors=errors, on_conflict=settings.on_conflict)


class Workspace:
    """All open folders; a document outside them is read with the tools of the first."""

    def __init__(self) -> None:
        self._roots: list[Root] = []
        self._overlay: Mapping[str, Any] | None = None
        self._schema_diagnostics = True
        self._facts: dict[str, tuple[float, FolderFacts]] = {}
        self._snapshots: dict[str, tuple[Document, Snapshot]] = {}

    @property
    def roots(self) -> tuple[Root, ...]:
        """The open folders, in the client's order."""
        return tuple(self._roots)

    def configure(self, folders: Iterable[str], options: Mapping[str, Any]) -> None:
        """Sets the folders and ``initializationOptions``; nothing is read from disk yet."""
        settings: Any = options.get("settings")
        self._overlay = (
            without_client_settings(cast("dict[str, Any]", settings)) if isinstance(settings, dict) else None
        )
        self._schema_diagnostics = options.get("schemaDiagnostics") != "off"
        for folder in folders:
            self.add(folder)

    def change_settings(self, settings: object) -> None:
        """New editor settings (``workspace/didChangeConfiguration``); the folders must be loaded again."""
        whole = cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}
        inner: Any = whole.get("tamis", whole)
        self._overlay = without_client_settings(cast("dict[str, Any]", inner)) if isinstance(inner, dict) else None
        for root in self._roots:
            root.configure(self._overlay)

    def add(self, folder: str) -> Root:
        """A folder that was opened."""
        root = next((root for root in self._roots if root.path == folder), None)
        if root is None:
            root = Root(folder, self._overlay)
            self._roots.append(root)
        return root

    def remove(self, folder: str) -> None:
        """A folder that was closed."""
        self._roots = [root for root in self._roots if root.path != folder]

    def load_behind(self, done: Callable[[Root], None], roots: Iterable[Root] | None = None) -> None:
        """Loads folders in a daemon thread and calls ``done`` there after each; a load that fails is said on stderr."""
        chosen = tuple(self._roots if roots is None else roots)

        def work() -> None:
            for root in chosen:
                try:
                    root.load()
                except Exception as error:  # one bad folder must not keep the others from loading
                    import sys

                    print(f"tamis: the folder {root.path} could not be loaded: {error!r}", file=sys.stderr)  # noqa: T201
                    root.loaded.set()
                done(root)

        if chosen:
            threading.Thread(target=work, name="tamis-load", daemon=True).start()

    def root_of(self, path: str | None) -> Root | None:
        """The innermost open folder of a path, else the first one."""
        holding = [root for root in self._roots if path is not None and root.contains(path)]
        return max(holding, key=lambda root: len(root.path)) if holding else next(iter(self._roots), None)

    def snapshot(self, document: Document, *, wait: float = 0.0) -> Snapshot:
        """What an analysis of ``document`` needs; waits up to ``wait`` seconds for the tools of its folder.

        While nothing changed it is the same snapshot, with what was read from the text already.
        """
        root = self.root_of(document.path)
        if root is not None and wait and document.kind != "other":
            root.loaded.wait(wait)
        loaded = root.settings if root is not None else None
        settings = Settings(schema_diagnostics=self._schema_diagnostics)
        if loaded is not None:
            protocol = loaded.settings.protocol
            settings = Settings(
                schema_diagnostics=self._schema_diagnostics,
                strict_json=loaded.settings.strict_json,
                runtimes=tuple(loaded.settings.sandbox.runtimes),
                reasoning_calls=protocol.reasoning_calls,
                fenced_calls=protocol.fenced_calls,
                allow_multiple_blocks=protocol.allow_multiple_blocks,
                also=_also(protocol.also),
            )
        facts = None
        if document.kind == "manifest" and document.path is not None:
            facts = self._folder_facts(os.path.dirname(document.path))
        registry = root.registry if root is not None else None
        before = self._snapshots.get(document.uri)
        if before is not None and before[0] is document:
            known = before[1]
            if known.registry is registry and known.folder == facts and known.settings == settings:
                return known
        snapshot = Snapshot(
            document.path or document.uri,
            document.kind,
            document.text,
            registry,
            folder=facts,
            settings=settings,
            neighbours=root.texts if root is not None and document.kind == "manifest" else None,
        )
        self._snapshots[document.uri] = (document, snapshot)
        return snapshot

    def forget(self, document: Document) -> None:
        """A document was closed."""
        self._snapshots.pop(document.uri, None)

    def forget_facts(self) -> None:
        """Files changed on disk: facts are looked up anew."""
        self._facts.clear()

    def _folder_facts(self, folder: str) -> FolderFacts | None:
        now = time.monotonic()
        known = self._facts.get(folder)
        if known is not None and now - known[0] < FACTS_SECONDS:
            return known[1]
        from tamis.server.runtime.checkables import files_beside

        if not os.path.isdir(folder):  # a manifest that was never saved
            return None
        facts = FolderFacts(*files_beside(folder))
        self._facts[folder] = (now, facts)
        return facts


def without_client_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Editor settings without those that only the editor's client reads; the rest has the names of ``tamis.toml``."""
    return {name: value for name, value in settings.items() if name not in _CLIENT_SETTINGS}


_CLIENT_SETTINGS = frozenset(
    {"path", "args", "trace", "markdown", "interpreter", "importStrategy", "codeLens", "inlayHints"}
)


def _also(names: tuple[str, ...]) -> tuple[str, ...]:
    """The protocols besides the built-in ones that documents are read with; `tamis doctor` names the ones that cannot be."""
    if not names:
        return ()
    from tamis.server.runtime.protocols import load_also

    return load_also(names)[0]
