"""Calls that write in one folder, and calls that find no room for a sandbox, as a host sees them (trust 9; R1)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.sandbox import host, probe
from tamis.sandbox.job import Binary
from tamis.sandbox.paths import claims
from tamis.sandbox.paths.walk import open_absolute
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.doctor import examine
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.health import health
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool
from tests.sandbox import access

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's folders are lent to nobody")
WRITES = {"fileAccess": {"allowWrite": ["out"]}}


def _wait_for(runtime: Runtime, folder: Path, timeout_ms: int, *, cancel: bool) -> tuple[ExecutionResult, list[str]]:
    """A call whose folder another run has all the time; its end, and what was told. With `cancel` it is cancelled while it waits."""
    told: list[str] = []

    async def run() -> ExecutionResult:
        cancelled = asyncio.Event()

        def tell(_call: str, text: str) -> None:
            told.append(text)
            if cancel:
                cancelled.set()

        context = runtime.call_context(cancelled=cancelled).having(on_progress=tell)
        return await execute(CallRequest(call_id="call-1", name="test:out", timeout_ms=timeout_ms), context)

    with open_absolute(str(folder)) as opened:
        held = claims.claim(opened)
        assert held is not None
        try:
            return asyncio.run(run()), told
        finally:
            held.release()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    access.without_mounts(monkeypatch, tmp_path)
    folder = make_tool(tmp_path / "root", "test:out", "print('{}')", securityContext=WRITES) / "out"
    folder.mkdir()
    probe.probe()
    return Path(os.path.realpath(folder))


@root_only
def test_cancel_while_a_folder_is_waited_for_is_answered_at_once_with_no_attempt(tmp_path: Path, folder: Path) -> None:
    runtime = Runtime(tmp_path / "root", {"sandbox": {"wallMs": 86_400_000}})
    result, _ = _wait_for(runtime, folder, 86_400_000, cancel=True)
    assert (result.status, result.attempts, result.sandbox) == ("cancelled", 0, None)


@root_only
def test_waiting_for_a_folder_counts_into_the_timeout_and_is_told(tmp_path: Path, folder: Path) -> None:
    result, told = _wait_for(Runtime(tmp_path / "root"), folder, 500, cancel=False)
    assert (result.status, result.attempts) == ("timeout", 0)
    assert len(told) == 1 and str(folder) in told[0]


@root_only
def test_doctor_names_folders_that_are_lent(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "root" / "tamis.toml").write_text(f'[policy]\nwriteRoots = ["{tmp_path}"]\n')
    lines = [line for line in examine(Runtime(tmp_path / "root"))["checks"] if line["name"] == "writable folder"]
    assert len(lines) == 1 and str(tmp_path) in lines[0]["text"] and "this test does without" in lines[0]["text"]


@root_only
def test_doctor_puts_back_what_a_killed_daemon_had_lent_and_says_so(tmp_path: Path, folder: Path) -> None:
    from tamis.sandbox import uids
    from tamis.sandbox.paths import lending

    with open_absolute(str(folder)) as opened:
        claim = claims.claim(opened)
        assert claim is not None
        lending.Ownership(uids.FIRST).lend(opened, lambda before: claim.write_down(opened, uids.FIRST, before))
        claim.release(done=False)
    assert folder.stat().st_uid == uids.FIRST
    notes = [line["text"] for line in examine(Runtime(tmp_path / "root"))["checks"] if line["name"] == "sandbox note"]
    assert folder.stat().st_uid == 0
    assert any(str(folder) in note and "belongs to the uid 0 again" in note for note in notes)


@pytest.fixture
def wanting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine on which no further process can be started."""
    path = tmp_path / "bwrap"
    path.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap 0.11.0" && exit 0\n'
        'echo "bwrap: Creating new namespace failed: Resource temporarily unavailable" >&2\nexit 1\n'
    )
    path.chmod(0o755)
    probe.forget()
    monkeypatch.setattr(host, "find_binary", lambda: Binary(str(path)))
    yield
    monkeypatch.undo()
    probe.forget()


def test_call_without_room_for_a_process_is_a_resource_error_and_health_names_the_cause(
    tmp_path: Path, wanting: None
) -> None:
    make_tool(tmp_path / "root", "test:echo")
    runtime = Runtime(tmp_path / "root", {"sandbox": {"backend": "bubblewrap"}})
    call = CallRequest(call_id="call-1", name="test:echo", args={"text": "x"})
    result = asyncio.run(execute(call, runtime.call_context()))
    assert result.error is not UNSET
    assert (result.status, result.error.type, result.attempts) == ("error", "ResourceError", 0)
    assert "limit of processes" in result.error.message
    state = health(runtime)
    assert state["status"] == "degraded"
    assert any("limit of processes" in problem for problem in state["problems"])
