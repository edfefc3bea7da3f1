"""How a secret may be spelled in what leaves: as it is, escaped, encoded, in other letters, by its lines.

Pure. Must not know where it is looked for.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from tamis.protocols.observation import plain, readable

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
    found: set[str] = set()
    for piece in _pieces(value):
        found.update(_forms(piece))
    if len(value.encode("utf-8", "surrogatepass")) > _MIME_BYTES:
        lines = base64.encodebytes(value.encode("utf-8", "surrogatepass")).decode().split()
        found.update(line for line in lines if len(line) >= MIN_LINE_CHARS)
    return frozenset(text for text in found if len(text) >= MIN_SECRET_CHARS)


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
    yield plain(text)
    yield readable(text)
    for ascii_only in (True, False):
        body = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield body
        yield body.replace("/", "\\/")
    yield from _represented(text)
    yield html.escape(text)
    yield html.escape(text, quote=False)
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
