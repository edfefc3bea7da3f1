"""Hosts that answer late, twice, never, with an error, with nonsense, with far too much, or not at all any more (issue 6, bad input)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import HostError, Question
from tests.runtime.service_world import Served, error_of, method

OBSERVED_TIMEOUT = "Observation: Tool s:m failed. Error type: TimeoutError. Message: no result after 50 ms."


def never(*_given: Any) -> Any:
    return asyncio.Event().wait()


def test_an_answer_is_the_output(tmp_path: Path) -> None:  # A25, A27
    world = Served(tmp_path, lambda *given: "sunny")
    world.register("s", method("m"))
    result = world.run("s:m", {"text": "x"})
    assert (result.status, result.output, result.attempts, result.sandbox) == ("success", "sunny", 1, None)
    assert result.observation == "Observation: Tool s:m executed successfully. Result: sunny"


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"a": [1, None]}, "é 😀", 10**25])
def test_every_json_value_is_an_output(tmp_path: Path, value: Any) -> None:
    world = Served(tmp_path, lambda *given: value)
    world.register("s", method("m"))
    result = world.run("s:m")
    assert (result.status, result.output) == ("success", value)


def test_a_number_that_json_does_not_have_is_no_output(tmp_path: Path) -> None:
    world = Served(tmp_path, lambda *given: {"rate": [0.5, float("nan")]})
    world.register("s", method("m"))
    error = error_of(world.run("s:m"))
    assert error["type"] == "OutputFormatError"
    assert error["message"] == "the result of s.m is no JSON: NaN at /rate/1; give null or a text instead"


def test_a_host_that_never_answers_is_a_timeout_and_is_told(tmp_path: Path) -> None:  # V13, ruling 40
    world = Served(tmp_path, never)
    world.register("s", method("m"))
    result = world.run("s:m", timeout_ms=50)
    assert (result.status, error_of(result)["type"], error_of(result)["details"]) == (
        "timeout",
        "TimeoutError",
        {"limit": "wall"},
    )
    assert result.observation == OBSERVED_TIMEOUT
    assert world.host.said("service/cancel") == [{"callId": "call-1", "reason": "timeout"}]


def test_the_methods_own_time_holds(tmp_path: Path) -> None:  # V13
    world = Served(tmp_path, never)
    world.register("s", method("m", timeoutMs=50))
    assert world.run("s:m").observation == OBSERVED_TIMEOUT


def test_a_late_answer_is_nobodys(tmp_path: Path) -> None:
    over = asyncio.Event()

    async def late(*_given: Any) -> str:
        await over.wait()
        return "too late"

    world = Served(tmp_path, late)
    world.register("s", method("m"))

    async def work() -> list[ExecutionResult]:
        first = await world.call("s:m", timeout_ms=50)
        over.set()
        second = await world.call("s:m")
        await world.runtime.close()
        return [first, second]

    first, second = asyncio.run(work())
    assert (first.status, first.output, second.status, second.output) == ("timeout", UNSET, "success", "too late")


def test_cancelling_a_call_tells_the_host_and_gives_the_outcome(tmp_path: Path) -> None:  # V52, V53, ruling 40
    world = Served(tmp_path, never)
    world.register("s", method("m"))

    async def work() -> ExecutionResult:
        cancelled = asyncio.Event()
        running = asyncio.ensure_future(world.call("s:m", cancelled=cancelled))
        while not world.host.asked:
            await asyncio.sleep(0.001)
        cancelled.set()
        result = await running
        await world.runtime.close()
        return result

    result = asyncio.run(work())
    assert (result.status, result.error) == ("cancelled", UNSET)
    assert world.host.said("service/cancel") == [{"callId": "call-1", "reason": "cancelled"}]


def test_an_error_of_the_host_is_the_tools_failure(tmp_path: Path) -> None:  # V44
    def broken(*_given: Any) -> Any:
        raise HostError("disk \x1b[31mfull")

    world = Served(tmp_path, broken)
    world.register("s", method("m"))
    result = world.run("s:m")
    assert (result.status, error_of(result)["type"], result.attempts) == ("error", "ServiceError", 1)
    assert error_of(result)["message"].startswith("s.m failed: disk ")
    assert "\x1b" not in result.observation


def test_a_very_long_error_is_shortened(tmp_path: Path) -> None:
    def broken(*_given: Any) -> Any:
        raise HostError("x" * 1_000_000)

    world = Served(tmp_path, broken)
    world.register("s", method("m"))
    assert len(error_of(world.run("s:m"))["message"]) < 3_000


def test_a_result_that_is_not_what_was_declared_is_an_error_with_its_places(tmp_path: Path) -> None:  # D64
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    world = Served(tmp_path, lambda *given: {"n": "many"})
    world.register("s", method("m", returns=output))
    error = error_of(world.run("s:m"))
    assert error["type"] == "OutputValidationError"
    assert [problem["path"] for problem in error["details"]["errors"]] == ["/n"]


def test_a_result_that_is_no_json_is_an_error(tmp_path: Path) -> None:  # D64
    world = Served(tmp_path, lambda *given: object())
    world.register("s", method("m"))
    assert error_of(world.run("s:m"))["type"] == "OutputFormatError"


def test_a_huge_result_is_refused_by_its_size(tmp_path: Path) -> None:
    world = Served(tmp_path, lambda *given: "x" * 5_000, sandbox={"stdoutBytes": 4_096})
    world.register("s", method("m"))
    error = error_of(world.run("s:m"))
    assert (error["type"], error["details"]) == ("ResourceError", {"limit": "stdout"})
    assert "5002 bytes, more than the 4096 of sandbox.stdoutBytes" in error["message"]


def test_a_method_can_only_lower_the_limits(tmp_path: Path) -> None:
    world = Served(tmp_path, lambda *given: "x" * 200)
    world.register("s", method("m", execution={"limits": {"stdoutBytes": 100}}))
    assert error_of(world.run("s:m"))["type"] == "ResourceError"


def test_a_failing_method_is_tried_again_as_often_as_the_call_says(tmp_path: Path) -> None:  # T21
    answers: list[Any] = [HostError("busy"), HostError("busy"), "done"]

    def some(*_given: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    world = Served(tmp_path, some)
    world.register("s", method("m"))
    from tamis.server.runtime.calls.model import CallRequest
    from tamis.server.runtime.execution.pipeline import execute

    async def work() -> ExecutionResult:
        result = await execute(CallRequest(call_id="c", name="s:m"), world.runtime.call_context(), attempts=3)
        await world.runtime.close()
        return result

    result = asyncio.run(work())
    assert (result.status, result.output, result.attempts, result.error) == ("success", "done", 3, UNSET)


def test_a_method_that_goes_while_a_person_is_asked_is_not_called(tmp_path: Path) -> None:
    world = Served(tmp_path)
    world.register("s", method("m", requireConfirmation=True))

    async def allow(_question: Question) -> Any:
        world.runtime.parts.host_services.unregister("s")
        return "allow"

    result = world.run("s:m", ask=allow)
    assert (result.status, error_of(result)["type"]) == ("error", "ServiceError")
    assert "no service 's' is registered" in error_of(result)["message"]
    assert world.host.asked == []


def test_a_call_keeps_the_tool_that_it_resolved_while_its_service_is_replaced(tmp_path: Path) -> None:  # D53
    world = Served(tmp_path)
    gate = asyncio.Event()

    async def slow(_service: str, name: str, args: Any) -> Any:
        await gate.wait()
        return [name, args]

    world.host.answer = slow
    world.register("s", method("m"))

    async def work() -> ExecutionResult:
        running = asyncio.ensure_future(world.call("s:m", {"text": "x"}))
        while not world.host.asked:
            await asyncio.sleep(0.001)
        world.register("s", method("other"))
        gate.set()
        result = await running
        await world.runtime.close()
        return result

    result = asyncio.run(work())
    assert (result.status, result.output) == ("success", ["m", {"text": "x"}])


def test_a_host_that_has_gone_leaves_tools_that_say_so(tmp_path: Path) -> None:
    world = Served(tmp_path)
    world.register("s", method("m"))
    world.runtime.parts.host = None
    assert [(tool.available, tool.reason) for tool in world.runtime.list_tools().tools] == [
        (False, "the host of the service 's' has gone")
    ]
    assert error_of(world.run("s:m"))["type"] == "ServiceError"


def test_secret_parameters_reach_the_host_and_nothing_that_is_shown(tmp_path: Path) -> None:  # D83
    parameters = [{"name": "key", "type": "string", "secret": True}]
    world = Served(tmp_path, lambda *given: {"used": given[2]["key"]})
    world.register("s", method("m", parameters=parameters))
    result = world.run("s:m", {"key": "hunter2-token"})
    assert world.host.asked[0][1]["args"] == {"key": "hunter2-token"}
    assert "hunter2" not in result.observation


def test_a_confirmation_that_a_method_wants_is_asked_for(tmp_path: Path) -> None:  # V14
    world = Served(tmp_path, lambda *given: "done")
    world.register("s", method("m", requireConfirmation=True))
    assert world.run("s:m").status in ("approvalUnavailable", "inputRequired")
    assert world.host.asked == []


def test_calls_beside_each_other_keep_their_answers_apart(tmp_path: Path) -> None:
    async def echo(_service: str, _name: str, args: Any) -> Any:
        await asyncio.sleep(0.001 * (int(args["text"]) % 7))
        return args["text"]

    world = Served(tmp_path, echo)
    world.register("s", method("m"))

    async def work() -> list[ExecutionResult]:
        results = await asyncio.gather(*(world.call("s:m", {"text": str(n)}, call_id=f"c{n}") for n in range(64)))
        await world.runtime.close()
        return results

    assert [result.output for result in asyncio.run(work())] == [str(n) for n in range(64)]
