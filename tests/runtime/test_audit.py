"""The audit log: what happened to each call is there, no secret is, and nothing that goes wrong with it disturbs a call (D27, D75, D83)."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.environments.model import DependencyFault, Progress
from tamis.protocols.contract import ExecutionResult
from tamis.sandbox.job import LAYERS
from tamis.server.cli.main import main
from tamis.server.runtime.calls.model import Answer, CallRequest, Question, Reply
from tamis.server.runtime.doctor import examine
from tamis.server.runtime.execution.approvals.replies import read_reply
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.health import health
from tamis.server.runtime.observe.audit import MAX_LINE_BYTES, AuditLog
from tamis.server.runtime.observe.redaction import Redacted, is_secret_name, redacted, redacted_text
from tamis.server.runtime.observe.trail import Caller, Level, Log, Trail
from tamis.server.runtime.policy.rules import SUSPICIOUS, Refusals
from tamis.server.runtime.runtime import Runtime
from tests.daemon import answers_of
from tests.sample_tools import make_tool


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("TAMIS_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    for agent in ("agent-1", "a-1"):
        # An agent that no profile speaks of may call nothing (ruling 42).
        (folder / f"{agent}.agent_profile.json").write_text('{"toolCallConfig": {"enabled": true}}')
    return folder


def call(root: Path, tool_id: str, args: dict[str, Any] | None = None, **more: Any) -> ExecutionResult:
    settings = more.pop("settings", None)
    ask = more.pop("asker", None)

    async def run() -> ExecutionResult:
        around = Runtime(root, settings).call_context(ask=ask, caller=Caller("test", "session-1", "agent-1"))
        return await execute(CallRequest(call_id="call-1", name=tool_id, args=args or {}, **more), around)

    return asyncio.run(run())


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text("utf-8").splitlines()]


def named(folder: Path, name: str) -> list[dict[str, Any]]:
    return [event for event in events(folder) if event["event"] == name]


def only(folder: Path, name: str) -> dict[str, Any]:
    (found,) = named(folder, name)
    return found


def test_a_call_leaves_its_story_in_order(root: Path, state: Path) -> None:  # D27, D75, D81
    context = {"fileAccess": {"allowWrite": [".cache/**", "/srv/x"]}, "networkAccess": {"allowHosts": ["example.com"]}}
    make_tool(root, "test:echo", securityContext=context)
    assert call(root, "test:echo", {"text": "hi"}).status == "success"
    told = events(state)
    assert [event["event"] for event in told] == [
        *("call.received", "rights.granted", "rights.denied", "rights.denied", "run.started", "run.ended", "call.ended")
    ]
    assert {event["run"] for event in told} == {told[0]["run"]}
    assert told[0]["args"] == {"text": "hi"}
    assert told[0]["caller"] == {"face": "test", "sessionId": "session-1", "agentId": "agent-1"}
    empty = [(one["event"], name) for one in told for name, value in one.items() if value in ("", {}, [], None)]
    assert empty == []
    assert told[1]["write"] == [".cache/**"]
    assert {(event["kind"], event["value"]) for event in told[2:4]} == {("write", "/srv/x"), ("network", "example.com")}
    assert all(event["reason"] for event in told[2:4])
    assert told[4]["command"][-1] == "/tool/tool.py"
    ended = told[-1]
    assert (ended["tool"], ended["version"], ended["status"], ended["attempts"]) == ("test:echo", "1.0.0", "success", 1)
    assert ended["durationMs"] > 0
    assert ended["sandbox"]["backend"] in ("bubblewrap", "nsjail")
    assert ended["sandbox"]["layers"] + len(ended["sandbox"].get("missing", ())) == len(LAYERS)
    assert set(ended["sandbox"].get("missing", ())) <= {"cgroup", "uid-drop", "disable-userns", "die-with-parent"}
    assert ended["usage"]["maxRssBytes"] > 0


def test_the_end_is_written_behind_the_answer_where_the_face_says_so(root: Path, state: Path) -> None:  # issue 18, bars
    make_tool(root, "test:echo")
    later: list[Callable[[], object]] = []
    runtime = Runtime(root)

    async def run() -> None:
        around = runtime.call_context(afterwards=later.append)
        assert (
            await execute(CallRequest(call_id="c", name="test:echo", args={"text": "x"}), around)
        ).status == "success"

    asyncio.run(run())
    assert [event["event"] for event in events(state)] == ["call.received", "run.started", "run.ended"]
    assert runtime.parts.metrics.by_status() == {}
    for work in later:
        work()
    assert only(state, "call.ended")["status"] == "success"
    assert runtime.parts.metrics.by_status() == {"success": 1}


@pytest.mark.parametrize(
    ("script", "limits", "event", "field"),
    [
        ("import time; time.sleep(10**6)", {"wallMs": 300}, "run.timeout", ("wallMs", None)),
        ("while True: print('x' * 1000)", {}, "run.limit", ("limit", "stdout")),
        ("x = bytearray(600 << 20)", {}, "run.limit", ("limit", "memory")),
    ],
)
def test_a_limit_that_was_hit_is_an_event(
    root: Path, state: Path, script: str, limits: dict[str, int], event: str, field: tuple[str, Any]
) -> None:  # D75
    make_tool(root, "test:hungry", script)
    call(root, "test:hungry", settings={"sandbox": limits})
    name, value = field
    found = only(state, event)
    assert found[name] == value if value is not None else found[name] >= 300
    assert only(state, "call.ended")["status"] in ("error", "timeout")


def test_what_the_sandbox_removed_is_an_event_and_a_line_of_the_log(root: Path, state: Path) -> None:  # D75
    script = "import os\nos.mkfifo('out/pipe')\nprint(1)"
    make_tool(root, "test:fifo", script, securityContext={"fileAccess": {"allowWrite": ["out"]}})
    result = call(root, "test:fifo")
    assert "pipe" in only(state, "sandbox.violation")["text"]
    assert any(line.startswith("stderr: [tamis] after the run: ") and "pipe" in line for line in result.logs)


def test_a_refused_host_is_an_event_and_a_denial_even_when_the_script_goes_on(root: Path, state: Path) -> None:  # D75
    script = (
        "import json, urllib.request as u\n"
        "try: u.urlopen('http://other.example/')\nexcept OSError as e: print(json.dumps(str(e)))"
    )
    context = {"networkAccess": {"allowHosts": ["example.com"]}}
    make_tool(root, "test:net", script, securityContext=context)
    result = call(root, "test:net", settings={"policy": {"allowHosts": ["example.com"]}})
    assert result.status == "success"
    denied = result.permissions.denied
    assert [(item.kind, item.value.partition(":")[0]) for item in denied] == [("network", "other.example")]
    assert denied[0].reason
    assert only(state, "network.denied")["target"] == denied[0].value


@pytest.mark.parametrize("answer", ["allow", "deny", "timeout"])
def test_a_question_and_its_answer_are_events(root: Path, state: Path, answer: Answer) -> None:
    make_tool(root, "test:echo")

    async def ask(_question: Question) -> Answer:
        return answer

    call(root, "test:echo", {"text": "hi"}, ask=True, asker=ask)
    assert only(state, "approval.asked")["args"] == {"text": "hi"}
    assert only(state, "approval.answered")["answer"] == answer
    assert len(named(state, "run.started")) == (answer == "allow")


def test_the_log_says_of_an_answer_that_was_not_offered_what_was(root: Path, state: Path) -> None:  # ruling 40
    make_tool(root, "test:echo")

    async def ask(question: Question) -> Reply:
        return read_reply({"decision": "approve"}, question.options)

    call(root, "test:echo", {"text": "hi"}, ask=True, asker=ask)
    event = only(state, "approval.answered")
    assert event["answer"] == "cancelled"
    assert "none of the options that were offered: outcome 'selected' with optionId 'allow', " in event["message"]


def test_a_call_that_cannot_run_is_in_the_log_with_the_reason(root: Path, state: Path) -> None:
    make_tool(root, "test:gpu", securityContext={"requiredCapabilities": ["gpu"]})
    call(root, "test:gpu")
    call(root, "nobody")
    blocked, unknown = named(state, "call.ended")
    assert (blocked["status"], blocked["error"], blocked["attempts"]) == ("blocked", "SecurityError", 0)
    assert (unknown["error"], unknown.get("tool")) == ("UnknownTool", None)
    assert only(state, "rights.denied")["kind"] == "capability"


SECRETS = {
    "key": "marked-secret-value",
    "apiKey": "by-its-name",
    "db_password": "x1",
    "nested": {"accessToken": "deep-secret", "list": [{"authorization": "Basic Zm9vOmJhcg=="}]},
    "text": "Bearer abcdef0123456789 and sk-abcdefghijklmnop0123 and https://me:hunter2@example.com/?token=qwerty123",
}


def test_no_secret_reaches_the_log(root: Path, state: Path, capsys: pytest.CaptureFixture[str]) -> None:  # D83, S10
    script = "import json, sys\na = json.load(sys.stdin)\nsys.exit('failed with ' + a['key'])"
    properties = {name: {} for name in SECRETS} | {"key": {"type": "string", "x-secret": True}}
    make_tool(root, "test:secret", script, properties=properties)
    call(root, "test:secret", SECRETS, settings={"logLevel": "debug"})
    call(root, "test:secret", {**SECRETS, "kye": "misspelled-secret"})
    call(root, "no:such", SECRETS)
    kept = (state / "audit.jsonl").read_text() + capsys.readouterr().err
    hidden = ("marked-secret", "by-its-name", '"x1"', "deep-secret", "Zm9v", "abcdef0123", "hunter2", "qwerty123")
    for secret in (*hidden, "sk-abc", "misspelled-secret"):
        assert secret not in kept
    assert "no:such" in kept
    assert "example.com" in kept


@pytest.mark.parametrize(
    "name", ["password", "apiKey", "API_KEY", "x-api-key", "accessToken", "auth", "client_secret", "Cookie"]
)
def test_a_name_of_a_secret_is_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["maxTokens", "tokens", "author", "keyboard", "monkey", "path", "text", "authority"])
def test_a_name_that_only_looks_like_one_is_shown(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nSECRET",
        "eyJhbGciOiJIUzI1NiJ9.eyJTRUNSRVQiOjF9SECRET.SECRET",
        "ghp_SECRETSECRETSECRETSECRETSECRET",
        "AKIASECRETSECRETSECR",
        "xoxb-SECRETSECRET",
        "password=SECRET",
        '"api_key": "SECRET"',
        "https://user:SECRET@host/",
        "?access_token=SECRET&x=1",
    ],
)
def test_a_value_that_looks_like_a_secret_is_hidden(text: str) -> None:
    assert "SECRET" not in redacted_text(f"before {text} after")


@pytest.mark.parametrize(
    "text", ["pwd=S", "token:SECR", "basic SECRET12", "bearer SECRET12", "://u:SECR@h", "xoxb-SECRETSECR"]
)
def test_the_shortest_of_each_kind_is_hidden_too_and_the_second_time(text: str) -> None:
    for _ in range(2):
        assert "S" not in redacted_text(text)


def test_control_characters_cannot_forge_a_line_or_a_colour(root: Path, state: Path) -> None:  # D74
    make_tool(root, "test:echo")
    evil = 'a\n{"event":"forged"}\r\x1b[31m\x9b\u2028\u202e\u0085\ufeff'
    call(root, "test:echo", {"text": evil})
    raw = (state / "audit.jsonl").read_bytes()
    assert not any(byte < 32 for byte in raw.replace(b"\n", b""))
    assert raw.isascii()
    assert only(state, "call.received")["args"]["text"] == evil
    assert not named(state, "forged")


VALUES = st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(), max_size=20)


@given(
    st.dictionaries(
        st.text(max_size=5), VALUES | st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=3), VALUES)
    )
)
def test_whatever_is_noted_is_one_line_of_json(fields: dict[str, Any]) -> None:
    lines: list[bytes] = []

    class Kept(AuditLog):
        def _append(self, line: bytes) -> None:
            lines.append(line)

    audit = Kept(Path("unused"))
    audit.write("any", redacted(fields))
    assert audit.problem == ""
    assert lines[0].count(b"\n") == 1
    assert len(lines[0]) <= MAX_LINE_BYTES + 1
    assert json.loads(lines[0])["event"] == "any"


def test_a_long_line_is_cut_and_says_so(state: Path) -> None:
    audit = AuditLog()
    audit.write("big", {"args": {str(number): "x" * 2000 for number in range(60)}, "status": "success"})
    (event,) = events(state)
    assert (event["cut"], event["status"], event["args"]) == (True, "success", "…")


def test_the_file_is_private_and_made_private_again(state: Path) -> None:
    state.mkdir(mode=0o755)
    (state / "audit.jsonl").touch(mode=0o644)
    AuditLog().write("x", {})
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def rotated(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("audit.jsonl*") if path.suffix != ".lock")


def test_full_files_are_moved_aside_and_the_oldest_goes(state: Path) -> None:
    audit = AuditLog(max_bytes=1, keep=2)
    size = 4 * MAX_LINE_BYTES
    for number in range(600):
        audit.write("n", {"number": number, "text": "x" * 1000})
    files = rotated(state)
    assert [file.name for file in files] == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    assert all(file.stat().st_size <= size for file in files)
    numbers = [json.loads(line)["number"] for file in reversed(files) for line in file.read_text().splitlines()]
    assert numbers == list(range(numbers[0], 600))
    assert numbers[0] > 0


def test_several_processes_write_and_rotate_one_file_without_losing_a_line(state: Path) -> None:
    program = (
        "import sys\nfrom tamis.server.runtime.observe.audit import AuditLog\n"
        "audit = AuditLog(max_bytes=1, keep=500)\n"
        "for n in range(400): audit.write('n', {'who': sys.argv[1], 'number': n, 'text': 'x' * 1000})\n"
        "print(audit.problem)"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(who)], stdout=subprocess.PIPE, text=True)
        for who in range(4)
    ]
    assert [writer.communicate()[0] for writer in writers] == ["\n"] * 4
    lines = [json.loads(line) for file in rotated(state) for line in file.read_text().splitlines()]
    assert sorted((line["who"], line["number"]) for line in lines) == sorted(
        (str(who), number) for who in range(4) for number in range(400)
    )
    assert len(rotated(state)) > 1


def test_a_process_that_holds_the_lock_for_ever_stops_nobody(state: Path) -> None:
    audit = AuditLog(max_bytes=1, keep=2)
    audit.write("first", {})
    with open(state / "audit.jsonl.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(200):
            audit.write("n", {"text": "x" * 1000})
    assert (audit.problem, len(rotated(state)), len(events(state))) == ("", 1, 201)


def test_a_piece_of_a_line_that_was_cut_off_costs_only_itself(state: Path) -> None:
    audit = AuditLog()
    audit.write("first", {})
    audit.close()
    with open(state / "audit.jsonl", "ab") as file:
        file.write(b'{"event": "half')
    audit.write("second", {})
    lines = (state / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[2])["event"] == "second"


def test_a_file_that_was_removed_or_moved_is_made_anew(state: Path) -> None:
    audit = AuditLog()
    audit.write("first", {})
    os.rename(state / "audit.jsonl", state / "taken")
    audit.write("second", {})
    assert [event["event"] for event in events(state)] == ["second"]


def as_a_file(state: Path) -> None:
    state.write_text("")


def as_a_folder(state: Path) -> None:
    (state / "audit.jsonl").mkdir(parents=True)


def as_a_link(state: Path) -> None:
    state.mkdir()
    (state / "audit.jsonl").symlink_to(state.parent / "elsewhere")


def as_a_pipe(state: Path) -> None:
    state.mkdir()
    os.mkfifo(state / "audit.jsonl")


def as_a_full_disk(state: Path) -> None:
    state.mkdir()
    (state / "audit.jsonl").symlink_to("/dev/full")


@pytest.mark.parametrize("spoil", [as_a_file, as_a_folder, as_a_link, as_a_pipe, as_a_full_disk])
def test_a_log_that_cannot_be_written_stops_no_call_and_is_said_once(
    root: Path, state: Path, spoil: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(state)
    make_tool(root, "test:echo")
    runtime = Runtime(root)

    async def run() -> list[str]:
        request = CallRequest(call_id="c", name="test:echo", args={"text": "x"})
        return [(await execute(request, runtime.call_context())).status for _ in range(2)]

    assert asyncio.run(run()) == ["success", "success"]
    assert capsys.readouterr().err.count("audit log") == 1
    report = health(runtime)
    assert "cannot be written" in report["audit"]["problem"]
    assert report["audit"]["problem"] in report["problems"]
    assert not (state.parent / "elsewhere").exists()


def test_a_full_disk_is_said_and_the_log_goes_on_when_there_is_room(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    audit = AuditLog(say=said.append)
    audit.write("first", {})
    real, room = os.write, [5]

    def write(fd: int, data: bytes) -> int:
        return real(fd, data[: room[0]]) if room else real(fd, data)

    monkeypatch.setattr(os, "write", write)
    audit.write("second", {})
    audit.write("third", {})
    room.clear()
    audit.write("fourth", {})
    assert (audit.problem, len(said)) == ("", 1)
    assert "the disk is full" in said[0]
    lines = (state / "audit.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["event"] == "first"
    assert json.loads(lines[-1])["event"] == "fourth"


def test_switched_off_it_writes_nothing(root: Path, state: Path) -> None:
    make_tool(root, "test:echo")
    call(root, "test:echo", {"text": "x"}, settings={"audit": {"enabled": False}})
    assert not state.exists()


def test_reading_and_listing_write_nothing(root: Path, state: Path) -> None:
    make_tool(root, "test:echo")
    runtime = Runtime(root)
    runtime.parse("<ACTION><test:echo><text>x</text></test:echo></ACTION>")
    runtime.list_tools()
    assert not state.exists()


def test_the_operator_may_choose_another_file(root: Path, tmp_path: Path) -> None:
    make_tool(root, "test:echo")
    call(root, "test:echo", {"text": "x"}, settings={"audit": {"path": "../logs/tamis.jsonl"}})
    assert (tmp_path / "logs" / "tamis.jsonl").read_text().count("\n") == 4


STEPS = [f"step {number}" for number in range(1, 8)]


def test_the_seven_steps_of_running_a_script_are_in_the_log_in_order(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # D25
    make_tool(root, "test:echo")
    call(root, "test:echo", {"text": "x"}, settings={"logLevel": "debug"})
    told = capsys.readouterr().err
    places = [told.index(step) for step in STEPS]
    assert places == sorted(places)
    call(root, "test:echo", {"text": "x"}, settings={"logLevel": "info"})
    assert capsys.readouterr().err == "", "the command line says itself what happened"


@pytest.mark.parametrize(("level", "lines"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_log_writes_its_level_and_what_is_above_it(
    level: Level, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:  # D27
    trail = Trail(None, Log(level), "/root", "c")
    levels: tuple[Level, ...] = ("debug", "info", "warning", "error")
    for name in levels:
        trail.note("x", name, text="a\nb\x1b[31m")
    told = capsys.readouterr().err
    assert told.count("\n") == lines
    assert "\x1b" not in told


def test_a_host_that_never_reads_standard_error_does_not_stop_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as unread, open(writing, "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        log = Log("debug")
        for _ in range(2_000):
            log.write("info", "x" * 100)
        told = os.read(unread.fileno(), 1 << 20)
        log.write("info", "after")
        assert b"after (" in os.read(unread.fileno(), 1 << 20)
        assert 0 < told.count(b"\n") < 2_000
        monkeypatch.undo()


def test_health_says_that_nothing_holds_the_scripts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # ruling 39: an operator insisted
    none = {"available": True, "backend": "none", "version": "", "network": "", "memory": "", "pids": ""}
    monkeypatch.setattr("tamis.server.runtime.health.sandbox_state", lambda *_: none)
    report = health(Runtime(root))
    assert report["status"] == "degraded"
    assert any("TAMIS_UNSAFE_NO_SANDBOX" in problem for problem in report["problems"])


def test_the_doctor_names_the_file_or_what_is_wrong_with_it(root: Path, state: Path) -> None:
    def told(settings: dict[str, Any] | None = None) -> tuple[str, str]:
        checks = examine(Runtime(root, settings))["checks"]
        found = next(check for check in checks if check["name"] == "audit log")
        return found["state"], found["text"]

    assert told() == ("ok", f"{state}/audit.jsonl")
    assert told({"audit": {"enabled": False}})[0] == "warning"
    os.unlink(state / "audit.jsonl")
    as_a_folder(state)
    assert told()[0] == "warning"
    assert "cannot be written" in told()[1]


def test_the_daemon_writes_who_called_and_one_line_a_call(root: Path, state: Path, untrusted: None) -> None:  # D27, D81
    make_tool(root, "test:echo")
    asked = {"toolId": "test:echo", "args": {"text": "x"}, "context": {"sessionId": "s-1", "agentId": "a-1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tool/execute", "params": asked}
    command = [sys.executable, "-m", "tamis.server.cli.main", "rpc", "--root", str(root)]
    answers, said = answers_of(command, [message])
    assert answers[1]["result"]["status"] == "success"
    assert only(state, "call.received")["caller"] == {"face": "rpc", "sessionId": "s-1", "agentId": "a-1"}
    assert len(said.splitlines()) == 1
    assert said.startswith("tamis: info: call-1 test:echo call.ended status=success")


def test_a_call_that_must_not_run_as_it_is_written_is_in_the_log(root: Path, state: Path) -> None:
    make_tool(root, "test:echo")
    runtime = Runtime(root)
    document = runtime.read("<<<[TOOL_REQUEST]>>>\ntool_name:「始」test:echo「末」,\ntext:「始」half")
    asyncio.run(execute_text(document, runtime.call_context(), TextOptions()))
    (refused,) = events(state)
    assert (refused["event"], refused["name"], refused["code"]) == ("call.refused", "test:echo", "TC001")


def test_a_tool_that_is_refused_again_and_again_is_said_once(root: Path, state: Path) -> None:  # D84
    make_tool(root, "test:gpu", securityContext={"requiredCapabilities": ["gpu"]})
    runtime = Runtime(root)

    async def run() -> None:
        for _ in range(SUSPICIOUS + 2):
            await execute(CallRequest(call_id="c", name="test:gpu"), runtime.call_context())

    asyncio.run(run())
    assert only(state, "abuse.suspected")["tool"] == "test:gpu"


def test_refusals_are_counted_by_tool_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:  # D84
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    refusals = Refusals()
    assert not any(refusals.add(f"t:{number % 2}", 1) for number in range(2 * SUSPICIOUS - 2))
    now[0] = 61.0
    assert not refusals.add("t:0", 1)
    assert refusals.add("t:1", SUSPICIOUS)


@pytest.mark.parametrize("works", [True, False])
def test_an_installation_and_how_it_ended_are_events(
    root: Path, state: Path, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:  # D27
    async def prepare(*_args: object, on_progress: Callable[[Progress], None], **_more: object) -> None:
        on_progress(Progress("ready"))
        if not works:
            raise DependencyFault("'nope' cannot be had", cause="network", denied=("index.example:443",))

    monkeypatch.setattr("tamis.environments.prepare.prepare", prepare)
    folder = make_tool(root, "test:needs", "print(1)")
    (folder / "requirements.txt").write_text("nope==1\n")
    result = call(root, "test:needs")
    assert only(state, "dependencies.started")["language"] == "python"
    if works:
        assert result.status == "success"
    else:
        assert result.attempts == 0
        failed = only(state, "dependencies.failed")
        assert (failed["cause"], failed["deniedHosts"]) == ("network", ["index.example:443"])
        assert "nope" in only(state, "call.ended")["message"]


def test_the_caller_of_a_call_without_a_session_has_no_empty_fields(root: Path, state: Path) -> None:  # D27
    make_tool(root, "test:echo")
    around = Runtime(root).call_context(caller=Caller("test"))
    asyncio.run(execute(CallRequest(call_id="call-1", name="test:echo", args={"text": "a"}), around))
    assert only(state, "call.received")["caller"] == {"face": "test"}


def test_a_log_that_nobody_closed_closes_with_its_owner(tmp_path: Path) -> None:
    log: AuditLog | None = AuditLog(tmp_path / "audit.jsonl")
    log.write("x", {})
    here = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    (opened,) = (path for path in here if os.path.realpath(path) == str(tmp_path / "audit.jsonl"))
    log = None
    assert os.path.realpath(opened) != str(tmp_path / "audit.jsonl")


# A place of the operator's choice (trust 4): nothing but an audit log is ever appended to


@pytest.mark.parametrize("content", ["export PATH=/bin\n", '{"time": 1}\n', "\n", '{"event":"x"}\n', "x"])
def test_a_file_that_is_no_audit_log_is_not_appended_to(tmp_path: Path, content: str) -> None:
    path = tmp_path / ".bashrc"
    path.write_text(content)
    path.chmod(0o644)
    log = AuditLog(path)
    log.write("x", {"text": "evil"})
    assert path.read_text() == content
    assert path.stat().st_mode & 0o777 == 0o644
    assert "something else than an audit log" in log.problem
    assert "audit.path" in log.check()


def test_an_audit_log_is_gone_on_with_also_after_a_torn_first_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    AuditLog(path).write("first", {})
    AuditLog(path).write("second", {})
    assert len(path.read_text().splitlines()) == 2
    path.write_text(path.read_text()[:60])
    AuditLog(path).write("third", {})
    assert json.loads(path.read_text().splitlines()[-1])["event"] == "third"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_log_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("")
    path.chmod(mode)
    log = AuditLog(path)
    log.write("x", {})
    assert path.read_text() == ""
    assert "chmod 600" in log.problem


def test_a_link_of_either_kind_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "soft").symlink_to(target)
    os.link(target, tmp_path / "hard")
    for name in ("soft", "hard"):
        log = AuditLog(tmp_path / name)
        log.write("x", {})
        assert log.problem, name
    assert target.read_text() == ""


def test_rotating_replaces_no_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    (tmp_path / "audit.jsonl.2").write_text("mine")
    log = AuditLog(path, max_bytes=1, keep=2)
    for _ in range(12):
        log.write("x", {"text": "y" * 20_000})
    assert (tmp_path / "audit.jsonl.2").read_text() == "mine"
    assert not (tmp_path / "audit.jsonl.1").exists()


def test_a_text_that_is_run_is_written_down_with_its_reading_and_observation(
    root: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A59: for `tool/executeText` and `tamis run`, as `agent/step` does: masked and bounded; and not where the log is off."""
    secret = {"password": {"type": "string", "x-secret": True}, "text": {"type": "string"}}
    make_tool(root, "t:login", properties=secret, required=["text"])
    text = "Ich frage. <ACTION><t:login><text>x</text><password>hunter2</password></t:login></ACTION>" + "é" * 9_000
    (root / "talk.md").write_text(text, "utf-8")
    monkeypatch.chdir(root)
    main(["run", "--yes", "talk.md"])
    command = [sys.executable, "-m", "tamis.server.cli.main"]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tool/executeText", "params": {"text": text, "protocol": "action"}}
    answers_of([*command, "rpc", "--root", str(root)], [asked])
    found = [event for event in events(state) if event["event"].startswith("text.")]
    assert [event["event"] for event in found] == ["text.received", "text.observed"] * 2
    for received, observed in zip(found[::2], found[1::2], strict=True):
        assert (received["protocols"], received["calls"], received["setAside"]) == (["action"], 1, 0)
        assert "Ich frage. <ACTION>" in received["text"] and "***" in received["text"]
        assert observed["statuses"] == ["success"]
        assert "t:login" in observed["observation"]
        assert received["callId"] == observed["callId"]
    written = (state / "audit.jsonl").read_text("utf-8")
    assert "hunter2" not in written
    assert max(map(len, written.splitlines())) < MAX_LINE_BYTES


def test_what_was_redacted_before_still_hides_a_secret_of_the_call() -> None:  # D83
    told = Redacted({"client": "my-secret-client"})
    assert redacted(told) is told
    assert redacted(told, ("my-secret-client",)) == {"client": "***"}
