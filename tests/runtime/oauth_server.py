"""An MCP server with the authorization server that its tokens come from, on one port of this machine; a test makes either lie."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

ECHO = {"name": "echo", "description": "Gives back.", "inputSchema": {"type": "object"}}


class Guarded:
    """Grants what it is asked for, and remembers what it was asked."""

    def __init__(self, host: str = "far.test", path: str = "/mcp") -> None:
        self.asked: list[tuple[str, str, dict[str, str], str]] = []
        self.forms: list[dict[str, str]] = []
        self.clients: list[dict[str, Any]] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.good: set[str] = set()
        self.refresh: set[str] = set()
        self.life = 3_600
        self.scope_wanted = ""
        self.client_secret = ""
        self.number = 0
        self.meta: dict[str, Any] = {}
        self.resource: dict[str, Any] = {}
        self.answer: dict[str, str] = {}
        """What the answer to the browser has beside, or in place of, what is right."""
        self.does: dict[str, Callable[[Any], None]] = {}
        """What is done at a path, in place of what is right."""
        guarded = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def say(self, status: int, content: Any, kind: str = "application/json", **headers: str) -> None:
                body = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                guarded.take(self, "")

            def do_DELETE(self) -> None:
                self.say(200, b"")

            def do_POST(self) -> None:
                guarded.take(self, self.rfile.read(int(self.headers["Content-Length"] or 0)).decode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://{host}:{self.server.server_port}"
        self.url = f"{self.origin}{path}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.asked]

    def tokens_seen(self) -> list[str]:
        return [headers.get("authorization", "") for _, path, headers, _ in self.asked if path == "/mcp"]

    def take(self, at: Any, body: str) -> None:
        parts = urlsplit(at.path)
        self.asked.append((at.command, parts.path, {k.lower(): v for k, v in at.headers.items()}, body))
        act = self.does.get(parts.path)
        if act is not None:
            act(at)
        elif parts.path == urlsplit(self.url).path:
            self.mcp(at, json.loads(body))
        elif parts.path == "/.well-known/oauth-protected-resource/mcp":
            at.say(200, {"resource": self.url, "authorization_servers": [self.origin], **self.resource})
        elif parts.path == "/.well-known/oauth-authorization-server":
            at.say(200, self.document())
        elif parts.path == "/authorize":
            self.authorize(at, {name: values[0] for name, values in parse_qs(parts.query).items()})
        elif parts.path == "/register":
            self.clients.append(json.loads(body))
            at.say(201, {"client_id": f"client-{len(self.clients)}", **self.clients[-1]})
        elif parts.path == "/token":
            self.token(at, {name: values[0] for name, values in parse_qs(body).items()})
        elif parts.path == "/revoke":
            self.forms.append({name: values[0] for name, values in parse_qs(body).items()})
            at.say(200, b"")
        else:
            at.say(404, b"no", "text/plain")

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "revocation_endpoint": f"{self.origin}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            **self.meta,
        }

    def authorize(self, at: Any, told: dict[str, str]) -> None:
        self.number += 1
        code = f"code-number-{self.number}"
        self.codes[code] = told
        back = {"code": code, "state": told["state"], "iss": self.origin, **self.answer}
        back = {name: value for name, value in back.items() if value}
        at.say(302, b"", Location=f"{told['redirect_uri']}?{urlencode(back)}")

    def token(self, at: Any, form: dict[str, str]) -> None:
        self.forms.append(form)
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], {})
            digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
            right = digest.rstrip(b"=").decode() == asked.get("code_challenge")
            right = right and all(form[name] == asked.get(name) for name in ("redirect_uri", "resource", "client_id"))
        elif form["grant_type"] == "refresh_token":
            right = form["refresh_token"] in self.refresh
            self.refresh.discard(form["refresh_token"])
        else:
            given = base64.b64decode(at.headers["Authorization"].removeprefix("Basic ")).decode()
            right = given == f"known:{self.client_secret}"
        if not right:
            at.say(400, {"error": "invalid_grant", "error_description": f"no good: {form.get('refresh_token')}"})
            return
        at.say(200, self.grant(form.get("scope", "")))

    def grant(self, scope: str = "") -> dict[str, Any]:
        self.number += 1
        access, refresh = f"access-token-{self.number}", f"refresh-token-{self.number}"
        self.good.add(access)
        self.refresh.add(refresh)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.life,
            "refresh_token": refresh,
            "scope": scope,
        }

    def mcp(self, at: Any, message: dict[str, Any]) -> None:
        token = (at.headers["Authorization"] or "").removeprefix("Bearer ")
        if token not in self.good:
            where = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
            at.say(401, b"", WWW_Authenticate=f'Bearer resource_metadata="{where}", scope="read"')
            return
        method, params = message["method"], message.get("params", {})
        if method == "tools/call" and self.scope_wanted:
            told = f'Bearer error="insufficient_scope", scope="{self.scope_wanted}"'
            at.say(403, b"", WWW_Authenticate=told)
        elif method == "server/discover":
            self.result(at, message, {"resultType": "complete", "supportedVersions": ["2026-07-28"]})
        elif method == "tools/list":
            self.result(at, message, {"tools": [ECHO]})
        else:
            text = json.dumps([params.get("arguments"), at.headers["Authorization"]])
            self.result(at, message, {"content": [{"type": "text", "text": text}]})

    def result(self, at: Any, message: dict[str, Any], result: dict[str, Any]) -> None:
        at.say(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})
