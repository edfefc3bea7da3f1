"""The official Python SDK as a client, in both eras, on stdio and over HTTP (mcp, Referees)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.mcp.asking_server import make
from tests.mcp.http_client import TOKEN, HttpServer
from tests.sample_tools import make_tool

pytest.importorskip("mcp", reason="the official SDK of MCP is part of the extra `dev`")

from mcp import MCPError, types
from mcp.client.client import Client
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

Mode = Literal["auto", "legacy"]
ERAS: tuple[Mode, ...] = ("auto", "legacy")
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
PICTURE = base64.b64encode(b"picture").decode()


Work = Callable[[Client], Awaitable[None]]
WithClient = Callable[..., None]


def over_stdio(root: Path, mode: Mode, work: Work, **options: Any) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tamis.server.cli.main", "mcp", "--root", str(root)],
        env={name: value for name, value in os.environ.items() if name.startswith("TAMIS_")},
    )

    async def run() -> None:
        async with Client(stdio_client(started), mode=mode, **options) as client:
            await work(client)

    asyncio.run(run())


def over_http(root: Path, mode: Mode, work: Work, **options: Any) -> None:
    async def run(port: int) -> None:
        async with create_mcp_http_client({"Authorization": f"Bearer {TOKEN}"}) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
            async with Client(transport, mode=mode, **options) as client:
                await work(client)

    with HttpServer(root) as server:
        asyncio.run(run(server.port))


@pytest.fixture(params=[over_stdio, over_http], ids=["stdio", "http"])
def with_client(request: pytest.FixtureRequest) -> WithClient:
    return request.param


@pytest.mark.parametrize("mode", ERAS)
def test_it_lists_and_calls(with_client: WithClient, root: Path, mode: Mode) -> None:
    image = f"{{'$part': 'image', 'data': '{PICTURE}', 'mimeType': 'image/png'}}"
    make_tool(root, "core:draw", f"import json\nprint(json.dumps({image}))")
    output = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    make_tool(root, "core:typed", output=output)

    async def work(client: Client) -> None:
        assert client.protocol_version == VERSIONS[mode]
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["core_typed"].output_schema == output
        # the client checks structured content against the schema by itself
        assert (await client.call_tool("core_typed", {"text": "x"})).structured_content == {"text": "x"}
        assert (await client.call_tool("core_typed", {})).is_error
        drawn = (await client.call_tool("core_draw", {})).content[0]
        assert isinstance(drawn, types.ImageContent)
        assert drawn.data == PICTURE
        with pytest.raises(MCPError) as caught:
            await client.call_tool("no_such", {})
        assert caught.value.code == types.INVALID_PARAMS

    with_client(root, mode, work)


@pytest.mark.parametrize("mode", ERAS)
def test_it_reads_prompts_resources_and_completions(with_client: WithClient, root: Path, mode: Mode) -> None:
    async def work(client: Client) -> None:
        prompts = await client.list_prompts()
        assert {one.name for one in prompts.prompts} == {"tools-action", "tools-tam", "tools-vcp"}
        told = await client.get_prompt("tools-action", {"style": "compact"})
        assert isinstance(told.messages[0].content, types.TextContent)
        listed = await client.list_resources()
        held = await client.read_resource(listed.resources[0].uri)
        assert isinstance(held.contents[0], types.TextResourceContents)
        ref = types.PromptReference(name="tools-vcp")
        found = await client.complete(ref, {"name": "style", "value": "f"})
        assert found.completion.values == ["full"]

    with_client(root, mode, work)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(("decision", "runs"), [("allow_once", True), ("deny", False)])
def test_a_person_answers_by_its_form(
    with_client: WithClient, root: Path, mode: Mode, decision: str, runs: bool
) -> None:
    """interop §2.2: tested with the SDK's client, both answers."""
    asked: list[str] = []

    async def answer(_context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": decision})

    async def work(client: Client) -> None:
        result = await client.call_tool("core_asks", {"text": "x"})
        assert result.is_error is not runs
        assert len(asked) == 1
        assert "core:asks" in asked[0]

    with_client(root, mode, work, elicitation_callback=answer)


@pytest.mark.parametrize("mode", ERAS)
def test_a_person_fills_in_the_form_of_an_mcp_server(with_client: WithClient, tmp_path: Path, mode: Mode) -> None:
    """mcp 1: by our request or by `input_required`, the client's own user answers the server."""
    make(tmp_path)
    field = {"type": "string", "title": "City", "minLength": 2}
    schema = {"type": "object", "properties": {"city": field}, "required": ["city"]}
    given = iter(["B", "Bern"])

    async def answer(_context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert params.message.startswith("The MCP server 'test' asks")
        return types.ElicitResult(action="accept", content={"city": next(given)})

    async def work(client: Client) -> None:
        questions = [{"message": "Where to?", "requestedSchema": schema}]
        result = await client.call_tool("mcp_question", {"questions": questions})
        assert isinstance(result.content[0], types.TextContent)
        assert json.loads(result.content[0].text)["heard"] == [{"action": "accept", "content": {"city": "Bern"}}]

    with_client(tmp_path, mode, work, elicitation_callback=answer)


@pytest.mark.parametrize("mode", ERAS)
def test_it_is_told_of_progress(with_client: WithClient, root: Path, mode: Mode) -> None:
    told: list[float] = []

    async def show(progress: float, _total: float | None, _message: str | None) -> None:
        told.append(progress)

    async def work(client: Client) -> None:
        await client.call_tool("core_slow", {"seconds": 0.2}, progress_callback=show)
        assert told == sorted(told)
        assert told[:2] == [1, 2]

    with_client(root, mode, work)
