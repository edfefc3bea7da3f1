"""What a call gave, as an MCP result: text that a model reads, structured content, images and resources as parts.

A tool gives a part as an object with ``$part``: ``{"$part": "image", "data": BASE64, "mimeType": "image/png"}``; ``audio`` likewise, ``resource`` with
``uri``, ``mimeType`` and ``text`` or ``blob``, ``resource_link`` with ``uri`` and ``name``. The parts of an MCP server's own result are passed on. What is
no part that a client can take stays text: a link leads only where a browser could go. Pure; must not know how a call ran.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.model import MCP_META
from tamis.protocols.observation import observation
from tamis.server.mcp.revisions import Peer, as_object, completed

MARK = "$part"
MAX_PARTS = 100
MAX_DEPTH = 32
_OPENING = "Observation: "
_SCHEMES = ("http://", "https://", "tamis:", "tamis-result:", "fam://")
"""A host may open a link by itself, so a tool's word leads to no file of the user."""
AUDIO_SINCE = "2025-03-26"
LINKS_SINCE = "2025-06-18"


def call_result(result: ExecutionResult, peer: Peer, *, has_schema: bool, kept: str = "") -> dict[str, Any]:
    """The result of ``tools/call``. ``has_schema``: the tool was listed with an ``outputSchema``, which its structured content must fit.
    ``kept``: where the whole result can be read."""
    meta: dict[str, Any] = {f"{MCP_META}status": result.status, f"{MCP_META}callId": result.call_id}
    if kept:
        meta[f"{MCP_META}result"] = kept
    if result.status != "success":
        if result.error is not UNSET:
            meta[f"{MCP_META}errorType"] = result.error.type
        content: dict[str, Any] = {"content": [_text(_told(result))], "isError": True, "_meta": meta}
        return completed(peer, content)
    output = None if result.output is UNSET else result.output
    parts: list[dict[str, Any]] = []
    text = output if isinstance(output, str) else _json(output)
    rest = _taken(output, parts, peer, 0) if _may_hold_parts(output, text) else output
    if not parts and result.parts is not UNSET:
        # of a tool that gave structured content too: its parts stand beside the output, not in it
        parts = [
            part for server_part in result.parts[:MAX_PARTS] if (part := _server_part(server_part, peer)) is not None
        ]
    if rest is not output:
        text = rest if isinstance(rest, str) else _json(rest)
    text_parts = [] if parts and rest is None else [_text(text)]
    content = {"content": [*text_parts, *parts], "isError": False, "_meta": meta}
    structured = output if has_schema else rest
    # before the stateless revision only objects were structured content
    if isinstance(structured, dict) or (peer.modern and structured is not None and not isinstance(structured, str)):
        content["structuredContent"] = structured
    return completed(peer, content)


def _told(result: ExecutionResult) -> str:
    """Why there is no output, in the words that every face has for it."""
    if result.status == "inputRequired":
        return "This call waits for a person's approval, and this client cannot ask for it."
    text = result.observation or observation(result, "action")
    return text.removeprefix(_OPENING)


def _may_hold_parts(output: object, text: str) -> bool:
    """Whether a part may stand in an output, whose JSON is ``text``: most hold none, and are not walked through."""
    return MARK in text or isinstance(output, list)


def _taken(value: Any, parts: list[dict[str, Any]], peer: Peer, depth: int) -> Any:
    """The value without its parts, each of which goes to ``parts``; None where nothing else is left."""
    part = part_of(value, peer)
    if part is not None and len(parts) < MAX_PARTS:
        parts.append(part)
        return None if depth == 0 else {MARK: part["type"], "content": len(parts) - 1}
    if depth >= MAX_DEPTH:
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if depth == 0 and items and len(items) <= MAX_PARTS:
            listed = [_server_part(item, peer) or part_of(item, peer) for item in items]
            if all(item is not None for item in listed):
                parts += cast("list[dict[str, Any]]", listed)
                return None
        return [_taken(item, parts, peer, depth + 1) for item in items]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: _taken(item, parts, peer, depth + 1) for name, item in members.items()}
    return value


def part_of(value: Any, peer: Peer) -> dict[str, Any] | None:
    """The content part that a tool's value stands for; None for one that is none, or that the client's revision lacks."""
    fields = as_object(value)
    kind = fields.get(MARK)
    if not isinstance(kind, str):
        return None
    if kind == "resource":
        held = {name: item for name, item in fields.items() if name != MARK}
        return _part({"type": kind, "resource": held}, peer)
    return _part({**{name: item for name, item in fields.items() if name != MARK}, "type": kind}, peer)


def _server_part(value: Any, peer: Peer) -> dict[str, Any] | None:
    """A content part in MCP's own form, as tools of MCP servers give them."""
    fields = as_object(value)
    return _part(fields, peer) if isinstance(fields.get("type"), str) and MARK not in fields else None


def _part(fields: dict[str, Any], peer: Peer) -> dict[str, Any] | None:
    kind = fields["type"]
    text, mime = fields.get("text"), fields.get("mimeType")
    if kind == "text" and isinstance(text, str):
        return _text(text)
    if kind in ("image", "audio"):
        if kind == "audio" and peer.version < AUDIO_SINCE:
            return None
        data = fields.get("data")
        if isinstance(data, str) and isinstance(mime, str) and mime.startswith(f"{kind}/") and is_base64(data):
            return {"type": kind, "data": data, "mimeType": mime}
        return None
    if kind == "resource":
        return _embedded(as_object(fields.get("resource")))
    if kind == "resource_link" and peer.version >= LINKS_SINCE:
        uri, name = fields.get("uri"), fields.get("name")
        if isinstance(uri, str) and isinstance(name, str) and uri.startswith(_SCHEMES):
            words = {
                key: fields[key] for key in ("title", "description", "mimeType") if isinstance(fields.get(key), str)
            }
            return {"type": kind, "uri": uri, "name": name, **words}
    return None


def _embedded(held: dict[str, Any]) -> dict[str, Any] | None:
    uri, text, blob = held.get("uri"), held.get("text"), held.get("blob")
    if not isinstance(uri, str) or not uri:
        return None
    members: dict[str, Any] = {"uri": uri}
    if isinstance(held.get("mimeType"), str):
        members["mimeType"] = held["mimeType"]
    if isinstance(text, str):
        return {"type": "resource", "resource": {**members, "text": text}}
    if isinstance(blob, str) and is_base64(blob):
        return {"type": "resource", "resource": {**members, "blob": blob}}
    return None


def is_base64(text: str) -> bool:
    """Whether a text is base64 as clients decode it."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")
