"""Request ids: once executed, then replayed; other content under the same id is an error (T24, ruling 26)."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import Answer, CallRequest, Question
from tamis.server.runtime.execution.idempotency import MARGIN_S, IdempotencyKeys, KeyReused, StillRunning, patience_s
from tamis.server.runtime.execution.idempotency_store import forget_old
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.config import IdempotencySettings
from tamis.server.runtime.store import database
from tamis.server.runtime.store.folders import state_folder
from tamis.server.runtime.store.owners import Owner, Sight, sight_of
from tamis.server.runtime.store.store import Store
from tests.sample_tools import make_tool, vcp
from tests.waiting import until

HANG = "import time\ntime.sleep(10**6)"
COUNT = """import os
n = len(os.listdir('.n'))
while True:  # another call may count at this moment
    try:
        open(f'.n/{n}', 'x').close()
        break
    except FileExistsError:
        n += 1
print(n)"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))


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
            found += (await execute_text(runtime.read(text), runtime.call_context(), TextOptions())).results
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
        return list(await asyncio.gather(*(execute(request, runtime.call_context()) for _ in range(4))))

    results = asyncio.run(run())
    assert [result.output for result in results] == [0, 0, 0, 0]
    assert sorted(result.replayed for result in results) == [False, True, True, True]


def test_a_call_that_never_ran_leaves_its_id_free(root: Path) -> None:
    runtime = Runtime(root)

    async def run() -> list[ExecutionResult]:
        wrong = CallRequest(call_id="c", name="count", args={"nope": 1}, idempotency_key="k")
        right = CallRequest(call_id="c", name="count", args={"text": "x"}, idempotency_key="k")
        return [await execute(wrong, runtime.call_context()), await execute(right, runtime.call_context())]

    assert [result.status for result in asyncio.run(run())] == ["error", "success"]


def call_once(
    root: Path,
    key: str = "k",
    tool: str = "count",
    *,
    session: str = "",
    caller: Caller | None = None,
    answer: Answer | None = None,
    settings: dict[str, Any] | None = None,
    **args: Any,
) -> ExecutionResult:
    """One keyed call by a runtime of its own, as a new process would have it."""
    runtime = Runtime(root, settings)

    async def run() -> ExecutionResult:
        async def ask(_question: Question) -> Answer:
            assert answer is not None
            return answer

        context = runtime.call_context(
            ask=None if answer is None else ask, caller=Caller("rpc", session) if caller is None else caller
        )
        try:
            return await execute(CallRequest(call_id="c", name=tool, args=args, idempotency_key=key), context)
        finally:
            await runtime.close()

    return asyncio.run(run())


def test_a_result_is_replayed_after_a_restart(root: Path) -> None:  # T24, F26
    first, second = call_once(root), call_once(root)
    assert (first.output, first.replayed) == (0, False)
    assert (second.output, second.replayed, second.observation) == (0, True, first.observation)


def test_a_key_with_other_content_is_refused_after_a_restart(root: Path) -> None:  # ruling 26
    call_once(root, text="a")
    other = call_once(root, text="b")
    assert (other.status, other.attempts) == ("error", 0)
    assert other.error is not UNSET
    assert other.error.details is not UNSET
    assert other.error.details.code == "idempotencyMismatch"
    assert "the idempotency key '" in other.error.message


def test_keys_of_one_root_say_nothing_in_another(root: Path, tmp_path: Path) -> None:
    make_tool(tmp_path / "other", "count", COUNT, securityContext={"fileAccess": {"allowWrite": [".n/**"]}})
    call_once(root, text="a")
    assert call_once(tmp_path / "other", text="b").status == "success"


def test_a_texts_request_ids_count_within_their_session(root: Path) -> None:  # a model numbers them anew each time
    runtime = Runtime(root)

    async def run(session: str, text: str) -> ExecutionResult:
        context = runtime.call_context(caller=Caller("rpc", session))
        return (await execute_text(runtime.read(block("r1", text)), context, TextOptions())).results[0]

    async def all_of_them() -> list[ExecutionResult]:
        return [await run("one", "x"), await run("two", "y"), await run("one", "x")]

    assert [(one.output, one.replayed) for one in asyncio.run(all_of_them())] == [(0, False), (1, False), (0, True)]


@pytest.mark.parametrize(
    "other",
    [
        Caller("rpc", "two", "a", "host"),
        Caller("rpc", "one", "b", "host"),
        Caller("rpc", "one", "a", "another"),
        Caller("rpc", "one", "a"),
        Caller("cli"),
        Caller("rpc", "one 1\n1 a", "", "host"),
    ],
)
def test_a_key_belongs_to_its_caller(root: Path, other: Caller) -> None:
    """trust 6: a host's key gives nobody else the result, not even that it was used."""
    for agent in "ab":
        (root / f"{agent}.agent_profile.json").write_text(json.dumps({"toolCallConfig": {"enabled": True}}))
    first = Caller("rpc", "one", "a", "host")
    assert call_once(root, caller=first, text="x").output == 0
    assert call_once(root, caller=first, text="x").replayed
    theirs = call_once(root, caller=other, text="y")
    assert (theirs.output, theirs.replayed, theirs.status) == (1, False, "success")
    assert call_once(root, caller=first, text="x").output == 0


def test_a_duplicate_of_another_caller_is_not_joined(root: Path) -> None:
    """trust 6: what runs at this moment is joined by its own caller only."""
    runtime = Runtime(root)

    async def run() -> list[ExecutionResult]:
        request = CallRequest(call_id="c", name="count", args={"text": "x"}, idempotency_key="k")
        callers = [Caller("rpc", session) for session in ("one", "two", "one")]
        return list(
            await asyncio.gather(*(execute(request, runtime.call_context(caller=caller)) for caller in callers))
        )

    one, two, again = asyncio.run(run())
    assert {one.output, two.output} == {0, 1}
    assert again.output == one.output
    assert [one.replayed, two.replayed, again.replayed].count(True) == 1


POLICIES: dict[str, dict[str, Any]] = {
    "deny": {"policy": {"tools": {"count": "deny"}}},
    "deny by argument": {"policy": {"rules": [{"parameter": "text", "matches": "x", "verdict": "deny"}]}},
    "closed": {"policy": {"noSuch": 1}},
}


@pytest.mark.parametrize("settings", POLICIES.values(), ids=POLICIES)
def test_a_policy_is_looked_at_before_a_stored_result(root: Path, settings: dict[str, Any]) -> None:
    """trust 6: what may not be called now is not replayed, and its key keeps what it stands for."""
    assert call_once(root, text="x").output == 0
    refused = call_once(root, settings=settings, text="x")
    assert (refused.status, refused.output, refused.replayed, refused.attempts) == ("blocked", UNSET, False, 0)
    assert call_once(root, text="x").replayed


@pytest.mark.parametrize(
    "profile",
    [
        {"tool_ids_inventory": ["other"], "toolCallConfig": {"enabled": True}},
        {"toolCallConfig": {"enabled": False}},
        {"toolCallConfig": {"enabled": True, "toolToggles": {"count": False}}},
    ],
)
def test_an_agents_bounds_are_looked_at_before_a_stored_result(root: Path, profile: dict[str, Any]) -> None:
    """trust 6: the profile as it is now."""
    (root / "agent_profile.json").write_text(json.dumps({"toolCallConfig": {"enabled": True}}))
    named = {"profile": "agent_profile.json"}
    assert call_once(root, settings=named, text="x").output == 0
    (root / "agent_profile.json").write_text(json.dumps(profile))
    refused = call_once(root, settings=named, text="x")
    assert (refused.status, refused.output, refused.replayed) in (("blocked", UNSET, False), ("error", UNSET, False))


def test_a_result_that_nobody_allowed_is_asked_about_before_it_is_replayed(root: Path) -> None:
    """trust 6: a rule that asks now is asked for a result from before; one yes holds for the result."""
    asks: dict[str, Any] = {"policy": {"requireConfirmation": "always"}}
    assert call_once(root, text="x").output == 0
    assert call_once(root, settings=asks, text="x").status == "approvalUnavailable"
    assert call_once(root, settings=asks, answer="deny", text="x").status == "denied"
    seen = call_once(root, settings=asks, answer="allow", text="x")
    assert (seen.status, seen.output, seen.replayed) == ("success", 0, True)
    first = call_once(root, "asked", settings=asks, answer="allow", text="x")
    again = call_once(root, "asked", settings=asks, text="x")
    assert (first.output, again.output, again.replayed) == (1, 1, True)


def test_rows_of_older_versions_are_nobodys(root: Path) -> None:
    """trust 6: a stored result whose caller is not known is not replayed."""
    assert call_once(root, text="x").output == 0
    with contextlib.closing(sqlite3.connect(state_folder() / "tamis.db")) as db, db:
        (secret,) = db.execute("SELECT value FROM secrets WHERE name = 'replays'").fetchone()
        parts = (str(root).encode(), b"\nk")
        old = hmac.digest(secret, b"".join(len(part).to_bytes(8, "big") + part for part in parts), "sha256")
        db.execute("UPDATE replays SET key = ?", (old,))
    again = call_once(root, text="x")
    assert (again.output, again.replayed) == (1, False)


def test_a_hosts_key_holds_for_every_call_of_a_text(root: Path) -> None:
    text = "\n".join(vcp("count", text=name) for name in "ab")

    async def run(text: str) -> list[ExecutionResult]:
        runtime = Runtime(root)
        options = TextOptions(idempotency_key="k")
        results = (await execute_text(runtime.read(text), runtime.call_context(), options)).results
        await runtime.close()
        return results

    assert [(one.output, one.replayed) for one in asyncio.run(run(text))] == [(0, False), (1, False)]
    assert [(one.output, one.replayed) for one in asyncio.run(run(text))] == [(0, True), (1, True)]
    # another text under that key, although its first call is the same
    assert [(one.status, one.attempts) for one in asyncio.run(run(vcp("count", text="a")))] == [("error", 0)]


def test_the_same_call_of_another_text_is_the_same_content(root: Path) -> None:  # ruling 26
    runtime = Runtime(root)

    async def run() -> list[ExecutionResult]:
        found: list[ExecutionResult] = []
        for before in ("", "Some words before it.\n"):
            wire = msgspec.to_builtins(runtime.parse(before + vcp("count", text="a")).calls[0])
            request = CallRequest(call_id=f"c{len(before)}", name="count", wire_call=wire, idempotency_key="k")
            found.append(await execute(request, runtime.call_context()))
        return found

    assert [one.replayed for one in asyncio.run(run())] == [False, True]


def test_the_same_key_many_times_at_once_runs_once(root: Path) -> None:
    runtime = Runtime(root)

    async def run() -> list[ExecutionResult]:
        request = CallRequest(call_id="c", name="count", args={"text": "x"}, idempotency_key="k")
        return list(await asyncio.gather(*(execute(request, runtime.call_context()) for _ in range(20))))

    results = asyncio.run(run())
    assert {result.output for result in results} == {0}
    assert sum(not result.replayed for result in results) == 1


KEYED = """
import asyncio, sys
from pathlib import Path
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
async def main():
    runtime = Runtime(Path(sys.argv[1]))
    around = runtime.call_context(caller=Caller("rpc"))
    result = await execute(CallRequest(call_id="c", name=sys.argv[2], idempotency_key="k"), around)
    print(result.output, result.replayed)
    await runtime.close()
asyncio.run(main())
"""


def test_two_processes_with_one_key_at_the_same_moment_run_it_once(root: Path) -> None:  # F26
    make_tool(
        root,
        "slow",
        "import time\ntime.sleep(0.5)\n" + COUNT,
        securityContext={"fileAccess": {"allowWrite": [".n/**"]}},
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", KEYED, str(root), "slow"], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert sorted(run.communicate()[0] for run in runs) == ["0 False\n", "0 True\n", "0 True\n"]


def wait_for_a_lease() -> None:
    """Until a process has begun a call with a key."""
    file = state_folder() / "tamis.db"

    def has_begun() -> bool:
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db,
        ):
            return bool(db.execute("SELECT count(*) FROM replays").fetchone()[0])
        return False

    until(has_begun)


def killed_in_its_call(root: Path, tool: str) -> None:
    """A process that is killed while it runs a call with the key ``k``."""
    killed = subprocess.Popen([sys.executable, "-c", KEYED, str(root), tool])
    wait_for_a_lease()
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()


def test_the_lease_of_a_killed_process_is_taken_over_for_an_idempotent_tool(root: Path) -> None:
    make_tool(root, "hang", HANG)
    killed_in_its_call(root, "hang")
    make_tool(root, "hang", "print(7)", execution={"idempotent": True})
    result = call_once(root, tool="hang")
    assert (result.output, result.replayed) == (7, False)


def test_a_call_that_was_lost_is_not_run_again_unless_its_tool_is_idempotent(root: Path) -> None:
    make_tool(root, "hang", HANG)
    killed_in_its_call(root, "hang")
    make_tool(root, "hang", "print(7)")
    for _ in range(2):
        lost = call_once(root, tool="hang")
        assert lost.error is not UNSET
        assert lost.error.details is not UNSET
        assert (lost.status, lost.error.type, lost.error.details.code) == ("error", "ServiceError", "callLost")
        assert (lost.attempts, lost.replayed) == (0, False)
    other = call_once(root, tool="hang", text="another content")
    assert other.error is not UNSET
    assert other.error.details is not UNSET
    assert other.error.details.code == "idempotencyMismatch"
    assert call_once(root, "another key", tool="hang").output == 7
    with contextlib.closing(sqlite3.connect(state_folder() / "tamis.db")) as db, db:
        db.execute("UPDATE replays SET created = 0 WHERE result IS NULL")
    assert call_once(root, tool="hang").output == 7


def test_secrets_of_a_call_are_never_on_disk(root: Path) -> None:  # D83
    secret = "s3cret-pa55word-äé"
    properties = {"password": {"type": "string", "x-secret": True}}
    script = "import json, sys\nword = json.load(sys.stdin)['password']\nprint(word, file=sys.stderr)\nprint(json.dumps({word: [word]}))"
    make_tool(root, "login", script, properties=properties)
    first = call_once(root, tool="login", password=secret)
    again = call_once(root, tool="login", password=secret)
    assert first.output == {secret: [secret]}
    assert (again.replayed, again.status) == (True, "success")
    assert secret not in json.dumps([again.output, again.logs, again.observation], ensure_ascii=False)
    assert call_once(root, tool="login", password="other").status == "error"  # the content counts all the same
    for path in state_folder().iterdir():
        data = path.read_bytes()
        for spelling in (secret.encode(), json.dumps(secret).encode()[1:-1], secret.encode("utf-16-le")):
            assert spelling not in data, path.name


def test_results_are_forgotten_by_age_and_by_number(root: Path) -> None:  # retention
    short = {"idempotency": {"keepSeconds": 0}}
    assert [call_once(root, settings=short).output, call_once(root, settings=short).output] == [0, 1]
    few = {"idempotency": {"keep": 2}}
    outputs = [call_once(root, key, settings=few).output for key in ("a", "b", "c", "a", "c")]
    assert outputs == [2, 3, 4, 5, 4]


def test_what_is_too_old_goes_with_any_call_of_a_daemon(root: Path) -> None:  # retention
    call_once(root, "k")

    def kept() -> int:
        with contextlib.closing(sqlite3.connect(state_folder() / "tamis.db")) as db:
            return int(db.execute("SELECT count(*) FROM replays").fetchone()[0])

    assert kept() == 1
    runtime = Runtime(root, {"idempotency": {"keepSeconds": 0}})
    runtime.parts.stays = True

    async def run() -> None:
        await execute(CallRequest(call_id="c", name="count"), runtime.call_context())
        await runtime.close()

    asyncio.run(run())
    assert kept() == 0


def test_a_call_without_a_key_does_not_touch_the_store(root: Path) -> None:
    assert call_once(root, key="").status == "success"
    assert not list(state_folder().glob("tamis.db*"))


def test_one_who_waits_for_another_run_can_be_cancelled(root: Path) -> None:  # V52
    make_tool(root, "hang", HANG)
    runtime = Runtime(root)

    async def run() -> tuple[ExecutionResult, ExecutionResult]:
        request = CallRequest(call_id="c", name="hang", idempotency_key="k")
        first_end, second_end, runs = asyncio.Event(), asyncio.Event(), asyncio.Event()
        told = runtime.call_context(
            cancelled=first_end, on_event=lambda _call, state: state == "executing" and runs.set()
        )
        first = asyncio.ensure_future(execute(request, told))
        await runs.wait()
        second = asyncio.ensure_future(execute(request, runtime.call_context(cancelled=second_end)))
        await asyncio.sleep(0.1)
        assert not second.done()
        second_end.set()
        waited = await second
        first_end.set()
        return waited, await first

    waited, ran = asyncio.run(run())
    assert (waited.status, waited.attempts) == ("cancelled", 0)
    assert ran.status == "cancelled"


@contextlib.contextmanager
def stopped_in_its_call(root: Path, tool: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped while it runs a call with the key ``k``."""
    process = subprocess.Popen([sys.executable, "-c", KEYED, str(root), tool], stdout=subprocess.PIPE, text=True)
    with process:
        wait_for_a_lease()
        process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{process.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)


def test_a_stopped_process_is_waited_for_as_long_as_the_call_may_take(root: Path) -> None:  # ruling 26
    folder = make_tool(root, "wait", "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint(7)")
    runtime = Runtime(root)
    request = CallRequest(call_id="c", name="wait", idempotency_key="k", timeout_ms=300)

    async def run() -> ExecutionResult:
        try:
            return await execute(request, runtime.call_context(caller=Caller("rpc")))
        finally:
            await runtime.close()

    with stopped_in_its_call(root, "wait") as process:
        late = asyncio.run(run())
        assert late.error is not UNSET
        assert late.error.details is not UNSET
        assert (late.status, late.error.type, late.error.details.code) == ("timeout", "TimeoutError", "stillRunning")
        assert f"process {process.pid}, which is stopped" in late.error.message
        assert "nothing was run" in late.error.message
        assert (late.attempts, late.replayed) == (0, False)
        (folder / "go").touch()
        process.send_signal(signal.SIGCONT)
        assert process.communicate()[0] == "7 False\n"
    again = asyncio.run(run())
    assert (again.output, again.replayed) == (7, True)


def test_a_cancel_ends_the_waiting_for_a_stopped_process(root: Path) -> None:  # V52
    make_tool(root, "hang", HANG)
    runtime = Runtime(root)

    async def run() -> ExecutionResult:
        cancelled = asyncio.Event()
        request = CallRequest(call_id="c", name="hang", idempotency_key="k")
        waiting = asyncio.ensure_future(execute(request, runtime.call_context(cancelled=cancelled)))
        while not runtime.parts.store.is_open:
            await asyncio.sleep(0)
        await runtime.parts.store.run(lambda _: None)
        cancelled.set()
        try:
            return await waiting
        finally:
            await runtime.close()

    with stopped_in_its_call(root, "hang") as process:
        assert asyncio.run(run()).status == "cancelled"
        process.kill()


def test_one_that_comes_while_the_first_runs_here_waits_no_longer_than_it_may_take(root: Path) -> None:
    make_tool(root, "hang", HANG)
    runtime = Runtime(root)

    async def run() -> ExecutionResult:
        end, runs = asyncio.Event(), asyncio.Event()
        request = CallRequest(call_id="c", name="hang", idempotency_key="k")
        told = runtime.call_context(
            caller=Caller("rpc"), cancelled=end, on_event=lambda _call, state: state == "executing" and runs.set()
        )
        first = asyncio.ensure_future(execute(request, told))
        await runs.wait()
        second = msgspec.structs.replace(request, timeout_ms=50)
        try:
            return await execute(second, runtime.call_context(caller=Caller("rpc")))
        finally:
            assert not first.done()
            end.set()
            await first
            await runtime.close()

    late = asyncio.run(run())
    assert late.error is not UNSET
    assert "still running here" in late.error.message


@pytest.mark.parametrize(
    ("execution", "timeout_ms", "attempts", "seconds"),
    [
        ({}, None, 1, 30.0),
        ({}, 2_000, 1, 2.0),
        ({"timeoutMs": 4_000}, None, 1, 4.0),
        ({"timeoutMs": 4_000}, 9_000, 1, 4.0),
        ({}, 1_000, 3, 3.0 + 0.1 + 0.2),
        ({"mode": "async"}, None, 1, 500.0),
    ],
)
def test_how_long_another_run_is_waited_for(
    root: Path, execution: dict[str, Any], timeout_ms: int | None, attempts: int, seconds: float
) -> None:
    make_tool(root, "any", execution=execution)
    context = Runtime(root, {"sandbox": {"wallMs": 30_000}, "tasks": {"wallMs": 500_000}}).call_context()
    request = CallRequest(call_id="c", name="any", timeout_ms=timeout_ms)
    margin = MARGIN_S if timeout_ms is None else 0
    assert patience_s(request, context, attempts) == pytest.approx(seconds + margin)


def test_what_is_known_of_who_runs_a_call(tmp_path: Path) -> None:
    store = Store(tmp_path)
    owner = Owner(store)

    async def run() -> list[Sight]:
        def look(db: sqlite3.Connection) -> list[Sight]:
            owner.mark(db)
            db.execute("INSERT INTO owners VALUES ('elsewhere 5 6 7', ?)", (time.time() - 40,))
            db.execute("INSERT INTO owners VALUES ('ahead 5 6 7', ?)", (time.time() + 4_000,))
            names = (owner.token, "elsewhere 5 6 7", "ahead 5 6 7", "nonsense")
            return [sight_of(db, name) for name in names]

        try:
            return await store.run(look)
        finally:
            await store.close()

    here, elsewhere, ahead, nonsense = asyncio.run(run())
    assert (here.process, here.is_here, here.is_stopped) == (os.getpid(), True, False)
    assert (elsewhere.process, elsewhere.silent_s >= 40) == (0, True)
    assert (ahead.silent_s, nonsense) == (0.0, Sight())


def test_a_store_that_cannot_be_opened_costs_no_call(root: Path) -> None:
    state_folder().write_text("a file where the folder should be")
    first, second, _ = run_texts(root, block("r1"), block("r1"), block("r2"))
    assert [first.replayed, second.replayed, second.output] == [False, True, 0]


def held_store() -> sqlite3.Connection:
    """The store's file, made and then held by another process's transaction."""
    asyncio.run(_made())
    holder = sqlite3.connect(state_folder() / "tamis.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    return holder


async def _made() -> None:
    store = Store()
    await store.run(lambda db: db.execute("SELECT 1").fetchone())
    await store.close()


async def keyed(runtime: Runtime, **more: Any) -> ExecutionResult:
    request = CallRequest(call_id="c", name="count", idempotency_key="k", **more)
    return await execute(request, runtime.call_context(caller=Caller("rpc")))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is held is waited for a moment only."""
    for name in ("BUSY_S", "BACK_S", "RETRY_S"):
        monkeypatch.setattr(database, name, 0.05)


def test_two_daemons_with_one_key_run_it_once_though_the_store_is_held_meanwhile(root: Path, impatient: None) -> None:
    # R2: both fell off the store, and the same key ran twice
    holder = held_store()

    async def run() -> list[ExecutionResult]:
        first, second = Runtime(root), Runtime(root)
        both = asyncio.gather(keyed(first), keyed(second))
        await asyncio.sleep(0.5)
        holder.execute("ROLLBACK")
        results = await both
        await first.close()
        await second.close()
        return results

    results = asyncio.run(run())
    assert [(result.output, result.protected) for result in results] == [(0, True), (0, True)]
    assert sorted(result.replayed for result in results) == [False, True]


def test_a_key_whose_store_is_held_for_longer_than_the_call_may_take_runs_nothing(root: Path, impatient: None) -> None:
    # R2: nor does it run unprotected; a call without a key does
    holder = held_store()

    async def run() -> tuple[ExecutionResult, ExecutionResult, ExecutionResult]:
        runtime = Runtime(root)
        held = await keyed(runtime, timeout_ms=300)
        other = CallRequest(call_id="d", name="count")
        unkeyed = await execute(other, runtime.call_context(caller=Caller("rpc")))
        holder.execute("ROLLBACK")
        later = await keyed(runtime)
        await runtime.close()
        return held, unkeyed, later

    held, unkeyed, later = asyncio.run(run())
    assert (held.status, held.attempts, held.protected) == ("error", 0, UNSET)
    assert held.error is not UNSET
    assert held.error.type == "ResourceError"
    assert held.error.details is not UNSET
    assert held.error.details.code == "storeHeld"
    assert "another process has held it" in held.error.message
    assert (unkeyed.output, unkeyed.protected) == (0, UNSET)
    assert (later.output, later.replayed, later.protected) == (1, False, True)


def test_a_keyed_call_says_whether_it_was_protected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # R2: where the file cannot be had, the key holds in this process, and the result says so
    monkeypatch.setattr(database, "RETRY_S", 0.05)
    place = state_folder()
    place.write_text("a file where the folder should be")

    async def run() -> list[ExecutionResult]:
        runtime = Runtime(root)
        found = [await keyed(runtime), await keyed(runtime)]
        place.unlink()
        while runtime.parts.store.problem:
            await asyncio.sleep(0.02)
        found.append(await keyed(runtime))
        await runtime.close()
        # and what was kept in memory is there for a later daemon
        found.append(await keyed(later := Runtime(root)))
        await later.close()
        return found

    results = asyncio.run(run())
    told = [(result.output, result.replayed, result.protected) for result in results]
    assert told == [(0, False, False), (0, True, False), (0, True, True), (0, True, True)]


def test_a_run_that_began_in_memory_is_its_keys_for_all_once_the_file_can_be_had(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "RETRY_S", 0.05)
    place = state_folder()
    place.write_text("a file where the folder should be")

    async def run() -> None:
        first, second = Runtime(root), Runtime(root)
        keys = first.parts.idempotency
        assert await keys.stored("k", {}) is None
        assert not keys.protects("k")
        place.unlink()
        while first.parts.store.problem:
            await asyncio.sleep(0.02)
        with pytest.raises(StillRunning):
            await second.parts.idempotency.stored("k", {}, patience_s=0.05)
        await keys.keep("k", call_result())
        found = await second.parts.idempotency.stored("k", {})
        assert found is not None
        await first.close()
        await second.close()

    asyncio.run(run())


def test_a_look_at_a_key_takes_nothing(root: Path) -> None:
    runtime = Runtime(root)

    async def run(keys: IdempotencyKeys) -> None:
        assert not await keys.has("k")
        assert await keys.stored("k", {}) is None
        assert await keys.has("k")
        keys.drop("k")
        assert not await keys.has("k")
        assert await keys.stored("k", {"other": 1}) is None
        await keys.keep("k", call_result())
        assert await keys.has("k")

    async def both() -> None:
        await run(IdempotencyKeys())
        await run(runtime.parts.idempotency)
        await runtime.close()

    asyncio.run(both())


def test_keys_and_contents_of_every_kind_are_told_apart() -> None:
    values: list[object] = [
        {},
        {"a": 1},
        {"a": "1"},
        {"a": 2**80},
        {"a": "\ud800"},
        {"a": None},
        [],
        "x",
        "\x00",
        {"a": 1.0},
    ]
    result = call_result()

    async def run() -> None:
        keys = IdempotencyKeys()
        for number, value in enumerate(values):
            assert await keys.stored(f"k{number}\ud800", value) is None
            await keys.keep(f"k{number}\ud800", result)
        for number, value in enumerate(values):
            assert (await keys.stored(f"k{number}\ud800", value)) is not None
            other = values[(number + 1) % len(values)]
            with pytest.raises(KeyReused):
                await keys.stored(f"k{number}\ud800", other)
        assert await keys.stored("order", {"b": 1, "a": 2}) is None
        keys.drop("order")
        assert await keys.stored("order", "free again") is None

    asyncio.run(run())


def call_result() -> ExecutionResult:
    from tamis.protocols.contract import Granted, Permissions, Usage

    return ExecutionResult(
        call_id="c",
        tool_id="t",
        version="1.0.0",
        status="success",
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )


def test_results_are_counted_without_being_read(tmp_path: Path) -> None:
    # a shelf at its bound would read 256 MiB for each result that is added
    plans: list[str] = []

    def work(db: sqlite3.Connection) -> None:
        asked: list[str] = []
        db.set_trace_callback(asked.append)
        forget_old(db, IdempotencySettings())
        db.set_trace_callback(None)
        plans.extend(
            str(row[3]) for query in asked for row in db.execute(f"EXPLAIN QUERY PLAN {query}") if "total" in query
        )

    async def run() -> None:
        store = Store(tmp_path)
        await store.run(work)
        await store.close()

    asyncio.run(run())
    assert plans
    assert all("COVERING INDEX" in plan for plan in plans)
