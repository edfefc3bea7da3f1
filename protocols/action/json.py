"""A JSON object where the inputs of a call were due (AX161): its members as parameters with their places.

Members that are strings become texts, everything else keeps its JSON text (values are strings first, ruling 2). Must not
know schemas.
"""

from __future__ import annotations

import json
import re

from tamis.protocols.model import Param, Piece, Value

_BLANK = re.compile(r"[ \t\r\n]*+")
_DECODER = json.JSONDecoder(strict=False)
_MAX_MEMBERS = 1_000


def json_params(source: str, value: Value, body: str) -> dict[str, Param] | None:
    """The members of the object that ``body`` (the text of ``value``) is, or None when it is none."""
    params: dict[str, Param] = {}
    try:
        at = _skip(body, 0)
        if body[at] != "{":
            return None
        at = _skip(body, at + 1)
        while body[at] != "}":
            key_start = at
            if body[at] != '"':
                return None
            key, at = _DECODER.raw_decode(body, at)
            key_end = at
            at = _skip(body, at)
            if body[at] != ":":
                return None
            at = _skip(body, at + 1)
            start = at
            member, at = _DECODER.raw_decode(body, at)
            if not isinstance(key, str) or key in params or len(params) >= _MAX_MEMBERS:
                return None
            params[key] = _param(value, body, key, (key_start, key_end), member, start, at)
            at = _skip(body, at)
            if body[at] == ",":
                at = _skip(body, at + 1)
                if body[at] == "}":
                    return None
            elif body[at] != "}":
                return None
        if body[at + 1 :].strip():
            return None
    except (ValueError, IndexError, RecursionError):
        return None
    del source
    return params


def _skip(body: str, at: int) -> int:
    match = _BLANK.match(body, at)
    return match.end() if match is not None else at


def _param(value: Value, body: str, key: str, key_span: tuple[int, int], member: object, start: int, end: int) -> Param:
    name_span = value.source_span(*key_span)
    if isinstance(member, str):
        inner = value.source_span(start + 1, end - 1)
        written = body[start + 1 : end - 1]
        plain = written == member and inner[1] - inner[0] == len(member)
        pieces = (Piece(inner[0], inner[1], None if plain else member),) if member else ()
        part = Value("text", inner, pieces)
    else:
        inner = value.source_span(start, end)
        written = body[start:end]
        plain = inner[1] - inner[0] == len(written)
        part = Value("text", inner, (Piece(inner[0], inner[1], None if plain else written),))
    return Param(key, part, (name_span[0], inner[1]), name_span, key, "json")
