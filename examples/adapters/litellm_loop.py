"""A conversation with tools over LiteLLM, which speaks with every provider: pip install tamis litellm mcp."""

import json
from typing import Any

import litellm

from tamis.client import Client


def answer(tamis: Client, messages: list[dict[str, Any]], **how: Any) -> str:
    """The model's words after as many rounds of tools as it wants, ten at most; `how` goes to `litellm.completion` (`model=…`)."""
    callable_tools = [tool for tool in tamis.tool_list().tools if tool.callable and tool.available]
    tools = [tamis.tool_describe(tool_id=tool.tool_id, as_="openai").definition for tool in callable_tools]
    for _ in range(10):
        said = litellm.completion(messages=messages, tools=tools, **how).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content or ""
        for call in said.tool_calls:
            result = tamis.tool_execute(tool_id=call.function.name, args=json.loads(call.function.arguments or "{}"))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result.observation})
    return "ten rounds were not enough"
