"""The tools of a folder for the OpenAI Agents SDK: pip install tamis openai-agents."""

import asyncio
import json

from agents import FunctionTool

from tamis.client import Client


def agents_tools(tamis: Client) -> list[FunctionTool]:
    """Each callable tool, its schema as the manifest has it."""

    def adapted(tool_id: str) -> FunctionTool:
        definition = tamis.tool_describe(tool_id=tool_id, as_="openai").definition["function"]

        async def call(_context: object, arguments: str) -> str:
            args = json.loads(arguments or "{}")
            return (await asyncio.to_thread(tamis.tool_execute, tool_id=tool_id, args=args)).observation

        name, description, schema = definition["name"], definition["description"], definition["parameters"]
        return FunctionTool(name, description, schema, call, strict_json_schema=False)

    return [adapted(tool.tool_id) for tool in tamis.tool_list().tools if tool.callable and tool.available]
