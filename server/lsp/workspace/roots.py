"""One open folder: its settings and its tools, as they are on disk and as the editor has them.

The tools are those of every face (``tools/sources.py``): of manifests, node definitions and workflows, methods of the host's services, Tamis's own. An
open file counts as it stands in the editor, and while it is broken the last version that read clean stays in force. What
needs a while (``load``, ``take``) is done by the scanner's thread; the other lanes only look. Must not know LSP methods.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.server.runtime.settings.files import Stamp, stamp_of

if TYPE_CHECKING:
    from tamis.protocols.manifest.reading import Manifest, ManifestReading
    from tamis.protocols.workflow.reading import WorkflowReading
    from tamis.server.runtime.settings.config import LoadedSettings
    from tamis.server.runtime.tools.loader import FoundFile, LoadProblem
    from tamis.server.runtime.tools.registry import Registry, RegistryError, Tool
    from tamis.server.runtime.tools.sources import Meaning


class Root:
    """One open folder with its settings and tools."""

    def __init__(self, path: str, overlay: Mapping[str, Any] | None, trusted: bool | None = None) -> None:
        self.path = path
        self.loaded = threading.Event()
        self.waited = False
        """Somebody waited for the tools as long as is meant to be; nobody does again."""
        self.indexed = threading.Event()
        """Whether every file that may matter was given to the index once."""
        self._overlay = overlay
        self._trusted = trusted
        self._excluded: tuple[str, ...] = ()
        self._exclusion: Callable[[str], bool] | None = None
        self._lock = threading.Lock()
        self._settings: LoadedSettings | None = None
        self._tops: tuple[str, ...] = ()
        self._flows: tuple[str, ...] = ()
        self._there: tuple[bool, ...] = ()
        """Which of the searched folders there were when they were read."""
        self._files: dict[str, str] = {}
        self._problems: dict[str, RegistryError] = {}
        self._open: dict[str, str] = {}
        self._stamps: dict[str, Stamp | None] = {}
        """The definitions' files as they were before they were read; None for what could not be read."""
        self._read: dict[str, tuple[str | None, Meaning]] = {}
        """What each definition means and the text it was read from; None where the file on disk is to be read first."""
        self._given: list[Tool] = []
        self._write_roots: list[str] = []
        self._registry: Registry | None = None
        self._built: tuple[list[Meaning], list[RegistryError], list[Tool]] = ([], [], [])
        self._fresh = False
        self._dirty: set[str] = set()
        """The open definitions that were edited since the registry was built; an empty name stands for anything else."""
        self.reading_of: Callable[[str, str, bool], ManifestReading | WorkflowReading | None] = (
            lambda _path, _text, _strict: None
        )
        """What an editor's manifest or workflow was read as already, by path, text and strictness; asked instead of reading it once more."""

    def contains(self, path: str) -> bool:
        """Whether a path is in this folder."""
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")

    def configure(self, overlay: Mapping[str, Any] | None, trusted: bool | None) -> None:
        """Takes new editor settings, and what the editor says of the folder now; they hold from the next load on."""
        self._overlay = overlay
        self._trusted = trusted

    @property
    def trusted(self) -> bool | None:
        """What the editor says of the folder; None where it said nothing."""
        return self._trusted

    def exclude(self, patterns: Sequence[str]) -> bool:
        """From the next load on, files that these patterns name, as in an ignore file, are not read; says whether they are others now."""
        if tuple(patterns) == self._excluded:
            return False
        self._excluded, self._exclusion = tuple(patterns), None
        if patterns:
            from tamis.server.runtime.tools.loader import ignoring

            self._exclusion = ignoring(patterns)
        return True

    def excludes(self, path: str) -> bool:
        """Whether the editor's patterns name a file."""
        named = self._exclusion
        return named is not None and named(os.path.relpath(path, self.path).replace(os.sep, "/"))

    def load(self) -> None:
        """Reads settings and definitions from disk; the first thing that needs a while."""
        from tamis.server.runtime.settings.loading import load_settings
        from tamis.server.runtime.tools.reading import inner_write_roots
        from tamis.server.runtime.tools.sources import definitions

        loaded = load_settings(Path(self.path), self._overlay, "editor settings", trusted=self._trusted, editor=True)
        settings = loaded.settings
        tops, flows = (self._folders(names) for names in (settings.tools, settings.workflows))
        there = tuple(os.path.isdir(top) for top in (*tops, *flows))
        contents = definitions(Path(self.path), settings)
        files = {
            path: file.text for file in contents.files for path in (self.spelled(file.path),) if not self.excludes(path)
        }
        read = {
            path: (text, self._meaning(path, text, loaded, self.reading_of(path, text, settings.strict_json)))
            for path, text in files.items()
        }
        with self._lock:
            self._settings = loaded
            self._tops, self._flows, self._there = tops, flows, there
            self._write_roots = inner_write_roots(Path(self.path), settings)
            self._files = files
            self._stamps = {self.spelled(file.path): file.seen for file in contents.files}
            self._stamps.update((self.spelled(error.path), None) for error in contents.errors)
            # What an open file meant before it was broken stays known.
            self._read = {**{path: old for path, old in self._read.items() if path in self._open}, **read}
            self._problems = {
                path: msgspec.structs.replace(error, path=path)
                for error in contents.errors
                for path in (self.spelled(error.path),)
                if not self.excludes(path)
            }
            self._fresh = False
            self._dirty.add("")
        self.loaded.set()

    def overtaken(self, listed: Iterable[str]) -> list[str]:
        """Definitions that came, went or changed after ``load`` had read them, of those and of the files that were ``listed`` since."""
        moved = [path for path, stamp in self._stamps.items() if stamp_of(path) != stamp and self.may_define(path)]
        return moved + [
            path for path in listed if path not in self._stamps and self.may_define(path) and self.searches(path)
        ]

    def _folders(self, names: Iterable[str]) -> tuple[str, ...]:
        from tamis.server.runtime.settings.files import can_be_path

        return tuple(os.path.realpath(os.path.join(self.path, name)) for name in names if can_be_path(name))

    def folders_differ(self) -> bool:
        """Whether a searched folder came or went since they were read: then all is read anew."""
        return self.loaded.is_set() and self._there != tuple(os.path.isdir(top) for top in (*self._tops, *self._flows))

    def spelled(self, path: str) -> str:
        """A real path in the client's spelling, where the client's folder is behind a link: the editor knows no other name."""
        real = os.path.realpath(self.path)
        if real != self.path and (path == real or path.startswith(real.rstrip("/") + "/")):
            return self.path.rstrip("/") + path[len(real.rstrip("/")) :]
        return path

    @property
    def tops(self) -> tuple[str, ...]:
        """The real paths of the folders that are searched for manifests and node definitions."""
        return self._tops

    @property
    def flows(self) -> tuple[str, ...]:
        """The real paths of the folders that are searched for workflows."""
        return self._flows

    def searches(self, path: str) -> bool:
        """Whether loading would come to this file."""
        from tamis.server.runtime.tools.loader import walk_reaches

        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        return any(_below(top, real) and walk_reaches(Path(top), real) for top in self._tops_of(path))

    def _tops_of(self, path: str) -> tuple[str, ...]:
        """The searched folders in which a file of this name defines something."""
        from tamis.server.runtime.tools.loader import is_definition

        name = os.path.basename(path)
        if is_definition(name):
            return self._tops
        if not self._flows:
            return ()
        from tamis.server.runtime.tools.workflows import is_workflow_name

        return self._flows if is_workflow_name(name) else ()

    def may_define(self, path: str) -> bool:
        """Whether a file of this name would define something in one of the searched folders."""
        return path in self._files or bool(self._tops_of(path))

    def take(self, path: str, file: FoundFile | LoadProblem | None) -> bool:
        """A definition as it is on disk now, None when it is not there; says whether anything is different."""
        from tamis.server.runtime.tools.loader import FoundFile
        from tamis.server.runtime.tools.registry import RegistryError

        settings = self._settings
        if settings is None:
            return False
        with self._lock:
            before = (self._files.get(path), self._problems.get(path))
        if isinstance(file, FoundFile):
            text = _kept_text(path, file.text)
            if before == (text, None):
                return False
            read = self._meaning(path, text, settings)
            with self._lock:
                self._problems.pop(path, None)
                self._files[path] = text
                if before[0] is None:
                    self._files = dict(sorted(self._files.items(), key=lambda item: self._rank(item[0])))
                if path not in self._open:
                    known = self._read.get(path)
                    self._read[path] = (text, known[1] if known is not None and _same(read, known[1]) else read)
                self._fresh = False
                self._dirty.add("")
            return True
        problem = RegistryError(path, file.message) if file is not None else None
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

    def serve(self, tools: list[Tool]) -> None:
        """The methods that the host's services have now."""
        with self._lock:
            self._given = tools
            self._fresh = False
            self._dirty.add("")

    def recheck(self) -> bool:
        """Looks again whether the tools' scripts are there; says whether anything is different."""
        from tamis.server.runtime.tools.sources import as_it_is

        with self._lock:
            read = dict(self._read)
        different = False
        for path, (text, meaning) in read.items():
            now = as_it_is(meaning)
            if now is meaning:
                continue
            different = True
            with self._lock:
                if self._read.get(path) == (text, meaning):
                    self._read[path] = (text, now)
                    self._fresh = False
                    self._dirty.add("")
        return different

    def _rank(self, path: str) -> tuple[int, int, list[tuple[bool, str]]]:
        """Where loading comes to a file: of two definitions of one id the first is used."""
        from tamis.server.runtime.tools.loader import NODE_SUFFIX, SUFFIX

        kind = 0 if path.endswith(SUFFIX) else 1 if path.endswith(NODE_SUFFIX) else 2
        real = os.path.realpath(os.path.dirname(path))
        tops = self._flows if kind == 2 else self._tops
        for number, top in enumerate(tops):
            if real == top or _below(top, real):
                parts = os.path.relpath(real, top).split(os.sep)
                return kind, number, [(True, part) for part in parts if part != "."] + [(False, os.path.basename(path))]
        return kind, len(tops), [(False, path)]

    def show(self, path: str, text: str) -> bool:
        """An open file's present text; says whether it may have changed the tools."""
        with self._lock:
            if path not in self._files:
                return False
            text = _kept_text(path, text)
            if self._open.get(path, self._files[path]) == text:
                return False
            self._open[path] = text
            self._fresh = False
            self._dirty.add(path)
            return True

    def hide(self, path: str) -> bool:
        """A file was closed: the file on disk counts again; says whether that may have changed the tools."""
        with self._lock:
            if self._open.pop(path, None) is None:
                return False
            if (known := self._read.get(path)) is not None:
                # It may be what the definition meant before it was broken, and the broken text may have been saved.
                self._read[path] = (None, known[1])
            self._fresh = False
            self._dirty.add("")
            return True

    @property
    def settings(self) -> LoadedSettings | None:
        """The settings, once they are loaded."""
        return self._settings

    @property
    def settings_place(self) -> str:
        """The path of the folder's ``tamis.toml``; empty where there is none, or it holds nothing and nothing is wrong with it."""
        loaded = self._settings
        there = loaded is not None and (loaded.folder_text or loaded.folder_problems)
        return f"{self.path.rstrip('/')}/tamis.toml" if there else ""

    @property
    def settings_text(self) -> str:
        """What the folder's ``tamis.toml`` held when it was read."""
        return "" if self._settings is None else self._settings.folder_text.decode("utf-8", "replace")

    @property
    def unread(self) -> list[RegistryError]:
        """The definitions that are not read, because they are links, pipes or too large, and why."""
        from tamis.server.runtime.tools.loader import is_definition

        with self._lock:
            return [error for path, error in self._problems.items() if is_definition(os.path.basename(path))]

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts of manifests and other definitions by path, as the editor has them."""
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

    def registry_beside(self, path: str, names: tuple[str, ...] = ()) -> Registry | None:
        """The tools as far as findings of one open definition depend on them: not built anew while only that file was edited,
        and, of a manifest, not in its ``names`` (id, version and every other name)."""
        with self._lock:
            read = self._read.get(path)
            if self._registry is not None and not self._fresh and self._dirty == {path} and read is not None:
                known = read[1].tools[0].manifest if read[1].tools else None
                # A manifest that is broken now keeps meaning what it meant.
                if not names or tool_names(known) == names:
                    return self._registry
        return self.registry

    def _build(self, loaded: LoadedSettings) -> None:
        from tamis.server.runtime.tools.sources import composed, gathered

        strict = loaded.settings.strict_json
        meanings: list[Meaning] = []
        for path, text in {**self._files, **{p: t for p, t in self._open.items() if p in self._files}}.items():
            before = self._read.get(path)
            if before is None or before[0] != text:
                shown = path in self._open
                reading = self.reading_of(path, text, strict) if shown else None
                if before is not None and _is_broken(reading):
                    read = before[1]
                else:
                    read = self._meaning(path, text, loaded, reading)
                if before is not None and ((shown and _lost(read, before[1])) or _same(read, before[1])):
                    # Half-typed: calls elsewhere keep meaning what they meant.
                    read = before[1]
                self._read[path] = before = (text, read)
            meanings.append(before[1])
        for path in self._read.keys() - self._files.keys() - self._open.keys():
            del self._read[path]
        errors, tools = list(self._problems.values()), self._given
        same = len(meanings) == len(self._built[0]) and all(
            a is b for a, b in zip(meanings, self._built[0], strict=True)
        )
        same = same and errors == self._built[1] and tools is self._built[2]
        if self._registry is not None and same and self._loaded_with is loaded:
            return
        self._built = (meanings, errors, tools)
        self._loaded_with = loaded
        definitions = gathered(meanings, self._write_roots)
        definitions.errors[:0] = errors
        self._registry = composed(definitions, loaded.settings, tools, self._own_tools(loaded))

    _loaded_with: LoadedSettings | None = None
    _own: tuple[LoadedSettings, list[Tool]] | None = None

    def _meaning(
        self, path: str, text: str, loaded: LoadedSettings, reading: ManifestReading | WorkflowReading | None = None
    ) -> Meaning:
        from tamis.server.runtime.tools.loader import FoundFile
        from tamis.server.runtime.tools.sources import read_definition

        return read_definition(FoundFile(path, text), Path(self.path), loaded.settings, reading)

    def _own_tools(self, loaded: LoadedSettings) -> list[Tool]:
        """Tamis's own tools, which texts may call; they stand in no file."""
        if self._own is None or self._own[0] is not loaded:
            from tamis.server.runtime.tools.builtin import manifests
            from tamis.server.runtime.tools.tool import Tool

            own_manifests = manifests(Path(self.path), loaded.settings)
            self._own = (
                loaded,
                [Tool(manifest, "", origin="builtin", listed=listed) for manifest, listed in own_manifests],
            )
        return self._own[1]


def _same(first: Meaning, other: Meaning) -> bool:
    """Whether an edit changed nothing that the tools are (a comment, blanks, half a word that is read as before)."""
    return (
        first.errors == other.errors
        and len(first.tools) == len(other.tools)
        and all(
            (a.manifest, a.content, a.reason) == (b.manifest, b.content, b.reason)
            for a, b in zip(first.tools, other.tools, strict=True)
        )
    )


def _is_broken(reading: ManifestReading | WorkflowReading | None) -> bool:
    if reading is None:
        return False
    from tamis.protocols.manifest.reading import ManifestReading

    return (reading.manifest if isinstance(reading, ManifestReading) else reading.workflow) is None


def _lost(read: Meaning, before: Meaning) -> bool:
    """Whether a text is more broken than it was: all of it, or another one of its definitions."""
    return bool(read.errors) and (
        not read.tools or not {error.tool_id for error in read.errors} <= {error.tool_id for error in before.errors}
    )


def _kept_text(path: str, text: str) -> str:
    """A text as far as it can define something."""
    from tamis.server.runtime.tools.loader import is_definition

    if is_definition(path.rpartition("/")[2]):
        return text
    from tamis.server.runtime.tools.workflows import workflow_text

    return workflow_text(text)


def tool_names(manifest: Manifest | None) -> tuple[str, ...]:
    """What other manifests can collide with; empty where there is no manifest."""
    if manifest is None:
        return ()
    return (manifest.version, manifest.tool_id, *manifest.aliases, manifest.vcp_command or "")


def _below(top: str, path: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")
