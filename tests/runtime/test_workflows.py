"""Workflows run: order, parallel nodes, branches, maps, failures, cancel, time, nesting, what the caller's bounds are (W15 to W21, A26, A45 to A48)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tests.runtime.service_world import error_of
from tests.runtime.workflow_world import World, edge, flow, statuses


def shout(args: dict[str, Any]) -> dict[str, Any]:
    return {"loud": str(args["text"]).upper(), "length": len(str(args["text"]))}


def fail(_args: dict[str, Any]) -> None:
    from tamis.server.runtime.calls.model import HostError

    raise HostError("the engine room is on fire")


SHOUT = flow(
    [{"id": "a", "type": "t:shout"}, {"id": "say", "type": "template", "config": {"template": "{{x}}!"}}],
    [edge("a.loud", "say.x")],
    {"said": "say.text"},
    {"text": "STRING"},
    interfaceInputMappings={"text": {"nodeId": "a", "slotKey": "text"}},
)


def test_a_skill_is_run_with_its_inputs_mapped_and_a_single_output_is_bare(
    tmp_path: Path,
) -> None:  # A26, W15, W18, A48
    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout})
    result, steps = world.run_traced("workflow:loud", {"text": "quiet"})
    assert result.status == "success", result
    assert result.output == "QUIET!"
    assert result.observation == "Observation: Tool workflow:loud executed successfully. Result: QUIET!"
    assert statuses(steps) == {"a": "success", "say": "success"}
    assert world.host.asked[0][1]["args"] == {"text": "quiet"}
    assert world.host.asked[0][1]["callId"] == "call-1/a"


def test_several_outputs_are_an_object(tmp_path: Path) -> None:  # W18
    both = flow(
        [{"id": "a", "type": "t:shout", "inputs": {"text": "ab"}}],
        outputs={"loud": "a.loud", "n": "a.length", "all": "a.output"},
    )
    result = World(tmp_path, {"both": both}, {"shout": shout}).run("workflow:both")
    assert result.output == {"loud": "AB", "n": 2, "all": {"loud": "AB", "length": 2}}


@pytest.mark.parametrize("name", ["workflow:greet", "greet", "skill_greet_player", "flows/greet.json"])
def test_a_workflow_is_reached_by_its_id_its_bare_name_the_skills_id_and_its_path(
    tmp_path: Path, name: str
) -> None:  # W02, A42
    greet = flow(
        [{"id": "c", "type": "constant", "config": {"value": "hi"}}], outputs={"o": "c.value"}, id="skill_greet_player"
    )
    assert World(tmp_path, {"greet": greet}).run(name).output == "hi"


def test_the_interface_of_seed_000_counts_too(tmp_path: Path) -> None:  # A42
    content = flow([{"id": "in", "type": "input"}], outputs={"o": "in.who"}, inputs={"who": "STRING"})
    content["inputInterface"], content["outputInterface"] = (
        content.pop("interfaceInputs"),
        content.pop("interfaceOutputs"),
    )
    assert World(tmp_path, {"old": content}).run("workflow:old", {"who": "me"}).output == "me"


def test_output_nodes_give_what_leads_into_them_and_what_they_hold(tmp_path: Path) -> None:
    content = flow(
        [
            {"id": "c", "type": "constant", "config": {"value": 1}},
            {"id": "out", "type": "core:GroupOutput", "inputs": {"b": "held"}},
        ],
        [edge("c.value", "out.a")],
    ) | {"interfaceOutputs": {"a": {"dataFlowType": "INTEGER"}, "b": {"dataFlowType": "STRING"}}}
    assert World(tmp_path, {"o": content}).run("workflow:o").output == {"a": 1, "b": "held"}


def test_defaults_fill_inputs_that_the_call_leaves_out(tmp_path: Path) -> None:  # W16
    content = flow(
        [
            {"id": "in", "type": "core:GroupInput"},
            {"id": "t", "type": "template", "config": {"template": "{{a}}{{b}}"}},
        ],
        [edge("in.a", "t.a"), edge("in.b", "t.b")],
        {"o": "t.text"},
        {
            "a": {"dataFlowType": "STRING", "config": {"default": "x"}},
            "b": {"dataFlowType": "INTEGER", "config": {"default": 3}},
        },
    )
    world = World(tmp_path, {"d": content})
    assert world.run("workflow:d").output == "x3"
    assert world.run("workflow:d", {"b": 4}).output == "x4"


def test_an_input_that_is_left_out_fills_nothing(tmp_path: Path) -> None:  # W16
    content = flow(
        [
            {"id": "in", "type": "input"},
            {"id": "a", "type": "t:seen"},
            {"id": "b", "type": "t:seen", "inputs": {"x": "own"}},
        ],
        [edge("in.x", "a.x"), edge("in.x", "b.x")],
        {"a": "a.output", "b": "b.output", "x": "in.x"},
        {"x": {"dataFlowType": "STRING"}},
    )
    world = World(tmp_path, {"o": content}, {"seen": dict})
    assert world.run("workflow:o").output == {"a": {}, "b": {"x": "own"}}
    assert world.run("workflow:o", {"x": "1"}).output == {"a": {"x": "1"}, "b": {"x": "1"}, "x": "1"}


def test_arguments_are_checked_against_the_interface_first(tmp_path: Path) -> None:  # A46
    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout})
    result = world.run("workflow:loud", {"txt": "a"})
    assert error_of(result)["type"] == "ParameterValidationError"
    assert result.attempts == 0
    assert world.host.asked == []


def test_independent_nodes_run_at_the_same_time_within_a_bound(tmp_path: Path) -> None:
    now, most = 0, 0

    async def work(_args: dict[str, Any]) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(20):
            await asyncio.sleep(0)
        now -= 1
        return 1

    nodes = [{"id": f"n{i}", "type": "t:work"} for i in range(9)]
    content = flow(nodes, outputs={"o": "n0.output"})
    result = World(tmp_path, {"p": content}, {"work": work}, engine={"maxParallel": 3}).run("workflow:p")
    assert result.status == "success"
    assert most == 3


def test_a_branch_that_is_not_taken_is_skipped_and_a_merge_takes_the_other(tmp_path: Path) -> None:
    content = flow(
        [
            {"id": "in", "type": "input"},
            {"id": "if", "type": "condition", "config": {"operator": "greater", "than": 5}},
            {"id": "big", "type": "t:shout"},
            {"id": "small", "type": "template", "config": {"template": "only {{n}}"}},
            {"id": "either", "type": "merge"},
        ],
        [
            edge("in.n", "if.value"),
            edge("if.then", "big.text"),
            edge("if.else", "small.n"),
            edge("big.loud", "either.a"),
            edge("small.text", "either.b"),
        ],
        {"o": "either.value", "loud": "big.loud"},
        {"n": "INTEGER"},
    )
    world = World(tmp_path, {"c": content}, {"shout": shout})
    result, steps = world.run_traced("workflow:c", {"n": 2})
    assert result.output == {"o": "only 2"}
    assert statuses(steps) == {
        "in": "success",
        "if": "success",
        "big": "skipped",
        "small": "success",
        "either": "success",
    }
    assert world.host.asked == []
    assert world.run("workflow:c", {"n": 9}).output == {"o": "9", "loud": "9"}


def test_a_map_keeps_the_order_of_its_list(tmp_path: Path) -> None:
    async def late(args: dict[str, Any]) -> int:
        for _ in range(30 - args["item"] * 5):
            await asyncio.sleep(0)
        return args["item"] * args["by"]

    content = flow(
        [
            {
                "id": "m",
                "type": "map",
                "config": {"type": "t:late", "item": "item"},
                "inputs": {"items": [0, 1, 2, 3, 4], "by": 10},
            }
        ],
        outputs={"o": "m.results"},
    )
    assert World(tmp_path, {"m": content}, {"late": late}).run("workflow:m").output == [0, 10, 20, 30, 40]


def test_a_map_may_pass_over_items_that_fail(tmp_path: Path) -> None:
    from tamis.server.runtime.calls.model import HostError

    def odd(args: dict[str, Any]) -> int:
        if args["item"] % 2:
            return args["item"]
        raise HostError("even")

    node = {"id": "m", "type": "map", "config": {"type": "t:odd", "onError": "skip"}, "inputs": {"items": [1, 2, 3]}}
    result, steps = World(tmp_path, {"m": flow([node], outputs={"o": "m.results"})}, {"odd": odd}).run_traced(
        "workflow:m"
    )
    assert result.output == [1, None, 3]
    assert statuses(steps) == {"m": "success"}
    del node["config"]["onError"]
    failed = World(tmp_path, {"m": flow([node], outputs={"o": "m.results"})}, {"odd": odd}).run("workflow:m")
    assert error_of(failed)["details"]["node"]["item"] == 1


def test_what_the_nodes_give_together_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.server.runtime.handlers.workflow.run.MAX_HELD_BYTES", 10_000)
    node = {"id": "m", "type": "map", "config": {"type": "t:big"}, "inputs": {"items": list(range(200))}}
    content = flow([node], outputs={"o": "m.results"})
    kept = World(tmp_path, {"m": content}, {"big": lambda _args: "x" * 1_000}).run("workflow:m")
    assert error_of(kept)["details"]["node"]["item"] >= 10
    assert "make the output a stream" in error_of(kept)["message"]
    single = flow([{"id": "a", "type": "t:big"}], outputs={"o": "a.output"})
    alone = World(tmp_path, {"a": single}, {"big": lambda _args: "x" * 10_001}).run("workflow:a")
    assert error_of(alone)["details"]["node"]["nodeId"] == "a"


def test_a_failing_node_is_a_structured_error_and_stops_the_rest(tmp_path: Path) -> None:  # W21
    content = flow(
        [{"id": "bad", "type": "t:fail"}, {"id": "next", "type": "t:shout"}],
        [edge("bad.output", "next.text")],
        {"o": "next.loud"},
    )
    world = World(tmp_path, {"f": content}, {"fail": fail, "shout": shout})
    result, steps = world.run_traced("workflow:f")
    assert (result.status, result.attempts) == ("error", 1)
    error = error_of(result)
    assert error["type"] == "WorkflowError"
    assert error["message"] == "node 'bad' (t:fail): ServiceError: t.fail failed: the engine room is on fire"
    node = error["details"]["node"]
    assert (node["nodeId"], node["type"], node["status"]) == ("bad", "t:fail", "error")
    assert node["error"]["type"] == "ServiceError"
    assert statuses(steps) == {"bad": "error", "next": "cancelled"}
    assert "engine room" in result.observation


async def fail_or_wait(args: dict[str, Any]) -> None:
    if args.get("item") == "bad":
        await asyncio.sleep(0.01)
        fail(args)
    await asyncio.Event().wait()


FAILING_MAP: dict[str, Any] = {"id": "m", "type": "map", "config": {"type": "t:work"}}


@pytest.mark.parametrize("items", [["wait", "bad"], ["bad", "wait"], ["wait", "bad", "wait"]])
def test_the_item_that_failed_is_named_and_not_those_that_it_cancelled(tmp_path: Path, items: list[str]) -> None:  # W21
    content = flow([{**FAILING_MAP, "inputs": {"items": items}}], outputs={"o": "m.results"})
    result, steps = World(tmp_path, {"f": content}, {"work": fail_or_wait}).run_traced("workflow:f")
    assert result.status == "error"
    assert error_of(result)["details"]["node"]["item"] == items.index("bad")
    assert statuses(steps) == {"m": "error"}


def test_a_node_that_was_cancelled_by_a_failing_map_does_not_hide_it(tmp_path: Path) -> None:  # W21
    # the map waits for its own items to end; the other node has ended by then, and stands first
    content = flow(
        [{"id": "a", "type": "t:work"}, {**FAILING_MAP, "inputs": {"items": ["wait", "bad"]}}],
        outputs={"o": "m.results", "p": "a.output"},
    )
    result, steps = World(tmp_path, {"f": content}, {"work": fail_or_wait}).run_traced("workflow:f")
    assert result.status == "error"
    assert error_of(result)["details"]["node"]["nodeId"] == "m"
    assert statuses(steps) == {"a": "cancelled", "m": "error"}


def test_an_item_that_was_refused_is_not_hidden_by_those_that_it_cancelled(tmp_path: Path) -> None:  # W21
    rule = {"tool": "t:work", "parameter": "item", "matches": "no", "verdict": "deny"}
    content = flow([{**FAILING_MAP, "inputs": {"items": ["wait", "no", "wait"]}}], outputs={"o": "m.results"})
    world = World(tmp_path, {"f": content}, {"work": fail_or_wait}, policy={"rules": [rule]})
    result, steps = world.run_traced("workflow:f")
    assert error_of(result)["details"]["node"]["status"] == "blocked"
    assert statuses(steps) == {"m": "blocked"}


def test_a_map_that_passed_over_an_item_is_no_failed_step(tmp_path: Path) -> None:
    node = {"id": "m", "type": "map", "config": {"type": "t:odd", "onError": "skip"}, "inputs": {"items": [1, 2]}}
    world = World(tmp_path, {"m": flow([node], outputs={"o": "m.results"})}, {"odd": fail})
    _, steps = world.run_traced("workflow:m")
    assert [(step.status, step.error) for step in steps] == [("success", UNSET)]


def test_a_failure_stays_the_reason_when_the_rest_does_not_end_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # W21
    from tamis.server.runtime.handlers.workflow import run_workflow as conduct

    monkeypatch.setattr(conduct, "GRACE_S", 0)
    content = flow([{**FAILING_MAP, "inputs": {"items": ["wait", "bad"]}}], outputs={"o": "m.results"})
    result, steps = World(tmp_path, {"f": content}, {"work": fail_or_wait}).run_traced("workflow:f")
    assert (result.status, statuses(steps)) == ("error", {"m": "error"})
    assert error_of(result)["details"]["node"]["error"]["type"] == "ServiceError"


def test_a_node_that_computes_nonsense_fails_by_its_name(tmp_path: Path) -> None:
    content = flow(
        [{"id": "if", "type": "condition", "inputs": {"value": [1]}, "config": {"operator": "less", "than": 2}}],
        outputs={"o": "if.then"},
    )
    error = error_of(World(tmp_path, {"x": content}).run("workflow:x"))
    assert error["details"]["node"]["nodeId"] == "if"
    assert "'less' takes two numbers or two texts" in error["message"]


def test_a_node_whose_tool_is_not_allowed_fails_by_the_callers_rules(tmp_path: Path) -> None:
    # who lists a workflow lists what it is made of; a tool that is switched off by name stays off
    profile = {
        "tool_ids_inventory": ["workflow:loud"],
        "toolCallConfig": {"enabled": True, "defaultToolEnabled": False, "toolToggles": {"workflow:loud": True}},
    }
    (tmp_path / "agent_profile.json").write_text(json.dumps(profile))
    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout}, profile="agent_profile.json")
    assert world.run("workflow:loud", {"text": "a"}).output == "A!"
    assert world.run("t:shout", {"text": "a"}).status == "error"  # not in the inventory
    profile["toolCallConfig"]["toolToggles"]["t:shout"] = False  # type: ignore[index]
    (tmp_path / "agent_profile.json").write_text(json.dumps(profile))
    result = World(tmp_path, {"loud": SHOUT}, {"shout": shout}, profile="agent_profile.json").run(
        "workflow:loud", {"text": "a"}
    )
    assert error_of(result)["details"]["node"]["status"] == "blocked"


def test_nodes_count_as_calls_of_their_own(tmp_path: Path) -> None:
    nodes = [{"id": f"n{i}", "type": "t:shout", "inputs": {"text": "a"}} for i in range(3)]
    world = World(
        tmp_path, {"r": flow(nodes, outputs={"o": "n0.loud"})}, {"shout": shout}, policy={"callsPerMinute": 2}
    )
    result = world.run("workflow:r")
    assert error_of(result)["details"]["node"]["error"]["type"] == "RateLimited"


def test_a_node_that_nobody_can_allow_fails(tmp_path: Path) -> None:
    # nobody can be asked: the workflow's own call is not run either
    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout}, policy={"requireConfirmation": "always"})
    assert world.run("workflow:loud", {"text": "a"}).status == "approvalUnavailable"


@pytest.mark.parametrize("allowed", [True, False])
def test_a_person_is_asked_for_the_nodes_too(tmp_path: Path, allowed: bool) -> None:
    asked: list[str] = []

    async def ask(question: Any) -> Any:
        asked.append(question.tool_id)
        return "allow" if allowed or question.tool_id.startswith("workflow:") else "deny"

    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout}, policy={"requireConfirmation": "always"})
    result = world.run("workflow:loud", {"text": "a"}, ask=ask)
    assert asked == ["workflow:loud", "t:shout"]
    if allowed:
        assert result.output == "A!"
    else:
        assert (result.status, error_of(result)["details"]["node"]["status"]) == ("error", "denied")
        assert error_of(result)["message"].endswith("(t:shout): the user denied it (用户拒绝了该操作)")


def test_what_a_person_says_who_refuses_a_node_reaches_the_model(tmp_path: Path) -> None:  # V61
    async def ask(question: Any) -> Any:
        own = question.tool_id.startswith("workflow:")
        from tamis.server.runtime.calls.model import Reply

        return Reply(answer="allow") if own else Reply(answer="deny", comment="not\x1b today")

    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout}, policy={"requireConfirmation": "always"})
    result = world.run("workflow:loud", {"text": "a"}, ask=ask)
    assert "; the user's comment: not\\u001b today" in result.observation


def test_a_tool_that_agents_may_not_call_is_no_node(tmp_path: Path) -> None:  # ruling 34
    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout})
    world.register("t", {"name": "shout", "description": "Is the host's own.", "parameters": {"type": "object"}})
    assert error_of(world.run("workflow:loud", {"text": "a"}))["details"]["node"]["status"] == "blocked"


def test_cancel_stops_what_runs_and_marks_the_rest(tmp_path: Path) -> None:  # W19
    stopped = asyncio.Event()

    async def never(_args: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    content = flow(
        [
            {"id": "first", "type": "t:shout", "inputs": {"text": "a"}},
            {"id": "long", "type": "t:never"},
            {"id": "last", "type": "t:shout"},
        ],
        [edge("first.loud", "long.x"), edge("long.output", "last.text")],
        {"o": "last.loud", "early": "first.loud"},
    )
    world = World(tmp_path, {"n": content}, {"shout": shout, "never": never})

    async def work() -> None:
        task = asyncio.ensure_future(world.traced("workflow:n", cancelled=stopped))
        while len(world.host.asked) < 2:
            await asyncio.sleep(0.001)
        stopped.set()
        result, steps = await task
        assert (result.status, result.error) == ("cancelled", UNSET)
        assert statuses(steps) == {"first": "success", "long": "cancelled", "last": "cancelled"}
        assert [name for name, _ in world.host.told if name == "service/cancel"] == ["service/cancel"]
        await world.runtime.close()

    asyncio.run(work())


def test_a_workflow_that_takes_too_long_ends_by_time(tmp_path: Path) -> None:
    async def never(_args: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    content = flow([{"id": "long", "type": "t:never"}], outputs={"o": "long.output"}, execution={"timeoutMs": 60})
    result, steps = World(tmp_path, {"n": content}, {"never": never}).run_traced("workflow:n")
    assert result.status == "timeout"
    assert error_of(result)["type"] == "TimeoutError"
    assert error_of(result)["details"]["limit"] == "wall"
    assert statuses(steps) == {"long": "cancelled"}


def test_workflows_run_workflows(tmp_path: Path) -> None:
    outer = flow([{"id": "w", "type": "workflow:loud", "inputs": {"text": "deep"}}], outputs={"o": "w.said"})
    world = World(tmp_path, {"loud": SHOUT, "outer": outer}, {"shout": shout})
    assert world.run("workflow:outer").output == "DEEP!"
    assert [asked["callId"] for _, asked in world.host.asked] == ["call-1/w/a"]


def test_a_workflow_that_calls_itself_is_not_run(tmp_path: Path) -> None:
    one = flow([{"id": "b", "type": "workflow:two"}], outputs={"o": "b.output"})
    two = flow([{"id": "a", "type": "workflow:one"}], outputs={"o": "a.output"})
    result = World(tmp_path, {"one": one, "two": two}).run("workflow:one")
    assert (result.status, result.attempts) == ("error", 0)
    assert error_of(result)["message"] == "the workflow cannot be run: The workflow calls itself: 'one' → 'two' → 'one'"
    assert error_of(result)["details"]["errors"][0]["code"] == "WF916"


def test_workflows_nest_only_so_deep(tmp_path: Path) -> None:
    flows = {f"w{i}": flow([{"id": "n", "type": f"workflow:w{i + 1}"}], outputs={"o": "n.output"}) for i in range(20)}
    flows["w20"] = flow([{"id": "n", "type": "constant", "config": {"value": 1}}], outputs={"o": "n.value"})
    world = World(tmp_path, flows)
    assert world.run("workflow:w6").output == 1
    result = world.run("workflow:w0")
    assert "more than 16 deep" in error_of(result)["message"]


def test_a_graph_with_faults_is_not_run(tmp_path: Path) -> None:
    content = flow([{"id": "a", "type": "t:shuot", "inputs": {"text": "a"}}], outputs={"o": "a.loud"})
    result = World(tmp_path, {"x": content}, {"shout": shout}).run("workflow:x")
    assert (result.status, result.attempts) == ("error", 0)
    assert "did you mean 't:shout'?" in error_of(result)["message"]


def test_lists_say_that_a_workflow_names_a_tool_that_is_not_there(tmp_path: Path) -> None:
    world = World(tmp_path, {"lost": flow([{"id": "a", "type": "nope:tool"}], outputs={"o": "a.x"})})
    (listed,) = [tool for tool in world.runtime.list_tools().tools if tool.tool_id == "workflow:lost"]
    assert not listed.available
    assert "nope:tool" in str(listed.reason) and str(listed.reason).endswith("see `tamis check`")


def test_lists_say_why_a_workflow_cannot_run(tmp_path: Path) -> None:
    circle = flow(
        [{"id": "a", "type": "merge"}, {"id": "b", "type": "merge"}],
        [edge("a.value", "b.x"), edge("b.value", "a.x")],
        {"o": "a.value"},
    )
    world = World(tmp_path, {"circle": circle, "broken": '{"nodes": [], "interfaceInputs": '})
    listed = {tool.tool_id: tool for tool in world.runtime.list_tools().tools}
    assert listed["workflow:circle"].kind == "workflow"
    assert not listed["workflow:circle"].available
    assert (
        listed["workflow:circle"].reason
        == "the workflow cannot be run: These nodes wait for each other: 'a' → 'b'; see `tamis check`"
    )
    assert [(error.tool_id, error.line) for error in world.runtime.registry.errors] == [("workflow:broken", 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "a-package", "version": "1.0.0", "scripts": {}}', ""),
        ("[1, 2]", ""),
        ("{", ""),
        ('{"fullType": "a:b", "inputs": {}}', ""),
        ('{"interfaceInput": {}}', "holds no workflow"),
        ('{"interfaceInputs": {', "The text ends before"),
        ('{"interfaceInputs": []}', "must be an object"),
    ],
)
def test_which_files_of_a_workflow_folder_are_said_to_be_broken(tmp_path: Path, text: str, said: str) -> None:
    errors = World(tmp_path, {"x": text}).runtime.registry.errors
    assert [error.tool_id for error in errors] == (["workflow:x"] if said else [])
    assert all(said in error.message for error in errors)


def test_a_new_file_and_a_reload_are_enough(tmp_path: Path) -> None:  # W20
    world = World(tmp_path, {})
    assert error_of(world.run("workflow:late"))["type"] == "UnknownTool"
    late = flow([{"id": "c", "type": "constant", "config": {"value": 7}}], outputs={"o": "c.value"})
    (tmp_path / "flows" / "late.json").write_text(json.dumps(late))
    world.runtime.reload()
    assert world.run("workflow:late").output == 7


@pytest.mark.parametrize(
    "value", [None, True, 0, -1.5, 10**400, "", "é\U0001f600\u0000", [], {}, [[None]], {"a": {"b": [1, "x"]}}]
)
def test_inputs_of_every_json_type_pass_through(tmp_path: Path, value: Any) -> None:
    through = flow(
        [{"id": "in", "type": "input"}, {"id": "m", "type": "merge"}],
        [edge("in.x", "m.a")],
        {"o": "m.value"},
        {"x": "WILDCARD"},
    )
    result = World(tmp_path, {"t": through}).run("workflow:t", {"x": value})
    assert result.output == value


def test_results_of_ten_megabytes_pass_through(tmp_path: Path) -> None:
    big = "x" * 10_000_000
    content = flow(
        [{"id": "a", "type": "t:big"}, {"id": "t", "type": "template", "config": {"template": "{{x}}{{x}}"}}],
        [edge("a.output", "t.x")],
        {"o": "t.text"},
    )
    room = {"stdoutBytes": 20_000_000}
    result = World(tmp_path, {"b": content}, {"big": lambda _args: big}, sandbox=room).run("workflow:b")
    assert "more than 16777216 characters" in error_of(result)["message"]
    content["nodes"][1]["config"]["template"] = "{{x}}"
    assert World(tmp_path, {"b": content}, {"big": lambda _args: big}, sandbox=room).run("workflow:b").output == big


def test_numbers_become_texts_where_texts_are_wanted(tmp_path: Path) -> None:
    from tests.runtime.service_world import method

    content = flow(
        [{"id": "c", "type": "constant", "config": {"value": 12.5}}, {"id": "e", "type": "t:echo"}],
        [edge("c.value", "e.text")],
        {"o": "e.output"},
    )
    world = World(tmp_path, {"c": content}, {"echo": lambda args: args["text"]})
    world.runtime.parts.host_services.unregister("t")
    world.register("t", method("echo"))
    assert world.run("workflow:c").output == "12.5"


def test_what_the_host_is_told_of_each_step(tmp_path: Path) -> None:
    world = World(tmp_path, {"loud": SHOUT}, {"shout": shout})
    world.run("workflow:loud", {"text": "a"})
    told = [(one["step"]["nodeId"], one["step"]["status"]) for one in world.host.said("workflow/stepChanged")]
    assert told == [("a", "running"), ("a", "success"), ("say", "success")]
    assert all(
        one["workflowId"] == "loud" and one["callId"] == "call-1" for one in world.host.said("workflow/stepChanged")
    )


def test_a_secret_of_a_node_is_masked_in_the_workflows_error(tmp_path: Path) -> None:
    from tamis.server.runtime.calls.model import HostError

    def tell(args: dict[str, Any]) -> None:
        raise HostError(f"bad key {args['key']}")

    content = flow([{"id": "a", "type": "t:tell", "inputs": {"key": "hunter2hunter2"}}], outputs={"o": "a.output"})
    world = World(tmp_path, {"s": content}, {"tell": tell})
    world.runtime.parts.host_services.unregister("t")
    schema = {"type": "object", "properties": {"key": {"type": "string", "x-secret": True}}}
    world.register("t", {"name": "tell", "description": "Tells a key.", "agentCallable": True, "parameters": schema})
    result = world.run("workflow:s")
    assert "bad key" in error_of(result)["message"]
    assert "hunter2" not in json.dumps(error_of(result))
    assert "hunter2" not in result.observation


def test_a_secret_of_a_node_is_masked_in_what_is_kept_of_the_workflow(tmp_path: Path) -> None:  # D83
    inner = flow([{"id": "a", "type": "t:echo", "inputs": {"key": "hunter2hunter2"}}], outputs={"o": "a.output"})
    outer = flow([{"id": "w", "type": "workflow:inner"}], outputs={"o": "w.output"})
    world = World(tmp_path, {"inner": inner, "outer": outer}, {"echo": lambda args: f"the key is {args['key']}"})
    world.runtime.parts.host_services.unregister("t")
    schema = {"type": "object", "properties": {"key": {"type": "string", "x-secret": True}}}
    world.register("t", {"name": "echo", "description": "Echoes.", "agentCallable": True, "parameters": schema})
    result = world.run("workflow:outer", idempotency_key="once")
    assert result.output == "the key is hunter2hunter2"
    assert "the key is ***" in result.observation
    again = world.run("workflow:outer", idempotency_key="once")
    assert (again.replayed, again.output) == (True, "the key is ***")


def test_a_workflow_that_a_tool_could_have_written_is_not_registered(tmp_path: Path) -> None:  # ruling 34
    plain = flow([{"id": "c", "type": "constant", "config": {"value": 1}}], outputs={"o": "c.value"})
    world = World(tmp_path, {"mine": plain}, policy={"writeRoots": [str(tmp_path / "flows" / "out")]})
    (tmp_path / "flows" / "out").mkdir()
    (tmp_path / "flows" / "out" / "planted.json").write_text(json.dumps(plain))
    world.runtime.reload()
    assert world.run("workflow:mine").output == 1
    error = error_of(world.run("workflow:planted"))
    assert error["type"] == "UnknownTool"
    assert "a tool could have put it there" in error["message"]


def test_a_second_attempt_starts_anew(tmp_path: Path) -> None:  # seed 002 retry_N
    from tamis.server.runtime.calls.model import CallRequest, HostError
    from tamis.server.runtime.execution.pipeline import execute

    tries = 0

    def once(_args: dict[str, Any]) -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise HostError("not yet")
        return tries

    world = World(tmp_path, {"r": flow([{"id": "a", "type": "t:once"}], outputs={"o": "a.output"})}, {"once": once})

    async def work() -> None:
        request = CallRequest(call_id="c", name="workflow:r")
        result = await execute(request, world.runtime.call_context(), attempts=2)
        assert (result.status, result.output, result.error, result.attempts) == ("success", 2, UNSET, 2)
        await world.runtime.close()

    asyncio.run(work())


def test_the_example_of_the_page_is_whole() -> None:
    import re

    from tamis.protocols.workflow.graph import check_graph
    from tamis.protocols.workflow.reading import read_workflow
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.workflows import RegistryTypes

    project = Path(__file__).resolve().parents[2]
    example = re.search(r"```jsonc\n(.*?)```", (project / "docs" / "workflows.md").read_text("utf-8"), re.DOTALL)
    assert example is not None
    workflow = read_workflow(example[1], "greet").workflow
    assert workflow is not None
    assert check_graph(workflow, RegistryTypes(Runtime(project / "examples").registry)) == []


KINDS: list[tuple[str, Any]] = [
    ("STRING", "a"),
    ("INTEGER", 3),
    ("FLOAT", 3),
    ("FLOAT", 1.5),
    ("BOOLEAN", False),
    ("OBJECT", {"a": 1}),
    ("ARRAY", [1]),
    ("WILDCARD", [1]),
    ("BINARY", "eA=="),
    ("INTEGER", None),
    ("STRING", None),
]
CONVERTED: list[tuple[str, Any, Any]] = [("STRING", 3, "3"), ("STRING", True, "true"), ("INTEGER", 3.0, 3)]
WRONG: list[tuple[str, Any]] = [
    ("INTEGER", "3"),
    ("INTEGER", 3.5),
    ("INTEGER", True),
    ("FLOAT", "1.5"),
    ("BOOLEAN", "true"),
    ("BOOLEAN", 1),
    ("OBJECT", [1]),
    ("ARRAY", {"a": 1}),
    ("ARRAY", "a"),
    ("STRING", ["a"]),
]


def typed(kind: str, beside: bool = False) -> dict[str, Any]:
    """A workflow whose output of this type is what the host's tool gives."""
    outputs = {"y": "n.output"} | ({"z": "n.output"} if beside else {})
    content = flow([{"id": "n", "type": "t:give"}], [], outputs)
    content["interfaceOutputs"]["y"] = {"dataFlowType": kind}
    return content


@pytest.mark.parametrize(("kind", "value"), KINDS, ids=repr)
def test_an_output_of_its_declared_type_comes_as_it_is(tmp_path: Path, kind: str, value: Any) -> None:
    """T5: null is no value, whatever the type."""
    result = World(tmp_path, {"w": typed(kind)}, {"give": lambda _args: value}).run("workflow:w")
    assert (result.status, result.output, result.warnings) == ("success", value, UNSET)


@pytest.mark.parametrize(("kind", "value", "made"), CONVERTED, ids=repr)
def test_an_output_that_is_converted_is_told(tmp_path: Path, kind: str, value: Any, made: Any) -> None:
    """T5: loose coercions warn."""
    result = World(tmp_path, {"w": typed(kind)}, {"give": lambda _args: value}).run("workflow:w")
    assert (result.status, result.output) == ("success", made)
    assert type(result.output) is type(made)
    assert isinstance(result.warnings, list)
    (warning,) = result.warnings
    assert (warning.code, warning.path) == ("WF925", "/y")
    assert f"is {kind}, and 'output' of node 'n' (t:give) gave" in warning.message
    assert result.observation.startswith(f"Note: the result of workflow:w: The output 'y' is {kind}")
    assert "arguments" not in result.observation


@pytest.mark.parametrize(("kind", "value"), WRONG, ids=repr)
@pytest.mark.parametrize("beside", [False, True], ids=["one output", "of two"])
def test_an_output_of_another_type_is_the_workflows_error(tmp_path: Path, kind: str, value: Any, beside: bool) -> None:
    """T5: it names node and slot, and no value, which may be a secret."""
    world = World(tmp_path, {"w": typed(kind, beside)}, {"give": lambda _args: value})
    result, steps = world.run_traced("workflow:w")
    assert (result.status, result.output) == ("error", UNSET)
    error = error_of(result)
    assert error["type"] == "WorkflowError"
    assert f"the output 'y' is {kind}, and 'output' of node 'n' (t:give) gave" in error["message"]
    node = error["details"]["node"]
    assert (node["nodeId"], node["type"], node["error"]["type"]) == ("n", "t:give", "OutputValidationError")
    assert statuses(steps) == {"n": "error"}
