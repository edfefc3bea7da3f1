"""What is known of each part of a schema, kept while an editor's user types: only what changed is looked at again.

JSON values that are shared between versions of a document (the very same Python object: unchanged) carry their facts over. A
wide object costs one pass in C and the work for its changed members. ``check_shared`` finds what ``check.check_schema`` finds;
where a part may depend on the whole in a way that cannot be followed here (``$id``, anchors, references out of annotations)
the whole is checked anew. Values must never be mutated. Must not know manifests or places in texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from operator import is_, is_not
from typing import NamedTuple, cast

import msgspec

from tamis.protocols.jsontext.green import difference, note
from tamis.protocols.model import Json, escape_pointer
from tamis.protocols.schema.check import (
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    Draft,
    SchemaIssue,
    Walk,
    check_schema,
    draft_of,
    is_endless,
    is_known_metaschema,
    resolves,
)
from tamis.protocols.schema.words import MAPS, Finding, Where, is_list, is_object

_ANNOTATIONS = frozenset(
    (
        *("description", "examples", "default", "$comment", "deprecated", "readOnly", "writeOnly", "example"),
        *("markdownDescription", "enumDescriptions", "markdownEnumDescriptions", "defaultSnippets"),
        *("errorMessage", "deprecationMessage", "externalDocs", "enumNames", "displayName", "label", "order"),
    )
)
"""Keywords that neither a verdict nor its wording depends on; so does ``title``, but where it names an alternative."""
_ODD_KEYS = ("$id", "$anchor", "$dynamicAnchor", "$ref", "$dynamicRef", "$recursiveRef")
_MAPS = MAPS - {"patternProperties"}
_SAID = frozenset(("description", "title", "$comment"))
"""Keywords whose texts only readers see, but for the title of an alternative."""
_NARROW = 32
_MISSING = object()
_MAX_LEAVES = 20_000
_Step = tuple[str | int, ...]


class _Wide:
    """The assertions of a wide container; equal only to itself."""

    __slots__ = ()


class _Same:
    """A value that is equal to itself only."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Facts:
    """What is known of one subschema, whatever its place.

    ``token``: equal tokens mean equal assertions, so equal verdicts in equal words. ``count`` and ``height`` are those of the
    subschemas. ``issues`` are its own, with paths from here; ``refs`` counts references at and below it; ``odd`` says that
    only a look at the whole can judge; ``loud`` that it or something below has an issue or a default that does not fit,
    ``broken`` that there is an error among them. ``default`` holds what is wrong with its default; None where nothing is or
    where the references decide (``asks``).
    """

    __slots__ = (
        "asks",
        "broken",
        "check",
        "children",
        "count",
        "default",
        "height",
        "issues",
        "loud",
        "maps",
        "odd",
        "own_refs",
        "refs",
        "token",
    )

    def __init__(self) -> None:
        self.token: object = ()
        self.count = 1
        self.height = 1
        self.issues: tuple[SchemaIssue, ...] = ()
        self.children: dict[_Step, tuple[Json, Facts]] = _NO_CHILDREN
        self.maps: dict[str, MapFacts] = _NO_MAPS
        self.refs: dict[str, int] = _NO_REFS
        self.own_refs: tuple[tuple[str, str], ...] = ()
        self.odd = False
        self.loud = False
        self.broken = False
        self.default: tuple[Finding, ...] | None = None
        self.asks = False
        self.check: object = None
        """Room for who compiles this part: ``held.py`` keeps its predicate here."""


class MapFacts:
    """What is known of an object of subschemas; ``loud`` holds its parts that have something to say."""

    __slots__ = ("broken", "count", "height", "loud", "odd", "parts", "refs", "token", "value")

    def __init__(self, value: dict[str, Json]) -> None:
        self.value = value
        self.parts: dict[str, Facts] = {}
        self.token: object = ()
        self.count = 0
        self.height = 0
        self.refs: dict[str, int] = _NO_REFS
        self.odd = False
        self.loud: dict[str, Facts] = {}
        self.broken = False

    def of(self, value: dict[str, Json]) -> MapFacts:
        """The same of another value."""
        facts = MapFacts(value)
        facts.parts, facts.loud, facts.refs = self.parts, self.loud, self.refs
        facts.token, facts.count, facts.height = self.token, self.count, self.height
        facts.odd, facts.broken = self.odd, self.broken
        return facts


_NO_CHILDREN: dict[_Step, tuple[Json, Facts]] = {}
_NO_MAPS: dict[str, MapFacts] = {}
_NO_REFS: dict[str, int] = {}


def changed_members(old: dict[str, Json], new: dict[str, Json]) -> tuple[list[str], bool]:
    """The keys of ``new`` whose values are not the same objects as in ``old``, and whether the keys are the same in order."""
    if old is new:
        return [], True
    known = difference(old, new)
    if known is not None:
        return [name for name in known.come if old.get(name, _MISSING) is not new[name]], known.gone == known.come
    if len(old) == len(new) and list(old) == list(new):
        return list(compress(new, map(is_not, old.values(), new.values()))), True
    get = old.get
    return [key for key, value in new.items() if get(key, _MISSING) is not value], False


class _Local(Walk):
    """The faults of one subschema alone; what lies below it is only noted."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(None, draft)
        self.children: list[tuple[_Step, Json]] = []
        self.maps: list[tuple[str, dict[str, Json]]] = []
        self.refs: list[tuple[str, str]] = []

    def schema(self, schema: Json, where: Where, depth: int) -> Iterator[SchemaIssue]:
        self.children.append((_steps(where), schema))
        return iter(())

    def named(self, key: str, value: Json, here: Where, depth: int) -> Iterator[SchemaIssue]:
        if key in _MAPS and is_object(value):
            self.maps.append((key, value))
            return iter(())
        return super().named(key, value, here, depth)

    def reference(self, ref: str, here: Where) -> Iterator[SchemaIssue]:
        assert here is not None
        self.refs.append((str(here[1]), ref))
        return iter(())


def _steps(where: Where) -> _Step:
    steps: list[str | int] = []
    while where is not None:
        where, step = where
        steps.append(step)
    return tuple(reversed(steps))


class Builder:
    """Makes facts of one draft; equal plain subschemas share theirs (``leaves`` is kept from version to version)."""

    def __init__(self, draft: Draft, leaves: dict[object, Facts]) -> None:
        self.draft: Draft = draft
        self.leaves = leaves

    def node(self, schema: Json, old: Json, before: Facts | None, depth: int, *, alternative: bool = False) -> Facts:
        """The facts of a subschema; ``before`` are those of ``old``, the value that stood in its place."""
        if before is not None:
            if old is schema:
                return before
            kept = self._kept(schema, old, before, depth, alternative)
            if kept is not None:
                return kept
        facts = Facts()
        if depth > MAX_SCHEMA_DEPTH:
            facts.odd = True
            facts.height = MAX_SCHEMA_DEPTH + 2
            return facts
        local = _Local(self.draft)
        facts.issues = tuple(local.node(schema, None, 0))
        if not is_object(schema):
            facts.token = _Same(schema) if is_list(schema) else (type(schema), schema)
            facts.odd = is_list(schema) and _is_odd(schema)
            facts.broken = facts.loud = bool(facts.issues)
            return facts
        if local.children or local.maps:
            self._below(facts, local, before, depth)
        facts.token = self._token(schema, facts, alternative)
        if local.refs:
            facts.own_refs = tuple(local.refs)
            facts.refs = dict(facts.refs)
            for _, ref in local.refs:
                facts.refs[ref] = facts.refs.get(ref, 0) + 1
        for key, value in schema.items():
            if isinstance(value, (dict, list)) and not facts.odd:
                facts.odd = self._odd_value(key, value, facts, old, before)
            elif key in ("$id", "$anchor", "$dynamicAnchor", "$recursiveRef") and isinstance(value, str):
                facts.odd = True
        if "default" in schema:
            self._judge_default(schema, facts)
        if facts.issues or facts.asks or facts.default:
            facts.loud = True
            facts.broken = facts.broken or _has_error(facts)
        if local.children or local.maps or local.refs or facts.issues or facts.odd or "default" in schema:
            return facts
        return self._shared_leaf(facts)

    def _kept(self, schema: Json, old: Json, before: Facts, depth: int, alternative: bool) -> Facts | None:
        """The facts of a subschema of which only what it says to readers or what stands below a keyword is another than in ``old``;
        None where its own keywords have to be looked at."""
        if before.odd or not is_object(schema) or not is_object(old) or list(schema) != list(old):
            return None
        if "default" in schema:
            return None
        facts = before
        for key in [key for key, value in schema.items() if value is not old[key]]:
            now, then = schema[key], old[key]
            if key in _SAID:
                if not isinstance(now, str) or not isinstance(then, str) or (key == "title" and alternative):
                    return None
            elif not is_object(now):
                return None
            elif key in facts.maps:
                # What is required and not declared is said of the schema itself.
                if "required" in schema and not (is_object(then) and changed_members(then, now)[1]):
                    return None
                was = facts.maps[key]
                made_map = self.map(now, was, depth)
                facts = _with_part(facts, key, was, made_map, facts.children, {**facts.maps, key: made_map})
            elif (key,) in facts.children:
                known = facts.children[key,][1]
                node = self.node(now, then, known, depth + 1)
                facts = _with_part(facts, key, known, node, {**facts.children, (key,): (now, node)}, facts.maps)
            else:
                return None
        return facts

    def _judge_default(self, schema: dict[str, Json], facts: Facts) -> None:
        """Whether the default fits its schema; behind a reference that is asked where the whole document is known."""
        if facts.refs:
            facts.asks = True
        elif not facts.odd and not facts.broken and not _has_error(facts):
            facts.default = default_fault(schema, schema, self.draft)

    def _shared_leaf(self, facts: Facts) -> Facts:
        """The facts of an equal subschema without parts, where one was met already."""
        if len(self.leaves) > _MAX_LEAVES:
            self.leaves.clear()
        try:
            return self.leaves.setdefault((self.draft, facts.token), facts)
        except RecursionError:
            return facts

    def _below(self, facts: Facts, local: _Local, before: Facts | None, depth: int) -> None:
        children: dict[_Step, tuple[Json, Facts]] = {}
        maps: dict[str, MapFacts] = {}
        refs: dict[str, int] = {}
        for step, part in local.children:
            was = before.children.get(step) if before is not None else None
            old, known = was if was is not None else (None, None)
            node = self.node(part, old, known, depth + 1, alternative=step[0] in ("anyOf", "oneOf"))
            children[step] = (part, node)
            _add(facts, node, refs)
        for key, value in local.maps:
            made_map = maps[key] = self.map(value, before.maps.get(key) if before is not None else None, depth)
            _add(facts, made_map, refs)
        facts.children, facts.maps = children or _NO_CHILDREN, maps or _NO_MAPS
        facts.refs = refs or _NO_REFS

    def map(self, value: dict[str, Json], before: MapFacts | None, depth: int) -> MapFacts:
        """The facts of an object of subschemas; of unchanged members they are taken over."""
        if before is not None and before.value is value:
            return before
        facts = MapFacts(value)
        facts.odd = _has_odd_key(value)
        if before is None or before.odd:
            for name, part in value.items():
                was = before.parts.get(name) if before is not None else None
                old = before.value.get(name) if before is not None else None
                facts.parts[name] = self.node(part, old, was, depth + 1)
            self._sum(facts)
            facts.token = self._map_token(value, facts, before, None)
            return facts
        changed, same_keys = changed_members(before.value, value)
        old = before.value
        nodes = [self.node(value[name], old.get(name), before.parts.get(name), depth + 1) for name in changed]
        if same_keys and not facts.odd and all(map(is_, nodes, map(before.parts.get, changed))):
            return before.of(value)
        parts = facts.parts = dict(before.parts)
        loud = facts.loud = dict(before.loud) if before.loud else {}
        facts.count, facts.height = before.count, before.height
        refs = before.refs
        lowered = False
        same_tokens = same_keys
        gone: list[str] = []
        if not same_keys:
            known = difference(before.value, value)
            gone = [name for name in (before.value if known is None else known.gone) if name not in value]
            for name in gone:
                was = parts.pop(name)
                facts.count -= was.count
                refs = _counted(refs, was.refs, -1)
                lowered = lowered or was.height == facts.height
                loud.pop(name, None)
        for name, node in zip(changed, nodes, strict=True):
            was = parts.get(name)
            parts[name] = node
            facts.odd = facts.odd or node.odd
            facts.count += node.count - (0 if was is None else was.count)
            if was is not None:
                lowered = lowered or (was.height == before.height and node.height < was.height)
                same_tokens = same_tokens and (node is was or node.token == was.token)
            facts.height = max(facts.height, node.height)
            if node.loud:
                loud[name] = node
            else:
                loud.pop(name, None)
            if was is not None and was.refs:
                refs = _counted(refs, was.refs, -1)
            if node.refs:
                refs = _counted(refs, node.refs, 1)
        facts.refs = refs
        if len(parts) > _NARROW:
            note(parts, before.parts, [*gone, *(name for name in changed if name in before.parts)], changed)
        if lowered and not any(parts[name].height == facts.height for name in changed):
            facts.height = max((part.height for part in parts.values()), default=0)
        facts.broken = bool(loud) and any(part.broken for part in loud.values())
        facts.token = self._map_token(value, facts, before, same_tokens)
        return facts

    @staticmethod
    def _sum(facts: MapFacts) -> None:
        refs: dict[str, int] = {}
        for name, part in facts.parts.items():
            facts.count += part.count
            facts.height = max(facts.height, part.height)
            facts.odd = facts.odd or part.odd
            if part.loud:
                facts.loud[name] = part
                facts.broken = facts.broken or part.broken
            for ref, times in part.refs.items():
                refs[ref] = refs.get(ref, 0) + times
        facts.refs = refs or _NO_REFS

    @staticmethod
    def _map_token(value: dict[str, Json], facts: MapFacts, before: MapFacts | None, same: bool | None) -> object:
        if len(value) <= _NARROW:
            if before is not None and same:
                return before.token
            parts = facts.parts
            return tuple([(name, parts[name].token) for name in value])
        if before is not None and isinstance(before.token, _Wide):
            if same is None:
                old, new = before.parts, facts.parts
                same = list(before.value) == list(value) and all(
                    part is old[name] or part.token == old[name].token for name, part in new.items()
                )
            if same:
                return before.token
        return _Wide()

    def _token(self, schema: dict[str, Json], facts: Facts, alternative: bool) -> object:
        pieces: list[tuple[str, object]] = []
        for key, value in schema.items():
            if key in _ANNOTATIONS or key.startswith("x-") or (key == "title" and not alternative):
                continue
            if key in facts.maps:
                pieces.append((key, facts.maps[key].token))
            elif (
                facts.children and isinstance(value, (dict, list)) and key not in ("dependencies", "dependentRequired")
            ):
                below = tuple((step[1:], part[1].token) for step, part in facts.children.items() if step[0] == key)
                pieces.append((key, below or _value_token(value)))
            else:
                pieces.append((key, _value_token(value)))
        return tuple(pieces)

    @staticmethod
    def _odd_value(key: str, value: Json, facts: Facts, old: Json, before: Facts | None) -> bool:
        """Whether names or references may hide in a value that is no subschema; those of the subschemas are theirs."""
        if key in facts.maps:
            return facts.maps[key].odd
        below = [part for step, (_, part) in facts.children.items() if step[0] == key]
        if below and key not in ("dependencies", "dependentRequired"):
            if is_object(value) and key == "patternProperties" and _has_odd_key(value):
                return True
            return any(part.odd for part in below)
        if before is not None and not before.odd and is_object(old):
            return _is_odd(value, old.get(key))
        return _is_odd(value)


def _add(facts: Facts, part: Facts | MapFacts, refs: dict[str, int]) -> None:
    facts.count += part.count
    facts.height = max(facts.height, part.height + 1)
    facts.odd = facts.odd or part.odd
    facts.loud = facts.loud or bool(part.loud)
    facts.broken = facts.broken or part.broken
    for ref, times in part.refs.items():
        refs[ref] = refs.get(ref, 0) + times


def _with_part(
    before: Facts,
    key: str,
    was: Facts | MapFacts,
    now: Facts | MapFacts,
    children: dict[_Step, tuple[Json, Facts]],
    maps: dict[str, MapFacts],
) -> Facts:
    """The facts of a subschema with ``now`` below a keyword in the place of ``was``."""
    facts = Facts()
    facts.issues, facts.own_refs = before.issues, before.own_refs
    facts.children, facts.maps = children, maps
    facts.count = before.count + now.count - was.count
    facts.odd = now.odd
    facts.loud = facts.broken = False
    for part in (*[part for _, part in children.values()], *maps.values()):
        facts.height = max(facts.height, part.height + 1)
        facts.loud = facts.loud or bool(part.loud)
        facts.broken = facts.broken or part.broken
    if facts.issues:
        facts.loud = True
        facts.broken = facts.broken or _has_error(facts)
    facts.refs = before.refs
    if was.refs or now.refs:
        facts.refs = _counted(_counted(before.refs, was.refs, -1), now.refs, 1)
    if now.token == was.token:
        facts.token = before.token
    else:
        token = now.token if isinstance(now, MapFacts) else (((), now.token),)
        pieces = cast("tuple[tuple[str, object], ...]", before.token)
        facts.token = tuple([(name, token if name == key else piece) for name, piece in pieces])
    return facts


def _has_error(facts: Facts) -> bool:
    return any(issue.severity == "error" for issue in facts.issues)


def _counted(refs: dict[str, int], more: dict[str, int], sign: int) -> dict[str, int]:
    if not more:
        return refs
    counts = dict(refs)
    for ref, times in more.items():
        counts[ref] = counts.get(ref, 0) + sign * times
        if not counts[ref]:
            del counts[ref]
    return counts


def _value_token(value: Json) -> object:
    if is_list(value):
        if len(value) <= 2 * _NARROW and not any(isinstance(part, (dict, list)) for part in value):
            return tuple((type(part), part) for part in value)
        return _Same(value)
    return _Same(value) if isinstance(value, dict) else (type(value), value)


def _has_odd_key(value: dict[str, Json]) -> bool:
    if value.keys().isdisjoint(_ODD_KEYS):
        return False
    return any(isinstance(value.get(key), str) for key in _ODD_KEYS)


_CONTAINERS = frozenset((dict, list))


def _is_odd(value: Json, known: Json = None) -> bool:
    """Whether something in a value names or refers to a part of a schema; ``known`` is a value of which it is known not to."""
    stack: list[tuple[Json, Json]] = [(value, known)]
    while stack:
        node, same = stack.pop()
        if node is same:
            continue
        if is_object(node):
            if _has_odd_key(node):
                return True
            if not _CONTAINERS.isdisjoint(map(type, node.values())):
                old = same if is_object(same) else {}
                names = changed_members(old, node)[0] if old else list(node)
                stack.extend((node[name], old.get(name)) for name in names)
        elif is_list(node) and not _CONTAINERS.isdisjoint(map(type, node)):
            if is_list(same) and len(same) == len(node):
                stack.extend((node[i], same[i]) for i in compress(range(len(node)), map(is_not, same, node)))
            else:
                stack.extend((part, None) for part in node)
    return False


class DefaultFault(NamedTuple):
    """A default that does not fit: the pointer of its subschema, and what is wrong with it."""

    path: str
    errors: tuple[Finding, ...]


class Checked(msgspec.Struct, frozen=True, eq=False):
    """A whole schema with its faults; ``facts`` is None where only a look at the whole could judge."""

    schema: Json
    draft: Draft
    facts: Facts | None
    issues: list[SchemaIssue]
    usable: bool
    defaults: list[DefaultFault]
    root: Facts
    """What was found of the parts, to start from at the next version."""
    endless: bool = False


def check_shared(schema: Json, before: Checked | None, leaves: dict[object, Facts]) -> Checked:
    """The faults of a schema, starting from those of its last version."""
    if before is not None and before.schema is schema:
        return before
    draft = draft_of(schema)
    if before is not None and before.draft != draft:
        before = None
    root = Builder(draft, leaves).node(
        schema, None if before is None else before.schema, None if before is None else before.root, 0
    )
    if (
        root.odd
        or root.count > MAX_SCHEMA_NODES
        or root.height > MAX_SCHEMA_DEPTH + 1
        or (root.refs and any(_leaves_schemas(ref) for ref in root.refs))
    ):
        issues = check_schema(schema)
        usable = not any(issue.severity == "error" for issue in issues)
        return Checked(schema, draft, None, issues, usable, _whole_defaults(schema, draft) if usable else [], root)
    issues = list(_issues(root, "")) if root.loud else []
    endless = False
    if root.refs:
        for ref in sorted(root.refs):
            if not ref.startswith("#"):
                wrong = None if is_known_metaschema(ref) else ("VA451", {"ref": ref})
            elif (ref == "#" or ref.startswith("#/")) and not resolves(schema, ref):
                wrong = ("VA450", {"reason": f"$ref {ref} leads nowhere", "fault": "ref-nowhere"})
            else:
                wrong = None
            if wrong is not None:
                args = cast("dict[str, str | int]", wrong[1])
                issues.extend(SchemaIssue(wrong[0], path, args, "error") for path in _places(root, ref, ""))
        if before is not None and before.facts is not None and before.root.token == root.token:
            endless = before.endless
        else:
            endless = is_endless(schema)
        if endless:
            reason = "a $ref leads back to itself without going into a part of the value"
            issues.append(SchemaIssue("VA450", "", {"reason": reason, "fault": "ref-endless"}, "error"))
    usable = not issues or not any(issue.severity == "error" for issue in issues)
    defaults = list(_defaults(root, schema, "", schema, draft)) if usable and root.loud else []
    return Checked(schema, draft, root, issues, usable, defaults, root, endless)


def _leaves_schemas(ref: str) -> bool:
    """Whether a reference may lead into something that a token leaves out, or through a name that cannot be told from it."""
    return any(step in _ANNOTATIONS or step.startswith("x-") or "%" in step for step in ref.split("/")[1:])


def _issues(facts: Facts, base: str) -> Iterator[SchemaIssue]:
    for issue in facts.issues:
        yield msgspec.structs.replace(issue, path=base + issue.path) if base else issue
    for path, _, part in _loud_parts(facts, base):
        yield from _issues(part, path)


def _loud_parts(facts: Facts, base: str) -> Iterator[tuple[str, Json, Facts]]:
    """The subschemas right below that have something to say, in document order, with their pointers."""
    if not facts.loud:
        return
    for step, (value, part) in facts.children.items():
        if part.loud:
            yield base + _pointer(step), value, part
    for key, map_facts in facts.maps.items():
        names = (
            map_facts.loud if len(map_facts.loud) < 2 else [name for name in map_facts.value if name in map_facts.loud]
        )
        for name in names:
            yield base + _pointer((key, name)), map_facts.value[name], map_facts.loud[name]


def _pointer(steps: _Step) -> str:
    return "".join(f"/{escape_pointer(step) if isinstance(step, str) else step}" for step in steps)


def _places(facts: Facts, ref: str, base: str) -> Iterator[str]:
    """The pointers of all keywords that hold a reference."""
    for key, own in facts.own_refs:
        if own == ref:
            yield base + _pointer((key,))
    for step, (_, part) in facts.children.items():
        if ref in part.refs:
            yield from _places(part, ref, base + _pointer(step))
    for key, map_facts in facts.maps.items():
        if ref in map_facts.refs:
            for name in map_facts.value:
                if ref in map_facts.parts[name].refs:
                    yield from _places(map_facts.parts[name], ref, base + _pointer((key, name)))


def _defaults(facts: Facts, value: Json, base: str, root: Json, draft: Draft) -> Iterator[DefaultFault]:
    """Defaults that do not fit, below ``properties``, ``items`` and definitions."""
    if facts.default is not None:
        yield DefaultFault(base, facts.default)
    elif facts.asks and is_object(value):
        findings = default_fault(root, value, draft)
        if findings is not None:
            yield DefaultFault(base, findings)
    for path, part, part_facts in _loud_parts(facts, base):
        key = path[len(base) + 1 :].partition("/")[0]
        if key in ("properties", "$defs", "definitions") or path == f"{base}/items":
            yield from _defaults(part_facts, part, path, root, draft)


def default_fault(root: Json, part: dict[str, Json], draft: Draft) -> tuple[Finding, ...] | None:
    """What is wrong with the default of a part of a schema (empty: it does not fit, for no reason that has words)."""
    from tamis.protocols.schema.plan import compile_plan
    from tamis.protocols.schema.valid import compile_part

    value = part["default"]
    try:
        check = compile_part(root, part, draft)
        if check is None or check(value):
            return None
    except RecursionError:
        return None
    sub = compile_plan(part)
    return tuple(sub.check(value, "typed").errors) if sub.usable else ()


def _whole_defaults(schema: Json, draft: Draft) -> list[DefaultFault]:
    """As ``_defaults``, for a schema whose parts only the whole can judge."""
    from tamis.protocols.schema.check import has_ids

    if has_ids(schema):
        return []
    default_faults: list[DefaultFault] = []
    stack: list[tuple[str, Json]] = [("", schema)]
    while stack:
        here, node = stack.pop()
        if not is_object(node):
            continue
        if "default" in node:
            errors = default_fault(schema, node, draft)
            if errors is not None:
                default_faults.append(DefaultFault(here, errors))
        below: list[tuple[str, Json]] = []
        for key in ("properties", "$defs", "definitions"):
            named = node.get(key)
            if is_object(named):
                below.extend((here + _pointer((key, name)), part) for name, part in named.items())
        if is_object(node.get("items")):
            below.append((f"{here}/items", node["items"]))
        stack.extend(reversed(below))
    return default_faults
