"""The workspace index: which file names which tool, where. Filled with texts, asked by editors' questions across files.

Pure: whoever feeds it reads the files (``update``, ``remove``). Facts are kept by file and made when something is asked, so an edit costs
one look at the text; names are resolved as running resolves them: an id, then an alias or VCP command, then ``id@version``, for VCP
``toolId_methodName`` with the longest id (ruling 30), then what exports call a tool, never a neighbour (ruling 3). Safe to use from several threads. Must not know LSP.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tamis.protocols.model import Document
from tamis.protocols.plugins import extras_of
from tamis.protocols.positions import Span
from tamis.server.analysis.facts import (
    Declared,
    Facts,
    Role,
    Use,
    facts_of,
    facts_of_reading,
    may_matter,
)
from tamis.server.analysis.kinds import DocumentKind, kind_of
from tamis.server.runtime.tools.versions import exported_spellings, longest, method_spellings, split_pin

__all__ = ["DeclaredTool", "Occurrence", "Role", "WorkspaceIndex"]


class Occurrence(msgspec.Struct, frozen=True, gc=False):
    """One place that names a tool. ``span`` covers the name alone: of ``id@1.2`` the id, of ``id_method`` the id.

    ``name`` is what the span stands for: the id, or the alias that was used.
    """

    path: str
    span: Span
    role: Role
    name: str
    use: Use
    """The whole place as it is written."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """Every place of the name that must stay equal: of an ACTION element both of its tags."""
        return (self.span,) if self.use.close is None else (self.span, self.use.close)


class DeclaredTool(msgspec.Struct, frozen=True):
    """A tool that a file declares, and the file."""

    path: str
    declared: Declared

    @property
    def tool_id(self) -> str:
        """Its id."""
        return self.declared.tool_id


class _File:
    """A file's text and, once they were asked for, its facts."""

    __slots__ = ("_also", "_facts", "_graphs", "path", "text")

    def __init__(self, path: str, text: str, also: tuple[str, ...], graphs: tuple[str, ...]) -> None:
        self.path = path
        self.text = text
        self._also = also
        self._graphs = graphs
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = facts_of(self.path, self.text, self._also, self._graphs)
        return self._facts

    def take(self, facts: Facts) -> None:
        if self._facts is None:
            self._facts = facts


class WorkspaceIndex:
    """Files by path, uses by name, declarations by id. ``also`` are the protocols that are read besides the built-in ones, ``graphs`` the
    workflow folders of the settings, where ``nodes`` alone make a workflow."""

    def __init__(self, also: Iterable[str] = (), graphs: Iterable[str] = ()) -> None:
        self._lock = threading.RLock()
        self._also = tuple(also)
        self._graphs = tuple(graphs)
        self._files: dict[str, _File] = {}
        self._waiting: set[str] = set()
        self._taken: dict[str, Facts] = {}
        self._uses: dict[str, dict[str, list[Use]]] = {}
        self._declared: dict[str, dict[str, Declared]] = {}
        self._owners: dict[str, dict[str, str]] = {}
        """Aliases and VCP commands: name to path to tool id."""
        self._methods: dict[str, dict[str, tuple[str, str]]] = {}
        """``toolId_methodName`` to path to what stands in front and the tool id."""
        self._exported: dict[str, tuple[str, ...]] | None = None
        """What exports call tools: name to the ids that it may stand for; made when it is asked for."""
        self.generation = 0
        """Changes with every change of a file that matters."""

    # Feeding

    def update(self, path: str, text: str) -> None:
        """Takes a file's present text; the kind of file comes from its name. Cheap: facts are made when they are asked for."""
        with self._lock:
            known = self._files.get(path)
        if known is not None and (known.text is text or known.text == text):
            return
        matters = may_matter(path, text, self._also, self._graphs)
        with self._lock:
            if not matters:
                if path in self._files:
                    self.remove(path)
                return
            self._files[path] = _File(path, text, self._also, self._graphs)
            self._waiting.add(path)
            self.generation += 1

    def take_reading(self, path: str, document: Document) -> None:
        """A text of the index was read elsewhere: it need not be read again."""
        with self._lock:
            file = self._files.get(path)
        if file is not None and path in self._waiting and file.text == document.text:
            file.take(facts_of_reading(document))

    def remove(self, path: str) -> None:
        """Forgets a file; unknown ones are fine."""
        with self._lock:
            if self._files.pop(path, None) is None:
                return
            self._waiting.discard(path)
            if self._drop(path):
                self._exported = None
            self.generation += 1

    def remove_folder(self, folder: str) -> None:
        """Forgets every file below a folder."""
        top = folder.rstrip("/") + "/"
        with self._lock:
            for path in [path for path in self._files if path.startswith(top)]:
                self.remove(path)

    def read_also(self, also: Iterable[str], graphs: Iterable[str] = ()) -> bool:
        """Other protocols to read and other workflow folders from now on; texts are read again. Says whether they are others: then a file
        that did not matter may do now."""
        with self._lock:
            if (tuple(also), tuple(graphs)) == (self._also, self._graphs):
                return False
            same = tuple(also) == self._also
            self._also, self._graphs = tuple(also), tuple(graphs)
            for path, file in list(self._files.items()):
                if same and kind_of(path, "") != "workflow":
                    continue
                if not may_matter(path, file.text, self._also, self._graphs):
                    self.remove(path)
                    continue
                self._files[path] = _File(path, file.text, self._also, self._graphs)
                self._waiting.add(path)
            self.generation += 1
            return True

    def with_texts(self, texts: Mapping[str, str | None]) -> WorkspaceIndex:
        """An index of its own in which some files have other texts, or are gone (None); what is known of the others is shared."""
        workspace_index = WorkspaceIndex(self._also, self._graphs)
        with self._lock:
            workspace_index._files = {path: file for path, file in self._files.items() if path not in texts}
        workspace_index._waiting = set(workspace_index._files)
        for path, text in texts.items():
            if text is not None:
                workspace_index.update(path, text)
        return workspace_index

    def settle(self) -> None:
        """Makes the facts of everything that waits; asking does it too, so this only chooses the moment."""
        with self._lock:
            files = [self._files[path] for path in self._waiting]
        # Reading takes its time: nobody who feeds an edit waits for it.
        facts = [(file, file.facts) for file in files]
        with self._lock:
            for file, file_facts in facts:
                if self._files.get(file.path) is file:
                    self._waiting.discard(file.path)
                    if self._drop(file.path) != self._take(file.path, file_facts):
                        self._exported = None

    def _take(self, path: str, facts: Facts) -> list[tuple[str, ...]]:
        """Takes a file's facts; gives the names that it declares."""
        self._taken[path] = facts
        for use in facts.uses:
            for key in _keys(use.name):
                self._uses.setdefault(key, {}).setdefault(path, []).append(use)
        for declared in facts.declares:
            if not declared.tool_id:
                continue
            self._declared.setdefault(declared.tool_id, {})[path] = declared
            for alias in declared.aliases:
                self._owners.setdefault(alias, {})[path] = declared.tool_id
            for spelling, head in _spellings(declared):
                self._methods.setdefault(spelling, {})[path] = (head, declared.tool_id)
        return _names(facts)

    def _drop(self, path: str) -> list[tuple[str, ...]]:
        """Forgets a file's facts; gives the names that it declared."""
        facts = self._taken.pop(path, None)
        if facts is None:
            return []
        for use in facts.uses:
            for key in _keys(use.name):
                _forget(self._uses, key, path)
        for declared in facts.declares:
            _forget(self._declared, declared.tool_id, path)
            for alias in declared.aliases:
                _forget(self._owners, alias, path)
            for spelling, _ in _spellings(declared):
                _forget(self._methods, spelling, path)
        return _names(facts)

    # Asking

    def files(self) -> list[str]:
        """Every file that matters, sorted."""
        with self._lock:
            return sorted(self._files)

    def text(self, path: str) -> str:
        """The text of a file; empty for one that is not known or says nothing about tools."""
        with self._lock:
            file = self._files.get(path)
        return "" if file is None else file.text

    def knows(self, path: str) -> bool:
        """Whether a file says anything about tools."""
        with self._lock:
            return path in self._files

    def kind(self, path: str) -> DocumentKind:
        """What a file is, by its name."""
        return kind_of(path, "")

    def facts(self, path: str) -> Facts | None:
        """What a file says, or None for one that is not known."""
        with self._lock:
            file = self._files.get(path)
        return None if file is None else file.facts

    def facts_if(self, path: str, text: str) -> Facts:
        """What a file would say with another text."""
        return facts_of(path, text, self._also, self._graphs)

    def times_used(self) -> dict[str, int]:
        """How many calls use each name, as of the last time that anything was settled: never waits for the reading of a text."""
        with self._lock:
            return {
                name: count
                for name, files in self._uses.items()
                if (count := sum(use.role == "call" for uses in files.values() for use in uses))
            }

    def tools(self) -> list[DeclaredTool]:
        """Every declaration, by id and then path; two files may declare one id."""
        self.settle()
        with self._lock:
            return [
                DeclaredTool(path, declared)
                for tool_id in sorted(self._declared)
                for path, declared in sorted(self._declared[tool_id].items())
            ]

    def declarations(self, tool_id: str) -> list[DeclaredTool]:
        """The files that declare an id, by path."""
        self.settle()
        with self._lock:
            return [DeclaredTool(path, declared) for path, declared in sorted(self._declared.get(tool_id, {}).items())]

    def resolve(self, name: str, protocol: str = "") -> str | None:
        """The id that a name means, or None. Of a call in ``protocol`` also by what exports call a tool, where the protocol has commands by ``toolId_methodName``."""
        self.settle()
        with self._lock:
            path = self._exact(name)
            pin = split_pin(name)
            if path is None and pin is not None:
                path = self._exact(pin[0])
            if path is None and extras_of(protocol).by_command:
                for spelling in (name, pin[0] if pin is not None else ""):
                    ids = longest(self._methods.get(spelling, {}).values())
                    if len(ids) == 1:
                        return ids[0]
            if path is None and protocol:
                exports = self._exports()
                exported = exports.get(name) or exports.get(pin[0] if pin is not None else "", ())
                return exported[0] if len(exported) == 1 else None
            return path

    def _exports(self) -> dict[str, tuple[str, ...]]:
        if self._exported is None:
            owned = {alias: min(owners.values()) for alias, owners in self._owners.items()}
            owned.update({tool_id: tool_id for tool_id in self._declared})
            self._exported = exported_spellings(self._declared, owned)
        return self._exported

    def _exact(self, name: str) -> str | None:
        if name in self._declared:
            return name
        owners = self._owners.get(name)
        return min(owners.values()) if owners else None

    def names(self, tool_id: str) -> list[str]:
        """Every exact name that means a tool, its id first, also when nothing declares it."""
        self.settle()
        with self._lock:
            aliases = {alias for declared in self._declared.get(tool_id, {}).values() for alias in declared.aliases}
            return [tool_id, *sorted(alias for alias in aliases if alias != tool_id and self._exact(alias) == tool_id)]

    def may_mean(self, name: str) -> tuple[str, ...]:
        """The ids of all tools that a call may mean by a name: the one whose exact name it is, or those that exports call so."""
        self.settle()
        with self._lock:
            exact = self._exact(name)
            return (exact,) if exact is not None else self._exports().get(name, ())

    def exports(self, tool_id: str) -> list[str]:
        """What exports call a tool, and calls may then call it, without the names that could mean another one."""
        self.settle()
        with self._lock:
            return [name for name, ids in self._exports().items() if ids == (tool_id,) and self._exact(name) is None]

    def occurrences(self, tool_id: str, also: Iterable[str] = ()) -> list[Occurrence]:
        """Every place that names a tool by its id, an alias, a version pin, a VCP method name or what exports call it; by path and place.

        ``also``: further exact names of the tool that no file of the workspace tells (the path of a workflow).
        """
        names = dict.fromkeys((*self.names(tool_id), *also))
        with self._lock:
            occurrences = [
                occurrence
                for name in names
                for occurrence in self._named(name)
                # An alias in the file of another tool is that tool's matter (two manifests claim it).
                if occurrence.role != "alias" or tool_id in (self._taken_id(occurrence.path), "")
            ]
            for spelling, head in self._methods_of(tool_id).items():
                # Only the id in front is the tool's own name.
                length, name = (len(tool_id), tool_id) if head == tool_id else (len(spelling), spelling)
                occurrences += self._calls_by(spelling, tool_id, length, name)
            for name in self.exports(tool_id):
                occurrences += self._calls_by(name, tool_id, len(name), name)
        kept = {(occurrence.path, occurrence.span): occurrence for occurrence in occurrences}
        return sorted(kept.values(), key=lambda occurrence: (occurrence.path, occurrence.span))

    def _calls_by(self, spelling: str, tool_id: str, length: int, name: str) -> Iterator[Occurrence]:
        """The calls that reach a tool by a name that is none of its exact ones; the first characters of it are ``name``."""
        for path, uses in self._uses.get(spelling, {}).items():
            for use in uses:
                exact = self._exact(use.name) or self._exact(use.name.partition("@")[0])
                if exact is None and use.role == "call" and self.resolve(use.name, use.protocol) == tool_id:
                    yield Occurrence(path, _head(use, length), "call", name, use)

    def _taken_id(self, path: str) -> str:
        facts = self._taken.get(path)
        return next((declaration.tool_id for declaration in facts.declares), "") if facts is not None else ""

    def _methods_of(self, tool_id: str) -> dict[str, str]:
        """How VCP may write a method, each with what stands in front."""
        return {
            spelling: head
            for declared in self._declared.get(tool_id, {}).values()
            for spelling, head in _spellings(declared)
        }

    def _named(self, name: str) -> Iterator[Occurrence]:
        for path, uses in self._uses.get(name, {}).items():
            for use in uses:
                if use.name == name:
                    yield Occurrence(path, use.span, use.role, name, use)
                elif use.role in ("call", "dependency") and self._exact(use.name) is None:
                    # ``id@range``; what is itself declared is no pin.
                    yield Occurrence(path, _head(use, len(name)), use.role, name, use)


def _spellings(declared: Declared) -> Iterator[tuple[str, str]]:
    return method_spellings(declared.tool_id, declared.service_name, declared.method_name, declared.aliases)


def _names(facts: Facts) -> list[tuple[str, ...]]:
    return [(declaration.tool_id, *declaration.aliases) for declaration in facts.declares]


def _head(use: Use, length: int) -> Span:
    """The first characters of a name as it is written; the whole of it where it is written with escapes."""
    start, end = use.span
    return (start, start + length) if end - start == len(use.name) else (start, end)


def _keys(name: str) -> tuple[str, ...]:
    """What a written name is looked up by: itself, and what stands before a version."""
    head, at, _ = name.rpartition("@")
    return (name, head) if at and head else (name,)


def _forget(table: dict[str, dict[str, Any]], key: str, path: str) -> None:
    inside = table.get(key)
    if inside is not None and inside.pop(path, None) is not None and not inside:
        del table[key]
