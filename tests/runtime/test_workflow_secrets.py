"""What a workflow is given for a secret parameter of one of its nodes is a secret of the workflow too, wherever it would be shown (D83)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.manifest.workflow import workflow_tool
from tamis.protocols.workflow.model import Slots, slots_of
from tamis.protocols.workflow.payload import Flow, flow_of
from tamis.protocols.workflow.reading import read_workflow
from tamis.server.runtime.calls.model import CallRequest, HostError, Question, Reply
from tamis.server.runtime.execution.pipeline import execute
from tests.runtime.workflow_world import World, edge, flow
from tests.sample_tools import make_tool

SECRET = "hunter2-hunter2"
TEXT = {"type": "string"}
KEY: dict[str, Any] = {"type": "object", "properties": {"key": {**TEXT, "x-secret": True}, "text": TEXT}}
OPEN: dict[str, Any] = {"type": "object", "properties": {"text": TEXT}}


class OneSecret:
    """Of the type ``login`` the slot ``key`` is a secret; ``echo`` is a workflow that gives what it is given in ``x``."""

    def slots(self, node_type: str) -> Slots | None:
        """The slots of ``login``."""
        return slots_of(KEY, None) if node_type == "login" else None

    def hides(self, node_type: str, slot: str) -> bool:
        """Only one is."""
        return (node_type, slot) == ("login", "key")

    def passed(self, node_type: str) -> dict[str, frozenset[str]]:
        """Of ``echo`` alone it is known."""
        return {"o": frozenset({"x"})} if node_type == "echo" else {}


def node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "config": config}


LOGIN = node("login", "login")
IN = node("in", "input")
OPTIONAL = {"dataFlowType": "STRING"}


@pytest.mark.parametrize(
    ("nodes", "edges", "secret"),
    [
        pytest.param([], ["in.a login.key"], "a", id="an edge"),
        pytest.param([], ["in.a login.text"], "", id="another parameter"),
        pytest.param([node("t", "template", template="{{a}} {{b.c}}")], ["in.a t.a", "in.b t.b", "t.text login.key"], "ab"),
        pytest.param([node("t", "template", template="{{a}}")], ["in.a t.a", "in.b t.b", "t.text login.key"], "a"),
        pytest.param([node("m", "merge")], ["in.a m.x", "in.b m.y", "m.value login.key"], "ab", id="a merge"),
        pytest.param([node("c", "condition")], ["in.a c.value", "in.b c.data", "c.then login.key"], "b", id="data"),
        pytest.param([node("c", "condition")], ["in.a c.value", "in.o c.data", "c.else login.key"], "ao", id="or value"),
        pytest.param([node("c", "condition")], ["in.a c.value", "c.then login.key"], "a", id="value"),
        pytest.param([node("c", "condition")], ["in.a c.value", "c.result login.key"], "", id="only whether"),
        pytest.param([node("k", "constant", value="x")], ["k.value login.key", "in.a login.text"], "", id="a constant"),
        pytest.param([node("m", "map", type="login", item="key")], ["in.a m.items", "in.b m.text"], "a", id="items"),
        pytest.param([node("m", "map", type="login", item="text")], ["in.a m.items", "in.b m.key"], "b", id="beside items"),
        pytest.param(
            [node("m", "map", type="template", config={"template": "{{item}}{{b}}"}, item="item")],
            ["in.a m.items", "in.b m.b", "in.c m.c", "m.results login.key"],
            "ab",
            id="a map of templates",
        ),
        pytest.param([node("e", "echo")], ["in.a e.x", "in.b e.y", "e.o login.key"], "a", id="through a workflow"),
        pytest.param([node("e", "echo")], ["in.a e.x", "in.b e.y", "e.output login.key"], "a", id="the whole of it"),
        pytest.param([node("f", "other")], ["in.a f.x", "f.output login.key"], "", id="not through a tool"),
        pytest.param([node("x", "template"), node("y", "template")], ["x.text y.a", "y.text x.a"], "", id="a circle"),
        pytest.param(
            [node(f"t{i}", "template", template="{{x}}") for i in range(300)],
            ["in.a t0.x", *(f"t{i}.text t{i + 1}.x" for i in range(299)), "t299.text login.key"],
            "a",
            id="many hops",
        ),
    ],
)  # fmt: skip
def test_a_value_is_followed_into_a_secret_parameter(nodes: list[Any], edges: list[str], secret: str) -> None:  # D83
    lines = [edge(*one.split()) for one in edges]
    content = flow([IN, LOGIN, *nodes], lines, inputs=dict.fromkeys("abc", "STRING") | {"o": OPTIONAL})
    workflow = read_workflow(json.dumps(content), "w").draft
    assert workflow is not None
    assert flow_of(workflow, OneSecret()).secret == frozenset(secret)


def test_it_is_known_what_a_workflow_passes_on() -> None:
    lines = [edge("in.a", "t.a"), edge("in.b", "out.y")]
    nodes = [IN, node("t", "template", template="<{{a}}>"), node("out", "output")]
    content = flow(nodes, lines, {"x": "t.text"}, dict.fromkeys("abc", "STRING"))
    content["interfaceOutputs"]["y"] = {"dataFlowType": "STRING"}
    workflow = read_workflow(json.dumps(content), "w").workflow
    assert workflow is not None
    assert flow_of(workflow, OneSecret()) == Flow(frozenset(), {"x": frozenset("a"), "y": frozenset("b")})


def test_an_author_can_mark_an_input_by_hand() -> None:
    slots: dict[str, Any] = {"a": {"dataFlowType": "STRING", "x-secret": True}, "b": {"dataFlowType": "STRING"}}
    made = workflow_tool("w", {"interfaceInputs": slots})["parameters"]
    assert made == {
        "type": "object",
        "properties": {"a": {"type": "string", "x-secret": True}, "b": {"type": "string"}},
        "required": [],
    }


# in a runtime

INNER = flow(
    [node("t", "template", template="Bearer {{key}}"), {"id": "login", "type": "t:login"}, {"id": "say", "type": "t:say"}],
    [edge("t.text", "login.key")],
    {"o": "login.output", "told": "say.output"},
    {"key": "STRING", "name": "STRING"},
    interfaceInputMappings={"key": [{"nodeId": "t", "slotKey": "key"}, {"nodeId": "say", "slotKey": "text"}]},
)  # fmt: skip
OUTER = flow(
    [{"id": "in", "type": "input"}, {"id": "w", "type": "workflow:inner"}],
    [edge("in.pass", "w.key"), edge("in.who", "w.name")],
    {"o": "w.output"},
    {"pass": "STRING", "who": "STRING"},
)


def world(root: Path, tools: dict[str, Any] | None = None, **settings: Any) -> World:
    made = World(root, {"inner": INNER, "outer": OUTER}, tools or {"login": dict, "say": dict}, **settings)
    made.register(
        "t",
        {"name": "login", "description": "Logs in.", "agentCallable": True, "parameters": KEY},
        {"name": "say", "description": "Says it.", "agentCallable": True, "parameters": OPEN},
    )
    return made


def test_the_schema_of_a_workflow_says_so_and_of_one_around_it_too(tmp_path: Path) -> None:  # D83, W05
    registry = world(tmp_path).runtime.registry
    marked = {
        name: [one for one, schema in (tool.manifest.parameters or {})["properties"].items() if "x-secret" in schema]
        for name in ("inner", "outer")
        if (tool := registry.get(f"workflow:{name}")) is not None
    }
    assert marked == {"inner": ["key"], "outer": ["pass"]}


def test_a_tool_that_becomes_secretive_changes_the_workflow_and_one_that_is_the_same_does_not(tmp_path: Path) -> None:
    made = world(tmp_path)
    before = made.runtime.registry.get("workflow:outer")
    made.register("u", {"name": "x", "description": "Something else.", "parameters": OPEN})
    assert made.runtime.registry.get("workflow:outer") is before
    made.host.told.clear()
    made.register("t", {"name": "login", "description": "Logs in.", "agentCallable": True, "parameters": OPEN | {}})
    told = made.host.said("registry/changed")
    assert "workflow:outer@0.0.0" in told[-1]["updated"]


def test_a_node_definition_hides_what_the_tool_behind_it_does(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    definition = {"fullType": "n:login", "inputs": {"key": {}, "text": {}}, "toolId": "t:login"}
    (tmp_path / "tools" / "n.node.json").write_text(json.dumps(definition))
    tool = world(tmp_path).runtime.registry.get("n:login")
    assert tool is not None
    assert tool.manifest.parameters == {
        "type": "object",
        "properties": {"key": {"x-secret": True}, "text": {}},
        "required": [],
    }


@pytest.mark.parametrize("failing", [False, True])
def test_the_secret_of_a_workflow_is_in_nothing_that_is_kept_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], failing: bool
) -> None:  # D83, D27, D74
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    asked: list[Question] = []

    async def ask(question: Question) -> Any:
        asked.append(question)
        return "allow"

    def say(args: dict[str, Any]) -> Any:
        if failing:
            raise HostError(f"cannot say {args['text']}")
        return args

    policy = {"requireConfirmation": "always"}
    made = world(tmp_path, {"login": dict, "say": say}, logLevel="debug", policy=policy)
    result = made.run("workflow:outer", {"pass": SECRET, "who": "somebody"}, ask=ask, idempotency_key="once")
    given = [told["args"] for _, told in made.host.asked if told["args"]]
    assert {"text": SECRET} in given
    # a node beside one that fails may be cancelled before its host is asked
    assert failing or {"key": f"Bearer {SECRET}"} in given
    assert result.status == ("error" if failing else "success"), result
    assert len(asked) >= (3 if failing else 4)
    told_to_model = msgspec.structs.replace(result, output=UNSET)
    shown = msgspec.json.encode([asked, made.host.told, told_to_model]).decode()
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert any(path.suffix == ".db" for path in files), files
    kept = "".join(path.read_text(errors="replace") for path in files)
    logged = capfd.readouterr().err
    assert "somebody" in shown and "call.received" in kept and "call.ended" in logged
    for told in (shown, kept, logged):
        assert SECRET not in told


def test_what_a_person_leaves_masked_in_a_node_that_marks_nothing_is_run_with_the_secret(tmp_path: Path) -> None:  # D83
    async def ask(question: Question) -> Any:
        edited = {**question.args, "text": "***"} if question.tool_id == "t:say" else None
        return Reply(answer="allow", edited_args=edited)

    made = world(tmp_path, policy={"requireConfirmation": "always"})
    result = asyncio.run(made.call("workflow:inner", {"key": SECRET, "name": "n"}, ask=ask))
    assert result.output["told"] == {"text": SECRET}


def test_the_script_of_a_node_that_marks_nothing_shows_no_secret_of_the_workflow(tmp_path: Path) -> None:  # D83
    script = "import json, sys\nkey = json.load(sys.stdin)['text']\nprint('with', key, file=sys.stderr)\nsys.exit(key)"
    make_tool(tmp_path, "t:tell", script)
    tell = {"id": "say", "type": "t:tell"}
    content = INNER | {"nodes": [*INNER["nodes"][:2], tell]}
    made = World(tmp_path, {"inner": content}, {"login": dict})
    made.register("t", {"name": "login", "description": "Logs in.", "agentCallable": True, "parameters": KEY})
    told: list[str] = []

    async def run() -> Any:
        context = made.runtime.call_context(on_output=lambda _call, _stream, text: told.append(text))
        request = CallRequest(call_id="c", name="workflow:inner", args={"key": SECRET, "name": "n"})
        try:
            return await execute(request, context)
        finally:
            await made.runtime.close()

    result = asyncio.run(run())
    assert "with ***" in "".join(told)
    assert SECRET not in "".join(told)
    assert "with ***" in "".join(result.logs)
    assert SECRET not in msgspec.json.encode(result).decode()
