"""The call that is being written in TAM, for a display: what of a field's delimiters is its value, and what its key means.

Must not know the reader's findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import ToolHint
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.streaming.partial import NewText
from tamis.protocols.streaming.partial_pairs import KEY_THERE, PairProgress, PairSigns, Role
from tamis.protocols.tam.dialect import DIALECT
from tamis.protocols.tam.keys import Key, declared_names, parse_key, squash, visible

_MIN_RUN = 3
_COMMENTS = rf"(?:[\r\n][\s{IN_LAYOUT}]*+#[^\r\n]*+)++"
_ENDING = rf"(?:[<«](?:[ \t{IN_LAYOUT}]*+[<«])++|[<«]|[《＜]{{1,}}+|»++)"
_SIGNS = PairSigns(
    loud=lazy(r"[«»<＜《>＞\r\n,，;；、|]"),
    sign=lazy(r"[«»<＜《>＞]"),
    held=lazy(rf"(?:{_ENDING}[\s,，;；、|]{{0,200}})?(?:{_COMMENTS})?[\s{IN_LAYOUT}]{{0,200}}{KEY_THERE}"),
    between=lazy(rf"[\s{IN_LAYOUT},，；、|]*+"),
    head=lazy(r"»{3,}+|>{3}(?!>)"),
    odd_line=lazy(r"[«»《》＜＞]|>>|<<"),
    late_separator=";",
)


class TamProgress(PairProgress):
    """A block of TAM: longer runs of delimiters belong to values unless the whole block is written with them (ruling 56)."""

    def __init__(self, tools: Mapping[str, ToolHint]) -> None:
        super().__init__(DIALECT, _SIGNS, tools)
        self._run = 0
        """How long the opening delimiter of the value is, of ``»`` alone."""
        self._same: int | None = None
        """The longer run with which all fields so far are written; 0 where they are not."""
        self._muted: list[tuple[str, list[str]]] = []
        """Values of such fields: what of their edges is a delimiter, the end of the block tells."""
        self._steps: set[int] = set()
        self._step = 0
        self._numbered = False

    def _begin_value(self, key: str, head: str) -> None:
        super()._begin_value(key, head)
        self._run = len(head) if head[0] == "»" else 0
        if self._same is None:
            self._same = self._run if self._run > _MIN_RUN else 0
        elif self._same and self._same != self._run:
            self._differ(closing=False)
        if self._role == "argument" and self._same:
            self._muted.append((self._argument or "", []))
        if self._role == "argument" and self._run > _MIN_RUN:
            self._say("»" * (self._run - _MIN_RUN))

    def _say(self, text: str) -> None:
        if self._same and self._role == "argument":
            self._muted[-1][1].append(text)
        else:
            super()._say(text)

    def _closed_by(self, tail: str) -> None:
        run = len(tail) if tail[0] == "«" and self._family == "plain" else 0
        if self._same and self._same != run:
            self._differ(closing=True)
        if run > _MIN_RUN and self._role == "argument":
            self._say("«" * (run - _MIN_RUN))
        self._close()

    def _unclosed(self) -> None:
        if self._same:
            self._differ(closing=True)
        self._close()

    def _differ(self, *, closing: bool) -> None:
        """The fields are not all written with one run, so that the longer ones hold a part of their values. ``closing``: that is
        told by the end of the last value; else by the beginning of another one."""
        self._same = 0
        for name, parts in self._muted:
            text = "".join(parts)
            self._new.append(NewText(name, text, len(text)))
            if closing and name == self._argument:
                self._length = len(text)
        self._muted.clear()

    def _tail(self, text: str, at: int) -> Span | Literal["wait"] | None:
        char = text[at]
        if char not in ("«" if self._family == "plain" else "«<"):
            return None
        end = at + 1
        while end < len(text) and text[end] == char:
            end += 1
        if end == len(text):
            return "wait"
        return (at, end) if end - at >= _MIN_RUN and (char == "«" or text[end] != "[") else None

    def _role_of(self, raw: str) -> tuple[Role, str]:
        key = parse_key(visible(raw))
        normal = key.normal
        if key.base == "command" and (key.number is not None or normal == "command"):
            return self._command(key)
        reserved = normal == "request_id" or normal.startswith(("common_", "uri_", "type_hint_"))
        if not normal or reserved or key.base in ("on_error", "retry"):
            return "other", ""
        tool = self._tools.get(self.tool_id or "")
        declared = declared_names(tool.properties) if tool is not None else {}
        whole = squash(normal)
        if normal == "comment" and whole not in declared:
            return "other", ""
        name = normal
        if key.number is not None and not (whole in declared and squash(key.base) not in declared):
            if key.number in self._steps:
                name = key.base
                if key.number != self._step:
                    return "other", ""
            elif self._numbered or not self._steps:
                # It may belong to a step that is still to come.
                return "other", ""
        return "argument", declared.get(squash(name), name)

    def _command(self, key: Key) -> tuple[Role, str]:
        self._step = 1 if key.number is None else key.number
        self._numbered = self._numbered or key.number is not None
        if self._step in self._steps:
            self._lose()
        self._steps.add(self._step)
        self._next_call(None)
        return "id", ""
