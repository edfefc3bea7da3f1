"""Every place of a variable, an environment, a block's name or a secret: in calls, in what is expected, in a manifest's examples, in ``tamis.toml``.

What a model wrote is no such place: nothing is filled in there, so texts in which turns of a chat are marked, and blocks that are set aside, have
none. Pure. Must not know what is asked of a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.marks import begins_line, marks_of
from tamis.protocols.model import Document, Piece, Value
from tamis.protocols.positions import Span
from tamis.protocols.tomltext import TomlEntry, TomlTree, read_toml
from tamis.server.analysis.kinds import DocumentKind, function_of, holds_calls
from tamis.server.analysis.running.expectations import WORD, expectations_in
from tamis.server.analysis.running.variables import SECRET, Decoded, Named, named_blocks, references_in, variables_in

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot

ENVIRONMENTS, ENVIRONMENT = "environments", "environment"
EXAMPLE_PARTS = ("input", "expectedOutput")
"""Where variables stand in a manifest's example."""
Kind = Literal["variable", "environment", "result", "secret"]
Path = tuple[str, ...]
_STEP = re.compile(r"(?:^|\.)([\w-]+)|\[\d+\]")
_JSON_PART = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]+", re.S
)


class Mention(msgspec.Struct, frozen=True):
    """One ``{{…}}``: ``names`` are the names of its path before the first index, each with its place; of a secret its name alone.

    ``block``: the block that it stands in; of what is expected, and in a manifest, one behind all.
    """

    span: Span
    names: tuple[tuple[str, Span], ...]
    block: int
    written: str
    """All that stands between the braces."""
    secret: bool = False

    @property
    def path(self) -> Path:
        """The names without their places."""
        return tuple(name for name, _ in self.names)


class Inline(msgspec.Struct, frozen=True):
    """What stands at an offset. ``path`` are the names that lead to it: of a variable without its environment.

    ``name`` is empty where the place is inside of what has a name (a list's item, a field of a result).
    """

    kind: Kind
    span: Span
    name: str
    path: Path
    declares: bool = False


# Texts and manifests


def mentions_in(kind: DocumentKind, text: str, document: Document | None) -> list[Mention]:
    """The references of a file; ``document`` is what a text with calls was read as."""
    look = function_of(kind, "mentions") if may_hold(text) else None
    return [] if look is None else look(text, document)


def of_manifest(text: str, _document: Document | None) -> list[Mention]:
    """Those of a manifest: in its examples."""
    return list(_in_examples(text))


def of_text(text: str, document: Document | None) -> list[Mention]:
    """Those of a text: in its calls and what is expected of them; no place twice."""
    return [] if document is None or is_transcript(text) else list(_in_calls(document))


def mentions_here(snapshot: Snapshot) -> list[Mention]:
    """Those of a document."""
    return mentions_in(snapshot.kind, snapshot.text, snapshot.document if holds_calls(snapshot.kind) else None)


def may_hold(text: str) -> bool:
    """Whether a reference can stand in a text at all; in JSON a brace may be written with an escape."""
    return "{{" in text or "\\u007" in text


def is_transcript(text: str) -> bool:
    """Whether turns of a chat are marked in a text: then a model wrote its calls."""
    marks = marks_of()
    if "<" in text:
        for match in marks.angle.finditer(text):
            mark = marks.meaning(match)
            if mark is not None and mark.family in ("turn", "channel") and begins_line(text, mark.start):
                return True
    return re.search(r"(?mi)^[ \t]*\[INST\]", text) is not None


def names_of(text: str, document: Document) -> list[Named]:
    """The names of a text's blocks; none where a model wrote them."""
    names = named_blocks(document)
    return [] if names and is_transcript(text) else names


def _in_calls(document: Document) -> Iterator[Mention]:
    seen: set[Span] = set()
    for number, block in enumerate(document.blocks):
        if block.aside or "{{" not in document.text[slice(*block.span)]:
            continue
        for call in block.calls:
            for param in call.params:
                for _, value in param.value.walk():
                    if value.kind != "text" or "{{" not in document.text[slice(*value.span)]:
                        continue
                    for mention in _in_value(value, document.text, number):
                        # The commands of a batch share parameters.
                        if mention.span not in seen:
                            seen.add(mention.span)
                            yield mention
    if WORD in document.text:
        yield from _in_expectations(document)


def _in_expectations(document: Document) -> Iterator[Mention]:
    for number, block in enumerate(document.blocks):
        for expectation in expectations_in(document, number) if block.calls and not block.aside else ():
            start, end = expectation.place
            if expectation.form == "json" and may_hold(document.text[start:end]):
                tree = parse_json(document.text[start:end])
                yield from _in_strings(document.text, tree.root, start, len(document.blocks))


def _in_examples(text: str) -> Iterator[Mention]:
    root = parse_json(text).root
    examples = root.get("examples") if root is not None and root.kind == "object" else None
    for example in examples.items if examples is not None and examples.kind == "array" else ():
        for name in EXAMPLE_PARTS if example.kind == "object" else ():
            yield from _in_strings(text, example.get(name), 0, 0)


def _in_strings(text: str, node: JsonNode | None, shift: int, block: int) -> Iterator[Mention]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if here is None:
            continue
        if here.kind == "string" and isinstance(here.value, str) and "{{" in here.value:
            start, end = here.start + shift + 1, here.end + shift - 1
            pieces = [
                Piece(start + part.start(), start + part.end(), _decoded(part[0]))
                for part in _JSON_PART.finditer(text[start:end])
            ]
            yield from _in_value(Value("text", (start, end), pieces=tuple(pieces)), text, block)
        waiting += [member.value for member in here.members] + here.items


def _decoded(part: str) -> str | None:
    if not part.startswith("\\"):
        return None
    try:
        decoded: str = msgspec.json.decode(f'"{part}"')
    except msgspec.DecodeError:
        return part
    return decoded


def _in_value(value: Value, text: str, block: int) -> Iterator[Mention]:
    decoded = Decoded(value, text)
    for match in references_in(decoded.text):
        start, name = match.start(2), match[2]
        span = decoded.span(*match.span())
        if name.startswith(SECRET):
            place = decoded.span(start + len(SECRET), match.end(2))
            yield Mention(span, ((name.removeprefix(SECRET), place),), block, name, secret=True)
            continue
        names: list[tuple[str, Span]] = []
        for step in _STEP.finditer(name):
            if step[1] is None:
                break
            names.append((step[1], decoded.span(start + step.start(1), start + step.end(1))))
        yield Mention(span, tuple(names), block, name)


def rewritten(text: str, path: Path, new: str) -> str:
    """A decoded text in which every reference that begins with a path has another name at the path's end."""
    parts: list[str] = []
    at = 0
    for match in references_in(text):
        steps = [] if match[2].startswith(SECRET) else list(_STEP.finditer(match[2]))[: len(path)]
        if tuple(step[1] for step in steps) == path:
            start = match.start(2)
            parts += (text[at : start + steps[-1].start(1)], new)
            at = start + steps[-1].end(1)
    return "".join((*parts, text[at:]))


# ``tamis.toml``


class Key(msgspec.Struct, frozen=True):
    """One place of a name below ``environments``: ``path`` is its environment and the names of the variable; the span has quotes with it."""

    path: Path
    span: Span


def keys_of(tree: TomlTree) -> list[Key]:
    """Every place of an environment's or variable's name, by place. What stands in lists has no name."""
    keys: dict[Span, Key] = {}
    lists: list[Path] = []

    def take(prefix: Path, names: Path, spans: Sequence[Span]) -> None:
        for depth, span in enumerate(spans, start=1):
            path = (*prefix, *names[:depth])
            if path[0] == ENVIRONMENTS and len(path) > 1 and not any(_inside(path, top) for top in lists):
                keys.setdefault(span, Key(path[1:], span))

    for table in tree.tables:
        take((), table.names, table.spans)
        if table.array:
            lists.append(table.names)
        waiting: list[tuple[Path, list[TomlEntry]]] = [(table.names, table.entries)]
        while waiting:
            prefix, entries = waiting.pop()
            for entry in entries:
                take(prefix, entry.names, entry.spans)
                if entry.value is not None and entry.value.entries:
                    waiting.append(((*prefix, *entry.names), entry.value.entries))
    return sorted(keys.values(), key=lambda key: key.span)


def _inside(path: Path, top: Path) -> bool:
    return len(path) > len(top) and path[: len(top)] == top


def chosen_in(tree: TomlTree) -> tuple[str, Span] | None:
    """The environment that the file chooses, with its place inside the quotes."""
    for entry in tree.tables[0].entries:
        value = entry.value
        if (
            entry.names == (ENVIRONMENT,)
            and value is not None
            and value.kind == "text"
            and isinstance(value.value, str)
        ):
            raw = tree.text[slice(*value.span)]
            width = 3 if raw[:3] in ('"""', "'''") else 1
            return value.value, (value.span[0] + width, value.span[1] - width if value.closed else value.span[1])
    return None


# At a place


def inline_at(snapshot: Snapshot, offset: int) -> Inline | None:
    """The variable, block's name or secret at an offset of a text or manifest, or None. Where nobody declares any, ``{{…}}`` is text."""
    near = snapshot.text[max(0, offset - 512) : offset + 512]
    named: list[Named] = []
    if not may_hold(near) and "tamis-name" not in near:
        return None
    if holds_calls(snapshot.kind):
        named = names_of(snapshot.text, snapshot.document)
        for name in named:
            if name.span[0] <= offset <= name.span[1] and name.name:
                return Inline("result", name.span, name.name, (name.name,), declares=True)
    for mention in mentions_here(snapshot):
        if mention.span[0] <= offset <= mention.span[1]:
            return _meant(snapshot, mention, named, offset)
    return None


def _meant(snapshot: Snapshot, mention: Mention, named: Sequence[Named], offset: int) -> Inline | None:
    last = mention.names[-1]
    if mention.secret:
        return Inline("secret", last[1], last[0], (last[0],))
    if not variables_in(snapshot).in_use:
        return None
    head, place = mention.names[0]
    here = next((number for number, (_, span) in enumerate(mention.names) if span[0] <= offset <= span[1]), None)
    if any(name.name == head for name in named):
        outside = here not in (0, None) or (here is None and offset > place[1])
        return Inline("result", mention.span if outside else place, "" if outside else head, (head,))
    if here is None and offset > last[1][1] and snapshot.text[last[1][1] : offset].strip(" \t}"):
        return Inline("variable", mention.span, "", mention.path)
    number = len(mention.names) - 1 if here is None and offset > last[1][1] else here or 0
    return Inline("variable", mention.names[number][1], mention.names[number][0], mention.path[: number + 1])


def setting_at(snapshot: Snapshot, offset: int) -> Inline | None:
    """The variable or environment at an offset of the ``tamis.toml`` in force."""
    if ENVIRONMENT not in snapshot.text or snapshot.path != settings_path(snapshot):
        return None
    tree = read_toml(snapshot.text)
    chosen = chosen_in(tree)
    if chosen is not None and chosen[1][0] <= offset <= chosen[1][1] and chosen[0]:
        return Inline("environment", chosen[1], chosen[0], (chosen[0],))
    for key in keys_of(tree):
        if key.span[0] <= offset <= key.span[1]:
            span = unquoted(snapshot.text, key.span)
            if len(key.path) == 1:
                return Inline("environment", span, key.path[0], key.path, declares=True)
            return Inline("variable", span, key.path[-1], key.path[1:], declares=True)
    return None


def unquoted(text: str, span: Span) -> Span:
    """A key's place without its quotes."""
    start, end = span
    if start == end or text[start] not in "\"'":
        return span
    return start + 1, end - (end - start >= 2 and text[end - 1] == text[start])


# Whose settings count


def root_of(roots: Sequence[str], path: str) -> str:
    """The innermost of some folders that holds a path, else the first; empty without any."""
    holding = [root for root in roots if path.startswith(root.rstrip("/") + "/")]
    return max(holding, key=len) if holding else next(iter(roots), "")


def settings_path(snapshot: Snapshot) -> str:
    """The ``tamis.toml`` whose variables a document has; empty where no folder is known."""
    root = root_of(snapshot.roots, snapshot.path)
    return f"{root.rstrip('/')}/tamis.toml" if root else ""
