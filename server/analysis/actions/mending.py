"""Quick fixes of a manifest's findings that need more than the finding: the tree around it, its siblings, the schema it breaks.

They are made only when somebody asks for fixes, so that reading a manifest pays nothing for them. Each is a proposal and marked
unsafe: what the author meant is a guess. Must not word findings or judge anything.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.manifest.reading import is_semver, script_path_fault, tool_id_fault
from tamis.protocols.manifest.security import host_pattern_fault
from tamis.protocols.model import Diag, Edit, Fix, Json, escape_pointer
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.suggest import Names, best
from tamis.server.analysis.snapshot import Snapshot

if TYPE_CHECKING:
    from tamis.protocols.schema.plan import Plan
    from tamis.protocols.schema.words import Finding

SYNTAX = frozenset(("MF520", "MF521", "MF522", "MF523"))
_REMOVABLE = frozenset(("MF504", "MF510", "MF515", "MF518", "LN706"))


MAX_TRIES = 200
"""So many proposals are tried out for all findings that are asked about together: each is a check of an example or a default."""


class Mender:
    """What could mend the findings of a manifest, besides the fixes that they bring. What many of them look at is looked up once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.tries = MAX_TRIES
        self._errors: dict[int, dict[str, list[Finding]]] = {}
        self._references: dict[str, Names] = {}

    def mendings(self, diag: Diag) -> list[Fix]:
        """The fixes for one finding."""
        root = self.snapshot.manifest.tree.root
        if root is None:
            return []
        place = _Place.of(root, diag.span)
        fixes = [*_removals(self, diag, place), *_moves(self.snapshot, diag, place), *_replacements(self, diag, place)]
        return [Fix(title, edits, "unsafe") for title, edits in fixes]

    @cached_property
    def broken(self) -> list[Span]:
        """The places of the text that are no JSON, sorted."""
        return sorted(diag.span for diag in self.snapshot.manifest.tree.diagnostics if diag.code in SYNTAX)

    def references(self, field: str) -> Names:
        """The references that could stand in the schema of a field."""
        if field not in self._references:
            self._references[field] = Names(_definitions(self.snapshot, field))
        return self._references[field]

    @cached_property
    def plan(self) -> Plan:
        """The plan of ``parameters``."""
        from tamis.protocols.schema.plan import compile_plan

        return compile_plan(_schema(self.snapshot, "parameters"))

    def errors(self, example: int, args: dict[str, Json]) -> dict[str, list[Finding]]:
        """The errors of an example's arguments by their places."""
        if example not in self._errors:
            by_path: dict[str, list[Finding]] = {}
            for error in self.plan.check(args, "typed").errors:
                by_path.setdefault(error.path, []).append(error)
            self._errors[example] = by_path
        return self._errors[example]

    def may_try(self) -> bool:
        """Whether one more proposal may be tried out."""
        self.tries -= 1
        return self.tries >= 0


class _Place:
    """Where a finding stands: the containers around it and the entry of the innermost that it speaks of."""

    def __init__(self, around: list[JsonNode], entry: Member | JsonNode | None) -> None:
        self.around = around
        self.entry = entry

    @classmethod
    def of(cls, root: JsonNode, span: Span) -> _Place:
        around: list[JsonNode] = []
        here = root
        while here.span != span:
            around.append(here)
            entries = _entries(here)
            at = _at(entries, span[0])
            if at < 0 or span[1] > entries[at].span[1]:
                break
            inner = entries[at]
            below = inner.value if isinstance(inner, Member) else inner
            if below is None or below.span == span or below.start > span[0]:
                return cls(around, inner)
            here = below
        return cls(around, None)

    @property
    def value(self) -> JsonNode | None:
        return self.entry.value if isinstance(self.entry, Member) else self.entry


Proposed = tuple[str, tuple[Edit, ...]]


def _removals(mender: Mender, diag: Diag, place: _Place) -> Iterator[Proposed]:
    entry = place.entry
    if entry is None or not place.around:
        return
    entries = _entries(place.around[-1])
    at = _at(entries, entry.span[0])
    if at < 0 or entries[at].span != entry.span or _is_broken(mender, place.around[-1], entries, at):
        return
    text = mender.snapshot.text
    if (
        diag.code in _REMOVABLE
        or (diag.code == "VA453" and diag.data.get("code") == "VA403")
        or (diag.code == "VA450" and diag.args.get("fault") == "named-twice")
    ):
        name = entry.key if isinstance(entry, Member) else excerpt_of(entry)
        yield f"Remove '{name}'", removal(text, place.around[-1], at)
    if diag.code == "MF524" and isinstance(entry, Member):
        keys = place.around[-1].keys
        before = next((i for i in range(at - 1, -1, -1) if keys[i] == entry.key), -1)
        if before >= 0:
            yield f"Remove the '{entry.key}' that does not count", removal(text, place.around[-1], before)


def _is_broken(mender: Mender, node: JsonNode, entries: Entries, at: int) -> bool:
    """Whether the text around an entry is no JSON: what would be left of it is anybody's guess."""
    start = entries[at - 1].span[1] if at else node.start
    end = entries[at + 1].span[0] if at + 1 < len(entries) else node.end
    first = bisect_left(mender.broken, (start, start))
    return any(stop <= end for _, stop in islice(mender.broken, first, first + _NEAR))


def _moves(snapshot: Snapshot, diag: Diag, place: _Place) -> Iterator[Proposed]:
    """Declare what is required, and what says ``"required": true`` of itself in the object's list (draft-03's way)."""
    from tamis.server.analysis.actions.manifests import insertion

    root = snapshot.manifest.tree.root
    if diag.code == "MF515" and len(place.around) > 1:
        name, owner = str(diag.args.get("k")), place.around[-2]
        declared = owner.get("properties")
        new: dict[str, Json] = {name: {"type": "string"}}
        if declared is None:
            yield f"Declare '{name}' in properties", (insertion(snapshot.text, owner, {"properties": new}),)
        elif declared.kind == "object" and declared.closed:
            yield f"Declare '{name}' in properties", (insertion(snapshot.text, declared, new),)
    if diag.code == "MF535" and root is not None and (node := root.get("parameters")) is not None and node.closed:
        if node.kind == "object" and node.start == diag.span[0]:
            yield "Put the parameters in 'properties'", (_wrapped(snapshot.text, node),)
        return
    steps = str(diag.data.get("path", "")).split("/")
    if diag.code != "VA450" or steps[-1] != "required" or steps[-3:-2] != ["properties"] or root is None:
        return
    value, own = place.value, place.around[-1] if place.around else None
    owner = place.around[-3] if len(place.around) > 2 else None
    if value is None or own is None or owner is None or value.kind != "boolean":
        return
    at = next((i for i, member in enumerate(own.members) if member.key == "required"), -1)
    away = removal(snapshot.text, own, at)
    declared = owner.get("properties")
    members = declared.members if declared else []
    here = members[_at(members, own.start)] if members else None
    name = here.key if here is not None and here.value is not None and here.value.span == own.span else ""
    listed = owner.get("required")
    if value.value is not True:
        yield "Remove 'required': false", away
    elif listed is None:
        yield (
            f"Move to the object's 'required': '{name}'",
            (*away, insertion(snapshot.text, owner, {"required": [name]})),
        )
    elif listed.kind == "array" and listed.closed:
        end = listed.items[-1].end if listed.items else listed.start + 1
        comma = ", " if listed.items else ""
        yield f"Move to the object's 'required': '{name}'", (*away, Edit(end, end, comma + quoted(name)))


def _wrapped(text: str, node: JsonNode) -> Edit:
    """The edit that puts the members of an object under ``properties`` of a schema."""
    body = text[node.start : node.end]
    if "\n" not in body:
        return Edit(node.start, node.end, f'{{"type": "object", "properties": {body}}}')
    eol = "\r\n" if "\r\n" in text else "\n"
    first = node.members[0].key_start
    inner = text[text.rfind("\n", 0, first) + 1 : first]
    margin = re.match(r"[ \t]*", text[text.rfind("\n", 0, node.start) + 1 :])
    outer = margin[0] if margin else ""
    step = inner.removeprefix(outer) if not inner.strip() and inner.startswith(outer) else "  "
    # No string holds a line end, so every line may be moved.
    moved = body.replace("\n", "\n" + step)
    return Edit(
        node.start,
        node.end,
        f'{{{eol}{outer}{step}"type": "object",{eol}{outer}{step}"properties": {moved}{eol}{outer}}}',
    )


Entries = list[Member] | list[JsonNode]
_NEAR = 64
"""So many faults of syntax are looked at between two entries."""


def _entries(node: JsonNode) -> Entries:
    """The members or items of a container, in order. Not to be changed."""
    return node.members if node.kind == "object" else node.items


def _at(entries: Entries, offset: int) -> int:
    """The index of the last entry that begins at an offset or before it; -1: there is none."""
    return bisect_right(entries, offset, key=_start) - 1


def _start(entry: Member | JsonNode) -> int:
    return entry.key_start if isinstance(entry, Member) else entry.start


def excerpt_of(node: JsonNode) -> str:
    """A value as a title names it."""
    return node.value if isinstance(node.value, str) else json.dumps(node.to_python(), ensure_ascii=False)[:40]


_COMMA = re.compile(r"\s*,\s*")
_COMMA_BEHIND = re.compile(r"(?:\s+|//[^\r\n]*|/\*(?s:.*?)\*/)*,")
"""A comma with blanks and comments before it."""


def removal(text: str, node: JsonNode, index: int) -> tuple[Edit, ...]:
    """The edits that take one entry with its comma out of an object or a list; comments stay."""
    entries = _entries(node)
    start, end = entries[index].span
    if len(entries) == 1:
        inner = text[node.start + 1 : start] + text[end : node.end - 1]
        if node.closed and not inner.strip(" \t\r\n,"):
            return (Edit(node.start + 1, node.end - 1, ""),)
        return (Edit(start, end, ""),)
    if index + 1 < len(entries):
        following = entries[index + 1].span[0]
        if _COMMA.fullmatch(text, end, following):
            return (Edit(start, following, ""),)
        comma = re.compile(r"[ \t]*,[ \t]*").match(text, end)
        if comma is not None:
            return (Edit(start, comma.end(), ""),)
        behind = _COMMA_BEHIND.match(text, end, following)
        return (Edit(start, end, ""), *((Edit(behind.end() - 1, behind.end(), ""),) if behind else ()))
    before = entries[index - 1].span[1]
    if _COMMA.fullmatch(text, before, start):
        return (Edit(before, end, ""),)
    comma = _COMMA_BEHIND.match(text, before, start)
    alone = re.compile(r"\r?\n[ \t]*$").search(text, before, start)
    if alone and re.compile(r"[ \t]*\r?\n").match(text, end):
        start = alone.start()
    return (*((Edit(comma.end() - 1, comma.end(), ""),) if comma else ()), Edit(start, end, ""))


def _replacements(mender: Mender, diag: Diag, place: _Place) -> Iterator[Proposed]:
    node = place.value
    if node is None or (diag.span != node.span and diag.code != "VA453"):
        return
    for new in _new_values(mender, diag, place, node):
        shown = json.dumps(new, ensure_ascii=False)
        title = f"Replace by '{new}'" if isinstance(new, str) else f"Replace by {shown}"
        yield title, (Edit(node.start, node.end, quoted(new) if isinstance(new, str) else shown),)


def _new_values(mender: Mender, diag: Diag, place: _Place, node: JsonNode) -> Iterator[Json]:
    value, snapshot = node.to_python(), mender.snapshot
    match diag.code:
        case "MF502" if diag.args.get("p") == "version" and isinstance(value, int | float):
            text = _as_semver(snapshot.text[node.start : node.end])
            if text is not None:
                yield text
        case "MF502":
            yield from _of_type(value, str(diag.args.get("expected")), snapshot.text[node.start : node.end])
        case "MF506" | "MF508" | "MF511" | "MF513" if isinstance(value, str):
            text = _mended_text(diag.code, value)
            if text is not None:
                yield text
        case "MF535" if value != "object":
            yield "object"
        case "MF532":
            yield from _fitting_default(mender, place, value)
        case "VA450" if isinstance(value, str) and diag.args.get("fault") == "ref-nowhere":
            near = mender.references(str(diag.data.get("path", "")).removeprefix("/").partition("/")[0]).best(value)
            if near is not None:
                yield near
        case "VA450" if isinstance(value, str):
            if diag.args.get("fault") == "not-list":
                yield [value]
            elif diag.args.get("fault") == "not-number":
                yield from (item for item in _readings(value) if type(item) in (int, float))
        case "VA453":
            yield from _fitting_argument(mender, diag, value)
        case _:
            return


def _mended_text(code: str, text: str) -> str | None:
    """The id, version, path or host that a text can only have meant; None where it could be anything."""
    if code == "MF508":
        return _as_semver(text)
    if code == "MF506":
        mended = re.sub(r"[^\w.:-]+", "-", text.strip()).strip("-:/!?")
        fits = bool(mended) and tool_id_fault(mended) is None
    elif code == "MF511":
        mended = text.replace("\\", "/")
        fits = script_path_fault(mended) is None
    else:
        try:
            mended = urlsplit(text if "//" in text else f"//{text}").netloc.rpartition("@")[2]
        except ValueError:
            return None
        fits = bool(mended) and host_pattern_fault(mended) is None
    return mended if fits and mended != text else None


def _of_type(value: Json, expected: str, written: str) -> Iterator[Json]:
    """The value as what a field wants, where that is plain."""
    if expected == "a text" and isinstance(value, (int, float)):
        yield written
    elif expected == "a list of texts" and isinstance(value, str):
        yield [value]
    elif expected in ("a whole number", "true or false") and isinstance(value, str):
        wanted = bool if expected == "true or false" else int
        yield from (item for item in _readings(value) if type(item) is wanted)


def _readings(value: Json) -> Iterator[Json]:
    """What a value of another type may have been meant as."""
    if isinstance(value, str):
        word = value.strip()
        if re.fullmatch(r"-?(0|[1-9]\d{0,18})", word):
            yield int(word)
        elif re.fullmatch(r"-?(0|[1-9]\d{0,18})\.\d{1,18}", word):
            yield float(word)
        elif word.lower() in ("true", "false"):
            yield word.lower() == "true"
        elif word.lower() == "null":
            yield None
    elif isinstance(value, (int, float)):
        yield json.dumps(value)
    if not is_list(value):
        yield [value]


_VERSION = re.compile(r"[vV]?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?")


def _as_semver(version: str) -> str | None:
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        return None
    numbers = ".".join(str(int(part)) if part and len(part) < 20 else "0" for part in match.group(1, 2, 3))
    semver = numbers + (match[4] or "")
    return semver if semver != version and is_semver(semver) else None


def _schema(snapshot: Snapshot, field: str) -> dict[str, Json]:
    root = snapshot.manifest.tree.root
    node = root.get(field) if root is not None else None
    schema = node.to_python() if node is not None else None
    return schema if is_object(schema) else {}


def _definitions(snapshot: Snapshot, field: str) -> list[str]:
    """The references that could stand in the schema of a field such as ``parameters``."""
    schema = _schema(snapshot, field)
    definitions: list[str] = []
    for group in ("$defs", "definitions"):
        held = schema.get(group)
        names = held if is_object(held) else ()
        definitions += [f"#/{group}/" + escape_pointer(name) for name in names]
    return definitions


def _fitting_default(mender: Mender, place: _Place, value: Json) -> Iterator[Json]:
    from tamis.protocols.schema.plan import compile_plan

    own = place.around[-1].to_python() if place.around else None
    if not is_object(own) or not mender.may_try():
        return
    roots = [_schema(mender.snapshot, name) for name in ("parameters", "output")]
    shared = {key: root[key] for root in reversed(roots) for key in ("$defs", "definitions", "$schema") if key in root}
    plan = compile_plan(cast("dict[str, Json]", {**shared, "type": "object", "properties": {"v": own}}))
    for new in _near(value, own):
        if plan.usable and plan.check({"v": new}, "typed").valid:
            yield new
            return


def _near(value: Json, schema: dict[str, Json]) -> Iterator[Json]:
    words = schema.get("enum")
    if isinstance(value, str) and is_list(words):
        near = best(value, [word for word in words if isinstance(word, str)])
        if near is not None:
            yield near
    yield from _readings(value)


def _fitting_argument(mender: Mender, diag: Diag, value: Json) -> Iterator[Json]:
    """What an example's argument may have been meant as, if the example's finding there is gone with it."""
    from tamis.protocols.jsontext.tree import from_pointer

    path = str(diag.data.get("path", ""))
    steps = from_pointer(path)
    index = int(diag.args.get("i", -1))
    root = mender.snapshot.manifest.tree.root
    node = root.at(["examples", index, "input"]) if root is not None else None
    args = node.to_python() if node is not None else None
    if steps[:1] != ["examples"] or steps[2:3] != ["input"] or len(steps) < 4 or not is_object(args):
        return
    where = path.removeprefix(f"/examples/{index}/input")
    if not mender.plan.usable:
        return
    errors = mender.errors(index, args).get(where, [])
    wanted = [error.suggestion for error in errors if error.suggestion is not None and error.code != "VA403"]
    if any(error.code == "VA403" for error in errors):
        return
    for new in (*wanted, *_readings(value)):
        if not mender.may_try():
            return
        after = mender.plan.check(cast("dict[str, Json]", _with(args, steps[3:], new)), "typed").errors
        if not any(error.path == where or error.path.startswith(where + "/") for error in after):
            yield new
            return


def _with(value: Json, steps: list[str], new: Json) -> Json:
    """A value with another one at a place in it."""
    if not steps:
        return new
    if is_object(value):
        return {name: _with(item, steps[1:], new) if name == steps[0] else item for name, item in value.items()}
    if is_list(value):
        return [_with(item, steps[1:], new) if str(i) == steps[0] else item for i, item in enumerate(value)]
    return value
