"""Requests under way: cancelled at any time, answered once, stale answers said to be stale; floods and clients that do not read."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.server.lsp import main, trace
from tamis.server.lsp.session import Session
from tamis.server.lsp.table import REQUESTS
from tamis.server.wire.stdio import Outbox
from tests.lsp.lsp_client import SERVER, Client, edit
from tests.waiting import until

CALL = "<ACTION><core:echo><text>x</text></core:echo></ACTION>"
URI = "untitled:a"
AT = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 12}}


class Slow(Client):
    """A client of a server whose hovers end when the test lets them, so that something is under way when the next message comes."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = threading.Event()
        super().__init__()

    def hover(self, *_: object) -> None:
        """Takes the place of the server's handler."""
        self.begun += 1
        self.may_end.wait()

    def begins(self, number: int) -> None:
        """Waits until so many hovers have begun."""
        until(lambda: self.begun >= number)


@pytest.fixture
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    with Slow() as client:
        verb = REQUESTS["textDocument/hover"]
        monkeypatch.setitem(REQUESTS, "textDocument/hover", msgspec.structs.replace(verb, handler=client.hover))
        client.start()
        client.open(URI, CALL)
        client.published(URI)
        yield client
        client.may_end.set()


def cancel(client: Client, request_id: int) -> None:
    client.notify("$/cancelRequest", {"id": request_id})


def answers(client: Client) -> list[Any]:
    return [message["id"] for message in client.messages if "method" not in message]


def test_request_that_runs_is_answered_at_once_when_cancelled(slow: Slow) -> None:
    sent = slow.request("textDocument/hover", AT)
    slow.begins(1)
    cancel(slow, sent)
    assert slow.answer(sent)["error"]["code"] == -32800
    # The answer that the handler gives later is dropped.
    slow.may_end.set()
    slow.call("textDocument/hover", AT)
    slow.call("shutdown")
    assert answers(slow).count(sent) == 1


def test_request_that_waits_is_not_begun_when_cancelled(slow: Slow) -> None:
    # pygls#517
    first = slow.request("textDocument/hover", AT)
    slow.begins(1)
    second = slow.request("textDocument/hover", AT)
    slow.request("textDocument/hover", AT)
    cancel(slow, second)
    assert slow.answer(second)["error"]["code"] == -32800
    slow.may_end.set()
    slow.call("textDocument/hover", AT)
    assert first in answers(slow)
    assert slow.begun == 3


def test_cancel_after_the_answer_and_of_unknown_ids_changes_nothing(client: Client) -> None:
    client.start()
    client.open(URI, CALL)
    sent = client.request("textDocument/hover", AT)
    client.answer(sent)
    for strange in (sent, 999, "x"):
        client.notify("$/cancelRequest", {"id": strange})
    client.notify("$/cancelRequest", {"id": {}})
    client.notify("$/cancelRequest")
    # An id may be used again once it was answered.
    client.send({"id": sent, "method": "textDocument/hover", "params": AT})
    assert "result" in client.answer(sent)
    assert answers(client).count(sent) == 2


def test_answer_about_a_text_that_changed_meanwhile_is_content_modified(slow: Slow) -> None:
    sent = slow.request("textDocument/hover", AT)
    slow.begins(1)
    slow.change(URI, edit((0, 0), (0, 0), "\n"))
    slow.call("textDocument/completion", AT)  # the change has arrived
    slow.may_end.set()
    assert slow.answer(sent)["error"]["code"] == -32801
    assert "result" in slow.answer(slow.request("textDocument/hover", AT))


def test_position_in_a_text_that_changed_before_its_turn_is_content_modified(slow: Slow) -> None:
    slow.request("textDocument/hover", AT)
    slow.begins(1)
    waiting = slow.request("textDocument/hover", AT)
    slow.change(URI, edit((0, 0), (0, 0), "\n"))
    slow.call("textDocument/completion", AT)
    slow.may_end.set()
    assert slow.answer(waiting)["error"]["code"] == -32801
    assert slow.begun == 1


def test_requests_to_the_hot_lane_are_answered_while_the_other_works(slow: Slow) -> None:
    hover = slow.request("textDocument/hover", AT)
    slow.begins(1)
    slow.call("textDocument/completion", AT)
    assert hover not in answers(slow)
    slow.may_end.set()
    slow.answer(hover)


def test_two_requests_under_way_with_one_id_are_two_answers(slow: Slow) -> None:
    sent = slow.request("textDocument/hover", AT)
    slow.begins(1)
    slow.send({"id": sent, "method": "textDocument/hover", "params": AT})
    assert slow.answer(sent)["error"]["code"] == -32600
    slow.may_end.set()
    assert "result" in slow.answer(sent)


@pytest.mark.parametrize("method", ["textDocument/hover", "textDocument/completion", "shutdown", "nothing"])
def test_request_whose_id_is_null_is_an_invalid_request(client: Client, method: str) -> None:
    client.start()
    client.send({"id": None, "method": method, "params": AT})
    assert client.answer(None)["error"]["code"] == -32600
    assert client.stop() == 0


def test_responses_to_nothing_are_ignored(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client.start()
    client.call("textDocument/hover", AT)
    for identity in (1, 4711, "x", "00000000-0000-0000-0000-000000000000", None):
        client.send({"id": identity, "result": {"a": [1]}})
        client.send({"id": identity, "error": {"code": "no number"}})
        client.send({"id": identity, "result": 1, "error": 2})
    assert client.stop() == 0
    assert "Traceback" not in capsys.readouterr().err


def test_shutdown_waits_for_nothing(slow: Slow) -> None:
    slow.request("textDocument/hover", AT)
    slow.begins(1)
    assert slow.stop() == 0


class Unread:
    """A session, in this process, whose folder is never read."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[dict[str, Any]] = []
        self.session = Session(lambda body, **_: self.sent.append(json.loads(body)), lambda _: None)
        monkeypatch.setattr(self.session.scanner, "load", lambda _: None)
        folders = [{"uri": folder.as_uri(), "name": "x"}]
        self.send(1, "initialize", {"capabilities": {}, "workspaceFolders": folders})
        self.send(None, "initialized", {})
        item = {"uri": URI, "languageId": "markdown", "version": 1, "text": CALL}
        self.send(None, "textDocument/didOpen", {"textDocument": item})

    def send(self, identity: int | None, method: str, params: Any) -> None:
        message = {"method": method, "params": params} | ({} if identity is None else {"id": identity})
        self.session.receive([json.dumps(message).encode()])

    def answered(self) -> list[Any]:
        return [message.get("id") for message in self.sent if "method" not in message]


def test_tools_that_do_not_come_are_waited_for_once_and_nobody_else_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread = Unread(tmp_path, monkeypatch)
    unread.send(2, "textDocument/completion", AT)
    unread.send(3, "tamis/nothing", {})
    assert unread.answered() == [1, 3]
    assert unread.session.due is not None
    time.sleep(max(0.0, unread.session.due - time.monotonic()) + 0.6)
    unread.session.wake()
    assert unread.answered() == [1, 3, 2]
    unread.send(4, "textDocument/completion", AT)
    assert unread.answered() == [1, 3, 2, 4]
    assert unread.session.due is None


def test_request_that_waits_for_tools_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unread = Unread(tmp_path, monkeypatch)
    unread.send(2, "textDocument/completion", AT)
    unread.send(None, "$/cancelRequest", {"id": 2})
    assert unread.sent[-1]["error"]["code"] == -32800
    unread.session.wake(everything=True)
    assert unread.answered() == [1, 2]


def test_requests_that_wait_for_tools_are_answered_at_shutdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unread = Unread(tmp_path, monkeypatch)
    unread.send(2, "textDocument/completion", AT)
    unread.send(3, "shutdown", None)
    assert unread.answered() == [1, 2, 3]


# Traces and logs


def test_trace_is_told_to_those_who_ask(client: Client) -> None:
    client.start()
    client.call("textDocument/hover", AT)
    assert not [one for one in client.messages if one.get("method") == "$/logTrace"]
    client.notify("$/setTrace", {"value": "verbose"})
    client.call("textDocument/completion", AT)
    client.notify("$/setTrace", {"value": "off"})
    client.call("textDocument/completion", AT)
    traces = [one["params"] for one in client.messages if one.get("method") == "$/logTrace"]
    assert any("textDocument/completion" in one["message"] and "untitled:a" in one["verbose"] for one in traces)
    assert any(one["message"].startswith("sent result") for one in traces)
    assert len(traces) <= 4


def test_trace_may_begin_with_initialize(client: Client) -> None:
    client.call("initialize", {"capabilities": {}, "processId": None, "rootUri": None, "trace": "messages"})
    client.call("textDocument/completion", AT)
    traces = [one["params"] for one in client.messages if one.get("method") == "$/logTrace"]
    assert traces
    assert not any("verbose" in one for one in traces)


def test_lines_of_the_log_are_bounded_in_length_and_number(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "LINES_SECONDS", 86_400.0)
    client.start()
    for _ in range(300):
        client.notify("textDocument/didOpen", {"textDocument": {"uri": 3, "x" * 50_000: 1}})
    client.call("textDocument/completion", AT)
    lines = [one["params"]["message"] for one in client.messages if one.get("method") == "window/logMessage"]
    assert 0 < len(lines) <= 50
    assert all(len(line) < 2_100 for line in lines)


# Settings


def test_settings_are_asked_for_where_the_client_can_answer(tmp_path: Path) -> None:
    # The client overlays the file, and what it says later lies over what it said first.
    (tmp_path / "tamis.toml").write_text("strictJson = false\n")
    uri = (tmp_path / "a.tool.json").as_uri()
    text = "// a note\n{}"
    with Client() as client:
        client.answers["workspace/configuration"] = [{"strictJson": True}]
        capabilities = {"workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}}
        client.start(tmp_path, capabilities)
        client.open(uri, text, "json")
        while not any(one["severity"] == 1 and "Comments" in one["message"] for one in client.published(uri)):
            pass
        registered = [
            one["method"]
            for message in client.messages
            if message.get("method") == "client/registerCapability"
            for one in message["params"]["registrations"]
        ]
        assert registered == ["workspace/didChangeConfiguration"]
        client.answers["workspace/configuration"] = [{"strictJson": False}]
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        while any(one["severity"] == 1 and "Comments" in one["message"] for one in client.published(uri)):
            pass


@pytest.mark.parametrize("answer", [None, [], [None], ["x"], {"a": 1}, 3])
def test_strange_settings_are_taken_for_none(tmp_path: Path, answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with Client() as client:
        client.answers["workspace/configuration"] = answer
        client.start(tmp_path, {"workspace": {"configuration": True}})
        client.notify("workspace/didChangeConfiguration", {"settings": answer})
        client.call("textDocument/completion", AT)
        assert client.stop() == 0
    assert capsys.readouterr().err == ""


# Floods


def test_keystrokes_that_wait_are_answered_at_most_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = threading.Event()
    verb = REQUESTS["textDocument/completion"]

    def hold(*_: object) -> None:
        typed.wait()

    monkeypatch.setitem(REQUESTS, "textDocument/completion", msgspec.structs.replace(verb, handler=hold))
    monkeypatch.setattr(main, "BURST_SECONDS", 86_400.0)
    with Client() as client:
        client.start()
        client.open(URI, CALL + "\n" + "prose 你好 😋\n" * 400)
        client.published(URI, 1)
        held = client.request("textDocument/completion", AT)
        before = len(client.messages)
        for number in range(30):
            client.change(URI, edit((1, 0), (1, 0), f"{number} </ACTION>"))
        typed.set()
        client.published(URI, 31)
        with pytest.raises(queue.Empty):
            client.next(0.2)
        told = client.messages[before:]
        assert any(message.get("id") == held for message in told)
        assert len(told) - 1 <= 3


def test_single_keystrokes_are_answered_each(client: Client) -> None:
    client.start()
    client.open(URI, CALL)
    client.published(URI, 1)
    for _ in range(20):
        version = client.change(URI, edit((0, 0), (0, 0), "</ACTION>\n"))
        client.published(URI, version)


def frame(message: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def memory(process: subprocess.Popen[bytes]) -> int:
    """Returns the most bytes that were ever resident."""
    (line,) = (
        line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmHWM:")
    )
    return int(line.split()[1]) * 1024


def rests(process: subprocess.Popen[bytes]) -> None:
    """Waits until no thread has had anything to do for half a second: one that waits for a processor has something to do."""
    quiet = 0
    while quiet < 25:
        states = {
            task.joinpath("stat").read_text().rpartition(")")[2].split()[0]
            for task in Path(f"/proc/{process.pid}/task").iterdir()
        }
        quiet = quiet + 1 if states <= {"S"} else 0
        time.sleep(0.02)


def test_client_that_does_not_read_costs_bounded_memory_and_gets_every_answer() -> None:
    process = subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    requests = 400
    stdin = process.stdin

    def write() -> None:
        stdin.write(frame({"id": 0, "method": "initialize", "params": {"capabilities": {}}}))
        stdin.write(frame({"method": "initialized", "params": {}}))
        item = {"uri": URI, "languageId": "markdown", "version": 1, "text": CALL}
        stdin.write(frame({"method": "textDocument/didOpen", "params": {"textDocument": item}}))
        for number in range(1, requests + 1):
            # Each change brings two hundred findings anew, each completion an answer.
            change = {"text": "</ACTION>\n" * 300 + str(number)}
            document = {"uri": URI, "version": number + 1}
            stdin.write(
                frame(
                    {
                        "method": "textDocument/didChange",
                        "params": {"textDocument": document, "contentChanges": [change]},
                    }
                )
            )
            stdin.flush()
            stdin.write(frame({"id": number, "method": "textDocument/completion", "params": AT}))
            stdin.flush()
            if number % 20 == 0:
                time.sleep(0.03)
        stdin.write(frame({"id": requests + 1, "method": "shutdown"}))
        stdin.flush()

    writer = threading.Thread(target=write)
    try:
        writer.start()
        writer.join()
        rests(process)
        assert memory(process) < 200 * 1024 * 1024
        answered: list[int] = []
        published = 0
        while requests + 1 not in answered:
            length = 0
            while line := process.stdout.readline().strip():
                length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
            message = json.loads(process.stdout.read(length))
            if "method" not in message:
                answered.append(message["id"])
            published += message.get("method") == "textDocument/publishDiagnostics"
        assert sorted(answered) == list(range(requests + 2))
        # What was said about the document while nobody listened is said once.
        assert published < 20
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_flood_of_requests_is_answered_one_by_one(client: Client) -> None:
    client.start()
    client.open(URI, CALL)
    data = b"".join(
        frame({"id": f"f{number}", "method": "textDocument/hover", "params": AT}) for number in range(3_000)
    )
    threading.Thread(target=client.send_bytes, args=(data,)).start()
    waiting = {f"f{number}" for number in range(3_000)}
    while waiting:
        message = client.next()
        if "method" not in message:
            waiting.remove(message["id"])
            # Beyond a bound requests are refused instead of kept.
            assert "result" in message or message["error"]["code"] == -32803
    assert client.stop() == 0


# The outbox alone


def test_outbox_keeps_order_and_loses_nothing_while_nobody_reads() -> None:
    read, write = os.pipe()
    outbox = Outbox(write)
    messages = [b"%06d" % number + b"x" * 10_000 for number in range(300)]
    for message in messages:
        assert outbox.write(message)
    received = b""
    while len(received) < sum(map(len, messages)):
        received += os.read(read, 1 << 20)
    assert received == b"".join(messages)
    os.close(read)
    os.close(write)


def test_outbox_replaces_what_has_the_same_key_and_drops_what_may_be_dropped() -> None:
    read, write = os.pipe()
    outbox = Outbox(write)
    outbox.write(b"a" * 200_000)
    for number in range(1_000):
        outbox.write(b"K%03d" % number, key="k")
    outbox.write(b"b" * 5 * 1024 * 1024)
    assert not outbox.write(b"log", droppable=True)
    assert outbox.dropped == 1
    received = b""
    while len(received) < 200_000 + 4 + 5 * 1024 * 1024:
        received += os.read(read, 1 << 20)
    assert received == b"a" * 200_000 + b"K999" + b"b" * 5 * 1024 * 1024
    outbox.close(1)
    os.close(read)
    os.close(write)


def test_outbox_of_a_client_that_has_gone_is_broken() -> None:
    read, write = os.pipe()
    outbox = Outbox(write)
    outbox.write(b"a" * 200_000)
    os.close(read)
    outbox.close(5)
    assert outbox.broken
    assert not outbox.write(b"b")
    os.close(write)
