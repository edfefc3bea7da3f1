"""What is kept of a tool from call to call is of what is in force alone: whatever changes between two calls, the second is held to it (ruling 58).

Each case changes one thing that a plan is made of (``calls/prepared.py``), or one that must not be in it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.sandbox.model import RunOutcome, SandboxInfo
from tamis.server.runtime.calls import prepared
from tamis.server.runtime.calls.model import CallContext, CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.preparing import plan_of
from tamis.server.runtime.handlers.script import judge
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool

TOOL = "test:clock"
HANDLER = {"type": "service-method", "serviceName": "system", "methodName": "get_current_time"}
ON = {"toolCallConfig": {"enabled": True}}
PROFILE = "agent_profile.json"


class World:
    """A root whose one tool gives the time, and a runtime of it that lives from call to call."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings("")
        self.tool()
        self.runtime = Runtime(root)

    def tool(self, **fields: Any) -> None:
        make_tool(self.root, TOOL, **{"handler": HANDLER, "properties": {"timezone": {"type": "string"}}, **fields})

    def settings(self, text: str) -> None:
        (self.root / "tamis.toml").write_text(f'builtin = ["system:get_current_time"]\n{text}')

    def profile(self, **fields: Any) -> None:
        told = {"id": "a", "tool_ids_inventory": [TOOL], **ON, **fields}
        (self.root / PROFILE).write_text(json.dumps(told))

    def call(self, name: str = TOOL, context: CallContext | None = None, **args: Any) -> ExecutionResult:
        async def run() -> ExecutionResult:
            around = context or self.runtime.call_context()
            return await execute(CallRequest(call_id="c", name=name, args=args), around)

        return asyncio.run(run())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def error_type(result: ExecutionResult) -> str:
    return "" if result.error is UNSET else result.error.type


Change = Callable[[World], None]
CHANGES: dict[str, tuple[Change, str, str]] = {
    "the manifest takes the tool from agents": (lambda w: w.tool(agentCallable=False), "blocked", "SecurityError"),
    "the manifest wants a person asked": (
        lambda w: w.tool(execution={"requireConfirmation": True}),
        "approvalUnavailable",
        "",
    ),
    "the manifest requires what nobody grants": (
        lambda w: w.tool(securityContext={"requiredCapabilities": ["network"]}),
        "blocked",
        "SecurityError",
    ),
    "the manifest needs a secret": (
        lambda w: w.tool(securityContext={"secrets": ["API_KEY"]}),
        "blocked",
        "SecurityError",
    ),
    "the manifest takes other arguments": (
        lambda w: w.tool(required=["timezone"]),
        "error",
        "ParameterValidationError",
    ),
    "the manifest has another handler": (
        lambda w: w.tool(handler={**HANDLER, "methodName": "no_such"}),
        "error",
        "ServiceError",
    ),
    "the manifest is gone": (lambda w: (w.root / "test_clock" / "x.tool.json").unlink(), "error", "UnknownTool"),
    "a rule forbids the tool": (
        lambda w: w.settings(f'[policy.tools]\n"{TOOL}" = "deny"\n'),
        "blocked",
        "SecurityError",
    ),
    "a rule forbids all of a kind": (
        lambda w: w.settings('[[policy.rules]]\nverdict = "deny"\ntool = "test:*"\n'),
        "blocked",
        "SecurityError",
    ),
    "a rule wants a person asked": (
        lambda w: w.settings(f'[policy.tools]\n"{TOOL}@1.0.0" = "ask"\n'),
        "approvalUnavailable",
        "",
    ),
    "the policy wants a person asked": (
        lambda w: w.settings('[policy]\nrequireConfirmation = "always"\n'),
        "approvalUnavailable",
        "",
    ),
    "the policy takes calls one a minute": (
        lambda w: (w.settings("[policy]\ncallsPerMinute = 1\n"), w.runtime.reload(), w.call())[0],
        "error",
        "RateLimited",
    ),
    "the agent's profile does not list the tool": (
        lambda w: (w.settings(f'profile = "{PROFILE}"\n'), w.profile(tool_ids_inventory=["other:tool"]))[0],
        "error",
        "UnknownTool",
    ),
    "the agent's profile switches calls off": (
        lambda w: (w.settings(f'profile = "{PROFILE}"\n'), w.profile(toolCallConfig={"enabled": False}))[0],
        "blocked",
        "SecurityError",
    ),
    "the agent's profile wants a person asked": (
        lambda w: (
            w.settings(f'profile = "{PROFILE}"\n'),
            w.profile(toolCallConfig={"enabled": True, "requireConfirmation": True}),
        )[0],
        "approvalUnavailable",
        "",
    ),
    "the agent's profile cannot be read": (
        lambda w: w.settings(f'profile = "{PROFILE}"\n'),
        "blocked",
        "SecurityError",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_between_two_calls_holds_for_the_second(world: World, change: str) -> None:
    for _ in range(2):
        assert world.call().status == "success"
    apply, status, error = CHANGES[change]
    apply(world)
    world.runtime.reload()
    result = world.call()
    assert (result.status, error_type(result)) == (status, error)
    # and back: nothing of the refusal stays either
    world.settings("")
    world.tool()
    world.runtime.reload()
    assert world.call().status == "success"


def test_what_the_manifest_asks_for_now_is_what_the_result_tells(world: World) -> None:
    assert world.call().permissions.requested == {}
    asks = {"fileAccess": {"allowRead": ["/srv/**"]}}
    world.tool(securityContext=asks)
    world.runtime.reload()
    permissions = world.call().permissions
    assert permissions.requested == asks
    assert [denied.value for denied in permissions.denied] == ["/srv/**"]


def test_a_right_is_looked_at_by_each_call(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A grant depends on the disk, so that no plan holds one: what was a folder is refused when it is a link, without a reload."""
    place = tmp_path_factory.mktemp("data")
    inner = place / "inner"
    inner.mkdir()
    world.settings(f'[policy]\nreadRoots = ["{place}"]\n')
    world.tool(securityContext={"fileAccess": {"allowRead": [f"{inner}/**"]}})
    world.runtime.reload()
    assert not world.call().permissions.denied
    inner.rmdir()
    inner.symlink_to("/etc")
    assert world.call().permissions.denied


def test_a_rule_on_a_value_is_asked_of_each_call(world: World) -> None:
    world.settings('[[policy.rules]]\nverdict = "deny"\ntool = "*"\nparameter = "timezone"\nmatches = "GMT"\n')
    world.runtime.reload()
    results = [world.call(timezone=zone) for zone in ("UTC", "GMT", "UTC", "GMT")]
    assert [result.status for result in results] == ["success", "blocked", "success", "blocked"]


def test_a_folder_that_is_closed_between_two_calls_runs_nothing(world: World) -> None:
    assert world.call().status == "success"
    (world.root / "tamis.toml").chmod(0o666)
    world.runtime.reload()
    assert world.runtime.loaded.closed or error_type(world.call()) == "UnknownTool"
    assert world.call("system:get_current_time").status != "success"


def test_agents_of_one_runtime_have_each_their_own_bounds(world: World) -> None:
    world.profile()
    (world.root / f"free.{PROFILE}").write_text(json.dumps({"id": "free", "tool_ids_inventory": [TOOL], **ON}))
    (world.root / f"bound.{PROFILE}").write_text(
        json.dumps({"id": "bound", "tool_ids_inventory": ["other:tool"], **ON})
    )
    outcomes = [
        error_type(world.call(context=world.runtime.call_context(caller=Caller(agent_id=agent))))
        for agent in ("free", "bound", "nobody", "free", "bound")
    ]
    assert outcomes == ["", "UnknownTool", "SecurityError", "", "UnknownTool"]


def test_an_agents_own_profile_that_changed_holds_for_the_next_call(world: World) -> None:
    """It is read when its file changed, without a reload."""
    file = world.root / f"one.{PROFILE}"
    for inventory, error in (([TOOL], ""), (["other:tool"], "UnknownTool"), ([TOOL], "")):
        file.write_text(json.dumps({"id": "one" * len(inventory[0]), "tool_ids_inventory": inventory, **ON}))
        context = world.runtime.call_context(caller=Caller(agent_id="one"))
        assert error_type(world.call(context=context)) == error


def test_a_call_that_began_keeps_what_was_in_force_then(world: World) -> None:
    """Both ways: the newer call is not let through by the older one's plan, nor the older one stopped by the newer's."""
    before = world.runtime.call_context()
    world.settings(f'[policy.tools]\n"{TOOL}" = "deny"\n')
    world.runtime.reload()
    after = world.runtime.call_context()
    outcomes = [world.call(context=context).status for context in (before, after, before, after)]
    assert outcomes == ["success", "blocked", "success", "blocked"]


@pytest.mark.parametrize("kept", ["settings", "registry", "agent"])
def test_a_plan_is_found_under_the_very_same_ones_alone(world: World, kept: str) -> None:
    """Equal ones are others: what is in force is told by identity, which a reading that found the same has not."""
    context = world.runtime.call_context()
    tool = context.registry.get(TOOL)
    assert tool is not None
    plan = plan_of(tool, context)
    assert plan_of(tool, context) is plan
    own = getattr(context, kept)
    twin = Runtime(world.root).registry if kept == "registry" else msgspec.structs.replace(own)
    assert plan_of(tool, msgspec.structs.replace(context, **{kept: twin})) is not plan


def test_plans_of_what_was_in_force_before_are_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MAX_PLANS", 2)
    for name in ("test:a", "test:b", "test:c"):
        make_tool(world.root, name)
    world.runtime.reload()
    context = world.runtime.call_context()
    registry, settings, agent = context.registry, context.settings, context.agent
    plans = prepared.CallPlans()
    first, second, third = [plan_of(tool, context) for tool in registry.tools][:3]

    def kept() -> list[bool]:
        return [plans.get(plan.tool, registry, settings, agent) is plan for plan in (first, second, third)]

    plans.keep(first)
    plans.keep(second)
    assert kept() == [True, True, False]
    plans.keep(third)
    assert kept() == [False, False, True]
    plans.keep(msgspec.structs.replace(first, settings=msgspec.structs.replace(settings)))
    assert kept() == [False, False, False]


def test_a_secret_that_reaches_a_tool_since_the_last_call_is_hidden_in_its_log(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """R60: what is written down of a call knows the secrets that the settings of now let the tool have."""
    log = tmp_path_factory.mktemp("log") / "audit.jsonl"
    monkeypatch.setenv("THE_KEY", "wholly-unlikely-value")
    where = f'[audit]\npath = "{log}"\n'
    world.settings(where)
    world.runtime.reload()
    assert error_type(world.call(timezone="wholly-unlikely-value"))
    assert "wholly-unlikely-value" in log.read_text()
    size = len(log.read_text())
    world.settings(f'{where}[secrets]\nAPI_KEY = {{ env = "THE_KEY" }}\n[policy.secrets]\n"test:*" = ["API_KEY"]\n')
    world.tool(securityContext={"secrets": ["API_KEY"]})
    world.runtime.reload()

    async def known() -> None:
        tool = world.runtime.registry.get(TOOL)
        assert tool is not None
        await world.runtime.parts.secrets.value("API_KEY", world.runtime.settings.secrets["API_KEY"], world.root)

    asyncio.run(known())
    world.call(timezone="wholly-unlikely-value")
    assert "call.received" in log.read_text()[size:]
    assert "wholly-unlikely-value" not in log.read_text()[size:]


def test_what_one_call_was_refused_while_it_ran_is_not_told_of_the_next(world: World) -> None:
    """Rights that ask for nothing are shared by the calls of a tool; what a run is refused is its own."""
    make_tool(world.root, "test:script")
    world.runtime.reload()
    context = world.runtime.call_context()
    tool = context.registry.get("test:script")
    assert tool is not None
    rights = plan_of(tool, context).rights
    assert rights is not None
    results: list[ExecutionResult] = []
    for refused in (("evil.test",), ()):
        result = world.call(timezone="UTC")
        result.permissions = rights.permissions
        outcome = RunOutcome(
            kind="ok", stdout=b"{}", exit_code=0, denied_hosts=refused, sandbox=SandboxInfo(backend="bubblewrap")
        )
        limits = judge.sandbox.Limits()
        judge.judge(outcome, tool, limits, (), False, result, has_environment=False)
        results.append(result)
    assert [[denied.value for denied in result.permissions.denied] for result in results] == [["evil.test"], []]
