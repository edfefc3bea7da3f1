"""Arguments against a schema: coercion and validation beside jsonschema's verdict alone."""

from __future__ import annotations

from time import process_time

from bench.measure import Sample, in_turn, table
from tamis.protocols.model import Json
from tamis.protocols.schema.plan import compile_plan

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "line": {"type": "integer", "minimum": 1},
        "recursive": {"type": "boolean"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def bench_check() -> str:
    """Raw texts to typed and checked arguments ÷ `is_valid` of the typed ones."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(SCHEMA)
    plan = compile_plan(SCHEMA)
    raw: dict[str, Json] = {"path": "src/app.ts", "line": "12", "recursive": "true"}
    typed: dict[str, Json] = {"path": "src/app.ts", "line": 12, "recursive": True}
    assert plan.check(raw).coerced == typed
    anchor = "Draft202012Validator.is_valid"
    found = in_turn(
        {
            "raw": lambda: plan.check(raw),
            "typed": lambda: plan.check(typed),
            anchor: lambda: validator.is_valid(typed),
        },
        clock=process_time,
    )
    rows: list[tuple[str, Sample, Sample, str]] = [
        ("coerce and check 3 parameters from text", found["raw"], found[anchor], "≤ 0.35"),
        ("check 3 typed parameters", found["typed"], found[anchor], "≤ 0.35"),
    ]
    return table("Checking arguments", rows)
