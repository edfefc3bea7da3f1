"""One call from a name to a result: every way it can end is a result of the interface's form."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, Granted, Permissions, Usage
from tamis.protocols.observation import observation
from tamis.sandbox import model as sandbox
from tamis.sandbox.backends import unsandboxed
from tamis.server.runtime.calls.model import Answer, CallContext, CallRequest, Question
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.handlers.script.judge import UNSANDBOXED
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.services import Parts
from tamis.server.runtime.settings.config import SandboxSettings, Settings
from tamis.server.runtime.tools.reading import load_registry
from tests.runtime.run_tool import error_of, run_tool
from tests.sample_tools import make_tool

HANG = "import time\ntime.sleep(10**6)"


def test_a_tool_gets_its_arguments_and_gives_its_output(tmp_path: Path) -> None:  # D19, D20, D25
    make_tool(tmp_path, "test:echo")
    result = run_tool(tmp_path, "test:echo", {"text": "héllo 你好 😀"})
    assert (result.status, result.output) == ("success", {"text": "héllo 你好 😀"})
    assert result.attempts == 1
    assert result.version == "1.0.0"
    assert result.duration_ms > 0
    assert result.sandbox is not None
    assert result.sandbox.backend == "bubblewrap"
    assert "seccomp" in " ".join(result.sandbox.layers)
    assert result.observation.startswith("Observation: Tool test:echo executed successfully. Result: {")


def test_a_text_result_is_shown_as_it_is(tmp_path: Path) -> None:  # A27
    make_tool(tmp_path, "ReadWorldStateTool", "print('\"sunny\"')")
    result = run_tool(tmp_path, "ReadWorldStateTool")
    assert result.observation == "Observation: Tool ReadWorldStateTool executed successfully. Result: sunny"


def test_the_working_folder_is_the_scripts_own(tmp_path: Path) -> None:  # D11
    folder = make_tool(tmp_path, "test:cwd", "import json, os\nprint(json.dumps(sorted(os.listdir('.'))))")
    (folder / "data.txt").write_text("x")
    assert run_tool(tmp_path, "test:cwd").output == ["data.txt", "tool.py", "x.tool.json"]


def test_an_unknown_tool_is_a_result_with_a_suggestion(tmp_path: Path) -> None:  # D58, F25, ruling 3
    make_tool(tmp_path, "text:statistics")
    result = run_tool(tmp_path, "text:statistic")
    assert result.status == "error"
    error = error_of(result)
    assert error["type"] == "UnknownTool"
    assert error["details"]["errors"][0]["suggestion"] == "text:statistics"
    assert result.observation == (
        "Observation: Error - Unknown tool ID 'text:statistic', did you mean 'text:statistics'?"
    )
    assert result.attempts == 0


def test_a_version_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:  # D90
    make_tool(tmp_path, "test:echo")
    error = error_of(run_tool(tmp_path, "test:echo@^2"))
    assert error["type"] == "UnknownTool"
    assert error["details"]["code"] == "versionUnsatisfied"
    assert "1.0.0" in error["message"]
    assert run_tool(tmp_path, "test:echo@^1", {}).status == "success"


def test_an_unknown_parameter_is_refused_with_the_seeds_words(tmp_path: Path) -> None:  # A17, A28, A40
    make_tool(tmp_path, "GetPlayerInfo", properties={"player_id": {"type": "string"}})
    result = run_tool(tmp_path, "GetPlayerInfo", {"playerId": "player123"})
    assert result.observation == (
        "Observation: Error - Invalid parameters for GetPlayerInfo: "
        "Unknown parameter 'playerId', did you mean 'player_id'?"
    )
    problem = error_of(result)["details"]["errors"][0]
    assert (problem["code"], problem["path"], problem["suggestion"]) == ("VA403", "/playerId", "player_id")


def test_a_missing_parameter_is_refused_and_is_not_an_empty_text(tmp_path: Path) -> None:  # F3, D59
    make_tool(tmp_path, "test:write", required=["text"])
    result = run_tool(tmp_path, "test:write")
    assert "Missing required parameter 'text' (string)" in result.observation
    assert run_tool(tmp_path, "test:write", {"text": ""}).output == {"text": ""}


def test_a_script_that_fails_gives_its_exit_code_and_its_last_words(tmp_path: Path) -> None:  # D21, D24, D26
    make_tool(tmp_path, "test:fail", "import sys\nprint('half')\nsys.exit('cannot divide by zero')")
    result = run_tool(tmp_path, "test:fail")
    error = error_of(result)
    assert (result.status, error["type"]) == ("error", "ScriptError")
    assert error["details"]["exitCode"] == 1
    assert "cannot divide by zero" in error["details"]["text"]
    assert "stdout: half" in result.logs
    assert "stderr: cannot divide by zero" in result.logs
    assert " Details: cannot divide by zero" in result.observation


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("print('Loading…'); print('{}')", "not JSON"),
        ("pass", "printed nothing"),
        ("print('{}{}')", "more than one"),
        ("print('[NaN]')", "NaN"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "not UTF-8"),
        ("print('[' * 5000)", "nested"),
    ],
)
def test_a_script_that_prints_no_json_is_an_output_format_error(tmp_path: Path, script: str, cause: str) -> None:  # F29
    make_tool(tmp_path, "test:chatty", script)
    error = error_of(run_tool(tmp_path, "test:chatty"))
    assert error["type"] == "OutputFormatError"
    assert cause in error["message"]


def test_output_that_does_not_fit_the_manifest_is_an_error(tmp_path: Path) -> None:  # D64
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    make_tool(tmp_path, "test:wrong", 'print(\'{"n": "x"}\')', output=output)
    error = error_of(run_tool(tmp_path, "test:wrong"))
    assert error["type"] == "OutputValidationError"
    assert error["details"]["errors"][0]["path"] == "/n"


def test_stderr_alone_is_a_log_and_no_failure(tmp_path: Path) -> None:  # ruling 37
    make_tool(tmp_path, "test:log", "import sys\nprint('note', file=sys.stderr)\nprint('1')")
    result = run_tool(tmp_path, "test:log")
    assert (result.status, result.output, result.logs) == ("success", 1, ["stderr: note"])
    strict = run_tool(tmp_path, "test:log", settings={"protocol": {"stderrFails": True}})
    assert error_of(strict)["type"] == "ScriptError"


def test_a_script_that_never_ends_is_ended_with_the_timeouts_own_outcome(tmp_path: Path) -> None:  # D15, ruling 40
    make_tool(tmp_path, "test:hang", HANG)
    result = run_tool(tmp_path, "test:hang", timeout_ms=400)
    assert result.status == "timeout"
    assert error_of(result)["type"] == "TimeoutError"
    assert result.observation.endswith("Error type: TimeoutError. Message: no result after 400 ms.")
    assert "timeoutMs" in result.logs[-1] and "sandbox.wallMs" in result.logs[-1]


def test_a_script_that_prints_for_ever_is_ended_at_the_limit(tmp_path: Path) -> None:  # D22, S8
    make_tool(tmp_path, "test:flood", "while True: print('x' * 1000)")
    error = error_of(run_tool(tmp_path, "test:flood"))
    assert (error["type"], error["details"]["limit"]) == ("ResourceError", "stdout")


def test_input_over_the_limit_runs_nothing(tmp_path: Path) -> None:  # D22
    make_tool(tmp_path, "test:echo")
    result = run_tool(tmp_path, "test:echo", {"text": "x" * 2000}, settings={"sandbox": {"stdinBytes": 1000}})
    error = error_of(result)
    assert (error["type"], error["details"]["limit"]) == ("ResourceError", "stdin")


def test_a_script_that_dies_by_a_signal_says_which(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:abort", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    error = error_of(run_tool(tmp_path, "test:abort"))
    assert error["type"] == "ScriptError"
    assert error["details"]["signal"] == "SIGKILL"


def test_a_script_that_forks_for_ever_is_contained(tmp_path: Path) -> None:  # D79
    make_tool(tmp_path, "test:bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")
    result = run_tool(tmp_path, "test:bomb", timeout_ms=1500)
    assert result.status in ("timeout", "error")


def test_memory_over_the_limit_is_a_resource_error(tmp_path: Path) -> None:  # D16
    make_tool(tmp_path, "test:hog", "x = bytearray(600 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint(1)")
    error = error_of(run_tool(tmp_path, "test:hog"))
    assert (error["type"], error["details"]["limit"]) == ("ResourceError", "memory")


def test_the_environment_holds_no_secret_of_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # S10
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    make_tool(tmp_path, "test:env", "import json, os\nprint(json.dumps(dict(os.environ)))")
    output: Any = run_tool(tmp_path, "test:env").output
    assert "sk-secret" not in str(output)


def test_secrets_are_masked_in_logs_and_observations(tmp_path: Path) -> None:  # D83, D27
    script = "import json, sys\nkey = json.load(sys.stdin)['key']\nprint(key, file=sys.stderr)\nsys.exit('bad ' + key)"
    make_tool(tmp_path, "test:secret", script, properties={"key": {"type": "string", "x-secret": True}})
    result = run_tool(tmp_path, "test:secret", {"key": "hunter2-hunter2"})
    assert "hunter2" not in msgspec.json.encode(result).decode()


def test_a_refused_request_for_rights_is_said_and_the_tool_runs_without(tmp_path: Path) -> None:  # D85, ruling 38
    context = {"fileAccess": {"allowWrite": ["/tmp/outside"]}, "networkAccess": {"allowHosts": ["example.com"]}}
    make_tool(tmp_path, "test:greedy", securityContext=context)
    result = run_tool(tmp_path, "test:greedy", {"text": "x"})
    assert result.status == "success"
    assert {denied.kind for denied in result.permissions.denied} == {"write", "network"}
    assert result.permissions.granted.write == []
    assert all("in force here" in denied.reason for denied in result.permissions.denied)


def test_a_capability_that_the_policy_does_not_give_blocks_the_tool(tmp_path: Path) -> None:  # D41
    make_tool(tmp_path, "test:gpu", securityContext={"requiredCapabilities": ["gpu"]})
    result = run_tool(tmp_path, "test:gpu")
    assert result.status == "blocked"
    assert error_of(result)["type"] == "SecurityError"
    assert "was not executed: policy forbids it" in result.observation
    assert run_tool(tmp_path, "test:gpu", settings={"policy": {"capabilities": ["gpu"]}}).status == "success"


@pytest.mark.parametrize("name", ["gpu", "warp"])
def test_a_tool_whose_capability_no_call_has_is_listed_as_not_available(tmp_path: Path, name: str) -> None:  # D41
    make_tool(tmp_path, "test:gpu", securityContext={"requiredCapabilities": [name]})
    (listed,) = Runtime(tmp_path).list_tools().tools
    assert (listed.available, listed.callable) == (False, True)
    assert isinstance(listed.reason, str) and f"requires the capability '{name}'" in listed.reason
    (allowed,) = Runtime(tmp_path, {"policy": {"capabilities": [name]}}).list_tools().tools
    assert allowed.available is (name == "gpu")


def test_a_tool_that_agents_may_not_call_is_blocked(tmp_path: Path) -> None:  # V03, ruling 34
    make_tool(tmp_path, "test:private", agentCallable=False)
    assert run_tool(tmp_path, "test:private").status == "blocked"


def test_a_write_below_the_own_folder_works_when_declared(tmp_path: Path) -> None:  # D18
    script = "import os\nos.makedirs('.cache', exist_ok=True)\nopen('.cache/x', 'w').write('1')\nprint(1)"
    make_tool(tmp_path, "test:undeclared", script)
    assert run_tool(tmp_path, "test:undeclared").status == "error"
    context = {"fileAccess": {"allowRead": ["self"], "allowWrite": [".cache/**"]}}
    folder = make_tool(tmp_path, "test:declared", script, securityContext=context)
    result = run_tool(tmp_path, "test:declared")
    assert (result.status, result.permissions.granted.write) == ("success", [".cache/**"])
    assert (folder / ".cache" / "x").read_text() == "1"


def test_a_manifest_can_lower_limits_but_not_raise_them(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:low", HANG, execution={"timeoutMs": 300})
    assert "after 300 ms" in run_tool(tmp_path, "test:low").observation
    make_tool(tmp_path, "test:high", HANG, execution={"timeoutMs": 60_000})
    raised = run_tool(tmp_path, "test:high", settings={"sandbox": {"wallMs": 300}})
    assert "after 300 ms" in raised.observation


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ("allow", "success", "executed successfully"),
        ("deny", "denied", "was not executed: the user denied it (用户拒绝了该操作)."),
        ("unavailable", "approvalUnavailable", "was not executed: there is no one to ask for approval."),
        ("cancelled", "cancelled", "was not executed: it was cancelled."),
    ],
)
def test_every_answer_has_its_own_outcome(tmp_path: Path, answer: Answer, status: str, words: str) -> None:  # ruling 40
    make_tool(tmp_path, "test:echo")

    async def ask(_question: Question) -> Answer:
        return answer

    result = run_tool(tmp_path, "test:echo", {"text": "x"}, ask=True, asker=ask)
    assert result.status == status
    assert words in result.observation


def test_no_answer_in_time_is_no_refusal(tmp_path: Path) -> None:  # ruling 40
    make_tool(tmp_path, "test:echo")

    async def ask(_question: Question) -> Answer:
        await asyncio.Event().wait()
        return "allow"

    result = run_tool(tmp_path, "test:echo", ask=True, asker=ask, settings={"policy": {"approvalTimeoutMs": 100}})
    assert result.status == "approvalTimeout"
    assert "this is not a refusal" in result.observation


def test_the_policy_can_ask_for_every_call_and_nobody_there_is_said(tmp_path: Path) -> None:  # V14, V43
    make_tool(tmp_path, "test:echo")
    result = run_tool(tmp_path, "test:echo", settings={"policy": {"requireConfirmation": "always"}})
    assert result.status == "approvalUnavailable"
    assert result.attempts == 0


def test_a_question_shows_masked_arguments(tmp_path: Path) -> None:  # D83, V61
    make_tool(tmp_path, "test:secret", properties={"key": {"type": "string", "x-secret": True}})
    seen: list[Question] = []

    async def ask(question: Question) -> Answer:
        seen.append(question)
        return "deny"

    run_tool(tmp_path, "test:secret", {"key": "hunter2-hunter2"}, ask=True, asker=ask)
    assert "hunter2" not in str(seen[0].args)


def test_a_configuration_that_cannot_be_trusted_runs_nothing(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:echo")
    (tmp_path / "tamis.toml").write_text('[policy]\nrequireConfirmation = "alwys"\n')
    result = run_tool(tmp_path, "test:echo")
    assert (result.status, result.attempts) == ("blocked", 0)
    assert "requireConfirmation" in error_of(result)["message"]


def test_a_cancelled_call_ends_at_once_and_says_so(tmp_path: Path) -> None:  # V52, ruling 40
    make_tool(tmp_path, "test:hang", f"import sys\nprint('begun', file=sys.stderr, flush=True)\n{HANG}")

    async def run() -> ExecutionResult:
        settings = Settings(sandbox=SandboxSettings(wall_ms=86_400_000))
        cancelled = asyncio.Event()
        context = CallContext(
            registry=load_registry(tmp_path, settings),
            settings=settings,
            cancelled=cancelled,
            services=Parts().call_services(),
        ).having(on_output=lambda *_: cancelled.set())
        return await execute(CallRequest(call_id="c", name="test:hang"), context)

    result = asyncio.run(run())
    assert (result.status, result.error) == ("cancelled", UNSET)


def test_failing_calls_are_tried_again_as_often_as_asked(tmp_path: Path) -> None:  # T21, ruling 24
    script = (
        "import os, sys\nn = len(os.listdir('.n'))\nopen(f'.n/{n}', 'w').close()\nprint(n) if n == 2 else sys.exit(1)"
    )
    make_tool(tmp_path, "test:flaky", script, securityContext={"fileAccess": {"allowWrite": [".n/**"]}})

    async def run(attempts: int) -> ExecutionResult:
        settings = Settings()
        context = CallContext(
            registry=load_registry(tmp_path, settings), settings=settings, services=Parts().call_services()
        )
        return await execute(CallRequest(call_id="c", name="test:flaky"), context, attempts)

    assert asyncio.run(run(2)).attempts == 2
    result = asyncio.run(run(3))
    assert (result.status, result.attempts, result.output) == ("success", 1, 2)


def test_a_dry_run_checks_and_runs_nothing(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:fail", "raise SystemExit(1)", properties={"n": {"type": "integer"}})
    result = run_tool(tmp_path, "test:fail", {"n": "7"}, dry_run=True)
    assert (result.status, result.attempts, result.output) == ("success", 0, {"dryRun": True, "args": {"n": 7}})


def test_a_missing_script_is_said_when_listed_and_when_called(tmp_path: Path) -> None:  # D34
    folder = make_tool(tmp_path, "test:gone")
    (folder / "tool.py").unlink()
    registry = load_registry(tmp_path, Settings())
    assert [tool.available for tool in registry.tools] == [False]
    assert "tool.py" in error_of(run_tool(tmp_path, "test:gone"))["message"]


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "link.py", "a/../../x.py"])
def test_a_script_path_that_leaves_the_folder_is_never_run(tmp_path: Path, path: str) -> None:  # D13, S1
    (tmp_path / "outside.py").write_text("print(1)")
    folder = make_tool(
        tmp_path, "test:leave", handler={"type": "external-script", "scriptPath": path, "language": "python"}
    )
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    result = run_tool(tmp_path, "test:leave")
    assert result.status == "error"
    assert result.output is UNSET


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("open('out.txt', 'w')", "securityContext.fileAccess.allowWrite"),
        ("import urllib.request as u\nu.urlopen('http://example.com')", "securityContext.networkAccess.allowHosts"),
        ("raise ValueError('plain')", ""),
    ],
)
def test_a_script_that_reaches_for_what_it_has_not_is_told_how_to_ask(tmp_path: Path, script: str, words: str) -> None:
    make_tool(tmp_path, "test:reach", script)
    text = error_of(run_tool(tmp_path, "test:reach"))["message"]
    assert words in text
    assert words or "securityContext" not in text


def test_a_call_that_was_cancelled_while_it_ran_does_not_claim_that_it_never_ran() -> None:  # ruling 40
    result = ExecutionResult(
        call_id="c",
        tool_id="t",
        version="1",
        status="cancelled",
        attempts=1,
        usage=Usage(cpu_ms=0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
    assert observation(result, "action") == (
        "Observation: Tool t was stopped while it ran: it was cancelled. What it did until then stands."
    )


def test_a_script_that_is_not_the_pinned_one_is_not_run(tmp_path: Path) -> None:  # D80
    folder = make_tool(tmp_path, "test:pinned")
    digest = base64.b64encode(hashlib.sha256((folder / "tool.py").read_bytes()).digest()).decode()
    make_tool(tmp_path, "test:pinned", execution={"integrity": f"sha256-{digest}"})
    assert run_tool(tmp_path, "test:pinned", {"text": "x"}).status == "success"
    (folder / "tool.py").write_text("print(2)")
    result = run_tool(tmp_path, "test:pinned", {"text": "x"})
    assert error_of(result)["type"] == "SecurityError"
    assert "execution.integrity" in error_of(result)["message"]
    assert result.output is UNSET


@pytest.mark.parametrize("style", ["action", "action-inputs", "tam", "vcp"])
def test_a_dry_run_does_not_say_that_the_tool_was_executed(tmp_path: Path, style: str) -> None:
    make_tool(tmp_path, "test:fail", "raise SystemExit(1)")
    result = run_tool(tmp_path, "test:fail", {"text": "x"}, dry_run=True, style=style)
    assert "was not executed: this was a dry run" in result.observation
    assert "executed successfully" not in result.observation


def test_an_output_that_looks_like_a_dry_run_is_still_one_that_ran(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:sly", "print('{\"dryRun\": true}')")
    assert "executed successfully" in run_tool(tmp_path, "test:sly").observation


def test_a_script_that_another_call_could_have_written_is_not_run(tmp_path: Path) -> None:
    handler = {"type": "service-method", "serviceName": "ExternalScriptExecutionService", "methodName": "executeScript"}
    properties: dict[str, Any] = {"scriptPath": {"type": "string"}, "inputData": {"type": "object"}}
    context = {"fileAccess": {"allowWrite": ["out/**"]}}
    folder = make_tool(tmp_path, "test:any", handler=handler, properties=properties, securityContext=context)
    for name in ("out", "src/out"):
        (folder / name).mkdir(parents=True)
        (folder / name / "made.py").write_text("print(1)")
        result = run_tool(tmp_path, "test:any", {"scriptPath": f"{name}/made.py"})
        assert (result.status, result.attempts) == ("blocked", 0)
        assert "could change itself" in error_of(result)["message"]
    assert run_tool(tmp_path, "test:any", {"scriptPath": "tool.py"}).status == "success"


def test_a_manifest_that_a_tool_could_have_written_is_no_tool(tmp_path: Path) -> None:  # ruling 34
    script = "import shutil\nfor n in ('tool.py', 'x.tool.json'): shutil.copy(n, f'out/{n}')\nprint(1)"
    folder = make_tool(tmp_path, "test:breeder", script, securityContext={"fileAccess": {"allowWrite": ["out"]}})
    assert run_tool(tmp_path, "test:breeder").status == "success"
    manifest = folder / "out" / "x.tool.json"
    manifest.write_text(manifest.read_text().replace("test:breeder", "test:bred"))
    result = run_tool(tmp_path, "test:bred")
    assert error_of(result)["type"] == "UnknownTool"
    assert "could have put it there" in error_of(result)["message"]
    own = {"tools": ["."], "policy": {"writeRoots": [str(folder / "out")]}}
    assert error_of(run_tool(tmp_path, "test:bred", settings=own))["type"] == "UnknownTool"


def test_a_folder_to_write_is_made_private_below_a_root_and_nowhere_else(tmp_path: Path) -> None:  # D18, S2
    root = tmp_path / "root"
    (tmp_path / "data").mkdir()
    out = tmp_path / "data" / "new" / "deep"
    script = f"open('{out}/x', 'w').write('1')\nprint(1)"
    make_tool(root, "test:out", script, securityContext={"fileAccess": {"allowWrite": [f"{out}/**"]}})
    policy = {"policy": {"writeRoots": [str(tmp_path / "data")]}}
    assert run_tool(root, "test:out", settings=policy, dry_run=True).status == "success"
    assert not out.exists()
    assert run_tool(root, "test:out", settings=policy).status == "success"
    assert (out / "x").read_text() == "1"
    assert out.parent.stat().st_mode & 0o777 == 0o700


def test_a_read_below_a_writable_folder_does_not_stop_the_tool(tmp_path: Path) -> None:
    root, data = tmp_path / "root", tmp_path / "data"
    (data / "in").mkdir(parents=True)
    (data / "in" / "x").write_text("1")
    context = {"fileAccess": {"allowRead": [f"{data}/in/**"], "allowWrite": [f"{data}/**"]}}
    make_tool(root, "test:both", f"print(open('{data}/in/x').read())", securityContext=context)
    settings = {"policy": {"readRoots": [str(data)], "writeRoots": [str(data)]}}
    result = run_tool(root, "test:both", settings=settings)
    assert (result.status, result.output) == ("success", 1)
    assert [denied.kind for denied in result.permissions.denied] == ["read"]


def test_a_run_that_nothing_held_says_so_at_the_head_of_its_observation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # ruling 39: an operator insisted
    async def run(*_args: object, **_more: object) -> sandbox.RunOutcome:
        info = sandbox.SandboxInfo("none", "", (), warm=False)
        return sandbox.RunOutcome(kind="ok", exit_code=0, stdout=b"1", wall_ms=1.0, sandbox=info)

    monkeypatch.setattr("tamis.sandbox.runner.run", run)
    make_tool(tmp_path, "test:bare")
    for style in ("action", "vcp"):
        result = run_tool(tmp_path, "test:bare", style=style)
        assert result.observation.startswith("Note: no sandbox held this run of test:bare.\n")
        assert result.sandbox is not None
        assert (result.sandbox.backend, result.sandbox.layers) == ("none", [])


def test_an_operator_who_insists_runs_without_a_sandbox_and_root_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # ruling 39
    assert UNSANDBOXED == unsandboxed.NAME
    monkeypatch.setenv(unsandboxed.VARIABLE, "1")
    make_tool(tmp_path, "test:bare", "print(1)")
    result = run_tool(tmp_path, "test:bare")
    if os.geteuid() == 0:
        assert (error_of(result)["type"], result.sandbox, result.attempts) == ("SandboxUnavailable", None, 0)
        assert "refused for root" in error_of(result)["message"]
    else:
        assert (result.status, result.output) == ("success", 1)
        assert result.sandbox is not None
        assert (result.sandbox.backend, result.sandbox.layers) == ("none", [])
        assert result.observation.startswith("Note: no sandbox held")


def test_a_glob_shows_what_fits_and_nothing_beside_it(tmp_path: Path) -> None:  # D39
    root, data = tmp_path / "root", tmp_path / "data"
    data.mkdir()
    for number in range(40):
        (data / f"n{number}.csv").write_text("1")
    for name in ("other.txt", ".hidden.csv"):
        (data / name).write_text("1")
    (data / "link.csv").symlink_to(data / "other.txt")
    script = f"import json, os\nprint(json.dumps(sorted(os.listdir('{data}'))))"
    make_tool(root, "test:glob", script, securityContext={"fileAccess": {"allowRead": [f"{data}/*.csv"]}})
    result = run_tool(root, "test:glob", settings={"policy": {"readRoots": [str(data)]}})
    assert result.status == "success", result.error
    assert result.output == sorted(f"n{number}.csv" for number in range(40))


FORM: dict[str, Any] = {
    "mode": {"enum": ["fast", "slow"]},
    "form": {
        "type": "object",
        "properties": {"kind": {"enum": ["a"]}, "one": {"const": 1}, "code": {"type": "string", "pattern": "^x"}},
        "required": ["kind"],
        "additionalProperties": False,
    },
    "list": {"type": "array", "items": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"mode": "fats"}, "Input parameter 'mode': 'fats' is not one of \"fast\", \"slow\", did you mean 'fast'?"),
        ({"form": {"kind": "b"}}, "Input parameter 'form.kind': 'b' is not one of \"a\""),
        ({"form": {"kind": "a", "one": 2}}, "Input parameter 'form.one': Must be exactly 1, got 2"),
        ({"form": {"kind": "a", "code": "y"}}, "Input parameter 'form.code': \"y\" does not match the pattern ^x"),
        ({"form": {}}, "Missing required parameter 'form.kind' (one of \"a\")"),
        ({"list": [1, "x"]}, "Input parameter 'list[1]' must be an integer, got \"x\""),
        ({}, "The arguments object must hold at least 1 members, it has 0"),
    ],
)
def test_what_is_wrong_with_arguments_names_the_parameter(tmp_path: Path, args: Any, said: str) -> None:  # A32
    parameters = {"type": "object", "properties": FORM, "minProperties": 1}
    make_tool(tmp_path, "t:form", parameters=parameters)
    result = run_tool(tmp_path, "t:form", args)
    assert result.observation == f"Observation: Error - Invalid parameters for t:form: {said}"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (3, "The output must be an object, got 3"),
        ({}, "Missing required member 'a' (integer)"),
        ({"a": "x"}, "'a' must be an integer, got \"x\""),
        ({"a": 1, "form": {"kind": "b"}}, "'form.kind': 'b' is not one of \"a\""),
        ({"a": 1, "b": 1}, "Unknown member 'b'"),
    ],
)
def test_what_is_wrong_with_an_output_names_the_place_in_it(tmp_path: Path, output: Any, said: str) -> None:  # D64
    properties = {"a": {"type": "integer"}, "form": FORM["form"]}
    schema = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}
    make_tool(tmp_path, "t:out", f"print({json.dumps(json.dumps(output))})", output=schema)
    error = error_of(run_tool(tmp_path, "t:out"))
    assert error["message"] == f"the script's output does not fit the manifest's output schema: {said}"


def test_a_model_reads_no_place_of_the_machine_in_why_a_call_failed(tmp_path: Path) -> None:  # T15
    for name in ("a", "b"):
        make_tool(tmp_path / name, "test:twice")
    result = run_tool(tmp_path, "test:twice", settings={"onConflict": "error"})
    assert str(tmp_path) in error_of(result)["message"]
    assert str(tmp_path) not in result.observation
    assert "./b/test_twice/x.tool.json" in result.observation or "./a/test_twice/x.tool.json" in result.observation


def test_the_place_of_a_key_is_not_told_to_a_model(tmp_path: Path) -> None:  # T15
    make_tool(tmp_path, "test:key", securityContext={"secrets": ["K"]})
    settings = {"secrets": {"K": {"file": str(tmp_path / "keys" / "k")}}, "policy": {"secrets": {"*": ["K"]}}}
    result = run_tool(tmp_path, "test:key", settings=settings)
    assert result.status == "blocked"
    assert str(tmp_path) not in result.observation
    assert "./keys/k" in result.observation


def test_a_context_is_changed_by_the_names_of_its_parts(tmp_path: Path) -> None:  # line 2 of the house: a small context
    settings = Settings()
    context = CallContext(
        registry=load_registry(tmp_path, settings), settings=settings, services=Parts().call_services()
    )
    other = context.having(polls=True, on_progress=print, in_task=True)
    assert (other.asking.polls, other.observer.on_progress, other.in_task) == (True, print, True)
    assert (context.asking.polls, context.observer.on_progress, context.in_task) == (False, None, False)
    assert other.services is context.services
    with pytest.raises(TypeError, match="unheard"):
        context.having(unheard=1)


def test_a_context_has_few_fields() -> None:  # line 2 of the house: 27 before it had parts
    assert len(CallContext.__struct_fields__) <= 15


def test_a_forged_line_is_marked_while_it_arrives_in_pieces(tmp_path: Path) -> None:
    """Trust 6: what a host or an editor shows while a tool runs says whose words it has, as the logs do."""
    script = """import os, sys, time
for piece in ("begin\\n  [ta", "m", "is] after the run: nothing\\n", "[tamis", "] again\\n[ta"):
    os.write(2, piece.encode())
    time.sleep(0.1)
print(1)
"""
    make_tool(tmp_path, "test:forges", script)
    runtime = Runtime(tmp_path)
    told: list[str] = []
    context = runtime.call_context(
        on_output=lambda _call, stream, text: told.append(text) if stream == "stderr" else None
    )
    result = asyncio.run(execute(CallRequest(call_id="c", name="test:forges"), context))
    marked = "begin\n  (the tool wrote) [tamis] after the run: nothing\n(the tool wrote) [tamis] again\n[ta"
    assert "".join(told) == marked
    assert result.logs == [f"stderr: {line}" for line in marked.splitlines()]
