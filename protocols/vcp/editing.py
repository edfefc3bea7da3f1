"""VCP's blocks in an editor: its own fields, what they mean, how an argument is written behind the last one (seed 001 §3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tamis.protocols.editing import Editing, Fields, KeyKind, Step, card, line_end, place_behind, without_line
from tamis.protocols.model import Call, Edit, Param, Value
from tamis.protocols.patterns import lazy
from tamis.protocols.suggest import normalised
from tamis.protocols.vcp.calls import META

_SIDE_FIELDS = {
    "maid": "who calls; an ordinary argument",
    "archery": "meta: run without waiting for the result",
    "ink": "meta: how the result is shown",
    "river": "meta: the context that goes along",
    "vref": "meta: a reference into the context",
    "timely_contact": "meta: when the call shall run",
    "tool_password": "meta: the password of a protected tool",
    "requireAdmin": "meta: the code of an administrator",
}
"""VCP's own fields (ruling 28)."""
_FIELDS = {
    "toolname": (
        "the tool to run",
        "Its id, an alias, its `vcpCommand`, or `toolId_methodName` of a service (ruling 30).",
    ),
    **dict.fromkeys(("archery", "ink", "river", "vref"), ("a field of the host", "Read by the host, not by the tool.")),
    "timelycontact": ("a field of the host", "Tells the host when to run the call."),
    "toolpassword": ("a field of the host", "Read by the host to let the call pass; it is not handed to the tool."),
    "requireadmin": ("a field of the host", "Read by the host to ask an administrator; it is not handed to the tool."),
}
_META_TEXT = "Meta fields go to the call's `meta` and not to the tool, unless its schema declares them (ruling 28)."
_META_KEYS = frozenset(normalised(name) for name in META)
_MARKS = {"vcp": ("「始」", "「末」"), "vcp-escape": ("「始ESCAPE」", "「末ESCAPE」")}
_FIELDS_WRITTEN = Fields(
    head=lazy("「始(?:ESCAPE|exp)?」"),
    tail=lazy("「末(?:ESCAPE|exp)?」"),
    key_before_head=lazy(r"([\w\-]{1,256})[ \t]*[:：][ \t]*\Z"),
    typing_key=lazy(r"(?:(?m:^)|[,，」])[ \t]*([\w\-]{0,256})\Z"),
    pair=lazy(r"([\w\-]{1,256})[ \t]*[:：][ \t]*「始(?:ESCAPE|exp)?」((?s:.*?))(?:「末(?:ESCAPE|exp)?」|$)"),
    opening=lazy(r"(?:(?m:^)|[,，」])[ \t]*([\w\-]{1,256})[ \t]*[:：][ \t]*(「?始?)\Z"),
    tool_key="tool_name",
    steps=False,
    marks=_MARKS["vcp"],
    between=",\n",
)


class VcpEditing(Editing):
    """See ``Editing``."""

    opens = r"<{2,4}\[tool_request(?:_?exp)?\]>{2,4}"
    closes = lazy(r"(?i:<{2,4}\[end_tool_request(?:_?exp)?\]>{2,4})")
    marker = r"<{2,4}\[(?:end_)?tool_request(?:_?exp)?\]>{2,4}"
    begin = "<<<[TOOL_REQUEST]>>>"
    close = "<<<[END_TOOL_REQUEST]>>>"
    empty_call = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」{0}「末」\n<<<[END_TOOL_REQUEST]>>>"
    call_title = "VCP call"
    fields = _FIELDS_WRITTEN
    forbidden: Mapping[str, re.Pattern[str]] = {
        "vcp": lazy(r"「(?:末|始)|END_TOOL_REQUEST"),
        "vcp-escape": lazy(r"「(?:末|始)ESCAPE」"),
    }
    explained = (
        (
            lazy(r"(?i)<{2,4}\[tool_request\]>{2,4}"),
            "**VCP call**: the fields up to `<<<[END_TOOL_REQUEST]>>>`\n\nFields are `key:「始」value「末」`, separated by commas or lines; `tool_name` says which tool.",
        ),
        (
            lazy(r"(?i)<{2,4}\[tool_request_?exp\]>{2,4}"),
            "**VCP call, `exp` variant**: an extension of upstream\n\nIts marks carry `exp` as well, so that values may hold the plain ones.",
        ),
        (
            lazy(r"(?i)<{2,4}\[end_tool_request(?:_?exp)?\]>{2,4}"),
            "**End of the VCP call**\n\nInside a closed `「始」…「末」` it is text.",
        ),
        (
            lazy(r"「始ESCAPE」"),
            "**Opening mark of a VCP value, ESCAPE variant**: it ends at `「末ESCAPE」`\n\nThe value may hold `「末」` and end markers as text.",
        ),
        (lazy(r"「末ESCAPE」"), "**Closing mark of a VCP value, ESCAPE variant**"),
        (lazy(r"「始(?:exp)?」"), "**Opening mark of a VCP value**: it ends at `「末」`"),
        (lazy(r"「末(?:exp)?」"), "**Closing mark of a VCP value**"),
    )

    def container(self, value: Value, source: str) -> str:
        """``vcp``, or ``vcp-escape`` behind the mark of the ESCAPE variant."""
        start = value.pieces[0].start if value.pieces else value.span[0]
        return "vcp-escape" if source.rfind("「始ESCAPE」", max(0, start - 40), start) >= 0 else "vcp"

    def container_behind(self, head: str) -> str:
        """``vcp``, or ``vcp-escape`` behind the mark of the ESCAPE variant."""
        return "vcp-escape" if "ESCAPE" in head.upper() else "vcp"

    def marks(self, container: str) -> tuple[str, str]:
        """Those of the container."""
        return _MARKS[container]

    def about_field(self, key: str, calls: Sequence[Call]) -> str:
        """What a field of the protocol or of its host means."""
        del calls
        name = normalised(key)
        about = _FIELDS.get(name)
        return card(key, *about, "" if name == "toolname" else _META_TEXT) if about else ""

    def key_kind(self, key: str) -> KeyKind:
        """The tool's name and the host's fields."""
        name = normalised(key)
        return "tool" if name == "toolname" else "modifier" if name in _META_KEYS else ""

    def side_fields(self, step: Step, named: Iterable[tuple[str, object]], taken: frozenset[str]) -> dict[str, str]:
        """The host's fields that are not the name of a parameter."""
        del step, named
        return {key: about for key, about in _SIDE_FIELDS.items() if normalised(key) not in taken}

    def insertion(self, text: str, call: Call, values: Mapping[str, str]) -> Edit:
        """Each argument on a line of its own, behind a comma."""
        place = place_behind(text, call)
        end = line_end(text, place.anchor[1], "<<<[")
        comma = "" if "," in text[place.anchor[1] : end] else ","
        lines = (f"{place.eol}{place.margin}{name}:「始」{value}「末」" for name, value in values.items())
        return Edit(end, end, comma + ",".join(lines))

    def removal(self, text: str, param: Param) -> Edit:
        """The field with its comma and its line."""
        start, end = param.span
        comma = re.compile(r"[ \t]*,").match(text, end)
        return without_line(text, start, comma.end() if comma else end)

    def renamed_key(self, raw: str, name: str, new: str) -> str:
        """The key with the new name; a batch numbers its keys: ``text2``."""
        return new + raw[len(name) :] if raw.startswith(name) and raw[len(name) :].isdigit() else new


EDITING: Final = VcpEditing()
