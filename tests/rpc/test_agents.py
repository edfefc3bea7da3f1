"""Agents over the wire: a whole conversation in each protocol, the states of calls, sessions, cancels and wrong params."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.client import RpcFailure
from tamis.protocols.contract import ApprovalRequest, SessionMessage, StepResult
from tests.rpc.inside import InsideClient
from tests.runtime.agent_world import SERVICE
from tests.runtime.scripted_model import FORMS, MAX_ITERATIONS, Model, check, make_world, script, transcript
from tests.runtime.workflow_world import flow
from tests.sample_tools import action, make_tool, vcp

ON = {"enabled": True, "protocol": "action"}
ROOT = Path(__file__).resolve().parent.parent.parent
LEGAL_ENDS = {"completed", "denied", "cancelled"}


class Wire:
    """A daemon, and what it told of calls."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.told: list[tuple[str, Any]] = []
        self.client = InsideClient(
            root, on_notification=lambda method, params: self.told.append((method, params)), **options
        )

    def states(self, call_id: str) -> list[str]:
        return [
            params["state"] for method, params in self.told if method == "tool/event" and params["callId"] == call_id
        ]

    def step(self, text: str, session_id: str = "s", **params: Any) -> dict[str, Any]:
        return self.client.request("agent/step", {"text": text, "sessionId": session_id, "config": ON} | params)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    root = tmp_path_factory.mktemp("agents")
    make_tool(root, "test:echo")
    made = Wire(root)
    with made.client as client:
        client.initialize()
        yield made


def taking_one(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda args: function(**args)


def failure(wire: Wire, method: str, params: Any) -> RpcFailure:
    with pytest.raises(RpcFailure) as caught:
        wire.client.request(method, params)
    return caught.value


# conversations


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_over_the_wire_is_the_same(
    form: str, tmp_path: Path
) -> None:  # A40, A48, V22, V48, V52, V60, V61
    protocol, call, broken = FORMS[form]
    world = make_world(tmp_path)
    lines = script(call, broken, several=form != "inputs")
    model = Model(lines)
    hanging = threading.Event()

    def deny(_question: ApprovalRequest) -> str:
        return "reject"

    def hang(_args: Any) -> None:
        hanging.set()
        threading.Event().wait()

    wire = Wire(tmp_path, on_approval=deny)
    said: list[tuple[str, StepResult]] = []
    with wire.client as client:
        client.initialize()
        metadata = [
            {"name": name, "description": name, "parameters": world.parameters(name), "agentCallable": True}
            for name in world.functions
        ]
        handlers = {name: taking_one(function) for name, function in world.functions.items()}
        client.serve(SERVICE, metadata, handlers | {"slow": lambda _: threading.Event().wait(2), "hang": hang})
        config = {
            "enabled": True,
            "protocol": protocol,
            "parallelExecution": protocol in ("vcp", "hermes"),
            "maxIterations": MAX_ITERATIONS,
        }
        observation = ""
        for _ in lines:
            text = model.answer(observation)
            number, future = client.send("agent/step", {"text": text, "sessionId": "s", "config": config})
            if model.hangs(text):
                hanging.wait()
                client.cancel(number)
            result = msgspec.convert(future.result(), StepResult)
            if result.results and result.results[0].status == "accepted":
                client.request("task/result", {"taskId": result.results[0].task_id, "waitMs": 600_000})
            said.append((text, result))
            observation = result.observation
        kept = client.request("agent/session", {"sessionId": "s", "limit": 500})
    messages = msgspec.convert(kept["messages"], list[SessionMessage])
    check(form, said, transcript(said, wire.states, messages))


# states


def test_every_state_of_a_call_is_told_before_its_result(wire: Wire) -> None:  # V60
    for number, (method, params) in enumerate(
        [
            ("tool/execute", {"toolId": "test:echo", "args": {"text": "x"}}),
            ("tool/executeText", {"text": action("test:echo", text="x")}),
            ("agent/step", {"text": action("test:echo", text="x"), "sessionId": "states", "config": ON}),
        ]
    ):
        result = wire.client.request(method, params)
        call_id = result["callId"] if number == 0 else result["results"][0]["callId"]
        # no waiting: what was told has come before the result
        assert wire.states(call_id) == ["pending", "executing", "completed"], method


def test_a_client_that_never_said_who_it_is_gets_only_answers(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:echo")
    made = Wire(tmp_path)
    with made.client as client:
        client.request("tool/execute", {"toolId": "test:echo", "args": {"text": "x"}})
        client.request("tool/executeText", {"text": action("test:echo", text="x")})
        assert made.told == []
        made.step(action("test:echo", text="x"))
        assert made.told == []  # T18


def test_calls_that_are_not_run_have_states_too(wire: Wire) -> None:  # V54, V60
    text = "<ACTION><test:ecko></test:ecko><test:echo><text>x</text></test:echo></ACTION>"
    result = wire.step(text, "not run")
    assert [one["status"] for one in result["results"]] == ["error", "cancelled"]
    assert [wire.states(one["callId"]) for one in result["results"]] == [
        ["pending", "completed"],
        ["pending", "cancelled"],
    ]


# the result


def test_a_step_has_the_fields_of_the_interface(wire: Wire) -> None:  # V22
    result = wire.step("Hi. " + action("test:echo", text="x"), "fields")
    assert set(result) == {
        *("responseText", "hasToolRequests", "requests", "results", "observation", "iteration"),
        *("trailingText", "parsedRequests", "executionResults", "publishable"),
    }
    assert result["requests"] == [
        {
            "requestId": result["results"][0]["callId"],
            "toolName": "test:echo",
            "rawBlock": action("test:echo", text="x"),
            "args": {"text": "x"},
        }
    ]
    assert (result["responseText"], result["hasToolRequests"], result["iteration"]) == ("Hi. ", True, 1)
    assert wire.step("Bye.", "fields")["stop"] == "noTools"


@pytest.mark.parametrize("config", [None, {}, {"enabled": False}])
def test_without_an_enabled_config_nothing_runs(wire: Wire, config: Any) -> None:  # V08, V17
    params = {"text": action("test:echo", text="x"), "sessionId": "off"} | (
        {} if config is None else {"config": config}
    )
    result = wire.client.request("agent/step", params)
    assert (result["stop"], result["results"][0]["status"], result["iteration"]) == ("denied", "blocked", 0)
    assert "toolCallConfig.enabled" in result["explanation"]


def test_an_approval_that_was_polled_finishes_the_same_round(tmp_path: Path) -> None:  # V43, V61
    make_tool(tmp_path, "test:echo")
    make_tool(tmp_path, "test:ask", execution={"requireConfirmation": True})
    wire = Wire(tmp_path)
    text = vcp("test:echo", text="1") + vcp("test:ask", text="2")
    config = {"enabled": True, "protocol": "vcp"}
    with wire.client as client:
        client.request(
            "initialize", {"capabilities": {"experimental": {"tamis": {"approval": "poll", "events": True}}}}
        )
        first = wire.step(text, config=config)
        assert [one["status"] for one in first["results"]] == ["success", "inputRequired"]
        waiting = first["results"][1]
        assert wire.states(waiting["callId"]) == ["pending", "awaitingApproval"]
        answer = {"token": waiting["approval"]["token"], "optionId": waiting["approval"]["options"][0]["optionId"]}
        second = wire.step(text, config=config, approval=answer)
        assert [one["status"] for one in second["results"]] == ["success", "success"]
        # the first call was not run again, and the round is one
        assert second["results"][0] == first["results"][0]
        assert (second["requests"], second["iteration"]) == (first["requests"], 1)
        kept = client.request("agent/session", {"sessionId": "s"})["messages"]
    assert [message["role"] for message in kept] == ["assistant", "tool", "tool", "tool"]
    assert [one["status"] for one in kept[0]["metadata"]["toolCallsRequested"]] == ["completed", "completed"]


def test_a_workflow_that_asks_several_times_is_one_round(tmp_path: Path) -> None:  # V43, V61, V51
    make_tool(tmp_path, "test:echo")
    make_tool(tmp_path, "test:ask", execution={"requireConfirmation": True})
    item = {"type": "test:ask", "item": "text"}
    nodes = [{"id": "m", "type": "map", "inputs": {"items": list("12345")}, "config": item}]
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "each.json").write_text(json.dumps(flow(nodes, outputs={"o": "m.results"})))
    (tmp_path / "tamis.toml").write_text('workflows = ["flows"]\n')
    wire = Wire(tmp_path)
    text = vcp("test:echo", text="1") + vcp("workflow:each")
    config = {"enabled": True, "protocol": "vcp"}
    with wire.client as client:
        client.request(
            "initialize", {"capabilities": {"experimental": {"tamis": {"approval": "poll", "events": True}}}}
        )
        given: dict[str, Any] = {}
        for _ in range(5):
            result = wire.step(text, config=config, **given)
            assert [one["status"] for one in result["results"]] == ["success", "inputRequired"]
            # the same answer of the model, given again, is no loop
            assert (result["iteration"], result.get("stop")) == (1, None)
            given = {"approval": {"token": result["results"][1]["approval"]["token"], "optionId": "allow"}}
        done = wire.step(text, config=config, **given)
        assert (done["results"][1]["status"], done["iteration"], done.get("stop")) == ("success", 1, None)
        assert [one["text"] for one in done["results"][1]["output"]] == list("12345")
        kept = client.request("agent/session", {"sessionId": "s"})["messages"]
    assert [one["status"] for one in kept[0]["metadata"]["toolCallsRequested"]] == ["completed", "completed"]


def test_a_token_that_fits_no_call_of_an_answer_is_unknown_and_nothing_runs(tmp_path: Path) -> None:  # V61
    make_tool(tmp_path, "test:echo")
    make_tool(tmp_path, "test:ask", execution={"requireConfirmation": True})
    wire = Wire(tmp_path)
    asking = vcp("test:ask", text="2")
    config = {"enabled": True, "protocol": "vcp"}
    with wire.client as client:
        client.request(
            "initialize", {"capabilities": {"experimental": {"tamis": {"approval": "poll", "events": True}}}}
        )
        waiting = wire.step(asking, config=config)["results"][0]["approval"]
        answer = {"token": waiting["token"], "optionId": waiting["options"][0]["optionId"]}
        before = client.request("agent/session", {"sessionId": "s"})
        for text, given in (
            (vcp("test:echo", text="1") + vcp("test:ask", text="3"), answer),
            ("No call at all.", answer),
            (asking, answer | {"optionId": "surely"}),
        ):
            error = failure(wire, "agent/step", {"text": text, "sessionId": "s", "config": config, "approval": given})
            assert (error.code, error.data["code"]) == (1401, "approvalUnknown")
        # nothing of these answers is the conversation's, and the question is still open
        assert client.request("agent/session", {"sessionId": "s"}) == before
        # where nothing may run at all, that is said
        off = wire.step(asking, config=config | {"enabled": False}, approval=answer)
        assert off["stop"] == "denied"
        done = wire.step(asking, config=config, approval=answer)
        assert [one["status"] for one in done["results"]] == ["success"]


def test_a_strict_step_runs_only_what_is_well_formed(wire: Wire) -> None:  # A21
    text = action("test:echo", text="a && b")
    assert wire.step(text, "strict")["results"][0]["output"] == {"text": "a && b"}
    refused = wire.step(text, "strict", options={"strict": True})
    assert [(one["status"], one["attempts"]) for one in refused["results"]] == [("error", 0)]
    assert "Malformed XML in ACTION block" in refused["observation"]


# sessions


def test_a_session_is_read_and_ended(wire: Wire) -> None:  # V07, V55
    wire.step("One. " + action("test:echo", text="x"), "a")
    first = wire.client.request("agent/session", {"sessionId": "a", "limit": 1})
    assert (first["state"], first["iteration"], first["turnIteration"], first["dropped"]) == ("idle", 1, 1, 0)
    rest = wire.client.request("agent/session", {"sessionId": "a", "cursor": first["nextCursor"]})
    assert [message["role"] for message in first["messages"] + rest["messages"]] == ["assistant", "tool"]
    assert "nextCursor" not in rest
    assert wire.client.request("agent/end", {"sessionId": "a"}) == {"ended": True, "cancelled": []}
    assert wire.client.request("agent/end", {"sessionId": "a"}) == {"ended": False, "cancelled": []}
    assert wire.client.request("agent/session", {"sessionId": "a"})["state"] == "none"


def test_many_sessions_at_once_do_not_mix(wire: Wire) -> None:
    names = [f"会话 {n}" for n in range(12)]
    sent = [
        wire.client.send("agent/step", {"text": action("test:echo", text=name), "sessionId": name, "config": ON})
        for name, _ in itertools.product(names, range(2))
    ]
    results = [future.result() for _, future in sent]
    assert [result["iteration"] for result in results] == [1, 2] * 12
    for name, result in zip((name for name in names for _ in range(2)), results, strict=True):
        assert result["results"][0]["output"] == {"text": name}


# cancel


@pytest.mark.parametrize("method", ["agent/end", "tool/cancel"])
def test_what_runs_for_a_session_is_cancelled_from_outside(tmp_path: Path, method: str) -> None:  # V52, V53, V54
    make_tool(tmp_path, "test:hang", "import time\ntime.sleep(86400)")
    make_tool(tmp_path, "test:echo")
    begun = threading.Event()
    wire = Wire(tmp_path)
    wire.client._on_notification = lambda method, params: (  # pyright: ignore[reportPrivateUsage]
        wire.told.append((method, params)),
        begun.set() if (method, params.get("state")) == ("tool/event", "executing") and len(wire.told) > 4 else None,
    )
    text = "<ACTION><test:echo></test:echo><test:hang></test:hang><test:echo></test:echo></ACTION>"
    with wire.client as client:
        client.initialize()
        _, future = client.send("agent/step", {"text": text, "sessionId": "s", "config": ON})
        begun.wait()
        ended = client.request(method, {"sessionId": "s"})
        result = future.result()
    assert [one["status"] for one in result["results"]] == ["success", "cancelled", "cancelled"]
    assert result["stop"] == "cancelled"
    assert ended["cancelled"] == [result["results"][1]["callId"]]
    assert {wire.states(one["callId"])[-1] for one in result["results"]} <= LEGAL_ENDS


# what is wrong with a request


@pytest.mark.parametrize(
    "params",
    [
        {"text": "x"},
        {"sessionId": "s"},
        {"text": "x", "sessionId": ""},
        {"text": "x", "sessionId": "s" * 2_000},
        {"text": "x", "sessionId": 3},
        {"text": 3, "sessionId": "s"},
        {"text": "x", "sessionId": "s", "config": {"mode": "sometimes"}},
        {"text": "x", "sessionId": "s", "config": {"maxIterations": 0}},
        {"text": "x", "sessionId": "s", "config": {"timeout": -1}},
        {"text": "x", "sessionId": "s", "config": {"toolToggles": {"a": "no"}}},
        {"text": "x", "sessionId": "s", "config": {"enabled": "yes"}},
        {"text": "x", "sessionId": "s", "config": {"protocol": "morse"}},
        {"text": "x", "sessionId": "s", "config": []},
        {"text": "x", "sessionId": "s", "config": {"enabled": True, "requireConfirmations": True}},
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_wrong_params_are_the_request_s_fault(wire: Wire, params: Any) -> None:
    assert failure(wire, "agent/step", params).code == -32602


def test_a_misspelt_field_of_the_config_is_named(wire: Wire) -> None:
    params = {"text": action("test:echo"), "sessionId": "typo", "config": ON | {"requireConfirmations": True}}
    assert "requireConfirmations" in failure(wire, "agent/step", params).message


def test_nothing_is_run_in_a_folder_that_is_not_trusted(tmp_path: Path) -> None:
    made = Wire(tmp_path)
    with made.client as client:
        client.initialize(trusted=False)
        error = failure(made, "agent/step", {"text": action("test:echo"), "sessionId": "s", "config": ON})
    assert (error.code, error.data["code"]) == (1901, "notTrusted")


def test_the_program_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:  # A20, V05, V48
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    room: dict[str, Any] = {}
    exec(compile(program, "docs/agents.md", "exec"), room)
    read: list[str] = []

    def ask_model(messages: list[dict[str, str]]) -> str:
        read.append(messages[-1]["content"])
        return action("text:statistics", text="One. Two.") if len(messages) == 1 else "Two sentences."

    answer = room["talk"]([{"role": "user", "content": "How many sentences?"}], ask_model)
    assert answer == ("Two sentences.", "noTools")
    assert read[1].startswith("Observation: Tool text:statistics executed successfully. Result: ")
