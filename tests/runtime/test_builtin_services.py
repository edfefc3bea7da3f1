"""Tamis's own tools: world and private state, events, files, time, tasks; who sees them and what they may do."""

from __future__ import annotations

import asyncio
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tamis.protocols.catalogue import severity
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.observation import observation
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.handlers.service import state
from tamis.server.runtime.handlers.service.clock import time_in
from tamis.server.runtime.handlers.service.files import DoesNotFit, edited
from tamis.server.runtime.handlers.service.state import StateError, find, put, remove
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.builtin import NAMES, manifests
from tests.runtime.service_world import Served, error_of, method
from tests.sample_tools import action, make_tool, tam


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))


# Who sees them


def test_the_definitions_are_what_reading_them_gives(tmp_path: Path) -> None:
    for manifest, _ in manifests(tmp_path, Settings(resources={"d": "."}, policy=Settings().policy)):
        reading = read_manifest(msgspec.json.encode(manifest.raw).decode())
        assert [diag for diag in reading.diagnostics if severity(diag) in ("error", "warning")] == []
        assert reading.manifest == manifest


def test_own_tools_can_be_called_and_stand_in_no_list_that_nobody_asked_for(tmp_path: Path) -> None:  # seed 004 §1
    world = Served(tmp_path)
    assert world.runtime.list_tools().tools == []
    assert world.run("system:get_current_time").status == "success"


def test_lists_show_the_own_tools_that_the_settings_or_the_profile_name(tmp_path: Path) -> None:  # A23, A44
    world = Served(tmp_path, builtin=["system:*", "ReadWorldStateTool"])
    assert [tool.tool_id for tool in world.runtime.list_tools().tools] == [
        "ReadWorldStateTool",
        "system:get_current_time",
        "system:task_status",
    ]
    profile = '{"tool_ids_inventory": ["system:get_current_time"], "toolCallConfig": {"enabled": true}}'
    (tmp_path / "agent_profile.json").write_text(profile)
    agent = Served(tmp_path, profile="agent_profile.json")
    assert [(tool.tool_id, tool.callable) for tool in agent.runtime.list_tools().tools] == [
        ("system:get_current_time", True)
    ]
    assert agent.run("system:get_current_time").status == "success"
    assert (
        error_of(Served(tmp_path, profile="agent_profile.json").run("ReadWorldStateTool", {"path": "a"}))["type"]
        == "UnknownTool"
    )


def test_a_tool_of_the_operators_takes_the_name_of_an_own_one(tmp_path: Path) -> None:  # ruling 35
    make_tool(tmp_path, "ReadWorldStateTool", "print('\"mine\"')", properties={"path": {"type": "string"}})
    world = Served(tmp_path, builtin=["*"])
    assert world.run("ReadWorldStateTool", {"path": "a"}).output == "mine"
    assert len([tool for tool in world.runtime.list_tools().tools if tool.tool_id == "ReadWorldStateTool"]) == 1


def test_every_own_tool_has_code(tmp_path: Path) -> None:
    world = Served(tmp_path, builtin=["*"], resources={"d": str(tmp_path)}, policy={"writeRoots": [str(tmp_path)]})
    listed = {tool.tool_id: tool.reason for tool in world.runtime.list_tools().tools}
    assert set(listed) == set(NAMES)
    assert set(listed.values()) == {UNSET}


# World and private state


def texts(world: Served, text: str, protocol: str = "auto") -> list[ExecutionResult]:
    async def work() -> list[ExecutionResult]:
        document = world.runtime.read(text, protocol)
        result = await execute_text(document, world.runtime.call_context(), TextOptions())
        await world.runtime.close()
        return result.results

    return asyncio.run(work())


def set_world(world: Served, **values: Any) -> None:
    async def work() -> None:
        def edit(document: dict[str, Any]) -> None:
            for path, value in values.items():
                put(document, path.replace("__", "."), value)

        await world.runtime.parts.states.change(state.WORLD, edit)
        await world.runtime.close()

    asyncio.run(work())


def test_the_seeds_first_example_comes_out_exactly(tmp_path: Path) -> None:  # A36, A05, A27, seed 000 §5.1
    world = Served(tmp_path)
    set_world(world, environment__weather__current_conditions="sunny")
    call = action("ReadWorldStateTool", path="environment.weather.current_conditions", default_value="unknown")
    (result,) = texts(world, f"Okay, I need to check the current weather.\n{call}")
    assert result.observation == "Observation: Tool ReadWorldStateTool executed successfully. Result: sunny"


def test_a_path_that_leads_nowhere_gives_the_default_or_says_what_is_there(tmp_path: Path) -> None:
    world = Served(tmp_path)
    set_world(world, environment__weather="sunny")
    assert world.run("ReadWorldStateTool", {"path": "environment.moon", "default_value": None}).output is None
    message = error_of(world.run("ReadWorldStateTool", {"path": "environment.wether"}))["message"]
    assert message.startswith(
        "nothing stands at 'environment.wether' in the world state, did you mean 'environment.weather'?"
    )


def of_agents(root: Path) -> Served:
    """With a profile: without one, no call of a named agent is run (ruling 42)."""
    (root / "agent_profile.json").write_text('{"toolCallConfig": {"enabled": true}}')
    return Served(root, profile="agent_profile.json")


def test_private_state_is_each_agents_own_and_outlives_the_process(tmp_path: Path) -> None:
    first = of_agents(tmp_path)
    result = first.run("UpdatePrivateStateTool", {"key": "mood", "value": {"joy": 3}}, agent="ann")
    assert result.output == {"key": "mood", "created": True}
    assert first.host.said("state/changed") == [{"scope": "private", "agentId": "ann", "keys": ["mood"]}]
    second = of_agents(tmp_path)
    assert second.run("ReadPrivateStateTool", {"key": "mood.joy"}, agent="ann").output == 3
    assert error_of(second.run("ReadPrivateStateTool", {"key": "mood"}, agent="bob"))["type"] == "ServiceError"
    assert second.run("UpdatePrivateStateTool", {"key": "mood", "value": 1}, agent="ann").output["created"] is False


def test_two_roots_have_two_worlds(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    set_world(Served(tmp_path / "a"), x=1)
    assert Served(tmp_path / "b").run("ReadWorldStateTool", {"path": "x", "default_value": "none"}).output == "none"


def test_updates_beside_each_other_lose_nothing(tmp_path: Path) -> None:
    world = Served(tmp_path)

    async def work() -> dict[str, Any]:
        await asyncio.gather(*(world.call("UpdatePrivateStateTool", {"key": f"k{n}", "value": n}) for n in range(20)))
        document = await world.runtime.parts.states.read(state.private_to(""))
        await world.runtime.close()
        return document

    assert asyncio.run(work()) == {f"k{n}": n for n in range(20)}


def test_a_state_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_STATE_BYTES", 100)
    world = Served(tmp_path)
    error = error_of(world.run("UpdatePrivateStateTool", {"key": "k", "value": "x" * 200}))
    assert "has room for 100" in error["message"]
    assert error_of(world.run("ReadPrivateStateTool", {"key": "k"}))["type"] == "ServiceError"
    assert (
        "at most 200"
        in error_of(of_agents(tmp_path).run("ReadPrivateStateTool", {"key": "k"}, agent="a" * 300))["message"]
    )


PATHS = st.lists(st.sampled_from(["a", "b", "0", "1", "c d", "ä"]), min_size=1, max_size=4).map(".".join)


@given(st.lists(st.tuples(PATHS, st.integers() | st.just([1, 2]) | st.just({"a": 0})), max_size=8), PATHS)
def test_what_was_put_is_found_and_what_was_removed_is_not(changes: list[tuple[str, Any]], path: str) -> None:
    document: dict[str, Any] = {}
    for where, value in changes:
        try:
            put(document, where, value)
        except StateError:
            continue
        assert find(document, where) == state.Found(True, value)
    found = find(document, path)
    assert remove(document, path) == found.found or isinstance(found.value, dict)
    if found.found and not any(part.isdigit() for part in path.split(".")):
        assert not find(document, path).found


# Events


def test_an_event_reaches_the_host(tmp_path: Path) -> None:  # A22, seed 000 §4.2
    world = Served(tmp_path)
    text = '<ACTION><PublishEventTool><event_type>agent.done</event_type><payload><![CDATA[{"message": "Task done"}]]></payload></PublishEventTool></ACTION>'
    (result,) = texts(world, text)
    (event,) = world.host.said("event/published")
    assert (event["eventType"], event["payload"]) == ("agent.done", {"message": "Task done"})
    assert result.output == {"eventId": event["eventId"]}


def test_without_a_host_no_event_can_be_published(tmp_path: Path) -> None:
    world = Served(tmp_path)
    world.runtime.parts.host = None
    error = error_of(world.run("PublishEventTool", {"event_type": "e"}))
    assert (error["type"], error["message"]) == ("ServiceError", "there is no host that could be told of an event")


def test_an_event_is_bounded(tmp_path: Path) -> None:
    error = error_of(Served(tmp_path).run("PublishEventTool", {"event_type": "e", "payload": {"x": "y" * 300_000}}))
    assert error["type"] == "ResourceError"


# Time and tasks

NOON = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "iso", "offset", "called"),
    [
        ("UTC", "2026-01-31T12:00:00+00:00", "+00:00", "UTC"),
        ("z", "2026-01-31T12:00:00+00:00", "+00:00", "UTC"),
        ("+08:00", "2026-01-31T20:00:00+08:00", "+08:00", "UTC+08:00"),
        ("-3", "2026-01-31T09:00:00-03:00", "-03:00", "UTC-03:00"),
        ("utc+0530", "2026-01-31T17:30:00+05:30", "+05:30", "UTC+05:30"),
        ("Asia/Shanghai", "2026-01-31T20:00:00+08:00", "+08:00", "Asia/Shanghai"),
        ("asia/shanghai", "2026-01-31T20:00:00+08:00", "+08:00", "Asia/Shanghai"),
        ("America/New_York", "2026-01-31T07:00:00-05:00", "-05:00", "America/New_York"),
    ],
)
def test_the_time_is_told_in_the_zone_that_is_named(zone: str, iso: str, offset: str, called: str) -> None:
    told = time_in(NOON, zone)
    assert (told["iso"], told["utcOffset"], told["timezone"]) == (iso, offset, called)
    assert (told["weekday"], told["epochMs"]) == ("Saturday", 1769860800250)


@pytest.mark.parametrize("zone", ["Asia/Shanghia", "../../etc/passwd", "+15:00", "x" * 90, "a\x00b", "Mars/Olympus"])
def test_what_is_no_zone_is_said(tmp_path: Path, zone: str) -> None:
    result = Served(tmp_path).run("system:get_current_time", {"timezone": zone})
    assert error_of(result)["type"] == "ParameterValidationError"


def test_the_time_without_a_zone_is_the_machines(tmp_path: Path) -> None:
    before = datetime.now(UTC).timestamp() * 1000
    output = Served(tmp_path).run("system:get_current_time").output
    assert before - 1 <= output["epochMs"]
    assert datetime.fromisoformat(output["iso"]).utcoffset() is not None


def test_a_task_that_is_not_there_is_said(tmp_path: Path) -> None:
    error = error_of(Served(tmp_path).run("system:task_status", {"task_id": "task-0"}))
    assert (error["type"], error["details"]) == ("ServiceError", {"code": "taskNotFound"})


def test_the_status_of_a_task_is_told_while_it_works_and_when_it_has_ended(
    tmp_path: Path,
) -> None:  # A52, seed 003 §6.5
    async def work() -> list[Any]:
        gate = asyncio.Event()

        async def slow(*_given: Any) -> str:
            await gate.wait()
            return "made"

        world = Served(tmp_path, slow)
        world.runtime.parts.stays = True
        world.register("s", method("draw", executionMode="async"))
        begun = await world.call("s:draw")
        assert (begun.status, begun.task_id is UNSET) == ("accepted", False)
        first = await world.call("system:task_status", {"task_id": begun.task_id})
        gate.set()
        while (last := await world.call("system:task_status", {"task_id": begun.task_id})).output[
            "status"
        ] == "working":
            await asyncio.sleep(0.01)
        await world.runtime.close()
        assert first.output == {"taskId": begun.task_id, "status": "working"}  # T14: what a model needs
        assert set(last.output) == {"taskId", "status", "result"}
        assert last.output["result"] == {"status": "success", "output": "made"}
        return [first.output["status"], last.output["status"], last.output["result"]["output"]]

    assert asyncio.run(work()) == ["working", "completed", "made"]


# Files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def files(tmp_path: Path, folder: Path, **more: Any) -> Served:
    policy = {"writeRoots": [str(folder)], **more.pop("policy", {})}
    return Served(tmp_path, resources={"data": str(folder), "other": str(tmp_path)}, policy=policy, **more)


def test_a_file_is_written_appended_to_and_edited(tmp_path: Path, folder: Path) -> None:  # seed 002 §5.1, §5.2
    world = files(tmp_path, folder)
    written = world.run("File.Write", {"file_path": "fam://data/a/b/run.log", "content": "one\n"})
    assert written.output == {"path": "fam://data/a/b/run.log", "bytes": 4, "created": True}
    assert world.run("File.Append", {"file_path": "fam://data/a/b/run.log", "content": "two"}).output["bytes"] == 7
    world.run("File.Append", {"file_path": str(folder / "a/b/run.log"), "content": "three", "new_line": True})
    edited = world.run(
        "File.ApplyEdit",
        {"file_path": "fam://data/a/b/run.log", "search_string": "two", "replace_string": "2"},
    )
    assert edited.output == {"path": "fam://data/a/b/run.log", "bytes": 11, "replaced": 1, "line": 2}
    assert (folder / "a/b/run.log").read_text() == "one\n2\nthree"
    assert edited.permissions.granted.write == [str(folder)]


def test_an_edit_of_what_is_not_there_makes_nothing(tmp_path: Path, folder: Path) -> None:
    args = {"search_string": "a", "replace_string": "b"}
    for name in ("x", "a/b/x"):
        result = files(tmp_path, folder).run("File.ApplyEdit", {"file_path": f"fam://data/{name}", **args})
        assert error_of(result)["message"] == f"there is no file fam://data/{name}; File.Write makes one"
    assert list(folder.iterdir()) == []


def test_a_later_step_uses_what_an_earlier_one_wrote(tmp_path: Path, folder: Path) -> None:
    """T37, seed 002 §3.2, §5.2: by its URI; of an asynchronous step that has only begun there is nothing yet."""
    reads = "import json, sys\nprint(json.dumps(open(json.load(sys.stdin)['log']).read()))\n"
    make_tool(tmp_path, "report:build", reads, properties={"log": {"type": "string"}}, required=["log"])
    late = "import time\ntime.sleep(10**6)\n"
    make_tool(tmp_path, "image:generate", late, execution={"mode": "async"})
    world = files(tmp_path, folder)
    world.runtime.parts.stays = True
    begun, written, built = texts(
        world,
        tam(
            {"command": "image:generate", "on_error": "continue", "text": "an owl"},
            {"command": "File.Append", "file_path": "fam://data/run.log", "content": "report started"},
            {"command": "report:build", "uri_log": "fam://data/run.log"},
        ),
    )
    assert (begun.status, written.status, built.status) == ("accepted", "success", "success")
    assert built.output == "report started"


_DRAWS = """import json, sys
asked = json.load(sys.stdin)
open(asked["output_uri"], "w").write(asked["prompt"])
print(json.dumps("drawn"))
"""
_BUILDS = "import json, sys\nprint(json.dumps(json.load(sys.stdin)['payload']))\n"
_SEED_52 = """<|[REQUEST_TOOL]|>
common_output_dir:»»»fam://data/reports/today«««

command_1:»»»ImageTool.Generate«««
on_error_1:»»»continue«««
prompt_1:»»»一只戴着宇航头盔的猫头鹰，赛博朋克风格«««
output_uri_1:»»»@{common_output_dir}/cover.png«««

command_2:»»»File.Append«««
file_path_2:»»»@{common_output_dir}/run.log«««
content_2:»»»-- Report generation started at @{timestamp} --«««

command_3:»»»Report.Build«««
type_hint_payload_3:»»»json«««
payload_3:»»»
{
  "title": "每日运营报告",
  "coverImageUri": "@{common_output_dir}/cover.png",
  "logFileUri": "@{common_output_dir}/run.log",
  "author": "@{someone}"
}
«««
<|[END_TOOL]|>"""


def drawing(tmp_path: Path, folder: Path, **more: Any) -> Served:
    """A tool that writes where a URI says, one that gives back what it was given, and the file service."""
    make_tool(
        tmp_path,
        "image:generate",
        _DRAWS,
        aliases=["ImageTool.Generate"],
        properties={"prompt": {"type": "string"}, "output_uri": {"type": "string", "x-resource": "write"}},
        required=["output_uri"],
        securityContext={"fileAccess": {"allowWrite": [f"{folder}/**"]}},
    )
    payload = {"payload": {"type": "object"}}
    make_tool(tmp_path, "report:build", _BUILDS, aliases=["Report.Build"], properties=payload, required=["payload"])
    return files(tmp_path, folder, **more)


def with_variables(world: Served, text: str, **variables: str) -> list[ExecutionResult]:
    async def work() -> list[ExecutionResult]:
        context = world.runtime.call_context().having(variables=variables)
        done = await execute_text(world.runtime.read(text, "tam"), context, TextOptions())
        await world.runtime.close()
        return done.results

    return asyncio.run(work())


def test_the_seeds_report_yields_its_files(tmp_path: Path, folder: Path) -> None:  # T36, T28, seed 002 §5.2
    (folder / "reports" / "today").mkdir(parents=True)
    said = {"common_output_dir": "fam://data/reports/today", "timestamp": "09:00 «««"}
    drawn, written, built = with_variables(drawing(tmp_path, folder), _SEED_52, **said)
    assert [drawn.status, written.status, built.status] == ["success"] * 3, [
        one.observation for one in (drawn, written, built)
    ]
    assert (folder / "reports/today/cover.png").read_text() == "一只戴着宇航头盔的猫头鹰，赛博朋克风格"
    assert (folder / "reports/today/run.log").read_text() == "-- Report generation started at 09:00 ««« --"
    assert built.output == {
        "title": "每日运营报告",
        "coverImageUri": "fam://data/reports/today/cover.png",
        "logFileUri": "fam://data/reports/today/run.log",
        "author": "@{someone}",
    }


@pytest.mark.parametrize(
    "uri",
    [
        "fam://data/../x.png",
        "fam://data/%2e%2e/x.png",
        "fam://other/x.png",
        "fam://nowhere/x",
        "fam://data/",
        "fam://data/a%00b",
    ],
)
def test_a_target_outside_what_the_tool_may_write_is_refused_before_anybody_is_asked(
    tmp_path: Path, folder: Path, uri: str
) -> None:  # T36
    world = drawing(tmp_path, folder)
    result = world.run("image:generate", {"prompt": "x", "output_uri": uri})
    assert (result.status, error_of(result)["type"]) == ("blocked", "SecurityError")
    assert "output_uri" in error_of(result)["message"]


def test_a_target_gives_no_right_of_its_own(tmp_path: Path, folder: Path) -> None:  # T36
    world = drawing(tmp_path, folder, policy={"writeRoots": [str(tmp_path / "elsewhere")]})
    result = world.run("image:generate", {"prompt": "x", "output_uri": "fam://data/x.png"})
    assert result.status == "blocked"
    assert "policy.writeRoots opens it" in error_of(result)["message"]


def test_what_the_host_puts_in_has_to_fit_and_is_not_read_again(tmp_path: Path, folder: Path) -> None:  # T36
    make_tool(tmp_path, "t:short", _BUILDS, properties={"payload": {"type": "string", "maxLength": 9}})
    world = files(tmp_path, folder)
    block = "<|[REQUEST_TOOL]|>\ncommand:»»»t:short«««\npayload:»»»@{a}«««\n<|[END_TOOL]|>"
    (result,) = with_variables(world, block, a="far too long")
    assert error_of(result)["type"] == "ParameterValidationError"
    (result,) = with_variables(files(tmp_path, folder), block, a="@{b}", b="never")
    assert result.output == "@{b}"
    (result,) = with_variables(files(tmp_path, folder), block.replace("@{a}", "@{a}" * 2), a="x" * 2_500_000)
    assert "4000000 characters" in error_of(result)["message"]


def test_the_seeds_tam_blocks_run(tmp_path: Path, folder: Path) -> None:  # T10, T13, seed 002 §5.1, §5.3
    (folder / "main.js").write_text('console.log("old");\n')
    world = files(tmp_path, folder)
    results = texts(
        world,
        tam(
            {
                "command": "File.ApplyEdit",
                "file_path": str(folder / "main.js"),
                "search_string": 'console.log("old");',
                "replace_string": 'console.log("new");',
            },
            {"command": "File.Write", "file_path": "fam://data/today.log", "content": "start…\nanother line"},
        ),
    )
    assert [result.status for result in results] == ["success", "success"], [result.observation for result in results]
    assert (folder / "main.js").read_text() == 'console.log("new");\n'
    assert (folder / "today.log").read_text() == "start…\nanother line"


def test_nothing_is_written_where_the_operator_opened_nothing(tmp_path: Path, folder: Path) -> None:
    args = {"file_path": "fam://data/x", "content": "y"}
    for settings in ({}, {"resources": {"data": str(folder)}}, {"policy": {"writeRoots": [str(folder)]}}):
        error = error_of(Served(tmp_path, **settings).run("File.Write", args))
        assert error["type"] == "ServiceError"
        assert "[resources]" in error["message"] and "policy.writeRoots" in error["message"]
    assert list(folder.iterdir()) == []


def test_settings_with_names_that_no_folder_can_have_open_nothing(tmp_path: Path, folder: Path) -> None:
    for odd in ("/tmp/\0", "/tmp/\ud800"):
        world = Served(tmp_path, resources={"odd": odd, "data": str(folder)}, policy={"writeRoots": [odd, str(folder)]})
        assert world.run("File.Write", {"file_path": "fam://data/x", "content": "y"}).status == "success"
        assert world.run("File.Write", {"file_path": str(folder / "x"), "content": "y"}).status == "success"
        refused = world.run("File.Write", {"file_path": "fam://odd/x", "content": "y"})
        assert (refused.status, error_of(refused)["type"]) == ("blocked", "SecurityError")
        assert "'odd' a name that no folder can have" in error_of(refused)["message"]


def test_a_part_of_a_resource_folder_can_be_opened(tmp_path: Path, folder: Path) -> None:
    (folder / "out").mkdir()
    world = files(tmp_path, folder / "out")
    assert world.run("File.Write", {"file_path": "fam://other/data/out/x", "content": "y"}).status == "success"
    result = world.run("File.Write", {"file_path": "fam://other/data/x", "content": "y"})
    assert (result.status, error_of(result)["type"]) == ("blocked", "SecurityError")


@pytest.mark.parametrize(
    "name",
    [
        "fam://data/../x",
        "fam://data/%2e%2e/x",
        "fam://data/a/../../x",
        "fam://data//x",
        "fam://data/",
        "fam://data",
        "fam://data/a%00b",
        "fam://data/a%5cb",
        "fam://data/%ff",
        "fam://nowhere/x",
        "fam:///x",
        "fam://other/x",
        "/etc/passwd",
        "x.txt",
        "file:///etc/passwd",
        "fam://data/@{common_output_dir}/x",
        "fam://data/link/x",
        "fam://data/link.txt",
        "fam://data/.git/config",
        "fam://data/package.json",
        "fam://data/x.tool.json",
        "fam://data/" + "a" * 300,
        "fam://data/" + "a/" * 100 + "x",
        "fam://data/pipe",
        "fam://data/folder",
    ],
)
def test_targets_that_are_refused(tmp_path: Path, folder: Path, name: str) -> None:  # T18, S1, S2, D82
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("kept")
    (folder / "link").symlink_to(outside)
    (folder / "link.txt").symlink_to(outside / "x.txt")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for tool, more in (
        ("File.Write", {"content": "evil"}),
        ("File.Append", {"content": "evil"}),
        ("File.ApplyEdit", {"search_string": "kept", "replace_string": "evil"}),
    ):
        result = files(tmp_path, folder).run(tool, {"file_path": name, **more})
        assert result.status in ("blocked", "error"), (tool, name, result.output)
        assert error_of(result)["type"] in ("SecurityError", "ServiceError", "ParameterValidationError")
    assert (outside / "x.txt").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == ["data", "outside"]


def test_a_file_with_another_name_elsewhere_is_not_appended_to(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "outside.txt").write_text("kept")
    os.link(tmp_path / "outside.txt", folder / "in.txt")
    result = files(tmp_path, folder).run("File.Append", {"file_path": "fam://data/in.txt", "content": "evil"})
    assert (result.status, (tmp_path / "outside.txt").read_text()) == ("blocked", "kept")
    assert (
        files(tmp_path, folder).run("File.Write", {"file_path": "fam://data/in.txt", "content": "own"}).status
        == "success"
    )
    assert (tmp_path / "outside.txt").read_text() == "kept"


def test_no_tool_can_be_planted_where_tools_are_searched(tmp_path: Path, folder: Path) -> None:  # ruling 34
    world = files(tmp_path, folder)
    assert world.run("File.Write", {"file_path": "fam://data/x/y.TOOL.json", "content": "{}"}).status == "success"
    assert world.run("File.Write", {"file_path": "fam://data/x/y.tool.json", "content": "{}"}).status == "blocked"
    assert world.run("File.Write", {"file_path": "fam://data/tamis.toml", "content": ""}).status == "blocked"


def test_a_file_keeps_its_mode_and_no_reader_sees_half_of_it(tmp_path: Path, folder: Path) -> None:
    target = folder / "run.sh"
    target.write_text("old")
    target.chmod(0o750)
    with target.open() as reader:
        files(tmp_path, folder).run("File.Write", {"file_path": "fam://data/run.sh", "content": "new"})
        assert reader.read() == "old"
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o750)
    assert [path.name for path in folder.iterdir()] == ["run.sh"]


def test_sizes_are_bounded_by_what_a_script_may_write(tmp_path: Path, folder: Path) -> None:
    world = files(tmp_path, folder, sandbox={"fileBytes": 1_000})
    error = error_of(world.run("File.Write", {"file_path": "fam://data/x", "content": "x" * 1_001}))
    assert (error["type"], "1000 of sandbox.fileBytes" in error["message"]) == ("ParameterValidationError", True)
    assert world.run("File.Write", {"file_path": "fam://data/x", "content": "x" * 1_000}).status == "success"
    for tool, more in (
        ("File.Append", {"content": "x"}),
        ("File.ApplyEdit", {"search_string": "x", "replace_string": "xx", "replace_all": True}),
    ):
        assert (
            "1000 of sandbox.fileBytes" in error_of(world.run(tool, {"file_path": "fam://data/x", **more}))["message"]
        )
    assert (folder / "x").stat().st_size == 1_000


def test_appends_beside_each_other_lose_nothing(tmp_path: Path, folder: Path) -> None:
    world = files(tmp_path, folder)

    async def work() -> None:
        await asyncio.gather(
            *(world.call("File.Append", {"file_path": "fam://data/log", "content": f"{n}\n"}) for n in range(30))
        )
        await world.runtime.close()

    asyncio.run(work())
    assert sorted(int(line) for line in (folder / "log").read_text().splitlines()) == list(range(30))


def test_writing_asks_where_the_policy_wants_it(tmp_path: Path, folder: Path) -> None:  # V14, V43
    asked: list[Any] = []

    async def deny(question: Any) -> Any:
        asked.append(question.args)
        return "deny"

    world = files(tmp_path, folder, policy={"requireConfirmation": "writes"})
    args = {"file_path": "fam://data/x", "content": "y"}
    assert world.run("File.Write", args, ask=deny).status == "denied"
    assert asked == [args]
    assert world.run("system:get_current_time", ask=deny).status == "success"
    assert list(folder.iterdir()) == []


def test_a_manifest_can_name_the_file_service_for_a_folder_of_its_own(tmp_path: Path, folder: Path) -> None:  # D33, D38
    import json

    (tmp_path / "tools").mkdir()
    parameters = {"type": "object", "properties": {"file_path": {"type": "string"}, "content": {}}}
    manifest = {
        "toolId": "notes:write",
        "displayName": "Write a note",
        "description": "Writes a note into the folder of notes, and nowhere else.",
        "version": "1.0.0",
        "handler": {"type": "service-method", "serviceName": "File", "methodName": "Write"},
        "parameters": parameters,
        "securityContext": {"fileAccess": {"allowWrite": [str(folder / "notes")]}},
    }
    (tmp_path / "tools/notes.tool.json").write_text(json.dumps(manifest))
    world = files(tmp_path, folder, tools=["tools"])
    assert world.run("notes:write", {"file_path": "fam://data/notes/a", "content": "x"}).status == "success"
    assert world.run("notes:write", {"file_path": "fam://data/b", "content": "x"}).status == "blocked"
    # the manifest's schema lets anything through; the service looks again (D82)
    for content in (5, None, ["x"]):
        error = error_of(world.run("notes:write", {"file_path": "fam://data/notes/a", "content": content}))
        assert error["type"] == "ParameterValidationError"
    error = error_of(world.run("notes:write", {"content": "x"}))
    assert (error["type"], error["message"]) == ("ParameterValidationError", "'file_path' must be a text")


# Edits


def test_an_edit_replaces_the_one_place() -> None:
    assert edited("a\nb\nc\n", "b\n", "B\nB\n").text == "a\nB\nB\nc\n"
    made = edited("x x x", "x", "y", every=True)
    assert (made.text, made.replaced, made.line) == ("y y y", 3, 1)
    assert edited("a\r\nb\r\nc", "a\nb", "1\n2").text == "1\r\n2\r\nc"


@pytest.mark.parametrize(
    ("text", "search", "said"),
    [
        ("one\ntwo\none\n", "one", "stands 2 times in the file, at the lines 1, 3"),
        (
            "def f():\n    return  1\n",
            "return 1",
            "line 2 only with other blanks or indentation; the line is '    return  1'",
        ),
        ("alpha\nbeta(1)\n", "beta(2)", "the nearest to its first line is line 2: 'beta(1)'"),
        ("alpha\n", "zzzzzzzzzz", "nor anything like its first line"),
        ("", "x", "which has 0 lines"),
        ("a b", "   ", "only blanks"),
        ("same", "same", "nothing would change"),
    ],
)
def test_an_edit_that_does_not_fit_says_where_to_look(text: str, search: str, said: str) -> None:
    with pytest.raises(DoesNotFit) as problem:
        edited(text, search, "same" if search == "same" else "new")
    assert said in str(problem.value)


@given(st.text("ab \n\r", max_size=30), st.text("ab \n\r", min_size=1, max_size=6), st.text("ab\n", max_size=6))
def test_an_edit_either_fits_once_or_is_refused(text: str, search: str, replace: str) -> None:
    try:
        made = edited(text, search, replace)
    except DoesNotFit:
        return
    assert made.replaced == 1
    assert len(made.text.replace("\r", "")) == len(text.replace("\r", "")) - len(search.replace("\r", "")) + len(
        replace
    )


def test_a_large_file_is_searched_in_time() -> None:
    lines = [f"line number {n} of a large file with some words in it" for n in range(60_000)]
    with pytest.raises(DoesNotFit):
        edited("\n".join(lines), "line nomber 59999 of a large file with some words", "x")


def test_results_are_observed_like_those_of_every_tool(tmp_path: Path, folder: Path) -> None:  # A27, T16
    result = files(tmp_path, folder).run("File.Write", {"file_path": "fam://nodata/x", "content": "y"})
    assert "policy forbids it" in observation(result, "tam")
