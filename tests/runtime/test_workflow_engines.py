"""Engines: the one behind a URL against a server of the test, those of packages, and single nodes wrapped for them (W17, A45, A47)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tamis.server.runtime.handlers.workflow import engines
from tamis.server.runtime.handlers.workflow import run_workflow as conduct
from tamis.server.runtime.handlers.workflow.engine import EngineError
from tamis.server.runtime.settings.config import Policy, Settings
from tamis.server.runtime.settings.faults import disk_faults
from tamis.server.runtime.settings.installed import url_fault
from tests.runtime.service_world import error_of
from tests.runtime.workflow_world import World, flow, statuses

SUMMARIZE: dict[str, Any] = {
    "description": "对提供的长文本进行摘要。",
    "interfaceInputs": {
        "text_to_summarize": {"dataFlowType": "STRING", "required": True},
        "summary_length": {"dataFlowType": "STRING", "config": {"default": "中等"}},
    },
    "interfaceOutputs": {"summary_result": {"dataFlowType": "STRING"}},
    "nodes": [{"id": "llm", "type": "llm:Summarize", "configValues": {"model": "m"}}],
    "interfaceInputMappings": {
        "text_to_summarize": {"nodeId": "llm", "slotKey": "text"},
        "summary_length": [{"nodeId": "llm", "slotKey": "length"}],
    },
    "outputInterfaceMappings": {"summary_result": {"sourceNodeId": "llm", "sourceSlotKey": "summary"}},
}
PAYLOAD: dict[str, Any] = {
    "workflowId": "summarize_text",
    "nodes": [
        {
            "id": "llm",
            "fullType": "llm:Summarize",
            "inputs": {"text": "long", "length": "中等"},
            "configValues": {"model": "m"},
        }
    ],
    "edges": [],
    "inputs": {"text_to_summarize": "long", "summary_length": "中等"},
    "interfaceInputs": SUMMARIZE["interfaceInputs"],
    "interfaceOutputs": SUMMARIZE["interfaceOutputs"],
    "outputInterfaceMappings": {"summary_result": {"sourceNodeId": "llm", "sourceSlotKey": "summary"}},
}


class Server:
    """An engine on this machine: what it was sent, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.status = 200
        self.type = "application/json"
        self.body: bytes = b"{}"
        self.hold = threading.Event()
        self.hold.set()


@contextmanager
def serving() -> Iterator[tuple[Server, str]]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            state.asked.append(json.loads(self.rfile.read(length)))
            state.hold.wait()
            try:
                self.send_response(state.status)
                self.send_header("Content-Type", state.type)
                self.end_headers()
                self.wfile.write(state.body)
            except OSError:
                pass

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state, f"http://127.0.0.1:{server.server_address[1]}/run"
    finally:
        state.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()


def world(root: Path, url: str, **flows: Any) -> World:
    return World(root, flows or {"summarize_text": SUMMARIZE}, engine={"type": "http", "url": url})


def ask(root: Path, url: str) -> Any:
    return world(root, url).run("workflow:summarize_text", {"text_to_summarize": "long"})


def test_the_payload_is_posted_and_the_outputs_are_taken(tmp_path: Path) -> None:  # W16, W17, A45, A46
    with serving() as (server, url):
        server.body = json.dumps({"outputs": {"summary_result": "short"}}).encode()
        made = world(tmp_path, url)
        result, steps = made.run_traced("workflow:summarize_text", {"text_to_summarize": "long"})
        assert result.output == "short"  # W18: one output, bare
        assert server.asked == [PAYLOAD]
        assert statuses(steps) == {"llm": "success"}


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            200,
            b'{"error": {"message": "no model", "nodeId": "llm"}}',
            "node 'llm' (llm:Summarize): WorkflowError: no model",
        ),
        (200, b'{"error": "out of memory"}', "the engine failed: out of memory"),
        (200, b"[]", "no JSON object"),
        (200, b"{}", "neither 'outputs' nor 'error'"),
        (200, b"<html>", "is no JSON"),
        (200, b"", "is no JSON"),
        (200, b'{"outputs": {"summary_result":' + b"[" * 100_000, "is no JSON"),
        (503, b"busy", "the engine answered 503 Service Unavailable: busy"),
        (302, b"", "the engine answered 302"),
    ],
)
def test_what_an_engine_answers_wrong_is_the_workflows_error(
    tmp_path: Path, status: int, body: bytes, said: str
) -> None:
    with serving() as (server, url):
        server.status, server.body = status, body
        result = ask(tmp_path, url)
        assert result.status == "error"
        assert error_of(result)["type"] == "WorkflowError"
        assert said in error_of(result)["message"]


def test_items_and_steps_come_line_by_line(tmp_path: Path) -> None:  # W22
    flows = {**SUMMARIZE, "interfaceOutputs": {"summary_result": {"dataFlowType": "STRING", "isStream": True}}}
    lines = [
        {"step": {"nodeId": "llm", "status": "running"}},
        {"output": "summary_result", "item": "sh"},
        {"output": "summary_result", "item": "ort"},
        {"outputs": {}},
    ]
    with serving() as (server, url):
        server.type, server.body = (
            "application/x-ndjson; charset=utf-8",
            b"\n".join(json.dumps(one).encode() for one in lines),
        )
        made = world(tmp_path, url, summarize_text=flows)
        assert made.run("workflow:summarize_text", {"text_to_summarize": "x"}).output == ["sh", "ort"]


def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    with serving() as (_, url):
        pass
    said = error_of(ask(tmp_path, f"{url}?key=hidden"))["message"]
    assert "cannot be asked: ConnectionRefusedError" in said
    assert "hidden" not in said


def test_an_engine_that_never_answers_ends_by_time(tmp_path: Path) -> None:
    with serving() as (server, url):
        server.hold.clear()
        content = {**SUMMARIZE, "execution": {"timeoutMs": 150}}
        result = world(tmp_path, url, summarize_text=content).run("workflow:summarize_text", {"text_to_summarize": "x"})
        assert result.status == "timeout"


def test_a_cancel_ends_the_exchange(tmp_path: Path) -> None:  # W19
    with serving() as (server, url):
        server.hold.clear()
        made = world(tmp_path, url)
        cancelled = asyncio.Event()

        async def work() -> None:
            task = asyncio.ensure_future(
                made.traced("workflow:summarize_text", {"text_to_summarize": "x"}, cancelled=cancelled)
            )
            while not server.asked:
                await asyncio.sleep(0.005)
            cancelled.set()
            result, steps = await task
            assert result.status == "cancelled"
            assert statuses(steps) == {"llm": "cancelled"}
            await made.runtime.close()

        asyncio.run(work())


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://127.0.0.1:1/x", ""),
        ("http://[::1]:8000", ""),
        ("https://localhost/a?b=c", ""),
        ("https://engine.example.org/run", ""),
        ("", "is missing"),
        ("ftp://localhost", "must begin with http"),
        ("http://", "must begin with http"),
        ("http://u:p@localhost", "no user or password"),
        ("http://localhost:99999", "is no URL"),
        ("http://other.example.org/run", "is not this machine"),
        ("http://engine.example.org:8080/run", "is not this machine"),
        ("http://10.0.0.1/", "is not this machine"),
        ("http://127.1/", "cannot be used"),
        ("http://[::1", "is no URL"),
    ],
)
def test_which_urls_an_engine_may_have(url: str, fault: str) -> None:
    settings = Settings(policy=Policy(allow_hosts=("engine.example.org",)))
    found = url_fault(url, settings)
    assert (not found) if not fault else fault in found


def test_lists_say_that_an_engine_cannot_be_used(tmp_path: Path) -> None:
    made = world(tmp_path, "http://far.example.org")
    listed = next(tool for tool in made.runtime.list_tools().tools if tool.tool_id == "workflow:summarize_text")
    assert not listed.available
    assert "far.example.org" in str(listed.reason)
    assert error_of(ask(tmp_path, "http://far.example.org"))["type"] == "WorkflowError"


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ('[engine]\ntype = "http"\n', ("engine", "type")),
        ('[engine]\ntype = "http"\nurl = "http://far.example.org/"\n', ("engine", "url")),
        ('[engine]\ntype = "nowhere"\n', ("engine", "type")),
        ('[engine]\ntype = "http"\nurl = "http://127.0.0.1:1/"\n', None),
        ('[engine]\ntype = "builtin"\n', None),
    ],
)
def test_the_settings_say_that_an_engine_cannot_be_used(
    tmp_path: Path, text: str, setting: tuple[str, str] | None
) -> None:
    assert [fault.setting for fault in disk_faults(tmp_path, text)] == ([] if setting is None else [setting])


# engines of packages


class Echoing:
    """Gives the payload back."""

    async def run(self, payload: dict[str, Any], run: Any) -> dict[str, Any]:
        run.step("llm", "running")
        return {"summary_result": payload["inputs"], "another": 1}


class Listing:
    async def run(self, payload: dict[str, Any], run: Any) -> list[Any]:
        return [payload]


class Plain:
    def run(self, payload: dict[str, Any], run: Any) -> int:
        return 1


class Odd:
    async def run(self, payload: dict[str, Any], run: Any) -> dict[str, Any]:
        run.give("summary_result", object())
        return {}


class Endless:
    """Gives what JSON does not have, as an output or as an item."""

    async def run(self, payload: dict[str, Any], run: Any) -> dict[str, Any]:
        if payload["inputs"].get("text_to_summarize") == "early":
            run.give("summary_result", [float("nan")])
            return {}
        return {"summary_result": {"a": float("inf")}}


class Deaf:
    """Ends by nothing that it is told."""

    async def run(self, payload: dict[str, Any], run: Any) -> dict[str, Any]:
        while not done.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return {}


done = threading.Event()


class Failing:
    async def run(self, payload: dict[str, Any], run: Any) -> dict[str, Any]:
        raise EngineError("no licence") if payload["inputs"].get("text_to_summarize") == "licence" else KeyError("oops")


class Leaving:
    def __init__(self) -> None:
        raise SystemExit(3)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    here = __name__
    points = [
        EntryPoint("echoing", f"{here}:Echoing", engines.GROUP),
        EntryPoint("failing", f"{here}:Failing", engines.GROUP),
        EntryPoint("object", f"{here}:Odd", engines.GROUP),
        EntryPoint("endless", f"{here}:Endless", engines.GROUP),
        EntryPoint("deaf", f"{here}:Deaf", engines.GROUP),
        EntryPoint("list", f"{here}:Listing", engines.GROUP),
        EntryPoint("plain", f"{here}:Plain", engines.GROUP),
        EntryPoint("gone", f"{here}:Nothing", engines.GROUP),
        EntryPoint("odd", f"{here}:PAYLOAD", engines.GROUP),
        EntryPoint("leaving", f"{here}:Leaving", engines.GROUP),
        EntryPoint("twice", f"{here}:Plain", engines.GROUP),
        EntryPoint("twice", f"{here}:Deaf", engines.GROUP),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [one for one in points if one.group == group])
    monkeypatch.setattr(engines, "_LOADED", {})


@pytest.mark.usefixtures("installed")
def test_an_engine_of_a_package_runs_payloads(tmp_path: Path) -> None:  # W17
    content = SUMMARIZE | {"interfaceOutputs": {"summary_result": {"dataFlowType": "OBJECT"}}}
    made = World(tmp_path, {"summarize_text": content}, engine={"type": "echoing"})
    result, steps = made.run_traced("workflow:summarize_text", {"text_to_summarize": "x"})
    assert result.output == {"text_to_summarize": "x", "summary_length": "中等"}
    assert statuses(steps) == {"llm": "success"}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("failing", "licence", "no licence"),
        ("failing", "x", "the engine failed: KeyError: 'oops'"),
        ("object", "x", "'summary_result' is no JSON"),
        ("endless", "early", "'summary_result' is no JSON: NaN at /0; give null"),
        ("endless", "x", "'summary_result' is no JSON: Infinity at /a; give null"),
        ("list", "x", "the engine gave no outputs by name"),
        ("plain", "x", "the engine failed: TypeError"),
        ("gone", "x", f"the engine 'gone' of {__name__}:Nothing cannot be loaded: AttributeError"),
        ("odd", "x", f"the engine 'odd' of {__name__}:PAYLOAD cannot be used: it has no method 'run'"),
        ("missing", "x", "no installed package brings an engine of that name"),
        ("leaving", "x", "cannot be used: SystemExit: 3"),
        ("twice", "x", "two packages bring the engine 'twice'"),
        ("falling", "x", "did you mean 'failing'?"),
    ],
)
def test_an_engine_of_a_package_that_fails(tmp_path: Path, name: str, text: str, said: str) -> None:
    made = World(tmp_path, {"summarize_text": SUMMARIZE}, engine={"type": name})
    assert said in error_of(made.run("workflow:summarize_text", {"text_to_summarize": text}))["message"]


@pytest.mark.usefixtures("installed")
def test_an_engine_that_does_not_end_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conduct, "GRACE_S", 0.05)
    monkeypatch.setattr(conduct, "ABANDON_S", 0.05)
    done.clear()
    made = World(tmp_path, {"summarize_text": SUMMARIZE}, engine={"type": "deaf"})

    async def work() -> None:
        result = await made.call("workflow:summarize_text", {"text_to_summarize": "x"}, timeout_ms=50)
        assert result.status == "timeout"
        done.set()
        await made.runtime.close()

    asyncio.run(work())


# a node alone

NODE = {
    "fullType": "llm:Translate",
    "displayName": "Translate",
    "description": "Translates a text into another language.",
    "inputs": {"text": {"dataFlowType": "STRING", "required": True}, "to": {"dataFlowType": "STRING"}},
    "outputs": {"translated": {"dataFlowType": "STRING"}, "detected": {"dataFlowType": "STRING"}},
}


def test_a_node_that_the_engine_knows_is_wrapped_as_a_graph_of_its_own(tmp_path: Path) -> None:  # A41, A45, A47
    (tmp_path / "translate.node.json").write_text(json.dumps(NODE))
    with serving() as (server, url):
        server.body = json.dumps({"outputs": {"translated": "Hallo", "detected": "en", "more": 1}}).encode()
        result = world(tmp_path, url).run("llm:Translate", {"text": "Hello", "to": "de"})
        assert result.output == {"translated": "Hallo", "detected": "en"}
        assert server.asked == [
            {
                "nodes": [{"id": "node", "fullType": "llm:Translate", "inputs": {"text": "Hello", "to": "de"}}],
                "edges": [],
                "inputs": {"text": "Hello", "to": "de"},
                "outputInterfaceMappings": {
                    "translated": {"sourceNodeId": "node", "sourceSlotKey": "translated"},
                    "detected": {"sourceNodeId": "node", "sourceSlotKey": "detected"},
                },
            }
        ]


def test_the_built_in_engine_says_that_it_cannot_run_a_node_without_a_tool(tmp_path: Path) -> None:  # A47
    (tmp_path / "translate.node.json").write_text(json.dumps(NODE))
    made = World(tmp_path, {})
    error = error_of(made.run("llm:Translate", {"text": "Hello"}))
    assert error["type"] == "WorkflowError"
    assert "toolId" in error["message"]


def test_a_node_that_a_tool_does_is_a_node_of_workflows(tmp_path: Path) -> None:  # A41
    (tmp_path / "translate.node.json").write_text(json.dumps({**NODE, "toolId": "workflow:work"}))
    work = flow(
        [{"id": "in", "type": "input"}, {"id": "t", "type": "template", "config": {"template": "<{{text}}>"}}],
        [{"source": "in", "sourceHandle": "text", "target": "t", "targetHandle": "text"}],
        {"translated": "t.text", "detected": "in.text"},
        {"text": "STRING", "to": {"dataFlowType": "STRING"}},
    )
    caller = flow([{"id": "n", "type": "llm:Translate", "inputs": {"text": "a"}}], outputs={"o": "n.translated"})
    made = World(tmp_path, {"work": work, "caller": caller})
    assert made.run("workflow:caller").output == "<a>"
