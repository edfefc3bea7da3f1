"""The walk over a manifest's schemas: each container is looked at once and its findings are kept with it.

Findings are relative to their container, so they hold until something inside it is edited: a keystroke costs the containers
around it. Must not know what is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from tamis.protocols.jsontext.green import Branch, Green
from tamis.protocols.jsontext.tree import JsonNode, Member, from_pointer, memo_of, node_of
from tamis.protocols.model import Diag, escape_pointer
from tamis.protocols.schema.check import Draft
from tamis.server.analysis.lints.local import Collector, Locals, Scans, moved, object_at, speaking, without_member
from tamis.server.analysis.lints.parameters import lint_names, lint_parameter, lint_references, lint_required, refers
from tamis.server.analysis.lints.schemas import SHAPES, lint_schema, says_nothing

T = TypeVar("T")
MAX_KEPT = 200
"""So many findings of one schema are carried up; more are said to be more (TC025)."""
MAX_DEPTH = 64
"""Levels of schemas that are looked at, each of nine calls: a schema that is deeper is read and held, and no advice is given on what lies below."""
_WIDE = 64
_MAX_SCANS = 256


def lint_schemas(
    node: JsonNode, draft: Draft, *, parameters: bool, scans: Scans | None = None, limit: int = MAX_KEPT
) -> list[Diag]:
    """All findings of ``parameters`` or ``output``, at absolute places; ``scans`` are the document's. ``limit``: so many of one schema."""
    branch = node.green
    if not isinstance(branch, Branch):
        return []
    memo = memo_of(branch)
    key = ("all", draft, parameters, limit)
    found = memo.get(key)
    if found is None:
        # what is remembered of the last walk is that of walks to the usual limit
        walk = _Walk(draft, scans if scans is not None and limit == MAX_KEPT else {}, parameters, limit)
        found = memo[key] = _all(branch, walk, parameters)
    return [moved(diag, node.start) for diag in cast("Locals", found)]


def _all(branch: Branch, walk: _Walk, parameters: bool) -> Locals:
    diagnostics: list[Diag] = [*walk.schema(branch, 0, str(parameters), top=parameters)]
    if "$defs" in branch.keys or "definitions" in branch.keys:
        diagnostics += _unused(node_of(branch, 0), walk)
    node = node_of(branch, 0) if parameters else None
    properties = object_at(node, "properties")
    if node is not None and properties is not None and (referring := walk.referring(properties.green)):
        members = [view for i in referring if isinstance(view := properties.view(i), Member)]
        diagnostics += lint_references(members, lambda ref: _target(node, ref))
    return tuple(diagnostics)


def _unused(node: JsonNode, walk: _Walk) -> list[Diag]:
    """Definitions of a whole schema that nothing leads to, at absolute places."""
    tables = [(key, table) for key in ("$defs", "definitions") if (table := object_at(node, key)) is not None]
    if not tables or not isinstance(node.green, Branch):
        return []
    used = walk.references(node.green, 0, str(node.kind))
    if None in used:
        return []
    # `#/$defs/name/properties/x` leads through the definition `#/$defs/name`.
    through = {"/".join(ref.split("/", 3)[:3]) for ref in used if ref is not None}
    collector = Collector()
    for key, table in tables:
        for member in table.members:
            if member.value is None or f"#/{key}/{escape_pointer(member.key)}" in through:
                continue
            fix = without_member(table, member, f"Remove '{member.key}'")
            collector.add("LN714", member.key_span, {"k": member.key}, fix=fix)
    return list(collector.found)


def _target(root: JsonNode, ref: str) -> JsonNode | None:
    if not ref.startswith("#/"):
        return root if ref == "#" else None
    return root.at(from_pointer(ref[1:]))


_NOTHING: dict[object, object] = {}


class _Walk:
    """One walk over a schema. ``where`` names a container among those of the document, for what is remembered of the last walk."""

    def __init__(self, draft: Draft, scans: Scans, parameters: bool, limit: int) -> None:
        self._draft: Draft = draft
        self._scans = scans
        self._field = parameters
        self._limit = limit
        if len(scans) > _MAX_SCANS:
            scans.clear()

    def _speaking(self, branch: Branch, key: str, where: str, look: Callable[[int], T]) -> list[tuple[int, T]]:
        wide = len(branch.values) > _WIDE
        return speaking(branch, (key, self._draft, self._field, where), look, self._scans if wide else None)

    def schema(self, branch: Branch, depth: int, where: str, *, top: bool = False) -> Locals:
        """A schema and all below it, relative to it; ``top``: it is ``parameters`` itself."""
        if branch.kind != "object" or depth > MAX_DEPTH:
            return ()
        memo = memo_of(branch)
        key = ("schema", self._draft, top, self._limit)
        found = memo.get(key)
        if found is None:
            found = memo[key] = self._schema(branch, depth, where, top)
        return cast("Locals", found)

    def _schema(self, branch: Branch, depth: int, where: str, top: bool) -> Locals:
        diagnostics: list[Diag] = []
        if not says_nothing(branch):
            diagnostics += lint_schema(node_of(branch, 0), self._draft)
        if top:
            diagnostics += lint_required(node_of(branch, 0))
        for i, (key, value) in enumerate(zip(branch.keys, branch.values, strict=True)):
            shape = SHAPES.get(key)
            if shape is None or not isinstance(value, Branch):
                continue
            if value.kind == "array":
                if shape == "schema" and (key != "items" or self._draft == "2020-12"):
                    continue
                shape = "schemas"
            below = f"{where}/{key}"
            if shape == "schema":
                part = self.schema(value, depth + 1, below)
            else:
                part = self._part(value, depth + 1, below, top and key == "properties")
            if part:
                self._carry(diagnostics, branch.value_start(i), part)
        return tuple(diagnostics[: self._limit])

    def _part(self, branch: Branch, depth: int, where: str, parameters: bool) -> Locals:
        """What stands in a list of schemas or a map of them; relative to it."""
        memo = memo_of(branch)
        key = ("part", self._draft, parameters, self._limit)
        found = memo.get(key)
        if found is None:
            found = memo[key] = self._named(branch, depth, where, parameters)
        return cast("Locals", found)

    def _named(self, branch: Branch, depth: int, where: str, parameters: bool) -> Locals:
        def below(i: int) -> Locals:
            value = branch.values[i]
            if not isinstance(value, Branch) or value.kind != "object":
                return ()
            found = self.schema(value, depth, f"{where}/{branch.keys[i] if branch.keys else i}")
            return (*_parameter(branch, i, value), *found) if parameters and branch.keys else found

        if len(branch.values) > _WIDE:
            parts = self._speaking(branch, "part", where, below)
        else:
            parts = self._each(branch, depth, parameters, below)
        diagnostics: list[Diag] = [*self._names(branch, where)] if parameters else []
        for i, part in parts:
            self._carry(diagnostics, branch.value_start(i), part)
        return tuple(diagnostics[: self._limit])

    def _each(
        self, branch: Branch, depth: int, parameters: bool, look: Callable[[int], Locals]
    ) -> list[tuple[int, Locals]]:
        """The children of a narrow container that ``look`` finds something in; what is kept with one is taken without a view of it."""
        key = ("schema", self._draft, False, self._limit)
        parts: list[tuple[int, Locals]] = []
        for i, green in enumerate(branch.values):
            if not isinstance(green, Branch):
                continue
            memo = green.memo or _NOTHING
            part: Any = memo.get(key) if depth <= MAX_DEPTH else None
            if part is not None and parameters and branch.shapes:
                shape = branch.shapes[i]
                own: Any = memo.get(_parameter_key(branch.keys[i], shape if isinstance(shape, int) else shape[2]))
                part = None if own is None else (*own, *part)
            if part is None:
                part = look(i)
            if part:
                parts.append((i, part))
        return parts

    def _carry(self, diagnostics: list[Diag], by: int, below: Locals) -> None:
        if len(diagnostics) < self._limit:
            diagnostics.extend([moved(diag, by) for diag in below])

    def _names(self, branch: Branch, where: str) -> Locals:
        """``lint_names``, not asked again while the names are the same and none of them is at fault."""
        key = ("names", where)
        known = self._scans.get(key)
        if known is not None and known[0] == branch.keys:
            return known[1]
        diagnostics = lint_names(node_of(branch, 0))
        if all(diag.span == (0, 1) for diag in diagnostics):
            self._scans[key] = (branch.keys, diagnostics)
        else:
            self._scans.pop(key, None)
        return diagnostics

    def referring(self, properties: Green) -> tuple[int, ...]:
        """The parameters that are what they are by reference."""
        if not isinstance(properties, Branch):
            return ()

        def refer(i: int) -> bool:
            value = properties.values[i]
            return isinstance(value, Branch) and value.kind == "object" and refers(node_of(value, 0))

        memo = memo_of(properties)
        found = memo.get("referring")
        if found is None:
            found = memo["referring"] = tuple([i for i, _ in self._speaking(properties, "referring", "", refer)])
        return cast("tuple[int, ...]", found)

    def references(self, branch: Branch, depth: int, where: str) -> frozenset[str | None]:
        """Every ``$ref`` in a schema; None among them where names are given that only a validator can follow."""

        def below(i: int) -> frozenset[str | None]:
            key = branch.keys[i] if branch.keys else ""
            value = branch.values[i]
            if isinstance(value, Branch):
                if depth >= MAX_DEPTH:
                    return frozenset((None,))  # what leads where from there is not known
                return self.references(value, depth + 1, f"{where}/{key or i}")
            if value is None:
                return frozenset()
            if key in ("$ref", "$dynamicRef") and isinstance(value.value, str):
                plain = value.value == "#" or (value.value.startswith("#/") and "%" not in value.value)
                return frozenset((value.value if plain else None,))
            if key in ("$id", "$anchor", "$dynamicAnchor") and value.kind == "string":
                return frozenset((None,))
            return frozenset()

        memo = memo_of(branch)
        found = memo.get("references")
        if found is None:
            parts = self._speaking(branch, "references", where, below)
            found = memo["references"] = frozenset[str | None]().union(*[part for _, part in parts])
        return cast("frozenset[str | None]", found)


def _parameter(properties: Branch, i: int, value: Branch) -> Locals:
    """A parameter's findings; they hold while its schema, its name and the distance between them do."""
    shape = properties.shapes[i]
    memo = memo_of(value)
    key = _parameter_key(properties.keys[i], shape if isinstance(shape, int) else shape[2])
    found = memo.get(key)
    if found is None:
        member = node_of(properties, 0).view(i)
        found = memo[key] = lint_parameter(member) if isinstance(member, Member) else ()
    return cast("Locals", found)


def _parameter_key(name: str, distance: int) -> tuple[str, str, int]:
    return ("parameter", name, distance)
