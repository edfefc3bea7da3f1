"""What an agent is told of, and may call: seed 001 §5 (V03, V08, V10, V11, V17, V27 to V29; ruling 42)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import ExecutionError, ExecutionResult
from tamis.protocols.manifest.profile import Profile, ToolCallConfig
from tamis.protocols.manifest.reading import Execution, Manifest, ServiceMethod
from tamis.protocols.model import Json
from tamis.protocols.workflow.reading import read_workflow
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.profile import AgentRules, own_profile
from tamis.server.runtime.texts.prompts import PromptRequest, Prompts
from tamis.server.runtime.tools.listing import Discovery, config_hash, discover
from tamis.server.runtime.tools.registry import Origin, Registry, Tool
from tamis.server.runtime.tools.workflows import tool_of_workflow
from tests.sample_tools import make_tool


def tool(
    tool_id: str,
    *,
    says: bool | None = None,
    origin: Origin = "manifest",
    description: str = "Does what its name says.",
    parameters: dict[str, Json] | None = None,
    version: str = "1.0.0",
) -> Tool:
    handler = ServiceMethod("S", "m")
    manifest = Manifest(tool_id, tool_id, description, version, handler, parameters=parameters, agent_callable=says)
    return Tool(manifest, f"/{tool_id}", origin=origin)


TOOLS = [
    tool("file"),
    tool("file:no", says=False),
    tool("host:unsaid", origin="host"),
    tool("host:yes", origin="host", says=True),
    tool("host:no", origin="host", says=False),
    tool("host:bare", origin="host", says=True, description=" "),
    tool("host:typed", origin="host", says=True, description="", parameters={"type": "object"}),
]
CALLABLE = {"file", "host:yes", "host:typed"}


def rules(*, inventory: tuple[str, ...] | None = None, has_config: bool = True, **config: Any) -> AgentRules:
    return AgentRules(Profile(inventory, ToolCallConfig(**{"enabled": True, **config}), has_config))


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        pytest.param(
            AgentRules(), CALLABLE, id="steps 1 to 3: without a profile every callable tool that says what it is"
        ),
        pytest.param(rules(), CALLABLE, id="step 4: on, by default for every tool (V11)"),
        pytest.param(rules(enabled=False), set(), id="off (V08)"),
        pytest.param(rules(has_config=False), set(), id="no config is off (V17)"),
        pytest.param(AgentRules(problem="broken"), set(), id="a profile that cannot be read is off"),
        pytest.param(AgentRules(missing="unknown"), set(), id="an agent that no profile speaks of (ruling 42)"),
        pytest.param(rules(default_tool_enabled=False), set(), id="off by default (V11)"),
        pytest.param(
            rules(default_tool_enabled=False, tool_toggles={"file": True}),
            {"file"},
            id="a toggle wins over the default (V10)",
        ),
        pytest.param(rules(tool_toggles={"file": False}), CALLABLE - {"file"}, id="a toggle that says no (V10)"),
        pytest.param(rules(tool_toggles={"file:no": True}), CALLABLE, id="no toggle makes a tool callable (V03)"),
        pytest.param(rules(inventory=("host:yes", "file:no")), {"host:yes"}, id="the inventory"),
        pytest.param(rules(inventory=()), set(), id="an empty inventory"),
        pytest.param(
            rules(inventory=("file", "host:yes"), tool_toggles={"file": False}), {"host:yes"}, id="inventory and toggle"
        ),
    ],
)
def test_the_steps_of_discovery(agent: AgentRules, told: set[str]) -> None:  # V27, V03
    found = discover(Registry(TOOLS), agent)
    assert {one.tool_id for one in found.tools} == told
    assert [one.tool_id for one in found.tools] == sorted(one.tool_id for one in found.tools)  # V34
    assert {one.tool_id for one in found.tools} | {one.tool.tool_id for one in found.left_out} == {
        t.tool_id for t in TOOLS
    }
    assert all(one.reason for one in found.left_out)
    if not told and agent.off:
        assert found.off == agent.off


def test_each_tool_is_kept_out_by_the_first_step_that_it_fails() -> None:  # V27
    found = discover(Registry(TOOLS), rules(inventory=("host:yes",)))
    assert {one.tool.tool_id: one.step for one in found.left_out} == {
        "file": "profile",
        "file:no": "agentCallable",
        "host:unsaid": "agentCallable",
        "host:no": "agentCallable",
        "host:bare": "metadata",
        "host:typed": "profile",
    }


def test_of_several_versions_the_one_that_a_call_gets_is_told_of() -> None:
    found = discover(
        Registry([tool("x", version=version) for version in ("1.0.0", "1.4.0", "2.0.0-rc.1")]), AgentRules()
    )
    assert [one.version for one in found.tools] == ["1.4.0"]


def test_the_same_key_gives_the_same_object_and_any_other_another() -> None:  # V28
    kept, registry = Discovery(), Registry(TOOLS)
    first = kept.find(registry, rules(), "vcp", "a")
    assert kept.find(registry, rules(), "vcp", "a") is first, "equal configs are one key"
    others = [
        kept.find(registry, rules(), "tam", "a"),
        kept.find(registry, rules(), "vcp", "b"),
        kept.find(registry, rules(max_iterations=6), "vcp", "a"),
    ]
    assert all(other is not first for other in others)
    assert len({config_hash(rules()), config_hash(rules(tool_toggles={"x": True})), config_hash(AgentRules())}) == 3


def test_what_was_kept_is_forgotten_when_a_tool_is_registered_or_removed() -> None:  # V29
    kept, registry = Discovery(), Registry(TOOLS)
    first = kept.find(registry, AgentRules(), "vcp")
    assert {one.tool_id for one in kept.find(Registry(TOOLS[1:]), AgentRules(), "vcp").tools} == CALLABLE - {"file"}
    assert kept.find(registry, AgentRules(), "vcp") is not first


def test_what_is_kept_is_bounded() -> None:
    kept, registry = Discovery(), Registry(TOOLS)
    for number in range(1_000):
        kept.find(registry, AgentRules(), "vcp", f"agent {number}")
    assert len(kept._kept) <= 64  # pyright: ignore[reportPrivateUsage]


# Prompts and calls go by it


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "test:echo")
    make_tool(tmp_path, "test:other")
    return tmp_path


def write(path: Path, *inventory: str, **config: Any) -> None:
    path.write_text(json.dumps({"tool_ids_inventory": list(inventory), "toolCallConfig": {"enabled": True, **config}}))


def prompted(runtime: Runtime, agent_id: str = "") -> tuple[set[str], list[str]]:
    made = Prompts().generate(runtime, PromptRequest(agent_id=agent_id))
    return set(made.tokens.per_tool), made.notes


def called(runtime: Runtime, agent_id: str, tool_id: str = "test:echo") -> ExecutionResult:
    async def run() -> ExecutionResult:
        context = runtime.call_context(caller=Caller("test", "", agent_id))
        return await execute(CallRequest(call_id="c", name=tool_id, args={}, dry_run=True), context)

    return asyncio.run(run())


def test_an_agent_that_no_profile_speaks_of_has_no_tools(root: Path) -> None:  # ruling 42, V17
    runtime = Runtime(root)
    assert prompted(runtime)[0] == {"test:echo", "test:other"}
    assert called(runtime, "").status == "success"
    tools, notes = prompted(runtime, "writer")
    assert (tools, len(notes)) == (set(), 1)
    assert "no agent profile says what the agent 'writer' may call" in notes[0]
    assert called(runtime, "writer").status == "blocked"


def test_an_agent_has_the_profile_of_its_name_else_the_configured_one(root: Path) -> None:  # ruling 42, A23
    write(root / "agent_profile.json", "test:other")
    write(root / "writer.agent_profile.json", "test:echo", protocol="tam")
    runtime = Runtime(root, {"profile": "agent_profile.json"})
    assert prompted(runtime, "writer")[0] == {"test:echo"}
    assert Prompts().generate(runtime, PromptRequest(agent_id="writer")).protocol == "tam"
    assert prompted(runtime, "someone")[0] == prompted(runtime)[0] == {"test:other"}
    assert called(runtime, "writer").status == "success"
    refused = called(runtime, "someone").error
    assert isinstance(refused, ExecutionError)
    assert refused.type == "UnknownTool"


def test_a_change_of_an_agents_own_profile_counts_at_once(root: Path) -> None:  # A44
    write(root / "writer.agent_profile.json", "test:echo")
    runtime, prompts = Runtime(root), Prompts()
    first = prompts.generate(runtime, PromptRequest(agent_id="writer"))
    assert prompts.generate(runtime, PromptRequest(agent_id="writer")) is first  # V28
    write(root / "writer.agent_profile.json", "test:echo", "test:other")
    assert set(prompts.generate(runtime, PromptRequest(agent_id="writer")).tokens.per_tool) == {
        "test:echo",
        "test:other",
    }


def test_a_profile_of_an_agent_that_cannot_be_read_closes(root: Path) -> None:
    (root / "writer.agent_profile.json").write_text("{")
    assert "cannot be used" in prompted(Runtime(root), "writer")[1][0]


@pytest.mark.parametrize("agent_id", ["../x", "a/b", ".hidden", "a\0b", "", "x" * 200, "ünï", "a b"])
def test_no_agent_id_leads_out_of_the_folder(root: Path, agent_id: str) -> None:
    assert own_profile(root, "", agent_id) is None
    if agent_id:
        assert called(Runtime(root), agent_id).status == "blocked"


def test_a_new_profile_shows_without_a_restart(root: Path) -> None:  # A44, W20
    write(root / "agent_profile.json", "test:echo")
    runtime = Runtime(root, {"profile": "agent_profile.json"})
    tag = runtime.list_tools().etag
    assert [one.callable for one in runtime.list_tools().tools] == [True, False]
    write(root / "agent_profile.json", "test:echo", "test:other")
    runtime.reload()
    assert [one.callable for one in runtime.list_tools().tools] == [True, True]
    assert runtime.list_tools().etag != tag, "what may be called is part of the list"


# what an inventory implies


def _follow_ups(*inventory: str) -> set[str]:
    later = Manifest("job:run", "j", "Works long.", "1.0.0", ServiceMethod("S", "m"), execution=Execution(mode="async"))
    flow = read_workflow('{"nodes": [], "interfaceOutputs": {"o": {"type": "ANY", "isStream": true}}}', "flow").workflow
    assert flow is not None
    tools = [
        Tool(later, "/j"),
        tool("job:now"),
        tool_of_workflow(flow, "/flow.json"),
        tool("system:task_status", origin="builtin"),
        tool("system:read_stream", origin="builtin"),
        tool("system:other", origin="builtin"),
    ]
    return {one.tool_id for one in discover(Registry(tools), rules(inventory=inventory)).tools} - set(inventory)


def test_an_inventory_with_an_asynchronous_tool_holds_the_one_that_asks_for_tasks() -> None:
    assert _follow_ups("job:run") == {"system:task_status"}
    assert _follow_ups("job:now") == set()
    assert _follow_ups("workflow:flow") == {"system:read_stream"}


def test_a_manifest_that_takes_the_name_is_not_let_through() -> None:
    later = Manifest("job:run", "j", "Works long.", "1.0.0", ServiceMethod("S", "m"), execution=Execution(mode="async"))
    found = discover(Registry([Tool(later, "/j"), tool("system:task_status")]), rules(inventory=("job:run",)))
    assert {one.tool_id for one in found.tools} == {"job:run"}


def test_an_agent_may_ask_for_a_task_that_it_may_start(tmp_path: Path) -> None:
    make_tool(tmp_path, "job:run", execution={"mode": "async"})
    profile = {"tool_ids_inventory": ["job:run"], "toolCallConfig": {"enabled": True}}
    (tmp_path / "a.agent_profile.json").write_text(json.dumps(profile))
    runtime = Runtime(tmp_path, {"profile": "a.agent_profile.json"})
    request = CallRequest(call_id="c", name="system:task_status", args={"task_id": "task-none"})
    result = asyncio.run(execute(request, runtime.call_context()))
    assert result.error and result.error.type != "UnknownTool"
