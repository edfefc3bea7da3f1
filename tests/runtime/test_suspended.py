"""Runs of workflows whose nodes ask a host that polls: they wait for it, and go on where they stood (V43, V61, ruling 40)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import ApprovalResolved, ExecutionResult
from tamis.server.runtime.calls.model import CallContext, CallRequest, TokenAnswer
from tamis.server.runtime.execution import suspended
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import TextOptions, check_approval, execute_text
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.settings.profile import AgentRules
from tests.runtime.service_world import error_of
from tests.runtime.workflow_world import World, edge, flow, statuses
from tests.sample_tools import vcp

ASK: dict[str, Any] = {"t:ask": "ask", "t:other": "ask"}


def node(name: str, tool: str = "t:ask", **inputs: Any) -> dict[str, Any]:
    return {"id": name, "type": tool, "inputs": inputs}


ONE = flow(
    [node("first", "t:free"), node("a", text="x")], [edge("first.output", "a.before")], outputs={"o": "a.output"}
)
TWO = flow([node("a", text="1"), node("b", text="2")], outputs={"one": "a.output", "two": "b.output"})
EACH = flow(
    [{"id": "m", "type": "map", "inputs": {"items": ["1", "2", "3"]}, "config": {"type": "t:ask", "item": "text"}}],
    outputs={"o": "m.results"},
)


class Poller(World):
    """A host that polls; ``ran`` has what its tools were called with."""

    def __init__(
        self, root: Path, flows: dict[str, Any], on_run: Callable[[str], Awaitable[None]] | None = None, **policy: Any
    ) -> None:
        self.ran: list[tuple[str, Any]] = []
        self.resolved: list[tuple[str, str]] = []
        self.events: list[tuple[str, str]] = []
        self.cancel = asyncio.Event()
        self.session = "s"
        self.number = 0

        def tool(name: str) -> Callable[[Any], Any]:
            async def run(args: Any) -> Any:
                self.ran.append((name, args.get("text")))
                if on_run is not None:
                    await on_run(name)
                return {"said": args.get("text")}

            return run

        super().__init__(
            root, flows, {name: tool(name) for name in ("ask", "other", "free")}, policy={"tools": ASK, **policy}
        )
        self.runtime.parts.stays = True

    def call_context(self) -> CallContext:
        made = self.runtime.call_context(
            cancelled=self.cancel,
            caller=Caller("test", self.session),
            on_event=lambda call_id, state: self.events.append((call_id, state)),
        )
        return made.having(polls=True, on_resolved=self._note, agent=AgentRules())

    def _note(self, settled: ApprovalResolved) -> None:
        self.resolved.append((settled.call_id, settled.outcome))

    async def go(self, name: str, answer: TokenAnswer | None = None, **request: Any) -> ExecutionResult:
        self.number += 1
        given = {"call_id": f"call-{self.number}", "name": f"workflow:{name}", "approval": answer, **request}
        return await execute(CallRequest(**given), self.call_context())

    @property
    def runs(self) -> int:
        return len(self.runtime.parts.suspended)

    @property
    def open(self) -> list[str]:
        return [one.call_id for one in self.runtime.parts.approvals.open]


def asked(result: ExecutionResult) -> dict[str, Any]:
    """The question of a result."""
    assert result.status == "inputRequired", result
    assert result.approval is not UNSET
    return result.approval


def answer(result: ExecutionResult, option: str = "allow", **more: Any) -> TokenAnswer:
    return TokenAnswer(token=asked(result)["token"], option_id=option, **more)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))


def played(
    root: Path,
    flows: dict[str, Any],
    play: Callable[[Poller], Awaitable[None]],
    make: Callable[..., Poller] | None = None,
    **more: Any,
) -> Poller:
    """A host with these workflows on a loop of its own; at the end none of its runs is left."""
    root = root / "root"
    root.mkdir()

    async def work() -> Poller:
        host = (make or Poller)(root, flows, **more)
        try:
            await play(host)
            assert (host.runs, host.open) == (0, [])
        finally:
            await host.runtime.close()
        return host

    return asyncio.run(work())


async def until(so: Callable[[], Any]) -> None:
    while not so():
        await asyncio.sleep(0.001)


def test_a_node_that_asks_parks_its_run_and_the_answer_goes_on_with_it(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        first = await host.go("one")
        question = asked(first)
        assert (question["tool"], question["callId"], question["args"]["text"]) == ("t:ask", "call-1/a", "x")
        assert question["node"] == {"workflowId": "one", "nodeId": "a"}
        assert (first.tool_id, first.call_id, first.attempts, first.error, first.output) == (
            "workflow:one", "call-1", 1, UNSET, UNSET,
        )  # fmt: skip
        assert first.observation == "Observation: Tool workflow:one has not ended: it waits for an approval."
        assert (host.ran, host.open) == ([("free", None)], ["call-1/a"])
        done = await host.go("one", answer(first))
        assert (done.status, done.call_id, done.output) == ("success", "call-2", {"said": "x"})
        assert done.observation.startswith("Observation: Tool workflow:one executed successfully.")

    host = played(tmp_path, {"one": ONE}, play)
    # what had run was not run again
    assert host.ran == [("free", None), ("ask", "x")]
    assert host.resolved == [("call-1/a", "allowed")]
    own = [state for call_id, state in host.events if call_id == "call-1"]
    assert own == ["pending", "executing"]
    assert [state for call_id, state in host.events if call_id == "call-1/a"] == [
        "pending", "awaitingApproval", "executing", "completed",
    ]  # fmt: skip
    assert [state for call_id, state in host.events if call_id == "call-2"] == ["pending", "executing", "completed"]


def test_only_the_end_of_a_call_that_was_not_parked_is_put_off_until_its_answer(
    tmp_path: Path,
) -> None:  # issue 18, bars
    later: list[Callable[[], object]] = []

    def ended() -> list[str]:
        lines = (tmp_path / "state" / "audit.jsonl").read_text("utf-8").splitlines()
        return [one["callId"] for one in map(json.loads, lines) if one["event"] == "call.ended"]

    class Later(Poller):
        def call_context(self) -> CallContext:
            return super().call_context().having(afterwards=later.append, polls=self.number > 1)

    async def play(host: Poller) -> None:
        await host.go("two")
        assert (ended(), len(later)) == (["call-1/a"], 1), "the node's end is not put off with its workflow's"
        first = await host.go("one")
        await host.go("one", answer(first))
        # the run may outlive the request that would do it
        assert len(later) == 1
        assert ended()[1:] == ["call-2/first", "call-2/a", "call-2"]

    played(tmp_path, {"one": ONE, "two": flow([node("a", "t:free")])}, play, make=Later)


def test_several_nodes_are_asked_about_one_after_the_other(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        first = await host.go("two")
        assert asked(first)["node"]["nodeId"] == "a"
        assert host.open == ["call-1/a"]
        second = await host.go("two", answer(first))
        assert (asked(second)["node"]["nodeId"], second.call_id) == ("b", "call-2")
        done = await host.go("two", answer(second))
        assert done.output == {"one": {"said": "1"}, "two": {"said": "2"}}

    host = played(tmp_path, {"two": TWO}, play)
    assert sorted(host.ran) == [("ask", "1"), ("ask", "2")]


def test_every_item_of_a_map_is_asked_about(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        result = await host.go("each")
        items: list[int] = []
        while result.status == "inputRequired":
            items.append(asked(result)["node"]["item"])
            assert len(host.open) == 1
            result = await host.go("each", answer(result))
        assert (sorted(items), result.output) == ([0, 1, 2], [{"said": text} for text in "123"])

    played(tmp_path, {"each": EACH}, play)


@pytest.mark.parametrize(("option", "kept"), [("session", "allow_session"), ("always", "allow_always")])
def test_an_answer_that_holds_answers_the_questions_behind_it(tmp_path: Path, option: str, kept: str) -> None:
    async def play(host: Poller) -> None:
        done = await host.go("each", answer(await host.go("each"), option))
        assert done.output == [{"said": text} for text in "123"]
        (entry,) = await host.runtime.parts.approvals.standing.listed()
        assert (entry.kind, entry.tool_id) == (kept, "t:ask")
        # and those of the next run
        assert (await host.go("two")).status == "success"

    assert len(played(tmp_path, {"each": EACH, "two": TWO}, play).ran) == 5


def test_a_refusal_and_its_comment_end_the_run_as_any_failed_node(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        done = await host.go("two", answer(await host.go("two"), "reject", comment="no"))
        error = error_of(done)
        assert (done.status, error["details"]["node"]["status"], error["details"]["node"]["nodeId"]) == (
            "error", "denied", "a",
        )  # fmt: skip

    host = played(tmp_path, {"two": TWO}, play)
    # the other question was never put to anybody
    assert (host.ran, host.resolved) == ([], [("call-1/a", "denied")])


def test_a_refusal_deep_inside_is_heard_before_anybody_is_asked_again(tmp_path: Path) -> None:
    flows: dict[str, Any] = {"f0": TWO}
    for depth in range(6):
        flows[f"f{depth + 1}"] = flow([node("in", f"workflow:f{depth}"), node("z")], outputs={"o": "z.output"})

    async def play(host: Poller) -> None:
        result = await host.go("f6")
        # first come those that need nothing of another workflow
        while asked(result)["tool"] == "t:ask" and asked(result)["node"]["workflowId"] != "f0":
            result = await host.go("f6", answer(result))
        done = await host.go("f6", answer(result, "reject"))
        assert (done.status, host.open) == ("error", [])

    host = played(tmp_path, flows, play)
    assert [outcome for _, outcome in host.resolved] == ["allowed"] * (len(host.resolved) - 1) + ["denied"]


def test_what_a_person_wrote_instead_runs(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        done = await host.go("one", answer(await host.go("one"), edited_args={"text": "mine"}))
        assert done.output == {"said": "mine"}

    assert played(tmp_path, {"one": ONE}, play).ran[-1] == ("ask", "mine")


def test_a_token_is_good_once_and_for_its_call_only(tmp_path: Path) -> None:
    place = {"text": {"nodeId": "a", "slotKey": "text"}}
    given = flow([node("a")], None, {"o": "a.output"}, {"text": "STRING"}, interfaceInputMappings=place)

    async def play(host: Poller) -> None:
        first = await host.go("given", args={"text": "1"})
        right = {"args": {"text": "1"}}
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("given", {"args": {"text": "2"}}),
            ("two", {}),
            ("given", right | {"dry_run": True}),
            ("given", right | {"answer": answer(first, "surely")}),
            ("given", right | {"answer": TokenAnswer(token="x", option_id="allow")}),
        ]
        for name, more in wrong:
            with pytest.raises(ApprovalUnknown):
                await host.go(name, more.pop("answer", answer(first)), **more)
        # a node's tool alone is not what was asked about either
        with pytest.raises(ApprovalUnknown):
            await execute(
                CallRequest(call_id="c", name="t:ask", args={"text": "1"}, approval=answer(first)), host.call_context()
            )
        host.session = "another"
        with pytest.raises(ApprovalUnknown):
            await host.go("given", answer(first), **right)
        host.session = "s"
        assert (host.ran, len(host.open)) == ([], 1)
        assert (await host.go("given", answer(first), **right)).status == "success"
        with pytest.raises(ApprovalUnknown):
            await host.go("given", answer(first), **right)

    assert played(tmp_path, {"given": given, "two": TWO}, play).ran == [("ask", "1")]


def test_a_call_without_its_token_is_another_run(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        first, other = await host.go("one"), await host.go("one")
        assert host.open == ["call-1/a", "call-2/a"]
        assert (await host.go("one", answer(other))).status == "success"
        assert (await host.go("one", answer(first))).status == "success"

    assert [name for name, _ in played(tmp_path, {"one": ONE}, play).ran] == ["free", "free", "ask", "ask"]


def test_nobody_comes_back_in_time(tmp_path: Path) -> None:
    config = {"type": "t:ask", "item": "text", "onError": "skip"}
    passing = flow(
        [{"id": "m", "type": "map", "inputs": {"items": ["1", "2"]}, "config": config}], outputs={"o": "m.results"}
    )

    async def play(host: Poller) -> None:
        for name in ("two", "each"):
            first = await host.go(name)
            # the run ends by itself, also where a failed item is passed over: nobody could be shown its next question
            await until(lambda: not host.runs)
            with pytest.raises(ApprovalUnknown):
                await host.go(name, answer(first))

    host = played(tmp_path, {"two": TWO, "each": passing}, play, approvalTimeoutMs=30)
    assert (host.ran, host.resolved) == ([], [("call-1/a", "timeout"), ("call-3/m[0]", "timeout")])
    ended = [call_id for call_id, state in host.events if state == "completed"]
    assert {"call-1", "call-1/a", "call-3"} <= set(ended)


def test_a_node_that_nobody_answered_for_is_the_runs_error(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        await host.go("one", idempotency_key="k")
        await until(lambda: not host.runs)
        done = await host.go("one", idempotency_key="k")
        assert (done.replayed, error_of(done)["details"]["node"]["status"]) == (True, "approvalTimeout")

    played(tmp_path, {"one": ONE}, play, approvalTimeoutMs=30)


def test_a_question_has_its_whole_time_from_when_it_is_shown(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        first = await host.go("two")
        answered = datetime.now(UTC)
        second = await host.go("two", answer(first))
        assert datetime.fromisoformat(asked(second)["expiresAt"]) >= answered + timedelta(minutes=5)
        assert (await host.go("two", answer(second))).status == "success"

    played(tmp_path, {"two": TWO}, play)


def test_a_suspended_run_is_cancelled_by_its_calls_id(tmp_path: Path) -> None:  # V52
    async def play(host: Poller) -> None:
        first = await host.go("one")
        cancelled = host.runtime.parts.running_calls.cancel(call_id="call-1")
        assert cancelled == ["call-1"]
        # the run has heard of it; one that is taken up before leaves telling it to the call that took it
        await until(lambda: ("call-1", "cancelled") in host.events)
        # who comes back learns of it; nothing more runs
        done = await host.go("one", answer(first))
        assert (done.status, done.call_id) == ("cancelled", "call-2")

    host = played(tmp_path, {"one": ONE}, play)
    assert (host.ran, host.resolved) == ([("free", None)], [("call-1/a", "cancelled")])
    assert ("call-1", "cancelled") in host.events


def test_a_run_that_was_taken_up_is_cancelled_by_either_id(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        for at in (0, 1):
            first = await host.go("one")
            number = host.number
            going = asyncio.ensure_future(host.go("one", answer(first)))
            await until(lambda: host.ran[-1][0] == "ask")
            name = f"call-{number + at}"
            assert host.runtime.parts.running_calls.cancel(call_id=name) == [name]
            assert (await going).status == "cancelled"
            host.ran.clear()

    async def forever(name: str) -> None:
        if name == "ask":
            await asyncio.Event().wait()

    played(tmp_path, {"one": ONE}, play, on_run=forever)


def test_a_cancel_of_the_request_ends_the_run(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        first = await host.go("one")
        going = asyncio.ensure_future(host.go("one", answer(first)))
        await until(lambda: host.ran[-1][0] == "ask")
        host.cancel.set()
        assert (await going).status == "cancelled"

    async def forever(name: str) -> None:
        if name == "ask":
            await asyncio.Event().wait()

    played(tmp_path, {"one": ONE}, play, on_run=forever)


def test_a_request_that_was_cancelled_before_it_came_to_its_run_ends_it(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        await host.go("one", idempotency_key="k")
        host.cancel.set()
        assert (await host.go("one", idempotency_key="k")).status == "cancelled"

    played(tmp_path, {"one": ONE}, play)


def test_a_run_that_ends_while_its_host_is_away_is_told_when_it_comes(tmp_path: Path) -> None:
    fails = asyncio.Event()

    async def free(name: str) -> None:
        if name == "free":
            await fails.wait()
            raise ValueError("broken")

    async def play(host: Poller) -> None:
        first = await host.go("both")
        fails.set()
        await until(lambda: not host.open)
        done = await host.go("both", answer(first))
        assert error_of(done)["details"]["node"]["nodeId"] == "free"

    nodes = flow([node("a"), node("free", "t:free")], outputs={"o": "a.output"})
    host = played(tmp_path, {"both": nodes}, play, on_run=free)
    assert host.resolved == [("call-1/a", "cancelled")]


def test_the_time_of_a_run_goes_on_while_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(host: Poller) -> None:
        first = await host.go("one", timeout_ms=60_000)
        loop = asyncio.get_running_loop()
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + 100)
        await until(lambda: not host.open)
        assert (await host.go("one", answer(first))).status == "timeout"

    played(tmp_path, {"one": ONE}, play)


def test_only_so_many_runs_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended, "MAX_SUSPENDED", 2)

    async def play(host: Poller) -> None:
        results = [await host.go("one") for _ in range(3)]
        await until(lambda: host.runs == 2)
        assert host.resolved == [("call-1/a", "timeout")]
        with pytest.raises(ApprovalUnknown):
            await host.go("one", answer(results[0]))
        for result in results[1:]:
            assert (await host.go("one", answer(result))).status == "success"

    played(tmp_path, {"one": ONE}, play)


def test_the_end_of_the_daemon_ends_what_waits(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()

    async def work() -> None:
        host = Poller(tmp_path / "root", {"one": ONE})
        await host.go("one")
        await host.runtime.close()
        assert (host.runs, host.ran) == (0, [("free", None)])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(work())


def test_a_workflow_of_a_workflow_waits_too(tmp_path: Path) -> None:
    outer = flow(
        [node("in", "workflow:two"), node("z", text="3")], [edge("in.one", "z.before")], outputs={"o": "z.output"}
    )

    async def play(host: Poller) -> None:
        result = await host.go("outer")
        shown: list[tuple[str, str]] = []
        while result.status == "inputRequired":
            shown.append((asked(result)["node"]["workflowId"], asked(result)["callId"].partition("/")[2]))
            result = await host.go("outer", answer(result))
        assert (result.status, shown) == ("success", [("two", "in/a"), ("two", "in/b"), ("outer", "z")])

    host = played(tmp_path, {"outer": outer, "two": TWO}, play)
    assert len(host.ran) == 3


def test_the_workflows_own_question_comes_first_and_runs_nothing(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        own = await host.go("one")
        assert (asked(own)["tool"], own.attempts, host.ran, host.runs) == ("workflow:one", 0, [], 0)
        first = await host.go("one", answer(own))
        assert asked(first)["tool"] == "t:ask"
        # neither token is good in the other's place
        with pytest.raises(ApprovalUnknown):
            await host.go("one", answer(own))
        done = await host.go("one", answer(first))
        assert (done.status, done.approval) == ("success", {"outcome": "allowed", "scope": "once", "standing": False})

    host = played(tmp_path, {"one": ONE}, play, tools={"t:ask": "ask", "workflow:*": "ask"})
    assert [name for name, _ in host.ran] == ["free", "ask"]


def test_the_same_key_leads_to_the_run_that_waits(tmp_path: Path) -> None:  # T24
    async def play(host: Poller) -> None:
        first = await host.go("one", idempotency_key="k")
        again = await host.go("one", idempotency_key="k")
        assert (asked(again)["token"], again.call_id) == (asked(first)["token"], "call-2")
        with pytest.raises(ApprovalUnknown):
            await host.go("one", TokenAnswer(token="x", option_id="allow"), idempotency_key="k")
        # what another key is given is that key's too
        done = await host.go("one", answer(first), idempotency_key="other")
        for key in ("k", "other"):
            replayed = await host.go("one", idempotency_key=key)
            assert (replayed.replayed, replayed.output) == (True, done.output)

        # but not a question
        first = await host.go("two")
        second = await host.go("two", answer(first), idempotency_key="of two")
        assert (await host.go("two", answer(second), idempotency_key="of two")).status == "success"

    assert [name for name, _ in played(tmp_path, {"one": ONE, "two": TWO}, play).ran] == ["free", "ask", "ask", "ask"]


def test_the_runs_of_a_text_go_on_each_by_its_own_token(tmp_path: Path) -> None:
    # two calls that are alike, and a third that is not a workflow
    text = "\n".join([vcp("workflow:one"), vcp("workflow:one"), vcp("t:other", text="y")])

    async def play(host: Poller) -> None:
        async def run(given: ExecutionResult | None = None) -> list[ExecutionResult]:
            host.number += 1
            approval = None if given is None else msgspec.structs.replace(answer(given), lenient=True)
            document, options = (
                host.runtime.read(text, "auto"),
                TextOptions(call_prefix=f"t{host.number}", approval=approval),
            )
            await check_approval(document, host.call_context(), options)
            return (await execute_text(document, host.call_context(), options)).results

        first = await run()
        assert [one.status for one in first] == ["inputRequired"] * 3
        second = await run(first[1])
        # the answer went to the second call, and the first one still asks what it asked
        assert [one.status for one in second] == ["inputRequired", "success", "inputRequired"]
        assert asked(second[0])["token"] == asked(first[0])["token"]
        assert [one.call_id for one in second] == ["t2-1", "t2-2", "t2-3"]
        third = await execute(
            CallRequest(call_id="c", name="workflow:one", approval=answer(first[0])), host.call_context()
        )
        assert third.status == "success"
        for one in (first[2], second[2]):
            host.runtime.parts.approvals.expire(asked(one)["token"])

    assert [name for name, _ in played(tmp_path, {"one": ONE}, play).ran] == ["free", "free", "ask", "ask"]


def test_the_steps_of_a_run_that_waits_are_as_they_are_now(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        part = host.runtime.parts.workflows
        part.expect("call-1")
        first = await host.go("one")
        record = part.take("call-1")
        assert record is not None
        assert statuses(record.steps) == {"first": "success", "a": "running"}
        part.expect("call-2")
        await host.go("one", answer(first))
        after = part.take("call-2")
        assert after is not None
        assert (statuses(after.steps), after.outputs) == ({"first": "success", "a": "success"}, {"o": {"said": "x"}})
        assert statuses(record.steps) == {"first": "success", "a": "running"}

    played(tmp_path, {"one": ONE}, play)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    ("policy", "collected"),
    [
        ({}, True),
        ({"tools": {"t:other": "ask"}}, False),
        ({"tools": {}, "rules": [{"tool": "t:*", "parameter": "text", "matches": "no such", "verdict": "ask"}]}, True),
        ({"tools": {}, "rules": [{"tool": "t:*", "verdict": "allow"}, {"tool": "t:ask", "verdict": "ask"}]}, False),
        ({"tools": {"t:ask": "allow", "workflow:*": "allow"}, "requireConfirmation": "always"}, False),
    ],
)
def test_what_a_stream_would_ask_behind_its_handle_is_asked_before(
    tmp_path: Path, policy: dict[str, Any], collected: bool, deep: bool
) -> None:  # W22
    inner = EACH | {"interfaceOutputs": {"o": {"dataFlowType": "WILDCARD", "isStream": True}}}
    streaming = inner
    if deep:
        streaming = inner | {
            "nodes": [node("m", "workflow:inner")],
            "outputInterfaceMappings": {"o": {"nodeId": "m", "slotKey": "o"}},
        }

    async def play(host: Poller) -> None:
        result = await host.go("each")
        while result.status == "inputRequired":
            result = await host.go("each", answer(result))
        assert result.output is not UNSET
        if collected:
            assert result.output == [{"said": text} for text in "123"]
        else:
            read = await host.runtime.parts.workflows.streams.read(result.output["handle"], 5_000)
            assert read is not None

    played(tmp_path, {"each": streaming, "inner": inner}, play, **policy)


def test_audit_lines_tell_of_the_question_and_of_who_came_back(tmp_path: Path) -> None:
    async def play(host: Poller) -> None:
        await host.go("one", answer(await host.go("one"), "session", comment="fine"))

    played(tmp_path, {"one": ONE}, play)
    lines = [
        msgspec.json.decode(line)
        for path in (tmp_path / "state").rglob("audit.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    of_node = [line for line in lines if line["callId"] == "call-1/a"]
    assert [line["event"] for line in of_node if line["event"].startswith("approval.")] == [
        "approval.asked", "approval.answered",
    ]  # fmt: skip
    answered = next(line for line in of_node if line["event"] == "approval.answered")
    assert (answered["answer"], answered["scope"], answered["comment"], answered["token"]) == (
        "allow", "session", "fine", True,
    )  # fmt: skip
    assert [line["by"] for line in lines if line["event"] == "call.resumed"] == ["call-2"]
    # one run, one end
    assert [line["callId"] for line in lines if line["event"] == "call.ended" and "/" not in line["callId"]] == [
        "call-1"
    ]


def test_whatever_a_host_does_nothing_runs_twice_and_nothing_is_left(tmp_path: Path, is_long: bool) -> None:
    for seed in range(500 if is_long else 40):
        (tmp_path / str(seed)).mkdir()
        _any_host(tmp_path / str(seed), random.Random(seed))


def _any_host(root: Path, source: random.Random) -> None:
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    flows: dict[str, Any] = {}
    for number in range(source.randint(1, 6)):
        name = f"n{number}"
        if source.random() < 0.3:
            config = {"type": "t:ask", "item": "text", "onError": source.choice(["skip", "stop"])}
            items = [f"{name}-{item}" for item in range(source.randint(1, 4))]
            nodes.append({"id": name, "type": "map", "inputs": {"items": items}, "config": config})
        elif source.random() < 0.3:
            inner = [node(inside, source.choice(["t:ask", "t:free"]), text=f"{name}-{inside}") for inside in "ab"]
            flows[name] = flow(inner, outputs={"output": "a.output"})
            nodes.append(node(name, f"workflow:{name}"))
        else:
            nodes.append(node(name, source.choice(["t:ask", "t:other", "t:free"]), text=name))
        if number and nodes[-1]["type"].startswith("t:") and source.random() < 0.4:
            before = nodes[source.randrange(number)]
            edges.append(edge(f"{before['id']}.{'results' if before['type'] == 'map' else 'output'}", f"{name}.before"))
    last = nodes[-1]
    place = f"{last['id']}.{'results' if last['type'] == 'map' else 'output'}"

    async def pause(_name: str) -> None:
        for _ in range(source.choice([0, 1, 40])):
            await asyncio.sleep(0)

    async def play(host: Poller) -> None:
        result = await host.go("any")
        used: list[TokenAnswer] = []
        while result.status == "inputRequired":
            given, what = answer(result), source.random()
            for wrong in (
                source.choice(used) if used else TokenAnswer(token="x", option_id="allow"),
                answer(result, "yes"),
            ):
                with pytest.raises(ApprovalUnknown):
                    await host.go("any", wrong)
            if what < 0.08:
                host.runtime.parts.running_calls.cancel(call_id="call-1")
            elif what < 0.12:
                host.runtime.parts.approvals.expire(given.token)
                await until(lambda: not host.runs)
                return
            elif what < 0.25:
                given = answer(result, source.choice(["reject", "session", "never"]))
            elif what < 0.35:
                given = answer(result, edited_args={"text": asked(result)["args"].get("text"), "more": 1})
            if source.random() < 0.3:
                # two at once: one of them has the token
                both = await asyncio.gather(host.go("any", given), host.go("any", given), return_exceptions=True)
                (result,) = [one for one in both if isinstance(one, ExecutionResult)]
                assert sum(isinstance(one, ApprovalUnknown) for one in both) == 1
            else:
                result = await host.go("any", given)
            used.append(given)
        assert result.status in ("success", "error", "cancelled")

    outputs = {"o": place}
    host = played(root, flows | {"any": flow(nodes, edges, outputs=outputs)}, play)
    assert len(set(host.ran)) == len(host.ran)
    assert len({call_id for call_id, _ in host.resolved}) == len(host.resolved)
