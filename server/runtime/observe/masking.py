"""The one filter of what leaves: the values that ``x-secret`` marks, and the secrets that a script was given, are hidden in every text.

A secret is looked for in all its spellings (``masking.py``). Values shorter than ``MIN_SECRET_CHARS`` are not looked for. Without a
secret nothing is done. Must not know schemas (``protocols/schema/secrets.py``) nor where its results go.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, Problem
from tamis.protocols.observation import plain, readable
from tamis.protocols.schema.secrets import MASK

# Finding the spellings of secrets in texts: all places at once, in time linear in the text, however many there are. Pure.


Span = tuple[int, int]
ALL = ""
"""A needle that stands for "everything": nothing of any text is to be shown."""
_FEW = 160
"""More needles than these are found by their beginnings, at a price that does not depend on how many they are."""
_ANCHOR = 8
_TRIES = 256


class Finder:
    """What is looked for; ``needles`` are not empty."""

    def __init__(self, needles: Sequence[str]) -> None:
        self.longest = max(map(len, needles), default=0)
        many = len(needles) > _FEW
        self._each = [needle for needle in needles if not many or len(needle) < _ANCHOR]
        self._anchors: dict[str, dict[int, set[str]]] = {}
        self._begun: set[str] = set()
        for needle in needles if many else ():
            if len(needle) >= _ANCHOR:
                self._anchors.setdefault(needle[:_ANCHOR], {}).setdefault(len(needle), set()).add(needle)
        for anchor in self._anchors:
            self._begun.update(anchor[:end] for end in range(1, _ANCHOR))

    def spans(self, text: str) -> list[Span]:
        """Where needles stand, in order; those that lie over each other are one."""
        spans: list[Span] = []
        for needle in self._each:
            if needle in text:
                spans.extend(_places(text, needle))
        if self._anchors:
            spans.extend(self._by_anchor(text))
        return merged(spans)

    def _by_anchor(self, text: str) -> list[Span]:
        spans: list[Span] = []
        anchors = self._anchors
        for at in range(len(text) - _ANCHOR + 1):
            bucket = anchors.get(text[at : at + _ANCHOR])
            if bucket is not None:
                spans.extend((at, at + size) for size, needles in bucket.items() if text[at : at + size] in needles)
        return spans

    def begins(self, text: str) -> int:
        """Where the end of a text may be the beginning of a needle that is not whole yet, at the earliest; else its end."""
        first = min((_begins(text, needle) for needle in self._each), default=len(text))
        if not self._anchors:
            return first
        for at in range(max(0, len(text) - self.longest + 1), first):
            begun = text[at : at + _ANCHOR]
            if len(begun) < _ANCHOR:
                if begun in self._begun:
                    return at
            elif (bucket := self._anchors.get(begun)) is not None and max(bucket) > len(text) - at:
                return at
        return first


def merged(spans: list[Span]) -> list[Span]:
    """Spans in order, those that lie over each other as one."""
    if len(spans) < 2:
        return spans
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _places(text: str, needle: str) -> list[Span]:
    """Every place of one needle; a run of places that lie over each other regularly is one span."""
    spans: list[Span] = []
    size = len(needle)
    # a needle can begin again inside of itself only after a whole period
    period = (needle + needle).find(needle, 1)
    ending = needle[size - period :]
    at = text.find(needle)
    while at >= 0:
        start = at
        while period < size and text.startswith(ending, at + size):
            at += period
        spans.append((start, at + size))
        at = text.find(needle, at + 1)
    return spans


def _begins(text: str, needle: str) -> int:
    place = max(0, len(text) - len(needle) + 1)
    for _ in range(_TRIES):
        place = text.find(needle[0], place)
        if place < 0:
            return len(text)
        if needle.startswith(text[place:]):
            return place
        place += 1
    # so many false beginnings are no log; it waits for what follows
    return place


# How a secret may be spelled in what leaves: as it is, escaped, encoded, in other letters, by its lines. Pure.


MIN_SECRET_CHARS = 4
"""Shorter texts stand everywhere and cannot be told apart."""
MIN_LINE_CHARS = 8
"""Lines of a secret that are at least so long are secrets themselves."""
PIECE_CHARS = 1_024
"""A longer value is looked for by its pieces of this length, so that what has to be held back stays short."""
_OVERLAP = 16
_MIME_BYTES = 57
"""So many bytes stand in a line of base64 as MIME writes it."""
# What `encodeURIComponent`, `encodeURI` and Python leave as it is.
_URL_SAFE = ("/", "", "!'()*", ";,/?:@&=+$!'()*#")
_ESCAPE = re.compile("%[0-9A-F]{2}")


def spellings(value: str) -> frozenset[str]:
    """The spellings of a value that have enough characters to be looked for."""
    if len(value) < MIN_SECRET_CHARS:
        return frozenset()
    texts: set[str] = set()
    for piece in _pieces(value):
        texts.update(_forms(piece))
    if len(value.encode("utf-8", "surrogatepass")) > _MIME_BYTES:
        lines = base64.encodebytes(value.encode("utf-8", "surrogatepass")).decode().split()
        texts.update(line for line in lines if len(line) >= MIN_LINE_CHARS)
    return frozenset(text for text in texts if len(text) >= MIN_SECRET_CHARS)


def _pieces(value: str) -> Iterator[str]:
    yield from _windows(value)
    lines = value.splitlines()
    if len(lines) > 1:
        for line in lines:
            for text in {line, line.strip()}:
                if len(text) >= MIN_LINE_CHARS:
                    yield from _windows(text)


def _windows(text: str) -> Iterator[str]:
    """A text, or pieces of it that lie over each other, so that nothing of it is between them."""
    if len(text) <= PIECE_CHARS:
        yield text
        return
    for start in range(0, len(text) - _OVERLAP, PIECE_CHARS - _OVERLAP):
        # the last piece is whole too: a short rest would be found where it means nothing
        start = min(start, len(text) - PIECE_CHARS)
        yield text[start : start + PIECE_CHARS]


def _forms(text: str) -> Iterator[str]:
    for cased in {text, text.upper(), text.lower()}:
        yield from _escaped(cased)
    data = text.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    yield from _base64(data)


def _escaped(text: str) -> Iterator[str]:
    yield text
    if text.isascii() and text.isalnum():
        # every escape leaves such a text as it is
        return
    from html import escape

    yield plain(text)
    yield readable(text)
    for ascii_only in (True, False):
        body = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield body
        yield body.replace("/", "\\/")
    yield from _represented(text)
    yield escape(text)
    yield escape(text, quote=False)
    data = text.encode("utf-8", "surrogatepass")
    for quoted in (*(quote(data, safe) for safe in _URL_SAFE), quote_plus(data)):
        yield quoted
        yield _ESCAPE.sub(lambda match: match[0].lower(), quoted)


def _represented(text: str) -> Iterator[str]:
    """As ``repr`` and ``ascii`` show it inside of any other text: which quotes they escape depends on that text."""
    for show in (repr, ascii):
        # a double quote in front makes single quotes the outer ones
        parts = [show('"' + part)[2:-1] for part in text.split("'")]
        yield "'".join(parts)
        yield "\\'".join(parts)
    data = text.encode("utf-8", "surrogatepass")
    parts = [repr(b'"' + part)[3:-1] for part in data.split(b"'")]
    yield "'".join(parts)
    yield "\\'".join(parts)


def _base64(data: bytes) -> Iterator[str]:
    """The characters of base64 that depend on nothing beside the data, wherever it begins among the others."""
    whole = base64.b64encode(data).decode()
    yield from (whole, whole.translate(_URL_LETTERS))
    for before, begins in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(before) + data).decode()
        sure = encoded[begins : 8 * (before + len(data)) // 6]
        yield from (sure, sure.translate(_URL_LETTERS))


_URL_LETTERS = str.maketrans("+/", "-_")


MAX_SECRETS = 1_000
"""Of a call with more secret values, nothing that the script wrote is shown (F18)."""
_KEPT_FINDERS = 32
_CUT = re.compile("…")


def secret_texts(args: object, masked: object) -> tuple[str, ...]:
    """How the values that ``x-secret`` hides may be spelled, found where the masked arguments differ; the longest first."""
    if args is masked:
        # nothing was masked
        return ()
    values: set[str] = set()
    stack: list[tuple[Any, Any]] = [(args, masked)]
    while stack:
        real, shown = stack.pop()
        if isinstance(real, dict):
            below = cast("dict[str, Any]", real)
            stack.extend(
                (below[key], cast("dict[str, Any]", shown).get(key) if isinstance(shown, dict) else shown)
                for key in below
            )
        elif isinstance(real, list):
            items = cast("list[Any]", real)
            stack.extend(
                zip(items, cast("list[Any]", shown) if isinstance(shown, list) else [shown] * len(items), strict=False)
            )
        elif real != shown and isinstance(real, (str, int, float)) and not isinstance(real, bool):
            values.add(real if isinstance(real, str) else json.dumps(real))
    return spelled(values)


def spelled(values: Iterable[str]) -> tuple[str, ...]:
    """All spellings of secret values, the longest first; of too many values ``ALL``, which hides everything."""
    known = {value for value in values if len(value) >= MIN_SECRET_CHARS}
    if len(known) > MAX_SECRETS:
        return (ALL,)
    return together((), (text for value in known for text in spellings(value)))


def together(some: Sequence[str], more: Iterable[str]) -> tuple[str, ...]:
    """Two sets of spellings as one, the longest first."""
    return tuple(sorted({*some, *more}, key=len, reverse=True))


def hides_all(secrets: Sequence[str]) -> bool:
    """Whether nothing at all is shown."""
    return bool(secrets) and secrets[-1] == ALL


_finders: dict[int, tuple[Sequence[str], Finder]] = {}


def _finder(secrets: Sequence[str]) -> Finder:
    """The finder of these spellings; one call asks for the same again and again."""
    known = _finders.get(id(secrets))
    if known is not None and known[0] is secrets:
        return known[1]
    finder = Finder(secrets)
    if isinstance(secrets, tuple):
        while len(_finders) >= _KEPT_FINDERS:
            _finders.pop(next(iter(_finders)), None)
        _finders[id(secrets)] = (secrets, finder)
    return finder


def without(text: str, secrets: Sequence[str], *, cut: bool = False) -> str:
    """A text with every secret masked, and every beginning of one that a message cut with ``…``.

    ``cut``: the text's end was cut off, so that a beginning of a secret there is masked too.
    """
    if not secrets or not text:
        return text
    if hides_all(secrets):
        return MASK
    finder = _finder(secrets)
    while True:
        spans = finder.spans(text)
        begun = list(_begun(text, finder, cut=cut))
        if begun:
            spans = merged([*spans, *begun])
        if not spans:
            return text
        before = len(text)
        text = _hidden(text, spans)
        if len(text) >= before or not any("*" in secret for secret in secrets):
            # only a secret with an asterisk can come to stand where another was hidden
            return text


def _begun(text: str, finder: Finder, *, cut: bool) -> Iterator[tuple[int, int]]:
    """Beginnings of secrets in front of each sign that something was cut off."""
    ends = [match.start() for match in islice(_CUT.finditer(text), MAX_SECRETS)]
    for end in (*ends, len(text)) if cut else ends:
        start = max(0, end - finder.longest)
        at = start + finder.begins(text[start:end])
        if end - at >= MIN_SECRET_CHARS:
            yield at, end


def _hidden(text: str, spans: Sequence[tuple[int, int]]) -> str:
    shown: list[str] = []
    at = 0
    for start, end in spans:
        shown += (text[at:start], MASK)
        at = end
    return "".join((*shown, text[at:]))


def without_in(value: Any, secrets: Sequence[str]) -> Any:
    """A JSON value with every secret masked in its texts and names, and numbers that are one; the same object without any."""
    if not secrets:
        return value
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, list):
        return [without_in(item, secrets) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {without(name, secrets): without_in(item, secrets) for name, item in members}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        shown = json.dumps(value)
        whole = [(0, len(shown))]
        return MASK if hides_all(secrets) or _finder(secrets).spans(shown) == whole else value
    return value


def result_without(result: ExecutionResult, secrets: Sequence[str]) -> ExecutionResult:
    """A copy of a result whose output and error have every secret masked, to write an observation of; the result itself is the host's."""
    if not secrets:
        return result
    output, parts, error = result.output, result.parts, result.error
    if output is not UNSET:
        output = without_in(output, secrets)
    if parts is not UNSET:
        parts = without_in(parts, secrets)
    if error is not UNSET:
        details = error.details
        if details is not UNSET and details.text is not UNSET:
            details = msgspec.structs.replace(details, text=without(details.text, secrets))
        error = msgspec.structs.replace(error, message=without(error.message, secrets), details=details)
    return msgspec.structs.replace(result, output=output, parts=parts, error=error)


def shown_result(result: ExecutionResult, secrets: Sequence[str]) -> ExecutionResult:
    """A copy of a result as it may be stored: every secret masked wherever a tool or a check could have put it."""
    return left_result(result_without(result, secrets), secrets, ()) if secrets else result


def left_result(result: ExecutionResult, secrets: Sequence[str], granted: Sequence[str]) -> ExecutionResult:
    """A copy of a result as it leaves: no secret in any text but the output's, and there none of ``granted``, which no caller knows.

    The same object without secrets.
    """
    if not secrets:
        return result
    changed = {name: _struct_without(getattr(result, name), secrets) for name in _TOLD}
    if granted and result.output is not UNSET:
        changed["output"] = without_in(result.output, granted)
    if granted and result.parts is not UNSET:
        changed["parts"] = without_in(result.parts, granted)
    return msgspec.structs.replace(result, **changed)


# what is asked of a person is made of masked arguments, and its token is no text
_TOLD = ("error", "logs", "observation", "permissions")
_WORDS = frozenset(("type", "code", "slug", "kind", "status", "severity", "secret", "setting", "limit", "signal"))
"""Fields that hold words of ours, never of a tool's."""


def problems_without(problems: list[Problem], secrets: Sequence[str]) -> list[Problem]:
    """Problems with every secret masked in what they say of a value."""
    return cast("list[Problem]", _struct_without(problems, secrets)) if secrets else problems


def _struct_without(value: Any, secrets: Sequence[str]) -> Any:
    """Data of the wire with every secret masked in its texts."""
    if isinstance(value, msgspec.Struct):
        changes = {
            name: _struct_without(getattr(value, name), secrets)
            for name in value.__struct_fields__
            if name not in _WORDS
        }
        return msgspec.structs.replace(value, **changes)
    if isinstance(value, list):
        return [_struct_without(item, secrets) for item in cast("list[Any]", value)]
    # a number is a count or a place, never a tool's
    return value if isinstance(value, (int, float)) else without_in(value, secrets)


class MaskedStreams:
    """A script's streams while they arrive, told piece by piece with every secret masked, also one that lies across pieces.

    What may be the beginning of a secret is held back until more has come, or the end.
    """

    def __init__(self, secrets: Sequence[str], tell: Callable[[str, str], None]) -> None:
        self._secrets = tuple(secrets)
        self._tell = tell
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._held: dict[str, str] = {}
        self._hide: dict[str, int] = {}
        """How much of what is held back belongs to a secret whose mask was told already."""

    def piece(self, stream: str, data: bytes) -> None:
        """More of a stream."""
        decoder = self._decoders.setdefault(stream, codecs.getincrementaldecoder("utf-8")("replace"))
        if hides_all(self._secrets):
            self._held[stream] = MASK if data else ""
            return
        self._show(stream, self._held.get(stream, "") + decoder.decode(data), ended=False)

    def end(self) -> None:
        """The streams have ended: what was held back is told."""
        for stream, decoder in self._decoders.items():
            rest = self._held.pop(stream, "") + decoder.decode(b"", final=True)
            if hides_all(self._secrets):
                if rest:
                    self._tell(stream, MASK)
            elif rest:
                self._show(stream, rest, ended=True)

    def _show(self, stream: str, text: str, *, ended: bool) -> None:
        """Tells what is certain, and holds back the rest, which may be the beginning of a secret."""
        if not self._secrets:
            if text:
                self._tell(stream, text)
            return
        finder = _finder(self._secrets)
        hide = self._hide.pop(stream, 0)
        certain = len(text) if ended else finder.begins(text)
        spans = finder.spans(text)
        if hide:
            spans = merged([(0, hide), *spans])
        shown: list[str] = []
        at = 0
        for start, end in spans:
            if start >= certain:
                break
            shown.append(text[at:start])
            if not (hide and start == 0):
                shown.append(MASK)
            at = end
        if at > certain:
            self._hide[stream] = at - certain
        elif hide > certain:
            self._hide[stream] = hide - certain
        else:
            shown.append(text[at:certain])
        self._held[stream] = text[certain:]
        if told := "".join(shown):
            self._tell(stream, told)
