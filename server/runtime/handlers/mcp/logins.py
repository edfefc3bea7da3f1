"""The logins to MCP servers: what is kept of each, and the access token that a call of its server takes along.

A login is bound to the server's address and to its authorization server: it is kept under the one and renewed at the other, as they were when a
person logged in, whatever either says later. It stands in the desktop's keyring where the extra `keyring` is installed and works, else in a file
that only its user can read. Must not begin a login.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import importlib
import os
import shlex
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.protocols.contract import ExecutionError
from tamis.protocols.observation import plain
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import failure, secret_failure
from tamis.server.runtime.handlers.mcp.oauth import (
    Challenge,
    Client,
    OAuthError,
    Requests,
    Tokens,
    asked_of_server,
    client_of,
    discovered,
    read_challenge,
    renewed,
    tokens_of_client,
)
from tamis.server.runtime.handlers.mcp.session import McpError, is_refusal
from tamis.server.runtime.observe.masking import spelled
from tamis.server.runtime.settings.config import McpOAuth, McpServer, Policy
from tamis.server.runtime.store.folders import make_private, state_folder, write_private

if TYPE_CHECKING:
    from tamis.server.runtime.calls.runner import Invocation

EARLY_S = 60.0
"""A token is renewed so long before its end, so that a call that has begun keeps it."""
LOCK_S = 60.0
MAX_BYTES = 131_072
SERVICE = "tamis mcp"
_LOOK_S = 0.05


class Login(msgspec.Struct, frozen=True):
    """What a person granted for one server."""

    url: str
    issuer: str
    resource: str
    token_endpoint: str
    client: Client
    tokens: Tokens
    revocation_endpoint: str = ""


class _Kept(msgspec.Struct):
    """A file of the state folder: the login itself, or that the keyring has it."""

    url: str
    version: int = 1
    login: Login | None = None


class Logins:
    """The logins of this user."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_folder() / "mcp-logins"

    def _file(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode()).hexdigest()}.json"

    def stamp(self, url: str) -> tuple[int, int] | None:
        """Changes with the login; None where there is none."""
        try:
            facts = os.stat(self._file(url), follow_symlinks=False)
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_ino

    def get(self, url: str) -> Login | None:
        """The login of a server; None for none, and for what cannot be read or is another's. Waits for the keyring."""
        try:
            descriptor = os.open(self._file(url), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
            with open(descriptor, "rb") as stream:
                facts = os.fstat(descriptor)
                if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
                    return None
                kept = msgspec.json.decode(stream.read(MAX_BYTES + 1), type=_Kept)
            login = kept.login
            if login is None:
                told = _keyring().get_password(SERVICE, url)
                login = msgspec.json.decode(told, type=Login) if isinstance(told, str) else None
        except Exception:  # a keyring fails in ways of its own
            return None
        return login if login is not None and kept.url == url == login.url else None

    def keep(self, login: Login) -> str:
        """Keeps a login, in place of the one before; where it is, in words. Raises OSError."""
        kept, where = _Kept(login.url), "the keyring"
        try:
            _keyring().set_password(SERVICE, login.url, msgspec.json.encode(login).decode())
        except Exception:  # not installed, locked, or without a place to keep anything
            kept.login, where = login, str(self._file(login.url))
        make_private(self._folder)
        write_private(self._file(login.url), msgspec.json.encode(kept))
        return where

    def forget(self, url: str) -> bool:
        """Whether there was one."""
        with contextlib.suppress(Exception):
            _keyring().delete_password(SERVICE, url)
        try:
            self._file(url).unlink()
        except FileNotFoundError:
            return False
        return True

    @contextlib.asynccontextmanager
    async def held(self, url: str) -> AsyncGenerator[None]:
        """While this process alone renews the login of a server. Raises OSError."""
        place = make_private(self._folder) / f"{self._file(url).name}.lock"
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            end = time.monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise TimeoutError(f"{place} is held by another process") from None
                    await asyncio.sleep(_LOOK_S)
            yield
        finally:
            os.close(descriptor)


def _keyring() -> Any:
    return importlib.import_module("keyring")


def challenge_of(error: McpError) -> Challenge | None:
    """What a server over HTTP said when it refused a request (`bridge.py` passes it on); None for any other error."""
    if not is_refusal(error):
        return None
    challenge = read_challenge(error.data["httpStatus"], str(error.data.get("challenge", "")))
    return challenge if challenge.status == 401 or challenge.error == "insufficient_scope" else None


class AccessTokens:
    """The access tokens of one runtime; all methods are called on its loop."""

    def __init__(self, policy: Policy, logins: Logins | None = None) -> None:
        self._policy = policy
        self._logins = logins or Logins()
        self._known: dict[str, tuple[Any, Login | None]] = {}
        self._of_clients: dict[tuple[str, str, McpOAuth], Tokens] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._renewing: set[asyncio.Task[str]] = set()

    def at_hand(self, name: str, declared: McpServer) -> str:
        """The token as it was last given; empty for none."""
        tokens = self._of_clients.get((name, declared.url, declared.oauth))
        known = self._known.get(declared.url, (None, None))[1]
        return tokens.access if tokens is not None else known.tokens.access if known is not None else ""

    async def token(
        self, name: str, declared: McpServer, call: Invocation, challenge: Challenge | None = None, stale: str = ""
    ) -> str:
        """The access token for a server, empty where nobody logged in. Raises ``Stopped`` with what a person can do.

        ``stale`` is one that the server refused, by ``challenge``.
        """
        if not declared.url or declared.secrets:
            return ""
        try:
            async with self._locks.setdefault(declared.url, asyncio.Lock()):
                if declared.oauth.grant == "clientCredentials":
                    found = await self._of_client(name, declared, call, challenge, stale)
                else:
                    found = await self._of_person(name, declared, challenge, stale)
            if found:
                # the login may be of a time when the operator had pinned the name to this machine
                Requests(self._policy).judged(declared.url)
        except OAuthError as error:
            text = f"the MCP server '{name}' cannot be used: {error}"
            if error.ended and declared.oauth.grant != "clientCredentials":
                text += f"; the login has ended: run `{login_command(name)}`"
            raise Stopped("error", _failed(text)) from None
        except OSError as error:
            raise Stopped(
                "error", _failed(f"the login to the MCP server '{name}' cannot be renewed: {error}")
            ) from None
        if found:
            call.trail.keep_granted(spelled((found,)))
        return found

    async def _of_person(self, name: str, declared: McpServer, challenge: Challenge | None, stale: str) -> str:
        login = await self._login(declared.url)
        if login is not None and declared.oauth.issuer not in ("", login.issuer):
            login = None  # the settings name another authorization server since
        if challenge is not None and (challenge.status == 403 or login is None):
            raise Stopped("error", _failed(_wanted(name, challenge, login)))
        if login is None:
            return ""
        if login.tokens.access != stale and login.tokens.until - EARLY_S > time.time():
            return login.tokens.access
        if not login.tokens.refresh:
            if not stale and login.tokens.until > time.time():
                return login.tokens.access
            raise OAuthError("its access token has ended, and there is none to renew it with", ended=True)
        work = asyncio.get_running_loop().create_task(self._renewed(login))
        self._renewing.add(work)
        work.add_done_callback(self._renewing.discard)
        # a cancelled call must not lose what the refresh token was exchanged for
        return await asyncio.shield(work)

    async def _login(self, url: str) -> Login | None:
        stamp = self._logins.stamp(url)
        if stamp is None:
            return None
        known = self._known.get(url)
        if known is None or known[0] != stamp:
            known = self._known[url] = (stamp, await asyncio.to_thread(self._logins.get, url))
        return known[1]

    async def _renewed(self, login: Login) -> str:
        async with self._logins.held(login.url):
            # another process may have done it: a refresh token that is used twice ends the login
            now = await asyncio.to_thread(self._logins.get, login.url)
            if now is None:
                raise OAuthError("somebody logged out", ended=True)
            if now.tokens.access != login.tokens.access and now.tokens.until > time.time():
                self._known.pop(login.url, None)
                return now.tokens.access
            requests = Requests(self._policy)
            try:
                tokens = await renewed(requests, now.token_endpoint, now.client, now.tokens, now.resource)
            except OAuthError as error:
                if error.ended:
                    await asyncio.to_thread(self._logins.forget, login.url)
                raise
            await asyncio.to_thread(self._logins.keep, msgspec.structs.replace(now, tokens=tokens))
            return tokens.access

    async def _of_client(
        self, name: str, declared: McpServer, call: Invocation, challenge: Challenge | None, stale: str
    ) -> str:
        own = declared.oauth
        kept = self._of_clients.get((name, declared.url, declared.oauth))
        if kept is not None and kept.access != stale and kept.until - EARLY_S > time.time():
            return kept.access
        wants = challenge.scope.split() if challenge is not None else []
        if challenge is not None and challenge.status == 403 and own.scopes:
            text = f"the MCP server '{name}' wants more than its client was granted; add to mcpServers.{name}.oauth.scopes: {challenge.scope}"
            raise Stopped("error", _failed(text))
        secret = await self._secret(name, own.client_secret, call)
        requests = Requests(self._policy)
        first = challenge or await asked_of_server(requests, declared.url) or Challenge()
        site = await discovered(requests, declared.url, first, own.issuer)
        client = await client_of(requests, site, own, secret, "")
        before = kept.scope.split() if kept is not None and challenge is not None and challenge.status == 403 else []
        scopes = own.scopes or tuple(dict.fromkeys((*before, *(wants or first.scope.split() or site.scopes))))
        tokens = await tokens_of_client(requests, site, client, scopes)
        self._of_clients[name, declared.url, own] = msgspec.structs.replace(
            tokens, scope=tokens.scope or " ".join(scopes)
        )
        return tokens.access

    async def _secret(self, name: str, secret: str, call: Invocation) -> str:
        from tamis.server.runtime.policy.secret_values import SecretUnusable
        from tamis.server.runtime.policy.secrets import secret_fault

        settings = call.context.settings
        fault = secret_fault(secret, f"mcp-server:{name}", "0.0.0", settings.secrets, settings.policy)
        if fault is None:
            try:
                value = await call.services.secrets.value(secret, settings.secrets[secret], call.context.root)
            except SecretUnusable as unusable:
                fault = unusable.fault
            else:
                call.trail.keep_granted(value.spellings)
                return value.text
        text = f"the MCP server '{name}' needs the secret '{secret}': {fault.sentence}"
        raise Stopped("blocked", secret_failure(text, fault))


def login_command(name: str, scope: str = "") -> str:
    """What a person types to log in. What a server said stands in quotation marks that no shell looks into."""
    more = f" --scope {shlex.quote(scope)}" if scope else ""
    return f"tamis mcp login {shlex.quote(name)}{more}"


def _wanted(name: str, challenge: Challenge, login: Login | None) -> str:
    if challenge.status == 401:
        return f"the MCP server '{name}' wants a login: run `{login_command(name)}`, or name its token in `secrets`"
    scopes = [*(login.tokens.scope.split() if login is not None else []), *challenge.scope.split()]
    scope = " ".join(dict.fromkeys(scopes))
    return f"the MCP server '{name}' wants more than was granted to it: run `{login_command(name, scope)}`"


def _failed(text: str) -> ExecutionError:
    return failure("ServiceError", plain(text), code="loginRequired" if "`tamis mcp login" in text else None)
