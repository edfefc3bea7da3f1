"""Request ids: once executed, then replayed; other content under the same id is an error (T24, ruling 26)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.execute import execute
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.calls.text import TextOptions, execute_text
from tamis.server.runtime.runtime import Runtime
from tests.toolbox import make_tool

COUNT = "import json, os, sys\nn = len(os.listdir('.n'))\nopen(f'.n/{n}', 'w').close()\nprint(n)"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "count", COUNT, securityContext={"fileAccess": {"allowWrite": [".n/**"]}})
    return tmp_path


def block(request_id: str, text: str = "x") -> str:
    return (
        f"<|[REQUEST_TOOL]|>\nrequest_id:»»»{request_id}«««\ncommand:»»»count«««\ntext:»»»{text}«««\n<|[END_TOOL]|>\n"
    )


def run_texts(root: Path, *texts: str) -> list[ExecutionResult]:
    runtime = Runtime(root)

    async def run() -> list[ExecutionResult]:
        found: list[ExecutionResult] = []
        for text in texts:
            found += (await execute_text(runtime.read(text), runtime.surroundings(), TextOptions())).results
        return found

    return asyncio.run(run())


def test_the_same_request_is_executed_once_and_replayed(root: Path) -> None:
    first, second, other = run_texts(root, block("r1"), block("r1"), block("r2"))
    assert [first.output, second.output, other.output] == [0, 0, 1]
    assert [first.replayed, second.replayed, other.replayed] == [False, True, False]


def test_an_id_with_other_content_is_an_error_and_runs_nothing(root: Path) -> None:
    first, second = run_texts(root, block("r1"), block("r1", "y"))
    assert (first.status, second.status, second.attempts) == ("success", "error", 0)
    assert second.error is not UNSET
    assert second.error.type == "ParameterValidationError"
    assert second.error.details is not UNSET
    assert second.error.details.code == "idempotencyMismatch"


def test_without_an_id_the_same_call_runs_again(root: Path) -> None:  # ruling 8
    plain = block("r").replace("request_id:»»»r«««\n", "")
    assert [result.output for result in run_texts(root, plain, plain)] == [0, 1]


def test_a_request_that_comes_while_the_first_runs_waits_for_it(root: Path) -> None:
    runtime = Runtime(root)

    async def run() -> list[ExecutionResult]:
        request = CallRequest(call_id="c", name="count", args={"text": "x"}, idempotency_key="k")
        return list(await asyncio.gather(*(execute(request, runtime.surroundings()) for _ in range(4))))

    results = asyncio.run(run())
    assert [result.output for result in results] == [0, 0, 0, 0]
    assert sorted(result.replayed for result in results) == [False, True, True, True]


def test_a_call_that_never_ran_leaves_its_id_free(root: Path) -> None:
    runtime = Runtime(root)

    async def run() -> list[ExecutionResult]:
        wrong = CallRequest(call_id="c", name="count", args={"nope": 1}, idempotency_key="k")
        right = CallRequest(call_id="c", name="count", args={"text": "x"}, idempotency_key="k")
        return [await execute(wrong, runtime.surroundings()), await execute(right, runtime.surroundings())]

    assert [result.status for result in asyncio.run(run())] == ["error", "success"]
