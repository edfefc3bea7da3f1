"""The tree that JSON text is read into: nodes with places, look-up by pointer and by offset.

Nodes are plain data with absolute code-point offsets. Must not know how the text was read or what it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tamis.protocols.model import Diag, Json, escape_pointer
from tamis.protocols.positions import Span

NodeKind = Literal["object", "array", "string", "number", "boolean", "null", "error"]
Path = tuple[str | int, ...]


class Member(msgspec.Struct, gc=False):
    """One member of an object; ``colon`` is -1 where none was written, ``value`` None where none follows."""

    key: str
    key_start: int
    key_end: int
    colon: int
    value: JsonNode | None

    @property
    def key_span(self) -> Span:
        """The key with its quotes."""
        return self.key_start, self.key_end

    @property
    def span(self) -> Span:
        """The whole member."""
        end = self.value.end if self.value is not None else max(self.key_end, self.colon + 1)
        return self.key_start, end


class JsonNode(msgspec.Struct, gc=False):
    """One value. ``value`` holds a scalar, ``members`` an object's members in order, ``items`` a list's items.

    Kind ``error`` marks something that is no JSON value; ``closed`` is false for a container that the text left open.
    """

    kind: NodeKind
    start: int
    end: int
    value: str | int | float | bool | None
    members: list[Member] = []
    items: list[JsonNode] = []
    closed: bool = True

    @property
    def span(self) -> Span:
        """Where the value stands, with quotes or brackets."""
        return self.start, self.end

    def member(self, name: str) -> Member | None:
        """The member of that name; of several the last, which is the one that counts."""
        for member in reversed(self.members):
            if member.key == name:
                return member
        return None

    def get(self, name: str) -> JsonNode | None:
        """The value of the member of that name, or None."""
        member = self.member(name)
        return None if member is None else member.value

    def at(self, path: Sequence[str | int]) -> JsonNode | None:
        """The value that a path of keys and indices leads to, or None."""
        node: JsonNode | None = self
        for token in path:
            if node is None:
                return None
            if node.kind == "object":
                node = node.get(str(token))
            elif node.kind == "array":
                index = token if isinstance(token, int) else int(token) if _is_index(token) else -1
                node = node.items[index] if 0 <= index < len(node.items) else None
            else:
                return None
        return node

    def to_python(self) -> Json:
        """The value as Python data; members without a value are left out, kind ``error`` becomes None."""
        if self.kind not in ("object", "array"):
            return self.value
        root: list[Json] | dict[str, Json] = {} if self.kind == "object" else []
        stack: list[tuple[JsonNode, list[Json] | dict[str, Json]]] = [(self, root)]
        while stack:
            node, into = stack.pop()
            parts: list[tuple[str, JsonNode]]
            if isinstance(into, dict):
                parts = [(member.key, member.value) for member in node.members if member.value is not None]
            else:
                parts = [("", item) for item in node.items]
            for key, part in parts:
                made: Json
                if part.kind == "object":
                    made = {}
                    stack.append((part, made))
                elif part.kind == "array":
                    made = []
                    stack.append((part, made))
                else:
                    made = part.value
                if isinstance(into, dict):
                    into[key] = made
                else:
                    into.append(made)
        return root


class Place(msgspec.Struct, frozen=True):
    """What stands at an offset.

    ``path`` leads to the innermost value or member around it; ``container`` is the innermost object or list; ``slot`` says
    whether a key or a value belongs there (``gap``: neither, as between a value and its comma); ``member`` is the member the
    offset lies in; ``node`` the value it lies in, if any.
    """

    path: Path
    slot: Literal["key", "value", "gap"]
    node: JsonNode | None
    container: JsonNode | None
    member: Member | None = None

    @property
    def pointer(self) -> str:
        """``path`` as a JSON Pointer."""
        return to_pointer(self.path)


class JsonTree(msgspec.Struct):
    """A JSON text as it was read."""

    text: str
    root: JsonNode | None
    diagnostics: list[Diag]
    comments: list[Span]
    trailing_commas: list[int]

    @property
    def ok(self) -> bool:
        """Whether the text was read without errors."""
        return not any((diag.severity or _DEFAULT.get(diag.code, "error")) == "error" for diag in self.diagnostics)

    def node_at(self, pointer: str) -> JsonNode | None:
        """The value that a JSON Pointer leads to, or None."""
        if self.root is None:
            return None
        return self.root.at(from_pointer(pointer))

    def nearest(self, pointer: str) -> tuple[JsonNode | None, bool]:
        """The value at a pointer, or the nearest one above it, and whether it is the value itself."""
        node = self.root
        for token in from_pointer(pointer):
            below = None if node is None else node.at((token,))
            if below is None:
                return node, False
            node = below
        return node, True

    def key_span(self, pointer: str) -> Span | None:
        """The key of the member that a pointer leads to, or None where it leads to no member."""
        path = from_pointer(pointer)
        if self.root is None or not path:
            return None
        parent = self.root.at(path[:-1])
        member = parent.member(path[-1]) if parent is not None and parent.kind == "object" else None
        return None if member is None else member.key_span

    def pointer_at(self, offset: int) -> Place:
        """What stands at an offset, for completion and hover; works inside broken text too."""
        node = self.root
        path: list[str | int] = []
        if node is None or not _inside(node, offset):
            return Place((), "value", None, None)
        while True:
            if node.kind == "object":
                place = _in_object(node, path, offset)
            elif node.kind == "array":
                place = _in_array(node, path, offset)
            else:
                return Place(tuple(path), "value", node, None)
            if isinstance(place, Place):
                return place
            node, token, member = place
            path.append(token)
            if node.kind not in ("object", "array") or offset <= node.start or (node.closed and offset >= node.end):
                parent = self.root if self.root is None else self.root.at(path[:-1])
                return Place(tuple(path), "value", node, parent, member)


_DEFAULT = {"MF524": "warning", "MF525": "hint", "MF526": "hint", "MF527": "warning", "TC015": "information"}


def _is_index(token: str) -> bool:
    return token.isascii() and token.isdigit() and len(token) < 10


def _inside(node: JsonNode, offset: int) -> bool:
    return node.start <= offset and (offset <= node.end or not node.closed)


def _in_object(node: JsonNode, path: list[str | int], offset: int) -> Place | tuple[JsonNode, str, Member | None]:
    last: Member | None = None
    for member in node.members:
        if member.key_start > offset:
            break
        last = member
    if last is None:
        return Place(tuple(path), "key", node, node)
    here = (*path, last.key)
    if offset <= last.key_end:
        return Place(here, "key", None, node, last)
    value = last.value
    if last.colon < 0 or offset <= last.colon:
        return Place(here, "gap", None, node, last)
    if value is None or offset < value.start:
        return Place(here, "value", None, node, last)
    if _inside(value, offset):
        return value, last.key, last
    return Place(tuple(path), "gap", node, node, last)


def _in_array(node: JsonNode, path: list[str | int], offset: int) -> Place | tuple[JsonNode, int, None]:
    index = -1
    for i, item in enumerate(node.items):
        if item.start > offset:
            break
        index = i
    if index >= 0 and _inside(node.items[index], offset):
        return node.items[index], index, None
    return Place((*path, index + 1), "value", None, node)


def to_pointer(path: Sequence[str | int]) -> str:
    """A path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{escape_pointer(token) if isinstance(token, str) else token}" for token in path)


def from_pointer(pointer: str) -> list[str]:
    """The tokens of a JSON Pointer."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
