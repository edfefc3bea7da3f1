"""Questions of MCP servers to clients of 2026-07-28: by `input_required`, and a run that waits for its client (issue 18, MRTR; V79)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.asking_server import make
from tests.mcp.http_client import HttpServer
from tests.mcp.raw_client import FORMS, RawClient, meta
from tests.runtime.workflow_world import flow
from tests.sample_tools import make_tool
from tests.waiting import until

ABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
CITY: dict[str, Any] = {"city": {"type": "string", "title": "City", "minLength": 2}}
FORM: dict[str, Any] = {
    "message": "Where to?",
    "requestedSchema": {"type": "object", "properties": CITY, "required": ["city"]},
}
CHOICE: dict[str, Any] = {
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}},
}
ADDRESS: dict[str, Any] = {"mode": "url", "message": "Log in", "url": "https://a.example/x", "elicitationId": "1"}
ACCEPTED: dict[str, Any] = {"action": "accept", "content": {"city": "Bern"}}


def begun(server: RawClient, *questions: dict[str, Any], **told: Any) -> dict[str, Any]:
    """The answer to a call whose server asks these."""
    return server.modern("tools/call", asking(*questions), **({"able": ABLE} | told))


def asking(*questions: dict[str, Any]) -> dict[str, Any]:
    return {"name": "mcp_question", "arguments": {"questions": [*questions]}}


def again(
    server: RawClient, before: dict[str, Any] | str, answer: Any, *questions: dict[str, Any], **told: Any
) -> dict[str, Any]:
    """The answer to the repeated call."""
    state = before if isinstance(before, str) else before["result"]["requestState"]
    params = {**asking(*questions), "requestState": state, "inputResponses": {"question": answer}}
    return server.modern("tools/call", params, **({"able": ABLE} | told))


def heard(answer: dict[str, Any]) -> list[Any]:
    assert answer["result"]["resultType"] == "complete", answer
    return json.loads(answer["result"]["content"][0]["text"])["heard"]


def put(answer: dict[str, Any]) -> dict[str, Any]:
    """The params of the question that a result asks."""
    assert answer["result"]["resultType"] == "input_required", answer
    request = answer["result"]["inputRequests"]["question"]
    assert request["method"] == "elicitation/create"
    return request["params"]


@pytest.mark.parametrize("how", ["", "modern"])
def test_a_form_a_choice_and_an_address_are_answered_with_repeated_calls(tmp_path: Path, how: str) -> None:
    """mcp 1: one run of the server's tool, whichever revision the server speaks."""
    make(tmp_path, how)
    questions = (FORM, CHOICE, ADDRESS)
    with RawClient(tmp_path) as server:
        first = begun(server, *questions)
        assert put(first)["message"].startswith("The MCP server 'test' asks")
        assert put(first)["requestedSchema"] == FORM["requestedSchema"]
        second = again(server, first, ACCEPTED, *questions)
        choices = put(second)["requestedSchema"]["properties"]["decision"]["oneOf"]
        assert [one["const"] for one in choices] == ["choice-1", "choice-2"]
        third = again(server, second, {"action": "accept", "content": {"decision": "choice-2"}}, *questions)
        assert (put(third)["mode"], put(third)["url"]) == ("url", "https://a.example/x")
        assert "elicitationId" not in put(third)  # 2026-07-28 has none
        done = again(server, third, {"action": "accept"}, *questions)
    assert heard(done) == [ACCEPTED, {"action": "accept", "content": {"colour": "blue"}}, {"action": "accept"}]
    assert len({one["result"]["requestState"] for one in (first, second, third)}) == 3


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refusal_reaches_the_server_as_it_was_and_the_call_goes_on(tmp_path: Path, action: str) -> None:
    make(tmp_path)
    with RawClient(tmp_path) as server:
        questions = (FORM, CHOICE, ADDRESS)
        answer = begun(server, *questions)
        for _ in questions:
            put(answer)
            answer = again(server, answer, {"action": action}, *questions)
    assert heard(answer) == [{"action": action}] * 3


def test_answers_that_break_the_form_are_asked_for_again_and_reach_no_server(tmp_path: Path) -> None:
    """mcp 1: what is typed is checked here, three times at most; a flood of text is no answer either."""
    make(tmp_path)
    with RawClient(tmp_path) as server:
        first = begun(server, FORM)
        second = again(server, first, {"action": "accept", "content": {"city": "x" * 10_000_000, "more": 1}}, FORM)
        assert put(second)["requestedSchema"]["properties"]["city"]["description"] == "it has at most 4000 characters"
        third = again(server, second, {"action": "accept", "content": {"city": ["Bern"]}}, FORM)
        assert put(third)["requestedSchema"]["properties"]["city"]["description"] == "it is a text"
        done = again(server, third, {"action": "accept", "content": {}}, FORM)
    assert heard(done) == [{"action": "cancel"}]


@pytest.mark.parametrize("responses", [None, {}, {"question": 7}, {"question": {"action": "accept"}}, {"approval": ACCEPTED},
                                       {"question": {"action": "accept", "content": [1]}}, {"question": {"action": "yes"}}], ids=str)  # fmt: skip
def test_what_is_no_answer_is_asked_for_again(tmp_path: Path, responses: Any) -> None:
    make(tmp_path)
    with RawClient(tmp_path) as server:
        first = begun(server, FORM)
        params = {**asking(FORM), "requestState": first["result"]["requestState"], "inputResponses": responses}
        assert server.modern("tools/call", params, able=ABLE)["result"] == first["result"]
        assert heard(again(server, first, ACCEPTED, FORM)) == [ACCEPTED]


def test_no_other_state_goes_on_with_a_run(tmp_path: Path) -> None:
    """mcp 1, Bad input: a tampered requestState, a replayed one, and one of another question."""
    make(tmp_path)
    with RawClient(tmp_path) as server:
        first = begun(server, FORM, CHOICE)
        state = first["result"]["requestState"]
        flipped = ("0" if state[0] != "0" else "1") + state[1:]
        for wrong in (flipped, state[:-1], state + "0", state.upper() + "Z", "x" * 100_000):
            assert again(server, wrong, ACCEPTED, FORM, CHOICE)["error"]["code"] == -32602
        second = again(server, first, ACCEPTED, FORM, CHOICE)
        # the first one is used up, also while its run waits for another answer
        assert again(server, first, ACCEPTED, FORM, CHOICE)["error"]["code"] == -32602
        done = again(server, second, {"action": "decline"}, FORM, CHOICE)
        assert again(server, second, {"action": "decline"}, FORM, CHOICE)["error"]["code"] == -32602
    assert heard(done) == [ACCEPTED, {"action": "decline"}]


def test_a_state_is_of_its_call_and_its_arguments_alone(tmp_path: Path) -> None:
    """mcp 1: a run is gone on with by the call that began it; whoever tries another one takes nothing from it."""
    make(tmp_path)
    make_tool(tmp_path, "core:echo")
    with RawClient(tmp_path) as server:
        first = begun(server, FORM)
        assert again(server, first, ACCEPTED, CHOICE)["error"]["code"] == -32602
        taken = {"requestState": first["result"]["requestState"], "inputResponses": {"question": ACCEPTED}}
        for name in ("core_echo", "mcp_count"):
            answer = server.modern("tools/call", {"name": name, "arguments": {}, **taken}, able=ABLE)
            assert answer["error"]["code"] == -32602
        assert heard(again(server, first, ACCEPTED, FORM)) == [ACCEPTED]


def test_a_state_is_of_its_session_alone(tmp_path: Path) -> None:
    make(tmp_path)
    with RawClient(tmp_path) as server, RawClient(tmp_path) as other:
        first = begun(server, FORM)
        assert again(other, first, ACCEPTED, FORM)["error"]["code"] == -32602
        assert heard(again(server, first, ACCEPTED, FORM)) == [ACCEPTED]


def test_a_question_that_nobody_comes_back_with_is_over_in_time(tmp_path: Path) -> None:
    """mcp 1: the server hears that it was closed, and the state answers nothing any more."""
    make(tmp_path, settings="[policy]\napprovalTimeoutMs = 300\n")
    with RawClient(tmp_path) as server:
        first = begun(server, FORM)
        until(lambda: any("call.ended" in line for line in server.errors))
        late = again(server, first, ACCEPTED, FORM)
        assert late["error"]["code"] == -32602
        assert "expired" in late["error"]["message"]


@pytest.mark.parametrize("how", ["", "modern"])
def test_a_client_without_forms_is_asked_nothing_and_its_servers_know(tmp_path: Path, how: str) -> None:
    make(tmp_path, how)
    with RawClient(tmp_path) as server:
        result = begun(server, FORM, able={})["result"]
    assert result["resultType"] == "complete"
    if how:
        assert result["isError"] is True  # it was told that nobody is there, and wants input all the same
    else:
        said = json.loads(result["content"][0]["text"])
        assert said["able"] == {}
        assert said["heard"][0]["code"] == -32601


def test_a_client_without_addresses_is_shown_none(tmp_path: Path) -> None:
    make(tmp_path)
    with RawClient(tmp_path) as server:
        first = begun(server, ADDRESS, FORM, able=FORMS)
        assert put(first)["requestedSchema"] == FORM["requestedSchema"]
        assert heard(again(server, first, ACCEPTED, ADDRESS, FORM, able=FORMS)) == [{"action": "decline"}, ACCEPTED]


@pytest.mark.parametrize("able", [{}, {"elicitation": {"form": {}}}], ids=str)
def test_who_goes_on_can_do_what_who_began_could(tmp_path: Path, able: dict[str, Any]) -> None:
    """2026-07-28: nothing is asked for that the request at hand did not declare (-32021); the state stays as it was."""
    make(tmp_path)
    with RawClient(tmp_path) as server:
        first = begun(server, FORM, ADDRESS)
        refused = again(server, first, ACCEPTED, FORM, ADDRESS, able=able)["error"]
        assert refused["code"] == -32021
        assert refused["data"] == {"requiredCapabilities": {"elicitation": {"form": {}, "url": {}}}}
        assert put(again(server, first, ACCEPTED, FORM, ADDRESS))["mode"] == "url"


@pytest.mark.parametrize("how", ["", "modern"])
def test_a_server_that_asks_for_ever_ends_its_call(tmp_path: Path, how: str) -> None:
    make(tmp_path, how)
    questions = [CHOICE] * 9
    with RawClient(tmp_path) as server:
        answer = begun(server, *questions)
        rounds = 0
        while answer["result"]["resultType"] == "input_required":
            answer = again(server, answer, {"action": "decline"}, *questions)
            rounds += 1
    assert rounds == 8
    assert answer["result"]["_meta"]["dev.tamis/errorType"] == "OutputFormatError"


def test_approval_and_question_are_two_states(tmp_path: Path) -> None:
    """ruling 40: an answer to a server allows no call, and a yes to a call answers no server."""
    make(tmp_path, settings='[policy.tools]\n"mcp:question" = "ask"\n')
    with RawClient(tmp_path) as server:
        first = begun(server, FORM)
        assert list(first["result"]["inputRequests"]) == ["approval"]
        assert again(server, first, ACCEPTED, FORM)["result"] == first["result"]
        allowed = {"approval": {"action": "accept", "content": {"decision": "allow_once"}}}
        params = {**asking(FORM), "requestState": first["result"]["requestState"], "inputResponses": allowed}
        second = server.modern("tools/call", params, able=ABLE)
        put(second)
        params = {**params, "requestState": second["result"]["requestState"]}
        assert server.modern("tools/call", params, able=ABLE)["result"] == second["result"]
        assert heard(again(server, second, ACCEPTED, FORM)) == [ACCEPTED]


def test_a_cancel_ends_the_run_that_a_call_went_on_with(tmp_path: Path) -> None:
    make(tmp_path)
    args = {"questions": [FORM], "raw": "takes back"}
    with RawClient(tmp_path) as server:
        first = server.modern("tools/call", {"name": "mcp_question", "arguments": args}, able=ABLE)
        put(first)
        told = {"name": "mcp_question", "arguments": args, "requestState": first["result"]["requestState"]}
        params = {**told, "inputResponses": {"question": ACCEPTED}, "_meta": meta(able=ABLE)}
        server.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        until(lambda: any("call.ended status=cancelled" in line for line in server.errors))
        assert not [one for one in server.seen if one.get("id") == 7]
        assert server.modern("tools/call", params, able=ABLE)["error"]["code"] == -32602


STEPS = """import os, sys, time
while not os.path.exists(os.path.join(os.path.dirname(__file__), 'go')):
    print('[progress] on the way', file=sys.stderr, flush=True)
    time.sleep(0.05)
print('1')
"""


def test_a_run_that_waits_says_nothing_and_the_next_request_is_told_the_rest(tmp_path: Path) -> None:
    """2026-07-28: nothing is told of a request that was answered, whatever goes on meanwhile."""
    make(tmp_path, settings='logLevel = "debug"\nworkflows = ["flows"]\n')
    folder = make_tool(tmp_path, "core:steps", STEPS, properties={})
    nodes = [
        {"id": "ask", "type": "mcp:question", "inputs": {"questions": [FORM]}},
        {"id": "steps", "type": "core:steps", "inputs": {}},
    ]
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "both.json").write_text(json.dumps(flow(nodes, outputs={"asked": "ask.output"})), "utf-8")
    call = {"name": "both", "arguments": {}}
    with RawClient(tmp_path) as server:
        first = server.ask("tools/call", {**call, "_meta": meta(able=ABLE, progressToken="first")})
        put(first)
        told = server.later("notifications/progress")
        until(lambda: any("core:steps run.started" in line for line in server.errors))
        for _ in range(20):
            server.modern("tools/list")
            time.sleep(0.02)
        assert server.later("notifications/progress") == told
        taken = {"requestState": first["result"]["requestState"], "inputResponses": {"question": ACCEPTED}}
        params = {**call, **taken, "_meta": meta(able=ABLE, progressToken="second")}
        server.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        while server.next()["params"]["progressToken"] != "second":
            pass
        (folder / "go").write_text("")
        assert server.until(7)["result"]["isError"] is False


def test_over_http_a_run_waits_for_its_client_too(tmp_path: Path) -> None:
    """mcp 1: each POST stands alone, and goes on with the run that its state is of."""
    make(tmp_path)
    with HttpServer(tmp_path) as server:
        first = server.modern("tools/call", asking(FORM), able=ABLE).last()
        put(first)
        taken = {"requestState": first["result"]["requestState"], "inputResponses": {"question": ACCEPTED}}
        done = server.modern("tools/call", {**asking(FORM), **taken}, able=ABLE).last()
    assert heard(done) == [ACCEPTED]


def test_two_calls_that_go_on_at_once_are_one_and_an_error(tmp_path: Path) -> None:
    """mcp 1: a state that is sent twice in the same moment is used once."""
    make(tmp_path)
    with RawClient(tmp_path) as server:
        first = begun(server, FORM)
        taken = {"requestState": first["result"]["requestState"], "inputResponses": {"question": ACCEPTED}}
        params = {**asking(FORM), **taken, "_meta": meta(able=ABLE)}
        lines = [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params} for number in (7, 8)]
        server.send(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        answers = [server.next(), server.next()]
    assert sorted("error" in answer for answer in answers) == [False, True]
    assert [heard(answer) for answer in answers if "result" in answer] == [[ACCEPTED]]


def test_so_many_runs_wait_and_no_more(tmp_path: Path) -> None:
    """mcp 1: a client that never comes back holds 32 runs at most; the question of the oldest is closed."""
    make(tmp_path, "modern")
    with RawClient(tmp_path) as server:
        states = [begun(server, FORM)["result"]["requestState"] for _ in range(33)]
        assert again(server, states[0], ACCEPTED, FORM)["error"]["code"] == -32602
        for state in states[1:]:
            assert heard(again(server, state, ACCEPTED, FORM)) == [ACCEPTED]
