"""``tamis rpc`` as a host sees it: methods, errors and manners, over a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tamis.server.rpc import session
from tests.rpc.inside import PATIENT, InsideClient, rpc_server
from tests.rpc.process import COMMAND, alive, descendants, failure, rpc
from tests.sample_tools import action, make_tool, vcp
from tests.waiting import until

HOUR_S = 3600.0

HANG = "import os, subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(86400)'])\ntime.sleep(86400)"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tamis.toml").write_text(PATIENT)
    make_tool(tmp_path, "test:echo", tags=["a", "b"])
    make_tool(tmp_path, "test:hang", HANG)
    make_tool(tmp_path, "other:count", properties={"n": {"type": "integer"}})
    return tmp_path


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    with InsideClient(root) as started:
        yield started


def speak(root: Path, data: bytes, *, lines: int = 0, process: bool = False) -> tuple[bytes, bytes, int]:
    """What a daemon wrote on both streams, and its exit code. The input stays open until there are so many lines of answers: at
    its end what still runs is cancelled after a moment, which is short on a loaded machine."""
    pipe = subprocess.PIPE
    command = [*COMMAND, "--root", str(root)]
    daemon = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) if process else rpc_server(root)
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    assert daemon.stderr is not None
    daemon.stdin.write(data)
    daemon.stdin.flush()
    first = [daemon.stdout.readline() for _ in range(lines)]
    daemon.stdin.close()
    with daemon.stdout as out, daemon.stderr as said:
        return b"".join((*first, out.read())), said.read(), daemon.wait()


def test_tools_are_listed_in_a_stable_order_and_filtered(client: Client) -> None:  # D51, D56, D43
    assert [tool["toolId"] for tool in client.request("tool/list")["tools"]] == [
        "other:count",
        "test:echo",
        "test:hang",
    ]
    filtered = client.request("tool/list", {"filter": {"namespace": "test", "tags": ["a"]}})
    assert [tool["toolId"] for tool in filtered["tools"]] == ["test:echo"]
    found = filtered["tools"][0]
    assert (found["kind"], found["callable"], found["available"], found["namespace"]) == ("tool", True, True, "test")
    assert "definition" not in found
    assert client.request("tool/list", {"view": "full"})["tools"][1]["definition"]["toolId"] == "test:echo"


def test_long_lists_come_in_pages(client: Client) -> None:
    first = client.request("tool/list", {"limit": 2})
    second = client.request("tool/list", {"limit": 2, "cursor": first["nextCursor"]})
    assert [tool["toolId"] for tool in first["tools"] + second["tools"]] == ["other:count", "test:echo", "test:hang"]
    assert "nextCursor" not in second
    assert first["etag"] == second["etag"]


def test_a_tool_is_described_and_an_unknown_one_is_an_error(client: Client) -> None:
    described = client.request("tool/describe", {"toolId": "test:echo"})
    assert described["definition"]["toolId"] == "test:echo"
    assert described["losses"] == []
    assert described["tokens"] > 20
    error = failure(client, "tool/describe", {"toolId": "test:ecko"})
    assert (error.code, error.data["code"], error.data["retryable"]) == (1001, "toolNotFound", False)
    assert failure(client, "tool/describe", {"toolId": "test:echo", "version": "^9"}).code == 1002


def test_a_text_is_parsed_with_ranges_in_code_points_and_offsets(client: Client) -> None:  # A19, ruling 9
    result = client.request("tool/parse", {"text": "😀你好 " + action("t", name="值")})
    call = result["calls"][0]
    assert (call["toolId"], call["args"], call["executable"]) == ("t", {"name": "值"}, True)
    assert call["argRanges"]["/name"]["offset"] == [21, 22]
    assert call["argRanges"]["/name"]["start"] == {"line": 0, "character": 21}
    assert result["responseText"] == "😀你好 "


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 4 + 6 + 1 + 17), ("utf-16", 22), ("utf-32", 21)])
def test_positions_are_in_the_negotiated_encoding(client: Client, encoding: str, column: int) -> None:  # ruling 9, S9
    capabilities = {"general": {"positionEncodings": [encoding]}}
    answer = client.request("initialize", {"capabilities": capabilities})
    assert answer["capabilities"]["positionEncoding"] == encoding
    result = client.request("tool/parse", {"text": "😀你好 " + action("t", name="值")})
    place = result["calls"][0]["argRanges"]["/name"]
    assert place["start"] == {"line": 0, "character": column}
    assert "offset" not in place


def test_inline_tools_guide_the_reading(client: Client) -> None:
    text = "<ACTION><t><html><b>x</b></html></t></ACTION>"
    assert client.request("tool/parse", {"text": text})["calls"][0]["args"] == {"html": {"b": "x"}}
    tools = [{"toolId": "t", "parameters": {"type": "object", "properties": {"html": {"type": "string"}}}}]
    guided = client.request("tool/parse", {"text": text, "tools": tools})
    assert guided["calls"][0]["args"] == {"html": "<b>x</b>"}


def test_arguments_are_validated_and_coerced(client: Client) -> None:  # D59
    valid = client.request("tool/validate", {"toolId": "other:count", "args": {"n": "7"}})
    assert valid == {"valid": True, "errors": [], "warnings": [], "coerced": {"n": 7}}
    loose = client.request("tool/validate", {"toolId": "other:count", "args": {"n": "7.0"}})
    assert (loose["valid"], loose["coerced"], [item["code"] for item in loose["warnings"]]) == (
        True,
        {"n": 7},
        ["VA411"],
    )
    wrong = client.request("tool/validate", {"toolId": "other:count", "args": {"m": "x"}})
    assert (wrong["valid"], wrong["errors"][0]["code"], wrong["errors"][0]["path"]) == (False, "VA403", "/m")
    assert "coerced" not in wrong
    # what strict modes of model services write for a parameter that is not given
    null = client.request("tool/validate", {"toolId": "other:count", "args": {"n": None}})
    assert (null["valid"], null["coerced"]) == (True, {})
    assert [(item["code"], item["path"]) for item in null["warnings"]] == [("VA442", "/n")]
    assert client.request("tool/execute", {"toolId": "other:count", "args": {"n": None}})["output"] == {}


def test_validating_an_unknown_tool_is_a_problem_and_no_error(client: Client) -> None:
    result = client.request("tool/validate", {"toolId": "test:ecko", "args": {}})
    assert (result["valid"], result["errors"][0]["code"], result["errors"][0]["path"]) == (False, "VA401", "")
    assert result["errors"][0]["suggestion"] == "test:echo"


def test_parsed_calls_can_be_validated_together(client: Client) -> None:
    parsed = client.request("tool/parse", {"text": vcp("other:count", n="1") + vcp("other:count", n="x")})
    result = client.request("tool/validate", {"calls": parsed["calls"]})
    assert result["valid"] is False
    assert [problem["path"] for problem in result["errors"]] == ["/calls/1/args/n"]


def test_problems_of_parsed_calls_stand_where_the_calls_say(client: Client) -> None:  # A24, interface: Problem.range
    text = (
        vcp("other:count", n="x")
        + vcp("test:ecko")
        + vcp("other:count", m="1")
        + "<think>"
        + vcp("other:count")
        + "</think>"
    )
    calls = client.request("tool/parse", {"text": text})["calls"]
    errors = client.request("tool/validate", {"calls": calls})["errors"]
    pieces = [(problem["path"], text[slice(*problem["range"]["offset"])]) for problem in errors]
    assert pieces[:3] == [("/calls/0/args/n", "x"), ("/calls/1/args", "test:ecko"), ("/calls/2/args/m", "1")]
    assert (errors[3]["code"], errors[3]["range"]) == ("VA405", calls[3]["range"])
    run = client.request("tool/execute", {"call": calls[0]})
    assert run["error"]["details"]["errors"][0]["range"] == calls[0]["argRanges"]["/n"]


def test_ranges_that_are_none_do_not_keep_a_call_from_being_checked(client: Client) -> None:
    (call,) = client.request("tool/parse", {"text": vcp("other:count", n="x")})["calls"]
    for wrong in ({"argRanges": {"/n": {"start": 3}}}, {"argRanges": "x"}, {"argRanges": {}, "toolIdRange": [1]}):
        (error,) = client.request("tool/validate", {"calls": [call | wrong]})["errors"]
        assert error["code"] == "VA410"
        assert ("range" in error) == (wrong.get("argRanges") == "x")


def test_a_manifest_is_validated_from_its_root(client: Client) -> None:
    result = client.request("tool/validate", {"manifest": {"toolId": "a:b", "displayName": 3}})
    assert result["valid"] is False
    assert "/displayName" in {problem["path"] for problem in result["errors"]}


def test_a_tool_is_executed(client: Client) -> None:
    result = client.request("tool/execute", {"toolId": "test:echo", "args": {"text": "x"}})
    assert (result["status"], result["output"], result["attempts"]) == ("success", {"text": "x"}, 1)
    assert result["sandbox"]["backend"] == "bubblewrap"
    assert {"requested", "granted", "denied"} == set(result["permissions"])
    assert {"cpuMs", "maxRssBytes"} == set(result["usage"])
    assert "error" not in result


def test_what_happened_to_a_tool_is_a_result_and_not_an_rpc_error(client: Client) -> None:
    result = client.request("tool/execute", {"toolId": "test:ecko", "args": {}})
    assert (result["status"], result["error"]["type"], result["sandbox"]) == ("error", "UnknownTool", None)


def test_a_text_is_executed_and_observed(client: Client) -> None:
    result = client.request("tool/executeText", {"text": "Let me see.\n" + vcp("test:echo", text="x")})
    assert [item["status"] for item in result["results"]] == ["success"]
    assert result["parse"]["calls"][0]["callId"] == result["results"][0]["callId"]
    assert "<<<[TOOL_RESULT]>>>" in result["observation"]


def test_requests_are_answered_while_a_tool_runs(client: Client) -> None:
    number, running = client.send("tool/execute", {"toolId": "test:hang"})
    until(lambda: client.request("server/health")["running"] == 1)
    assert not running.done()
    client.cancel(number)
    assert running.result()["status"] == "cancelled"


def test_cancelling_an_execution_gives_its_normal_result(client: Client) -> None:  # V52, V53
    text = vcp("test:echo", text="x") + vcp("test:hang") + vcp("test:echo", text="y")
    number, running = client.send("tool/executeText", {"text": text})
    until(lambda: client.request("server/metrics")["calls"])
    client.cancel(number)
    result = running.result()
    assert [item["status"] for item in result["results"]] == ["success", "cancelled", "cancelled"]


def test_output_is_streamed_before_the_response_when_asked(root: Path) -> None:
    script = "import sys\nfor i in range(3): print(i, file=sys.stderr, flush=True)\nprint(1)"
    make_tool(root, "test:talk", script)
    seen: list[tuple[str, Any]] = []
    with InsideClient(root, on_notification=lambda method, params: seen.append((method, params))) as client:
        result = client.request("tool/execute", {"toolId": "test:talk", "output": "stream"})
        assert result["status"] == "success"
        told = [params for method, params in seen if method == "tool/output"]
        assert "".join(params["text"] for params in told if params["stream"] == "stderr") == "0\n1\n2\n"
        assert [params["seq"] for params in told] == list(range(1, len(told) + 1))


@pytest.mark.parametrize(("stream", "status"), [("stderr", "success"), ("stdout", "error")])
def test_the_last_output_says_that_a_limit_cut_the_rest(root: Path, stream: str, status: str) -> None:
    make_tool(root, "test:flood", f"import sys\nsys.{stream}.write('x' * 9000)\nsys.{stream}.flush()\nprint(1)")
    (root / "tamis.toml").write_text("[sandbox]\nstderrBytes = 5000\nstdoutBytes = 5000\n")
    seen: list[Any] = []
    with InsideClient(root, on_notification=lambda method, params: seen.append((method, params))) as client:
        assert client.request("tool/execute", {"toolId": "test:flood", "output": "stream"})["status"] == status
    told = [params for method, params in seen if method == "tool/output" and params["stream"] == stream]
    assert sum(len(params["text"]) for params in told) == 5000
    assert [params["truncated"] for params in told] == [*(False for _ in told[1:]), True]
    assert told[-1]["text"] == ""


def test_a_host_that_can_approve_is_asked(root: Path) -> None:  # V14, V61
    (root / "tamis.toml").write_text(PATIENT + '[policy]\nrequireConfirmation = "always"\n')
    asked: list[Any] = []

    def approve(method: str, params: Any) -> Any:
        asked.append((method, params))
        choice = next(option for option in params["options"] if option["kind"] == "allow_once")
        return {"outcome": "selected", "optionId": choice["optionId"]}

    with InsideClient(root, on_request=approve) as client:
        client.request("initialize", {"capabilities": {"experimental": {"tamis": {"approval": "request"}}}})
        assert client.request("tool/execute", {"toolId": "test:echo", "args": {"text": "x"}})["status"] == "success"
    assert asked[0][0] == "tool/requestApproval"
    assert asked[0][1]["args"] == {"text": "x"}


def test_a_host_that_cannot_approve_gets_the_outcome_that_says_so(root: Path) -> None:  # V43, ruling 40
    (root / "tamis.toml").write_text(PATIENT + '[policy]\nrequireConfirmation = "always"\n')
    with InsideClient(root) as client:
        assert client.request("tool/execute", {"toolId": "test:echo"})["status"] == "approvalUnavailable"


def test_an_untrusted_folder_is_analysed_and_never_run(client: Client) -> None:
    client.request("initialize", {"capabilities": {}, "initializationOptions": {"trusted": False}})
    assert client.request("tool/parse", {"text": action("t", a="1")})["calls"]
    error = failure(client, "tool/execute", {"toolId": "test:echo"})
    assert (error.code, error.data["code"]) == (1901, "notTrusted")


def test_reloading_says_what_changed_and_a_bad_file_stops_nothing(client: Client, root: Path) -> None:  # D48, D53, F27
    client.request("tool/list")
    make_tool(root, "new:tool")
    (root / "bad.tool.json").write_text('{"toolId": ')
    (root / "other_count" / "x.tool.json").unlink()
    report = client.request("registry/reload")
    assert (report["added"], report["removed"]) == (["new:tool@1.0.0"], ["other:count@1.0.0"])
    assert report["errors"][0]["line"] == 1
    assert client.request("tool/execute", {"toolId": "new:tool", "args": {"text": "x"}})["status"] == "success"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/such", {}, -32601),
        ("tool/parse", {}, -32602),
        ("tool/parse", {"text": 3}, -32602),
        ("tool/parse", [], -32602),
        ("tool/parse", {"text": "x", "protocol": "smtp"}, -32602),
        ("tool/parse", {"text": "x", "options": {"fencedCalls": "weird"}}, -32602),
        ("tool/parse", {"text": "x", "options": {"strict": "yes"}}, -32602),
        ("tool/parse", {"text": "x", "options": {"fenced": "run"}}, -32602),
        ("tool/list", {"limit": 0}, -32602),
        ("tool/list", {"cursor": "zz"}, -32602),
        ("tool/execute", {}, -32602),
        ("tool/validate", {}, -32602),
    ],
)
def test_a_wrong_request_is_answered_with_its_code_and_the_daemon_goes_on(
    client: Client, method: str, params: Any, code: int
) -> None:
    assert failure(client, method, params).code == code
    assert client.request("server/health")["status"] in ("ok", "degraded")


def test_a_key_named_jsonrpc_inside_params_is_ordinary_data(client: Client) -> None:
    result = client.request("tool/validate", {"toolId": "test:echo", "args": {"jsonrpc": "2.0", "max-depth": 3}})
    assert {problem["path"] for problem in result["errors"]} == {"/jsonrpc", "/max-depth"}


def test_bad_json_is_answered_with_a_null_id_and_the_next_line_is_read(root: Path) -> None:
    out, _, _ = speak(
        root, b'{"jsonrpc": "2.0", "id": 1,\n' + json.dumps(rpc("server/health", number=2)).encode() + b"\n", lines=2
    )
    replies = [json.loads(line) for line in out.splitlines()]
    assert (replies[0]["id"], replies[0]["error"]["code"]) == (None, -32700)
    assert replies[1]["id"] == 2


BATCH = [
    rpc("server/health", number=1),
    {"jsonrpc": "2.0", "method": "$/nothing"},
    rpc("no/such", number=2),
    3,
    {"jsonrpc": "2.0", "id": "tamis-9", "result": None},
    {"jsonrpc": "2.0", "id": 3, "method": "tool/execute", "params": {"toolId": "test:echo", "args": {"text": "x"}}},
]


def test_a_batch_is_answered_with_one_array_in_which_notifications_have_no_reply(root: Path) -> None:
    out, _, _ = speak(
        root, json.dumps(BATCH).encode() + b"\n" + json.dumps(rpc("tool/list", number=4)).encode() + b"\n", lines=2
    )
    messages = [json.loads(line) for line in out.splitlines()]
    (replies,) = [message for message in messages if isinstance(message, list)]
    assert [message["id"] for message in messages if isinstance(message, dict)] == [4]
    found = {reply["id"]: reply for reply in replies}
    assert len(replies) == 4
    assert found[1]["result"]["status"] in ("ok", "degraded")
    assert found[2]["error"]["code"] == -32601
    assert found[3]["result"]["output"] == {"text": "x"}
    assert found[None]["error"]["code"] == -32600


def test_a_batch_without_requests_has_no_answer(root: Path) -> None:
    out, _, code = speak(root, json.dumps([BATCH[1], BATCH[4]]).encode() + b"\n")
    assert (out, code) == (b"", 0)


@pytest.mark.parametrize("batch", [[], [BATCH[1]] * 1001], ids=["empty", "too long"])
def test_a_batch_of_no_or_too_many_messages_is_one_error(root: Path, batch: list[Any]) -> None:
    out, _, _ = speak(root, json.dumps(batch).encode() + b"\n")
    reply = json.loads(out)
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


def test_a_batch_that_the_end_of_stdin_cuts_short_is_answered_whole(root: Path) -> None:
    batch = [rpc("server/health", number=1), rpc("tool/execute", {"toolId": "test:hang"}, number=2)]
    out, _, code = speak(root, json.dumps(batch).encode() + b"\n")
    found = {reply["id"]: reply for reply in json.loads(out)}
    assert (set(found), code) == ({1, 2}, 0)
    # on a loaded machine the tool may not have ended in the time that is left
    assert found[2].get("error", {}).get("code") == -32800 or found[2]["result"]["status"] == "cancelled"


def test_a_lone_surrogate_in_a_message_is_read_as_the_replacement_character(root: Path) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tool/parse","params":{"text":"a \\ud800 b"}}\n'
    out, err, _ = speak(root, body, lines=1)
    assert json.loads(out)["result"]["responseText"] == "a \ufffd b"
    assert b"surrogate" in err


def test_a_message_with_headers_is_answered_with_headers(root: Path) -> None:
    body = json.dumps(rpc("server/health")).encode()
    out, _, code = speak(root, b"content-length: %d\r\n\r\n%b" % (len(body), body))
    head, _, rest = out.partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(rest)
    assert json.loads(rest)["id"] == 1
    assert code == 0


def test_only_protocol_is_on_stdout(root: Path) -> None:
    out, _, _ = speak(
        root,
        b"".join(json.dumps(rpc("tool/list", number=n)).encode() + b"\n" for n in range(1, 6)),
        lines=5,
        process=True,
    )
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2, 3, 4, 5]


def test_it_works_without_locale_home_and_terminal(root: Path) -> None:
    env = {"PATH": os.environ["PATH"], "LANG": "C", "HOME": str(root / "no-home")}
    text = "工具 " + vcp("test:echo", text="你好 😀")
    with subprocess.Popen(
        [*COMMAND, "--root", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    ) as daemon:
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        daemon.stdin.write(json.dumps(rpc("tool/executeText", {"text": text})).encode() + b"\n")
        daemon.stdin.flush()
        reply = json.loads(daemon.stdout.readline())
        daemon.stdin.close()
    assert reply["result"]["results"][0]["output"] == {"text": "你好 😀"}


def test_the_end_of_stdin_ends_the_daemon_and_what_it_runs(root: Path) -> None:
    """Within half a second (interface): of the product's own bounds, so that no busy machine decides."""
    assert session.LAST_ANSWERS_S + session.KILL_S + session.KILL_S + session.FLUSH_S < 0.5
    client = Client(root)
    _, running = client.send("tool/execute", {"toolId": "test:hang"})
    children = until(lambda: descendants(client.process.pid))
    assert client.close(timeout=HOUR_S) == 0
    assert running.done()
    until(lambda: not alive(children))


def test_sigterm_ends_the_daemon_gracefully(root: Path) -> None:
    client = Client(root)
    client.request("server/health")
    client.send("tool/execute", {"toolId": "test:hang"})
    children = until(lambda: descendants(client.process.pid))
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait() == 0
    until(lambda: not alive(children))
    client.close()


def test_killing_the_daemon_in_the_middle_of_a_run_leaves_no_process(root: Path) -> None:
    client = Client(root)
    client.send("tool/execute", {"toolId": "test:hang"})
    children: list[int] = []
    while len(children) < 3:
        time.sleep(0.05)
        children = descendants(client.process.pid)
    client.process.kill()
    client.process.wait()
    until(lambda: not alive(children))
    client.close()


def test_the_daemon_ends_when_the_process_that_started_it_dies(root: Path) -> None:
    parent = subprocess.Popen(["sleep", "86400"])
    client = Client(root)
    client.request("initialize", {"processId": parent.pid, "capabilities": {}})
    parent.kill()
    parent.wait()
    assert client.process.wait() == 0
    client.close()


def test_many_requests_at_once_all_get_their_own_answer(client: Client) -> None:
    futures = [client.send("tool/parse", {"text": action("t", n=str(n))})[1] for n in range(200)]
    assert [future.result()["calls"][0]["args"]["n"] for future in futures] == [str(n) for n in range(200)]


def test_ten_megabytes_of_text_are_parsed(client: Client) -> None:
    result = client.request("tool/parse", {"text": "lorem ipsum < dolor & sit\n" * 400_000 + action("t", a="1")})
    assert [call["toolId"] for call in result["calls"]] == ["t"]


def test_shutdown_is_answered_and_later_requests_are_refused(client: Client) -> None:
    assert client.request("shutdown") is None
    assert failure(client, "tool/list").code == -32600


def test_the_helpers_of_these_tests_see_a_process() -> None:
    child = subprocess.Popen(["sleep", "86400"])
    try:
        assert child.pid in descendants(os.getpid())
        assert alive([child.pid]) == [child.pid]
    finally:
        child.kill()
        child.wait()
    assert alive([child.pid]) == []


def test_a_client_that_does_not_read_stops_nothing(root: Path) -> None:
    script = "import sys\nfor i in range(20000): print('x' * 500, file=sys.stderr)\nprint(1)"
    make_tool(root, "test:loud", script)
    process = subprocess.Popen([*COMMAND, "--root", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    request = rpc("tool/execute", {"toolId": "test:loud", "output": "stream"})
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    time.sleep(0.5)
    lines: list[bytes] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or []), daemon=True)
    reader.start()
    until(lambda: any(b'"id":1' in line for line in list(lines)))
    process.stdin.close()
    assert process.wait() == 0
    reader.join()
    reply = json.loads(lines[-1])
    assert reply["id"] == 1
    assert reply["result"]["logsTruncated"] is True


def test_words_on_standard_error_fail_a_call_where_the_request_says_so(root: Path, client: Client) -> None:  # ruling 37
    script = "import json, sys\nsys.stderr.write('careful')\nprint(json.dumps(1))"
    make_tool(root, "test:wordy", script)
    client.request("registry/reload", {})
    text = "<ACTION><test:wordy></test:wordy></ACTION>"
    asked = [{}, {"stderrFails": True}, {"stderrFails": False}]
    found = [client.request("tool/executeText", {"text": text, "options": options}) for options in asked]
    assert [one["results"][0]["status"] for one in found] == ["success", "error", "success"]


def test_other_requests_are_answered_and_a_cancel_is_heard_while_a_large_text_is_read(client: Client) -> None:
    text = "<ACTION><t><a>x</a></t></ACTION>\n" * 60_000
    client.request("server/health", {})  # which tries the sandbox when it is asked first
    number, reading = client.send("tool/parse", {"text": text, "options": {"allowMultipleBlocks": True}})
    assert client.request("server/health", {})
    assert not reading.done()
    client.cancel(number)
    with pytest.raises(RpcFailure) as error:
        reading.result()
    assert error.value.code == -32800
    assert len(client.request("tool/parse", {"text": text[: 33 * 9_000]})["calls"]) == 9_000
