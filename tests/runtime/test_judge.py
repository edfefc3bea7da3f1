"""From an outcome of the sandbox to a result: each way a run can end has its own, as the interface says (rulings 37, 39, 40)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, Granted, Permissions, Usage
from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tamis.sandbox.model import Denial, Limits, RunOutcome, SandboxInfo
from tamis.server.runtime.registry.registry import Tool
from tamis.server.runtime.scripts.judge import MAX_DENIED, MAX_LOG_LINES, judge

RAN: dict[str, Any] = {
    "wall_ms": 12.0,
    "cpu_ms": 3.25,
    "max_rss_bytes": 4096,
    "sandbox": SandboxInfo("bubblewrap", "0.11.0", ("namespaces", "seccomp"), True),
}


def tool_with(output: Any = None) -> Tool:
    script = ExternalScript("t.py", "python")
    return Tool(Manifest("t:t", "t", "d", "1.0.0", script, output=output), "/srv/t/x.tool.json")


def judged(
    outcome: RunOutcome,
    *,
    output: Any = None,
    secrets: tuple[str, ...] = (),
    stderr_fails: bool = False,
    has_environment: bool = False,
) -> ExecutionResult:
    result = ExecutionResult(
        call_id="c",
        tool_id="t:t",
        version="1.0.0",
        status="error",
        attempts=1,
        usage=Usage(cpu_ms=0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
    judge(
        outcome, tool_with(output), Limits(wall_ms=700), secrets, stderr_fails, result, has_environment=has_environment
    )
    return result


def error_of(result: ExecutionResult) -> dict[str, Any]:
    assert result.error is not UNSET, result
    return msgspec.to_builtins(result.error)


def test_one_json_document_is_a_success() -> None:  # ruling 37
    result = judged(RunOutcome(kind="ok", exit_code=0, stdout=b'{"a": 1}\n', stderr=b"note", **RAN))
    assert (result.status, result.output, result.error, result.logs) == ("success", {"a": 1}, UNSET, ["stderr: note"])
    assert msgspec.to_builtins(result.usage) == {"cpuMs": 3.25, "maxRssBytes": 4096}
    assert msgspec.to_builtins(result.sandbox) == {
        "backend": "bubblewrap",
        "version": "0.11.0",
        "layers": ["namespaces", "seccomp"],
        "warm": True,
    }
    assert result.attempts == 1


@pytest.mark.parametrize("limit", ["cpu", "memory", "processes", "files", "stdout", "stderr"])
def test_a_limit_is_a_resource_error_that_names_it(limit: Any) -> None:  # D16, D22, D79
    outcome = RunOutcome(
        kind="limit", error_type="ResourceError", limit=limit, message="too much", remedy="less", stderr=b"why", **RAN
    )
    result = judged(outcome)
    assert result.status == "error"
    assert error_of(result) == {
        "type": "ResourceError",
        "message": "too much; less",
        "details": {"text": "why", "limit": limit},
    }


def test_a_timeout_has_its_own_status_and_words() -> None:  # D15, ruling 40
    result = judged(RunOutcome(kind="timeout", error_type="TimeoutError", limit="wall", stderr=b"slow", **RAN))
    assert result.status == "timeout"
    error = error_of(result)
    details = {"limit": "wall", "text": "slow"}
    assert error == {"type": "TimeoutError", "message": "no result after 700 ms", "details": details}
    for setting in ("timeoutMs", "execution.timeoutMs", "sandbox.wallMs"):
        assert setting in result.logs[-1]


def failed_with(stderr: str, *, has_environment: bool = False) -> str:
    outcome = RunOutcome(
        kind="error", error_type="ScriptError", exit_code=1, message="it", stderr=stderr.encode(), **RAN
    )
    return error_of(judged(outcome, has_environment=has_environment))["message"]


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        (
            "Traceback\nModuleNotFoundError: No module named 'numpy'\n",
            "'numpy', name its package in a requirements.txt",
        ),
        ("ModuleNotFoundError: No module named 'google.cloud'\n", "'google', name its package in a requirements.txt"),
        (
            "Error: Cannot find module 'lodash'\nRequire stack:\n- /tool/x.js\n",
            "'lodash', name it among the dependencies",
        ),
        ("Error: Cannot find module 'lodash/fp'\n", "'lodash', name it among"),
        (
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /tool/x.mjs\n",
            "'@a/b', name it among",
        ),
        (
            'error: Cannot find package "zod" from "/tool/x.ts"\n',
            "'zod', name it among the dependencies of a package.json",
        ),
    ],
)
def test_a_package_that_is_not_there_is_said_with_the_file_that_would_bring_it(stderr: str, told: str) -> None:
    assert told in failed_with(stderr)
    assert failed_with(stderr, has_environment=True) == "it", "what is declared was installed"


@pytest.mark.parametrize(
    "stderr",
    [
        "ModuleNotFoundError: No module named 'tkinter'\n",
        "ModuleNotFoundError: No module named '_tkinter'\n",
        "Error: Cannot find module './helper'\n",
        "Error: Cannot find module '/tool/x.js'\n",
        "Error: Cannot find module '../lib/a'\n",
        "print: No module named 'numpy'\n",
    ],
)
def test_what_no_package_would_bring_gets_no_such_advice(stderr: str) -> None:
    assert failed_with(stderr) == "it"


def test_a_signal_comes_with_what_helps() -> None:
    outcome = RunOutcome(
        kind="error", error_type="ScriptError", exit_code=139, signal="SIGSEGV", message="it died", remedy="so", **RAN
    )
    assert error_of(judged(outcome))["message"] == "it died; so"


def test_a_script_that_failed_gives_its_exit_code_signal_and_last_words() -> None:  # D21, D24
    outcome = RunOutcome(
        kind="error", error_type="ScriptError", exit_code=139, signal="SIGSEGV", message="it died", stderr=b"x", **RAN
    )
    details = error_of(judged(outcome))["details"]
    assert details == {"text": "x", "exitCode": 139, "signal": "SIGSEGV"}


def test_an_exit_code_of_zero_is_said_where_the_output_is_wrong() -> None:
    error = error_of(judged(RunOutcome(kind="ok", exit_code=0, stdout=b"hello", **RAN)))
    assert (error["type"], error["details"]["exitCode"]) == ("OutputFormatError", 0)
    assert "hello" in error["details"]["text"]


def test_no_sandbox_is_said_with_the_remedy_and_nothing_ran() -> None:  # ruling 39
    result = judged(RunOutcome(kind="unavailable", message="no namespaces", remedy="allow them"))
    assert (result.status, result.sandbox, result.attempts) == ("error", None, 0)
    assert error_of(result) == {"type": "SandboxUnavailable", "message": "no namespaces; fix: allow them"}


@pytest.mark.parametrize(
    ("outcome", "status", "error"),
    [
        (RunOutcome(kind="refused", error_type="SecurityError", message="no"), "error", "SecurityError"),
        (RunOutcome(kind="limit", error_type="ResourceError", limit="stdin", message="n"), "error", "ResourceError"),
        (RunOutcome(kind="cancelled", message="early"), "cancelled", ""),
    ],
)
def test_what_never_ran_counts_no_attempt_and_had_no_sandbox(outcome: RunOutcome, status: str, error: str) -> None:
    result = judged(outcome)
    assert (result.status, result.sandbox, result.attempts) == (status, None, 0)
    assert (error_of(result)["type"] if result.error is not UNSET else "") == error


def test_what_was_cancelled_while_it_ran_counts_and_had_one() -> None:  # ruling 40
    result = judged(RunOutcome(kind="cancelled", **RAN))
    assert (result.status, result.error, result.attempts) == ("cancelled", UNSET, 1)
    assert result.sandbox is not None


KINDS = [
    RunOutcome(kind="error", error_type="ScriptError", exit_code=1, message="m", **RAN),
    RunOutcome(kind="timeout", error_type="TimeoutError", limit="wall", **RAN),
    RunOutcome(kind="limit", error_type="ResourceError", limit="memory", message="m", **RAN),
    RunOutcome(kind="ok", exit_code=0, stdout=b"no json", **RAN),
    RunOutcome(kind="ok", exit_code=0, stdout=b'"text"', **RAN),
    RunOutcome(kind="unavailable", message="m", **RAN),
]


@pytest.mark.parametrize("outcome", KINDS, ids=lambda outcome: f"{outcome.kind}-{outcome.stdout.decode()}")
def test_refused_hosts_are_said_however_the_run_ended(outcome: RunOutcome) -> None:  # D17, D75
    denial = Denial("a.example:443", "not granted")
    outcome = msgspec.structs.replace(outcome, denied_hosts=("a.example:443",), denials=(denial,))
    result = judged(outcome, output={"type": "integer"})
    assert [(item.kind, item.value, item.reason) for item in result.permissions.denied] == [
        ("network", "a.example:443", "not granted")
    ]
    assert error_of(result)["details"]["deniedHosts"] == ["a.example:443"]


def test_refused_hosts_are_said_when_the_tool_succeeded() -> None:
    result = judged(RunOutcome(kind="ok", exit_code=0, stdout=b"1", denied_hosts=("a.example:80",), **RAN))
    assert (result.status, result.error) == ("success", UNSET)
    assert [item.value for item in result.permissions.denied] == ["a.example:80"]


def test_endless_refusals_are_bounded() -> None:
    hosts = tuple(f"h{number}.example:443" for number in range(10_000))
    result = judged(RunOutcome(kind="error", exit_code=1, message="m", denied_hosts=hosts, **RAN))
    assert len(result.permissions.denied) == len(error_of(result)["details"]["deniedHosts"]) == MAX_DENIED


def test_what_was_removed_after_the_run_is_a_line_of_the_log() -> None:
    result = judged(
        RunOutcome(kind="ok", exit_code=0, stdout=b"1", violations=("out/x: a special file was removed",), **RAN)
    )
    assert result.logs == ["stderr: [tamis] after the run: out/x: a special file was removed"]
    assert result.status == "success", "it is no failure of the script"


def test_secrets_are_hidden_in_everything_that_a_script_printed() -> None:  # D83
    said = b"key hunter2-hunter2 \xff\x1b[31m"
    for outcome in (
        RunOutcome(kind="error", exit_code=1, message="m", stdout=said, stderr=said, **RAN),
        RunOutcome(kind="ok", exit_code=0, stdout=said, stderr=said, **RAN),
    ):
        told = msgspec.json.encode(judged(outcome, secrets=("hunter2-hunter2",))).decode()
        assert "hunter2" not in told
        assert "key ***" in told


def test_logs_are_bounded_and_say_so() -> None:  # D22, D27
    result = judged(RunOutcome(kind="ok", exit_code=0, stdout=b"1", stderr=b"line\n" * 10_000, **RAN))
    assert (len(result.logs), result.logs_truncated) == (MAX_LOG_LINES, True)
