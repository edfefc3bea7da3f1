"""Writing ACTION blocks in either shape (seeds 000 §3.1 and 003 §3.1, ruling 12).

The canonical spelling: two blanks of indentation, one element per line, a value as plain text where that is exact, else as
one CDATA section, else with character references. Lists and objects are JSON text (seed 003 §3.1); without a schema, which
alone could read it, they are elements where elements say the same (ruling 15). Must not know how calls are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tamis.protocols.action.decode import as_cdata, escape
from tamis.protocols.base import PlainCall, WriteOptions, Written
from tamis.protocols.model import MAX_NAME_CHARS, MAX_STEPS, Json, escape_pointer
from tamis.protocols.writing.proof import carries, write_proved
from tamis.protocols.writing.values import Expectation, Expectations, excerpt, is_list, is_object, json_text, texts_only

_TAG = re.compile(r"[^\W\d][\w.:\-]*")
_ATTRIBUTE_BREAK = re.compile(r"[\r\n\t]")
_NEEDS_SECTION = re.compile(r"[<&\n]")
_NEEDS_REFERENCES = re.compile(r"\]\]>|<!\[CDATA\[|\r|\x7f")
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_FOREIGN = ("on_error", "retry", "request_id", "uris", "type_hints", "meta")
_MAX_INNER = 24
"""Levels of elements; deeper values are JSON text."""


def write_calls(calls: Sequence[PlainCall], options: WriteOptions) -> Written:
    """All calls in one block, in the shape of the options; see ``CallProtocol``.

    Without a schema a number, a boolean or ``null`` is written as its JSON text, and so is a list or an object that elements
    cannot carry; whoever has the schema reads them back equal. Order stands for ``step``.
    """
    form = _Inputs(options) if options.shape == "inputs" else _Tag(options)
    return write_proved(form, calls, options)


class _Tag:
    """The tool id as the tag, parameters as its children."""

    protocol = "action"
    title = "ACTION by tag"

    def __init__(self, options: WriteOptions) -> None:
        self.expectations = Expectations(options.tools, "markup")
        self._prefers_elements = options.elements

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """Names that are no tags, and what the protocol has no place for."""
        problems = carries(call, *_FOREIGN)
        if (why := self._no_tag(call.tool_id)) is not None:
            problems.append(("/toolId", f"the tool id '{call.tool_id}'", why))
        for name, value in call.args.items():
            path = f"/args/{escape_pointer(name)}"
            if (why := self._no_tag(name)) is not None:
                problems.append((path, f"parameter '{name}'", why))
            problems += _control(path, name, value)
        return problems

    def _no_tag(self, name: str) -> str | None:
        if _TAG.fullmatch(name) is None or len(name) > MAX_NAME_CHARS:
            return "it is no tag name; the shape with <inputs> carries it"
        if name.lower() in ("action", "inputs"):
            return "the protocol uses that tag itself; the shape with <inputs> carries it"
        return None

    def text(self, calls: Sequence[PlainCall]) -> str:
        """One block."""
        lines = ["<ACTION>"]
        for call in calls:
            if not call.args:
                lines.append(f"  <{call.tool_id}></{call.tool_id}>")
                continue
            expectation = self.expectations.of(call.tool_id)
            lines.append(f"  <{call.tool_id}>")
            for name, value in call.args.items():
                content = (self._typed(value) if self._prefers_elements else None) or _content(
                    expectation, name, value, "    "
                )
                lines.append(f"    <{name}>{content}</{name}>")
            lines.append(f"  </{call.tool_id}>")
        return "\n".join([*lines, "</ACTION>"])

    def _typed(self, value: Json) -> str | None:
        """A list or an object as elements, its numbers and truth values as plain text; None where JSON is the only way."""
        return _elements(value, "    ", 0, typed=True) if is_list(value) or is_object(value) else None


class _Inputs:
    """``<tool_id>`` and ``<inputs>``: any name, any text."""

    protocol = "action"
    title = "ACTION with <inputs>"

    def __init__(self, options: WriteOptions) -> None:
        self.expectations = Expectations(options.tools, "markup")

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """What neither an attribute nor a value can hold, and what the protocol has no place for."""
        problems = carries(call, *_FOREIGN)
        if _ATTRIBUTE_BREAK.search(call.tool_id) or _UNWRITABLE.search(call.tool_id):
            problems.append(
                ("/toolId", f"the tool id {excerpt(call.tool_id)}", "it holds a line break or a control character")
            )
        for name, value in call.args.items():
            path = f"/args/{escape_pointer(name)}"
            if _ATTRIBUTE_BREAK.search(name) or _UNWRITABLE.search(name):
                problems.append(
                    (path, f"parameter {excerpt(name)}", "its name holds a line break or a control character")
                )
            elif name != name.strip():
                problems.append((path, f"parameter {excerpt(name)}", "blanks around a name are no part of it"))
            elif len(name) > MAX_NAME_CHARS:
                problems.append((path, f"parameter {excerpt(name)}", f"a name has at most {MAX_NAME_CHARS} characters"))
            problems += _control(path, name, value)
        return problems

    def text(self, calls: Sequence[PlainCall]) -> str:
        """One block, with as many pairs of id and inputs as there are calls."""
        lines = ["<ACTION>"]
        for call in calls[: MAX_STEPS + 1]:
            lines.append(f"  <tool_id>{escape(call.tool_id)}</tool_id>")
            if not call.args:
                lines.append("  <inputs></inputs>")
                continue
            expectation = self.expectations.of(call.tool_id)
            lines.append("  <inputs>")
            for name, value in call.args.items():
                attribute = escape(name).replace('"', "&quot;")
                content = _content(expectation, name, value, "    ")
                lines.append(f'    <input name="{attribute}">{content}</input>')
            lines.append("  </inputs>")
        return "\n".join([*lines, "</ACTION>"])


def _control(path: str, name: str, value: Json) -> list[tuple[str, str, str]]:
    """Control characters in a text; in JSON text they are escapes."""
    if not isinstance(value, str) or (match := _UNWRITABLE.search(value)) is None:
        return []
    return [(path, f"the value of '{name}'", f"XML has no way to write U+{ord(match.group()):04X}")]


def _content(expectation: Expectation, name: str, value: Json, margin: str) -> str:
    """What stands between the tags of a parameter."""
    if isinstance(value, str):
        return _text(value)
    if not is_list(value) and not is_object(value):
        return _text(_scalar(expectation, name, value))
    text = json_text(value)
    if expectation.verdict(name, text, value) == "exact":
        return _text(text)
    if texts_only(value) and _UNWRITABLE.search(text) is None and (inner := _elements(value, margin, 0)) is not None:
        return inner
    return _text(text)


def has_elements(value: Json) -> bool:
    """Whether elements carry a list or an object of texts, so that it comes back without a schema."""
    return not isinstance(value, str) and texts_only(value) and _elements(value, "", 0) is not None


def _scalar(expectation: Expectation, name: str, value: Json) -> str:
    text = json_text(value)
    if isinstance(value, float) and value.is_integer() and not expectation.clean(name, text, value):
        whole = str(int(value))
        return whole if expectation.clean(name, whole, value) else text
    return text


def _text(value: str) -> str:
    """A text so that it reads back exactly (ruling 16)."""
    if not value:
        return ""
    edges = value[0].isspace() or value[-1].isspace()
    if _NEEDS_REFERENCES.search(value):
        return _references(value)
    return as_cdata(value) if edges or _NEEDS_SECTION.search(value) else value


def _references(value: str) -> str:
    """Character references for markup, for blanks at the edges, and for what XML would change (CR)."""
    start = len(value) - len(value.lstrip())
    end = max(start, len(value.rstrip()))
    parts = (_numbers(value[:start]), escape(value[start:end]), _numbers(value[end:]))
    return "".join(parts).replace("\r", "&#13;").replace("\x7f", "&#127;")


def _numbers(blanks: str) -> str:
    return "".join(f"&#{ord(char)};" for char in blanks)


def _elements(value: Json, margin: str, depth: int, *, typed: bool = False) -> str | None:
    """Lists and objects of texts as elements; None where elements would say something else (ruling 15).

    ``typed``: also of other values, whose types only a schema gives back.
    """
    if isinstance(value, str):
        return _text(value) if _UNWRITABLE.search(value) is None else None
    if typed and isinstance(value, bool | int | float):
        return json_text(value)
    if not value or depth >= _MAX_INNER:
        return None
    named: list[tuple[str, Json]]
    if is_list(value):
        named = [("item", item) for item in value]
    elif is_object(value) and set(value) != {"item"}:
        named = list(value.items())
    else:
        return None
    inner = margin + "  "
    lines: list[str] = []
    for name, member in named:
        if _TAG.fullmatch(name) is None or not name.isascii() or name.lower() == "action" or len(name) > MAX_NAME_CHARS:
            return None
        content = _elements(member, inner, depth + 1, typed=typed)
        if content is None:
            return None
        lines.append(f"\n{inner}<{name}>{content}</{name}>")
    return "".join(lines) + f"\n{margin}"
