"""The client that the conformance suite starts: `client.py URL`. What Tamis does with a server over HTTP, without the sandbox around it.

Lists the tools, calls each that the scenario names, else all, and logs in where the server wants it; the browser is played by following the
address. Of the scenario it knows what a person would have set: client ids and secrets.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from msgspec import UNSET

from tamis.server.cli.mcp_login import log_in
from tamis.server.runtime.handlers.mcp.elicitation import Choices, Form, question_of
from tamis.server.runtime.handlers.mcp.logins import Login, challenge_of
from tamis.server.runtime.handlers.mcp.oauth import (
    Challenge,
    OAuthError,
    Requests,
    client_of,
    discovered,
    tokens_of_client,
)
from tamis.server.runtime.handlers.mcp.session import McpError, McpSession
from tamis.server.runtime.settings.config import McpOAuth, McpServer, Policy, Settings
from tamis.server.runtime.settings.mcp_servers import ACCESS_TOKEN, BRIDGE

DOCUMENT = "https://conformance-test.local/client-metadata.json"
ECHO, FOCAL = "json_schema_echo", "json_schema_2020_12_tool"
"""One of these is given the schema of the other, as it was received."""
MAX_LOGINS = 3
POLICY = Policy(allow_hosts=("localhost:*", "127.0.0.1:*"), allow_cidrs=("127.0.0.0/8", "::1/128"))


class Lines:
    """The bridge's standard streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def read(self) -> bytes | None:
        assert self._process.stdout is not None
        return await self._process.stdout.readline() or None

    async def write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def browse(address: str) -> None:
    """What a person's browser does."""

    def go() -> None:
        try:
            urllib.request.build_opener(_Stay()).open(address).close()
        except urllib.error.HTTPError as answer:
            with answer:
                urllib.request.urlopen(answer.headers["Location"]).close()

    threading.Thread(target=go, daemon=True).start()


async def token_for(
    url: str, context: dict[str, Any], challenge: Challenge, login: Login | None
) -> tuple[str, Login | None]:
    """A login, as the command does it; or what a client's secret is good for."""
    known, secret = str(context.get("client_id", "")), str(context.get("client_secret", ""))
    own = McpOAuth(
        client_id=known,
        client_metadata_url="" if known else DOCUMENT,
        issuer=str(context.get("issuer", "")),
        redirect_port=0,
    )
    if "client-credentials" in os.environ["MCP_CONFORMANCE_SCENARIO"]:
        requests = Requests(POLICY)
        site = await discovered(requests, url, challenge, own.issuer)
        client = await client_of(requests, site, own, secret, "")
        return (await tokens_of_client(requests, site, client, challenge.scope.split())).access, None
    before = login.tokens.scope.split() if login is not None else []
    scopes = [*before, *challenge.scope.split()] if challenge.status == 403 else []
    made = await log_in(McpServer(url=url, oauth=own), Settings(policy=POLICY), scopes, browse, secret)
    return made.tokens.access, made


class Person:
    """Takes the first of what there is to choose, and leaves a form as it is filled in."""

    modes = ("form",)

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question."""
        wanted = question_of(params, forms=True, addresses=False)
        if isinstance(wanted, Choices):
            return {"action": "accept", "content": next(iter(wanted.contents.values()))}
        if not isinstance(wanted, Form):
            return {"action": "decline"}
        content = {field.name: field.default for field in wanted.fields if field.default is not UNSET}
        return {"action": "accept", "content": content}


async def talk(url: str, token: str, context: dict[str, Any]) -> None:
    """One connection: every call that is wanted."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(BRIDGE),
        url,
        "4194304",
        ACCESS_TOKEN,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
        env={ACCESS_TOKEN: token, "PATH": os.environ["PATH"]},
    )
    session = McpSession(Lines(process), lambda text: print(text, file=sys.stderr))
    try:
        await session.start(elicits=Person.modes, discover_s=60)
        tools = await session.tools()
        calls = context.get("toolCalls") or [
            {"name": name, "arguments": arguments_of(tool.get("inputSchema", {}))} for name, tool in tools.items()
        ]
        if ECHO in tools and FOCAL in tools:
            calls = [{"name": ECHO, "arguments": {"schema": tools[FOCAL]["inputSchema"]}}]
        for call in calls:
            if call["name"] in tools:
                await session.call(call["name"], call["arguments"], {}, None, Person())
    finally:
        await session.close()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


def arguments_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a schema may take."""
    samples: dict[str, Any] = {"string": "x", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
    wanted = schema.get("required", [])
    return {
        name: samples.get(about.get("type"), "x")
        for name, about in schema.get("properties", {}).items()
        if name in wanted
    }


async def main(url: str) -> int:
    """0 when everything was called."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    url = url.replace("127.0.0.1", "localhost") if not urlsplit(url).path else url
    token, login = "", None
    for _ in range(MAX_LOGINS):
        try:
            await talk(url, token, context)
        except McpError as error:
            print(f"{error} {error.data or ''}", file=sys.stderr)
            challenge = challenge_of(error)
            if challenge is None:
                return 1
            try:
                token, login = await token_for(url, context, challenge, login)
            except OAuthError as refused:
                print(refused, file=sys.stderr)
                return 1
        else:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
