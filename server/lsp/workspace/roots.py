"""One open folder: its settings and its tools, as they are on disk and as the editor has them.

An open manifest counts as it stands in the editor, and while it is broken the last version that read clean stays in force. What
needs a while (``load``, ``take``) is done by the scanner's thread; the other lanes only look. Must not know LSP methods.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.protocols.manifest.reading import Manifest, ManifestReading
    from tamis.server.runtime.registry.loader import FoundFile, LoadProblem
    from tamis.server.runtime.registry.registry import Registry, RegistryError, Tool
    from tamis.server.runtime.settings.config import LoadedSettings


class Root:
    """One open folder with its settings and tools."""

    def __init__(self, path: str, overlay: Mapping[str, Any] | None) -> None:
        self.path = path
        self.loaded = threading.Event()
        self.waited = False
        """Somebody waited for the tools as long as is meant to be; nobody does again."""
        self.indexed = False
        """Whether every file that may matter was given to the index once."""
        self._overlay = overlay
        self._lock = threading.Lock()
        self._settings: LoadedSettings | None = None
        self._tops: tuple[str, ...] = ()
        self._files: dict[str, str] = {}
        self._problems: dict[str, RegistryError] = {}
        self._open: dict[str, str] = {}
        self._read: dict[str, tuple[str, Tool | RegistryError]] = {}
        self._write_roots: list[str] = []
        self._registry: Registry | None = None
        self._built: tuple[list[Tool], list[RegistryError]] = ([], [])
        self._fresh = False
        self._dirty: set[str] = set()
        """The open manifests that were edited since the registry was built; an empty name stands for anything else."""
        self.reading_of: Callable[[str, str, bool], ManifestReading | None] = lambda _path, _text, _strict: None
        """What an editor's manifest was read as already, by path, text and strictness; asked instead of reading it once more."""

    def contains(self, path: str) -> bool:
        """Whether a path is in this folder."""
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")

    def configure(self, overlay: Mapping[str, Any] | None) -> None:
        """Takes new editor settings; they hold from the next load on."""
        self._overlay = overlay

    def load(self) -> None:
        """Reads settings and manifests from disk; the first thing that needs a while."""
        from tamis.server.runtime.registry.loader import scan
        from tamis.server.runtime.registry.reading import inner_write_roots
        from tamis.server.runtime.registry.registry import RegistryError
        from tamis.server.runtime.settings.config import load_settings

        settings = load_settings(Path(self.path), self._overlay, "editor settings")
        found = scan(Path(self.path), settings.settings.tools)
        files = {self.spelled(file.path): file.text for file in found.files}
        strict = settings.settings.strict_json
        read = {
            path: (text, _read_tool(path, text, settings, self.reading_of(path, text, strict)))
            for path, text in files.items()
        }
        with self._lock:
            self._settings = settings
            self._tops = tuple(os.path.realpath(os.path.join(self.path, name)) for name in settings.settings.tools)
            self._write_roots = inner_write_roots(Path(self.path), settings.settings)
            self._files = files
            # What an open manifest meant before it was broken stays known.
            self._read = {**{path: old for path, old in self._read.items() if path in self._open}, **read}
            self._problems = {
                path: RegistryError(path, problem.message)
                for problem in found.problems
                for path in (self.spelled(problem.path),)
            }
            self._fresh = False
            self._dirty.add("")
        self.loaded.set()

    def spelled(self, path: str) -> str:
        """A real path in the client's spelling, where the client's folder is behind a link: the editor knows no other name."""
        real = os.path.realpath(self.path)
        if real != self.path and (path == real or path.startswith(real.rstrip("/") + "/")):
            return self.path.rstrip("/") + path[len(real.rstrip("/")) :]
        return path

    @property
    def tops(self) -> tuple[str, ...]:
        """The real paths of the folders that are searched for tools."""
        return self._tops

    def searches(self, path: str) -> bool:
        """Whether loading would come to this manifest."""
        from tamis.server.runtime.registry.loader import walk_reaches

        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        return any(_below(top, real) and walk_reaches(Path(top), real) for top in self._tops)

    def take(self, path: str, found: FoundFile | LoadProblem | None) -> bool:
        """A manifest as it is on disk now, None when it is not there; says whether anything is different."""
        from tamis.server.runtime.registry.loader import FoundFile
        from tamis.server.runtime.registry.registry import RegistryError

        settings = self._settings
        if settings is None:
            return False
        with self._lock:
            before = (self._files.get(path), self._problems.get(path))
        if isinstance(found, FoundFile):
            if before == (found.text, None):
                return False
            read = _read_tool(path, found.text, settings)
            with self._lock:
                self._problems.pop(path, None)
                self._files[path] = found.text
                if before[0] is None:
                    self._files = dict(sorted(self._files.items(), key=lambda item: self._rank(item[0])))
                if path not in self._open:
                    self._read[path] = (found.text, read)
                self._fresh = False
                self._dirty.add("")
            return True
        problem = RegistryError(path, found.message) if found is not None else None
        if before == (None, problem):
            return False
        with self._lock:
            self._files.pop(path, None)
            self._problems.pop(path, None)
            if problem is not None:
                self._problems[path] = problem
            self._fresh = False
            self._dirty.add("")
        return True

    def recheck(self) -> bool:
        """Looks again whether the tools' scripts are there; says whether anything is different."""
        from tamis.server.runtime.registry.reading import why_unavailable
        from tamis.server.runtime.registry.registry import RegistryError, Tool

        with self._lock:
            read = dict(self._read)
        different = False
        for path, (text, result) in read.items():
            if isinstance(result, RegistryError):
                continue
            reason = why_unavailable(result.manifest, result.folder)
            if reason == result.reason:
                continue
            different = True
            with self._lock:
                if self._read.get(path) == (text, result):
                    self._read[path] = (text, Tool(result.manifest, path, available=not reason, reason=reason))
                    self._fresh = False
                    self._dirty.add("")
        return different

    def _rank(self, path: str) -> tuple[int, list[tuple[bool, str]]]:
        """Where loading comes to a file: of two manifests with one id the first is used."""
        real = os.path.realpath(os.path.dirname(path))
        for number, top in enumerate(self._tops):
            if real == top or _below(top, real):
                parts = os.path.relpath(real, top).split(os.sep)
                return number, [(True, part) for part in parts if part != "."] + [(False, os.path.basename(path))]
        return len(self._tops), [(False, path)]

    def show(self, path: str, text: str) -> bool:
        """An open manifest's present text; says whether it may have changed the tools."""
        with self._lock:
            if path not in self._files or self._open.get(path, self._files[path]) == text:
                return False
            self._open[path] = text
            self._fresh = False
            self._dirty.add(path)
            return True

    def hide(self, path: str) -> bool:
        """A manifest was closed: the file on disk counts again; says whether that may have changed the tools."""
        with self._lock:
            if self._open.pop(path, None) is None:
                return False
            self._fresh = False
            self._dirty.add("")
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
        """The tools as they stand, or None before the first load; the same object as long as they are the same."""
        with self._lock:
            if self._settings is None:
                return None
            if not self._fresh or self._registry is None:
                self._build(self._settings)
                self._fresh = True
                self._dirty.clear()
            return self._registry

    def registry_beside(self, path: str, names: tuple[str, ...]) -> Registry | None:
        """The tools as far as findings of one open manifest depend on them: not built anew while only that manifest was edited,
        and not in its ``names`` (id, version and every other name)."""
        with self._lock:
            tool = self._read.get(path)
            if self._registry is not None and not self._fresh and self._dirty == {path} and tool is not None:
                known = tool[1]
                # A manifest that is broken now keeps meaning what it meant.
                if not names or tool_names(getattr(known, "manifest", None)) == names:
                    return self._registry
        return self.registry

    def _build(self, loaded: LoadedSettings) -> None:
        from tamis.server.runtime.registry.reading import register
        from tamis.server.runtime.registry.registry import RegistryError

        tools: list[Tool] = []
        errors = list(self._problems.values())
        for path, text in {**self._files, **{p: t for p, t in self._open.items() if p in self._files}}.items():
            before = self._read.get(path)
            if before is None or before[0] != text:
                reading = self.reading_of(path, text, loaded.settings.strict_json) if path in self._open else None
                if reading is not None and reading.manifest is None and before is not None:
                    result = before[1]
                else:
                    result = _read_tool(path, text, loaded, reading)
                if isinstance(result, RegistryError) and path in self._open and before is not None:
                    # Half-typed: calls elsewhere keep meaning what they meant.
                    result = before[1]
                elif before is not None and _same_tool(result, before[1]):
                    result = before[1]
                self._read[path] = before = (text, result)
            if isinstance(before[1], RegistryError):
                errors.append(before[1])
            else:
                tools.append(before[1])
        for path in self._read.keys() - self._files.keys() - self._open.keys():
            del self._read[path]
        same = len(tools) == len(self._built[0]) and all(a is b for a, b in zip(tools, self._built[0], strict=True))
        if self._registry is not None and same and errors == self._built[1] and self._loaded_with is loaded:
            return
        self._built = (tools, errors)
        self._loaded_with = loaded
        taken = {name for tool in tools for name in tool.names}
        own = [tool for tool in self._own_tools(loaded) if taken.isdisjoint(tool.names)]
        self._registry = register([*tools, *own], errors, loaded.settings, self._write_roots)

    _loaded_with: LoadedSettings | None = None
    _own: tuple[LoadedSettings, list[Tool]] | None = None

    def _own_tools(self, loaded: LoadedSettings) -> list[Tool]:
        """Tamis's own tools, which texts may call; they stand in no file."""
        if self._own is None or self._own[0] is not loaded:
            from tamis.server.runtime.registry.tool import Tool
            from tamis.server.runtime.services.builtin import manifests

            found = manifests(Path(self.path), loaded.settings)
            self._own = loaded, [Tool(one, "", origin="builtin", listed=listed) for one, listed in found]
        return self._own[1]


def _same_tool(result: Tool | RegistryError, before: Tool | RegistryError) -> bool:
    """Whether an edit changed nothing that the tool is (a comment, blanks, half a word that is read as before)."""
    from tamis.server.runtime.registry.registry import RegistryError

    if isinstance(result, RegistryError) or isinstance(before, RegistryError):
        return False
    return result.manifest == before.manifest and result.reason == before.reason


def _read_tool(
    path: str, text: str, loaded: LoadedSettings, reading: ManifestReading | None = None
) -> Tool | RegistryError:
    from tamis.server.runtime.registry.loader import FoundFile
    from tamis.server.runtime.registry.reading import read_tool, tool_of

    if reading is not None:
        return tool_of(FoundFile(path, text), reading)
    return read_tool(FoundFile(path, text), loaded.settings)


def tool_names(manifest: Manifest | None) -> tuple[str, ...]:
    """What other manifests can collide with; empty where there is no manifest."""
    if manifest is None:
        return ()
    return (manifest.version, manifest.tool_id, *manifest.aliases, manifest.vcp_command or "")


def _below(top: str, path: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")
