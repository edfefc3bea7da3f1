"""Deliberations from begin to end: the sample tools and skills of seed 000 in one conversation with a scripted model (A56)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import StepResult
from tamis.server.runtime.agents.step import StepRequest, step
from tamis.server.runtime.handlers.service.state import WORLD, private_to, put
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.texts.prompts import PromptRequest, Prompts
from tests.runtime.workflow_world import World, edge, flow
from tests.sample_tools import make_tool

AGENT = "guard-7"
READ_FILES = """import json, sys
files = json.load(sys.stdin)["args"]["file"]
print(json.dumps({file["path"]: open("/tool/" + file["path"]).read() for file in files}))
"""
APPLY_DIFF = """import json, sys
args = json.load(sys.stdin)
text = open("/tool/" + args["target_file"]).read()
for line in args["diff_patch"].splitlines():
    if line.startswith("-") and not line.startswith("---"):
        old = line[1:]
    elif line.startswith("+") and not line.startswith("+++"):
        assert old in text, "the patch does not fit"
        text = text.replace(old, line[1:])
print(json.dumps({"patched": text}))
"""
TEXT = {"type": "string"}
SEED_DIFF = """I will try to apply the following diff to update the configuration.
<ACTION>
    <ApplyProjectDiff>
        <target_file>config/settings.json</target_file>
        <diff_patch>
            <![CDATA[
--- a/config/settings.json
+++ b/config/settings.json
@@ -1,5 +1,5 @@
 {
-  "feature_enabled": false,
+  "feature_enabled": true,
   "api_key": "old_key_value"
 }
            ]]>
        </diff_patch>
    </ApplyProjectDiff>
</ACTION>"""
SCRIPT: list[tuple[str, str]] = [
    (
        "",
        (
            "Okay, I need to check the current weather to answer the player's question.\n<ACTION>\n<ReadWorldStateTool>\n"
            "<path>environment.weather.current_conditions</path>\n<default_value>unknown</default_value>\n</ReadWorldStateTool>\n</ACTION>"
        ),
    ),
    (
        "Observation: Tool ReadWorldStateTool executed successfully. Result: sunny",
        "I'll try to get the player's name.\n<ACTION>\n<GetPlayerInfo>\n<playerId>player123</playerId>\n</GetPlayerInfo>\n</ACTION>",
    ),
    (
        "Observation: Error - Invalid parameters for GetPlayerInfo: Unknown parameter 'playerId', did you mean 'player_id'?",
        "My apologies, I used the wrong parameter name.\n<ACTION>\n<GetPlayerInfo>\n<player_id>player123</player_id>\n</GetPlayerInfo>\n</ACTION>",
    ),
    (
        '"name": "Ann"',
        (
            "I greet her.\n<ACTION>\n<skill_greet_player>\n<player_id>player123</player_id>\n"
            "<greeting_context>first_encounter</greeting_context>\n</skill_greet_player>\n</ACTION>"
        ),
    ),
    (
        "Welcome, Ann (first_encounter)!",
        (
            "I need to read both files.\n<ACTION>\n<read_file>\n<args>\n<file><path>src/app.ts</path></file>\n"
            "<file><path>src/utils.ts</path></file>\n</args>\n</read_file>\n</ACTION>"
        ),
    ),
    ("export const utils = 1", SEED_DIFF),
    (
        "feature_enabled",
        "I keep that in mind.\n<ACTION>\n<UpdatePrivateStateTool>\n<key>mood</key>\n<value>glad</value>\n</UpdatePrivateStateTool>\n</ACTION>",
    ),
    (
        "UpdatePrivateStateTool executed successfully",
        (
            "I tell the others.\n<ACTION>\n<PublishEventTool>\n<event_type>agent.action.completed</event_type>\n"
            '<payload><![CDATA[{"message": "Task done"}]]></payload>\n</PublishEventTool>\n</ACTION>'
        ),
    ),
    (
        "PublishEventTool executed successfully",
        (
            "A picture of it.\n<ACTION>\n<skill_generate_image_description>\n"
            '<image_analysis_data><![CDATA[{"objects": ["gate", "sun"]}]]></image_analysis_data>\n'
            "<desired_style>poetic</desired_style>\n</skill_generate_image_description>\n</ACTION>"
        ),
    ),
    ("poetic: ", "The weather is currently sunny and pleasant. It's a great day for an adventure!"),
]
"""What the last observation must hold, and what the model says then: the examples of seed 000 §5, in their words."""


class Scene:
    """An agent's instance as seed 000 §3.3 tells it: it runs the deliberation's workflow and then what the answer asks for."""

    def __init__(self, root: Path) -> None:
        self.seen: list[dict[str, Any]] = []
        files = make_tool(root, "read_file", READ_FILES, properties={"args": {"type": "object"}}, required=["args"])
        patched = make_tool(
            root,
            "ApplyProjectDiff",
            APPLY_DIFF,
            properties={"target_file": TEXT, "diff_patch": TEXT},
            required=["diff_patch"],
        )
        for path, text in {
            files / "src/app.ts": "import './utils'",
            files / "src/utils.ts": "export const utils = 1",
            patched / "config/settings.json": '{\n  "feature_enabled": false,\n  "api_key": "old_key_value"\n}\n',
        }.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        # the host itself may run everything, its agent what its own profile names
        for name, profile in {"host": {}, f"{AGENT}.agent_profile": {"tool_ids_inventory": INVENTORY}}.items():
            (root / f"{name}.json").write_text(json.dumps({"toolCallConfig": {"enabled": True}} | profile))
        self.world = World(
            root, FLOWS, {"think": self.think, "getPlayerInfo": get_player}, builtin=list(BUILTIN), profile="host.json"
        )
        facade = {"type": "service-method", "serviceName": "t", "methodName": "getPlayerInfo"}
        make_tool(root, "GetPlayerInfo", handler=facade, properties={"player_id": TEXT}, required=["player_id"])
        self.world.runtime.reload()
        self.events: list[str] = []

    def think(self, args: dict[str, Any]) -> str:
        """The model: it answers by the script to the observations that its workflow was given."""
        self.seen.append(args)
        words, answer = SCRIPT[len(self.seen) - 1]
        assert words in args["observations"], args["observations"]
        return answer

    async def deliberate(self, observations: str) -> StepResult:
        """One round: the workflow's inputs are the agent's state, the world's and what came of the last round."""
        states = self.world.runtime.parts.states
        inputs = {
            "private_state": await states.read(private_to(AGENT)),
            "world_state": await states.read(WORLD),
            "observations": observations,
        }
        thought = await self.world.call("workflow:deliberate", inputs)
        assert thought.status == "success", thought
        runtime = self.world.runtime
        config: dict[str, Any] = {"enabled": True, "protocol": "action", "maxIterations": 20}
        context = runtime.call_context(caller=Caller("rpc", "scene", AGENT))
        request = StepRequest(text=str(thought.output), session_id="scene", config=config)
        return await step(request, context, runtime.parts.sessions, runtime.read)

    async def talk(self) -> list[StepResult]:
        """The whole conversation."""

        def weather(document: dict[str, Any]) -> Any:
            return put(document, "environment.weather.current_conditions", "sunny")

        await self.world.runtime.parts.states.change(WORLD, weather)
        rounds: list[StepResult] = []
        observations = ""
        for _ in SCRIPT:
            rounds.append(await self.deliberate(observations))
            observations = rounds[-1].observation
        await self.world.runtime.close()
        return rounds


def get_player(args: dict[str, Any]) -> dict[str, str]:
    return {"name": "Ann", "id": args["player_id"]}


BUILTIN = ("ReadWorldStateTool", "UpdatePrivateStateTool", "PublishEventTool")
INVENTORY = [
    *(*BUILTIN, "read_file", "ApplyProjectDiff", "GetPlayerInfo"),
    *("workflow:skill_greet_player", "workflow:skill_generate_image_description"),
]
OBJECT = {"dataFlowType": "OBJECT", "required": True}
OPTIONAL = {"dataFlowType": "STRING"}
FLOWS = {
    "deliberate": flow(
        [{"id": "in", "type": "input"}, {"id": "model", "type": "t:think"}],
        [edge(f"in.{name}", f"model.{name}") for name in ("private_state", "world_state", "observations")],
        {"full_text": "model.output"},
        {"private_state": OBJECT, "world_state": OBJECT, "observations": "STRING"},
    ),
    "skill_greet_player": flow(
        [
            {"id": "in", "type": "input"},
            {"id": "who", "type": "GetPlayerInfo"},
            {"id": "say", "type": "template", "config": {"template": "Welcome, {{who.name}} ({{context}})!"}},
        ],
        [
            edge("in.player_id", "who.player_id"),
            edge("in.greeting_context", "say.context"),
            edge("who.output", "say.who"),
        ],
        {"greeting": "say.text"},
        {"player_id": "STRING", "greeting_context": OPTIONAL},
        description="Greets the player appropriately based on context.",
    ),
    "skill_generate_image_description": flow(
        [
            {"id": "in", "type": "input"},
            {"id": "say", "type": "template", "config": {"template": "{{style}}: {{data}}"}},
        ],
        [edge("in.image_analysis_data", "say.data"), edge("in.desired_style", "say.style")],
        {"description": "say.text"},
        {"image_analysis_data": OBJECT, "desired_style": OPTIONAL},
        description="Generates a textual description for an image.",
    ),
}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "root").mkdir()
    return Scene(tmp_path / "root")


def test_a_deliberation_works_from_begin_to_end(scene: Scene) -> None:
    """A56, seed 000 §3.3 and §5: atomic tools, skills, nested parameters, CDATA, self-correction and a plain answer in one conversation."""
    rounds = asyncio.run(scene.talk())
    assert [result.status for one in rounds for result in one.results] == ["success", "error", *["success"] * 7]
    assert [call.tool_name for one in rounds for call in one.requests][2:5] == [
        "GetPlayerInfo",
        "skill_greet_player",
        "read_file",
    ]
    assert (
        rounds[0].response_text.strip() == "Okay, I need to check the current weather to answer the player's question."
    )
    last = rounds[-1]
    assert (last.has_tool_requests, last.stop, last.response_text) == (False, "noTools", SCRIPT[-1][1])
    patched = rounds[5].results[0].output
    assert isinstance(patched, dict)
    assert '"feature_enabled": true' in patched["patched"]
    assert [event["payload"] for event in scene.world.host.said("event/published")] == [{"message": "Task done"}]


def test_each_deliberation_is_given_the_states_as_they_are_then(scene: Scene) -> None:
    """A56, seed 000 §3.3 step 2: private state, world state, observations."""
    asyncio.run(scene.talk())
    assert all(
        seen["world_state"] == {"environment": {"weather": {"current_conditions": "sunny"}}} for seen in scene.seen
    )
    assert [seen["private_state"] for seen in scene.seen] == [*[{}] * 7, *[{"mood": "glad"}] * 3]
    assert scene.seen[0]["observations"] == ""


def test_the_prompt_of_a_deliberation_tells_of_its_tools_and_skills(scene: Scene) -> None:
    """A56, seed 000 §4.2: what the conversation calls stands there, the state of the others does not."""
    text = Prompts().generate(scene.world.runtime, PromptRequest(protocol="action", agent_id=AGENT)).text
    tools, _, skills = text.partition("**Skills (workflow executions):**")
    for name in (*BUILTIN, "read_file", "ApplyProjectDiff", "GetPlayerInfo"):
        assert f"<{name}>" in tools
    for name in ("skill_greet_player", "skill_generate_image_description"):
        assert f"<{name}>" in skills
    assert "deliberate" not in text
