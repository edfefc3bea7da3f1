"""A daemon that tells a URL of the ends of its tasks, whatever is behind that URL (D92): slow, silent, deaf, endless, redirecting, broken."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.server.runtime.execution.tasks import callback
from tamis.server.runtime.store.folders import state_folder
from tests.rpc.inside import InsideClient
from tests.sample_tools import make_tool
from tests.waiting import until

BIG = "import json\nprint(json.dumps('x' * 6_000_000))"
OK = b"HTTP/1.1 204 No Content\r\n\r\n"
ERROR = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"

LONG_S = 600.0
Answer = Callable[["Target", socket.socket], None]


class Target:
    """A loopback listener. Each connection's post is read, unless the answer in turn is ``deaf``; the last answer is for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.posts: list[bytes] = []
        self.came = 0
        self.released = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.came += 1
            threading.Thread(target=self._answer, args=(answer, connection), daemon=True).start()

    def _answer(self, answer: Answer, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if answer is not deaf:
                self.posts.append(read_post(connection))
            answer(self, connection)

    def close(self) -> None:
        """Lets go of everybody."""
        self.released.set()
        self._listening.close()


def read_post(connection: socket.socket) -> bytes:
    stream = connection.makefile("rb")
    length = 0
    while (line := stream.readline()).strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return stream.read(length)


def says(content: bytes) -> Answer:
    return lambda _target, connection: connection.sendall(content)


def slow(target: Target, connection: socket.socket) -> None:
    """Says that an answer will come, and gives it in pieces."""
    for piece in (
        b"HTTP/1.1 102 Processing\r\n\r\n",
        b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
        b"HTTP/1",
        b".1 200 OK\r\n\r\n",
    ):
        connection.sendall(piece)
        time.sleep(0.05)


def silent(target: Target, connection: socket.socket) -> None:
    if target.answers[0] is not silent:
        callback.ATTEMPT_S = LONG_S  # the attempt that is answered has all the time
    target.released.wait()


deaf = lambda target, connection: target.released.wait()  # noqa: E731 (a mark, told apart by identity)


def closes(target: Target, connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def endless(target: Target, connection: socket.socket) -> None:
    """A good status, and a body that never ends."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not target.released.is_set():
        connection.sendall(b"x" * 65_536)


def endless_line(target: Target, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 ")
    while not target.released.is_set():
        connection.sendall(b"x" * 65_536)


def endless_promises(target: Target, connection: socket.socket) -> None:
    while not target.released.is_set():
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


class Daemon:
    """A daemon that calls a target back."""

    def __init__(self, root: Path, target: Target, **policy: Any) -> None:
        # short where the end of the time is what is looked at
        callback.ATTEMPT_S = 1.0 if target.answers[0] in (silent, deaf) else LONG_S
        opened = {"allowHosts": [f"127.0.0.1:{target.port}"], "allowCidrs": ["127.0.0.1/32"]} | policy
        url = f"http://127.0.0.1:{target.port}/done"
        settings = json.dumps({"tasks": {"callbackUrl": url}, "policy": opened})
        self.client = InsideClient(root)
        self.client.request(
            "initialize", {"processId": None, "initializationOptions": {"settings": json.loads(settings)}}
        )

    def task(self, tool: str = "late") -> str:
        """Runs a task to its end."""
        task_id: str = self.client.request("tool/execute", {"toolId": tool, "args": {}})["taskId"]
        until(lambda: self.client.request("task/get", {"taskId": task_id})["status"] != "working")
        return task_id


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(callback, "ATTEMPT_S", LONG_S)
    monkeypatch.setattr(callback.call_back, "__defaults__", ((0.01, 0.01),))
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    make_tool(tmp_path, "late", execution={"mode": "async"})
    make_tool(tmp_path, "big", BIG, execution={"mode": "async"})
    (tmp_path / "tamis.toml").write_text("[sandbox]\nstdoutBytes = 8000000\n")
    return tmp_path


def told_back(task_id: str) -> dict[str, Any]:
    """What the audit log says of a task's call-back, once it does."""

    def look() -> dict[str, Any] | None:
        events = [json.loads(line) for line in (state_folder() / "audit.jsonl").read_text().splitlines()]
        mine = [event for event in events if event["event"] == "task.calledBack" and event["taskId"] == task_id]
        return mine[0] if mine else None

    return until(look)


def is_left(target: Target) -> bool:
    """Whether the daemon has closed all its connections to a target. One that is closed has no inode any more."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return not [row for row in rows if row[2].endswith(f":{target.port:04X}") and row[9] != "0"]


@contextlib.contextmanager
def served(root: Path, *answers: Answer) -> Iterator[tuple[Daemon, Target]]:
    target = Target(*answers)
    daemon = Daemon(root, target)
    try:
        with daemon.client:
            yield daemon, target
    finally:
        target.close()


REDIRECT = b"HTTP/1.1 307 Temporary\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("answers", "came", "problem"),
    [
        pytest.param([slow], 1, "", id="slow"),
        pytest.param([silent], 3, "no answer within 1 s", id="silent"),
        pytest.param([silent, says(OK)], 2, "", id="silent once"),
        pytest.param([closes], 3, "it closed the connection before it answered", id="closes"),
        pytest.param([closes, says(OK)], 2, "", id="closes once"),
        pytest.param([says(ERROR), says(OK)], 2, "", id="500 then 200"),
        pytest.param([says(ERROR)], 3, "answered 500", id="500"),
        pytest.param([says(REDIRECT % b"/done")], 1, "answered 307", id="a circle"),
        pytest.param([says(REDIRECT % b"http://169.254.169.254/latest")], 1, "answered 307", id="another host"),
        pytest.param([endless], 1, "", id="an endless body"),
        pytest.param([endless_line], 3, "did not take it", id="an endless line"),
        pytest.param([endless_promises], 3, "the answer has no end", id="endless promises"),
        pytest.param([says(b"\x00\xff" * 9_000)], 3, "did not take it", id="no HTTP"),
        pytest.param([says(b"HTTP/1.1 \xb2\xb2 OK\r\n\r\n")], 3, "the answer is not HTTP", id="no number"),
    ],
)
def test_whatever_answers_the_task_stands_and_the_audit_says_what_happened(
    root: Path, answers: list[Answer], came: int, problem: str
) -> None:  # D92
    with served(root, *answers) as (daemon, target):
        task_id = daemon.task()
        assert daemon.client.request("server/health")["status"] == "ok"
        event = told_back(task_id)
        assert problem in event.get("problem", "")
        assert bool(problem) == bool(event.get("problem"))
        # an attempt may be over before it has connected, where the machine is busy
        assert target.came == came or (answers == [silent] and 0 < target.came < came)
        assert all(json.loads(post)["taskId"] == task_id for post in target.posts)
        assert daemon.client.request("task/get", {"taskId": task_id})["status"] == "completed"
        assert daemon.client.request("task/result", {"taskId": task_id})["status"] == "success"
        until(lambda: is_left(target))


def test_a_target_that_does_not_read_costs_no_descriptor_and_holds_back_nothing(root: Path) -> None:  # D92
    with served(root, deaf) as (daemon, target):
        task_id = daemon.task("big")
        assert daemon.client.request("tool/execute", {"toolId": "late", "args": {}})["status"] == "accepted"
        assert "no answer within 1 s" in told_back(task_id)["problem"]
        assert target.came
        until(lambda: daemon.client.request("task/list")["tasks"][0]["status"] != "working")
        told_back(daemon.client.request("task/list")["tasks"][0]["taskId"])
        # the target keeps its ends open: only who called can have closed them
        until(lambda: is_left(target))


def test_a_redirect_to_another_open_port_is_not_followed_either(root: Path) -> None:  # D34
    other = Target(says(OK))
    target = Target(says(REDIRECT % f"http://127.0.0.1:{other.port}/".encode()))
    daemon = Daemon(root, target, allowHosts=["127.0.0.1:*"])
    with daemon.client:
        assert "answered 307" in told_back(daemon.task())["problem"]
    assert (target.came, other.came) == (1, 0)
    target.close()
    other.close()


def test_a_daemon_ends_while_a_target_is_silent(root: Path) -> None:  # D92
    with served(root, silent) as (daemon, target):
        task_id = daemon.task()
        until(lambda: target.came)
    assert daemon.client.process.returncode == 0
    assert "the daemon that ran it was ended" in told_back(task_id)["problem"]
