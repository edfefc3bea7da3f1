"""The walk over a manifest's schemas: each container is looked at once and its findings are kept with it.

Findings are relative to their container, so they hold until something inside it is edited: a keystroke costs the containers
around it. Must not know what is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from tamis.protocols.jsontext.green import Branch
from tamis.protocols.jsontext.tree import JsonNode, Member, from_pointer, memo_of
from tamis.protocols.model import Diag, escape_pointer
from tamis.protocols.schema.check import Draft
from tamis.server.analysis.lints.local import Collector, Locals, Scans, kept, moved, object_at, speaking, without_member
from tamis.server.analysis.lints.parameters import lint_names, lint_parameter, lint_references, lint_required, refers
from tamis.server.analysis.lints.schemas import SHAPES, lint_schema, parts_of

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

    def look() -> Locals:
        # what is remembered of the last walk is that of walks to the usual limit
        walk = _Walk(draft, scans if scans is not None and limit == MAX_KEPT else {}, parameters, limit)
        diagnostics = [*walk.schema(node, 0, str(parameters), top=parameters)]
        absolute = _unused(node, walk)
        properties = object_at(node, "properties") if parameters else None
        if properties is not None and (referring := walk.referring(properties)):
            members = [view for i in referring if isinstance(view := properties.view(i), Member)]
            absolute += lint_references(members, lambda ref: _target(node, ref))
        return (*diagnostics, *[moved(diag, -node.start) for diag in absolute])

    found = kept(node, ("all", draft, parameters, limit), look)
    return [moved(diag, node.start) for diag in found]


def _unused(node: JsonNode, walk: _Walk) -> list[Diag]:
    """Definitions of a whole schema that nothing leads to, at absolute places."""
    tables = [(key, table) for key in ("$defs", "definitions") if (table := object_at(node, key)) is not None]
    if not tables:
        return []
    used = walk.references(node, 0, str(node.kind))
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


class _Walk:
    """One walk over a schema. ``where`` names a container among those of the document, for what is remembered of the last walk."""

    def __init__(self, draft: Draft, scans: Scans, parameters: bool, limit: int) -> None:
        self._draft: Draft = draft
        self._scans = scans
        self._field = parameters
        self._limit = limit
        if len(scans) > _MAX_SCANS:
            scans.clear()

    def _speaking(self, node: JsonNode, key: str, where: str, look: Callable[[int], T]) -> list[tuple[int, T]]:
        wide = len(node.greens) > _WIDE
        return speaking(node, (key, self._draft, self._field, where), look, self._scans if wide else None)

    def schema(self, node: JsonNode, depth: int, where: str, *, top: bool = False) -> Locals:
        """A schema and all below it, relative to it; ``top``: it is ``parameters`` itself."""
        if node.kind != "object" or depth > MAX_DEPTH:
            return ()
        memo = memo_of(node)
        key = ("schema", self._draft, top, self._limit)
        found = memo.get(key)
        if found is None:
            found = memo[key] = self._schema(node, depth, where, top)
        return cast("Locals", found)

    def _schema(self, node: JsonNode, depth: int, where: str, top: bool) -> Locals:
        diagnostics: list[Diag] = [*lint_schema(node, self._draft)]
        if top:
            diagnostics += lint_required(node)
        for member, value in parts_of(node, self._draft):
            shape = "schemas" if value.kind == "array" else SHAPES[member.key]
            below = f"{where}/{member.key}"
            part = self._part(value, shape, depth + 1, below, top and member.key == "properties")
            if part:
                self._carry(diagnostics, value.start - node.start, part)
        return tuple(diagnostics[: self._limit])

    def _part(self, node: JsonNode, shape: str, depth: int, where: str, parameters: bool) -> Locals:
        """What stands under a keyword: a schema, a list of schemas or a map of them; relative to it."""
        if shape == "schema":
            return self.schema(node, depth, where)
        memo = memo_of(node)
        key = ("part", self._draft, parameters, self._limit)
        found = memo.get(key)
        if found is None:
            found = memo[key] = self._named(node, depth, where, parameters)
        return cast("Locals", found)

    def _named(self, node: JsonNode, depth: int, where: str, parameters: bool) -> Locals:
        def below(i: int) -> Locals:
            view = node.view(i)
            value = view.value if isinstance(view, Member) else view
            if not isinstance(value, JsonNode) or value.kind != "object":
                return ()
            diagnostics = _parameter(view, value) if parameters and isinstance(view, Member) else ()
            return (*diagnostics, *self.schema(value, depth, f"{where}/{view.key if isinstance(view, Member) else i}"))

        branch = node.green
        if not isinstance(branch, Branch):
            return ()
        if len(branch.values) > _WIDE:
            parts = self._speaking(node, "part", where, below)
        else:
            parts = self._each(branch, depth, parameters, below)
        diagnostics: list[Diag] = [*self._names(node, where)] if parameters else []
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
            memo = green.memo if isinstance(green, Branch) else None
            known = memo.get(key) if memo is not None and depth <= MAX_DEPTH else None
            if known is not None and memo is not None and parameters and branch.shapes:
                shape = branch.shapes[i]
                own = memo.get(_parameter_key(branch.keys[i], shape if isinstance(shape, int) else shape[2]))
                known = None if own is None else (*cast("Locals", own), *cast("Locals", known))
            part = look(i) if known is None else cast("Locals", known)
            if part:
                parts.append((i, part))
        return parts

    def _carry(self, diagnostics: list[Diag], by: int, below: Locals) -> None:
        if len(diagnostics) < self._limit:
            diagnostics.extend([moved(diag, by) for diag in below])

    def _names(self, node: JsonNode, where: str) -> Locals:
        """``lint_names``, not asked again while the names are the same and none of them is at fault."""
        key = ("names", where)
        known = self._scans.get(key)
        if known is not None and known[0] == node.keys:
            return known[1]
        diagnostics = lint_names(node)
        if all(diag.span == (0, 1) for diag in diagnostics):
            self._scans[key] = (node.keys, diagnostics)
        else:
            self._scans.pop(key, None)
        return diagnostics

    def referring(self, properties: JsonNode) -> tuple[int, ...]:
        """The parameters that are what they are by reference."""

        def refer(i: int) -> bool:
            value = properties.child(i)
            return value is not None and value.kind == "object" and refers(value)

        return kept(
            properties, "referring", lambda: tuple(i for i, _ in self._speaking(properties, "referring", "", refer))
        )

    def references(self, node: JsonNode, depth: int, where: str) -> frozenset[str | None]:
        """Every ``$ref`` in a schema; None among them where names are given that only a validator can follow."""

        def below(i: int) -> frozenset[str | None]:
            key = node.keys[i] if node.keys else ""
            value = node.child(i)
            if value is None:
                return frozenset()
            if key in ("$ref", "$dynamicRef") and isinstance(value.value, str):
                plain = value.value == "#" or (value.value.startswith("#/") and "%" not in value.value)
                return frozenset((value.value if plain else None,))
            if key in ("$id", "$anchor", "$dynamicAnchor") and value.kind == "string":
                return frozenset((None,))
            if value.kind not in ("object", "array"):
                return frozenset()
            if depth >= MAX_DEPTH:
                return frozenset((None,))  # what leads where from there is not known
            return self.references(value, depth + 1, f"{where}/{key or i}")

        def look() -> frozenset[str | None]:
            parts = self._speaking(node, "references", where, below)
            return frozenset[str | None]().union(*(part for _, part in parts))

        return kept(node, "references", look)


def _parameter(member: Member, value: JsonNode) -> Locals:
    """A parameter's findings; they hold while its schema, its name and the distance between them do."""
    key = _parameter_key(member.key, value.start - member.key_start)
    return kept(value, key, lambda: lint_parameter(member))


def _parameter_key(name: str, distance: int) -> tuple[str, str, int]:
    return ("parameter", name, distance)
