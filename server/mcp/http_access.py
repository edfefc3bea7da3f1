"""Who may speak to the server over HTTP, and whether the headers of a request say what its body says. Pure; must not know how a request came."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tamis.server.mcp.revisions import HANDSHAKE, MODERN, NAMESPACE, as_object
from tamis.server.wire.jsonrpc import RpcError

HEADER_MISMATCH = -32020
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose header ``Mcp-Name`` repeats a parameter."""
TASKS = ("tasks/get", "tasks/update", "tasks/cancel")
"""Methods whose header ``Mcp-Name``, where there is one, repeats the task."""
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253}))(?::(\d{1,5}))?")
_ENCODED = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")
_PLAIN = re.compile(r"[\x20-\x7e\t]*")
_PORTS = {"http": "80", "https": "443"}
MAX_SHOWN = 200


class Refused(Exception):  # noqa: N818 (an answer, not a fault)
    """A request that is answered by its HTTP status."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What a request must show."""

    token: bytes = b""
    """The bearer token; empty: none is asked for."""
    names: frozenset[str] = frozenset()
    """Further names under which the server is reached, in lower case."""
    is_local: bool = True
    """Whether only this machine can reach the server."""

    def check(self, headers: Mapping[str, str]) -> None:
        """Raises ``Refused`` for a request of a page that came by another name (DNS rebinding), of another site, or without the token."""
        host = headers.get("host", "")
        at = _AUTHORITY.fullmatch(host)
        if at is None or not self._is_own(at[1] or at[2]):
            text = f"the host '{host[:MAX_SHOWN]}' is not this server's; start it with --allow-host NAME if it is"
            raise Refused(403, text)
        origin = headers.get("origin")
        if origin is not None and not is_same_origin(origin, host):
            raise Refused(403, f"requests of pages from '{origin[:MAX_SHOWN]}' are not answered")
        if self.token and not self._has_token(headers.get("authorization", "")):
            text = "send the header Authorization: Bearer TOKEN, with the token of this server"
            raise Refused(401, text, {"WWW-Authenticate": 'Bearer realm="tamis"'})

    def _is_own(self, name: str) -> bool:
        if name.lower() == "localhost" or name.lower() in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # an address is no name that somebody else's server could lead elsewhere
        return address.is_loopback or not self.is_local

    def _has_token(self, value: str) -> bool:
        scheme, _, token = value.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode("utf-8", "replace"), self.token)


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a page was served under the name that it asks now."""
    scheme, mark, place = origin.lower().partition("://")
    if not mark or scheme not in _PORTS or _AUTHORITY.fullmatch(place) is None:
        return False
    default = f":{_PORTS[scheme]}"
    return place.removesuffix(default) == host.lower().removesuffix(default)


def is_local_address(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_modern(headers: Mapping[str, str], message: Mapping[str, Any]) -> bool:
    """Whether a request is one of the stateless revision, by its header or its body."""
    version = headers.get("mcp-protocol-version", "")
    if as_object(as_object(message.get("params")).get("_meta")).get(f"{NAMESPACE}protocolVersion") is not None:
        return True
    if version in MODERN:
        return True
    return bool(version) and version not in HANDSHAKE and "mcp-session-id" not in headers


def check_version(headers: Mapping[str, str]) -> None:
    """Raises ``Refused`` for a revision of the handshake that there is not."""
    version = headers.get("mcp-protocol-version")
    if version is not None and version not in HANDSHAKE:
        raise Refused(400, f"the revision '{version[:MAX_SHOWN]}' is not spoken here; {', '.join(HANDSHAKE)} are")


def check_headers(headers: Mapping[str, str], message: Mapping[str, Any], schema: Mapping[str, Any] | None) -> None:
    """Whether headers and body of a request of the stateless revision agree. ``schema``: the parameters of the tool that it calls.

    Raises ``RpcError``. What the body lacks is its reader's matter.
    """
    if "id" not in message:
        return  # for notifications the revision asks for no headers
    method, params = message.get("method"), as_object(message.get("params"))
    version = as_object(params.get("_meta")).get(f"{NAMESPACE}protocolVersion")
    if isinstance(version, str):
        _same("MCP-Protocol-Version", headers, version)
    if isinstance(method, str):
        _same("Mcp-Method", headers, method)
        named = params.get(NAMED.get(method, ""))
        if isinstance(named, str):
            _same("Mcp-Name", headers, named, encoded=True)
        elif method in TASKS and "mcp-name" in headers:
            _same("Mcp-Name", headers, str(params.get("taskId")), encoded=True)
    for name, path in mirrored(schema or {}):
        value: Any = params.get("arguments")
        for step in path:
            value = as_object(value).get(step)
        if value is None or isinstance(value, dict | list | float):
            continue
        _same(f"Mcp-Param-{name}", headers, value, encoded=True)


def mirrored(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, tuple[str, ...]]]:
    """The parameters that clients repeat in headers (``x-mcp-header``), each with its path."""
    headers: list[tuple[str, tuple[str, ...]]] = []
    for key, part in as_object(schema.get("properties")).items():
        held = as_object(part)
        name = held.get("x-mcp-header")
        if isinstance(name, str) and name:
            headers.append((name, (*path, key)))
        if len(path) < 32 and "properties" in held:
            headers += mirrored(held, (*path, key))
    return headers


def _same(name: str, headers: Mapping[str, str], wanted: str | int | bool, *, encoded: bool = False) -> None:
    header = headers.get(name.lower())
    if header is None:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: the header {name} is missing; the body says it")
    value = _decoded(name, header) if encoded else header
    if isinstance(wanted, bool):
        fits = value == str(wanted).lower()
    elif isinstance(wanted, int):
        fits = _number(value) == wanted
    else:
        fits = value == wanted
    if not fits:
        text = f"Header mismatch: {name} says '{value[:MAX_SHOWN]}', and the body '{str(wanted)[:MAX_SHOWN]}'"
        raise RpcError(HEADER_MISMATCH, text)


def _number(text: str) -> float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _decoded(name: str, value: str) -> str:
    if not _PLAIN.fullmatch(value):
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} has characters that a header cannot have")
    match = _ENCODED.fullmatch(value)
    if match is None:
        if value.startswith("=?base64?") and value.endswith("?="):
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is no base64")
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is no base64 of UTF-8") from None
