"""What an editor needs of a protocol in a block that is written by hand: how it begins and ends, its fields, and the words on them.

A protocol brings an object of its own (``Extras.editing``), in a module that only an editor loads. Must not know tools beyond what is
handed over, or what is shown how.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from tamis.protocols.model import Call, Edit, Param, Value

KeyKind = Literal["tool", "modifier", "comment", ""]
"""What a key is that is no parameter: it names the tool, it says how the call is run or shown, it is a note; empty for none of these."""
Explained = tuple[re.Pattern[str], str]
"""A marker or mark, and what it means as Markdown."""


class Step(msgspec.Struct, frozen=True):
    """The step of a block that a key is written in: the numbers of all steps, and how keys of this one end."""

    numbers: tuple[int, ...] = ()
    suffix: str = ""


class Fields(msgspec.Struct, frozen=True):
    """How a protocol writes ``key: value`` fields."""

    head: re.Pattern[str]
    tail: re.Pattern[str]
    key_before_head: re.Pattern[str]
    typing_key: re.Pattern[str]
    pair: re.Pattern[str]
    opening: re.Pattern[str]
    """A key with its colon and the beginning of the opening mark, at the cursor."""
    tool_key: str
    """The key of the tool's name."""
    steps: bool
    """Whether a block holds numbered steps, each with a tool of its own."""
    marks: tuple[str, str]
    """What a value stands between, as it is proposed."""
    between: str
    """What parts two fields."""


class Editing:
    """A protocol's blocks in an editor. What a protocol does not bring is as here: nothing is proposed and nothing is said."""

    opens: str = ""
    """Pattern of the opening marker, in any letter case; empty where completion looks for no block."""
    closes: re.Pattern[str]
    """The closing marker; only looked for behind ``opens``."""
    marker: str = ""
    """Pattern of a marker, in any letter case, that may stand alone and is explained there; empty where there is none."""
    close: str = ""
    """The closing marker as it is proposed once its beginning is typed; empty where it is not."""
    begin: str = ""
    """The opening marker as it is proposed; empty where no block is."""
    empty_call: str = ""
    """A whole block with ``{0}`` for what comes first."""
    call_title: str = ""
    """What such a block is, for lists."""
    json_block: tuple[re.Pattern[str], re.Pattern[str]] | None = None
    """Around a call that is JSON: the opening and the closing marker."""
    fields: Fields | None = None
    """How its fields are written; None where a call has another form."""
    keywords: frozenset[str] = frozenset()
    """Names of the protocol's own elements."""
    explained: tuple[Explained, ...] = ()
    """Its markers and marks."""
    forbidden: Mapping[str, re.Pattern[str]] = {}
    """By container: what would end the value, or begin another one, inside it."""

    def container(self, value: Value, source: str) -> str:
        """What a value's characters stand in: ``json``, ``text``, ``attribute``, ``cdata``, or one of the protocol's own.

        Those are named by the protocol's id, or by it and what follows a ``-``."""
        del value, source
        return "json"

    def marks(self, container: str) -> tuple[str, str]:
        """What a value in that container stands between."""
        del container
        return "", ""

    def container_behind(self, head: str) -> str:
        """The container of a value behind an opening mark as it is written."""
        del head
        return ""

    def about_field(self, key: str, calls: Sequence[Call]) -> str:
        """What a key means that is no parameter, as Markdown; empty for one that means nothing."""
        del key, calls
        return ""

    def key_kind(self, key: str) -> KeyKind:
        """What a key is that is no parameter."""
        del key
        return ""

    def side_fields(self, step: Step, named: Iterable[tuple[str, object]], taken: frozenset[str]) -> dict[str, str]:
        """The protocol's own fields that may follow, with what each is for.

        ``named`` are the tool's parameters with their schemas, ``taken`` the names that are proposed already.
        """
        del step, named, taken
        return {}

    def side_values(self, key: str) -> tuple[tuple[str, str], ...]:
        """The values of one of those fields, each with what it means."""
        del key
        return ()

    def insertion(self, text: str, call: Call, values: Mapping[str, str]) -> Edit | None:
        """Where and how arguments are written behind the last one, in the call's own layout; None where they cannot be."""
        del text, call, values
        return None

    def removal(self, text: str, param: Param) -> Edit | None:
        """An argument with the line that it has for itself; None where arguments are not taken out one by one."""
        del text, param
        return None

    def renamed_key(self, raw: str, name: str, new: str) -> str:
        """A key that speaks of the parameter ``name`` with its new name; prefix, number and style stay as they are written."""
        del raw, name
        return new


def card(name: str, title: str, text: str, more: str = "") -> str:
    """What is said of one of a protocol's own words, as Markdown."""
    return f"**{name.strip()}**: {title}\n\n{text}" + (f"\n\n{more}" if more else "")


class Place(msgspec.Struct, frozen=True):
    """Where an argument is written: behind ``anchor``, on lines that begin with ``margin`` and end with ``eol``."""

    anchor: tuple[int, int]
    line: int
    margin: str
    eol: str


def place_behind(text: str, call: Call) -> Place:
    """The place behind the last argument of a call, or behind its tool."""
    anchor = call.params[-1].span if call.params else call.tool_span
    line = text.rfind("\n", 0, anchor[0]) + 1
    lead = re.match(r"[ \t]*", text[line : anchor[0]])
    return Place(anchor, line, lead[0] if lead else "", "\r\n" if "\r\n" in text else "\n")


def line_end(text: str, at: int, marker: str = "\n") -> int:
    """The end of the line, or of what stands on it before a marker."""
    end = len(text)
    for mark in ("\r", "\n", marker):
        position = text.find(mark, at)
        end = position if 0 <= position < end else end
    return end


def without_line(text: str, start: int, end: int) -> Edit:
    """A stretch taken out, with its line where it has one for itself."""
    line = text.rfind("\n", 0, start) + 1
    stop = line_end(text, end)
    if not text[line:start].strip() and not text[end:stop].strip():
        after = stop + (2 if text[stop : stop + 2] == "\r\n" else 1)
        return Edit(line, min(after, len(text)), "")
    return Edit(start, end, "")
