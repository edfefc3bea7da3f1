"""The tools of a folder with Anthropic's Messages interface: pip install tamis anthropic."""

from anthropic.types import Message, ToolParam, ToolResultBlockParam

from tamis.client import Client


def anthropic_tools(tamis: Client) -> list[ToolParam]:
    """What `tools` of a request takes."""
    callable_tools = [tool for tool in tamis.tool_list().tools if tool.callable and tool.available]
    return [tamis.tool_describe(tool_id=tool.tool_id, as_="anthropic").definition for tool in callable_tools]


def tool_results(tamis: Client, message: Message) -> list[ToolResultBlockParam]:
    """Runs the calls of a message: the content of the next message of the user."""
    made: list[ToolResultBlockParam] = []
    for block in message.content:
        if block.type == "tool_use":
            # the name that the model wrote leads to the tool
            result = tamis.tool_execute(tool_id=block.name, args=dict(block.input))
            failed = result.status != "success"
            made.append(
                {"type": "tool_result", "tool_use_id": block.id, "content": result.observation, "is_error": failed}
            )
    return made
