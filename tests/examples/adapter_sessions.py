"""One call of a tool through each adapter of `examples/adapters`, with the real library and a scripted model; run as a program by
`test_adapters.py`, in an environment that has the library: adapter_sessions.py LIBRARY ROOT. Prints what the model is given as JSON."""

import asyncio
import json
import sys

from tamis.client import Client

TOOL = "text_statistics"
GOOD, WRONG = {"text": "One. Two."}, {"txt": "x"}


def langchain(tamis):
    from langchain_tools import langchain_tools

    tool = next(tool for tool in langchain_tools(tamis) if tool.name == TOOL)
    return [tool.invoke(GOOD), tool.invoke(WRONG)]


def openai_agents(tamis):
    from openai_agents_tools import agents_tools

    tool = next(tool for tool in agents_tools(tamis) if tool.name == TOOL)
    return [asyncio.run(tool.on_invoke_tool(None, json.dumps(args))) for args in (GOOD, WRONG)]


def anthropic(tamis):
    from anthropic.types import Message
    from anthropic_messages import anthropic_tools, tool_results

    assert TOOL in [tool["name"] for tool in anthropic_tools(tamis)]
    calls = [{"type": "tool_use", "id": f"u{n}", "name": TOOL, "input": args} for n, args in enumerate((GOOD, WRONG))]
    usage = {"input_tokens": 1, "output_tokens": 1}
    about = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "tool_use"}
    message = Message.model_validate({**about, "stop_sequence": None, "usage": usage, "content": calls})
    results = tool_results(tamis, message)
    assert [(one["tool_use_id"], one["is_error"]) for one in results] == [("u0", False), ("u1", True)]
    return [one["content"] for one in results]


def pydantic_ai(tamis):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai_tools import pydantic_tools

    def model(messages, _info):
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart(TOOL, GOOD), ToolCallPart(TOOL, WRONG)])
        return ModelResponse(parts=[TextPart(json.dumps([part.content for part in messages[-1].parts]))])

    return json.loads(Agent(FunctionModel(model), tools=pydantic_tools(tamis)).run_sync("Count.").output)


def smolagents(tamis):
    from smolagents import Tool
    from smolagents_tools import smolagents_tools

    for listed in tamis.tool_list().tools:
        # the library judges the attributes of a tool when one is made
        definition = tamis.tool_describe(tool_id=listed.tool_id, as_="smolagents").definition
        made = type("Made", (Tool,), {**definition, "skip_forward_signature_validation": True})()
        assert made.name == definition["name"]
        assert compile(made.to_code_prompt(), "prompt", "exec")
    tool = next(tool for tool in smolagents_tools(tamis) if tool.name == TOOL)
    return [tool(**GOOD), tool(**WRONG)]


def litellm(tamis):
    import litellm
    from litellm_loop import answer

    said, calls = (
        litellm.completion,
        [
            {"id": f"c{n}", "type": "function", "function": {"name": TOOL, "arguments": json.dumps(args)}}
            for n, args in enumerate((GOOD, WRONG))
        ],
    )

    def scripted(messages, **how):
        first = len(messages) == 1
        return said(messages=messages, **how, **({"mock_tool_calls": calls} if first else {"mock_response": "Done."}))

    litellm.completion = scripted
    messages = [{"role": "user", "content": "Count."}]
    assert answer(tamis, messages, model="gpt-4o") == "Done."
    return [message["content"] for message in messages if message["role"] == "tool"]


SESSIONS = {
    "langchain": langchain,
    "openai_agents": openai_agents,
    "anthropic": anthropic,
    "pydantic_ai": pydantic_ai,
    "smolagents": smolagents,
    "litellm": litellm,
}

if __name__ == "__main__":
    with Client(sys.argv[2]) as client:
        print(json.dumps(SESSIONS[sys.argv[1]](client)))
