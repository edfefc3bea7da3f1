"""Media types, hosts and path templates of OpenAPI documents. Must not know schemas or tools."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


def is_json(media: str) -> bool:
    """Whether a media type is JSON."""
    bare = media.partition(";")[0].strip().lower()
    return bare == "application/json" or bare.endswith("+json") or bare == "*/*"


def is_form(media: str) -> bool:
    """Whether a media type is a form that is written like a query."""
    return media.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded"


def host_of(url: str) -> str:
    """The pattern that opens a URL's host: with its port where that is not the usual one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return shown if port is None or port == usual else f"{shown}:{port}"


def without_parameters(path: str, wire: dict[str, Any]) -> str:
    """A path template less the parameters that fill it."""
    for name, place, *_ in wire.values():
        if place == "path":
            path = path.replace(f"{{{name}}}", "")
    return path
