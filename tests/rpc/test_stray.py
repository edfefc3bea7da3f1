"""Every line that a daemon writes on standard error is one JSON object where the log is JSON, whatever goes wrong (D27, D94)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.server.rpc.stray import StrayText
from tamis.server.runtime.observe.trail import Log
from tests.rpc.process import COMMAND, rpc
from tests.sample_tools import make_tool
from tests.waiting import until

PACKAGE = """
import asyncio, logging, sys, threading, warnings


async def lost():
    raise ValueError("nobody asked for this")


class Noisy:
    api, type = 1, "noisy"

    def problem(self, handler):
        return ""

    async def run(self, call):
        sys.stderr.write("half a line, ")
        sys.stderr.write("and its end\\nand one more\\n")
        print("printed")
        warnings.warn("this is old")
        logging.getLogger("stranger").error("logged")
        thread = threading.Thread(target=lambda: 1 / 0, name="lost thread")
        thread.start()
        await asyncio.to_thread(thread.join)
        asyncio.get_running_loop().create_task(lost())
        await asyncio.sleep(0)
        return 1


HANDLER = Noisy()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a tool that a package runs, which says much besides; the log is JSON."""
    info = tmp_path / "packages" / "noisy-0.1.dist-info"
    info.mkdir(parents=True)
    (info.parent / "noisy.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[tamis.handlers]\nnoisy = noisy:HANDLER\n")
    make_tool(tmp_path, "test:echo")
    make_tool(tmp_path, "test:noisy", handler={"type": "noisy"})
    (tmp_path / "tamis.toml").write_text(
        'logFormat = "json"\nlogLevel = "debug"\nhandlers = ["noisy"]\nworkflows = ["missing"]\n[audit]\npath = "audit"\n'
    )
    # the audit log cannot be written
    (tmp_path / "audit").mkdir()
    return tmp_path


class Daemon:
    """A daemon whose standard error is kept."""

    def __init__(self, root: Path, *more: str, state: Path | None = None, cwd: Path | None = None) -> None:
        env = {**os.environ, "PYTHONPATH": str(root / "packages")}
        env |= {"TAMIS_STATE_DIR": str(state)} if state is not None else {}
        self.said = root / "said"
        with self.said.open("wb") as said:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
            self.process = subprocess.Popen([*COMMAND, *more], env=env, cwd=cwd, **pipes)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def write(self, *messages: dict[str, Any] | bytes) -> None:
        """Sends messages, or bytes as they are."""
        for message in messages:
            self.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request; whatever else comes is passed over."""
        while True:
            message = json.loads(self.stdout.readline())
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                return message

    def end(self) -> list[dict[str, Any]]:
        """Ends the input; the lines of the log, each of which is an object with its time, level and message."""
        self.stdin.close()
        self.stdout.read()
        self.process.wait()
        return self.lines()

    def lines(self) -> list[dict[str, Any]]:
        """What is on standard error so far."""
        told = [json.loads(line) for line in self.said.read_text().splitlines()]
        assert all(isinstance(one, dict) and {"time", "level", "message"} <= one.keys() for one in told), told
        return told


def begin(number: int = 1, **more: Any) -> dict[str, Any]:
    return rpc("initialize", {"processId": None, "capabilities": {}} | more, number)


def call(tool_id: str, number: int) -> dict[str, Any]:
    return rpc("tool/execute", {"toolId": tool_id, "args": {"text": "x"}}, number)


def test_whatever_a_host_sends_and_a_handler_says_is_a_line_of_json(root: Path) -> None:
    state = root / "state"
    state.mkdir()
    (state / "tamis.db").write_bytes(b"this is no database" * 100)
    daemon = Daemon(root, "--root", str(root), state=state)
    nonsense = {"experimental": {"tamis": {"approval": 7, "output": "maybe"}}, "window": [], "general": 1}
    daemon.write(
        b'{"jsonrpc": "2.0", "id": 1, "method": 5}\n',
        b"{not json}\n",
        b'{"jsonrpc": "2.0", "id": 90, "method": "x", "params": {"a": "\\ud800"}}\n',
        begin(2, capabilities=nonsense, workspaceFolders=7, initializationOptions=[1]),
        call("test:noisy", 3),
        {**call("test:echo", 4), "params": {"toolId": "test:echo", "args": {"text": "x"}, "idempotencyKey": "k"}},
        b'{"jsonrpc": "2.0", "id": "tamis-1", "result": 1}\n[]\n[1]\n',
        rpc("$/cancelRequest", {"id": []}),
    )  # fmt: skip
    assert daemon.answer(3)["result"]["output"] == 1
    assert daemon.answer(4)["result"]["status"] == "success"
    messages = [one["message"] for one in daemon.end()]
    for wanted in (
        "lone surrogate",
        "half a line, and its end\nand one more",
        "printed",
        "this is old",
        "logged",
        "ZeroDivisionError",
        "nobody asked for this",
        "the audit log",
        "was moved to",
        "call.ended",
    ):
        assert any(wanted in message for message in messages), (wanted, messages)


def test_with_settings_that_cannot_be_used_the_log_is_what_they_say_as_far_as_they_do(root: Path) -> None:
    with (root / "tamis.toml").open("a") as file:
        file.write('[sandbox]\nwallMs = "long"\n[nonsense]\na = 1\n')
    daemon = Daemon(root, "--root", str(root))
    daemon.write(begin(initializationOptions={"settings": {"logLevel": 9}}), call("test:echo", 2))
    daemon.answer(2)
    ended = [one for one in daemon.end() if one["message"] == "call.ended"]
    assert ended[0]["status"] == "blocked"
    assert "wallMs" in ended[0]["text"]


def test_frames_that_cannot_be_read_leave_lines_of_json_too(root: Path) -> None:
    daemon = Daemon(root, "--root", str(root))
    request = json.dumps(rpc("tool/list", {"a": "?"})).encode().replace(b"?", b"\\ud800")
    daemon.write(b"Content-Length: nonsense\r\n\r\n", b"Content-Length: %d\r\n\r\n" % len(request), request)
    daemon.write(b"Content-Length: 9999\r\n\r\nshort")
    assert any("lone surrogate" in one["message"] for one in daemon.end())


def test_a_daemon_without_initialize_goes_by_the_file_of_its_folder(root: Path) -> None:
    daemon = Daemon(root, cwd=root)
    daemon.write(b'{"jsonrpc": "2.0", "id": 1, "method": "server/health", "params": {"a": "\\ud800"}}\n')
    daemon.answer(1)
    lines = daemon.end()
    assert "TAMIS_TRUST: every folder is trusted here" in lines[0]["message"]  # the first line, in the file's form too
    assert "lone surrogate" in lines[1]["message"]


def test_the_settings_of_the_host_count_from_initialize_on(root: Path, untrusted: None) -> None:
    (root / "tamis.toml").unlink()
    daemon = Daemon(root, "--root", str(root))
    daemon.write(begin(initializationOptions={"settings": {"logFormat": "json"}}))
    daemon.answer(1)
    daemon.write(b'{"jsonrpc": "2.0", "id": 2, "method": "tool/list", "params": {"a": "\\ud800"}}\n')
    daemon.answer(2)
    assert "lone surrogate" in daemon.end()[0]["message"]


def test_the_form_follows_the_file_while_the_daemon_runs(root: Path) -> None:
    (root / "tamis.toml").write_text('handlers = ["noisy"]\n')
    daemon = Daemon(root, "--root", str(root))
    daemon.write(begin(), call("test:noisy", 9))
    daemon.answer(9)
    until(lambda: "printed" in daemon.said.read_text())  # it comes by a pipe of its own
    (root / "tamis.toml").write_text('handlers = ["noisy"]\nlogFormat = "json"\n')
    daemon.write(rpc("registry/reload", {}, 2))
    daemon.answer(2)
    daemon.write(call("test:noisy", 3))
    daemon.answer(3)
    daemon.stdin.close()
    daemon.process.wait()
    daemon.stdout.close()
    lines = daemon.said.read_text().splitlines()
    for word in ("printed", "call.ended"):
        before, after = (line for line in lines if word in line)
        assert not before.startswith("{")
        assert json.loads(after)["message"].endswith(word)


def test_a_host_that_is_not_there_or_dies_is_said_in_json(root: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    daemon = Daemon(root, "--root", str(root))
    daemon.write(begin(processId=gone.pid))
    daemon.process.wait()
    assert any("there is no process" in one["message"] for one in daemon.lines())
    daemon.stdin.close()
    daemon.stdout.close()

    daemon = Daemon(root, "--root", str(root))
    daemon.write(begin(), call("test:noisy", 2))
    daemon.answer(2)
    daemon.stdout.close()
    daemon.write(*(call("test:echo", number) for number in range(3, 9)))
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait()
    assert daemon.lines()
    daemon.stdin.close()


def test_a_request_that_fails_inside_has_its_trace_in_the_record(
    capfd: pytest.CaptureFixture[str],
) -> None:
    try:
        raise KeyError("missing")
    except KeyError as error:
        Log("error", "json").failure("the request 'x' failed", error)
        Log("error").failure("the request 'x' failed", error)
    first, *rest = capfd.readouterr().err.splitlines()
    told = json.loads(first)
    assert (told["level"], told["message"]) == ("error", "the request 'x' failed: KeyError('missing')")
    assert "Traceback" in told["trace"] and rest[0].startswith("Traceback")


def test_a_text_without_an_end_is_told_at_the_close_or_when_it_is_long(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+") as under:
        told: list[str] = []
        log = Log("warning", "json")
        log.write = lambda level, text: told.append(text)  # type: ignore[method-assign]
        stray = StrayText(under, lambda: log)
        stray.write("x" * 70_000)
        stray.write("end")
        assert [len(text) for text in told] == [70_000]
        stray.close()
        assert told[1:] == ["end"]
        log.form = "text"
        StrayText(under, lambda: log).write("as it is")
        under.seek(0)
        assert under.read() == "as it is"
