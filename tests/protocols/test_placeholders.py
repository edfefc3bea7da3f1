"""Whatever Tamis writes as a description that it does not know is known again as one to be written (LN737)."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.protocols.manifest.from_openapi import import_openapi
from tamis.protocols.manifest.from_python import import_functions
from tamis.protocols.manifest.imported import Imported, left_to_say
from tamis.protocols.manifest.imports import import_tools
from tamis.protocols.manifest.template import new_tool
from tamis.protocols.manifest.vcp_plugin import import_plugin

OPERATION: dict[str, Any] = {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}}
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://x.example"}],
    "paths": {"/x": {"post": OPERATION}},
}
PLUGIN: dict[str, Any] = {
    "name": "P",
    "displayName": "P",
    "pluginType": "synchronous",
    "entryPoint": {"command": "python p.py"},
    "communication": {"protocol": "stdio"},
    "capabilities": {"invocationCommands": [{"commandIdentifier": "c", "description": ""}]},
}


@pytest.mark.parametrize(
    "made",
    [
        import_tools("openai", {"name": "f", "parameters": {"type": "object"}}),
        import_tools("mcp", {"name": "f", "inputSchema": {"type": "object"}}),
        import_functions("def f(a: int) -> int:\n    return a\n", "f.py"),
        import_openapi(OPENAPI, "x"),
        import_plugin(PLUGIN),
    ],
)
def test_imports_of_what_says_nothing(made: Imported) -> None:
    (tool,) = made.tools
    assert left_to_say(str(tool.manifest["description"]))


def test_a_body_that_the_document_says_nothing_of() -> None:
    (tool,) = import_openapi(OPENAPI, "x").tools
    parameters: Any = tool.manifest["parameters"]
    assert left_to_say(parameters["properties"]["body"]["description"])


def test_a_new_tool() -> None:
    manifest = next(text for name, text in new_tool("x").files.items() if name.endswith(".json"))
    assert left_to_say(manifest)


@pytest.mark.parametrize("text", ["Adds two numbers.", "What is sent. To whom.", "Say what it does.", ""])
def test_what_somebody_wrote(text: str) -> None:
    assert left_to_say(text) is None
