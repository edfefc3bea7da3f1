"""examples/agent_profile.json and the profile of docs/agents.md show every field and are right (V08 to V16)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from tamis.protocols.manifest.profile import ToolCallConfig, read_profile
from tamis.server.runtime.runtime import Runtime

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = (ROOT / "examples" / "agent_profile.json").read_text("utf-8")
SHORT = re.findall(
    r"```json\n(\{\n  \"tool_ids_inventory\".*?)\n```", (ROOT / "docs" / "agents.md").read_text("utf-8"), re.S
)


@pytest.mark.parametrize("text", [EXAMPLE, *SHORT], ids=["example", "page"])
def test_a_profile_that_is_shown_has_every_field_and_only_tools_that_there_are(text: str) -> None:
    known = [tool.tool_id for tool in Runtime(ROOT / "examples").registry.tools]
    reading = read_profile(text, known)
    assert [found.code for found in reading.diagnostics if found.code.startswith("PF")] == []
    profile = reading.profile
    assert profile is not None
    assert profile.config.enabled
    fields = {one.encode_name for one in msgspec.structs.fields(ToolCallConfig)}
    bare = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    assert {*bare["toolCallConfig"]} == fields
    assert {*bare["tool_ids_inventory"]} <= {*known}


def test_the_page_shows_one() -> None:
    assert len(SHORT) == 1
