"""The forms of a prompt, and the tools that the tests of prompts define in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.protocols.base import CallProtocol, Example, PromptTool, Shape, Style
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.plugins import find_protocol
from tamis.protocols.prompt.assemble import define

ROOT = Path(__file__).resolve().parent.parent.parent


FORMS: list[tuple[str, Shape]] = [("action", "tag"), ("action", "inputs"), ("tam", "tag"), ("vcp", "tag")]


forms = pytest.mark.parametrize(("name", "shape"), FORMS, ids=lambda value: str(value))


def protocol_of(name: str) -> CallProtocol:
    found = find_protocol(name)
    assert found is not None
    return found


def definitions(name: str, *tools: PromptTool, style: Style = "full", shape: Shape = "tag") -> str:
    return define(protocol_of(name), tools, style, shape)


def example_tools() -> list[PromptTool]:
    """The tools of ``examples/``, under their portable names."""
    found: list[PromptTool] = []
    for path in sorted((ROOT / "examples" / "tools").glob("*/*.tool.json")):
        manifest = read_manifest(path.read_text("utf-8")).manifest
        assert manifest is not None
        examples = tuple(Example(one.description, one.input) for one in manifest.examples)
        name = manifest.aliases[0] if manifest.aliases else manifest.tool_id
        found.append(
            PromptTool(name, manifest.description, manifest.parameters or {}, examples, tool_id=manifest.tool_id)
        )
    return found
