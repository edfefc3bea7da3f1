"""``tamis mcp login`` and ``logout``: a person lets Tamis use an MCP server over HTTP, in a browser on this machine.

Only a person begins a login, never a call: the command shows where it leads, and waits for the browser's answer on a port of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hmac
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from tamis.server.cli.asking import ask_for_trust
from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import warn, write_line, write_note
from tamis.server.runtime.handlers.mcp.logins import Login, Logins
from tamis.server.runtime.handlers.mcp.oauth import (
    Asking,
    Challenge,
    Client,
    OAuthError,
    Requests,
    Site,
    asked_of_server,
    asking,
    client_of,
    code_in,
    discovered,
    revoked,
    scopes_in,
    tokens_for_code,
)
from tamis.server.runtime.settings.config import McpServer, Settings

if TYPE_CHECKING:
    from tamis.server.runtime.settings.config import LoadedSettings

WAIT_S = 300.0
PATH = "/callback"
MAX_HEAD = 16_384
HEAD_S = 10.0
_PAGE = "<!doctype html><meta charset=utf-8><title>Tamis</title><p>{text} You can close this page.</p>"


def log_in_or_out(arguments: argparse.Namespace) -> int:
    """0 when it was done, 1 when it was refused, 2 for a server that cannot be logged in to."""
    from tamis.server.cli.interrupts import run_to_end
    from tamis.server.runtime.settings.loading import load_settings

    try:
        root = root_of(arguments.root)
        ask_for_trust(root)
        loaded = load_settings(root)
        name, declared = _declared(arguments.host, root, loaded)
    except UsageError as error:
        warn(str(error))
        return 2
    work = _logged_out if arguments.verb == "logout" else _logged_in
    return run_to_end(_told(work, arguments, name, declared, loaded.settings))


async def _told(
    work: Callable[..., Awaitable[int]],
    arguments: argparse.Namespace,
    name: str,
    declared: McpServer,
    settings: Settings,
) -> int:
    from tamis.server.runtime.policy.secret_values import SecretError

    try:
        return await work(arguments, name, declared, settings)
    except (OAuthError, SecretError, OSError) as error:
        warn(f"mcp {arguments.verb} {name}: {error}")
    return 1


def _declared(name: str | None, root: Path, loaded: LoadedSettings) -> tuple[str, McpServer]:
    from tamis.protocols.suggest import best, hint
    from tamis.server.runtime.settings.mcp_servers import problem

    servers = loaded.settings.mcp_servers
    if name is None:
        raise UsageError(f"which server? [mcpServers] has {', '.join(sorted(servers)) or 'none'}")
    declared = servers.get(name)
    if declared is None:
        more = "; what this folder says is not in force: see `tamis trust`" if loaded.not_in_force else ""
        raise UsageError(f"no MCP server '{name}' is configured{hint(best(name, servers))}{more}")
    if fault := problem(root, name, declared):
        raise UsageError(fault)
    if not declared.url or declared.secrets:
        raise UsageError(f"'{name}' has no url, or takes its token from `secrets`: there is nothing to log in to")
    if declared.oauth.grant == "clientCredentials":
        raise UsageError(f"'{name}' is used with its client's secret (oauth.grant): nobody logs in")
    return name, declared


async def _logged_in(arguments: argparse.Namespace, name: str, declared: McpServer, settings: Settings) -> int:
    def show(address: str) -> None:
        write_note(f"Log in to '{name}' here:\n")
        write_line(address)
        if not arguments.no_browser and sys.stdin.isatty():
            webbrowser.open(address)

    login = await log_in(
        declared, settings, scopes_in(arguments.scope), show, _secret(declared, settings, root_of(arguments.root))
    )
    where = await asyncio.to_thread(Logins().keep, login)
    write_note(f"'{name}' can be used now. The login is kept in {where}; `tamis mcp logout {name}` ends it.")
    return 0


def _secret(declared: McpServer, settings: Settings, root: Path) -> str:
    from tamis.server.runtime.policy.secret_values import SecretError, read_secret

    if not declared.oauth.client_secret:
        return ""
    secret = settings.secrets.get(declared.oauth.client_secret)
    if secret is None:
        text = f"no [secrets] defines '{declared.oauth.client_secret}', which oauth.clientSecret names"
        raise SecretError(text, "", "define it")
    return read_secret(secret, root)


async def log_in(
    declared: McpServer, settings: Settings, scopes: list[str], show: Callable[[str], object], secret: str = ""
) -> Login:
    """A login, as far as a person agrees to it at the address that is shown. Raises ``OAuthError`` and ``OSError``."""
    requests = Requests(settings.policy)
    # one that answers without a login may want it for some of its tools
    challenge = await asked_of_server(requests, declared.url) or Challenge()
    site = await discovered(requests, declared.url, challenge, declared.oauth.issuer)
    async with contextlib.AsyncExitStack() as stack:
        answers: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        state: list[str] = []
        listener = await asyncio.start_server(
            lambda reader, writer: _heard(reader, writer, state, answers),
            "127.0.0.1",
            declared.oauth.redirect_port,
            limit=MAX_HEAD,
        )
        stack.callback(listener.close)
        redirect = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{PATH}"
        client = await client_of(requests, site, declared.oauth, secret, redirect)
        asked = asking(site, client, redirect, _scopes(scopes, declared, challenge.scope, site))
        state.append(asked.state)
        show(asked.address)
        try:
            told = await asyncio.wait_for(answers, WAIT_S)
        except TimeoutError:
            raise OAuthError(f"nobody answered within {WAIT_S:g} s") from None
    return await _login(requests, declared.url, site, client, asked, told)


async def _login(
    requests: Requests, url: str, site: Site, client: Client, asked: Asking, told: dict[str, str]
) -> Login:
    tokens = await tokens_for_code(requests, site, client, asked, code_in(site, asked, told))
    return Login(url, site.issuer, site.resource, site.token_endpoint, client, tokens, site.revocation_endpoint)


def _scopes(asked: list[str], declared: McpServer, challenged: str, site: Site) -> list[str]:
    """What is asked for: the person's word, the settings', the server's; with what a refresh token wants where it is known."""
    scopes = asked or list(declared.oauth.scopes) or challenged.split() or list(site.scopes)
    return [*scopes, "offline_access"] if site.offline and scopes and "offline_access" not in scopes else scopes


async def _heard(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    state: list[str],
    answers: asyncio.Future[dict[str, str]],
) -> None:
    """One request to the port. Only one with the state that was made for this login is its answer; others are told so, and change nothing."""
    status, text = "404 Not Found", "There is nothing here."
    try:
        async with asyncio.timeout(HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        words = head.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
        target = urlsplit(words[1]) if len(words) == 3 and words[0] == "GET" else urlsplit("")
        told = dict(parse_qsl(target.query, keep_blank_values=True, max_num_fields=50))
        if target.path == PATH and state and hmac.compare_digest(told.get("state", "").encode(), state[0].encode()):
            status, text = "200 OK", "Tamis has the answer."
            if not answers.done():
                answers.set_result(told)
        elif target.path == PATH:
            status, text = "400 Bad Request", "This answer is not to what Tamis asked for."
        body = _PAGE.format(text=text).encode()
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


async def _logged_out(_arguments: argparse.Namespace, name: str, declared: McpServer, settings: Settings) -> int:
    logins = Logins()
    login = await asyncio.to_thread(logins.get, declared.url)
    if not await asyncio.to_thread(logins.forget, declared.url):
        write_note(f"nobody is logged in to '{name}'")
        return 0
    write_note(f"the login to '{name}' is forgotten")
    if login is not None and login.revocation_endpoint:
        await revoked(Requests(settings.policy), login.revocation_endpoint, login.client, login.tokens)
        write_note("and the authorization server has taken it back")
    return 0
