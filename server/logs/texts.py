"""The text of a record: JSON on one line, of which only what leads to a field is looked at.

What a record holds besides is passed over and not kept. Must not know what is done with the text.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, cast

import msgspec

from tamis.server.logs.records import Problem

Path = tuple[str, ...]
USUAL: tuple[Path, ...] = (("text",), ("content",))
"""Where the text is looked for when no field is named, after the record itself."""
_INDEX = re.compile(r"-?(?:0|[1-9][0-9]{0,9})")
_PARTS = frozenset({"text", "output_text", "input_text"})
_BETWEEN = "\n\n"
"""Between the parts of one message, so that no two of them make a call together that neither has."""
_MISSING: Any = object()
_SHOWN = 80


class Found(NamedTuple):
    """The text of a record and the other field that was asked for, a text too, or empty."""

    text: str
    label: str = ""
    problem: Problem | None = None


class RecordError(Exception):
    """Why a record gave no text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def path_of(field: str) -> Path:
    """A field as it is named on a command line: ``message.content``, ``messages.-1.content``, or a JSON Pointer, ``/message/content``.

    Raises ``ValueError`` for an empty one.
    """
    if field.startswith("/"):
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in field[1:].split("/"))
    parts = tuple(field.split("."))
    if not all(parts):
        raise ValueError(f"'{field}' is no field: names with dots between them, or a JSON Pointer")
    return parts


class Texts:
    """What is taken of each record: the text at the first of ``paths`` that it has, and the label at ``label``."""

    def __init__(self, paths: tuple[Path, ...] = (), label: Path = ()) -> None:
        self.paths = paths or USUAL
        self._may_be_text = not paths
        self.label = label

    def of(self, record: bytes, line: int) -> Found:
        """The text of one record. Raises ``RecordError``."""
        try:
            return Found(*self._look(msgspec.Raw(record)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._tolerant(record, line)

    def _look(self, value: Any) -> tuple[str, str]:
        if self._may_be_text and _is_text(value):
            return _text_of(value, ()), ""
        members = _opened(value)
        for path in self.paths:
            found = _walk(members, path)
            if found is not _MISSING:
                break
        else:
            raise RecordError("noField", f"the record has no field {' or '.join(map(_named, self.paths))}")
        label = _walk(members, self.label) if self.label else _MISSING
        if label is not _MISSING:
            label = _value(label)
        return _text_of(found, path), label if isinstance(label, str) else ""

    def _tolerant(self, record: bytes, line: int) -> Found:
        """What a stricter look refuses: bytes that are no UTF-8, lone surrogates, ``NaN``."""
        problem = None
        try:
            text = record.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            text = record.decode("utf-8-sig", "replace")
            words = f"the record is not UTF-8 at byte {error.start}; such bytes are read as U+FFFD"
            problem = Problem(line, "notUtf8", words, lost=False)
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise RecordError("notJson", f"the record is not JSON: {error.msg} at character {error.pos}") from None
        except RecursionError:
            raise RecordError("notJson", "the record is nested too deeply") from None
        except ValueError as error:
            raise RecordError("notJson", f"the record is not JSON: {error}") from None
        return Found(*self._look(value), problem)


def _opened(value: Any) -> Any:
    """A level of JSON: members and items stay as they are written."""
    if not isinstance(value, msgspec.Raw):
        return value
    data = memoryview(value)
    at = 0
    while at < len(data) and data[at] in b" \t\r\n":
        at += 1
    begin = bytes(data[at : at + 1])
    if begin == b"{":
        return msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(value, type=list[msgspec.Raw] if begin == b"[" else Any)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, msgspec.Raw) and bytes(memoryview(value)[:1]) == b'"')


def _value(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _walk(value: Any, path: Path) -> Any:
    for name in path:
        value = _opened(value)
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(name, _MISSING)
        elif isinstance(value, list) and _INDEX.fullmatch(name):
            items, index = cast("list[Any]", value), int(name)
            value = items[index] if -len(items) <= index < len(items) else _MISSING
        else:
            return _MISSING
        if value is _MISSING:
            return value
    return value


def _text_of(value: Any, path: Path) -> str:
    """A text; a list of parts of one message, of which those that are no text are left out; ``null`` is no text."""
    value = _value(value)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        texts: list[str] = []
        for part in cast("list[Any]", value):
            if isinstance(part, str):
                texts.append(part)
                continue
            kind = cast("dict[str, Any]", part).get("type") if isinstance(part, dict) else None
            if not isinstance(kind, str):
                first = f"{_named((*path, '0', 'content'))}" if path else "FIELD"
                raise RecordError("notText", f"{_named(path)} is a list, and not one of texts; name an item: {first}")
            text = cast("dict[str, Any]", part).get("text")
            if kind in _PARTS and isinstance(text, str):
                texts.append(text)
        return _BETWEEN.join(texts)
    kind = "an object" if isinstance(value, dict) else "a boolean" if isinstance(value, bool) else "a number"
    raise RecordError("notText", f"{_named(path)} is {kind}, not a text")


def _named(path: Path) -> str:
    name = ".".join(path) if path else "the record"
    return f"'{name[:_SHOWN]}'" if path else name
