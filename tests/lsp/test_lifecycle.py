"""The protocol's manners: each fault that pygls 2.1 has is shown not to be ours (language-server, Faults; F29)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp.lsp_client import SERVER, Client
from tests.sample_tools import make_tool
from tests.waiting import until


@pytest.fixture
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture
def process() -> Iterator[Client]:
    """A server in a process, for tests of signals and of what ends a process."""
    with Client(inside=False) as client:
        yield client


HOVER = {"textDocument": {"uri": "file:///nowhere/a.md"}, "position": {"line": 0, "character": 0}}


def test_request_after_shutdown_is_an_invalid_request(client: Client) -> None:
    client.start()
    client.call("shutdown")
    assert client.fails("textDocument/hover", HOVER)["code"] == -32600


def test_exit_after_shutdown_ends_with_0(client: Client) -> None:
    client.start()
    assert client.stop() == 0


def test_exit_without_shutdown_ends_with_1(client: Client) -> None:
    client.start()
    client.notify("exit")
    assert client.exit_code() == 1


def test_exit_before_initialize_ends_with_1(client: Client) -> None:
    client.notify("exit")
    assert client.exit_code() == 1


@pytest.mark.parametrize("method", ["textDocument/hover", "shutdown", "tool/unknown"])
def test_request_before_initialize_is_refused(client: Client, method: str) -> None:
    assert client.fails(method)["code"] == -32002


def test_notification_before_initialize_is_dropped(client: Client) -> None:
    client.open("file:///nowhere/a.md", "<ACTION>")
    assert client.start()["serverInfo"]["name"] == "tamis"


def test_second_initialize_is_an_error(client: Client) -> None:
    client.start()
    assert client.fails("initialize", {"capabilities": {}, "processId": None, "rootUri": None})["code"] == -32600


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/completion", {"textDocument": "no object", "position": {"line": 0, "character": 0}}),
        ("textDocument/completion", None),
        ("textDocument/diagnostic", {"textDocument": 3}),
        ("textDocument/hover", {"textDocument": 3}),
        ("textDocument/hover", {"textDocument": {"uri": "file:///a.md"}, "position": {"line": "x", "character": []}}),
        ("textDocument/hover", None),
        ("textDocument/codeAction", {"textDocument": {"uri": "file:///a.md"}}),
        ("textDocument/codeAction", [1, 2]),
    ],
)
def test_parameters_of_a_wrong_shape_are_answered(client: Client, method: str, params: object) -> None:
    client.start()
    error = client.fails(method, params)
    assert error["code"] == -32602
    # In words for people, without those of the language that the server is written in.
    assert not re.search(r"Error|NoneType|subscriptable|iterable|\b(?:str|int|dict)\b", error["message"])
    assert client.stop() == 0


def test_unknown_method_is_answered_with_and_without_params(client: Client) -> None:
    client.start()
    assert client.fails("tamis/nothing", {"max-depth": 3})["code"] == -32601
    assert client.fails("tamis/nothing")["code"] == -32601
    assert "did you mean 'textDocument/hover'?" in client.fails("textDocument/hovr")["message"]


def test_unknown_notification_is_ignored(client: Client) -> None:
    client.start()
    client.notify("$/nothing", {"a": 1})
    client.notify("workspace/nothing")
    assert client.stop() == 0


def test_params_with_a_nested_jsonrpc_key_are_answered(client: Client) -> None:
    client.start()
    nested = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}}
    assert client.fails("tamis/nothing", {"message": nested})["code"] == -32601
    assert client.call("textDocument/hover", {**HOVER, "extra": nested}) is None


@pytest.mark.parametrize("header", ["content-length", "CONTENT-LENGTH", "Content-length"])
def test_header_in_any_case(client: Client, header: str) -> None:
    client.send_body(b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}', header)
    assert client.answer(1)["error"]["code"] == -32002


def test_other_headers_and_blanks_are_read_over(client: Client) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}'
    head = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length:   %d  \r\n\r\n" % len(body)
    client.send_bytes(head + body)
    assert client.answer(1)["error"]["code"] == -32002


def test_message_that_arrives_in_pieces_is_one_message(client: Client) -> None:
    body = '{"jsonrpc":"2.0","id":1,"method":"工具"}'.encode()
    for byte in b"Content-Length: %d\r\n\r\n" % len(body) + body:
        client.send_bytes(bytes([byte]))
    assert client.answer(1)["error"]["code"] == -32002


@pytest.mark.parametrize("body", [b"{", b"not json", b'{"a":}', b"\xff\xfe", b""])
def test_bad_json_body_is_a_parse_error_with_null_id(client: Client, body: bytes) -> None:
    client.send_body(body)
    answer = client.answer(None)
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert client.start()["serverInfo"]["name"] == "tamis"


@pytest.mark.parametrize("body", [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"a"}]', b"3", b'{"id":{}}', b"{}"])
def test_json_that_is_no_message_is_an_invalid_request(client: Client, body: bytes) -> None:
    client.send_body(body)
    assert client.answer(None)["error"]["code"] == -32600


def test_message_without_a_length_does_not_end_the_session(client: Client) -> None:
    client.send_bytes(b"Content-Type: x\r\n\r\n")
    assert client.answer(None)["error"]["code"] == -32700
    assert client.start()["serverInfo"]["name"] == "tamis"


def test_lone_surrogate_escapes_are_read_as_replacement_characters(client: Client) -> None:
    client.start()
    client.send_body(
        b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"untitled:a","languageId":'
        b'"markdown","version":1,"text":"\\ud800 \\udc00\\ud83d\\ude0b \\\\ud800 </ACTION>"}}}'
    )
    found = client.published("untitled:a")
    # U+FFFD, blank, U+FFFD, one astral character (two UTF-16 units), blank, a backslash with "ud800", blank
    assert [item["range"]["start"]["character"] for item in found] == [13]


def test_bytes_that_are_no_text_inside_parameters_are_answered_with_an_error(client: Client) -> None:
    client.start()
    for request_id, method in enumerate(("textDocument/completion", "textDocument/hover"), 50):
        head = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"a":"' % (request_id, method.encode())
        client.send_body(head + b'\xff\xfe padding so that the end is not near"}}')
        # A decoder that needs nothing of the broken part may find the wrong shape first.
        assert client.answer(request_id)["error"]["code"] in (-32700, -32602)
    assert client.stop() == 0


def test_deeply_nested_parameters_are_answered(client: Client) -> None:
    client.start()
    client.send_body(
        b'{"jsonrpc":"2.0","id":9,"method":"textDocument/hover","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    )
    message = client.next()
    assert message["error"]["code"] in (-32700, -32602)
    assert client.stop() == 0


def test_end_of_input_ends_the_process(process: Client) -> None:
    process.start()
    process.call("textDocument/hover", HOVER)
    assert process.process.stdin is not None
    process.process.stdin.close()
    assert process.exit_code() == 1


def test_a_server_that_nobody_reads_any_more_ends_though_its_input_is_open() -> None:
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # R6
        assert process.stdin is not None
        assert process.stdout is not None
        body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
        process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait() == 1


def test_end_of_input_after_shutdown_ends_with_0(client: Client) -> None:
    client.start()
    client.call("shutdown")
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.exit_code() == 0


def test_sigterm_ends_the_process(process: Client) -> None:
    process.start()
    assert isinstance(process.process, subprocess.Popen)
    process.process.send_signal(signal.SIGTERM)
    assert process.exit_code() == 0


def answers(client: Client) -> None:
    """Fails when the server ended by itself a moment after it learnt its client's process."""
    client.call("textDocument/hover", HOVER)
    time.sleep(0.1)
    client.call("textDocument/hover", HOVER)


def test_death_of_the_named_client_ends_the_session(client: Client) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    client.call("initialize", {"capabilities": {}, "processId": parent.pid, "rootUri": None})
    answers(client)
    parent.kill()
    parent.wait()
    assert client.exit_code() == 1


def test_client_of_another_process_namespace_is_not_taken_for_dead(client: Client) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    client.call("initialize", {"capabilities": {}, "processId": gone.pid, "rootUri": None})
    answers(client)


def test_only_protocol_on_stdout_even_if_a_library_prints() -> None:
    script = (
        "import os, sys, msgspec, tamis.server.lsp.table as s\n"
        "verb = s.REQUESTS['shutdown']\n"
        "def noisy(*args):\n"
        "    print('chatter'); sys.stdout.flush(); os.write(1, b'raw chatter\\n'); os.system('echo child chatter')\n"
        "    return verb.handler(*args)\n"
        "s.REQUESTS['shutdown'] = msgspec.structs.replace(verb, handler=noisy)\n"
        "from tamis.server.lsp.main import serve\n"
        "sys.exit(serve(None))\n"
    )
    with Client(command=[sys.executable, "-c", script]) as client:
        client.start()
        assert client.stop() == 0
    assert b"raw chatter" in client.stderr
    assert b"child chatter" in client.stderr


@pytest.mark.parametrize("kind", ["missing", "closed"])
def test_works_with_the_c_locale_and_without_a_home(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    make_tool(root, "test:echo")
    home = tmp_path / "home"
    if kind == "closed":
        home.write_text("")  # nobody makes a folder below a file, not even root
    own = ("TAMIS_STATE_DIR", "TAMIS_CACHE_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    places = dict.fromkeys(own, "") | {"HOME": str(home / "me")}
    before = sorted(root.rglob("*"))
    with Client(env={"LANG": "C", "LC_ALL": "C", **places}) as client:
        client.start(root)
        client.open("untitled:a", "说明 </ACTION>\n")
        assert client.published("untitled:a")[0]["range"]["start"]["character"] == 3
        result = client.call("tool/execute", {"toolId": "test:echo", "args": {"text": "工"}})
        assert (result["status"], result["output"]) == ("success", {"text": "工"})
        assert client.stop() == 0
    # what outlives the session stands below the home, if it can, and nowhere else
    assert sorted(root.rglob("*")) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "root"]
    if kind == "missing":
        assert [path.name for path in home.glob("me/.local/state/tamis/audit.jsonl")] == ["audit.jsonl"]


def test_cancelled_request_that_arrived_together_is_not_begun(client: Client) -> None:
    client.start()
    messages = [
        {"jsonrpc": "2.0", "id": "c", "method": "textDocument/completion", "params": HOVER},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "c"}},
    ]
    data = b""
    for message in messages:
        body = json.dumps(message).encode()
        data += b"Content-Length: %d\r\n\r\n" % len(body) + body
    client.send_bytes(data)
    assert client.answer("c")["error"]["code"] == -32800


def test_every_request_of_a_burst_gets_exactly_one_answer(client: Client) -> None:
    client.start()
    methods = ["textDocument/completion", "textDocument/hover", "tamis/nothing"] * 20
    sent = [client.request(method, HOVER) for method in methods]
    for request_id in sent:
        if not any(message.get("id") == request_id for message in client.messages):
            client.answer(request_id)
    client.call("shutdown")
    answered = [message["id"] for message in client.messages if "method" not in message]
    assert sorted(answered)[1:-1] == sent


def test_broken_pipe_ends_the_process() -> None:
    process = subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    body = b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}'
    try:
        process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        process.stdin.flush()
        assert process.wait() == 1
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def test_start_loads_no_framework() -> None:
    script = (
        "import sys, tamis.server.lsp.main\n"
        "heavy = {'pygls', 'lsprotocol', 'asyncio', 'jsonschema', 'lxml', 'attrs', 'cattrs'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, env={**os.environ}, check=False)
    assert run.returncode == 0, run.stderr


def test_methods_of_the_framework_lane_are_those_that_it_registers() -> None:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.framework import register
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.table import REQUESTS

    server = LanguageServer("test", "1")
    register(server, Session(lambda *_, **__: None, lambda _: None))
    assert set(server.protocol.fm.features) == {name for name, verb in REQUESTS.items() if verb.schedule != "now"}


def test_a_session_that_ended_leaves_nothing_open(tmp_path: Path) -> None:
    def loops() -> int:
        links = (os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
        return sum("eventpoll" in link for link in links)

    before = loops()
    for _ in range(3):
        with Client(cwd=tmp_path, inside=True) as client:
            client.start(tmp_path)
            client.open((tmp_path / "calls.md").as_uri(), "<ACTION></ACTION>")
            client.call("textDocument/hover", at((tmp_path / "calls.md").as_uri()))
            assert client.stop() == 0
    until(lambda: loops() <= before)


def at(uri: str) -> dict[str, object]:
    return {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 2}}
