"""The registry: which tools there are, under which names and versions, and why one is not available.

Filled with tools that were read (``reading.py``, ``sources.py``). A bad definition becomes an error here and never stops the others (D48);
conflicts follow ruling 35. Replaced as a whole, never changed. Must not know faces or files, or run anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tamis.protocols.manifest.reading import ServiceMethod
from tamis.protocols.model import ToolHint
from tamis.protocols.plugins import extras_of
from tamis.protocols.schema.words import is_object
from tamis.server.runtime.tools.tool import Origin, RegistryError, Tool
from tamis.server.runtime.tools.versions import (
    DependencyFault,
    Node,
    circles,
    edges_of,
    exported_spellings,
    faults_of,
    longest,
    method_spellings,
    newest_first,
    pick,
    split_pin,
)

if TYPE_CHECKING:
    from tamis.server.runtime.tools.search import Search


__all__ = ["Conflict", "ConflictPolicy", "Origin", "Registry", "RegistryError", "Resolved", "Tool"]

ConflictPolicy = Literal["error", "keepFirst", "replace"]
COMMAND = "command"
"""The VCP field that names a method of the tool in ``tool_name`` (ruling 30)."""


class Conflict(msgspec.Struct, frozen=True):
    """Two definitions that claim the same id and version, or the same name."""

    tool_id: str
    version: str
    kept: str
    dropped: str
    message: str


class Resolved(msgspec.Struct, frozen=True):
    """What a call's name leads to: a tool, or why it leads to none."""

    tool: Tool | None = None
    candidates: tuple[str, ...] = ()
    """The ids that the name could mean, where it could mean several: then it means none (F25)."""
    takes_command: bool = False
    """VCP's ``command`` was part of the name, and is no argument."""


NOTHING = Resolved()


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
        self._claimed: dict[str, tuple[str, ...]] = {}
        """Names that nobody has because several tools claim them (``onConflict: "error"``)."""
        self._current: dict[str, str] = {}
        for tool in tools:
            self._register(tool, on_conflict)
        self._check_dependencies()
        self.tools: list[Tool] = list(self._in_order())
        """All tools that lists show, by id and then version, newest first."""
        self._name(on_conflict)
        self._spellings: dict[str, tuple[str, ...]] | None = None
        self._exported: dict[str, tuple[str, ...]] | None = None
        self._hints: Hints | None = None
        self._search: Search | None = None
        self._etag = ""
        self._plain: dict[str, Resolved] = {}
        """What ids mean by themselves, as far as a call asked."""

    # Filling

    def _in_order(self) -> Iterator[Tool]:
        for tool_id in sorted(self._versions):
            versions = self._versions[tool_id]
            for version in newest_first(versions) if len(versions) > 1 else versions:
                tool = versions[version]
                if tool.listed:
                    yield tool

    def _register(self, tool: Tool, policy: ConflictPolicy) -> None:
        brief = tool.brief
        versions = self._versions.get(brief.tool_id)
        if versions is None:
            self._versions[brief.tool_id] = {brief.version: tool}
            return
        there = versions.get(brief.version)
        if there is None:
            versions[brief.version] = tool
            return
        if there is tool:
            return
        what = f"toolId '{tool.tool_id}' version {tool.version} is declared twice"
        verdict = ""
        if policy == "replace":
            versions[tool.version] = tool
            kept, dropped = tool.path, there.path
        else:
            kept, dropped = there.path, tool.path
            if policy == "error":
                reason = f"{what}, also in {tool.path} (onConflict is 'error')"
                versions[tool.version] = there.unavailable(reason) if there.available else there
                verdict = "neither is used (onConflict is 'error')"
        by_path = "; each is called by its path" if tool.origin == there.origin == "workflow" else ""
        text = f"{what}; {verdict or f'{kept} is used'}{by_path}"
        self.conflicts.append(Conflict(tool.tool_id, tool.version, kept, dropped, text))

    def _name(self, policy: ConflictPolicy) -> None:
        """Gives out aliases and VCP commands: an id is never taken, and of several tools the first by id has the name (A16, ruling 35)."""
        owners: dict[str, dict[str, Tool]] = {}
        # the paths of workflows lead to them also where lists show them by another name
        unlisted = [tool for versions in self._versions.values() for tool in versions.values() if not tool.listed]
        for tool in [*self.tools, *(tool for tool in unlisted if tool.origin == "workflow")]:
            if not (tool.brief.aliases or tool.brief.vcp_command):
                continue
            for name in tool.names[1:]:
                owners.setdefault(name, {}).setdefault(tool.tool_id, tool)
        for name, claims in owners.items():
            by_id = self._versions.get(name)
            rivals = [tool for tool_id, tool in claims.items() if tool_id != name]
            if by_id is not None:
                first, verdict = next(iter(by_id.values())), "calls by it reach that one"
            elif len(rivals) > 1 and policy == "error":
                self._claimed[name] = tuple(tool.tool_id for tool in rivals)
                first, verdict = rivals.pop(0), "no call by it is run (onConflict is 'error')"
            else:
                first = rivals.pop(-1 if policy == "replace" else 0)
                verdict = "calls by it reach that one"
                self._names[name] = first.tool_id
            for tool in rivals:
                text = f"the name '{name}' already belongs to another tool, '{first.tool_id}'; {verdict}"
                self.conflicts.append(Conflict(tool.tool_id, tool.version, first.path, tool.path, text))

    def _check_dependencies(self) -> None:
        """Finds gaps and circles between tools (D91): such a tool stays in lists, and says why it cannot be called."""
        needing = [
            tool for versions in self._versions.values() for tool in versions.values() if tool.brief.dependencies
        ]
        if not needing:
            return
        edges: dict[Node, list[tuple[str, Node]]] = {
            (tool.tool_id, tool.version): edges_of(tool.brief.dependencies, self._known) for tool in needing
        }
        cycles = circles({node: [target for _, target in targets] for node, targets in edges.items()})
        reasons: dict[Node, str] = {}
        for tool in needing:
            node = (tool.tool_id, tool.version)
            faults = faults_of(node, tool.brief.dependencies, self._known, cycles.get(node, {}))
            if faults:
                reasons[node] = faults[0].text
                self.errors += [
                    RegistryError(tool.path, _sentence(tool, fault), tool_id=tool.tool_id) for fault in faults
                ]
        self._pass_on(reasons, edges)
        for tool_id, version in reasons:
            tool = self._versions[tool_id][version]
            if tool.available:
                self._versions[tool_id][version] = tool.unavailable(reasons[tool_id, version], "DependencyError")

    def _pass_on(self, reasons: dict[Node, str], edges: dict[Node, list[tuple[str, Node]]]) -> None:
        """What a tool needs is no use where it cannot be called itself: that holds for whoever needs it in turn."""
        needed_by: dict[Node, list[Node]] = {}
        for node, targets in edges.items():
            for _, target in targets:
                needed_by.setdefault(target, []).append(node)
        unusable = [node for node in needed_by if node in reasons or not self._versions[node[0]][node[1]].available]
        for node in unusable:
            why = reasons.get(node) or self._versions[node[0]][node[1]].reason
            for item in needed_by.get(node, ()):
                if item not in reasons:
                    reasons[item] = f"it depends on '{node[0]}', which is not available: {why}"
                    unusable.append(item)

    def _known(self, name: str) -> tuple[str, list[str]] | None:
        versions = self._versions.get(name)
        return None if versions is None else (name, newest_first(versions))

    # Asking

    def names(self) -> list[str]:
        """Every name that a call may use, ids first."""
        return [*sorted(self._versions), *sorted(self._names)]

    def get(self, name: str, version: str | None = None) -> Tool | None:
        """The tool of that id, alias or VCP command; ``id@range`` pins a version.

        Without a version the newest release is taken, and a pre-release only where there is nothing else.
        """
        return self.resolve(name, version).tool

    def resolve(
        self, name: str, version: str | None = None, *, protocol: str = "", command: str | None = None
    ) -> Resolved:
        """What a call means by a name. In VCP it may also be ``toolId_methodName``, whole or with the method in ``command`` (ruling 30, V45).

        The longest match wins; a name that fits several tools equally well leads to none and names them.
        """
        exact = self._exact(name, version)
        if extras_of(protocol).by_command and command:
            if exact.tool is not None and _declares(exact.tool, COMMAND):
                return exact
            spelled = self._method(f"{name}_{command}", version)
            if spelled.tool is None and not spelled.candidates:
                spelled = self._exact(f"{name}_{command}", version)
            if spelled.tool is not None or (spelled.candidates and exact.tool is None):
                return msgspec.structs.replace(spelled, takes_command=spelled.tool is not None)
        if exact.tool is not None or exact.candidates or not extras_of(protocol).by_command:
            return exact
        return self._method(name, version)

    def resolve_call(self, name: str, protocol: str, args: object, version: str | None = None) -> Resolved:
        """What a call means: its name, in VCP with its ``command``, or what an export called the tool (``pets_listPets``)."""
        by_itself = version is None and not protocol
        if by_itself and (known := self._plain.get(name)) is not None:
            return known
        command = args.get(COMMAND) if extras_of(protocol).by_command and is_object(args) else None
        resolution = self.resolve(
            name, version, protocol=protocol, command=command if isinstance(command, str) else None
        )
        if resolution.tool is None and not resolution.candidates:
            return self._led(self._exports(), name, version)
        if by_itself and name in self._versions:
            self._plain[name] = resolution
        return resolution

    def _exact(self, name: str, version: str | None) -> Resolved:
        versions = self._lookup(name)
        if versions is None and name in self._claimed:
            return Resolved(candidates=self._claimed[name])
        pin = split_pin(name) if versions is None and version is None else None
        if pin is not None:
            name, version = pin
            versions = self._lookup(name)
            if versions is None and name in self._claimed:
                return Resolved(candidates=self._claimed[name])
        if versions is None:
            return NOTHING
        tool = self._pick(versions, version)
        return NOTHING if tool is None else Resolved(tool)

    def _method(self, name: str, version: str | None) -> Resolved:
        if self._spellings is None:
            self._spellings = self._spelled()
        return self._led(self._spellings, name, version)

    def _led(self, table: dict[str, tuple[str, ...]], name: str, version: str | None) -> Resolved:
        """Where a name leads by a table of the ids that names may stand for."""
        ids = table.get(name)
        if ids is None and version is None and (pin := split_pin(name)) is not None:
            name, version = pin
            ids = table.get(name)
        if ids is None:
            return NOTHING
        if len(ids) != 1:
            return Resolved(candidates=ids)
        tool = self._pick(self._versions[ids[0]], version)
        return NOTHING if tool is None else Resolved(tool)

    @property
    def owners(self) -> dict[str, str]:
        """The tool that each name means; empty for a name that nobody has for its many claims."""
        return {**self._names, **dict.fromkeys(self._claimed, ""), **{tool_id: tool_id for tool_id in self._versions}}

    def _exports(self) -> dict[str, tuple[str, ...]]:
        if self._exported is None:
            shown = {tool.tool_id for tool in self.tools}
            # a tool that no list shows gives way to those that exports name
            self._exported = exported_spellings(self._versions.keys() - shown, self.owners)
            self._exported.update(exported_spellings(shown, self.owners))
        return self._exported

    def _spelled(self) -> dict[str, tuple[str, ...]]:
        spellings: dict[str, list[tuple[str, str]]] = {}
        for tool in self.tools:
            handler = tool.brief.handler
            if isinstance(handler, ServiceMethod):
                names = [name for name in tool.names[1:] if self._names.get(name) == tool.tool_id]
                for spelling, head in method_spellings(tool.tool_id, handler.service_name, handler.method_name, names):
                    spellings.setdefault(spelling, []).append((head, tool.tool_id))
        return {spelling: longest(heads) for spelling, heads in spellings.items()}

    def _pick(self, versions: dict[str, Tool], wanted: str | None) -> Tool | None:
        if len(versions) == 1 and wanted is None:
            return next(iter(versions.values()))
        version = pick(versions, wanted)
        return None if version is None else versions[version]

    def versions(self, name: str) -> list[str]:
        """The registered versions of a name, newest first; empty when the name is unknown."""
        by_version = self._lookup(name)
        if by_version is None and (pin := split_pin(name)) is not None:
            by_version = self._lookup(pin[0])
        return newest_first(by_version or ())

    def current(self) -> list[Tool]:
        """Of each id that lists show the tool that a call without a version gets, by id."""
        ids = dict.fromkeys(tool.tool_id for tool in self.tools)
        return [tool for tool_id in ids if (tool := self.get(tool_id)) is not None]

    def dependency_faults(self, tool_id: str, version: str, dependencies: dict[str, str]) -> list[DependencyFault]:
        """The faults of ``dependencies`` as if the tool with this id and version stood here with them: for an editor's half-typed manifest."""
        node = (tool_id, version)

        def known(name: str) -> tuple[str, list[str]] | None:
            there = self._known(name)
            if name != tool_id:
                return there
            return tool_id, newest_first({version, *(there[1] if there is not None else ())})

        edges = {
            (tool.tool_id, tool.version): [target for _, target in edges_of(tool.brief.dependencies, known)]
            for tool in self.tools
            if tool.brief.dependencies
        }
        edges[node] = [target for _, target in edges_of(dependencies, known)]
        return faults_of(node, dependencies, known, circles(edges).get(node, {}))

    def _lookup(self, name: str) -> dict[str, Tool] | None:
        return self._versions.get(name) or self._versions.get(self._names.get(name, ""))

    def hints(self) -> Hints:
        """What readers may know of the tools, by every name; pinned ids are known as well."""
        if self._hints is None:
            hints = Hints(self)
            for tool in reversed(self.tools):
                hints.update(dict.fromkeys(tool.names, tool.hint()))
            for tool_id, versions in self._versions.items():
                if len(versions) > 1 and (tool := self.get(tool_id)) is not None:
                    hints.update(
                        dict.fromkeys(
                            (tool_id, *(n for n in tool.names[1:] if self._names.get(n) == tool_id)), tool.hint()
                        )
                    )
            if self._spellings is None:
                self._spellings = self._spelled()
            for spelling in self._spellings:
                named_tool = self._method(spelling, None).tool
                if named_tool is not None:
                    hints.setdefault(spelling, named_tool.hint())
            for name in self._exports():
                named_tool = self._led(self._exports(), name, None).tool
                if named_tool is not None:
                    hints.setdefault(name, named_tool.hint())
            for tool_id in self._versions:
                # what stands in no list can be called all the same, and has the parameters that it has (ruling 56)
                if tool_id not in hints and (tool := self.get(tool_id)) is not None and not tool.listed:
                    hints[tool_id] = tool.hint()
            self._hints = hints
        return self._hints

    @property
    def search(self) -> Search:
        """The index of words; made with the first search."""
        if self._search is None:
            from tamis.server.runtime.tools.search import Search

            self._search = Search(self.tools)
        return self._search

    def etag(self) -> str:
        """A short hash of all definitions and of what can be called: equal content has equal hashes, in every process."""
        if not self._etag:
            digest = hashlib.sha256()
            for tool in self.tools:
                digest.update(fingerprint(tool))
            self._etag = digest.hexdigest()[:16]
        return self._etag


class Hints(dict[str, ToolHint]):
    """Hints by name, which know ``id@range`` too: there are too many of these to list."""

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry

    def get(self, key: str, default: Any = None, /) -> Any:
        """The hint of a name."""
        tool_hint = super().get(key)
        if tool_hint is None and "@" in key:
            tool = self._registry.get(key)
            tool_hint = None if tool is None else tool.hint()
        return default if tool_hint is None else tool_hint

    def copy(self) -> Hints:
        """The same hints, to add to."""
        hints = Hints(self._registry)
        hints.update(self)
        return hints


def fingerprint(tool: Tool) -> bytes:
    """A hash of what a tool is, and of whether and why it cannot be called."""
    content = [tool.origin, tool.tool_id, tool.version, tool.content, tool.available, tool.reason]
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).digest()


def _declares(tool: Tool, name: str) -> bool:
    """Whether a tool takes an argument of this name: it says so, or it does not say what it takes."""
    schema = tool.manifest.parameters
    properties = schema.get("properties") if schema is not None else None
    if not is_object(properties):
        return True
    return name in properties or "patternProperties" in (schema or {})


def _sentence(tool: Tool, fault: DependencyFault) -> str:
    return f"'{tool.tool_id}' {tool.version} cannot be called: {fault.text}"


# What two registries differ in.


class Change(msgspec.Struct, frozen=True):
    """Tools that are new, gone and other than before, each as ``id@version``, in order."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    other: bool = False
    """Whether errors or conflicts are other than before."""

    @property
    def any(self) -> bool:
        """Whether there is any difference."""
        return bool(self.added or self.removed or self.updated or self.other)


def difference(before: Registry, after: Registry) -> Change:
    """What is different in ``after``. A tool is updated when anything of its definition is, or whether or why it cannot be called."""
    if before is after:
        return Change()
    old = {(tool.tool_id, tool.version): tool for tool in before.tools}
    new = {(tool.tool_id, tool.version): tool for tool in after.tools}

    def shown(keys: set[tuple[str, str]]) -> tuple[str, ...]:
        return tuple("@".join(key) for key in sorted(keys))

    kept = {key for key in old.keys() & new.keys() if old[key] is not new[key]}
    return Change(
        shown(new.keys() - old.keys()),
        shown(old.keys() - new.keys()),
        shown({key for key in kept if fingerprint(old[key]) != fingerprint(new[key])}),
        before.errors != after.errors or before.conflicts != after.conflicts,
    )
