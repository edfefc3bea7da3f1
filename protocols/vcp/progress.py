"""The call that is being written in VCP, for a display: where a field's mark ends it, and what its key means.

Must not know the reader's findings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import ToolHint
from tamis.protocols.pairs.walk import Dialect
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.streaming.partial_pairs import KEY_THERE, PairProgress, PairSigns, Role
from tamis.protocols.tam.keys import squash, visible
from tamis.protocols.vcp.calls import META
from tamis.protocols.vcp.dialect import DIALECTS, dialect_of

_ENDING = r"(?:[「｢『{｛【［\[〔《〈(（<＜][^「｢『{｛【［\[〔《〈(（<＜\r\n]{0,12}|末」?)"
_SIGNS = PairSigns(
    loud=lazy(r"[「｢『{｛【［\[〔《〈(（<＜>末\r\n,，;；、|]"),
    sign=lazy(r"[「<＜《]"),
    held=lazy(rf"{_ENDING}?[\s,，;；、|]{{0,200}}{KEY_THERE}"),
    between=lazy(rf"[\s{IN_LAYOUT},，;；、|]*+"),
    head=lazy(r"(?i:「始(?:ESCAPE|exp)?」)"),
    odd_line=lazy("[始末]"),
    marked_end=lazy("「"),
    doubled_head="「始",
)
_NUMBERED = lazy(r"(.*?[^0-9])([1-9][0-9]{0,8})", re.S)


class VcpProgress(PairProgress):
    """A block of VCP."""

    def __init__(self, tools: Mapping[str, ToolHint]) -> None:
        super().__init__(DIALECTS[""], _SIGNS, tools)
        self._steps: set[int] = set()
        self._step = 0

    def _dialect_of(self, marker: str) -> Dialect:
        return dialect_of(marker)

    def _tail(self, text: str, at: int) -> Span | Literal["wait"] | None:
        tail = self._d.families[self._family].tail
        written = text[at : at + len(tail)]
        if written == tail or (self._family != "plain" and written.casefold() == tail.casefold()):
            return at, at + len(tail)
        half = at + len(written) == len(text) and tail.casefold().startswith(written.casefold())
        return "wait" if half else None

    def _role_of(self, raw: str) -> tuple[Role, str]:
        key = visible(raw)
        if squash(key) == "toolname":
            self._next_call(None)
            return "id", ""
        tool = self._tools.get(self.tool_id or "")
        if key in META and (tool is None or key not in tool.properties):
            return "other", ""
        match = _NUMBERED.fullmatch(key)
        number = int(match[2]) if match is not None else 0
        if match is not None and match[1] == "command" and number not in self._steps:
            self._steps.add(number)
            self._step = number
            self._next_call(self.tool_id)
        if match is None or number not in self._steps:
            return "argument", key
        return ("argument", match[1]) if number == self._step else ("other", "")
