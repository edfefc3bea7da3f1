"""What can be said of the MCP servers of the settings without starting one. Must not know that they run (``handlers/mcp/servers.py``)."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tamis.protocols.manifest.reading import LANGUAGES, script_path_fault
from tamis.sandbox.network.hosts import loopback_fault, parse_rule
from tamis.server.runtime.settings.config import McpServer, Settings

BRIDGE = Path(__file__).parent.parent / "handlers" / "mcp" / "over_http" / "bridge.py"
"""What runs in the sandbox in place of a server that is reached over HTTP."""
_PORTS = {"http": 80, "https": 443}


def as_run(declared: McpServer, max_answer_bytes: int) -> McpServer:
    """The server as it is run: one that is reached over HTTP by the script that does it, with its host among those that it asks for."""
    if not declared.url:
        return declared
    return msgspec.structs.replace(
        declared,
        script=BRIDGE.name,
        language="python",
        folder=str(BRIDGE.parent),
        args=(declared.url, str(max_answer_bytes), *declared.secrets[:1]),
        allow_hosts=(_named(declared.url), *declared.allow_hosts),
    )


def _named(url: str) -> str:
    """The host of an address, as it is asked for."""
    place = urlsplit(url)
    port = place.port or _PORTS[place.scheme]
    host = f"[{place.hostname}]" if ":" in (place.hostname or "") else f"{place.hostname}"
    return host if port in _PORTS.values() else f"{host}:{port}"


def _url_fault(declared: McpServer) -> str:
    try:
        place = urlsplit(declared.url)
        is_place = place.scheme in _PORTS and bool(place.hostname) and place.port != 0
    except ValueError:
        is_place, place = False, urlsplit("")
    if not is_place:
        return "it is no address of HTTP, as https://example.com/mcp"
    if place.username is not None or place.fragment or not declared.url.isascii() or not declared.url.isprintable():
        return "it holds more than a place: a name or password, a fragment, or characters that are not ASCII"
    if declared.script:
        return "a server has a url or a script, not both"
    if len(declared.secrets) > 1:
        return "one secret is its bearer token; there are several in `secrets`"
    try:
        if fault := loopback_fault(parse_rule(_named(declared.url))):
            return fault
    except ValueError as error:
        return str(error)
    if declared.secrets and place.scheme == "http":
        return "its secret would be sent without encryption; use https"
    return ""


def folder_of(root: Path, declared: McpServer) -> str:
    """A server's folder."""
    return os.path.realpath(root / declared.folder)


def problem(root: Path, name: str, declared: McpServer) -> str:
    """Why a server cannot be started, by what the settings and the disk say; empty when nothing speaks against it."""
    if declared.url:
        fault = _url_fault(declared)
        return f"mcpServers.{name}.url cannot be used: {fault}" if fault else ""
    fault = script_path_fault(declared.script) if declared.script else "it is empty"
    if fault is not None:
        return f"mcpServers.{name}.script cannot be used: {fault}"
    folder = folder_of(root, declared)
    if not os.path.isfile(os.path.join(folder, declared.script)):
        return f"mcpServers.{name}: there is no '{declared.script}' in {folder}"
    if declared.language not in LANGUAGES:
        return f"mcpServers.{name}.language must be one of {', '.join(LANGUAGES)}"
    return ""


def problems(root: Path, settings: Settings) -> dict[str, str]:
    """The same of all servers, by name."""
    return {name: problem(root, name, declared) for name, declared in settings.mcp_servers.items()}
