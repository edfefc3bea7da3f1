"""String formats of JSON Schema (VA438): hints, never refusals. Must not know schemas or arguments."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date, time

_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DURATION = re.compile(r"P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")


def _date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _clock(text: str) -> bool:
    try:
        # A leap second is a legal time that the standard library does not know.
        time.fromisoformat(text.replace(":60", ":59") if text.endswith(":60") else text)
    except ValueError:
        return False
    return True


def _date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    return match is not None and _date(match.group(1)) and _clock(match.group(2))


def _time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    return match is not None and _clock(match.group(1))


def _hostname(text: str) -> bool:
    return 0 < len(text) <= 253 and all(_LABEL.fullmatch(part) for part in text.rstrip(".").split("."))


def _email(text: str) -> bool:
    name, at, host = text.rpartition("@")
    return bool(at) and 0 < len(name) <= 64 and not re.search(r"\s", name) and (_hostname(host) or host[:1] == "[")


def _address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


def _regex(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_ARTICLES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "date": ("date (YYYY-MM-DD)", _date),
    "date-time": ("date and time with zone (RFC 3339)", _date_time),
    "time": ("time (hh:mm:ss)", _time),
    "duration": ("duration (ISO 8601)", lambda text: _DURATION.fullmatch(text) is not None),
    "email": ("mail address", _email),
    "hostname": ("host name", _hostname),
    "ipv4": ("IPv4 address", _address(ipaddress.IPv4Address)),
    "ipv6": ("IPv6 address", _address(ipaddress.IPv6Address)),
    "uri": ("URI", lambda text: _URI.fullmatch(text) is not None),
    "uuid": ("UUID", lambda text: _UUID.fullmatch(text) is not None),
    "regex": ("regular expression", _regex),
    "json-pointer": ("JSON Pointer", lambda text: _POINTER.fullmatch(text) is not None),
}
MAX_FORMAT_CHARS = 4_096


def format_name(name: str) -> str | None:
    """What a format is called in a message, or None for one that is not checked."""
    found = _ARTICLES.get(name)
    return None if found is None else found[0]


def has_format(name: str, text: str) -> bool:
    """Whether a text has a format; unknown formats are had by every text, texts over 4,096 characters by none."""
    found = _ARTICLES.get(name)
    return found is None or (len(text) <= MAX_FORMAT_CHARS and found[1](text))
