"""Asynchronous tools: their calls are tasks that are durable, can be asked for and cancelled, and are never lost (T14 to T16, A52, D92)."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, Task, TaskProgress
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.tasks import rows
from tamis.server.runtime.execution.tasks import tasks as tasks_module
from tamis.server.runtime.execution.tasks.callback import call_back, read_url
from tamis.server.runtime.execution.tasks.tasks import ProgressReader, read_progress
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.config import Policy
from tamis.server.runtime.store.folders import state_folder
from tamis.server.runtime.store.store import Store
from tests.sample_tools import ECHO, make_tool, tam, vcp
from tests.sandbox.network_servers import NAME, certificate
from tests.waiting import arrives

T = TypeVar("T")
ASYNC = {"mode": "async"}
STEPS = """
import json, sys, time
print('[progress] 1/2 half', file=sys.stderr, flush=True)
time.sleep(0.9)
print('[progress] 100% done', file=sys.stderr, flush=True)
print(json.dumps(json.load(sys.stdin)))
"""


class FakeHost:
    """Takes what it is told."""

    def __init__(self) -> None:
        self.told: list[Task] = []

    async def ask(self, method: str, params: object) -> Any:
        raise AssertionError(method)

    def tell(self, method: str, params: object) -> None:
        if method == "task/changed":
            assert isinstance(params, Task)
            self.told.append(msgspec.convert(msgspec.to_builtins(params), Task))


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "late", execution=ASYNC)
    make_tool(tmp_path, "steps", STEPS, execution=ASYNC)
    make_tool(tmp_path, "hang", "import time\ntime.sleep(10**6)", execution=ASYNC)
    make_tool(tmp_path, "bad", "raise SystemExit('no')", execution=ASYNC)
    make_tool(tmp_path, "now", ECHO)
    return tmp_path


def in_daemon(
    root: Path, work: Callable[[Runtime], Awaitable[T]], settings: dict[str, Any] | None = None
) -> tuple[T, FakeHost]:
    """What ``work`` gives with a runtime that stays, and what its host was told."""
    host = FakeHost()

    async def run() -> T:
        runtime = Runtime(root, settings)
        runtime.parts.stays, runtime.parts.host = True, host
        try:
            return await work(runtime)
        finally:
            await runtime.close()

    return asyncio.run(run()), host


async def call(
    runtime: Runtime, name: str, *, session: str = "", key: str = "", wait: bool = False, **args: Any
) -> ExecutionResult:
    request = CallRequest(call_id=f"c-{name}", name=name, args=args, idempotency_key=key, wait=wait)
    return await execute(request, runtime.call_context(caller=Caller("rpc", session)))


async def ended(runtime: Runtime, task_id: str) -> tuple[Task, ExecutionResult]:
    result = await runtime.parts.tasks.result(task_id, 600_000)
    task = await runtime.parts.tasks.get(task_id)
    assert task is not None
    assert result is not None
    return task, result


def test_an_asynchronous_tool_is_accepted_and_goes_on(root: Path) -> None:  # T15, D92, A52
    async def work(runtime: Runtime) -> None:
        accepted = await call(runtime, "late", text="x")
        assert (accepted.status, accepted.attempts, accepted.output) == ("accepted", 0, UNSET)
        assert isinstance(accepted.task_id, str)
        # the model learns how to ask
        assert accepted.task_id in accepted.observation
        assert "system:task_status" in accepted.observation
        task, result = await ended(runtime, accepted.task_id)
        assert (task.status, task.tool_id, task.call_id) == ("completed", "late", "c-late")
        assert (result.status, result.output, result.attempts) == ("success", {"text": "x"}, 1)
        assert (result.task_id, task.result) == (accepted.task_id, result)
        assert result.observation.startswith("Observation: Tool late executed successfully.")

    _, host = in_daemon(root, work)
    assert [task.status for task in host.told] == ["working", "completed"]  # T16
    assert host.told[-1].result is not UNSET


def test_a_synchronous_tool_is_answered_when_it_has_ended(root: Path) -> None:  # T14, T15
    result, host = in_daemon(root, lambda runtime: call(runtime, "now", text="x"))
    assert (result.status, result.output, host.told) == ("success", {"text": "x"}, [])


def test_a_process_that_does_not_stay_waits_for_the_tool(root: Path) -> None:  # `tamis run`
    runtime = Runtime(root)
    result = asyncio.run(call(runtime, "late", text="x"))
    assert (result.status, result.output, result.task_id) == ("success", {"text": "x"}, UNSET)
    result, _ = in_daemon(root, lambda runtime: call(runtime, "late", text="x", wait=True))
    assert (result.status, result.output) == ("success", {"text": "x"})


def test_the_task_is_durable_before_its_id_is_known(root: Path) -> None:  # interface, Running
    async def work(runtime: Runtime) -> None:
        accepted = await call(runtime, "hang")
        other = sqlite3.connect(state_folder() / "tamis.db")
        found = other.execute("SELECT status FROM tasks WHERE task_id = ?", (accepted.task_id,)).fetchall()
        other.close()
        assert found == [("working",)]

    in_daemon(root, work)


def test_progress_is_told_and_kept(root: Path) -> None:  # A52
    async def work(runtime: Runtime) -> Task:
        accepted = await call(runtime, "steps", text="x")
        assert isinstance(accepted.task_id, str)
        task, result = await ended(runtime, accepted.task_id)
        assert "stderr: [progress] 1/2 half" in result.logs
        return task

    task, host = in_daemon(root, work)
    assert task.progress == TaskProgress(progress=100.0, total=100.0, message="done")
    seen = [task.progress for task in host.told if task.status == "working" and task.progress is not UNSET]
    assert TaskProgress(progress=1.0, total=2.0, message="half") in seen


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[progress] 40% reading files", TaskProgress(progress=40, total=100, message="reading files")),
        ("[progress] 3/10", TaskProgress(progress=3, total=10)),
        ("[progress] 2.5/4.5 GiB", TaskProgress(progress=2.5, total=4.5, message="GiB")),
        ("[progress] almost there\r", TaskProgress(message="almost there")),
        ("[progress]", TaskProgress()),
        ("[progress] \x1b[31mred\x1b[0m", TaskProgress(message="red")),
        ("progress 40%", None),
        ("  [progress] 40%", None),
        ("[progress]40%", None),
    ],
)
def test_lines_of_progress(line: str, said: TaskProgress | None) -> None:
    assert read_progress(line) == said


def test_progress_is_read_whatever_the_pieces() -> None:
    said: list[TaskProgress] = []
    reader = ProgressReader(said.append)
    text = "log\n[progress] 1%\n" + "x" * 5_000 + "[progress] 2%\n[progress] 3%\n[progress] 4"
    for start in range(0, len(text), 7):
        reader.piece(text[start : start + 7])
    assert [one.progress for one in said] == [1.0, 3.0]


@given(
    st.lists(st.text(st.sampled_from("[]progress 0123456789%/.\n\x1bé") | st.characters(), max_size=40), max_size=12)
)
def test_no_output_of_a_tool_disturbs_the_reading_of_progress(pieces: list[str]) -> None:
    whole, split = list[TaskProgress](), list[TaskProgress]()
    ProgressReader(whole.append).piece("".join(pieces))
    reader = ProgressReader(split.append)
    for piece in pieces:
        reader.piece(piece)
    assert (
        whole
        == split
        == [said for line in "".join(pieces).split("\n")[:-1] if (said := read_progress(line)) is not None]
    )


def test_a_tool_that_fails_is_a_failed_task_with_its_error(root: Path) -> None:
    async def work(runtime: Runtime) -> None:
        accepted = await call(runtime, "bad")
        assert isinstance(accepted.task_id, str)
        task, result = await ended(runtime, accepted.task_id)
        assert (task.status, result.status, task.result) == ("failed", "error", UNSET)
        assert task.error is not UNSET
        assert task.error.type == "ScriptError"
        assert task.error == result.error

    in_daemon(root, work)


def test_a_call_that_is_refused_is_no_task(root: Path) -> None:
    async def work(runtime: Runtime) -> None:
        assert (await call(runtime, "late", nope=1)).status == "error"
        assert (await call(runtime, "nothing")).status == "error"
        assert (await runtime.parts.tasks.page()).tasks == []

    in_daemon(root, work)


def test_a_task_is_cancelled_and_stays_so(root: Path) -> None:  # V52
    async def work(runtime: Runtime) -> None:
        accepted = await call(runtime, "hang")
        assert isinstance(accepted.task_id, str)
        before = await runtime.parts.tasks.result(accepted.task_id)
        assert before is not None
        assert (before.status, before.task_id) == ("accepted", accepted.task_id)
        cancelled = await runtime.parts.tasks.cancel(accepted.task_id)
        assert cancelled is not None
        assert (cancelled.status, cancelled.result, cancelled.error) == ("cancelled", UNSET, UNSET)
        _, result = await ended(runtime, accepted.task_id)
        assert result.status == "cancelled"
        again = await runtime.parts.tasks.cancel(accepted.task_id)
        assert again == cancelled

    in_daemon(root, work)


def test_a_task_that_has_ended_cannot_be_cancelled(root: Path) -> None:
    async def work(runtime: Runtime) -> None:
        accepted = await call(runtime, "late")
        assert isinstance(accepted.task_id, str)
        before, _ = await ended(runtime, accepted.task_id)
        assert await runtime.parts.tasks.cancel(accepted.task_id) == before

    in_daemon(root, work)


def test_the_tasks_of_a_session_are_cancelled_together(root: Path) -> None:  # V52
    async def work(runtime: Runtime) -> None:
        own = [await call(runtime, "hang", session="s"), await call(runtime, "hang", session="s")]
        other = await call(runtime, "hang", session="t")
        found = await runtime.parts.tasks.cancel_session("s")
        assert found == [one.task_id for one in own]
        for one in own:
            assert isinstance(one.task_id, str)
            assert (await ended(runtime, one.task_id))[0].status == "cancelled"
        assert isinstance(other.task_id, str)
        task = await runtime.parts.tasks.get(other.task_id)
        assert task is not None
        assert (task.status, task.session_id) == ("working", "t")

    in_daemon(root, work)


def test_no_such_task(root: Path) -> None:
    async def work(runtime: Runtime) -> None:
        tasks = runtime.parts.tasks
        for name in ("", "nope", "task-" + "0" * 20, "'; DROP TABLE tasks; --", "\ud800", "x" * 100_000):
            assert await tasks.get(name) is None
            assert await tasks.result(name, 5) is None
            assert await tasks.cancel(name) is None
        assert await tasks.cancel_session("\ud800") == []

    in_daemon(root, work)


def test_tasks_are_listed_newest_first_and_in_pages(root: Path) -> None:
    async def work(runtime: Runtime) -> None:
        made = [(await call(runtime, "late")).task_id for _ in range(5)]
        for one in made:
            assert isinstance(one, str)
            await ended(runtime, one)
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = await runtime.parts.tasks.page(cursor, 2)
            seen += [task.task_id for task in page.tasks]
            assert all(task.result is UNSET and task.status == "completed" for task in page.tasks)
            cursor = None if page.next_cursor is UNSET else page.next_cursor
        assert (seen, cursor) == (made[::-1], None)
        for nonsense in ("x", "-1", "9" * 40, ""):
            assert len((await runtime.parts.tasks.page(nonsense)).tasks) in (0, 5)

    in_daemon(root, work)


def test_a_root_does_not_reach_the_tasks_of_another(root: Path, tmp_path: Path) -> None:
    make_tool(tmp_path / "other", "late", execution=ASYNC)

    async def work(runtime: Runtime) -> None:
        accepted = await call(runtime, "hang", session="s")
        assert isinstance(accepted.task_id, str)
        other = Runtime(tmp_path / "other").parts.tasks
        assert (await other.page()).tasks == []
        assert await other.cancel(accepted.task_id) is None
        assert await other.cancel_session("s") == []
        await asyncio.sleep(0.6)
        task = await runtime.parts.tasks.get(accepted.task_id)
        assert task is not None
        assert task.status == "working"

    in_daemon(root, work)


def test_ids_of_every_kind_can_be_stored(root: Path) -> None:
    async def work(runtime: Runtime) -> None:
        for name in ("\ud800", "\x00", "任务", "'; --", "x" * 5_000):
            request = CallRequest(call_id=name, name="late", idempotency_key=name)
            accepted = await execute(request, runtime.call_context(caller=Caller("rpc", name)))
            assert accepted.status == "accepted"
            assert isinstance(accepted.task_id, str)
            assert (await ended(runtime, accepted.task_id))[0].status == "completed"

    in_daemon(root, work)


def test_tasks_are_forgotten_by_age_and_by_number(root: Path) -> None:  # expiry
    async def work(runtime: Runtime) -> list[str]:
        for _ in range(4):
            accepted = await call(runtime, "late")
            assert isinstance(accepted.task_id, str)
            await ended(runtime, accepted.task_id)
        await call(runtime, "hang")
        return [task.tool_id for task in (await runtime.parts.tasks.page()).tasks]

    assert in_daemon(root, work, {"tasks": {"keep": 2}})[0] == ["hang", "late", "late"]

    async def later(runtime: Runtime) -> list[str]:
        await asyncio.sleep(0.01)
        return [task.tool_id for task in (await runtime.parts.tasks.page()).tasks]

    assert in_daemon(root, later, {"tasks": {"keepSeconds": 0}})[0] == []


def test_tasks_are_forgotten_when_their_results_are_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_BYTES", 5_000)

    async def work(runtime: Runtime) -> list[str]:
        for number in range(4):
            accepted = await call(runtime, "late", text=f"{number}{'x' * 500}")
            assert isinstance(accepted.task_id, str)
            await ended(runtime, accepted.task_id)
        await call(runtime, "hang")
        found = [await ended(runtime, task.task_id) for task in (await runtime.parts.tasks.page()).tasks[1:]]
        return [json.loads(msgspec.json.encode(result.output))["text"][0] for _, result in found]

    kept, _ = in_daemon(root, work)
    assert 0 < len(kept) < 4
    assert kept == ["3", "2", "1"][: len(kept)]


def test_a_call_back_that_nobody_takes_keeps_no_task_from_beginning(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks_module, "MAX_UNFINISHED", 1)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        settings = {
            "tasks": {"callbackUrl": f"http://127.0.0.1:{port}/"},
            "policy": {"allowHosts": [f"127.0.0.1:{port}"], "allowCidrs": ["127.0.0.1/32"]},
        }

        async def work(runtime: Runtime) -> list[str]:
            found: list[str] = []
            for _ in range(2):
                accepted = await call(runtime, "late")
                found.append(accepted.status)
                await ended(runtime, str(accepted.task_id))
                await asyncio.sleep(0.05)
            return found

        assert in_daemon(root, work, settings)[0] == ["accepted", "accepted"]


def test_a_task_whose_call_back_is_broken_off_is_not_lost(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        settings = {
            "tasks": {"callbackUrl": f"http://127.0.0.1:{port}/"},
            "policy": {"allowHosts": [f"127.0.0.1:{port}"], "allowCidrs": ["127.0.0.1/32"]},
            "audit": {"enabled": True},
        }

        async def work(runtime: Runtime) -> None:
            accepted = await call(runtime, "late")
            assert isinstance(accepted.task_id, str)
            await ended(runtime, accepted.task_id)
            await asyncio.to_thread(deaf.accept)

        in_daemon(root, work, settings)
    events = [json.loads(line) for line in (state_folder() / "audit.jsonl").read_text().splitlines()]
    assert "task.lost" not in [event["event"] for event in events]
    assert [event["problem"] for event in events if event["event"] == "task.calledBack"] == [rows.ENDED]


def test_a_runtime_that_is_closed_leaves_no_task_working(root: Path) -> None:
    accepted, _ = in_daemon(root, lambda runtime: call(runtime, "hang"))

    async def later(runtime: Runtime) -> tuple[Task | None, ExecutionResult | None]:
        assert isinstance(accepted.task_id, str)
        return await runtime.parts.tasks.get(accepted.task_id), await runtime.parts.tasks.result(accepted.task_id)

    (task, result), _ = in_daemon(root, later)
    assert task is not None
    assert result is not None
    assert (task.status, result.status) == ("failed", "error")
    assert task.error is not UNSET
    assert task.error.details is not UNSET
    assert task.error.details.code == "taskLost"
    assert "call the tool again" in task.error.message


def logged(task_id: object) -> list[tuple[str, str]]:
    """What the audit log has of a task from its beginning on: events and how they ended."""
    lines = [json.loads(line) for line in (state_folder() / "audit.jsonl").read_text().splitlines()]
    calls = {one["run"] for one in lines if one.get("taskId") == task_id}
    return [(one["event"], one.get("status", "")) for one in lines if one["run"] in calls and "task" in one["event"]]


def test_the_audit_log_says_of_a_task_that_was_lost_with_its_daemon_what_the_store_says(root: Path) -> None:  # D27
    accepted, _ = in_daemon(root, lambda runtime: call(runtime, "hang"))
    assert logged(accepted.task_id) == [("task.started", ""), ("task.ended", "error")]


def test_the_audit_log_has_an_end_for_a_task_that_was_cancelled_before_its_turn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # D27
    monkeypatch.setattr(tasks_module, "AT_ONCE", 1)

    async def work(runtime: Runtime) -> object:
        await call(runtime, "hang")
        waiting = (await call(runtime, "hang")).task_id
        assert isinstance(waiting, str)
        await runtime.parts.tasks.cancel(waiting)
        assert (await ended(runtime, waiting))[0].status == "cancelled"
        return waiting

    task_id, _ = in_daemon(root, work)
    assert logged(task_id) == [("task.started", ""), ("task.ended", "cancelled")]


def test_another_runtime_on_the_store_sees_a_task_and_cancels_it_but_does_not_take_it(root: Path) -> None:
    async def work(runtime: Runtime) -> None:
        other = Runtime(root)
        accepted = await call(runtime, "hang")
        assert isinstance(accepted.task_id, str)
        seen = await other.parts.tasks.get(accepted.task_id)
        assert seen is not None
        assert seen.status == "working"
        await other.close()
        own = await runtime.parts.tasks.get(accepted.task_id)
        assert own is not None
        assert own.status == "working"
        assert await other.parts.tasks.cancel(accepted.task_id) is not None
        assert (await ended(other, accepted.task_id))[0].status == "cancelled"
        await other.close()

    in_daemon(root, work)


def test_a_task_ends_by_the_operators_own_limit_for_tasks(root: Path) -> None:  # D15, V13
    async def work(runtime: Runtime) -> ExecutionResult:
        accepted = await call(runtime, "hang")
        assert isinstance(accepted.task_id, str)
        return (await ended(runtime, accepted.task_id))[1]

    result, _ = in_daemon(root, work, {"tasks": {"wallMs": 200}, "sandbox": {"wallMs": 60_000}})
    assert result.status == "timeout"

    async def longer(runtime: Runtime) -> ExecutionResult:
        accepted = await call(runtime, "steps")
        assert isinstance(accepted.task_id, str)
        return (await ended(runtime, accepted.task_id))[1]

    # a task may run longer than other calls
    assert in_daemon(root, longer, {"sandbox": {"wallMs": 300}})[0].status == "success"


def test_the_number_of_tasks_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # D84
    monkeypatch.setattr(tasks_module, "MAX_UNFINISHED", 3)

    async def work(runtime: Runtime) -> list[ExecutionResult]:
        return list(await asyncio.gather(*(call(runtime, "hang") for _ in range(5))))

    results, _ = in_daemon(root, work)
    assert [result.status for result in results] == ["accepted"] * 3 + ["error"] * 2
    assert results[-1].error is not UNSET
    assert results[-1].error.type == "RateLimited"


def test_a_task_that_waits_for_its_turn_can_be_cancelled(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "AT_ONCE", 1)

    async def work(runtime: Runtime) -> None:
        await call(runtime, "hang")
        waiting = await call(runtime, "hang")
        assert isinstance(waiting.task_id, str)
        await runtime.parts.tasks.cancel(waiting.task_id)
        task, result = await ended(runtime, waiting.task_id)
        assert (task.status, result.attempts) == ("cancelled", 0)

    in_daemon(root, work)


def test_a_key_gives_the_same_task_again(root: Path) -> None:  # ruling 26
    async def work(runtime: Runtime) -> tuple[ExecutionResult, ExecutionResult]:
        return await call(runtime, "late", key="k"), await call(runtime, "late", key="k")

    (first, second), _ = in_daemon(root, work)
    assert (second.status, second.task_id, second.replayed) == ("accepted", first.task_id, True)


def test_a_text_goes_on_behind_an_accepted_step(root: Path) -> None:  # seed 002: asynchronous steps
    text = tam({"command": "late", "text": "a"}, {"command": "now", "text": "b"}) + "\n" + vcp("late", text="c")

    async def work(runtime: Runtime) -> list[ExecutionResult]:
        return (await execute_text(runtime.read(text), runtime.call_context(), TextOptions())).results

    results, _ = in_daemon(root, work)
    assert [result.status for result in results] == ["accepted", "success", "accepted"]
    assert "(step 1)" in results[0].observation


def test_secrets_of_a_task_are_never_on_disk(root: Path) -> None:  # D83
    secret = "s3cret-pa55word"
    script = "import json, sys\nword = json.load(sys.stdin)['word']\nprint('[progress] 1% ' + word, file=sys.stderr, flush=True)\nprint(json.dumps(word))"
    make_tool(root, "login", script, properties={"word": {"type": "string", "x-secret": True}}, execution=ASYNC)

    async def work(runtime: Runtime) -> None:
        accepted = await call(runtime, "login", word=secret)
        assert isinstance(accepted.task_id, str)
        _, result = await ended(runtime, accepted.task_id)
        assert result.status == "success"
        assert secret not in msgspec.json.encode(result).decode()

    _, host = in_daemon(root, work)
    assert secret not in msgspec.json.encode(host.told).decode()
    for path in state_folder().iterdir():
        assert secret.encode() not in path.read_bytes(), path.name


def test_a_task_of_a_store_in_memory_is_run_all_the_same(root: Path) -> None:
    state_folder().write_text("a file where the folder should be")

    async def work(runtime: Runtime) -> Task:
        accepted = await call(runtime, "late", text="x")
        assert isinstance(accepted.task_id, str)
        return (await ended(runtime, accepted.task_id))[0]

    assert in_daemon(root, work)[0].status == "completed"


def test_the_row_of_a_task_that_was_lost_with_its_file_is_made_again(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store(tmp_path / "s")
        row = rows.TaskRow(task_id="t", owner="o", call_id="c", tool_id="x", version="1.0.0", session_id="")
        row.status, row.ended = "completed", time.time()
        assert await store.run(lambda db: rows.end(db, "r", row)) is True
        row.status = "failed"
        assert await store.run(lambda db: rows.end(db, "r", row)) is False
        found = await store.run(lambda db: rows.find(db, "r", "t"))
        assert found is not None
        assert found.status == "completed"
        await store.close()

    asyncio.run(run())


class _Taker(BaseHTTPRequestHandler):
    """Takes posts; answers with the statuses that the server was given, the last one for ever."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.taken.append((self.path, dict(self.headers), json.loads(body)))
        status = server.statuses.pop(0) if len(server.statuses) > 1 else server.statuses[0]
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Says nothing."""


@pytest.fixture
def listener() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), _Taker)
    server.taken, server.statuses = [], [204]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def opened(port: int, host: str = "127.0.0.1") -> Policy:
    return Policy(allow_hosts=(f"{host}:{port}",), allow_cidrs=("127.0.0.1/32",))


def a_task() -> Task:
    return Task(task_id="task-1", status="completed", created_at="", tool_id="late", call_id="c")


def post(listener: Any, policy: Policy, host: str = "127.0.0.1", path: str = "/done?a=b") -> str:
    url = f"http://{host}:{listener.server_port}{path}"
    return asyncio.run(call_back(url, a_task(), policy, pauses=(0.01, 0.01)))


def test_the_end_of_a_task_is_posted_where_the_operator_wants_it(root: Path, listener: Any) -> None:  # D92
    port = listener.server_port
    settings = {
        "tasks": {"callbackUrl": f"http://127.0.0.1:{port}/done"},
        "policy": {"allowHosts": [f"127.0.0.1:{port}"], "allowCidrs": ["127.0.0.1/32"]},
    }

    async def work(runtime: Runtime) -> str:
        accepted = await call(runtime, "late", text="x")
        assert isinstance(accepted.task_id, str)
        await arrives(lambda: listener.taken)
        return accepted.task_id

    task_id, _ = in_daemon(root, work, settings)
    ((path, headers, body),) = listener.taken
    assert (path, headers["Content-Type"], headers["Idempotency-Key"]) == ("/done", "application/json", task_id)
    assert (body["taskId"], body["status"], body["result"]["output"]) == (task_id, "completed", {"text": "x"})


def test_nothing_is_posted_without_the_setting_or_against_the_policy(root: Path, listener: Any) -> None:  # D92, D34
    port = listener.server_port
    url = {"callbackUrl": f"http://127.0.0.1:{port}/done"}
    for settings in (
        {},
        {"tasks": url},
        {"tasks": url, "policy": {"allowHosts": [f"127.0.0.1:{port}"]}},
        {"tasks": url, "policy": {"allowHosts": ["*:*"], "allowCidrs": ["10.0.0.0/8"]}},
        {"tasks": url, "policy": {"allowHosts": ["127.0.0.1"], "allowCidrs": ["127.0.0.1/32"]}},
    ):

        async def work(runtime: Runtime) -> None:
            accepted = await call(runtime, "late")
            assert isinstance(accepted.task_id, str)
            await ended(runtime, accepted.task_id)
            await asyncio.sleep(0.1)

        in_daemon(root, work, settings)
    assert listener.taken == []


def test_why_a_call_back_was_refused_is_said(listener: Any) -> None:
    port = listener.server_port
    assert "allowHosts has no entry" in post(listener, Policy())
    assert "policy.allowCidrs" in post(listener, Policy(allow_hosts=(f"127.0.0.1:{port}",)))
    # a name that leads to an address that is not open
    assert "allowCidrs" in post(listener, Policy(allow_hosts=(f"localhost:{port}",)), host="localhost")
    pinned = Policy(allow_hosts=(f"x.test:{port}",), pin={"x.test": "169.254.169.254"}, allow_cidrs=("127.0.0.1/32",))
    assert "not public" in post(listener, pinned, host="x.test")
    assert listener.taken == []
    assert (
        post(
            listener,
            Policy(allow_hosts=(f"x.test:{port}",), pin={"x.test": "127.0.0.1"}, allow_cidrs=("127.0.0.1/32",)),
            host="x.test",
        )
        == ""
    )


def test_a_call_back_is_tried_again_a_few_times(listener: Any) -> None:
    policy = opened(listener.server_port)
    listener.statuses = [503, 500, 200]
    assert post(listener, policy) == ""
    assert len(listener.taken) == 3
    listener.statuses = [503]
    assert "answered 503" in post(listener, policy)
    assert len(listener.taken) == 6
    listener.statuses = [404]
    assert "answered 404" in post(listener, policy)
    listener.statuses = [302]  # redirects are not followed
    assert "answered 302" in post(listener, policy)
    assert [path for path, _, _ in listener.taken[6:]] == ["/done?a=b", "/done?a=b"]


def test_a_call_back_over_tls_wants_a_certificate_that_is_known(
    listener: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, leaf = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf)
    listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
    port = listener.server_port
    pins = {NAME: "127.0.0.1", "other.test": "127.0.0.1"}
    policy = Policy(allow_hosts=(f"*:{port}",), pin=pins, allow_cidrs=("127.0.0.1/32",))

    def said(host: str) -> str:
        return asyncio.run(call_back(f"https://{host}:{port}/", a_task(), policy, pauses=()))

    assert "certificate verify failed" in said(NAME)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert "certificate verify failed" in said("other.test")
    assert listener.taken == []
    assert said(NAME) == ""
    assert len(listener.taken) == 1


def test_a_call_back_that_nobody_takes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.server.runtime.execution.tasks.callback.ATTEMPT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        said = asyncio.run(call_back(f"http://127.0.0.1:{port}/", a_task(), opened(port), pauses=(0.0,)))
        assert "did not take it" in said
    said = asyncio.run(call_back(f"http://127.0.0.1:{port}/", a_task(), opened(port), pauses=(0.0,)))
    assert "did not take it" in said


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://127.0.0.1/", "127.0.0.1/x", "http://", "http:///x", "http://u:p@127.0.0.1/", "http://127.0.0.1/a b"),
        *(
            "http://127.1/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1/\r\nX: y",
            "http://[::1/",
            "http://a*.x/",
            "\ud800",
        ),
        *("https://127.0.0.1:0/", "http://2130706433/", "http://0x7f.1/", "file:///etc/passwd"),
    ],
)
def test_urls_that_are_none_are_refused(url: str) -> None:
    policy = Policy(allow_hosts=("*:*", "127.0.0.1:*"), allow_cidrs=("127.0.0.1/32",))
    assert asyncio.run(call_back(url, a_task(), policy, pauses=())) != ""


def test_the_path_of_a_call_back_is_sent_as_ascii() -> None:
    target = read_url("https://hooks.example.com/täsks/x?q=ä&b=%20", Policy(allow_hosts=("*",)))
    assert (target.secure, target.host, target.port) == (True, "hooks.example.com", 443)
    assert target.path == "/t%C3%A4sks/x?q=%C3%A4&b=%20"


def test_how_often_tools_are_used_is_counted_over_restarts(root: Path) -> None:  # D87
    async def work(runtime: Runtime) -> list[tuple[str, int, int]]:
        await call(runtime, "now")
        await call(runtime, "now", nope=1)
        await call(runtime, "nothing")
        accepted = await call(runtime, "bad")
        assert isinstance(accepted.task_id, str)
        await ended(runtime, accepted.task_id)
        return [(one.tool_id, one.calls, one.failures) for one in await runtime.parts.usage.all()]

    assert in_daemon(root, work)[0] == [("bad", 1, 1), ("now", 2, 1)]
    assert in_daemon(root, work)[0] == [("bad", 2, 2), ("now", 4, 2)]

    async def unread(runtime: Runtime) -> None:
        await call(runtime, "now")

    in_daemon(root, unread)  # written at the end

    async def read(runtime: Runtime) -> list[int]:
        return [one.calls for one in await runtime.parts.usage.all()]

    assert in_daemon(root, read)[0] == [2, 5]


def test_a_command_that_runs_one_call_counts_nothing_and_opens_nothing(root: Path) -> None:
    runtime = Runtime(root)

    async def run() -> None:
        await call(runtime, "now")
        await runtime.close()

    asyncio.run(run())
    assert not list(state_folder().glob("*.db*"))
