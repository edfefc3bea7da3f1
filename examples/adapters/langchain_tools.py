"""The tools of a folder as LangChain tools, for LangChain and LangGraph: pip install tamis langchain-core."""

from langchain_core.tools import StructuredTool

from tamis.client import Client


def langchain_tools(tamis: Client) -> list[StructuredTool]:
    """Each callable tool; a failed call gives the words that tell the model what to write instead."""

    def adapted(tool_id: str) -> StructuredTool:
        definition = tamis.tool_describe(tool_id=tool_id, as_="openai").definition["function"]

        def call(**args: object) -> str:
            return tamis.tool_execute(tool_id=tool_id, args=args).observation

        name, description = definition["name"], definition["description"]
        return StructuredTool(name=name, description=description, args_schema=definition["parameters"], func=call)

    return [adapted(tool.tool_id) for tool in tamis.tool_list().tools if tool.callable and tool.available]
