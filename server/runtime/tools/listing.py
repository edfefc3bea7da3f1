"""Lists of tools: which fit a filter, in which order, in pages that stay right while tools come and go.

Without a query the order is that of ids, newest version first; with one it is that of the search. A cursor says after which tool the next page
begins, so a tool that is new or gone moves nothing else. Must not know what is shown of a tool.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence

import msgspec

from tamis.server.runtime.tools.registry import Registry, Tool
from tamis.server.runtime.tools.versions import Key, version_key

MAX_CURSOR_CHARS = 2_048


class ToolFilter(msgspec.Struct, rename="camel"):
    """Which tools to list; every given part must fit."""

    tags: list[str] = []
    """All of these."""
    namespace: str | None = None
    """What stands before the first colon of the id; empty: ids without one."""
    query: str | None = None
    """Words that are looked for in ids, names, tags, descriptions and parameters; the best come first."""
    callable: bool | None = None
    """Only tools that may be called, or only those that may not."""


class WrongCursorError(ValueError):
    """A cursor that no earlier page of the same list gave."""


class _Cursor(msgspec.Struct, array_like=True):
    filter: str
    score: int
    tool_id: str
    version: str


class Page(msgspec.Struct):
    """Tools of one page, and the cursor of the next, if there is one."""

    tools: list[Tool]
    next: str | None = None


def page(
    registry: Registry,
    wanted: ToolFilter,
    callable_now: Callable[[Tool], bool],
    *,
    cursor: str | None = None,
    limit: int,
) -> Page:
    """One page of the tools that fit. Raises ``WrongCursorError``."""
    after = None if cursor is None else _read(cursor, wanted)
    found = ranked(registry, wanted, callable_now)
    if after is not None:
        last = _place(after.score, after.tool_id, after.version)
        found = [one for one in found if _place(one[0], one[1].tool_id, one[1].version) > last]
    shown = found[:limit]
    more = None
    if len(found) > limit:
        score, tool = shown[-1]
        more = _written(_Cursor(_digest(wanted), score, tool.tool_id, tool.version))
    return Page([tool for _, tool in shown], more)


def ranked(registry: Registry, wanted: ToolFilter, callable_now: Callable[[Tool], bool]) -> Sequence[tuple[int, Tool]]:
    """The tools that fit with their scores, best first."""
    query = (wanted.query or "").strip()
    found = registry.search.ranked(query) if query else [(0, tool) for tool in registry.tools]
    tags = set(wanted.tags)
    return [
        (score, tool)
        for score, tool in found
        if (wanted.namespace is None or tool.namespace == wanted.namespace)
        and (not tags or tags.issubset(tool.manifest.tags))
        and (wanted.callable is None or callable_now(tool) == wanted.callable)
    ]


class _Descending:
    """A key that sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Key, str]) -> None:
        self.key = key

    def __lt__(self, other: _Descending) -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def _place(score: int, tool_id: str, version: str) -> tuple[int, str, _Descending]:
    return -score, tool_id, _Descending((version_key(version), version))


def _digest(wanted: ToolFilter) -> str:
    return hashlib.sha256(msgspec.json.encode(wanted)).hexdigest()[:8]


def _written(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _read(text: str, wanted: ToolFilter) -> _Cursor:
    try:
        if len(text) > MAX_CURSOR_CHARS:
            raise WrongCursorError
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        cursor = msgspec.json.decode(raw, type=_Cursor)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise WrongCursorError("not a cursor of an earlier answer") from None
    if cursor.filter != _digest(wanted):
        raise WrongCursorError("the cursor of a list with another filter")
    return cursor
