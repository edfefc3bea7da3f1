"""The table of outcomes: first match wins."""

from __future__ import annotations

import pytest

from tamis.sandbox.classify import Ending, Pressure, Verdict, classify
from tamis.sandbox.model import Language, Limits

LIMITS = Limits(cpu_seconds=2)


def verdict(
    ending: Ending = "exit", code: int | None = 0, cpu_ms: float = 0, stderr: bytes = b"", language: Language = "python"
) -> Verdict:
    return classify(ending, code, cpu_ms, stderr, LIMITS, language)


@pytest.mark.parametrize(
    ("ending", "code", "cpu_ms", "stderr", "expected"),
    [
        ("exit", 0, 0, b"", ("ok", "", None)),
        ("exit", 0, 0, b"MemoryError", ("ok", "", None)),
        ("exit", 1, 0, b"Traceback\nValueError: x\n", ("error", "ScriptError", None)),
        ("exit", 1, 0, b"OSError: [Errno 12] Cannot allocate memory\n", ("limit", "ResourceError", "memory")),
        ("exit", None, 0, b"bwrap: no\n", ("unavailable", "SandboxUnavailable", None)),
        ("wall", 137, 0, b"", ("timeout", "TimeoutError", "wall")),
        ("wall", 0, 0, b"MemoryError", ("timeout", "TimeoutError", "wall")),
        ("cancelled", 137, 0, b"", ("cancelled", "", None)),
        ("stdout", 137, 0, b"", ("limit", "ResourceError", "stdout")),
        ("stderr", None, 0, b"", ("limit", "ResourceError", "stderr")),
        ("memory", 137, 0, b"", ("limit", "ResourceError", "memory")),
        ("files", 137, 0, b"", ("limit", "ResourceError", "files")),
        ("exit", 152, 0, b"", ("limit", "ResourceError", "cpu")),
        ("exit", 137, 2001, b"", ("limit", "ResourceError", "cpu")),
        ("exit", 137, 100, b"", ("error", "ScriptError", None)),
        ("exit", 153, 0, b"", ("limit", "ResourceError", "files")),
        ("exit", 159, 0, b"", ("error", "SecurityError", None)),
        ("exit", 255, 0, b"", ("error", "ScriptError", None)),
        ("exit", 1, 0, b"Traceback\nMemoryError\n", ("limit", "ResourceError", "memory")),
        ("exit", 1, 0, b"numpy.core._exceptions._ArrayMemoryError: Unable\n", ("limit", "ResourceError", "memory")),
        ("exit", 1, 0, b"MemoryError\nValueError: then another\n", ("error", "ScriptError", None)),
        ("exit", 1, 0, b"RuntimeError: can't start new thread\n", ("limit", "ResourceError", "processes")),
        ("exit", 127, 0, b"sh: 1: exec: /x: not found\n", ("unavailable", "SandboxUnavailable", None)),
        ("exit", 127, 0, b"my own words\n", ("error", "ScriptError", None)),
    ],
)
def test_python_ending(
    ending: Ending, code: int | None, cpu_ms: float, stderr: bytes, expected: tuple[str, str, str | None]
) -> None:
    found = verdict(ending, code, cpu_ms, stderr)
    assert (found.kind, found.error_type, found.limit) == expected


def test_v8_heap_message_is_read_above_its_stack() -> None:
    said = b"<--- Last few GCs --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n 1: 0x1\n 2: 0x2\n"
    found = verdict("exit", 134, 0, said, "nodejs")
    assert (found.kind, found.limit, found.suspected) == ("limit", "memory", True)
    # R6: the sentence showed the last line of the stack
    assert found.message.endswith("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory")


@pytest.mark.parametrize(("code", "signal"), [(-9, "SIGKILL"), (137, "SIGKILL"), (143, "SIGTERM"), (-200, None)])
def test_a_sandbox_that_a_signal_ended_was_ended_from_outside(code: int, signal: str | None) -> None:
    found = classify("exit", None, 0, b"the script's own words", LIMITS, "python", monitor_code=code)  # R6
    assert (found.kind, found.error_type, found.signal) == ("error", "ResourceError", signal)
    assert "from outside" in found.message


@pytest.mark.parametrize("code", [None, 0, 1, 128])
def test_a_sandbox_that_ended_by_itself_without_a_word_is_unavailable(code: int | None) -> None:
    found = classify("exit", None, 0, b"", LIMITS, "python", monitor_code=code)
    assert (found.kind, found.error_type) == ("unavailable", "SandboxUnavailable")


def test_what_is_read_off_last_words_is_only_suspected() -> None:
    assert verdict("exit", 1, 0, b"MemoryError\n").suspected
    assert not verdict("memory", 137).suspected


def test_signal_is_guessed_from_the_exit_code() -> None:
    assert verdict("exit", 139).signal == "SIGSEGV"
    assert verdict("exit", 1).signal is None


@pytest.mark.parametrize("code", [129, 134, 137, 139, 152, 153, 159, 255])
def test_exit_code_is_no_signal_where_it_is_known(code: int) -> None:
    """Trust, counting and telling: `details.signal` tells a crash from an exit code."""
    by_itself = classify("exit", code, 0, b"", LIMITS, "python", ended_by=0)
    assert (by_itself.error_type, by_itself.signal) == ("ScriptError", None)
    assert by_itself.message == f"the script ended with exit code {code}"


def test_signal_that_is_known_is_said_plainly() -> None:
    crash = classify("exit", 139, 0, b"", LIMITS, "python", ended_by=11)
    assert (crash.signal, crash.message) == ("SIGSEGV", "the script ended with exit code 139 (SIGSEGV)")
    assert classify("exit", 163, 0, b"", LIMITS, "python", ended_by=35).signal is None
    assert "perhaps" in verdict("exit", 139).message


@pytest.mark.parametrize("code", [1, 132, 134, 135, 137, 139, 143, 152, 153, 159])
def test_every_failure_says_what_helps(code: int) -> None:
    found = verdict("exit", code)
    assert found.message and found.remedy


@pytest.mark.parametrize("stderr", [b"OSError: [Errno 28] No space left on device\n", b"ENOSPC: no space left\n"])
def test_full_place_may_be_either_of_two(stderr: bytes) -> None:
    remedy = verdict("exit", 1, 0, stderr).remedy
    assert "sandbox.tmpBytes for /tmp" in remedy and "/dev/shm always holds 16 MiB" in remedy


def test_crash_says_what_does_that() -> None:
    assert "native package" in verdict("exit", 139).remedy
    assert "/dev/shm" in verdict("exit", 135).remedy


def pressed(pressure: Pressure, ending: Ending = "exit", code: int | None = 137) -> Verdict:
    return classify(ending, code, 0, b"", LIMITS, "python", pressure)


@pytest.mark.parametrize("code", [0, 1, 137, None])
def test_process_that_the_group_ended_for_memory_decides(code: int | None) -> None:
    found = pressed(Pressure(oom_kills=1, at_limit=True), code=code)
    assert (found.kind, found.limit, found.suspected) == ("limit", "memory", False)
    assert "256 MiB" in found.message and "memoryBytes" in found.remedy


def test_kill_for_the_machines_memory_is_not_called_the_scripts_limit() -> None:
    found = pressed(Pressure(oom_kills=1))
    assert (found.kind, found.limit) == ("limit", "memory")
    assert "256 MiB" not in found.message and "memoryBytes" not in found.remedy


def test_limit_that_was_met_by_caches_alone_is_no_offence() -> None:
    assert pressed(Pressure(at_limit=True), code=0).kind == "ok"
    assert pressed(Pressure(at_limit=True), code=1).error_type == "ScriptError"


def test_refused_forks_count_only_when_the_script_failed() -> None:
    assert pressed(Pressure(refused_forks=3), code=0).kind == "ok"
    found = pressed(Pressure(refused_forks=3), code=1)
    assert (found.kind, found.limit, found.suspected) == ("limit", "processes", False)


@pytest.mark.parametrize("ending", ["wall", "stdout", "cancelled", "files"])
def test_what_was_done_here_comes_before_what_the_group_saw(ending: Ending) -> None:
    assert pressed(Pressure(oom_kills=1, at_limit=True), ending) == pressed(Pressure(), ending)


def test_run_that_was_ended_after_a_kill_is_judged_by_the_kill() -> None:
    assert pressed(Pressure(oom_kills=1, at_limit=True), "oom", None).limit == "memory"
