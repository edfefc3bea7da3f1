"""What can be said of the MCP servers of the settings without starting one. Must not know that they run (``handlers/mcp/servers.py``)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import msgspec

from tamis.protocols.manifest.reading import LANGUAGES, script_path_fault
from tamis.sandbox.network.hosts import canonical_host, is_this_machine, parse_rule
from tamis.server.runtime.settings.config import McpOAuth, McpServer, Settings

BRIDGE = Path(__file__).parent.parent / "handlers" / "mcp" / "over_http" / "bridge.py"
"""What runs in the sandbox in place of a server that is reached over HTTP."""
ACCESS_TOKEN = "MCP_ACCESS_TOKEN"
"""The variable that has the access token of a server that a person logged in to."""
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
"""A scope-token (RFC 6749 §3.3), of bounded length."""
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
        args=(declared.url, str(max_answer_bytes), *(declared.secrets[:1] or (ACCESS_TOKEN,))),
        allow_hosts=(_named(declared.url), *declared.allow_hosts),
    )


def host_of(declared: McpServer) -> str:
    """The host of a server over HTTP, as it is asked for; empty for one that is started here."""
    return _named(declared.url) if declared.url else ""


def _named(url: str) -> str:
    """The host of an address, as it is asked for."""
    place = urlsplit(url)
    port = place.port or _PORTS[place.scheme]
    host = _bracketed(place)
    return host if port in _PORTS.values() else f"{host}:{port}"


def _bracketed(place: SplitResult) -> str:
    return f"[{place.hostname}]" if ":" in (place.hostname or "") else f"{place.hostname}"


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
        parse_rule(_named(declared.url))
    except ValueError as error:
        return str(error)
    if declared.secrets and place.scheme == "http" and not is_this_machine(canonical_host(_bracketed(place))):
        return "its secret would be sent without encryption; use https (http is for a server of this machine: localhost, 127.0.0.1, [::1])"
    return ""


def _oauth_fault(declared: McpServer) -> tuple[str, str]:
    """The field below `oauth` that cannot be used, and why; two empty texts for none."""
    own = declared.oauth
    if own == McpOAuth():
        return "", ""
    if not declared.url:
        return "", "only a server with a url is logged in to"
    if declared.secrets:
        return "", "its bearer token is the one of `secrets`; say one of both"
    if own.client_secret and not (own.client_id and own.issuer):
        return (
            "clientSecret",
            "it goes to one authorization server only: name `issuer`, and the `clientId` that it belongs to",
        )
    if own.client_metadata_url and own.client_id:
        return "clientMetadataUrl", "it is the client's id itself; say one of both"
    if own.grant == "clientCredentials" and not own.client_secret:
        return "grant", "clientCredentials wants `clientId`, `clientSecret` and `issuer`"
    if not 0 <= own.redirect_port < 65_536:
        return "redirectPort", "a port is a number up to 65535"
    scope = next((scope for scope in own.scopes if not SCOPE.fullmatch(scope)), None)
    return ("", "") if scope is None else ("scopes", f"{scope[:100]!r} is no scope")


def folder_of(root: Path, declared: McpServer) -> str:
    """A server's folder."""
    return os.path.realpath(root / declared.folder)


def problem(root: Path, name: str, declared: McpServer) -> str:
    """Why a server cannot be started, by what the settings and the disk say; empty when nothing speaks against it."""
    if declared.url and (fault := _url_fault(declared)):
        return f"mcpServers.{name}.url cannot be used: {fault}"
    field, fault = _oauth_fault(declared)
    if fault:
        return f"mcpServers.{name}.oauth{'.' if field else ''}{field} cannot be used: {fault}"
    if declared.url:
        return ""
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
