"""A folder with a tool and a text that calls it, for tests of what happens on disk."""

from __future__ import annotations

import json
from typing import Any

MANIFEST: dict[str, Any] = {
    "toolId": "core:echo",
    "displayName": "Echo",
    "description": "Gives back the text that it is given, so that a call can be tried out.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "echo.py", "language": "python"},
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


CALL = "<ACTION><core:echo><txt>x</txt></core:echo></ACTION>\n"


WATCHES = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}


def manifest(tool_id: str = "core:echo", parameter: str = "text") -> str:
    parameters = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return json.dumps({**MANIFEST, "toolId": tool_id, "parameters": parameters})


def codes(items: list[dict[str, Any]]) -> list[str]:
    return [item["code"] for item in items if item["severity"] == 1]
