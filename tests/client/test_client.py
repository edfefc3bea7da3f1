"""``tamis.client`` for threads: shapes, errors, reverse requests, and an end that leaves nothing (issue 6.7)."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import typing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.client import AsyncClient, Client, DaemonEnded, RpcFailure, WrongResult, messages, params, results
from tamis.client.messages import Frames, Framing, encode
from tamis.client.methods import RESULTS
from tamis.client.params import ToolCallConfig
from tamis.client.results import ApprovalReply, ExecutionResult, MetricsReport, MetricsText, Result, ToolList
from tamis.server.rpc.described import files
from tests.client import fakes
from tests.client.fakes import fake
from tests.rpc.inside import InsideClient
from tests.sample_tools import make_tool, vcp
from tests.waiting import until

HANG = "import time\ntime.sleep(86400)"


def quiet(_line: str) -> None:
    """Takes the daemon's log, so that it is not in the test's output."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("client")
    make_tool(root, "test:echo")
    make_tool(root, "test:hang", HANG)
    make_tool(root, "test:asks", execution={"requireConfirmation": True})
    return root


@pytest.fixture(scope="module")
def daemon(root: Path) -> Iterator[Client]:
    with Client(root, on_log=quiet) as client:
        yield client


@pytest.fixture
def echo() -> Iterator[Client]:
    with Client(command=fake(fakes.ECHO)) as client:
        yield client


def question(**more: Any) -> dict[str, Any]:
    """Params of an approval."""
    granted: dict[str, list[str]] = {"read": [], "write": [], "hosts": [], "capabilities": []}
    permissions = {"requested": {}, "granted": granted, "denied": []}
    shown = {"tool": "t", "version": "1.0.0", "args": {"a": 1}, "argsPreview": "{}", "risk": "low"}
    options = [{"optionId": "yes", "label": "Yes", "kind": "allow_once"}]
    ids = {"approvalId": "a-1", "callId": "c-1", "expiresAt": "2030-01-01T00:00:00+00:00"}
    return {**ids, **shown, "permissions": permissions, "options": options, **more}


# shapes


def test_every_method_of_the_daemon_is_a_method_of_both_clients() -> None:
    for name in files.declared():
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name.replace("/", "_").replace(".", "_"))
        assert callable(getattr(Client, snake)), name
        assert callable(getattr(AsyncClient, snake)), name


def test_a_result_is_a_struct_of_the_contract(daemon: Client) -> None:
    listed = daemon.tool_list(view="full")
    assert isinstance(listed, ToolList)
    assert "test:echo" in [tool.tool_id for tool in listed.tools]
    done = daemon.tool_execute(tool_id="test:echo", args={"text": "你好 😀"})
    assert isinstance(done, ExecutionResult)
    assert done.output == {"text": "你好 😀"}


def test_a_field_that_is_not_there_is_none(daemon: Client) -> None:
    """P1: a loop of ``if step.stop is not None`` ended after one round, because the field was ``UNSET``."""
    call = "<ACTION><test:echo><text>a</text></test:echo></ACTION>"
    config: ToolCallConfig = {"enabled": True, "protocol": "action"}
    step = daemon.agent_step(text=call, session_id="p1", config=config)
    assert (step.stop, step.explanation) == (None, None)
    assert (step.results[0].error, step.results[0].task_id, step.results[0].warnings) == (None, None, None)
    assert step.results[0].output == {"text": "a"}
    assert daemon.agent_step(text="done", session_id="p1", config=config).stop == "noTools"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tool/execute", {"toolId": "test:echo", "args": {"text": "a"}}),
        ("tool/execute", {"toolId": "test:echo", "args": {"tex": "a"}}),
        ("tool/parse", {"text": vcp("test:echo", text="a") + "<ACTION><a></ACTION>"}),
        ("tool/list", {"view": "full"}),
        ("server/health", {}),
        ("server/metrics", {}),
        ("tool/validate", {"toolId": "test:echo", "args": {"tex": "a"}}),
    ],
)
def test_a_result_as_a_dictionary_is_what_came_over_the_wire(daemon: Client, method: str, params: Any) -> None:
    """P1: ``to_dict`` is plain data that ``json.dumps`` takes, with the names of the wire and without what is not there."""
    seen: list[Any] = []
    result_of = messages.result_of

    def look(reply: messages.Incoming, *rest: Any) -> Any:
        seen.append(json.loads(bytes(reply.result)))
        return result_of(reply, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "result_of", look)
        result = daemon.call(method, **params)
    assert isinstance(result, Result)
    assert json.loads(json.dumps(result.to_dict())) == seen[0]


def test_every_struct_of_results_has_no_default_but_none() -> None:
    """P1: a field that may be missing is ``None``; nothing of ``UNSET`` is left."""
    kinds = [one for one in vars(results).values() if isinstance(one, type) and issubclass(one, Result)]
    assert len(kinds) > 100
    for kind in kinds:
        for field in msgspec.structs.fields(kind):
            assert field.default in (None, msgspec.NODEFAULT), (kind, field.name)
            assert field.default_factory is msgspec.NODEFAULT, (kind, field.name)
            assert "UnsetType" not in str(field.type), (kind, field.name)


def test_a_result_may_be_given_back(daemon: Client) -> None:
    done = daemon.tool_execute(tool_id="test:echo", args={"text": "a"})
    assert '"text": "a"' in daemon.observation_format(results=[done], protocol="action").text


@pytest.mark.parametrize(
    ("method", "param", "kind"),
    [
        ("agent_step", "config", "ToolCallConfig"),
        ("agent_step", "options", "ReadingOptions"),
        ("tool_execute", "approval", "GivenApproval"),
        ("tool_execute", "context", "Context"),
        ("tool_list", "filter", "ToolFilter"),
    ],
)
def test_objects_in_params_are_typed(method: str, param: str, kind: str) -> None:
    """P1: each names every member that the daemon reads, so that a type checker finds a misspelled one."""
    for client in (Client, AsyncClient):
        hint = typing.get_type_hints(getattr(client, method))[param]
        assert hint == getattr(params, kind) | None
    described = json.loads(files.json_schema_text())["$defs"][kind]
    members = typing.get_type_hints(getattr(params, kind), include_extras=True)
    assert {*members} == {*described["properties"]}
    needed = {name for name, one in members.items() if typing.get_origin(one) is not typing.NotRequired}
    assert needed == {*described["required"]}


def test_a_call_by_the_wires_names_gives_the_same(daemon: Client) -> None:
    assert daemon.call("tool/list", view="full") == daemon.tool_list(view="full")
    assert daemon.request("tool/list")["tools"][0]["toolId"] == daemon.tool_list().tools[0].tool_id


def test_params_that_are_left_out_are_not_sent(echo: Client) -> None:
    assert echo.call("x/y", a=None, b=1) == {"b": 1}
    assert echo.request("x/y") is None
    assert echo.call("x/y", timeout=5, method="free") == {"method": "free"}


def test_structs_may_be_sent(daemon: Client) -> None:
    parsed = daemon.tool_parse(text=vcp("test:echo", text="a"))
    assert daemon.call("tool/validate", calls=parsed.calls).valid


def test_a_result_of_another_shape_is_said_with_its_method_and_place() -> None:
    with (
        Client(command=fake(fakes.OTHER_SHAPE)) as client,
        pytest.raises(WrongResult, match=r"tool/list .*\$\.tools.*one version"),
    ):
        client.tool_list()


def test_an_error_reply_has_code_name_and_data(daemon: Client) -> None:
    with pytest.raises(RpcFailure) as caught:
        daemon.tool_describe(tool_id="no:such")
    assert (caught.value.code, caught.value.name) == (1001, "toolNotFound")
    assert caught.value.data["retryable"] is False
    with pytest.raises(RpcFailure) as caught:
        daemon.call("no/such")
    assert (caught.value.code, caught.value.name) == (-32601, "")


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_both_framings_carry_everything(root: Path, framing: Framing) -> None:
    text = "你好\r\n\r\nContent-Length: 5\r\n\r\n😀" * 3000
    with InsideClient(root, framing=framing, on_log=quiet) as client:
        assert client.tool_parse(text=text).response_text == text
        assert client.server_health().rpc == 1


def test_a_lone_surrogate_is_sent_and_read_as_a_replacement(daemon: Client) -> None:
    assert daemon.tool_parse(text="a\ud800b").response_text == "a\ufffdb"


@given(st.lists(st.text(max_size=40), max_size=6), st.sampled_from(["lines", "headers"]), st.data())
def test_frames_come_back_however_they_are_cut(texts: list[str], framing: Framing, data: st.DataObject) -> None:
    stream = b"".join(encode({"id": n, "result": text}, framing) for n, text in enumerate(texts))
    frames, found, at = Frames(framing), list[Any](), 0
    while at < len(stream):
        size = data.draw(st.integers(1, 30))
        found += frames.feed(stream[at : at + size])
        at += size
    assert [message.id for message in found] == [*range(len(texts))]


# many at once


def test_64_requests_in_flight_from_threads_each_get_their_own_answer(daemon: Client) -> None:
    with ThreadPoolExecutor(64) as threads:
        answers = threads.map(lambda n: daemon.tool_parse(text=f"text {n}").response_text, range(64))
        assert [*answers] == [f"text {n}" for n in range(64)]


def test_futures_of_many_requests_may_wait_at_once(echo: Client) -> None:
    sent = [echo.send("x/y", {"n": n}) for n in range(200)]
    assert len({number for number, _ in sent}) == 200
    assert [future.result()["n"] for _, future in sent] == [*range(200)]


def test_an_answer_that_comes_twice_or_belongs_to_nobody_is_passed_over() -> None:
    told: list[tuple[str, Any]] = []
    with Client(command=fake(fakes.TWICE), on_notification=lambda *one: told.append(one)) as client:
        assert client.request("x/y") == 1
        assert client.request("x/y") == 3
    assert told == [("x/told", {"a": 1})]


# time and cancel


def test_a_request_that_takes_too_long_is_cancelled(daemon: Client) -> None:
    with pytest.raises(TimeoutError, match="cancelled"):
        daemon.tool_execute(tool_id="test:hang", timeout=0.3)
    until(lambda: daemon.server_health().running == 0)


def test_a_cancelled_request_still_has_its_answer(daemon: Client) -> None:
    number, future = daemon.send("tool/execute", {"toolId": "test:hang"})
    daemon.cancel(number)
    assert future.result()["status"] == "cancelled"


def test_a_notification_callback_must_not_wait_for_an_answer() -> None:
    caught: list[BaseException] = []

    def told(_method: str, _params: Any) -> None:
        try:
            client.request("x/y")
        except RuntimeError as error:
            caught.append(error)

    with Client(command=fake(fakes.TWICE), on_notification=told) as client:
        client.request("x/y")
        until(lambda: caught)
    assert "must not wait" in str(caught[0])


def test_a_callback_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def told(_method: str, _params: Any) -> None:
        raise ValueError("a host's own fault")

    with Client(command=fake(fakes.TWICE), on_notification=told) as client:
        assert [client.request("x/y"), client.request("x/y")] == [1, 3]
    assert "a host's own fault" in caplog.text


# what the daemon asks


def asked(client: Client, *requests: tuple[str, Any]) -> list[Any]:
    return client.request("x/ask", {"ask": requests})


@pytest.mark.parametrize(
    ("chosen", "reply"),
    [
        ("yes", {"outcome": "selected", "optionId": "yes"}),
        (None, {"outcome": "cancelled"}),
        (
            ApprovalReply(outcome="selected", option_id="yes", edited_args={"a": 2}),
            {"outcome": "selected", "optionId": "yes", "editedArgs": {"a": 2}},
        ),
    ],
    ids=["an option", "nobody", "a whole reply"],
)
def test_an_approval_is_answered_with_what_the_callback_chose(chosen: Any, reply: Any) -> None:
    with Client(command=fake(fakes.ASKS), on_approval=lambda one: chosen if one.tool == "t" else "x") as client:
        assert asked(client, ("tool/requestApproval", question()))[0]["result"] == reply


@pytest.mark.parametrize(
    ("answered", "reply"),
    [
        ({"city": "Köln"}, {"outcome": "selected", "optionId": "accept", "content": {"city": "Köln"}}),
        ("decline", {"outcome": "selected", "optionId": "decline"}),
        (None, {"outcome": "cancelled"}),
    ],
    ids=["a form", "an option", "nobody"],
)
def test_a_question_of_an_mcp_server_goes_to_on_question(answered: Any, reply: Any) -> None:
    """mcp 1: it never goes to the function that allows calls."""
    field = {"name": "city", "title": "City", "type": "string", "required": True}
    params = question() | {"elicitation": {"server": "s", "message": "Where?", "form": [field]}}

    def answer(one: Any) -> Any:
        assert one.elicitation.form[0].name == "city"
        return answered

    with Client(command=fake(fakes.ASKS), on_question=answer) as client:
        replies = asked(client, ("tool/requestApproval", params), ("tool/requestApproval", question()))
        assert replies[0]["result"] == reply
        assert replies[1]["error"]["code"] == -32601
    with Client(command=fake(fakes.ASKS), on_approval=lambda _one: "accept") as client:
        assert asked(client, ("tool/requestApproval", params))[0]["error"]["code"] == -32601


def test_an_approval_lets_a_call_of_a_real_daemon_run(root: Path) -> None:
    seen: list[dict[str, Any]] = []

    def decide(one: Any) -> str:
        seen.append(one.args)
        return next(option.option_id for option in one.options if option.kind == "allow_once")

    with InsideClient(root, on_approval=decide, on_log=quiet) as client:
        assert client.tool_execute(tool_id="test:asks", args={"text": "a"}).output == {"text": "a"}
        with pytest.raises(RpcFailure, match="initialize"):
            client.initialize()
    with InsideClient(root, on_approval=decide, on_log=quiet) as client:
        client.initialize()
        assert client.tool_execute(tool_id="test:asks", args={"text": "b"}).output == {"text": "b"}
    with InsideClient(root, on_log=quiet) as client:
        assert client.tool_execute(tool_id="test:asks", args={"text": "c"}).status == "approvalUnavailable"
    assert seen == [{"text": "a"}, {"text": "b"}]


def test_a_client_with_someone_to_ask_says_so_before_the_requests_of_all_threads() -> None:
    first = "m = json.loads(sys.stdin.readline())\n" + "sys.stderr.write(m['method'] + '\\n')\nsys.stderr.flush()\n"
    lines: list[str] = []
    command = fake(first + fakes.ECHO)
    client = Client(command=command, on_approval=lambda _one: None, on_log=lines.append)
    with client, ThreadPoolExecutor(16) as threads:
        assert [*threads.map(lambda n: client.request("x/y", n), range(16))] == [*range(16)]
    assert lines == ["initialize"]


def test_a_request_that_nobody_answers_is_refused_by_name() -> None:
    with Client(command=fake(fakes.ASKS)) as client:
        refused = asked(client, ("tool/requestApproval", question()), ("x/what", None))
    assert [one["error"]["code"] for one in refused] == [-32601, -32601]
    assert "x/what" in refused[1]["error"]["message"]


def test_a_service_is_served_and_its_failure_is_an_error_reply() -> None:
    def read(args: dict[str, Any]) -> Any:
        return {"hp": 10, "of": args["who"]}

    calls = [
        ("service/invoke", {"serviceName": "game", "methodName": name, "args": args, "callId": "c"})
        for name, args in (("read", {"who": "me"}), ("read", {}), ("write", {}), ("odd", {}))
    ]
    with Client(command=fake(fakes.REGISTERS)) as client:
        client.serve("game", [{"name": "read"}, {"name": "odd"}], {"read": read, "odd": lambda _args: object()})
        replies = asked(client, *calls)
    assert replies[0]["result"] == {"hp": 10, "of": "me"}
    assert [one["error"]["code"] for one in replies[1:]] == [-32603, -32601, -32603]
    assert "who" in replies[1]["error"]["message"]
    assert "no JSON" in replies[3]["error"]["message"]


def test_a_service_of_the_host_is_a_tool_of_the_daemon(root: Path) -> None:
    method = {
        "name": "hp",
        "description": "How many points of life a player has left.",
        "agentCallable": True,
        "parameters": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
    }
    with InsideClient(root, on_log=quiet) as client:
        client.serve("game", [method], {"hp": lambda args: {"hp": len(args["who"])}})
        done = client.tool_execute(tool_id="game:hp", args={"who": "Ada"})
        assert (done.status, done.output) == ("success", {"hp": 3})


def test_a_served_request_may_use_the_client_itself(root: Path) -> None:
    method = {"name": "list", "description": "The tools that the host sees.", "agentCallable": True}
    with InsideClient(root, on_log=quiet) as client:
        client.serve("host", [method], {"list": lambda _args: len(client.tool_list().tools)})
        assert client.tool_execute(tool_id="host:list").output == 4


# the end


def test_a_daemon_that_dies_is_said_with_its_exit_code_and_last_lines() -> None:
    lines: list[str] = []
    with Client(command=fake(fakes.DIES), on_log=lines.append) as client:
        until(lambda: len(lines) == 30)
        with pytest.raises(DaemonEnded) as caught:
            client.request("x/y")
        assert caught.value.exit_code == 7
        assert caught.value.stderr[-1] == "line 29"
        assert len(caught.value.stderr) == 20
        assert "exit code 7" in str(caught.value)
        assert "line 29" in str(caught.value)
        # It is not started again in secret.
        with pytest.raises(DaemonEnded, match="exit code 7"):
            client.request("x/y")


def test_every_request_in_flight_learns_of_the_end() -> None:
    with Client(command=fake(fakes.SILENT)) as client:
        futures = [client.send("x/y")[1] for _ in range(20)]
        client.process.kill()
        for future in futures:
            with pytest.raises(DaemonEnded):
                future.result()


def test_what_is_no_message_ends_the_daemon() -> None:
    with Client(command=fake(fakes.NO_JSON)) as client, pytest.raises(DaemonEnded, match="no message"):
        client.request("x/y")


def test_a_program_that_there_is_not_raises_at_once() -> None:
    with pytest.raises(FileNotFoundError):
        Client(command=["/nonexistent/tamis"])


def test_close_leaves_no_process_and_no_descriptor() -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    gc.collect()  # what earlier tests left open
    before, threads = opened(), threading.active_count()
    for _ in range(3):
        client = Client(command=fake(fakes.ECHO))
        client.request("x/y")
        assert client.close(3600) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(client.process.pid, 0)
    assert opened() <= before
    assert threading.active_count() <= threads


def test_close_kills_what_does_not_end() -> None:
    ready = threading.Event()
    client = Client(command=fake(fakes.STUBBORN), on_log=lambda _line: ready.set())
    ready.wait()
    assert client.close(0.2) == -signal.SIGKILL


def test_close_ends_a_daemon_that_does_not_read() -> None:
    client = Client(command=fake("time.sleep(86400)"))

    def write() -> None:
        with pytest.raises(DaemonEnded):
            client.request("x/y", "x" * 1_000_000)

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.1)
    assert client.close(0.3) == -signal.SIGKILL
    writer.join()


def test_a_closed_client_says_so_and_closes_again() -> None:
    client = Client(command=fake(fakes.ECHO))
    assert client.close(3600) == client.close(3600) == 0
    with pytest.raises(DaemonEnded, match="the client was closed"):
        client.request("x/y")


def test_a_host_that_forgets_to_close_leaves_no_daemon() -> None:
    code = (
        "import sys\nfrom tamis.client import Client\n"
        "client = Client(command=[sys.executable, '-c', 'import sys; sys.stdin.read()'])\nprint(client.process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    process = int(done.stdout)
    until(lambda: not runs(process))


def runs(process: int) -> bool:
    """Whether a process is there; one that nobody has reaped yet is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_log_goes_to_logging_unless_someone_takes_it(caplog: pytest.LogCaptureFixture) -> None:
    """P1."""
    lines: list[str] = []
    with caplog.at_level("INFO", "tamis.client"):
        for on_log, told in ((None, caplog.records), (lines.append, lines)):
            with Client(command=fake("os.write(2, b'one\\ntwo %s\\n')\nsys.stdin.read()\n"), on_log=on_log):
                until(lambda told=told: len(told) == 2)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("INFO", "one"), ("INFO", "two %s")]
    assert lines == ["one", "two %s"]


def test_a_program_that_sets_up_no_logging_sees_nothing_on_standard_error() -> None:
    """P1: neither what the daemon writes there nor a fault of the host's own function."""
    code = (
        "import sys\nfrom tamis.client import Client\n"
        "from tests.client.fakes import fake, TWICE\n"
        "def told(*_): raise ValueError('of the host')\n"
        "with Client(command=fake('os.write(2, b\"noise\\\\n\")\\n' + TWICE), on_notification=told) as client:\n"
        "    print(client.request('x/y'), client.request('x/y'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1 3\n", "")


def test_the_client_starts_without_the_runtime() -> None:
    """The room's rule, from outside: a host does not load the daemon's code."""
    code = "import sys, tamis.client; print([name for name in sys.modules if name.startswith('tamis.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tamis.client.blocking" in done.stdout
    assert "tamis.server" not in done.stdout


def test_every_struct_that_results_are_decoded_into_can_be_decoded() -> None:
    import msgspec

    for name, kinds in RESULTS.items():
        required: list[set[str]] = []
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            assert msgspec.json.Decoder(kind) is not None, name
            required.append({one.encode_name for one in msgspec.structs.fields(kind) if one.required})
        # Of several results only one can fit what the daemon sent.
        assert not any(one <= other for one, other in permutations(required, 2)), name


def test_a_result_of_several_shapes_is_the_struct_that_was_asked_for(daemon: Client) -> None:
    assert isinstance(daemon.server_metrics(), MetricsReport)
    text = daemon.server_metrics(format="prometheus")
    assert isinstance(text, MetricsText)
    assert "tamis_" in text.text
    assert isinstance(daemon.call("server/metrics"), MetricsReport)
