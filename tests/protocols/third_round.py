"""The texts of ``corpora/calls/third-round.jsonl`` and the world of tools that they call."""

from __future__ import annotations

import functools
import json
import runpy
from typing import Any

from tests.conftest import CORPORA

CALLS = CORPORA / "calls"


def cases(*groups: str) -> list[dict[str, Any]]:
    """Returns the cases of these groups; none if the corpora are not beside the project."""
    file = CALLS / "third-round.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.is_file() else []
    return [row for row in rows if row["group"] in groups]


@functools.cache
def world_of_tools() -> list[dict[str, Any]]:
    """Returns the tools as ``tamis.protocols.check`` takes them."""
    string, integer = {"type": "string"}, {"type": "integer"}
    tools: dict[str, tuple[dict[str, Any], list[str]]] = {
        "files:write": ({"path": string, "content": string}, ["path", "content"]),
        "files:read": ({"path": string}, ["path"]),
        "shell:run": ({"command": string, "timeout": integer}, ["command"]),
        "note:add": (
            {"title": string, "text": string, "tags": {"type": "array", "items": string}},
            ["title", "text"],
        ),
    }
    script = CALLS / "third_round_tools.py"
    if script.is_file():
        tools |= runpy.run_path(str(script))["TOOLS"]
    return [
        {
            "toolId": name,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
        }
        for name, (properties, required) in tools.items()
    ]
