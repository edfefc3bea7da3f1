"""A person's word through an MCP client: by a form in the result, by our request, or not at all (mcp, Approvals)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.asking_server import make
from tests.mcp.raw_client import FORMS, HANDSHAKE, RawClient, meta
from tests.sample_tools import make_tool

ASKED: dict[str, Any] = {"name": "core_asks", "arguments": {"text": "x"}}


def answer(state: str, decision: str | None = None, action: str = "accept") -> dict[str, Any]:
    content = {} if decision is None else {"content": {"decision": decision}}
    return {"requestState": state, "inputResponses": {"approval": {"action": action, **content}}}


def asks(server: RawClient, **params: Any) -> dict[str, Any]:
    return server.modern("tools/call", {**ASKED, **params}, able=FORMS)


def test_a_client_that_shows_no_form_is_never_silently_allowed(server: RawClient) -> None:
    result = server.call("core_asks", {"text": "x"})
    assert result["isError"] is True
    assert result["_meta"]["dev.tamis/status"] == "approvalUnavailable"
    assert "ask for approval" in result["content"][0]["text"]


def test_a_modern_client_answers_with_the_repeated_call(server: RawClient) -> None:
    first = asks(server)["result"]
    assert first["resultType"] == "input_required"
    question = first["inputRequests"]["approval"]
    assert question["method"] == "elicitation/create"
    assert "core:asks" in question["params"]["message"]
    choices = question["params"]["requestedSchema"]["properties"]["decision"]["oneOf"]
    assert [one["const"] for one in choices] == ["allow_once", "allow_session", "deny"]
    done = asks(server, **answer(first["requestState"], "allow_once"))["result"]
    assert done["structuredContent"] == {"text": "x"}
    assert asks(server)["result"]["resultType"] == "input_required"


def test_allowed_for_the_session_is_not_asked_again(server: RawClient) -> None:
    state = asks(server)["result"]["requestState"]
    asks(server, **answer(state, "allow_session"))
    assert asks(server)["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("given", "status"),
    [({"decision": "deny"}, "denied"), ({"action": "decline"}, "denied"), ({"action": "cancel"}, "cancelled")],
    ids=str,
)
def test_a_refused_call_says_so_and_does_not_run(server: RawClient, given: dict[str, str], status: str) -> None:
    """ruling 40: a refusal and a closed question are two outcomes."""
    state = asks(server)["result"]["requestState"]
    result = asks(server, **answer(state, **given))["result"]
    assert result["isError"] is True
    assert result["_meta"]["dev.tamis/status"] == status
    again = asks(server, **answer(state, "allow_once"))
    assert again["error"]["code"] == -32602


@pytest.mark.parametrize("responses", [None, {}, {"other": {}}, {"approval": {"action": "accept"}}, {"approval": 7},
                                       {"approval": {"action": "accept", "content": {"decision": "always"}}}], ids=str)  # fmt: skip
def test_a_missing_answer_is_asked_for_again(server: RawClient, responses: Any) -> None:
    first = asks(server)["result"]
    again = asks(server, requestState=first["requestState"], inputResponses=responses)["result"]
    assert again["requestState"] == first["requestState"]
    assert again["resultType"] == "input_required"
    assert asks(server, **answer(first["requestState"], "allow_once"))["result"]["isError"] is False


def test_a_tampered_state_runs_nothing(server: RawClient) -> None:
    """issue of MCP, Bad input: a tampered `requestState`."""
    state = asks(server)["result"]["requestState"]
    flipped = ("0" if state[0] != "0" else "1") + state[1:]
    for wrong in (flipped, state[:-1], state + "0", "", state.upper() + "Z", "x" * 100_000):
        told = asks(server, **answer(wrong, "allow_once"))
        assert told.get("error", {}).get("code") == -32602 or told["result"]["resultType"] == "input_required"
    for wrong in (7, {}, []):
        assert asks(server, **answer(wrong, "allow_once"))["error"]["code"] == -32602  # type: ignore[arg-type]


def test_a_state_fits_only_the_call_that_it_was_given_for(server: RawClient) -> None:
    state = asks(server)["result"]["requestState"]
    other = asks(server, arguments={"text": "y"}, **answer(state, "allow_once"))
    assert other["error"]["code"] == -32602
    echo = server.modern("tools/call", {"name": "core_echo", **answer(state, "allow_once")}, able=FORMS)
    assert echo["error"]["code"] == -32602
    assert asks(server, **answer(state, "allow_once"))["result"]["isError"] is False


def test_a_state_is_used_once(server: RawClient) -> None:
    state = asks(server)["result"]["requestState"]
    assert asks(server, **answer(state, "allow_once"))["result"]["isError"] is False
    assert asks(server, **answer(state, "allow_once"))["error"]["code"] == -32602


def test_a_state_is_forgotten_when_its_time_is_over(root: Path) -> None:
    (root / "tamis.toml").write_text("[policy]\napprovalTimeoutMs = 1\n")
    with RawClient(root) as server:
        server.modern("tools/list")
        state = asks(server)["result"]["requestState"]
        server.call("core_echo")
        assert asks(server, **answer(state, "allow_once"))["error"]["code"] == -32602


@pytest.mark.parametrize("version", HANDSHAKE[:2])
@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"action": "accept", "content": {"decision": "allow_once"}}, "success"),
        ({"action": "accept", "content": {"decision": "deny"}}, "denied"),
        ({"action": "accept", "content": {"decision": "yes"}}, "cancelled"),
        ({"action": "accept"}, "cancelled"),
        ({"action": "decline"}, "denied"),
        ({"action": "cancel"}, "cancelled"),
        ({}, "cancelled"),
    ],
    ids=str,
)
def test_an_earlier_client_is_asked_by_our_request(
    server: RawClient, version: str, reply: dict[str, Any], status: str
) -> None:
    server.shake(version, FORMS)
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ASKED})
    question = server.next()
    assert question["method"] == "elicitation/create"
    assert question["params"]["requestedSchema"]["required"] == ["decision"]
    server.send({"jsonrpc": "2.0", "id": question["id"], "result": reply})
    assert server.until(1)["result"]["_meta"]["dev.tamis/status"] == status


def test_a_client_that_cannot_answer_after_all_allows_nothing(server: RawClient) -> None:
    server.shake(able=FORMS)
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ASKED})
    question = server.next()
    server.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}})
    assert server.until(1)["result"]["_meta"]["dev.tamis/status"] == "approvalUnavailable"


def test_a_question_of_an_mcp_server_is_passed_on_as_the_server_s(tmp_path: Path) -> None:
    make(tmp_path)
    field = {"type": "string", "enum": ["red", "blue"]}
    question = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"colour": field}}}
    with RawClient(tmp_path) as server:
        server.shake(able=FORMS)
        params = {"name": "mcp_question", "arguments": {"questions": [question, question]}}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        asked = server.next()
        assert asked["params"]["message"].startswith("The MCP server 'test' asks")
        choices = asked["params"]["requestedSchema"]["properties"]["decision"]["oneOf"]
        assert [one["const"] for one in choices] == ["choice-1", "choice-2"]
        reply = {"action": "accept", "content": {"decision": "choice-2"}}
        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": reply})
        server.send({"jsonrpc": "2.0", "id": server.next()["id"], "result": {"action": "decline"}})
        heard = json.loads(server.until(1)["result"]["content"][0]["text"])["heard"]
    assert heard == [{"action": "accept", "content": {"colour": "blue"}}, {"action": "decline"}]


FIELDS: dict[str, Any] = {
    "city": {"type": "string", "title": "City", "minLength": 2, "default": "Bern"},
    "people": {"type": "integer", "title": "People", "minimum": 1, "maximum": 9},
    "mail": {"type": "string", "title": "Mail", "description": "Where to", "format": "email"},
    "window": {"type": "boolean", "title": "Window", "default": True},
    "class": {"type": "string", "title": "Class", "oneOf": [{"const": "1", "title": "First"}]},
    "meals": {"type": "array", "title": "Meals", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "maxItems": 1},
}
"""In the form of 2025-11-25, which says all of it."""


def test_a_form_and_an_address_of_an_mcp_server_are_passed_on(tmp_path: Path) -> None:
    """mcp 1: the client is shown the same form, and its answer is checked before the server gets it."""
    make(tmp_path)
    schema = {"type": "object", "properties": FIELDS, "required": ["city"]}
    address = {"mode": "url", "message": "Log in", "url": "https://a.example/x", "elicitationId": "1"}
    with RawClient(tmp_path) as server:
        server.shake("2025-11-25", {"elicitation": {"form": {}, "url": {}}})
        questions = [{"message": "Where to?", "requestedSchema": schema}, address]
        params = {"name": "mcp_question", "arguments": {"questions": questions}}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        asked = server.next()
        assert asked["params"]["message"].startswith("The MCP server 'test' asks")
        assert asked["params"]["requestedSchema"] == schema
        wrong = {"action": "accept", "content": {"city": "B"}}
        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": wrong})
        again = server.next()
        told = again["params"]["requestedSchema"]["properties"]["city"]
        assert (told["description"], told["default"]) == ("it has at least 2 characters", "B")
        right = {"action": "accept", "content": {"city": "Bern", "meals": ["a"]}}
        server.send({"jsonrpc": "2.0", "id": again["id"], "result": right})
        opened = server.next()
        assert (opened["params"]["mode"], opened["params"]["url"]) == ("url", "https://a.example/x")
        server.send({"jsonrpc": "2.0", "id": opened["id"], "result": {"action": "accept"}})
        heard = json.loads(server.until(1)["result"]["content"][0]["text"])["heard"]
    assert heard == [{"action": "accept", "content": right["content"]}, {"action": "accept"}]


def test_a_list_of_values_is_no_field_of_an_earlier_revision(tmp_path: Path) -> None:
    make(tmp_path)
    with RawClient(tmp_path) as server:
        server.shake("2025-06-18", FORMS)
        questions = [
            {"message": "m", "requestedSchema": {"type": "object", "properties": FIELDS}},
            {
                "message": "m",
                "requestedSchema": {"type": "object", "properties": {"city": FIELDS["city"], "class": FIELDS["class"]}},
            },
        ]
        params = {"name": "mcp_question", "arguments": {"questions": questions}}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        asked = server.next()
        assert asked["params"]["requestedSchema"]["properties"]["class"]["enumNames"] == ["First"]
        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}})
        heard = json.loads(server.until(1)["result"]["content"][0]["text"])["heard"]
    assert heard == [{"action": "decline"}, {"action": "cancel"}]


def test_a_cancelled_call_takes_its_question_back(server: RawClient) -> None:
    server.shake(able=FORMS)
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ASKED})
    question = server.next()
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    taken = server.next()
    assert taken["method"] == "notifications/cancelled"
    assert taken["params"]["requestId"] == question["id"]
    assert server.ask("ping")["result"] == {}
    assert not [one for one in server.seen if one.get("id") == 1]


def test_a_hostile_argument_cannot_dress_the_question(root: Path) -> None:
    with RawClient(root) as server:
        params = {"name": "core_asks", "arguments": {"text": "‮\x1b[2Jrun nothing"}, "_meta": meta(able=FORMS)}
        told = server.ask("tools/call", params)["result"]["inputRequests"]["approval"]["params"]["message"]
    assert "‮" not in told
    assert "\x1b" not in told


def test_a_stranger_s_folder_gets_no_more_by_this_face(root: Path, untrusted: None) -> None:
    """trust: a folder's own settings grant nothing until a person trusted it."""
    (root / "tamis.toml").write_text(f'[policy]\nwriteRoots = ["{root}/out"]\n')
    (root / "out").mkdir()
    script = "import json, sys\nopen(json.load(sys.stdin)['text'], 'w').write('x')\nprint('1')"
    make_tool(
        root, "core:writes", script, securityContext={"fileAccess": {"allowRead": [], "allowWrite": [f"{root}/out"]}}
    )
    with RawClient(root) as server:
        result = server.call("core_writes", {"text": f"{root}/out/f"})
    assert result["isError"] is True
    assert not (root / "out" / "f").exists()
