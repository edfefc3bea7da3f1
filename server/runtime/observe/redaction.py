"""Hiding what looks like a secret in texts and values that are kept: the audit log and the daemon's own log (D83).

``x-secret`` in a schema is the rule (``protocols/schema/secrets.py``); this is the net below it, for what nobody marked. It errs on the
side of hiding. Must not know where its results go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.patterns import lazy
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.observe.masking import shown_result, without

MAX_TEXT_CHARS = 2_000
MAX_ITEMS = 64
_MAX_SEARCHED = 65_536
_MAX_DEPTH = 8
_SHORTEST = 5
"""No pattern of a secret fits in fewer characters (``pwd=x``)."""
_SHORTEST_WORDS = 14
"""No pattern without one of ``=:@`` in it fits in fewer characters (``basic 12345678``)."""
_MAX_KEPT = 64
"""What is done to texts of up to so many characters is kept: names and versions come again with each call."""

_NAME = lazy(
    r"pass(?:word|wd|phrase|code)|(?<![a-z])pwd(?![a-z])|secret|(?:api|access|private|signing|encryption|ssh)[-_ ]?key"
    r"|credential|authorization|cookie|bearer|(?<![a-z])(?:auth|jwt|otp|token)(?![a-z])",
    re.IGNORECASE,
)
_CAMEL_NAME = lazy(r"[a-z0-9](?:Token|Auth|Pwd|Jwt|Otp)(?![a-z])")
_VALUE = lazy(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_]){0,3}[A-Za-z0-9]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|\b(?:npm|hf|pypi|dop_v1)[_-][A-Za-z0-9]{20,}",
    re.DOTALL,
)
_BEARER = lazy(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9+/=._~-]{8,}")
_USER_INFO = lazy(r"(?<=://)[^/\s@:]*:[^/\s@]+(?=@)")
_PAIR = lazy(
    r"(?i)(\b[\w-]*(?:password|passwd|passphrase|secret|api[-_]?key|access[-_]?key|private[-_]?key|token|pwd)[\w-]*[\"']?\s*[=:]\s*[\"']?)"
    r"[^\s\"'&,;<>]+"
)


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name is taken for a secret (``apiKey``, ``db_password``; not ``maxTokens``)."""
    short = name[:200]
    return _NAME.search(short) is not None or _CAMEL_NAME.search(short) is not None


def looks_secret(name: str, text: str) -> bool:
    """Whether a variable's value seems to be a secret: by its form, or by a name that says so of a text that is no plain word."""
    if len(text) < 8 or " " in text:
        return _VALUE.search(text[:_MAX_SEARCHED]) is not None
    mixed = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    is_place = text.startswith(("/", "./", "~")) or "://" in text
    return _VALUE.search(text[:_MAX_SEARCHED]) is not None or (mixed and not is_place and is_secret_name(name))


def redacted_text(text: str, secrets: Sequence[str] = ()) -> str:
    """A text of at most ``MAX_TEXT_CHARS`` characters with every known and every likely secret hidden."""
    whole = len(text)
    if secrets:
        text = without(text[:_MAX_SEARCHED], secrets)
    elif whole < _SHORTEST or (whole < _SHORTEST_WORDS and "=" not in text and ":" not in text and "@" not in text):
        return text
    text = _without_likely(text) if len(text) <= _MAX_KEPT else _hidden(text[:_MAX_SEARCHED])
    if len(text) > MAX_TEXT_CHARS or whole > _MAX_SEARCHED:
        return f"{text[:MAX_TEXT_CHARS]}… ({whole} characters)"
    return text


def _hidden(text: str) -> str:
    """A text with every likely secret hidden. Each is looked for only where it can be: most texts are names and paths."""
    if len(text) >= _SHORTEST_WORDS:
        text = _VALUE.sub(MASK, text)
        text = _BEARER.sub(rf"\1\2{MASK}", text)
    if "@" in text:
        text = _USER_INFO.sub(MASK, text)
    if "=" in text or ":" in text:
        text = _PAIR.sub(rf"\1{MASK}", text)
    return text


_without_likely = lru_cache(maxsize=1024)(_hidden)


class Redacted(dict[str, Any]):
    """Plain data from which all is hidden that looks like a secret; only secrets of its call may still stand in it."""


def redacted(value: Any, secrets: Sequence[str] = (), depth: int = 0) -> Any:
    """A copy of plain data that can be kept: secrets hidden, long texts and lists cut, what lies too deep left out."""
    if isinstance(value, str):
        return redacted_text(value, secrets)
    if value is None or isinstance(value, (int, float)) or (type(value) is Redacted and not secrets):
        return value
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        kept: dict[str, Any] = {}
        for name, inner in islice(cast("dict[Any, Any]", value).items(), MAX_ITEMS):
            told = str(name)
            hide = is_secret_name(told) and inner not in (None, "", MASK) and not isinstance(inner, bool)
            kept[redacted_text(told, secrets)] = MASK if hide else redacted(inner, secrets, depth + 1)
        if len(cast("dict[Any, Any]", value)) > MAX_ITEMS:
            kept["…"] = f"{len(cast('dict[Any, Any]', value)) - MAX_ITEMS} more"
        return kept
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        shown_items = [redacted(inner, secrets, depth + 1) for inner in items[:MAX_ITEMS]]
        return [*shown_items, f"… {len(items) - MAX_ITEMS} more"] if len(items) > MAX_ITEMS else shown_items
    return redacted_text(str(value), secrets)


# Results as the store holds them: without secrets, as JSON.


def stored_result(result: ExecutionResult, secrets: Sequence[str] = ()) -> bytes:
    """A result with ``secrets`` masked, as bytes. Never raises for what a tool gave."""
    shown = shown_result(result, secrets)
    try:
        return msgspec.json.encode(shown)
    except UnicodeEncodeError:
        return msgspec.json.encode(_storable(msgspec.to_builtins(shown)))


def read_result(data: bytes) -> ExecutionResult:
    """What ``stored_result`` wrote."""
    return msgspec.json.decode(data, type=ExecutionResult)


def storable(text: str) -> str:
    """A text without the lone surrogates that neither JSON nor a database can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {storable(name): _storable(item) for name, item in cast("dict[str, Any]", value).items()}
    return value
