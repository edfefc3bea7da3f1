"""``tamis.client`` for asyncio: the same as for threads, and what is its own (issue 6.7)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tamis.client import AsyncClient, DaemonEnded, RpcFailure
from tamis.client.messages import Framing
from tests.client import fakes
from tests.client.fakes import fake
from tests.sample_tools import make_tool
from tests.waiting import arrives

HANG = "import time\ntime.sleep(86400)"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def quiet(_line: str) -> None:
    """Takes the daemon's log, so that it is not in the test's output."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("async")
    make_tool(root, "test:echo")
    make_tool(root, "test:hang", HANG)
    make_tool(root, "test:asks", execution={"requireConfirmation": True})
    return root


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_many_requests_at_once_each_get_their_own_struct(root: Path, framing: Framing) -> None:
    async def work() -> None:
        async with AsyncClient(root, framing=framing, on_log=quiet) as client:
            answers = await asyncio.gather(*(client.tool_parse(text=f"你好 {n}") for n in range(64)))
            assert [answer.response_text for answer in answers] == [f"你好 {n}" for n in range(64)]
            assert len((await client.call("tool/list", limit=1)).tools) == 1
            assert (await client.request("tool/list"))["tools"][0]["toolId"].startswith("test:")
            with pytest.raises(RpcFailure) as caught:
                await client.tool_describe(tool_id="no:such")
            assert caught.value.name == "toolNotFound"

    run(work())


def test_a_task_that_is_cancelled_cancels_its_request(root: Path) -> None:
    async def work() -> None:
        async with AsyncClient(root, on_log=quiet) as client:
            task = asyncio.create_task(client.tool_execute(tool_id="test:hang"))
            while not (await client.server_health()).running:
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(TimeoutError, match="cancelled"):
                await client.tool_execute(tool_id="test:hang", timeout=0.2)
            while (await client.server_health()).running:
                await asyncio.sleep(0.02)

    run(work())


def test_approvals_may_be_decided_by_a_coroutine(root: Path) -> None:
    async def decide(question: Any) -> str:
        await asyncio.sleep(0)
        return str(next(option.option_id for option in question.options if option.kind == "allow_once"))

    async def work() -> None:
        for begins in (True, False):
            async with AsyncClient(root, on_approval=decide, on_log=quiet) as client:
                if begins:
                    await client.initialize()
                asked = [client.tool_execute(tool_id="test:asks", args={"text": str(n)}) for n in range(3)]
                assert [done.output for done in await asyncio.gather(*asked)] == [{"text": str(n)} for n in range(3)]

    run(work())


def test_a_service_may_be_a_coroutine_and_its_failure_is_an_error_reply() -> None:
    async def read(args: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return {"of": args["who"]}

    def ask(name: str, args: dict[str, Any]) -> tuple[str, Any]:
        return "service/invoke", {"serviceName": "game", "methodName": name, "args": args, "callId": "c"}

    async def work() -> None:
        async with AsyncClient(command=fake(fakes.REGISTERS)) as client:
            await client.serve("game", [{"name": "read"}], {"read": read, "odd": lambda _args: object()})
            wanted = [ask("read", {"who": "me"}), ask("read", {}), ask("write", {}), ask("odd", {}), ("x/what", None)]
            replies = await client.request("x/ask", {"ask": wanted})
        assert replies[0]["result"] == {"of": "me"}
        assert [one["error"]["code"] for one in replies[1:]] == [-32603, -32601, -32603, -32601]

    run(work())


def test_a_function_that_nobody_waits_for_any_more_is_cancelled(root: Path) -> None:
    ended: list[str] = []
    method = {"name": "wait", "description": "Waits for what never comes.", "agentCallable": True}

    async def wait(_args: dict[str, Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("wait")

    async def work() -> None:
        async with AsyncClient(root, on_log=quiet) as client:
            await client.serve("host", [method], {"wait": wait})
            done = await client.tool_execute(tool_id="host:wait", timeout_ms=200)
            assert done.status == "timeout"
            while not ended:
                await asyncio.sleep(0.01)

    run(work())


def test_a_daemon_that_dies_is_said_with_its_exit_code_and_last_lines() -> None:
    async def work() -> None:
        lines: list[str] = []
        async with AsyncClient(command=fake(fakes.DIES), on_log=lines.append) as client:
            await arrives(lambda: len(lines) == 30)
            with pytest.raises(DaemonEnded) as caught:
                await client.request("x/y")
            assert (caught.value.exit_code, caught.value.stderr[-1]) == (7, "line 29")
            with pytest.raises(DaemonEnded, match="exit code 7"):
                await client.request("x/y")

    run(work())


def test_what_is_no_message_ends_the_daemon() -> None:
    async def work() -> None:
        async with AsyncClient(command=fake(fakes.NO_JSON)) as client:
            with pytest.raises(DaemonEnded, match="no message"):
                await client.request("x/y")

    run(work())


def test_close_leaves_no_process_and_kills_what_does_not_end() -> None:
    async def work() -> None:
        client = await AsyncClient(command=fake(fakes.ECHO)).open()
        process = client.process
        assert await client.request("x/y", {"a": 1}) == {"a": 1}
        assert await client.close(3600) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
        with pytest.raises(DaemonEnded, match="closed"):
            await client.request("x/y")
        ready = asyncio.Event()
        stubborn = await AsyncClient(command=fake(fakes.STUBBORN), on_log=lambda _line: ready.set()).open()
        await ready.wait()
        assert await stubborn.close(0.2) == -signal.SIGKILL
        # No task is left on the loop but this one's.
        assert len(asyncio.all_tasks()) <= 2

    run(work())


def test_a_client_that_was_not_opened_says_so() -> None:
    async def work() -> None:
        with pytest.raises(DaemonEnded, match="not opened"):
            await AsyncClient(command=fake(fakes.ECHO)).request("x/y")

    run(work())


def test_an_answer_that_comes_twice_and_a_callback_that_raises_stop_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def told(_method: str, _params: Any) -> None:
        raise ValueError("a host's own fault")

    async def work() -> None:
        async with AsyncClient(command=fake(fakes.TWICE), on_notification=told) as client:
            assert [await client.request("x/y"), await client.request("x/y")] == [1, 3]

    run(work())
    assert "a host's own fault" in caplog.text
