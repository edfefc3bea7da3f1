"""Warm starts in a daemon: the same results, the settings and reloads are heeded, and the end leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.handlers.script import running
from tamis.server.runtime.handlers.script.interpreters import interpreter_for
from tamis.server.runtime.health import health
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.config import Settings
from tests.sample_tools import make_tool
from tests.waiting import until

ENTRY = "def greet(name): return {'hello': name}\n"


def runtime(root: Path, **sandbox: Any) -> Runtime:
    found = Runtime(root, {"sandbox": sandbox, "audit": {"enabled": False}})
    found.keep_warm()
    return found


async def call(found: Runtime, name: str, **more: Any) -> ExecutionResult:
    args = more.pop("args", {"text": "x"})
    result = await execute(CallRequest(call_id="c", name=name, args=args, **more), found.call_context())
    warming = found.warming
    pool = warming._pool if warming is not None else None  # pyright: ignore[reportPrivateUsage]
    if pool is not None:
        await pool.settle()
    return result


def warm_of(result: ExecutionResult) -> bool:
    assert result.status == "success", result
    assert result.sandbox is not None
    return result.sandbox.warm


@pytest.mark.parametrize(("warm", "forked"), [("auto", True), ("waiting", False)])
def test_sandboxes_of_a_busy_python_tool_are_forked_where_the_settings_let_them(
    warm: str, forked: bool, tmp_path: Path
) -> None:  # issue 16: rate
    make_tool(tmp_path, "demo:echo")

    async def work() -> None:
        found = runtime(tmp_path, warm=warm)
        for _ in range(4):
            await call(found, "demo:echo")
        told = health(found)["warm"]
        await found.close()
        assert (told["forks"] > 0, told["templates"]) == (forked, int(forked)), told

    asyncio.run(work())


def test_third_call_is_warm_and_gives_the_same(tmp_path: Path) -> None:
    make_tool(tmp_path, "demo:echo")

    async def work() -> None:
        found = runtime(tmp_path)
        results = [await call(found, "demo:echo") for _ in range(4)]
        assert [warm_of(result) for result in results] == [False, False, True, True]
        assert len({json.dumps(result.output) for result in results}) == 1
        assert health(found)["warm"]["hits"] == 2
        await found.close()
        assert health(found)["warm"]["idle"] == 0

    asyncio.run(work())


def test_entry_point_is_warm_too(tmp_path: Path) -> None:
    handler = {"type": "external-script", "language": "python", "scriptPath": "tool.py", "entryPoint": "greet"}
    make_tool(tmp_path, "demo:greet", script=ENTRY, properties={"name": {"type": "string"}}, handler=handler)

    async def work() -> None:
        found = runtime(tmp_path)
        for number in range(3):
            result = await call(found, "demo:greet", args={"name": str(number)})
            assert (result.status, result.output) == ("success", {"hello": str(number)}), result
        assert warm_of(result)
        await found.close()

    asyncio.run(work())


def test_off_means_off(tmp_path: Path) -> None:
    make_tool(tmp_path, "demo:echo")

    async def work() -> None:
        found = runtime(tmp_path, warm="off")
        assert found.warming is None
        assert not any([warm_of(await call(found, "demo:echo")) for _ in range(3)])
        assert health(found)["warm"] is None

    asyncio.run(work())


def test_command_that_runs_one_call_keeps_nothing(tmp_path: Path) -> None:
    make_tool(tmp_path, "demo:echo")

    async def work() -> None:
        found = Runtime(tmp_path)
        assert not any([warm_of(await call(found, "demo:echo")) for _ in range(3)])

    asyncio.run(work())


def test_reload_lets_go_of_everything(tmp_path: Path) -> None:
    folder = make_tool(tmp_path, "demo:echo")

    async def work() -> None:
        found = runtime(tmp_path)
        for _ in range(3):
            await call(found, "demo:echo")
        assert health(found)["warm"]["idle"] >= 1
        manifest = next(iter(Path(folder or tmp_path).rglob("*.json")))
        raw = json.loads(manifest.read_text())
        raw["execution"] = {**raw.get("execution", {}), "timeoutMs": 29_000}
        manifest.write_text(json.dumps(raw))
        found.reload()
        assert health(found)["warm"]["idle"] == 0
        assert not warm_of(await call(found, "demo:echo"))
        assert health(found)["warm"]["discarded"]["reload"] >= 1
        await found.close()

    asyncio.run(work())


def test_deadline_of_the_request_does_not_cost_the_warm_start(tmp_path: Path) -> None:
    make_tool(tmp_path, "demo:echo")

    async def work() -> None:
        found = runtime(tmp_path, wallMs=600_000)
        for _ in range(2):
            await call(found, "demo:echo")
        assert warm_of(await call(found, "demo:echo", timeout_ms=300_000))
        await found.close()

    asyncio.run(work())


def test_daemon_starts_warm_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    name = f"tool-{os.getpid()}-{time.monotonic_ns()}.py"
    handler = {"type": "external-script", "language": "python", "scriptPath": name}
    folder = make_tool(tmp_path, "demo:echo", handler=handler)
    (folder / "tool.py").rename(folder / name)

    def left() -> list[str]:
        found: list[str] = []
        for pid in os.listdir("/proc"):
            if pid.isdigit():
                with contextlib.suppress(OSError):
                    if f"/tool/{name}".encode() in Path("/proc", pid, "cmdline").read_bytes():
                        found.append(pid)
        return found

    with Client(tmp_path) as client:
        seen: list[bool] = []
        # one that is being started is not waited for: on a busy machine several calls come before it stands
        while len(seen) < 8 or not any(seen):
            result = client.request("tool/execute", {"toolId": "demo:echo", "args": {"text": str(len(seen))}})
            assert result["output"] == {"text": str(len(seen))}, result
            seen.append(result["sandbox"]["warm"])
            time.sleep(0.01 if len(seen) < 8 else 0.1)
        health = client.request("server/health")["warm"]
        # two calls make a third expected
        assert seen[:2] == [False, False]
        assert health["hits"] == sum(seen)
        until(left)
        client.close(600)
    until(lambda: not left())


def test_what_runs_a_script_is_looked_for_once_by_its_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # issue 18, bars: a warm script
    make_tool(tmp_path, "demo:echo")
    looked: list[str] = []

    def found(handler: ExternalScript, settings: Settings) -> Any:
        looked.append(handler.language)
        return interpreter_for(handler, settings)

    monkeypatch.setattr(running, "interpreter_for", found)

    async def work() -> None:
        own = runtime(tmp_path)
        assert (await call(own, "demo:echo")).status == "success"
        await own.close()

    asyncio.run(work())
    assert looked == ["python"]
