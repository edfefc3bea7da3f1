"""The tools of a folder for Pydantic AI: pip install tamis pydantic-ai-slim."""

from pydantic_ai import Tool

from tamis.client import Client


def pydantic_tools(tamis: Client) -> list[Tool]:
    """Each callable tool; the schema goes to the model as the manifest has it."""

    def adapted(tool_id: str) -> Tool:
        definition = tamis.tool_describe(tool_id=tool_id, as_="openai").definition["function"]

        def call(**args: object) -> str:
            return tamis.tool_execute(tool_id=tool_id, args=args).observation

        return Tool.from_schema(call, definition["name"], definition["description"], definition["parameters"])

    return [adapted(tool.tool_id) for tool in tamis.tool_list().tools if tool.callable and tool.available]
