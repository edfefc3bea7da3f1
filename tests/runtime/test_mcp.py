"""Tools of MCP servers that run in the sandbox (D89: a further type of handler)."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.sandbox.talk import TalkEnded
from tamis.server.runtime.calls.model import Answer, CallContext, Question
from tamis.server.runtime.handlers.mcp import servers as mcp_servers
from tamis.server.runtime.handlers.mcp.runner import read_result
from tamis.server.runtime.handlers.mcp.servers import Running
from tamis.server.runtime.handlers.mcp.session import McpError, McpSession, progress_words
from tamis.server.runtime.observe.tracing import read_trace
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tests.runtime.mcp_calls import call, make, run
from tests.waiting import arrives

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_tool_of_a_server_is_called_and_the_server_kept(tmp_path: Path) -> None:
    async def work(context: CallContext) -> list[ExecutionResult]:
        return [await call(context, "count") for _ in range(3)]

    results = run(make(tmp_path), work)
    assert [(result.status, result.output) for result in results] == [
        ("success", "1"),
        ("success", "2"),
        ("success", "3"),
    ]
    assert [result.sandbox.warm for result in results] == [False, True, True]
    assert "network" in results[0].sandbox.layers
    assert results[0].observation == "Observation: Tool mcp:count executed successfully. Result: 1"


def test_each_form_of_a_result_is_kept(tmp_path: Path) -> None:
    async def work(context: CallContext) -> list[ExecutionResult]:
        return [
            await call(context, "echo", text="你好 😋"),
            await call(context, "add", a=1, b=2),
            await call(context, "picture"),
            await call(context, "fail", text="工具"),
        ]

    echo, add, picture, failed = run(make(tmp_path), work)
    assert (echo.output, add.output) == ("你好 😋", {"sum": 3})
    assert [part["type"] for part in picture.output] == ["image", "text"]
    assert (failed.status, failed.error.type, failed.error.message) == ("error", "ServiceError", "it is broken: 工具")


@pytest.mark.parametrize("structured", [False, True])
def test_images_and_resources_reach_the_host_as_parts_and_the_model_by_name(tmp_path: Path, structured: bool) -> None:
    """F10: no base64 stands in an observation; nothing is lost to the host, also beside structured content."""
    data = "iVBORw0KGgo" * 2000 + "AA=="
    done = run(make(tmp_path), lambda context: call(context, "album", data=data, structured=structured))
    assert done.status == "success", done
    assert [part["type"] for part in done.parts] == ["image", "resource", "resource_link"]
    assert done.parts[0]["data"] == data
    assert data[:40] not in done.observation and "AAEC" not in done.observation
    assert len(done.observation) < 1_000
    if structured:
        assert done.output == {"n": 3}
        return
    assert [part["type"] for part in done.output] == ["text", "image", "resource", "resource_link"]
    assert '"mimeType": "image/png", "bytes": 16501' in done.observation
    assert '"uri": "file:///a.bin"' in done.observation and "file:///b.txt" in done.observation


def test_a_text_alone_has_no_parts(tmp_path: Path) -> None:
    """F10."""
    assert run(make(tmp_path), lambda context: call(context, "echo", text="a")).parts is UNSET


def test_a_number_that_json_does_not_have_is_no_output(tmp_path: Path) -> None:
    failed = run(make(tmp_path), lambda context: call(context, "nan"))
    assert (failed.status, failed.error.type) == ("error", "OutputFormatError")
    assert "is no JSON: NaN at /rates/0; give null or a text instead" in failed.error.message


def test_a_server_of_the_newest_revision_is_spoken_to_in_its_way(tmp_path: Path) -> None:
    assert run(make(tmp_path, "modern"), lambda context: call(context, "echo", text="x")).output == "x"


def test_a_server_that_knows_only_the_stateless_revision_is_reached(tmp_path: Path) -> None:
    """It answers `initialize` with -32601, as a method that it never heard of."""
    assert run(make(tmp_path, "modern-only"), lambda context: call(context, "echo", text="x")).output == "x"


def test_a_server_that_says_nothing_to_what_it_does_not_know_is_greeted_the_old_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_servers, "DISCOVER_S", 0.2)
    assert run(make(tmp_path, "ignores"), lambda context: call(context, "echo", text="x")).output == "x"


@pytest.mark.parametrize("how", ["modern-slow", "modern-only-slow", "slow"])
def test_a_server_that_is_slow_to_start_is_spoken_to_in_its_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """issue 18: whether it was greeted the old way meanwhile or not; many start by installing themselves."""
    monkeypatch.setattr(mcp_servers, "DISCOVER_S", 0.05)
    assert run(make(tmp_path, how), lambda context: call(context, "echo", text="x")).output == "x"


def test_a_server_that_names_its_revision_when_it_is_greeted_is_asked_again() -> None:
    """2026-07-28: an error -32022 says which revisions there are, also where `server/discover` was not answered."""
    asked: list[str] = []

    async def work() -> None:
        session = McpSession(_Scripted(asked), lambda _text: None)
        await session.start(discover_s=0.05)
        assert session.version == "2026-07-28"
        await session.close()

    asyncio.run(work())
    assert asked == ["server/discover", "initialize", "server/discover"]


class _Scripted:
    """A server that hears `server/discover` only when it has said what it speaks."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked
        self._lines = asyncio.Queue[bytes]()

    async def write(self, line: bytes) -> None:
        message = json.loads(line)
        self._asked.append(message["method"])
        told: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            told["error"] = {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}
        elif len(self._asked) > 1:
            told["result"] = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
        else:
            return
        await self._lines.put(json.dumps(told).encode())

    async def read(self) -> bytes | None:
        return await self._lines.get()


@pytest.mark.parametrize(
    ("how", "words"),
    [("dies", "exit code 2"), ("old", "'1999-01-01'"), ("nonsense", "no object"), ("mute", "startMs")],
)
def test_a_server_that_cannot_be_used_is_said_with_its_words(tmp_path: Path, how: str, words: str) -> None:
    result = run(make(tmp_path, how, more="startMs = 1500"), lambda context: call(context, "echo", text="x"))
    assert (result.status, result.error.type) == ("error", "ServiceError")
    assert words in result.error.message
    if how == "dies":
        assert result.error.details.text == "no key was given"


def test_pieces_of_standard_error_are_whole_lines_with_their_indentation(tmp_path: Path) -> None:
    result = run(make(tmp_path, "torn"), lambda context: call(context, "echo", text="x"))
    assert result.error.details.text == "Traceback:\n  File one\n    import x\nError: no x 一"


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_standard_error_is_the_same_however_it_is_cut(text: bytes, cuts: list[int]) -> None:
    whole, torn = Running("a"), Running("b")
    whole.hear(text)
    ends = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for begin, end in itertools.pairwise(ends):
        torn.hear(text[begin:end])
    whole.end_line()
    torn.end_line()
    assert whole.notes == torn.notes


def test_what_a_server_prints_beside_its_messages_is_a_log(tmp_path: Path) -> None:
    async def work(context: CallContext) -> tuple[ExecutionResult, ExecutionResult]:
        return await call(context, "echo", text="x"), await call(context, "slow")

    echo, slow = run(make(tmp_path, "chatty"), work)
    assert echo.output == "x"
    assert slow.logs == ["stderr: half way"]


def test_an_answer_that_comes_twice_or_to_no_one_is_passed_over(tmp_path: Path) -> None:
    async def work(context: CallContext) -> list[Any]:
        return [(await call(context, "echo", text=str(n))).output for n in range(3)]

    assert run(make(tmp_path, "twice"), work) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("bytes", "it is no UTF-8 at byte"),
        ("bytes behind", "it is no UTF-8 at byte"),
        ("deep", "nested too deeply"),
        ("json", "it is no JSON"),
        ("no id", "it is no JSON"),
        ("text id", "has the id '"),
        ("other id", "which no request has"),
        ("null id", "could not read request"),
        ("neither", "has neither a result nor an error"),
        ("list", "is no object"),
        ("error", "an error that is no object"),
    ],
)
def test_an_answer_that_cannot_be_used_ends_its_call_at_once(tmp_path: Path, how: str, words: str) -> None:
    """trust 8: not after the whole wall time; the server goes on, and so do its other calls."""

    async def work(context: CallContext) -> list[ExecutionResult]:
        first = await call(context, "count")
        # a call that waits for another answer ends as a "timeout"
        return [first, await call(context, "echo", text="x"), await call(context, "count")]

    first, broken, after = run(make(tmp_path, how), work)
    assert (broken.status, broken.error.type) == ("error", "ServiceError")
    assert "the MCP server 'test' failed" in broken.error.message and words in broken.error.message
    assert (first.output, after.output) == ("1", "2")


def test_a_broken_answer_costs_only_its_own_call() -> None:
    """trust 8: two requests wait, one answer is broken."""

    async def work() -> None:
        lines = asyncio.Queue[bytes]()

        class Queue(Script):
            async def read(self) -> bytes | None:
                return await lines.get()

        session = McpSession(Queue([]), lambda _text: None)
        session._reader = asyncio.ensure_future(session._read())  # pyright: ignore[reportPrivateUsage]
        one, two = (asyncio.ensure_future(session.request("tools/call", {})) for _ in range(2))
        await asyncio.sleep(0)
        lines.put_nowait(b'{"jsonrpc":"2.0","id":1,"result":\xff}')
        with pytest.raises(McpError, match="no UTF-8"):
            await one
        assert not two.done()
        lines.put_nowait(b'{"jsonrpc":"2.0","id":2,"result":{"a":1}}')
        assert await two == {"a": 1}
        await session.close()

    asyncio.run(work())


def test_a_server_that_stopped_answering_is_started_anew_for_the_next_call(tmp_path: Path) -> None:
    """trust 8: one hanging call does not cost the next one its time."""

    async def work(context: CallContext) -> list[ExecutionResult]:
        await call(context, "count")
        hung = await call(context, "wait", timeout_ms=300)
        return [hung, await call(context, "count")]

    hung, after = run(make(tmp_path), work)
    assert (hung.status, after.status, after.output) == ("timeout", "success", "1")


SHARED = [("one", "1"), ("two", "2"), ("one", "3")]
ISOLATED = [("one", "1"), ("two", "1"), ("one", "2")]


@pytest.mark.parametrize(("isolate", "expected"), [("shared", SHARED), ("session", ISOLATED)])
def test_each_session_has_a_process_of_its_own_where_it_is_set(
    tmp_path: Path, isolate: str, expected: list[tuple[str, str]]
) -> None:
    """trust 8: what a server keeps passes from one session to the other only where it is shared."""
    runtime = make(tmp_path, more=f'isolate = "{isolate}"')

    async def work(_around: CallContext) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for session, _ in expected:
            context = runtime.call_context(caller=Caller("rpc", session))
            found.append((session, (await call(context, "count")).output))
        return found

    assert run(runtime, work) == expected


def test_there_are_so_many_processes_of_a_server_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """trust 8: the session that called least recently makes room."""
    monkeypatch.setattr("tamis.server.runtime.handlers.mcp.servers.MAX_SESSIONS", 2)
    runtime = make(tmp_path, more='isolate = "session"')

    async def work(_around: CallContext) -> list[Any]:
        found: list[Any] = []
        for session in ("one", "two", "one", "three", "one", "two"):
            context = runtime.call_context(caller=Caller("rpc", session))
            found.append((await call(context, "count")).output)
        return found

    assert run(runtime, work) == ["1", "1", "2", "1", "3", "1"]


def test_a_person_s_yes_is_for_the_server_as_it_is_on_disk(tmp_path: Path) -> None:
    """trust 6: a server that was started from other files is started anew for a call that was allowed now."""
    make(tmp_path)
    runtime = Runtime(tmp_path, {"policy": {"requireConfirmation": "always"}})

    async def yes(_question: Question) -> Answer:
        return "allow"

    async def work(context: CallContext) -> list[Any]:
        first = [(await call(context, "count")).output for _ in range(2)]
        server = tmp_path / "servers" / "server.py"
        server.write_text(server.read_text().replace("called.times = 0", "called.times = 100"))
        return [*first, (await call(context, "count")).output]

    assert run(runtime, work, ask=yes) == ["1", "2", "101"]


def test_a_server_that_ends_is_started_again_by_the_next_call(tmp_path: Path) -> None:
    async def work(context: CallContext) -> list[ExecutionResult]:
        return [await call(context, name) for name in ("count", "exit", "count")]

    first, ended, again = run(make(tmp_path), work)
    assert (first.output, again.output) == ("1", "1")
    assert (ended.status, ended.error.type) == ("error", "ServiceError")
    assert "ended before it answered; it ended with exit code 3" in ended.error.message


def test_a_server_that_reached_a_limit_says_which(tmp_path: Path) -> None:
    runtime = make(tmp_path, settings="[sandbox]\nstdoutBytes = 1000")
    result = run(runtime, lambda context: call(context, "long", size=200_000))
    assert "it reached the limit 'stdout'" in result.error.message


def test_a_cancel_is_heard_while_the_server_starts(tmp_path: Path) -> None:
    async def work(context: CallContext) -> ExecutionResult:
        starting = asyncio.ensure_future(call(context, "echo", text="x"))
        await arrives(lambda: context.services.handlers.mcp.names)
        context.services.running_calls.cancel(call_id="c-echo")
        return await starting

    result = run(make(tmp_path, "mute", more="startMs = 86400000"), work)
    assert (result.status, result.attempts) == ("cancelled", 0)


def test_a_server_that_hangs_is_left_to_its_calls_and_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.server.runtime.handlers.mcp.servers.SILENT_S", 0.1)

    async def work(context: CallContext) -> list[ExecutionResult]:
        # it answers one after another, so that all wait behind the one that never ends
        await call(context, "echo", text="is there")
        waiting = asyncio.ensure_future(call(context, "wait"))
        await asyncio.sleep(0)
        given_up = await call(context, "count", timeout_ms=500)
        await asyncio.sleep(0.2)
        anew = await call(context, "count")
        assert not waiting.done()
        context.services.running_calls.cancel(call_id="c-wait")
        return [given_up, anew, await waiting, await call(context, "count")]

    found = run(make(tmp_path), work)
    assert [one.status for one in found] == ["timeout", "success", "cancelled", "success"]
    assert [one.output for one in found if one.status == "success"] == ["1", "2"]


def test_a_server_that_only_was_slow_stays_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.server.runtime.handlers.mcp.servers.SILENT_S", 0.0)

    async def work(context: CallContext) -> list[ExecutionResult]:
        first = [await call(context, "count"), await call(context, "slow", timeout_ms=1)]
        await arrives(lambda: not context.services.handlers.mcp.doubted)
        return [*first, await call(context, "count")]

    found = run(make(tmp_path), work)
    assert [one.output for one in found if one.status == "success"][-1] == "2"


def test_a_secret_in_the_progress_of_a_task_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # D83
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    runtime = make(tmp_path)
    runtime.parts.stays = True
    manifest = json.loads((tmp_path / "echo.tool.json").read_text("utf-8")) | {
        "toolId": "mcp:tell",
        "handler": {"type": "mcp", "server": "test", "tool": "tell"},
        "execution": {"mode": "async"},
        "parameters": {"type": "object", "properties": {"key": {"type": "string", "x-secret": True}}},
    }
    (tmp_path / "tell.tool.json").write_text(json.dumps(manifest), "utf-8")

    async def work(context: CallContext) -> Any:
        accepted = await call(context, "tell", key="hunter2hunter2")
        await context.services.execution.tasks.result(str(accepted.task_id), 600_000)
        return await context.services.execution.tasks.get(str(accepted.task_id))

    task = run(runtime, work)
    assert (task.status, task.progress.message) == ("completed", "with ***")


def test_long_words_of_progress_are_cut() -> None:
    assert len(progress_words({"message": "x" * 100_000, "progress": 1, "total": 2})) < 2_000


def test_progress_is_told_and_the_trace_passed_on(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    async def work(context: CallContext) -> Any:
        await call(context, "slow")
        return json.loads((await call(context, "env")).output)["meta"]

    meta = run(
        make(tmp_path), work, on_progress=lambda call_id, words: told.append((call_id, words)), trace=read_trace(PARENT)
    )
    assert told == [("c-slow", f"{n} of 3") for n in (1, 2, 3)]
    assert meta["traceparent"] == PARENT


def test_what_the_server_asks_for_is_refused_politely(tmp_path: Path) -> None:
    result = run(make(tmp_path), lambda context: call(context, "ask"))
    assert '"code":-32601' in result.output


def test_an_unknown_tool_of_the_server_has_a_suggestion(tmp_path: Path) -> None:
    result = run(make(tmp_path), lambda context: call(context, "gone"))
    assert result.error.type == "ServiceError"
    assert "has no tool 'gone'" in result.error.message


def test_a_call_that_takes_too_long_ends_alone(tmp_path: Path) -> None:
    async def work(context: CallContext) -> ExecutionResult:
        await call(context, "count")
        return await call(context, "wait", timeout_ms=300)

    result = run(make(tmp_path), work)
    assert (result.status, result.error.type, result.attempts) == ("timeout", "TimeoutError", 1)


def test_a_cancelled_call_is_cancelled(tmp_path: Path) -> None:
    cancelled = asyncio.Event()

    async def work(context: CallContext) -> ExecutionResult:
        await call(context, "count")
        asyncio.get_running_loop().call_later(0.2, cancelled.set)
        return await call(context, "wait")

    assert run(make(tmp_path), work, cancelled=cancelled).status == "cancelled"


def test_a_result_beyond_the_limit_is_an_error(tmp_path: Path) -> None:
    result = run(
        make(tmp_path, settings="[sandbox]\nstdoutBytes = 1000"), lambda context: call(context, "long", size=5_000)
    )
    assert (result.status, result.error.type, result.error.details.limit) == ("error", "ResourceError", "stdout")


def test_a_server_has_only_the_rights_that_the_policy_grants_it(tmp_path: Path) -> None:  # D85, ruling 38
    out = tmp_path / "out"
    out.mkdir(mode=0o777)
    out.chmod(0o777)
    asked = f'allowWrite = ["{out}/**"]'

    async def work(context: CallContext) -> ExecutionResult:
        return await call(context, "write", path=str(out / "x"))

    (tmp_path / "closed").mkdir()
    closed = run(make(tmp_path / "closed", more=asked), work)
    assert closed.status == "error"
    assert closed.permissions.denied[0].value == f"{out}/**"
    assert not (out / "x").exists()
    (tmp_path / "open").mkdir()
    opened = run(make(tmp_path / "open", settings=f'[policy]\nwriteRoots = ["{out}"]', more=asked), work)
    assert (opened.status, opened.permissions.granted.write) == ("success", [f"{out}/**"])
    assert (out / "x").exists()


def test_its_variables_are_the_settings_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # S10
    monkeypatch.setenv("KEY", "of the daemon")
    assert json.loads(run(make(tmp_path, more=""), lambda context: call(context, "env")).output)["key"] is None
    (tmp_path / "two").mkdir()
    runtime = make(tmp_path / "two", more='env = { KEY = "own" }')
    assert json.loads(run(runtime, lambda context: call(context, "env")).output)["key"] == "own"


def test_calls_at_the_same_time_share_one_server(tmp_path: Path) -> None:
    async def work(context: CallContext) -> list[Any]:
        return [result.output for result in await asyncio.gather(*(call(context, "count") for _ in range(20)))]

    assert sorted(int(n) for n in run(make(tmp_path), work)) == list(range(1, 21))


def test_an_idle_server_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    async def work(context: CallContext) -> tuple[str, str]:
        first = await call(context, "count")
        await arrives(lambda: not context.services.handlers.mcp.names)
        return first.output, (await call(context, "count")).output

    assert run(make(tmp_path, more="idleMs = 100"), work) == ("1", "1")


def test_closing_the_runtime_ends_its_servers(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    run(make(tmp_path), lambda context: call(context, "count"))
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 2


def test_an_unknown_server_makes_its_tools_unavailable(tmp_path: Path) -> None:
    runtime = make(tmp_path)
    manifest = json.loads((tmp_path / "echo.tool.json").read_text("utf-8"))
    manifest["toolId"], manifest["handler"]["server"] = "mcp:other", "tset"
    (tmp_path / "other.tool.json").write_text(json.dumps(manifest), "utf-8")
    listed = {tool.tool_id: tool for tool in runtime.list_tools().tools}
    assert (listed["mcp:echo"].available, listed["mcp:other"].available) == (True, False)
    assert "did you mean 'test'" in str(listed["mcp:other"].reason)


# The session alone


class Script:
    """A connection whose other end says what a test wants."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = list(lines)
        self.sent: list[Any] = []

    async def read(self) -> bytes | None:
        while not self.sent:
            await asyncio.sleep(0)
        return self._lines.pop(0) if self._lines else None

    async def write(self, line: bytes) -> None:
        self.sent.append(json.loads(line))


@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([b'{"id":1,"result":{}}', b"[]", b"[[]]", b"1", b'{"id":{}}']))
)
def test_whatever_a_server_sends_ends_in_an_answer_or_an_error(lines: list[bytes]) -> None:
    async def work() -> None:
        session = McpSession(Script(lines), lambda _text: None)
        with pytest.raises(McpError):
            await session.start()
        await session.close()

    asyncio.run(work())


class Refused(Script):
    """A connection to a server that was never started: writing waits for it and fails, reading has ended."""

    async def read(self) -> bytes | None:
        await asyncio.sleep(0)
        return None

    async def write(self, line: bytes) -> None:
        await asyncio.sleep(0.01)
        raise TalkEnded


def test_a_server_that_was_never_started_leaves_no_complaint_behind() -> None:
    complaints: list[dict[str, Any]] = []

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
        session = McpSession(Refused([]), lambda _text: None)
        with pytest.raises(McpError):
            await session.start()
        await session.close()
        del session
        gc.collect()

    asyncio.run(work())
    assert complaints == []


@given(
    st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "resultType"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["type", "text"]), inner),
        ),
    )
)
def test_every_result_is_an_output_or_a_failure_with_words(result: dict[str, Any]) -> None:
    found = read_result(result)
    assert found.failed == bool(found.words)
