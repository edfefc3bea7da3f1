"""The revisions of MCP, and what a client says of itself: in each request (the modern era) or in `initialize` (the earlier one).

Revision 2026-07-28 is stateless: every request names its revision and what the client can do. Earlier revisions shake hands once. Both may come on
one connection, so each request is judged by itself. Must not know what a method does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from tamis import __version__
from tamis.protocols.model import escape_pointer
from tamis.server.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

MODERN = ("2026-07-28",)
"""Revisions in which every request says what it is."""
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that begin with `initialize`, newest first."""
BATCHES = ("2025-03-26", "2024-11-05")
"""Revisions that have batches of messages."""
NAMESPACE = "io.modelcontextprotocol/"
_META = escape_pointer(NAMESPACE)
_VERSION = f"{NAMESPACE}protocolVersion"
TASKS = f"{NAMESPACE}tasks"
"""The extension whose clients take a task instead of a result."""
UNSUPPORTED_VERSION = -32022
MISSING_CAPABILITY = -32021
MAX_NAME_CHARS = 200
SERVER = {"name": "tamis", "version": __version__}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as far as the request or the handshake says."""

    version: str
    modern: bool
    name: str = ""
    elicits: bool = False
    """It shows a person a form."""
    opens: bool = False
    """It shows a person an address to open."""
    takes_tasks: bool = False
    has_roots: bool = False
    """It names folders when it is asked."""
    log_level: str = ""
    """The least level of log messages that it wants; empty: none."""


def shaken(params: Mapping[str, Any]) -> Peer:
    """The client of a handshake. An unknown revision is answered with our newest; raises ``RpcError`` where none is named."""
    asked = params.get("protocolVersion")
    if not isinstance(asked, str):
        raise RpcError(INVALID_PARAMS, "wrong params: initialize names the revision as text - at `/protocolVersion`")
    version = asked if asked in HANDSHAKE else HANDSHAKE[0]
    return _peer(version, False, as_object(params.get("capabilities")), params.get("clientInfo"))


def peer_of(params: Mapping[str, Any], known: Peer | None) -> Peer:
    """The client of one request; ``known`` is that of the handshake, if there was one. Raises ``RpcError``."""
    meta = as_object(params.get("_meta"))
    version = meta.get(_VERSION) if meta else None
    if version is None:
        if known is None:
            text = f"send initialize first, or name the revision in each request - at `/_meta/{_META}protocolVersion`"
            raise RpcError(INVALID_PARAMS, text)
        return known
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"wrong params: a revision is text - at `/_meta/{_META}protocolVersion`")
    if known is not None and version == known.version:
        return known
    if version not in MODERN:
        # the others begin with a handshake, which no request replaces
        told = {"supported": list(MODERN), "requested": version[:MAX_NAME_CHARS]}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", told)
    able = meta.get(f"{NAMESPACE}clientCapabilities")
    if not isinstance(able, dict):
        text = f"wrong params: each request says what the client can do - at `/_meta/{_META}clientCapabilities`"
        raise RpcError(INVALID_PARAMS, text)
    level = meta.get(f"{NAMESPACE}logLevel")
    info = meta.get(f"{NAMESPACE}clientInfo")
    return _peer(version, True, cast("dict[str, Any]", able), info, "" if level is None else log_level(level))


def _peer(version: str, modern: bool, able: Mapping[str, Any], info: object, level: str = "") -> Peer:
    form = able.get("elicitation")
    return Peer(
        version=version,
        modern=modern,
        name=str(as_object(info).get("name") or "")[:MAX_NAME_CHARS],
        # said without a mode, a form is meant
        elicits=isinstance(form, dict) and (not form or "form" in form),
        opens=isinstance(form, dict) and "url" in form,
        takes_tasks=modern and isinstance(as_object(able.get("extensions")).get(TASKS), dict),
        has_roots=isinstance(able.get("roots"), dict),
        log_level=level,
    )


MAX_ROOTS = 16
MAX_ROOT_CHARS = 4_096


def folders_of(result: object) -> tuple[list[str], list[str]]:
    """The absolute paths that the answer to ``roots/list`` names, and why the others are none. Looks at no disk."""
    roots = as_object(result).get("roots")
    listed = cast("list[object]", roots) if isinstance(roots, list) else []
    paths: list[str] = []
    refused: list[str] = []
    for root in listed[:MAX_ROOTS]:
        uri = as_object(root).get("uri")
        path = _folder_of(uri) if isinstance(uri, str) and len(uri) <= MAX_ROOT_CHARS else ""
        if path:
            paths.append(path)
        else:
            refused.append(f"the root {str(uri)[:MAX_NAME_CHARS]!r} is no file:// address of a folder of this machine")
    if len(listed) > MAX_ROOTS:
        refused.append(f"{len(listed) - MAX_ROOTS} more roots are left out: at most {MAX_ROOTS} are followed")
    return list(dict.fromkeys(paths)), refused


def _folder_of(uri: str) -> str:
    try:
        parts = urlsplit(uri)
        path = unquote(parts.path, errors="strict")
    except ValueError:  # also an escape that is no UTF-8
        return ""
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        return ""
    return path if path.startswith("/") and "\0" not in path else ""


def log_level(value: object) -> str:
    """A level of log messages. Raises ``RpcError``."""
    if value not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"wrong params: a level is one of {', '.join(LEVELS)}")
    return str(value)


def require(peer: Peer, method: str, *, modern: bool) -> None:
    """Refuses a method that the era of the request does not have."""
    if peer.modern is not modern:
        raise RpcError(METHOD_NOT_FOUND, f"no method '{method}' in MCP {peer.version}")


def completed(peer: Peer, content: dict[str, Any], *, ttl_ms: int | None = None) -> dict[str, Any]:
    """A result in the peer's era; ``ttl_ms`` says for how long it may be kept."""
    if not peer.modern:
        return content
    members = {"resultType": "complete", **content}
    members["_meta"] = {**as_object(content.get("_meta")), f"{NAMESPACE}serverInfo": SERVER}
    if ttl_ms is not None:
        members |= {"ttlMs": ttl_ms, "cacheScope": "private"}
    return members


def as_object(value: object) -> dict[str, Any]:
    """A JSON object, or an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
