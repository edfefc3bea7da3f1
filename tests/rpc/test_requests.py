"""What a host may do wrong, late or in another order, and what must come of it (issue 6, Bad input)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import CancelResult
from tamis.server.rpc.methods import RpcServer
from tests.rpc.raw_host import RawHost, method
from tests.sample_tools import make_tool
from tests.waiting import until

ASYNC = {"mode": "async"}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawHost]:
    """One daemon for all requests that are refused."""
    folder = tmp_path_factory.mktemp("requests")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAMIS_STATE_DIR", str(folder / "state"))
        with RawHost(folder) as host:
            yield host


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[RawHost]:
    make_tool(tmp_path, "echo")
    make_tool(tmp_path, "late", "import time\ntime.sleep(0.3)\nprint(1)", execution=ASYNC)
    make_tool(tmp_path, "bad", "raise SystemExit(4)", execution=ASYNC)
    with RawHost(tmp_path) as host:
        yield host


def ask(host: RawHost, name: str, params: Any = None, number: int = 9) -> dict[str, Any]:
    host.send(id=number, method=name, params={} if params is None else params)
    return host.until(id=number)


@pytest.mark.parametrize("identity", [[], {}, {"a": [1]}, None, True, 1.5, "no such request"])
def test_a_cancel_of_nothing_leaves_the_messages_behind_it_alone(one: RawHost, identity: Any) -> None:
    one.send(method="$/cancelRequest", params={"id": identity})
    assert ask(one, "task/list")["result"] == {"tasks": []}


def test_an_answer_that_says_nothing_ends_the_call_that_waits_for_it(raw: RawHost) -> None:
    raw.register(method("m"))
    raw.send(id=2, method="tool/execute", params={"toolId": "s:m"})
    raw.send(id=raw.until(method="service/invoke")["id"])
    result = raw.until(id=2)["result"]
    assert (result["status"], result["error"]["type"]) == ("error", "ServiceError")


@pytest.mark.parametrize("wrong", [0, -1, True, "5"])
@pytest.mark.parametrize("name", ["tool/execute", "tool/executeText", "workflow/run"])
def test_a_time_that_no_call_can_be_held_to_is_the_requests_fault(one: RawHost, name: str, wrong: Any) -> None:
    given = {"toolId": "echo", "args": {}, "text": "", "workflowId": "w", "timeoutMs": wrong}
    assert ask(one, name, given)["error"]["code"] == -32602


@pytest.mark.parametrize("page", [{"cursor": "nonsense"}, {"cursor": ""}, {"cursor": "9" * 40}, {"limit": 0}])
@pytest.mark.parametrize("name", ["task/list", "agent/session", "tool/list"])
def test_a_page_that_there_cannot_be_is_the_requests_fault(one: RawHost, name: str, page: Any) -> None:
    assert ask(one, name, {"sessionId": "s", **page})["error"]["code"] == -32602


def test_a_call_that_is_cancelled_before_it_runs_never_executes(raw: RawHost) -> None:  # V52, V60
    ask(raw, "initialize", {"capabilities": {"experimental": {"tamis": {"events": True}}}})
    raw.send_all(
        {"id": 2, "method": "tool/execute", "params": {"toolId": "echo"}},
        {"method": "$/cancelRequest", "params": {"id": 2}},
    )
    states: list[str] = []
    while (message := raw.next()).get("id") != 2:
        if message["method"] == "tool/event":
            states.append(message["params"]["state"])
    result = message["result"]
    assert (result["status"], result["attempts"], states) == ("cancelled", 0, ["pending", "cancelled"])
    assert result["observation"].endswith("was not executed: it was cancelled.")


def test_an_initialize_that_comes_late_keeps_what_the_host_began(raw: RawHost) -> None:  # T15
    raw.register(method("m"))
    task = ask(raw, "tool/execute", {"toolId": "late", "args": {}})["result"]["taskId"]
    ask(raw, "initialize", {"capabilities": {}})
    assert ask(raw, "service/list")["result"]["services"] == [{"serviceName": "s", "methods": ["m"]}]
    raw.send(id=3, method="tool/execute", params={"toolId": "s:m"})
    raw.send(id=raw.until(method="service/invoke")["id"], result="here")
    assert raw.until(id=3)["result"]["output"] == "here"
    result = ask(raw, "task/result", {"taskId": task, "waitMs": 600_000})["result"]
    assert (result["status"], result["output"]) == ("success", 1)


def test_the_runtime_before_initialize_is_closed(raw: RawHost, tmp_path: Path) -> None:
    def open_stores() -> int:
        folder = Path(f"/proc/{raw.pid}/fd")
        targets: list[str] = []
        for link in folder.iterdir():
            with contextlib.suppress(OSError):
                targets.append(os.readlink(link))
        return sum(target.endswith("tamis.db") for target in targets if target.startswith(str(tmp_path)))

    ask(raw, "task/list")
    assert open_stores() == 1
    ask(raw, "initialize", {"capabilities": {}})
    until(lambda: open_stores() == 0)


def test_a_session_between_two_calls_is_cancelled_by_its_id(tmp_path: Path) -> None:  # V52
    async def run() -> tuple[CancelResult, bool]:
        server = RpcServer(tmp_path)
        params, cancel = server.declared["tool/cancel"]
        stop = asyncio.Event()
        with server.runtime.parts.running_calls.entered("", "s", stop):
            found = await cancel(None, params(session_id="s"))
        await server.close()
        return found, stop.is_set()

    assert asyncio.run(run()) == (CancelResult(cancelled=["s"], not_found=[]), True)


def test_a_task_is_counted_when_it_begins_and_when_it_ends(raw: RawHost) -> None:  # D94
    task = ask(raw, "tool/execute", {"toolId": "bad", "args": {}})["result"]["taskId"]
    ask(raw, "task/result", {"taskId": task, "waitMs": 600_000})
    told = ask(raw, "server/metrics")["result"]
    assert (told["calls"], told["byStatus"]) == (2, {"accepted": 1, "error": 1})
    assert told["byErrorType"] == {"ScriptError": 1}


def test_a_request_id_with_other_content_is_named_as_it_was_written(raw: RawHost) -> None:  # ruling 26
    block = "<|[REQUEST_TOOL]|>\nrequest_id:»»»R«««\ncommand:»»»echo«««\ntext:»»»{}«««\n<|[END_TOOL]|>"
    results = [ask(raw, "tool/executeText", {"text": block.format(text)})["result"]["results"][0] for text in "ab"]
    assert [result["status"] for result in results] == ["success", "error"]
    assert results[1]["error"]["details"]["code"] == "idempotencyMismatch"
    assert "the request id 'R' was used" in results[1]["error"]["message"]


@pytest.mark.parametrize("wrong", [{}, {"toolId": 5}, {"toolId": None, "args": {}}, {"toolId": "echo", "args": "x"}])
def test_what_is_no_call_is_the_requests_fault(one: RawHost, wrong: Any) -> None:
    assert ask(one, "tool/execute", {"call": wrong})["error"]["code"] == -32602


def test_a_call_that_was_only_shown_is_not_run(raw: RawHost) -> None:  # ruling 1
    cut = "<ACTION><echo><text>a</text></echo></ACTION>"
    for text, given in ((f"<think>{cut}</think>", {}), (f"```\nso:\n{cut}\n```", {}), (cut[:-9], {"complete": False})):
        for call in ask(raw, "tool/parse", {"text": text, **given})["result"]["calls"]:
            result = ask(raw, "tool/execute", {"call": call})["result"]
            assert not call["executable"]
            assert (result["status"], result["attempts"]) == ("error", 0)
            assert (result["error"]["type"], result["error"]["details"]["code"]) == (
                "ParameterValidationError",
                "notExecutable",
            )
    call = ask(raw, "tool/parse", {"text": cut})["result"]["calls"][0]
    assert ask(raw, "tool/execute", {"call": call})["result"]["status"] == "success"
    for said in ({"executable": False}, {"complete": False}):
        assert ask(raw, "tool/execute", {"call": {**call, **said}})["result"]["status"] == "error"


def test_a_call_that_was_only_shown_is_not_valid(raw: RawHost) -> None:  # ruling 1
    good = "<ACTION><echo><text>a</text></echo></ACTION>"
    for text, given, why in (
        (f"<think>{good}</think>", {}, "only an example"),
        (good[:-9], {"complete": False}, "cut off"),
    ):
        calls = ask(raw, "tool/parse", {"text": text, **given})["result"]["calls"]
        checked = ask(raw, "tool/validate", {"calls": [{"toolId": "echo", "args": {"text": "b"}}, *calls]})["result"]
        assert (checked["valid"], "coerced" in checked) == (False, False)
        (problem,) = checked["errors"]
        assert (problem["code"], problem["slug"], problem["path"]) == ("VA405", "not-executable", "/calls/1/args")
        assert why in problem["message"]
        # both faces say the same
        refused = ask(raw, "tool/execute", {"call": calls[0]})["result"]["error"]
        assert refused["message"] == problem["message"]
    calls = ask(raw, "tool/parse", {"text": good})["result"]["calls"]
    assert ask(raw, "tool/validate", {"calls": calls})["result"]["valid"]


def test_a_call_without_an_id_of_its_own_gets_one(raw: RawHost) -> None:
    for given in ("", None, 5):
        call = {"toolId": "echo", "args": {}, "callId": given}
        assert ask(raw, "tool/execute", {"call": call})["result"]["callId"].startswith("call-")


@pytest.mark.parametrize("said", [False, 0, "no", "false", [], {}])
def test_a_folder_that_the_host_does_not_plainly_trust_runs_nothing(raw: RawHost, said: Any) -> None:
    ask(raw, "initialize", {"capabilities": {}, "initializationOptions": {"trusted": said}})
    assert ask(raw, "tool/execute", {"toolId": "echo"})["error"]["code"] == 1901


def test_a_version_that_is_given_twice_is_refused_and_said(raw: RawHost) -> None:  # ruling 35
    asked = {"toolId": "echo@1.0.0", "args": {}, "version": "^2"}
    error = ask(raw, "tool/execute", asked)["result"]["error"]
    assert error["details"]["code"] == "versionUnsatisfied"
    assert error["message"].endswith("is asked for as '1.0.0' and as '^2': give one of them; there is 1.0.0")


def test_a_host_is_told_of_calls_only_when_it_asked_for_it(raw: RawHost) -> None:  # T18
    ask(raw, "initialize", {"capabilities": {"experimental": {"tamis": {"output": True}}}})
    raw.send(id=2, method="tool/execute", params={"toolId": "echo", "args": {}})
    methods: set[Any] = set()
    while (message := raw.next()).get("id") != 2:
        methods.add(message["method"])
    assert "tool/event" not in methods


def test_a_time_limit_in_options_is_refused_and_not_passed_over(raw: RawHost) -> None:  # T17
    given = {"toolId": "echo", "args": {}, "options": {"timeoutMs": 100}}
    assert ask(raw, "tool/execute", given)["error"]["code"] == -32602


def test_a_member_that_no_method_knows_is_told_in_the_result(raw: RawHost) -> None:  # T17
    (warning,) = ask(raw, "tool/list", {"limitt": 3})["result"]["warnings"]
    assert (warning["path"], warning["suggestion"]) == ("/limitt", "limit")


def test_a_name_that_there_is_not_is_told_with_the_one_that_was_meant(raw: RawHost) -> None:
    """Strangers: did you mean, for methods and tools; a name of any length is told in part."""
    assert ask(raw, "tool/lsit", {})["error"]["message"] == "no method 'tool/lsit', did you mean 'tool/list'?"
    assert ask(raw, "tool/describe", {"toolId": "ehco"})["error"]["message"] == "no tool 'ehco', did you mean 'echo'?"
    assert len(ask(raw, "x" * 100_000, {})["error"]["message"]) < 300


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("tool/execute", {"toolId": 5}, "must be a text or null, not a whole number - at `/toolId`"),
        (
            "tool/execute",
            {"toolId": "echo", "timeoutMs": "5"},
            "must be a whole number or null, not a text - at `/timeoutMs`",
        ),
        ("tool/parse", {}, "'text' is missing"),
    ],
)
def test_params_that_are_wrong_are_told_in_words(one: RawHost, name: str, params: Any, words: str) -> None:
    """Strangers: the place as a JSON Pointer, and what must stand there."""
    error = ask(one, name, params)["error"]
    assert error["code"] == -32602 and "Expected `" not in error["message"]
    assert words in error["message"]
