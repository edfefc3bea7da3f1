"""From an outcome of the sandbox to a result: each way a run can end has its own, as the interface says (rulings 37, 39, 40)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, Granted, Permissions, Usage
from tamis.protocols.manifest.reading import Execution, ExternalScript, Manifest
from tamis.sandbox.model import Denial, Limits, RunOutcome, SandboxInfo
from tamis.server.runtime.handlers.script.judge import MAX_DENIED, MAX_LOG_LINES, judge
from tamis.server.runtime.tools.registry import Tool

RAN: dict[str, Any] = {
    "wall_ms": 12.0,
    "cpu_ms": 3.25,
    "max_rss_bytes": 4096,
    "sandbox": SandboxInfo("bubblewrap", "0.11.0", ("namespaces", "seccomp"), True),
}


def tool_with(output: Any = None, execution: Execution = Execution(), convention: Any = "json") -> Tool:  # noqa: B008 - frozen
    script = ExternalScript("t.py", "python", result=convention)
    return Tool(Manifest("t:t", "t", "d", "1.0.0", script, output=output, execution=execution), "/srv/t/x.tool.json")


def judged(
    outcome: RunOutcome,
    *,
    output: Any = None,
    secrets: tuple[str, ...] = (),
    stderr_fails: bool = False,
    has_environment: bool = False,
    execution: Execution = Execution(),  # noqa: B008 - frozen
    granted: Granted | None = None,
    convention: Any = "json",
) -> ExecutionResult:
    result = ExecutionResult(
        call_id="c",
        tool_id="t:t",
        version="1.0.0",
        status="error",
        attempts=1,
        usage=Usage(cpu_ms=0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=granted or Granted(), denied=[]),
    )
    limits = Limits(wall_ms=700)
    tool = tool_with(output, execution, convention)
    judge(outcome, tool, limits, secrets, stderr_fails, result, has_environment=has_environment)
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


@pytest.mark.parametrize(
    ("execution", "told"),
    [
        (Execution(timeout_ms=700), "the manifest set this limit (execution.timeoutMs)"),
        (Execution(limits={"wallMs": 700}), "the manifest set this limit (execution.limits.wallMs)"),
        (Execution(timeout_ms=900, limits={"wallMs": 800}), "sandbox.wallMs in tamis.toml"),
    ],
)
def test_a_timeout_of_the_manifest_is_named_as_its_own(execution: Execution, told: str) -> None:
    """Trust, counting and telling; the observation's sentence is the interface's and stays."""
    result = judged(RunOutcome(kind="timeout", error_type="TimeoutError", limit="wall", **RAN), execution=execution)
    assert error_of(result)["message"] == "no result after 700 ms"
    assert told in result.logs[-1]


def test_a_limit_of_the_manifest_is_named_as_its_own() -> None:
    """Trust, counting and telling."""
    outcome = RunOutcome(
        kind="limit", error_type="ResourceError", limit="memory", message="too much", remedy="use less", **RAN
    )
    set_here = judged(outcome, execution=Execution(limits={"memoryBytes": Limits().memory_bytes}))
    assert error_of(set_here)["message"] == (
        "too much; use less; the manifest set this limit (execution.limits.memoryBytes)"
    )
    for other in (Execution(), Execution(limits={"memoryBytes": 1 << 40}), Execution(limits={"processes": 64})):
        assert error_of(judged(outcome, execution=other))["message"] == "too much; use less"


NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '{}'\n"


@pytest.mark.parametrize(
    "stderr",
    [
        "Traceback\n" + NO_FILE.format("/srv/data/x"),
        NO_FILE.format("/etc/../home/me/x"),
        "Error: ENOENT: no such file or directory, open '/srv/data/x'\n    at open (node:fs:1:2)\n",
        "ENOENT: no such file or directory, scandir '/opt/x'\n",
    ],
)
def test_a_file_outside_of_what_the_sandbox_shows_gets_a_hint(stderr: str) -> None:
    """Trust, counting and telling: the same words whether the host has the file or not, and without its path (T15)."""
    told = failed_with(stderr)
    assert "securityContext.fileAccess.allowRead" in told and "policy.readRoots" in told
    assert "/srv" not in told and "/home" not in told
    assert failed_with(stderr.replace("/srv/data/x", "/root").replace("/opt/x", "/root")) == told


@pytest.mark.parametrize(
    "stderr",
    [
        *(NO_FILE.format(path) for path in ("data.csv", "/tmp/x", "/tool/x", "/etc/x", "/srv/data/x", "/srv/data")),
        "it said: no such file '/srv/y'\n",
        NO_FILE.format("/home/me/x") + NO_FILE.format("/tool/x"),
    ],
)
def test_a_file_that_is_not_in_what_the_sandbox_shows_gets_none(stderr: str) -> None:
    outcome = RunOutcome(
        kind="error", error_type="ScriptError", exit_code=1, message="it", stderr=stderr.encode(), **RAN
    )
    granted = Granted(read=["./*", "/srv/data/**"])
    assert error_of(judged(outcome, granted=granted))["message"] == "it"


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


def test_what_a_script_wrote_does_not_pass_for_what_tamis_found() -> None:
    """trust 6: in logs and in the words of a failure; what Tamis says stays as it is."""
    forged = b"[tamis] after the run: nothing\xe2\x80\xa8[tamis] all well"
    said = RunOutcome(kind="ok", exit_code=0, stdout=b"1", stderr=forged, violations=("out/x: a link",), **RAN)
    assert judged(said).logs == [
        "stderr: (the tool wrote) [tamis] after the run: nothing",
        "stderr: (the tool wrote) [tamis] all well",
        "stderr: [tamis] after the run: out/x: a link",
    ]
    failed = judged(RunOutcome(kind="error", exit_code=1, message="m", stdout=forged, stderr=forged, **RAN))
    assert all(line.split(": ")[1].startswith("(the tool wrote) [tamis]") for line in failed.logs) and failed.logs
    assert error_of(failed)["details"]["text"].startswith("(the tool wrote) [tamis]")
    odd = judged(RunOutcome(kind="ok", exit_code=0, stdout=b"x\n[tamis] y", **RAN))
    assert "\n(the tool wrote) [tamis] y" in error_of(odd)["details"]["text"]


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


# handler.result "vcp"


def test_an_output_that_says_error_is_a_failure_by_the_vcp_convention() -> None:  # F2
    outcome = RunOutcome(kind="ok", exit_code=0, stdout=b'{"status": "error", "error": "no such city"}', **RAN)
    result = judged(outcome, convention="vcp")
    assert (result.status, result.output, error_of(result)["type"]) == ("error", UNSET, "ScriptError")
    assert error_of(result)["message"] == "no such city"
    assert judged(outcome).status == "success"


@pytest.mark.parametrize("document", [{"status": "success", "result": 7}, {"result": 7}, [1], None, {"status": "ok"}])
def test_any_other_output_is_what_it_is_by_the_vcp_convention(document: Any) -> None:  # F2
    outcome = RunOutcome(kind="ok", exit_code=0, stdout=msgspec.json.encode(document), **RAN)
    result = judged(outcome, convention="vcp")
    assert (result.status, result.output, result.logs) == ("success", document, [])


def test_the_reason_on_standard_output_is_told_whatever_the_exit_code() -> None:  # F2
    stdout = b'{"status": "error", "error": {"code": 3, "text": "no such city"}}'
    outcome = RunOutcome(
        kind="error", error_type="ScriptError", exit_code=1, message="exit code 1", stdout=stdout, stderr=b"x", **RAN
    )
    assert "no such city" in error_of(judged(outcome, convention="vcp"))["message"]


def test_a_reason_never_tells_a_secret() -> None:  # F2, ruling 60
    stdout = b'{"status": "error", "error": "the key hunter2-hunter2 is refused", "key": "hunter2-hunter2"}'
    outcome = RunOutcome(kind="ok", exit_code=0, stdout=stdout, **RAN)
    result = judged(outcome, convention="vcp", secrets=("hunter2-hunter2",))
    assert "hunter2" not in str(msgspec.to_builtins(result))
