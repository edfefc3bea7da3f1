"""The canonical form of a manifest: the field order of seed 003, two blanks of indentation, one member per line.

Values stay as they are written, digit for digit and escape for escape; comments stay with what they stand at. A text that
is not sound JSON is refused, and so is one whose meaning or comments would not come out the same. Must not know files.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member
from tamis.protocols.positions import LineIndex, Span

FIELD_ORDER = (
    "$schema",
    "toolId",
    "displayName",
    "description",
    "version",
    "aliases",
    "agentCallable",
    "protocolConfig",
    "handler",
    "parameters",
    "output",
    "securityContext",
    "env",
    "execution",
    "dependencies",
    "examples",
    "tags",
)
"""Of the root: seed 003 §2.1 with the interface's additions beside what they belong to; unknown fields follow in their own order."""
HANDLER_ORDER = (
    "type",
    "scriptPath",
    "language",
    "entryPoint",
    "result",
    "serviceName",
    "methodName",
    "parameterMapping",
)
"""Of ``handler``, as the manifest page lists them."""
_MAX_DEPTH = 200


class Formatted(msgspec.Struct, frozen=True):
    """The canonical text, or the reason why there is none."""

    text: str | None
    why: str = ""


def format_manifest(text: str) -> Formatted:
    """The canonical form of a manifest's text; formatting it again changes nothing. Never raises."""
    return format_json(text, FIELD_ORDER, {"handler": HANDLER_ORDER})


def format_json(
    text: str, order: tuple[str, ...] = (), inner: Mapping[str, tuple[str, ...]] | None = None, *, indent: str = "  "
) -> Formatted:
    """As ``format_manifest``, with any order of the root's members, and of the members of those by name in ``inner``.

    Without an order every member stays where it is. ``indent`` is one level of indentation, blanks or tabs.
    """
    body = text.removeprefix("\ufeff")
    tree = parse_json(body)
    lines = LineIndex(body)

    def refused(at: int, why: str) -> Formatted:
        return Formatted(None, f"line {lines.position(at)[0] + 1}: {why}")

    for diag in tree.diagnostics:
        if diag.code not in ("MF525", "MF526", "MF527"):
            return refused(diag.span[0], message(diag))
    if tree.root is None:
        return Formatted(None, "it is empty")
    try:
        out = _Writer(body, tree, order, inner or {}, indent).write()
    except _OddCommentError as error:
        return refused(error.at, "a comment stands where no line of its own begins or ends; move it")
    except RecursionError:
        return Formatted(None, f"it is nested deeper than {_MAX_DEPTH} levels")
    again = parse_json(out)
    kept = sorted(_comments(out, again.comments)) == sorted(_comments(body, tree.comments))
    if again.root is None or not kept or not _equal(tree.root, again.root, body, out):
        return Formatted(None, "its canonical form would not mean the same")
    return Formatted(text[: len(text) - len(body)] + out)


class _OddCommentError(Exception):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


class _Writer:
    def __init__(
        self, text: str, tree: JsonTree, order: tuple[str, ...], inner: Mapping[str, tuple[str, ...]], indent: str
    ) -> None:
        self.text = text
        self.indent = indent
        self.tree = tree
        self.ranks: dict[int, tuple[str, ...]] = {}
        """The order of an object's members, by the place where it begins."""
        if tree.root is not None and tree.root.kind == "object":
            self.ranks[tree.root.start] = order
            nodes = {name: tree.root.get(name) for name in inner}
            self.ranks |= {node.start: inner[name] for name, node in nodes.items() if node is not None}
        self.starts = [start for start, _ in tree.comments]
        self.out: list[str] = []
        self.taken = 0

    def write(self) -> str:
        """The whole text."""
        root = self.tree.root
        assert root is not None
        for span in self.comments(0, root.start):
            self.out.append(f"{self.comment(span)}\n")
        self.value(root, "", 0)
        self.out.append("\n")
        for span in self.comments(root.end, len(self.text)):
            self.out.append(f"{self.comment(span)}\n")
        if self.taken != len(self.tree.comments):
            inner = next(
                (start for start, end in self.tree.comments if self.text[start:end] not in "".join(self.out)), 0
            )
            raise _OddCommentError(inner)
        return "".join(self.out)

    def comments(self, start: int, end: int) -> list[Span]:
        """The comments within a stretch between two values."""
        first = bisect_left(self.starts, start)
        spans: list[Span] = []
        for span in self.tree.comments[first:]:
            if span[0] >= end:
                break
            spans.append(span)
        self.taken += len(spans)
        return spans

    def comment(self, span: Span) -> str:
        return self.text[span[0] : span[1]].rstrip()

    def value(self, node: JsonNode, margin: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise RecursionError
        if node.kind == "object":
            members = list(node.members)
            whole = {
                id(member): (member.key_start, member.value.end if member.value else member.key_end)
                for member in members
            }
            self.container(node, "{}", [(member, whole[id(member)]) for member in members], margin, depth)
        elif node.kind == "array":
            self.container(node, "[]", [(item, item.span) for item in node.items], margin, depth)
        else:
            self.out.append(self.text[node.start : node.end])

    def container(
        self, node: JsonNode, brackets: str, parts: list[tuple[Member | JsonNode, Span]], margin: str, depth: int
    ) -> None:
        """Each part on its own line, with the comments above it and behind it."""
        inner = margin + self.indent
        above: dict[int, list[Span]] = {}
        behind: dict[int, list[Span]] = {}
        at = node.start + 1
        for place, (_, (start, end)) in enumerate(parts):
            for span in self.comments(at, start):
                # On the line of the part before it, a comment is about that part.
                if place and "\n" not in self.text[parts[place - 1][1][1] : span[0]]:
                    behind.setdefault(place - 1, []).append(span)
                else:
                    above.setdefault(place, []).append(span)
            at = end
        rest = self.comments(at, node.end - 1)
        while parts and rest and "\n" not in self.text[at : rest[0][0]]:
            behind.setdefault(len(parts) - 1, []).append(rest.pop(0))
        if not parts and not rest:
            self.out.append(brackets)
            return
        self.out.append(brackets[0])
        places = list(range(len(parts)))
        rank = {name: place for place, name in enumerate(self.ranks.get(node.start, ()))}
        if node.kind == "object" and rank:
            last = len(rank)
            keys = [part.key if isinstance(part, Member) else "" for part, _ in parts]
            places.sort(key=lambda place: rank.get(keys[place], last))
        for position, place in enumerate(places):
            part = parts[place][0]
            for span in above.get(place, []):
                self.out.append(f"\n{inner}{self.comment(span)}")
            self.out.append(f"\n{inner}")
            if isinstance(part, Member):
                self.out.append(f"{self.text[part.key_start : part.key_end]}: ")
                if part.value is not None:
                    self.value(part.value, inner, depth + 1)
            else:
                self.value(part, inner, depth + 1)
            if position < len(places) - 1:
                self.out.append(",")
            for span in behind.get(place, []):
                self.out.append(f" {self.comment(span)}")
        for span in rest:
            self.out.append(f"\n{inner}{self.comment(span)}")
        self.out.append(f"\n{margin}{brackets[1]}")


def _comments(text: str, spans: list[Span]) -> list[str]:
    return [text[start:end].rstrip() for start, end in spans]


def _equal(a: JsonNode, b: JsonNode, a_text: str, b_text: str) -> bool:
    """Whether two values mean the same: members in any order, everything else spelled alike."""
    stack = [(a, b)]
    while stack:
        first, other = stack.pop()
        if first.kind != other.kind:
            return False
        if first.kind == "object":
            theirs = {member.key: member.value for member in other.members}
            if len(theirs) != len(first.members) or len(first.members) != len(other.members):
                return False
            for member in first.members:
                node = theirs.get(member.key)
                if member.value is None or node is None:
                    return False
                stack.append((member.value, node))
        elif first.kind == "array":
            if len(first.items) != len(other.items):
                return False
            stack.extend(zip(first.items, other.items, strict=True))
        elif a_text[first.start : first.end] != b_text[other.start : other.end]:
            return False
    return True
