"""``prompt/generate`` and ``observation/format`` over a real process."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tamis.client import Client, RpcFailure
from tamis.server.rpc.methods import RpcServer
from tamis.server.rpc.session import Request
from tamis.server.runtime.texts import grammars, prompts
from tests.rpc.inside import InsideClient
from tests.rpc.raw_host import RawHost
from tests.sample_tools import action, make_tool, tam, vcp


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prompts")
    examples = [
        {"description": "Hello.", "input": {"text": "hello"}},
        {"description": "再见。", "input": {"text": "再见"}},
    ]
    make_tool(folder, "test:echo", aliases=["test_echo"], tags=["a"], examples=examples, required=["text"])
    make_tool(folder, "other:count", properties={"n": {"type": "integer"}}, tags=["b"])
    return folder


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    with InsideClient(root) as started:
        yield started


def refused(client: Client, method: str, params: Any) -> RpcFailure:
    with pytest.raises(RpcFailure) as caught:
        client.request(method, params)
    return caught.value


def test_a_prompt_has_text_etag_tokens_and_macro(client: Client) -> None:  # V30, V35, A31, A32, A35
    made = client.request("prompt/generate", {"protocol": "action", "fewShot": 1})
    assert set(made) == {"text", "etag", "protocol", "style", "fewShot", "tokens", "macro", "notes"}
    assert "`<![CDATA[`" in made["text"]
    assert "*   `<test_echo>`: Test tool test:echo" in made["text"]
    assert "<text>hello</text>" in made["text"]
    tokens = made["tokens"]
    assert set(tokens) == {"total", "exact", "perTool"}
    assert set(tokens["perTool"]) == {"test:echo", "other:count"}
    assert 0 < sum(tokens["perTool"].values()) < tokens["total"] < len(made["text"])
    assert isinstance(tokens["exact"], bool)
    assert made["macro"]["name"] == "tools"
    assert made["macro"]["priority"] == 95
    assert made["macro"]["contextFree"] is False
    assert made["fewShot"] == 1
    assert client.request("prompt/generate", {"protocol": "action", "fewShot": 1}) == made


def test_the_protocol_is_the_configured_one_unless_given(client: Client) -> None:  # V16
    assert client.request("prompt/generate", {})["protocol"] == "action"  # T19
    assert client.request("prompt/generate", {"protocol": "tam"})["protocol"] == "tam"


def test_tools_style_and_template_are_the_requests(client: Client) -> None:
    chosen = client.request("prompt/generate", {"protocol": "vcp", "toolIds": ["test_echo"], "instructions": False})
    assert set(chosen["tokens"]["perTool"]) == {"test:echo"}
    assert chosen["text"].startswith("<<<[TOOL_DEFINITION]>>>")
    assert set(client.request("prompt/generate", {"filter": {"tags": ["b"]}})["tokens"]["perTool"]) == {"other:count"}
    compact = client.request("prompt/generate", {"protocol": "tam", "style": "compact", "instructions": False})
    assert "`test:echo`(text: string): Test tool" in compact["text"]
    template = {"template": "<< {{tools}} >> \\{{tools}} {{user}}", "toolIds": ["test:echo"], "instructions": False}
    template["protocol"] = "vcp"
    assert client.request("prompt/generate", template)["text"] == f"<< {chosen['text']} >> {{{{tools}}}} {{{{user}}}}"
    inputs = client.request("prompt/generate", {"protocol": "action", "shape": "inputs", "fewShot": 1})
    assert '<input name="text">hello</input>' in inputs["text"]


@pytest.mark.parametrize("method", ["prompt/generate", "prompt/grammar"])
def test_a_prompt_or_grammar_is_made_off_the_loop(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # R4: of 10,000 tools server/health waited for 10.9 s
    make_tool(tmp_path, "test:echo")
    answered = threading.Event()
    real = prompts.shown_tools

    def slow(*given: Any) -> Any:
        answered.wait()
        return real(*given)

    monkeypatch.setattr(prompts, "shown_tools", slow)
    monkeypatch.setattr(grammars, "shown_tools", slow)

    async def run() -> Any:
        server = RpcServer(tmp_path)
        making = server.session.methods[method].handler
        params = {"format": "gbnf"} if method == "prompt/grammar" else {}
        request = Request(server.session, 1, lambda _: None)
        made = asyncio.ensure_future(cast("Any", making(request, params)))
        health = server.session.methods["server/health"].handler(request, {})
        while not made.done():
            await asyncio.sleep(0.01)
            answered.set()
        return health, await made

    health, made = asyncio.run(run())
    assert health and "test:echo" in made.text


@pytest.mark.parametrize("method", ["prompt/generate", "prompt/grammar"])
def test_a_daemon_answers_all_the_time_while_it_writes_of_10000_tools(
    method: str, tmp_path: Path, is_long: bool
) -> None:
    # R4: server/health waited 10.9 s
    if not is_long:
        pytest.skip("it makes 10,000 tools: --long runs it")
    (tmp_path / "tool.py").write_text("print(1)")
    parameters = {f"p{k}": {"type": "string", "description": f"What part {k} of the work is about."} for k in range(4)}
    for number in range(10_000):
        fields = {
            "toolId": f"many:tool_{number}",
            "displayName": f"Tool {number}",
            "description": f"Does the work of number {number} and gives back what it made of it, as text.",
            "version": "1.0.0",
            "handler": {"type": "external-script", "scriptPath": "tool.py", "language": "python"},
            "parameters": {"type": "object", "properties": parameters},
        }
        (tmp_path / f"t{number}.tool.json").write_text(json.dumps(fields))
    took: list[float] = []
    with RawHost(tmp_path, process=True) as host:
        host.send(id=1, method="server/health", params={})
        host.until(id=1)
        host.send(id=2, method=method, params={"format": "gbnf"} if method == "prompt/grammar" else {})
        number, made = 2, False
        while not made:
            number += 1
            began = time.perf_counter()
            host.send(id=number, method="server/health", params={})
            while (answer := host.next())["id"] != number:
                made = made or answer["id"] == 2
            took.append(time.perf_counter() - began)
            time.sleep(0.01)
    took.sort()
    # an answer that waited for the text would take all of the time
    assert took[len(took) // 2] < sum(took) / 10


def test_a_budget_leaves_tools_out_and_names_them(client: Client) -> None:
    wanted = {"instructions": False, "style": "compact"}
    full = client.request("prompt/generate", wanted)
    fewer = client.request("prompt/generate", {**wanted, "maxTokens": full["tokens"]["total"] - 1})
    shown, left_out = set(fewer["tokens"]["perTool"]), set(full["tokens"]["perTool"]) - set(fewer["tokens"]["perTool"])
    assert shown and left_out
    assert all(name in fewer["notes"][0] for name in left_out)
    assert fewer["tokens"]["total"] < full["tokens"]["total"]


def test_a_budget_is_kept_or_refused(client: Client) -> None:
    full = client.request("prompt/generate", {"fewShot": 2})
    less = client.request("prompt/generate", {"fewShot": 2, "maxTokens": full["tokens"]["total"] - 1})
    assert less["fewShot"] == 1
    assert "left out" in less["notes"][0]
    error = refused(client, "prompt/generate", {"maxTokens": 5})
    assert error.code == -32602
    assert "more than maxTokens 5" in str(error)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"toolIds": ["test:ecko"]}, "no tool 'test:ecko', did you mean 'test:echo'?"),
        ({"protocol": "acton"}, "did you mean 'action'?"),
        ({"style": "short"}, "`/style"),
        ({"fewShot": -1}, "`/fewShot"),
        ({"fewShot": 51}, "`/fewShot"),
        ({"maxTokens": 0}, "`/maxTokens"),
        ({"toolIds": "test:echo"}, "`/toolIds"),
    ],
)
def test_wrong_params_are_named(client: Client, params: dict[str, Any], words: str) -> None:
    error = refused(client, "prompt/generate", params)
    assert error.code == -32602
    assert words in str(error)


def formatted(client: Client, *results: dict[str, Any], **params: Any) -> str:
    return client.request("observation/format", {"results": [*results], **params})["text"]


FAILED = {"type": "ScriptError", "message": "Division by zero in script.", "details": {"text": "Traceback…"}}


def test_the_essential_fields_of_a_result_are_enough(client: Client) -> None:  # A27, D65 to D67
    weather = {"toolId": "ReadWorldStateTool", "status": "success", "output": "sunny"}
    said = "Tool ReadWorldStateTool executed successfully."
    assert formatted(client, weather, protocol="action") == f"Observation: {said} Result: sunny"
    assert formatted(client, weather, protocol="tam") == f"Observation: {said} Result: sunny"
    assert formatted(client, weather, protocol="action", shape="inputs") == (
        f'<OBSERVATION tool_id="ReadWorldStateTool">{said} Output: "sunny"</OBSERVATION>'
    )
    assert formatted(client, weather | {"requestId": "r1", "durationMs": 7}, protocol="vcp") == (
        "<<<[TOOL_RESULT]>>>\nrequest_id:「始」r1「末」,\ntool_name:「始」ReadWorldStateTool「末」,\nstatus:「始」success「末」,\n"
        "duration_ms:「始」7「末」,\nresult:「始」sunny「末」\n<<<[END_TOOL_RESULT]>>>"
    )
    failed = {"toolId": "core:x", "status": "error", "error": FAILED, "attempts": 1}
    assert formatted(client, failed, protocol="action") == (
        "Observation: Tool core:x failed. Error type: ScriptError. Message: Division by zero in script. Details: Traceback…"
    )


@pytest.mark.parametrize(
    "text",
    [
        action("test_echo", text="x") + "\n",
        action("test_echo", txet="x"),
        action("nobody"),
        "<ACTION><test_echo><text>x</text></test_echo><other:count></other:count></ACTION>",
        tam({"command": "test:echo", "text": "x"}, {"command": "test:echo", "txet": "x"}),
        tam({"command": "test:echo", "text": "x"}),
        vcp("test:echo", text="x") + vcp("test:echo"),
        "<ACTION><tool_id>test:echo</tool_id><inputs><input name='txet'>1</input></inputs></ACTION>",
        "<ACTION><test_echo><text>cut",
    ],
)
def test_results_of_a_run_come_out_as_the_run_said_it(client: Client, text: str) -> None:
    done = client.request("tool/executeText", {"text": text, "dryRun": True, "onError": "continue"})
    steps = {call["callId"]: call.get("step") for call in done["parse"]["calls"]}
    results = [result | {"step": steps[result["callId"]]} for result in done["results"]]
    protocol = done["parse"]["blocks"][0]["protocol"]
    shape = "inputs" if "<inputs>" in text else "tag"
    told = "\n".join(result["observation"] for result in done["results"])
    assert formatted(client, *results, protocol=protocol, shape=shape) == told


def test_long_values_are_cut_to_the_bound_and_the_text_says_how_much(client: Client) -> None:
    long = {"toolId": "a", "output": "x" * 50_000}
    text = formatted(client, long, {"toolId": "b", "output": "short"}, protocol="vcp", maxChars=1_000)
    assert len(text) <= 1_000
    assert "characters cut]" in text
    assert "short" in text
    assert text.count("<<<[END_TOOL_RESULT]>>>") == 2


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"results": [], "protocol": "auto"}, "`/protocol"),
        ({"results": [], "protocol": "nope"}, "no protocol 'nope'"),
        ({"results": []}, "protocol"),
        ({"results": [{"status": "success"}], "protocol": "vcp"}, "toolId"),
        ({"results": [{"toolId": "x", "status": "great"}], "protocol": "vcp"}, "`/results/0/status"),
        ({"results": [], "protocol": "vcp", "maxChars": 0}, "`/maxChars"),
    ],
)
def test_wrong_results_are_named(client: Client, params: dict[str, Any], words: str) -> None:
    error = refused(client, "observation/format", params)
    assert error.code == -32602
    assert words in str(error)


def test_no_results_are_no_text(client: Client) -> None:
    assert formatted(client, protocol="vcp") == ""
