"""OAuth 2.1 as MCP wants it of a client: where a server's tokens come from, how they are asked for and renewed.

RFC 9728 and 8414 with OpenID discovery (where), 7636 (PKCE), 8707 (`resource`), 9207 (`iss`), 7591 (registration), 6749 (tokens), 7009
(revocation). Each request goes through the policy for hosts, follows no redirect, and is encrypted unless it stays on this machine. What comes
back is a stranger's word: each address and each text of it is judged before it is used. Libraries make the forms of these requests and leave
judging, discovery and transport to their caller, so none is used. Must not keep tokens, nor ask a person.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import http.client
import re
import secrets
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import quote, quote_plus, urlencode, urlsplit

import msgspec

from tamis import __version__
from tamis.protocols.observation import plain
from tamis.sandbox.network.egress_hosts import Addresses, Refused
from tamis.sandbox.network.hosts import Rules, canonical_host, is_loopback, parse_policy_rule
from tamis.server.runtime.observe.masking import spelled, without
from tamis.server.runtime.settings.config import McpOAuth, Policy
from tamis.server.runtime.settings.mcp_servers import SCOPE

TIMEOUT_S = 20.0
MAX_BYTES = 262_144
MAX_URL = 2_048
MAX_TOKEN = 16_384
MAX_HEADER = 8_192
MAX_SCOPES = 100
MAX_WORDS = 300
USUAL_LIFE_S = 3_600.0
"""An access token that does not say how long it lives is renewed after so long."""
_TOKEN = re.compile(rf"[\x21-\x7e]{{1,{MAX_TOKEN}}}")
_CHALLENGE = re.compile(r'[\s,]*([A-Za-z0-9!#$%&\'*+.^_`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?')
_METHODS = ("client_secret_basic", "client_secret_post", "none")


class OAuthError(Exception):
    """Why there is no token; one sentence. ``ended``: what was granted does not hold any more."""

    def __init__(self, reason: str, *, ended: bool = False) -> None:
        super().__init__(reason)
        self.ended = ended


class Challenge(msgspec.Struct, frozen=True):
    """What a server says when it refuses a request: `WWW-Authenticate` of 401 or 403."""

    status: int = 401
    error: str = ""
    scope: str = ""
    resource_metadata: str = ""


class Site(msgspec.Struct, frozen=True):
    """Where the tokens of one server come from, as its documents say and as they were judged."""

    resource: str
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    """What the server's own document names."""
    offline: bool = False
    """Whether it knows the scope that refresh tokens are asked for with."""
    methods: tuple[str, ...] = ("client_secret_basic",)
    says_iss: bool = False
    takes_metadata_documents: bool = False


class Client(msgspec.Struct, frozen=True):
    """Who asks."""

    client_id: str
    secret: str = ""
    method: str = "none"

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Client({self.client_id!r})"


class Tokens(msgspec.Struct, frozen=True):
    """What was granted."""

    access: str
    refresh: str = ""
    until: float = 0.0
    """In seconds since 1970."""
    scope: str = ""

    def __repr__(self) -> str:
        """Without the tokens."""
        return "Tokens()"


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    challenge: str
    body: bytes


def read_challenge(status: int, header: str) -> Challenge:
    """The first `Bearer` challenge of a `WWW-Authenticate` header; what is no scope and no address is left out."""
    found: dict[str, str] = {}
    ours = False
    for match in _CHALLENGE.finditer(header[:MAX_HEADER]):
        name, quoted, bare = match.groups()
        if quoted is None and bare is None:
            if found and ours:
                break
            ours = name.lower() == "bearer"
        elif ours:
            found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare)
    scope = " ".join(scopes_in(found.get("scope", "")))
    return Challenge(status, found.get("error", "")[:100], scope, found.get("resource_metadata", "")[:MAX_URL])


def scopes_in(text: str) -> list[str]:
    """The scopes of a text between blanks, each once."""
    return list(dict.fromkeys(part for part in text.split() if SCOPE.fullmatch(part)))[:MAX_SCOPES]


class Requests:
    """Requests that the policy lets through."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def send(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """One request. Raises `OAuthError` for what is refused, cannot be reached, or is a redirect."""
        where = self.judged(url)
        host = canonical_host(f"[{where.hostname}]" if ":" in (where.hostname or "") else where.hostname or "")
        port = where.port or (443 if where.scheme == "https" else 80)
        decision = Rules(tuple(parse_policy_rule(text) for text in self._policy.allow_hosts)).decide(host, port)
        if not decision.allowed:
            raise OAuthError(
                f"{_shown(url)} is not asked: {decision.reason.replace('allowHosts', 'policy.allowHosts')}"
            )
        addresses = Addresses(self._policy.allow_cidrs, tuple(self._policy.pin.items()))
        open_sockets: list[socket.socket] = []
        try:
            async with asyncio.timeout(TIMEOUT_S):
                judged = await addresses.vetted(host, port)
                given = {"User-Agent": f"tamis/{__version__}", "Connection": "close", **(headers or {})}
                target = (where.path or "/") + (f"?{where.query}" if where.query else "")
                answer = await asyncio.to_thread(
                    _exchanged,
                    judged,
                    where.scheme,
                    where.hostname or "",
                    port,
                    method,
                    target,
                    given,
                    body,
                    open_sockets,
                )
        except Refused as refused:
            raise OAuthError(f"{_shown(url)} is not asked: {refused.reason}") from None
        except TimeoutError:
            raise OAuthError(f"{_shown(url)} did not answer within {TIMEOUT_S:g} s") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise OAuthError(f"{_shown(url)} cannot be asked: {plain(str(error))[:MAX_WORDS]}") from None
        finally:
            addresses.close()
            for sock in open_sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)  # the thread of a request that took too long ends with it
        if 300 <= answer.status < 400:
            raise OAuthError(f"{_shown(url)} redirects; redirects are not followed")
        return answer

    def judged(self, url: str) -> Any:
        """The parts of an address that may be used at all. Raises `OAuthError`."""
        try:
            parts = urlsplit(url)
            is_place = bool(parts.hostname) and parts.port != 0 and len(url) <= MAX_URL
        except ValueError:
            raise OAuthError(f"{_shown(url)} is no address") from None
        if not is_place or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
            raise OAuthError(f"{_shown(url)} is no address")
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise OAuthError(f"{_shown(url)} holds a user, a password or a fragment")
        if parts.scheme != "https" and not (parts.scheme == "http" and self._is_near(parts.hostname or "")):
            raise OAuthError(f"{_shown(url)} is not https, and tokens are not sent without encryption")
        return parts

    def _is_near(self, host: str) -> bool:
        """Whether what is sent to a host stays on this machine, by its name or by the operator's pin."""
        if host == "localhost":
            return True  # where it is not, nothing is sent there
        try:
            return is_loopback(ip_address(self._policy.pin.get(host, host)))
        except ValueError:
            return False

    async def document(self, url: str) -> dict[str, Any] | None:
        """The object at an address; None where there is none."""
        answer = await self.send("GET", url, {"Accept": "application/json"})
        if answer.status >= 500:
            raise OAuthError(f"{_shown(url)} answered {answer.status}")
        return _object(answer.body) if answer.status == 200 else None


def _exchanged(
    addresses: Sequence[str],
    scheme: str,
    host: str,
    port: int,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    open_sockets: list[socket.socket],
) -> Answer:
    """One request to the first judged address that takes it; its name is not looked up again."""
    connection = http.client.HTTPConnection(host, port)
    if port == (443 if scheme == "https" else 80):
        connection = http.client.HTTPConnection(host, 80)  # the port is not part of `Host` then
    last: OSError = OSError("no address")
    for address in addresses:
        try:
            sock = socket.create_connection((address, port), TIMEOUT_S / 2)
        except OSError as error:
            last = error
            continue
        open_sockets.append(sock)
        if scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
            open_sockets.append(sock)
        connection.sock = sock
        try:
            connection.request(method, target, body, dict(headers))
            response = connection.getresponse()
            got = response.read(MAX_BYTES + 1)
            if len(got) > MAX_BYTES:
                raise ValueError(f"its answer has more than {MAX_BYTES} bytes")
            if response.length:
                raise ValueError(f"its answer broke off: {response.length} bytes are missing")
            return Answer(response.status, ", ".join(response.headers.get_all("WWW-Authenticate") or ()), got)
        finally:
            connection.close()
    raise last


async def asked_of_server(requests: Requests, url: str) -> Challenge | None:
    """How a server refuses a request without a token; None for one that does not."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    answer = await requests.send("POST", url, headers, msgspec.json.encode(asked))
    return read_challenge(answer.status, answer.challenge) if answer.status in (401, 403) else None


async def discovered(requests: Requests, url: str, challenge: Challenge, issuer: str = "") -> Site:
    """Where a server's tokens come from. ``issuer``: the only one that is taken, where the settings name it. Raises `OAuthError`."""
    own = await _resource_document(requests, url, challenge)
    parts = urlsplit(url)
    if own is None:
        # servers of 2025-03-26 are their own authorization servers
        resource, named, scopes = url, f"{parts.scheme}://{parts.netloc}", ()
    else:
        resource = _text(own, "resource")
        if not is_of(resource, url):
            text = f"the server's document names the resource {_shown(resource)}, which is not {_shown(url)}"
            raise OAuthError(f"{text}: its tokens could be meant for another server")
        servers = own.get("authorization_servers")
        listed = (
            [each for each in cast("list[object]", servers) if isinstance(each, str)]
            if isinstance(servers, list)
            else []
        )
        if not listed:
            raise OAuthError("the server's document names no authorization server")
        named = issuer if issuer in listed else listed[0]
        scopes = _texts(own, "scopes_supported")
    if issuer and named != issuer:
        raise OAuthError(
            f"the server names the authorization server {_shown(named)}, and the settings {_shown(issuer)}"
        )
    requests.judged(named)
    for place in issuer_documents(named):
        told = await requests.document(place)
        if told is not None:
            return _site(requests, told, resource, named, scopes)
    raise OAuthError(f"the authorization server {_shown(named)} has no document of its endpoints")


async def _resource_document(requests: Requests, url: str, challenge: Challenge) -> dict[str, Any] | None:
    parts = urlsplit(url)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    known = f"{origin}/.well-known/oauth-protected-resource"
    places = [challenge.resource_metadata] if challenge.resource_metadata else [f"{known}{path}", known]
    for place in dict.fromkeys(places):
        told = await requests.document(place)
        if told is not None:
            return told
    if challenge.resource_metadata:
        raise OAuthError(f"there is no document of the server at {_shown(challenge.resource_metadata)}")
    return None


def is_of(resource: str, url: str) -> bool:
    """Whether a resource is the server at an address, or a place above it on the same origin (RFC 9728 §3.3)."""
    try:
        above, own = urlsplit(resource), urlsplit(url)
        same = (above.scheme.lower(), above.hostname, _port(above)) == (own.scheme.lower(), own.hostname, _port(own))
    except ValueError:
        return False
    if not same or above.username is not None or above.fragment or (above.query and above.query != own.query):
        return False
    folder = above.path.rstrip("/")
    return own.path.rstrip("/") == folder or own.path.startswith(f"{folder}/")


def _port(parts: Any) -> int:
    return parts.port or (443 if parts.scheme.lower() == "https" else 80)


def issuer_documents(issuer: str) -> tuple[str, ...]:
    """Where the document of an authorization server may stand (RFC 8414 §3.1, OpenID Discovery §4)."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    first = (f"{origin}{oauth}{path}", f"{origin}{openid}{path}")
    return (*first, f"{origin}{path}{openid}") if path else first


def _site(requests: Requests, told: dict[str, Any], resource: str, issuer: str, scopes: tuple[str, ...]) -> Site:
    if told.get("issuer") != issuer:
        raise OAuthError(f"the document of {_shown(issuer)} is one of {_shown(str(told.get('issuer')))}")
    if "S256" not in _texts(told, "code_challenge_methods_supported") and told.get("authorization_endpoint"):
        raise OAuthError(f"the authorization server {_shown(issuer)} does not say that it checks PKCE with S256")
    ends = {name: _text(told, name) for name in ("authorization_endpoint", "token_endpoint")}
    ends |= {name: _text(told, name) for name in ("registration_endpoint", "revocation_endpoint")}
    for place in filter(None, ends.values()):
        requests.judged(place)
    if not ends["token_endpoint"]:
        raise OAuthError(f"the authorization server {_shown(issuer)} names no token endpoint")
    return Site(
        resource,
        issuer,
        **ends,
        scopes=scopes,
        offline="offline_access" in _texts(told, "scopes_supported"),
        methods=_texts(told, "token_endpoint_auth_methods_supported") or ("client_secret_basic",),
        says_iss=told.get("authorization_response_iss_parameter_supported") is True,
        takes_metadata_documents=told.get("client_id_metadata_document_supported") is True,
    )


async def client_of(requests: Requests, site: Site, own: McpOAuth, secret: str, redirect: str) -> Client:
    """Who asks: as the settings say, by a metadata document, or registered now. Raises `OAuthError`."""
    if own.client_id:
        return Client(own.client_id, secret, _method(site, secret))
    if own.client_metadata_url and site.takes_metadata_documents:
        return Client(own.client_metadata_url)
    if not site.registration_endpoint:
        text = f"the authorization server {_shown(site.issuer)} registers no clients by itself"
        raise OAuthError(f"{text}: register one there, with the redirect {redirect}, and name it as oauth.clientId")
    asked = {
        "client_name": "Tamis",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": next((one for one in ("none", *_METHODS) if one in site.methods), "none"),
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    answer = await requests.send("POST", site.registration_endpoint, headers, msgspec.json.encode(asked))
    told = _object(answer.body)
    if answer.status not in (200, 201) or told is None:
        raise OAuthError(f"the authorization server does not register Tamis: {_failure(answer, ())}")
    given, given_id = _text(told, "client_secret"), _text(told, "client_id")
    if not given_id or not _TOKEN.fullmatch(given_id.replace(" ", "+")) or (given and not _TOKEN.fullmatch(given)):
        raise OAuthError("the authorization server registered Tamis with a client id that cannot be used")
    method = _text(told, "token_endpoint_auth_method") or ("client_secret_basic" if given else "none")
    return Client(
        given_id, given, method if method in _METHODS and (given or method == "none") else _method(site, given)
    )


def _method(site: Site, secret: str) -> str:
    if not secret:
        return "none"
    return next((one for one in _METHODS[:2] if one in site.methods), "client_secret_basic")


class Asking(msgspec.Struct, frozen=True):
    """One authorization that is asked for: what a browser opens, and what only the answer to it can know."""

    address: str
    state: str
    verifier: str
    redirect: str


def asking(site: Site, client: Client, redirect: str, scopes: Sequence[str]) -> Asking:
    """The address that a person opens. Raises `OAuthError`."""
    if not site.authorization_endpoint:
        raise OAuthError(f"the authorization server {_shown(site.issuer)} has no page to log in")
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    words = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": digest,
        "code_challenge_method": "S256",
        "resource": site.resource,
    }
    if scopes:
        words["scope"] = " ".join(scopes)
    joint = "&" if "?" in site.authorization_endpoint else "?"
    return Asking(f"{site.authorization_endpoint}{joint}{urlencode(words)}", state, verifier, redirect)


def code_in(site: Site, asked: Asking, told: Mapping[str, str]) -> str:
    """The code of an answer whose state was found to be right. Raises `OAuthError` for one of another server, and for a refusal."""
    iss = told.get("iss")
    if (iss is None and site.says_iss) or (iss is not None and iss != site.issuer):
        raise OAuthError(f"the answer is not from {_shown(site.issuer)} but from {_shown(iss or 'nobody who says so')}")
    if told.get("error"):
        words = f"{told['error']} {told.get('error_description', '')}".strip()
        raise OAuthError(f"it was not granted: {plain(words)[:MAX_WORDS]}")
    code = told.get("code", "")
    if not _TOKEN.fullmatch(code):
        raise OAuthError("the answer has no code")
    return code


async def tokens_for_code(requests: Requests, site: Site, client: Client, asked: Asking, code: str) -> Tokens:
    """What a code is exchanged for. Raises `OAuthError`."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": asked.redirect,
        "code_verifier": asked.verifier,
        "resource": site.resource,
    }
    return await _granted(requests, site.token_endpoint, client, form)


async def renewed(requests: Requests, token_endpoint: str, client: Client, before: Tokens, resource: str) -> Tokens:
    """New tokens for a refresh token, which they may replace. Raises `OAuthError`."""
    form = {"grant_type": "refresh_token", "refresh_token": before.refresh, "resource": resource}
    tokens = await _granted(requests, token_endpoint, client, form)
    return msgspec.structs.replace(tokens, refresh=tokens.refresh or before.refresh, scope=tokens.scope or before.scope)


async def tokens_of_client(requests: Requests, site: Site, client: Client, scopes: Sequence[str]) -> Tokens:
    """What a client is granted by its secret alone. Raises `OAuthError`."""
    form = {"grant_type": "client_credentials", "resource": site.resource}
    if scopes:
        form["scope"] = " ".join(scopes)
    return await _granted(requests, site.token_endpoint, client, form)


async def revoked(requests: Requests, revocation_endpoint: str, client: Client, tokens: Tokens) -> None:
    """Takes back what was granted. Raises `OAuthError`."""
    form = {"token": tokens.refresh or tokens.access}
    form["token_type_hint"] = "refresh_token" if tokens.refresh else "access_token"
    answer = await _posted(requests, revocation_endpoint, client, form)
    if answer.status != 200:
        raise OAuthError(f"the authorization server did not take it back: {_failure(answer, tuple(form.values()))}")


async def _granted(requests: Requests, endpoint: str, client: Client, form: dict[str, str]) -> Tokens:
    answer = await _posted(requests, endpoint, client, form)
    told = _object(answer.body)
    hidden = (client.secret, *(form.get(name, "") for name in ("code", "code_verifier", "refresh_token")))
    if answer.status != 200 or told is None:
        ended = told is not None and told.get("error") in ("invalid_grant", "invalid_client", "unauthorized_client")
        raise OAuthError(f"the authorization server gives no token: {_failure(answer, hidden)}", ended=ended)
    access, refresh, life = _text(told, "access_token"), _text(told, "refresh_token"), told.get("expires_in")
    if _text(told, "token_type").lower() != "bearer" or not _TOKEN.fullmatch(access):
        raise OAuthError("the authorization server gives a token that is no bearer token")
    if refresh and not _TOKEN.fullmatch(refresh):
        raise OAuthError("the authorization server gives a refresh token that cannot be used")
    seconds = float(life) if isinstance(life, int | float) and 0 < life < 1e9 else USUAL_LIFE_S
    return Tokens(access, refresh, time.time() + seconds, " ".join(scopes_in(_text(told, "scope"))))


async def _posted(requests: Requests, endpoint: str, client: Client, form: dict[str, str]) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    sent = dict(form)
    if client.method == "client_secret_basic":
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        sent["client_id"] = client.client_id
        if client.method == "client_secret_post":
            sent["client_secret"] = client.secret
    return await requests.send("POST", endpoint, headers, urlencode(sent, quote_via=quote).encode())


def _failure(answer: Answer, hidden: Sequence[str]) -> str:
    """What an authorization server says is wrong, without what it was sent."""
    told = _object(answer.body) or {}
    words = " ".join(filter(None, (_text(told, "error"), _text(told, "error_description"))))
    said = without(plain(words), spelled(filter(None, hidden)))[:MAX_WORDS]
    return f"{answer.status} {said}".strip()


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return cast("dict[str, Any]", told) if isinstance(told, dict) else None


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""


def _texts(told: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = told.get(name)
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(text for text in listed[:MAX_SCOPES] if isinstance(text, str))


def _shown(url: str) -> str:
    """An address as it may be told: without its query, which may hold a key, and of bounded length."""
    return plain(url.partition("?")[0])[:200]
