"""ACTION's blocks in an editor: what its elements mean, what a value stands in, how an argument is written behind the last one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tamis.protocols.editing import Editing, Place, card, place_behind, without_line
from tamis.protocols.model import Call, Edit, Param, Value
from tamis.protocols.patterns import lazy

_WORDS = {
    "action": ("an ACTION block", "Its elements are calls: a tool's id as tag name, or `<tool_id>` with `<inputs>`."),
    "tool_id": ("the tool to run", "Its id as text; `<inputs>` beside it holds the arguments."),
    "inputs": ("the arguments of a call", 'One `<input name="…">` for each.'),
    "input": ("one argument", "`name` says which; complex values are JSON text, best in CDATA."),
    "item": ("an item of a list", "An element with only `<item>` children is a list (ruling 15)."),
}


class ActionEditing(Editing):
    """See ``Editing``."""

    opens = "<action>"
    closes = lazy(r"(?i:</\s{0,8}action\s{0,8}>)")
    marker = "</?action>"
    begin = "<ACTION>"
    empty_call = "<ACTION>\n  {0}\n</ACTION>"
    call_title = "ACTION call, tool id as tag"
    keywords = frozenset(_WORDS)
    explained = (
        (
            lazy(r"(?i)<action>"),
            "**ACTION block**: the calls up to `</ACTION>`\n\nEach element in it is a call: the tag is the tool's id, its children are the arguments.",
        ),
        (lazy(r"(?i)</\s*action\s*>"), "**End of the ACTION block**"),
        (
            lazy(r"<!\[CDATA\["),
            "**CDATA**: text that is taken as it is\n\nNo entity is decoded up to `]]>`; one newline after the opening and the last one are not part of it (ruling 16).",
        ),
        (lazy(r"\]\]>"), "**End of CDATA**"),
    )

    def container(self, value: Value, source: str) -> str:
        """``cdata``, ``attribute`` or ``text``."""
        start = value.pieces[0].start if value.pieces else value.span[0]
        if value.cdata:
            return "cdata"
        before = source[max(0, start - 400) : start].rstrip()
        if before.endswith("<![CDATA["):
            return "cdata"
        return "attribute" if before.endswith(("='", '="')) else "text"

    def about_field(self, key: str, calls: Sequence[Call]) -> str:
        """What an element of the protocol means."""
        del calls
        about = _WORDS.get(key.strip("</> ").lower())
        return card(key, *about) if about else ""

    def insertion(self, text: str, call: Call, values: Mapping[str, str]) -> Edit | None:
        """Elements behind the last one, or in the call's empty element; None where a name is no tag."""
        place = place_behind(text, call)
        if call.shape == "inputs":
            parts = [f'<input name="{_attribute(name)}">{_escaped(value)}</input>' for name, value in values.items()]
            if not call.params:
                return _into_inputs(text, call, place, "".join(parts))
        else:
            if any(not re.fullmatch(r"[^\s<>/&\"'=]+", name) for name in values):
                return None
            parts = [f"<{name}>{_escaped(value)}</{name}>" for name, value in values.items()]
            if not call.params:
                return _into_tag(text, call, "".join(parts))
        own_line = not text[place.line : place.anchor[0]].strip()
        between = f"{place.eol}{place.margin}" if own_line else ""
        return Edit(place.anchor[1], place.anchor[1], "".join(f"{between}{part}" for part in parts))

    def removal(self, text: str, param: Param) -> Edit:
        """The element with its line."""
        return without_line(text, *param.span)


def _into_inputs(text: str, call: Call, place: Place, arguments: str) -> Edit | None:
    """The first arguments of a call with ``<tool_id>``: into its ``<inputs>``, or with one behind the id."""
    opener = re.compile(r"<inputs\s*(/?)>").search(text, place.anchor[1], call.span[1])
    whole = f"<inputs>{arguments}</inputs>"
    if opener is None:
        closed = re.compile(r"\s*</tool_id\s*>").match(text, place.anchor[1])
        own_line = text[place.line : place.anchor[0]].strip() == "<tool_id>"
        lead = f"{place.eol}{place.margin}" if own_line else ""
        return closed and Edit(closed.end(), closed.end(), lead + whole)
    if opener[1]:
        return Edit(*opener.span(), whole)
    return Edit(opener.end(), opener.end(), arguments)


def _into_tag(text: str, call: Call, arguments: str) -> Edit | None:
    """The first arguments of a call by tag, which may be an empty element."""
    closer = re.compile(r"\s*(/?)>").match(text, call.tool_span[1])
    if closer is None:
        return None
    if closer[1]:
        return Edit(*closer.span(), f">{arguments}</{text[slice(*call.tool_span)]}>")
    return Edit(closer.end(), closer.end(), arguments)


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(value: str) -> str:
    return _escaped(value).replace('"', "&quot;")


EDITING: Final = ActionEditing()
