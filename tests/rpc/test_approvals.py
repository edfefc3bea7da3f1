"""Asking the user of a host before a call: the ladder of the interface over the wire, and hosts that answer late, twice, never or
with nonsense (V14, V43, V61, ruling 40)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rpc.inside import rpc_server
from tests.runtime.mcp_calls import make
from tests.runtime.workflow_world import edge, flow
from tests.sample_tools import make_tool, vcp

REQUEST = {"experimental": {"tamis": {"approval": "request"}}}
POLL = {"experimental": {"tamis": {"approval": "poll", "events": True}}}
MESSAGE = {"window": {"showMessage": {"messageActionItem": {"additionalPropertiesSupport": False}}}}


class Host:
    """A host that says exactly what a test wants, when it wants; newline-delimited JSON."""

    def __init__(self, root: Path, capabilities: dict[str, Any] | None) -> None:
        self.process = rpc_server(root)
        self.number = 0
        self.told: list[dict[str, Any]] = []
        if capabilities is not None:
            self.request("initialize", {"capabilities": capabilities, "clientInfo": {"name": "strict host"}})

    def write(self, **message: Any) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        assert line, "the daemon has ended"
        message = json.loads(line)
        self.told.append(message)
        return message

    def send(self, method: str, params: Any) -> int:
        self.number += 1
        self.write(id=self.number, method=method, params=params)
        return self.number

    def until(self, **wanted: Any) -> dict[str, Any]:
        while True:
            message = self.read()
            if all(message.get(name) == value for name, value in wanted.items()):
                return message

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        return self.until(id=self.send(method, params or {}))

    def execute(self, args: dict[str, Any] | None = None, **more: Any) -> int:
        return self.send("tool/execute", {"toolId": "t:echo", "args": args or {"text": "x"}, **more})

    def question(self) -> dict[str, Any]:
        return self.until(method="tool/requestApproval")

    def result(self, number: int) -> dict[str, Any]:
        return self.until(id=number)["result"]

    def resolved(self) -> list[str]:
        return [one["params"]["outcome"] for one in self.told if one.get("method") == "tool/approvalResolved"]


@contextmanager
def host(root: Path, capabilities: dict[str, Any] | None = REQUEST) -> Iterator[Host]:
    one = Host(root, capabilities)
    try:
        yield one
    finally:
        one.process.stdin.close()
        one.process.wait()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "root"
    folder.mkdir()
    make_tool(folder, "t:echo")
    policy(folder)
    return folder


def policy(root: Path, **more: Any) -> None:
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"requireConfirmation": "always", **more}.items()]
    (root / "tamis.toml").write_text("[policy]\n" + "\n".join(lines) + "\n")


def allow(option: str = "allow", **more: Any) -> dict[str, Any]:
    return {"outcome": "selected", "optionId": option, **more}


def test_a_question_has_the_form_of_the_interface(root: Path) -> None:  # V43, V61
    with host(root) as one:
        number = one.execute({"text": "pay \u202e001\u200b"})
        asked = one.question()["params"]
        assert set(asked) == {
            "approvalId", "callId", "tool", "version", "args", "argsPreview", "risk", "permissions", "options", "expiresAt",
        }  # fmt: skip
        assert (asked["tool"], asked["args"], asked["risk"]) == ("t:echo", {"text": "pay \u202e001\u200b"}, "low")
        assert asked["argsPreview"] == '{"text":"pay \\u202e001\\u200b"}'
        assert [(option["optionId"], option["kind"]) for option in asked["options"]] == [
            ("allow", "allow_once"),
            ("session", "allow_session"),
            ("always", "allow_always"),
            ("reject", "reject_once"),
            ("never", "reject_always"),
        ]
        assert one.request("approval/list")["result"]["open"] == [asked]
        one.write(id="tamis-1", result=allow())
        assert one.result(number)["status"] == "success"
        assert one.resolved() == ["allowed"]


def test_edits_and_comments_come_through(root: Path) -> None:  # V61
    with host(root) as one:
        number = one.execute()
        one.write(id=one.question()["id"], result=allow(editedArgs={"text": "mine"}))
        assert one.result(number)["output"] == {"text": "mine"}
        number = one.execute()
        one.write(id=one.question()["id"], result=allow("reject", comment="not now"))
        result = one.result(number)
        assert result["status"] == "denied"
        assert result["observation"].endswith("(用户拒绝了该操作). The user's comment: not now.")


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"result": "allow"}, "cancelled"),
    ({"result": None}, "cancelled"),
    ({"result": allow("surely")}, "cancelled"),
    ({"result": {"outcome": "cancelled"}}, "cancelled"),
    ({"error": {"code": -32601, "message": "what?"}}, "approvalUnavailable"),
    ({"error": "nonsense"}, "approvalUnavailable"),
    ({}, "approvalUnavailable"),
]


def test_nonsense_runs_nothing(root: Path) -> None:
    with host(root) as one:
        for reply, status in NONSENSE:
            number = one.execute()
            one.write(id=one.question()["id"], **reply)
            result = one.result(number)
            assert (result["status"], result["attempts"]) == (status, 0), reply


def test_a_late_answer_and_a_second_one_are_ignored(root: Path) -> None:  # ruling 40
    policy(root, approvalTimeoutMs=100)
    with host(root) as one:
        number = one.execute()
        identity = one.question()["id"]
        assert one.result(number)["status"] == "approvalTimeout"
        assert {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": identity}} in one.told
        assert one.resolved() == ["timeout"]
        for _ in range(2):
            one.write(id=identity, result=allow("always"))
        assert one.request("approval/list")["result"] == {"approvals": [], "open": []}


def test_a_cancel_of_the_call_withdraws_its_question(root: Path) -> None:  # V52
    with host(root) as one:
        number = one.execute()
        identity = one.question()["id"]
        one.write(method="$/cancelRequest", params={"id": number})
        assert one.result(number)["status"] == "cancelled"
        assert {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": identity}} in one.told
        assert one.resolved() == ["cancelled"]
        one.write(id=identity, result=allow())
        assert one.request("tool/list")["result"]["tools"]


def test_an_answer_for_always_is_listed_and_revoked(root: Path) -> None:  # V61
    with host(root) as one:
        number = one.execute()
        one.write(id=one.question()["id"], result=allow("always"))
        assert one.result(number)["status"] == "success"
    with host(root, {}) as other:  # nobody can be asked here
        result = other.result(other.execute())
        assert (result["status"], result["approval"]["standing"]) == ("success", True)
        (held,) = other.request("approval/list")["result"]["approvals"]
        assert (held["toolId"], held["kind"], held["version"]) == ("t:echo", "allow_always", "1.0.0")
        assert other.request("approval/revoke", {})["error"]["code"] == -32602
        assert other.request("approval/revoke", {"id": "no"})["result"] == {"revoked": []}
        assert other.request("approval/revoke", {"toolId": "t:echo"})["result"] == {"revoked": [held["id"]]}
        assert other.result(other.execute())["status"] == "approvalUnavailable"


def test_the_calls_of_a_text_are_asked_about_at_once(root: Path) -> None:  # V61
    text = vcp("t:echo", text="1") + "\n" + vcp("t:echo", text="2")
    with host(root) as one:
        number = one.send("tool/executeText", {"text": text})
        questions = [one.question(), one.question()]
        assert [asked["params"]["batch"]["index"] for asked in questions] == [0, 1]
        assert {asked["params"]["batch"]["count"] for asked in questions} == {2}
        one.write(id=questions[1]["id"], result=allow("allow-all"))
        assert [result["output"]["text"] for result in one.result(number)["results"]] == ["1", "2"]
        assert one.resolved() == ["allowed", "allowed"]


def test_a_client_that_only_shows_messages_is_asked_by_one(root: Path) -> None:  # V43
    with host(root, MESSAGE | POLL) as one:
        number = one.execute()
        asked = one.until(method="window/showMessageRequest")
        titles = [action["title"] for action in asked["params"]["actions"]]
        assert titles == ["Allow once", "Deny", "More…"]
        assert asked["params"]["message"] == 'Run t:echo (low risk)? {"text":"x"}'
        one.write(id=asked["id"], result={"title": "Deny"})
        assert one.result(number)["status"] == "denied"
        for reply, status in (
            ({"title": "Allow"}, "cancelled"),
            (None, "cancelled"),
            ({"title": "Allow once"}, "success"),
        ):
            number = one.execute()
            one.write(id=one.until(method="window/showMessageRequest")["id"], result=reply)
            assert one.result(number)["status"] == status


ELICITS = {"experimental": {"tamis": {"approval": "request", "elicitation": True}}}
OVERWRITE = {"message": "Overwrite?", "requestedSchema": {"properties": {"sure": {"type": "boolean"}}}}


def ask_through(one: Host) -> int:
    return one.send("tool/execute", {"toolId": "mcp:question", "args": {"questions": [OVERWRITE]}})


def test_a_question_of_an_mcp_server_goes_to_the_host_that_shows_them(tmp_path: Path) -> None:
    make(tmp_path)
    with host(tmp_path, ELICITS) as one:
        number = ask_through(one)
        asked = one.question()
        assert asked["params"]["tool"] == "mcp:question"
        assert asked["params"]["elicitation"] == {"server": "test", "message": "Overwrite?", "field": "sure"}
        assert [option["optionId"] for option in asked["params"]["options"]] == ["choice-1", "choice-2", "decline"]
        one.write(id=asked["id"], result=allow("choice-2"))
        heard = json.loads(one.result(number)["output"])["heard"]
        assert heard == [{"action": "accept", "content": {"sure": False}}]
        assert one.resolved() == ["allowed"]


PLACE = {
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
        "required": ["city", "people"],
    },
}


def test_a_form_of_an_mcp_server_goes_to_the_host_that_shows_forms(tmp_path: Path) -> None:
    """mcp 1: the answer is checked against the form, which is asked again with what is wrong."""
    make(tmp_path)
    forms = {"experimental": {"tamis": {"approval": "request", "elicitation": True, "forms": True}}}
    with host(tmp_path, forms) as one:
        number = one.send("tool/execute", {"toolId": "mcp:question", "args": {"questions": [PLACE]}})
        asked = one.question()
        assert [field["name"] for field in asked["params"]["elicitation"]["form"]] == ["city", "people"]
        one.write(id=asked["id"], result=allow("accept") | {"content": {"city": "Köln", "people": 0}})
        again = one.question()
        assert again["params"]["elicitation"]["form"][1]["error"] == "it is at least 1"
        one.write(id=again["id"], result=allow("accept") | {"content": {"city": "Köln", "people": 2}})
        heard = json.loads(one.result(number)["output"])["heard"]
        assert heard == [{"action": "accept", "content": {"city": "Köln", "people": 2}}]
    with host(tmp_path, ELICITS) as one:
        number = one.send("tool/execute", {"toolId": "mcp:question", "args": {"questions": [PLACE]}})
        assert json.loads(one.result(number)["output"])["heard"] == [{"action": "decline"}]


def test_a_host_that_knows_approvals_alone_is_asked_by_a_message_or_not_at_all(tmp_path: Path) -> None:
    """It may allow by the kind of an option, and would answer for its user."""
    make(tmp_path)
    with host(tmp_path, REQUEST | MESSAGE) as one:
        number = ask_through(one)
        asked = one.until(method="window/showMessageRequest")
        assert asked["params"]["message"].startswith("The MCP server 'test' asks")
        assert [action["title"] for action in asked["params"]["actions"]] == [
            "Answer: yes",
            "Answer: no",
            "Decline to answer",
        ]
        one.write(id=asked["id"], result={"title": "Answer: yes"})
        assert json.loads(one.result(number)["output"])["heard"] == [{"action": "accept", "content": {"sure": True}}]
    with host(tmp_path, REQUEST) as one:
        told = json.loads(one.result(ask_through(one))["output"])
        assert told["able"] == {}
        assert told["heard"][0]["code"] == -32601


def test_a_client_that_polls_comes_back_with_a_token(root: Path) -> None:
    with host(root, POLL) as one:
        first = one.result(one.execute())
        assert (first["status"], first["attempts"]) == ("inputRequired", 0)
        token = first["approval"]["token"]
        for wrong in (
            {"args": {"text": "y"}, "approval": {"token": token, "optionId": "allow"}},
            {"approval": {"token": token, "optionId": "surely"}},
            {"approval": {"token": "x" + token, "optionId": "allow"}},
            {"approval": {"token": token, "optionId": "allow"}, "context": {"sessionId": "another"}},
        ):
            number = one.execute(wrong.pop("args", None), **wrong)  # type: ignore[arg-type]
            error = one.until(id=number)["error"]
            assert (error["code"], error["data"]["code"]) == (1401, "approvalUnknown")
        given = {"token": token, "optionId": "allow"}
        assert one.result(one.execute(approval=given))["status"] == "success"
        assert one.until(id=one.execute(approval=given))["error"]["code"] == 1401
        assert one.resolved() == ["allowed"]


def test_a_workflow_is_polled_for_like_any_call(root: Path) -> None:
    (root / "flows").mkdir()
    content = flow([{"id": "c", "type": "constant", "config": {"value": 1}}], outputs={"o": "c.value"})
    (root / "flows" / "one.json").write_text(json.dumps(content))
    (root / "tamis.toml").write_text('workflows = ["flows"]\n[policy]\nrequireConfirmation = "always"\n')
    with host(root, POLL) as one:
        asked = one.request("workflow/run", {"workflowId": "one"})["result"]
        assert (asked["status"], asked["approval"]["tool"]) == ("inputRequired", "workflow:one")
        given = {"token": asked["approval"]["token"], "optionId": "allow"}
        done = one.request("workflow/run", {"workflowId": "one", "approval": given})["result"]
        assert (done["status"], done["outputs"], done["approval"]["outcome"]) == ("success", {"o": 1}, "allowed")


@pytest.fixture
def asking_flow(root: Path) -> Path:
    """Two nodes that are asked about, one behind the other, in the workflow ``one``."""
    (root / "flows").mkdir()
    nodes = [{"id": "a", "type": "t:echo", "inputs": {"text": "x"}}, {"id": "b", "type": "t:echo"}]
    content = flow(nodes, [edge("a.text", "b.text")], outputs={"o": "b.output"})
    (root / "flows" / "one.json").write_text(json.dumps(content))
    (root / "tamis.toml").write_text('workflows = ["flows"]\n[policy.tools]\n"t:echo" = "ask"\n')
    return root


def test_a_workflows_nodes_are_polled_for_and_the_run_goes_on(asking_flow: Path) -> None:  # V43, V61
    with host(asking_flow, POLL) as one:
        asked = one.request("workflow/run", {"workflowId": "one"})["result"]
        question = asked["approval"]
        assert (asked["status"], question["tool"], question["args"]) == ("inputRequired", "t:echo", {"text": "x"})
        assert question["node"] == {"workflowId": "one", "nodeId": "a"}
        assert question["callId"] == asked["callId"] + "/a"
        assert [step["status"] for step in asked["steps"]] == ["running", "pending"]
        for wrong in (
            {"workflowId": "one", "inputs": {"no": 1}},
            {"workflowId": "one", "approval": {"token": "x", "optionId": "allow"}},
            {"workflowId": "one", "approval": {"token": question["token"], "optionId": "surely"}},
            {"workflowId": "one", "context": {"sessionId": "another"}},
        ):
            given = {"approval": {"token": question["token"], "optionId": "allow"}, **wrong}
            reply = one.request("workflow/run", given)
            assert reply.get("error", {}).get("code") == 1401 or reply["result"]["status"] == "error", reply
        # whichever method runs the workflow may bring the answer
        given = {"token": question["token"], "optionId": "allow"}
        second = one.request("tool/execute", {"toolId": "workflow:one", "approval": given})["result"]
        assert (second["status"], second["approval"]["node"]["nodeId"]) == ("inputRequired", "b")
        (still,) = one.request("approval/list")["result"]["open"]
        assert still["callId"] == question["callId"][:-1] + "b"
        given = {"token": second["approval"]["token"], "optionId": "allow"}
        done = one.request("workflow/run", {"workflowId": "one", "approval": given})["result"]
        assert (done["status"], [step["status"] for step in done["steps"]]) == ("success", ["success", "success"])
        assert done["outputs"]["o"]["text"] == "x"
        assert one.request("workflow/run", {"workflowId": "one", "approval": given})["error"]["code"] == 1401
        assert one.resolved() == ["allowed", "allowed"]
        # each node ran once
        ran = [one["params"]["callId"] for one in one.told if one.get("params", {}).get("state") == "executing"]
        assert [name for name in ran if "/" in name] == [question["callId"], still["callId"]]


@pytest.fixture
def asking_task(asking_flow: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same workflow as a task."""
    monkeypatch.setenv("TAMIS_STATE_DIR", str(asking_flow / "state"))
    path = asking_flow / "flows" / "one.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"execution": {"mode": "async"}}))
    return asking_flow


def asked_of(one: Host, task_id: str) -> dict[str, Any]:
    """The task once it waits for a person."""
    while one.until(method="task/changed")["params"]["status"] != "inputRequired":
        pass
    return one.request("task/get", {"taskId": task_id})["result"]


def test_a_workflow_that_is_a_task_is_polled_for(asking_task: Path) -> None:  # T21
    with host(asking_task, POLL) as one:
        accepted = one.request("tool/execute", {"toolId": "workflow:one", "args": {}})["result"]
        task_id = accepted["taskId"]
        task = asked_of(one, task_id)
        (question,) = task["approvals"]
        assert (accepted["status"], task["status"]) == ("accepted", "inputRequired")
        assert (question["tool"], question["args"], question["node"]["nodeId"]) == ("t:echo", {"text": "x"}, "a")
        (still,) = one.request("approval/list")["result"]["open"]
        assert still["approvalId"] == question["approvalId"]
        assert "token" not in still
        for wrong in (
            {"taskId": task_id, "approval": {"token": "x", "optionId": "allow"}},
            {"taskId": task_id, "approval": {"token": question["token"], "optionId": "surely"}},
        ):
            assert one.request("task/answer", wrong)["error"]["code"] == 1401
        # a token answers its own task, and no call
        assert (
            one.until(id=one.execute(approval={"token": question["token"], "optionId": "allow"}))["error"]["code"]
            == 1401
        )
        given = {"token": question["token"], "optionId": "allow"}
        assert one.request("task/answer", {"taskId": task_id, "approval": given})["result"]["taskId"] == task_id
        (second,) = asked_of(one, task_id)["approvals"]
        assert second["node"]["nodeId"] == "b"
        given = {"token": second["token"], "optionId": "allow"}
        one.request("task/answer", {"taskId": task_id, "approval": given})
        done = one.request("task/result", {"taskId": task_id, "waitMs": 20_000})["result"]
        assert (done["status"], done["output"]["text"]) == ("success", "x")
        assert one.request("task/answer", {"taskId": task_id, "approval": given})["error"]["code"] == 1401
        assert one.resolved() == ["allowed", "allowed"]


def test_a_task_of_a_host_that_is_asked_waits_for_its_answer(asking_task: Path) -> None:  # T21
    with host(asking_task, REQUEST) as one:
        task_id = one.request("tool/execute", {"toolId": "workflow:one", "args": {}})["result"]["taskId"]
        for node in ("a", "b"):
            question = one.until(method="tool/requestApproval")
            assert question["params"]["node"]["nodeId"] == node
            task = one.request("task/get", {"taskId": task_id})["result"]
            assert task["status"] == "inputRequired"
            assert "approvals" not in task
            one.write(id=question["id"], result={"outcome": "selected", "optionId": "allow"})
        done = one.request("task/result", {"taskId": task_id, "waitMs": 20_000})["result"]
        assert done["status"] == "success"
        assert one.request("task/get", {"taskId": task_id})["result"]["status"] == "completed"


def test_a_task_that_waits_for_a_person_is_cancelled(asking_task: Path) -> None:  # T21
    with host(asking_task, POLL) as one:
        task_id = one.request("tool/execute", {"toolId": "workflow:one", "args": {}})["result"]["taskId"]
        (question,) = asked_of(one, task_id)["approvals"]
        assert one.request("task/cancel", {"taskId": task_id})["result"]["status"] == "cancelled"
        given = {"token": question["token"], "optionId": "allow"}
        assert one.request("task/answer", {"taskId": task_id, "approval": given})["error"]["code"] == 1401
        assert one.resolved() == ["cancelled"]


def test_a_model_that_asks_for_a_task_is_told_no_token(asking_task: Path) -> None:  # T21
    with host(asking_task, POLL) as one:
        task_id = one.request("tool/execute", {"toolId": "workflow:one", "args": {}})["result"]["taskId"]
        (question,) = asked_of(one, task_id)["approvals"]
        told = one.request("tool/execute", {"toolId": "system:task_status", "args": {"task_id": task_id}})["result"]
        assert told["output"]["status"] == "inputRequired"
        assert question["token"] not in json.dumps([told, *(one for one in one.told if "method" in one)])


def test_where_nobody_can_be_asked_a_task_does_not_wait(asking_task: Path) -> None:  # T21
    with host(asking_task, {}) as one:
        task_id = one.request("tool/execute", {"toolId": "workflow:one", "args": {}})["result"]["taskId"]
        done = one.request("task/result", {"taskId": task_id, "waitMs": 20_000})["result"]
        assert done["status"] == "error"
        assert "there is no one to ask" in done["error"]["message"]


def test_a_run_that_waits_is_cancelled_by_its_id_and_ends_with_the_daemon(asking_flow: Path) -> None:  # V52
    with host(asking_flow, POLL) as one:
        first = one.request("workflow/run", {"workflowId": "one"})["result"]
        cancel = one.request("tool/cancel", {"callId": first["callId"]})["result"]
        assert cancel == {"cancelled": [first["callId"]], "notFound": []}
        given = {"token": first["approval"]["token"], "optionId": "allow"}
        done = one.request("workflow/run", {"workflowId": "one", "approval": given})["result"]
        assert (done["status"], [step["status"] for step in done["steps"]]) == ("cancelled", ["cancelled", "cancelled"])
        assert one.resolved() == ["cancelled"]
        assert one.request("workflow/run", {"workflowId": "one"})["result"]["status"] == "inputRequired"
    assert one.process.returncode == 0


def test_what_was_allowed_for_a_session_ends_with_it(root: Path) -> None:
    context = {"sessionId": "s-1"}
    with host(root, POLL) as one:
        token = one.result(one.execute(context=context))["approval"]["token"]
        given = {"token": token, "optionId": "session"}
        assert one.result(one.execute(context=context, approval=given))["status"] == "success"
        assert one.result(one.execute({"text": "more"}, context=context))["status"] == "success"
        one.request("agent/end", context)
        # another conversation of the same id
        assert one.result(one.execute(context=context))["status"] == "inputRequired"
        assert one.request("approval/list")["result"]["approvals"] == []


def test_a_token_answers_its_call_of_a_text(root: Path) -> None:
    with host(root, POLL) as one:
        text = vcp("t:echo", text="1") + "\n" + vcp("t:echo", text="2")
        results = one.request("tool/executeText", {"text": text})["result"]["results"]
        assert [result["status"] for result in results] == ["inputRequired", "inputRequired"]
        given = {"token": results[1]["approval"]["token"], "optionId": "allow"}
        results = one.request("tool/executeText", {"text": text, "approval": given})["result"]["results"]
        assert [result["status"] for result in results] == ["inputRequired", "success"]
        again = one.request("tool/executeText", {"text": text, "approval": given})
        assert again["error"]["code"] == 1401


def test_a_token_that_fits_no_call_of_a_text_is_unknown_and_nothing_runs(root: Path) -> None:
    (root / "tamis.toml").write_text('[policy.tools]\n"t:free" = "allow"\n[policy]\nrequireConfirmation = "always"\n')
    free = make_tool(
        root,
        "t:free",
        "open('.n/ran', 'w').close()\nprint(1)",
        securityContext={"fileAccess": {"allowWrite": [".n/**"]}},
    )
    with host(root, POLL) as one:
        asked, other = vcp("t:echo", text="1"), vcp("t:free") + "\n" + vcp("t:echo", text="2")
        first = one.request("tool/executeText", {"text": asked})["result"]["results"][0]
        given = {"token": first["approval"]["token"], "optionId": "allow"}
        for text, wrong in ((other, given), ("No call at all.", given), (asked, given | {"optionId": "surely"})):
            error = one.request("tool/executeText", {"text": text, "approval": wrong})["error"]
            assert (error["code"], error["data"]["code"]) == (1401, "approvalUnknown")
        assert not (free / ".n" / "ran").exists()
        # it is not used up by that
        done = one.request("tool/executeText", {"text": vcp("t:free") + "\n" + asked, "approval": given})["result"]
        assert [result["status"] for result in done["results"]] == ["success", "success"]
        assert (free / ".n" / "ran").exists()


def test_a_rule_knows_the_hosts_name(root: Path) -> None:  # D81
    rules = '[[policy.rules]]\nclient = "strict *"\nverdict = "deny"\nreason = "not from here"\n'
    (root / "tamis.toml").write_text(rules)
    with host(root) as one:
        result = one.result(one.execute())
        assert (result["status"], result["error"]["type"]) == ("blocked", "SecurityError")
        assert "rule 1 of policy.rules in tamis.toml denies it: not from here" in result["observation"]
    with host(root, None) as one:
        assert one.result(one.execute())["status"] == "success"


def test_a_host_that_dies_while_it_is_asked_runs_nothing(root: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    make_tool(root, "t:mark", f"open({str(mark)!r}, 'w')")
    with host(root) as one:
        one.send("tool/execute", {"toolId": "t:mark"})
        one.question()
    assert one.process.returncode == 0
    assert not mark.exists()
