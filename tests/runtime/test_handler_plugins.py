"""Handler types of installed packages: found by entry point, allowed by the operator, and never the daemon's undoing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.manifest.reading import OtherHandler, read_manifest
from tamis.server.runtime.calls.handlers import HANDLER_API, HandlerCall, HandlerError
from tamis.server.runtime.handlers import plugins
from tests.conftest import ROOT
from tests.runtime.service_world import Served, error_of

MANIFEST: dict[str, Any] = {
    "toolId": "t:shout",
    "displayName": "Shout",
    "description": "Gives back the text in capital letters, for the tests of this project.",
    "version": "1.0.0",
    "handler": {"type": "shout", "mark": "!"},
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class Shout:
    """A handler in this process."""

    api = HANDLER_API
    type = "shout"

    def problem(self, handler: Mapping[str, Any]) -> str:
        return "" if isinstance(handler.get("mark"), str) else "handler.mark must be a text"

    def run(self, call: HandlerCall) -> Any:
        call.log("shouting")
        return call.args["text"].upper() + call.handler["mark"]


def world(root: Path, plugin: Any, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Served:
    (root / "shout.tool.json").write_text(json.dumps(MANIFEST | changes))
    monkeypatch.setitem(plugins._LOADED, "shout", plugin)  # pyright: ignore[reportPrivateUsage]
    return Served(root, handlers=["shout"])


def test_a_handler_gives_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # D60
    result = world(tmp_path, Shout(), monkeypatch).run("t:shout", {"text": "hey"})
    assert (result.status, result.output, result.logs, result.sandbox) == (
        "success",
        "HEY!",
        ["stderr: shouting"],
        None,
    )


def test_coroutine_functions_run_too_and_know_their_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[HandlerCall] = []

    class Later(Shout):
        async def run(self, call: HandlerCall) -> Any:
            seen.append(call)
            await asyncio.sleep(0)
            return 1

    access = {"networkAccess": {"allowHosts": ["example.com", "example.org"]}}
    host = world(tmp_path, Later(), monkeypatch, securityContext=access)
    host.runtime = Served(tmp_path, handlers=["shout"], policy={"allowHosts": ["example.com"]}).runtime
    assert host.run("t:shout", {"text": "x"}, timeout_ms=5_000).output == 1
    (call,) = seen
    assert (call.tool_id, call.call_id, call.timeout_ms, call.folder) == ("t:shout", "call-1", 5_000, str(tmp_path))
    assert call.hosts == ("example.com",)


def test_what_a_handler_asks_of_the_manifest_is_told_in_lists_and_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = world(tmp_path, Shout(), monkeypatch, handler={"type": "shout"})
    (tool,) = served.runtime.list_tools().tools
    assert (tool.available, tool.reason) == (False, "handler.mark must be a text")
    result = served.run("t:shout", {"text": "x"})
    assert (error_of(result)["type"], result.attempts) == ("DependencyError", 0)


class _WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words either")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HandlerError("the service is closed", "until Monday"), "the service is closed"),
        (ValueError("x" * 100_000), "failed: ValueError: xxx"),
        (SystemExit(3), "failed: SystemExit: 3"),
        (RecursionError("deep"), "RecursionError"),
        (MemoryError(), "MemoryError"),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_whatever_a_handler_raises_is_the_failure_of_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str, later: bool
) -> None:  # V44
    class Failing(Shout):
        def run(self, call: HandlerCall) -> Any:
            raise error

    class FailingLater(Shout):
        async def run(self, call: HandlerCall) -> Any:
            raise error

    result = world(tmp_path, (FailingLater if later else Failing)(), monkeypatch).run("t:shout", {"text": "x"})
    assert (result.status, error_of(result)["type"]) == ("error", "ServiceError")
    assert said in error_of(result)["message"]
    assert len(error_of(result)["message"]) < 3_000


@pytest.mark.parametrize("output", [object(), {1: object()}, b"\xff" * 2_000_000])
def test_outputs_that_are_no_json_or_too_large_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: Any
) -> None:
    class Odd(Shout):
        def run(self, call: HandlerCall) -> Any:
            return output

    error = error_of(world(tmp_path, Odd(), monkeypatch).run("t:shout", {"text": "x"}))
    assert error["type"] in ("OutputFormatError", "ResourceError")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (float("nan"), "NaN; give"),
        ({"a": [1, float("inf")], "b": float("nan")}, "Infinity at /a/1; give"),
        ({"x/y": (1, -float("inf"))}, "-Infinity at /x~1y/1; give"),
        ({"big": 10**40, "n": {1: float("nan")}}, "NaN at /n/1; give"),
    ],
)
def test_numbers_that_json_does_not_have_are_errors_with_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: Any, said: str
) -> None:
    class Odd(Shout):
        def run(self, call: HandlerCall) -> Any:
            return output

    error = error_of(world(tmp_path, Odd(), monkeypatch).run("t:shout", {"text": "x"}))
    assert error == {
        "type": "OutputFormatError",
        "message": f"the result of the handler 'shout' is no JSON: {said} null or a text instead",
    }


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ([date(2026, 1, 2), {3}], ["2026-01-02", [3]]),
        ({1: {"big": 10**40}}, {"1": {"big": 10**40}}),
        (10**40, 10**40),
    ],
)
def test_what_has_a_form_in_json_is_read_in_that_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: Any, read: Any
) -> None:
    class Odd(Shout):
        def run(self, call: HandlerCall) -> Any:
            return output

    result = world(tmp_path, Odd(), monkeypatch).run("t:shout", {"text": "x"})
    assert (result.status, result.output) == ("success", read)
    assert result.observation.endswith(f"Result: {json.dumps(read)}")


def test_a_handler_that_hangs_and_will_not_be_cancelled_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    class Stubborn(Shout):
        async def run(self, call: HandlerCall) -> Any:
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue

    served = world(tmp_path, Stubborn(), monkeypatch)

    async def work() -> str:
        result = await served.call("t:shout", {"text": "x"}, timeout_ms=50)
        gate.set()
        await served.runtime.close()
        return result.status

    assert asyncio.run(work()) == "timeout"


def test_a_problem_that_raises_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(Shout):
        def problem(self, handler: Mapping[str, Any]) -> str:
            raise _WordlessError

    (tool,) = world(tmp_path, Odd(), monkeypatch).runtime.list_tools().tools
    assert tool.available is False
    assert "failed when it was asked about the tool" in str(tool.reason)


# Reading manifests


def test_a_type_is_known_to_the_reader_only_where_the_operator_named_it() -> None:  # D33
    text = json.dumps(MANIFEST)
    assert [diag.code for diag in read_manifest(text).diagnostics] == ["MF503"]
    reading = read_manifest(text, handlers=("shout",))
    assert reading.manifest is not None
    assert reading.manifest.handler == OtherHandler("shout", {"mark": "!"})
    assert reading.diagnostics == []


def test_a_tool_of_a_type_that_is_not_allowed_is_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shout.tool.json").write_text(json.dumps(MANIFEST))
    loaded: list[str] = []
    monkeypatch.setattr(plugins, "load_handler", loaded.append)
    served = Served(tmp_path)
    assert error_of(served.run("t:shout", {"text": "x"}))["type"] == "UnknownTool"
    assert "'shout' is not a value of 'handler.type'" in served.runtime.registry.errors[0].message
    assert loaded == []


# Installed packages


def package(folder: Path, name: str, source: str, entry: str) -> None:
    """A package as an installer leaves it."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[tamis.handlers]\n{entry}\n")


def example() -> str:
    """The handler of the page on handlers."""
    page = (ROOT / "docs" / "handlers.md").read_text("utf-8")
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def tamis(root: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-m", "tamis.server.cli.main", *words, "--root", str(root)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_the_pages_example_runs_as_an_installed_package(tmp_path: Path) -> None:  # D60
    root, site = tmp_path / "root", tmp_path / "site"
    root.mkdir()
    package(site, "tamis_sql", example(), "sqlite = tamis_sql:HANDLER")
    (root / "tamis.toml").write_text('handlers = ["sqlite"]\n')
    manifest = MANIFEST | {
        "toolId": "shop:orders",
        "handler": {"type": "sqlite", "query": "select upper(:text) as text, 1 + 1 as two"},
    }
    (root / "orders.tool.json").write_text(json.dumps(manifest))
    done = tamis(root, site, "call", "shop:orders", "--args", '{"text": "abc"}', "--yes", "--json")
    result = json.loads(done.stdout)
    assert (result["status"], result["output"]) == ("success", [{"text": "ABC", "two": 2}]), done
    checked = tamis(root, site, "check", str(root))
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("source", "entry", "said"),
    [
        ("", "shout = tamis_bad:HANDLER", "cannot be loaded: AttributeError"),
        ("raise SystemExit(1)", "shout = tamis_bad:HANDLER", "cannot be loaded: SystemExit"),
        ("class H: api = 99; type = 'shout'\nHANDLER = H()", "shout = tamis_bad:HANDLER", "written for version 99"),
        ("class H: api = 1; type = 'other'\nHANDLER = H()", "shout = tamis_bad:HANDLER", "its type is 'other'"),
        ("class H: api = 1; type = 'shout'\nHANDLER = H()", "shout = tamis_bad:HANDLER", "no problem and no run"),
        (
            "",
            "shuot = tamis_bad:HANDLER",
            "no installed package brings the handler type 'shout', did you mean 'shuot'?",
        ),
        ("", "", "no installed package brings the handler type 'shout'"),
    ],
)
def test_a_broken_package_is_the_tools_problem_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, entry: str, said: str
) -> None:
    package(tmp_path / "site", "tamis_bad", source, entry)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(plugins, "_LOADED", {})
    sys.modules.pop("tamis_bad", None)
    (tmp_path / "shout.tool.json").write_text(json.dumps(MANIFEST))
    served = Served(tmp_path, handlers=["shout"])
    (tool,) = served.runtime.list_tools().tools
    assert said in str(tool.reason)
    result = served.run("t:shout", {"text": "x"})
    assert (result.status, error_of(result)["type"], result.output) == ("error", "DependencyError", UNSET)
    assert served.run("system:get_current_time").status == "success"


def test_two_packages_with_one_type_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "site", "tamis_one", "", "shout = tamis_one:HANDLER")
    package(tmp_path / "site", "tamis_two", "", "shout = tamis_two:HANDLER")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(plugins, "_LOADED", {})
    assert "two packages bring the handler type 'shout'" in str(plugins.load_handler("shout"))
