"""An agent's host in Python: everything but the model. usage: python host.py [FOLDER WITH TOOLS]"""

import sys
from collections.abc import Callable
from typing import Any

try:
    from tamis.client import Client, RpcFailure
    from tamis.client.params import ToolCallConfig
    from tamis.client.results import ApprovalRequest
except ImportError:
    sys.exit("host: this Python has no package tamis: start the host with the one that it is installed for")

ALLOWED = {"game:player", "units:convert"}
PLAYER = {
    "name": "player",
    "description": "Says how a player of the running game is: points of life, place. Input: the player's name.",
    "agentCallable": True,
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def player(args: dict[str, Any]) -> Any:
    """The host's own service: a model calls it like any other tool."""
    return {"name": args["name"], "hp": 7, "place": "harbour"}


def decide(question: ApprovalRequest) -> str:
    """Where a real host asks its user. The answer is one of the options that the question brings."""
    kind = "allow_once" if question.tool in ALLOWED else "reject_once"
    print(f"asked: {question.tool} {question.args_preview} -> {kind}")
    return next(option.option_id for option in question.options if option.kind == kind)


def scripted_model() -> Callable[[list[str]], str]:
    """Stands for a model: what it would say, turn by turn."""
    turns = iter(
        [
            "I look first. <ACTION><game:player><name>Ada</name></game:player></ACTION>",
            "<ACTION><units:convert><value>26.2</value><from_unit>mi</from_unit><to_unit>km</to_unit></units:convert></ACTION>",
            "<ACTION><text:statistics><text>A secret.</text></text:statistics></ACTION>",
            "Ada has 7 points, and it is 42.1648 km.",
        ]
    )
    return lambda _messages: next(turns)


def main() -> None:
    """Discover, prompt, loop, end."""
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    model = scripted_model()
    with Client(root, on_approval=decide) as tamis:
        tamis.initialize()
        tamis.serve("game", [PLAYER], {"player": player})
        usable = [tool.tool_id for tool in tamis.tool_list(filter={"callable": True}).tools if tool.available]
        print(f"tools: {'game:player' in usable} {'units:convert' in usable}")
        prompt = tamis.prompt_generate(protocol="action", tool_ids=["game:player", "units:convert", "text:statistics"])
        messages = [prompt.text, "How is Ada, and how long is a marathon?"]
        config: ToolCallConfig = {"enabled": True, "protocol": "action", "requireConfirmation": True}
        while True:
            text = model(messages)
            step = tamis.agent_step(text=text, session_id="session-1", config=config)
            print(f"model: {step.response_text}")
            if step.stop:  # noTools: that was the answer; the others end a loop that goes nowhere
                break
            print(step.observation)
            messages += [text, step.observation]
        tamis.agent_end(session_id="session-1")
    print("ended")


if __name__ == "__main__":
    try:
        main()
    except (RpcFailure, OSError) as error:  # a request was wrong; the daemon did not start, or has ended
        sys.exit(f"host: {error}")
