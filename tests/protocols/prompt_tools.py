"""Tools for the tests of prompts: the ones of seed 000 §4.2, and a hand-made one that has everything."""

from __future__ import annotations

from tamis.protocols.base import Example, PromptTool
from tamis.protocols.model import Json


def schema(required: list[str], **properties: Json) -> dict[str, Json]:
    """An object schema."""
    return {"type": "object", "properties": dict(properties), "required": [*required]}


def text(description: str = "", **more: Json) -> dict[str, Json]:
    """A string parameter."""
    return {"type": "string", "description": description, **more}


READ = PromptTool(
    "ReadWorldStateTool",
    "Reads a value from the shared world state.",
    schema(
        ["path"],
        path=text('The dot-separated path to the value in the world state (e.g., "environment.time.current_hour").'),
        default_value={"description": "Value to return if path is not found."},
    ),
    (Example("The weather.", {"path": "environment.weather.current_conditions", "default_value": "unknown"}),),
)
GREET = PromptTool(
    "skill_greet_player",
    "Greets the player appropriately based on context.",
    schema(
        ["player_id"],
        player_id=text("The ID of the player to greet."),
        greeting_context=text('Additional context for the greeting (e.g., "first_encounter", "quest_reminder").'),
    ),
    (Example("", {"player_id": "player123"}),),
    kind="workflow",
)
PUBLISH = PromptTool(
    "PublishEventTool",
    "Publishes an event to the event bus.",
    schema(
        ["event_type"],
        event_type=text('The type of the event (e.g., "agent.action.completed").'),
        payload={"type": "object", "description": "Event data.", "examples": [{"message": "Task done"}]},
    ),
    (Example("A finished task.", {"event_type": "agent.done", "payload": {"message": "Task done"}}),),
)
EVERYTHING = PromptTool(
    "report_build",
    "生成每日报告。\n\n先读日志，再写报告。",
    {
        "type": "object",
        "properties": {
            "title": text("标题", minLength=1, maxLength=80),
            "format": text("Form", enum=["html", "pdf", "纯文本"], default="html"),
            "copies": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
            "scale": {"type": ["number", "null"], "exclusiveMinimum": 0, "multipleOf": 0.5},
            "tags": {
                "type": "array",
                "items": {"type": "string", "pattern": "^[a-z]+$"},
                "maxItems": 4,
                "uniqueItems": True,
            },
            "author": {"$ref": "#/$defs/person", "description": "作者"},
            "parts": {
                "type": "array",
                "items": schema(["name"], name=text("Name of the part"), pages={"type": "integer"}),
            },
            "target": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "integer"}]},
            "key": text("Access key", **{"x-secret": True, "default": "hunter2"}),
        },
        "required": ["title", "author"],
        "$defs": {"person": schema(["name"], name=text("姓名"), role={"const": "editor"})},
    },
    (
        Example("每日报告", {"title": "每日运营报告", "author": {"name": "咕咕"}, "tags": ["a", "b"], "copies": 2}),
        Example(
            "One part.", {"title": "a < b && c", "author": {"name": "x", "role": "editor"}, "parts": [{"name": "1"}]}
        ),
    ),
)
TOOLS = (READ, PUBLISH, GREET, EVERYTHING)
