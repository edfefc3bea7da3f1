"""`examples/hosts/python/messages.py`: what a host does to a session's messages before a model's API gets them (V69, seed 001 §2.2)."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.agent_world import World, echo

FILE = Path(__file__).resolve().parents[2] / "examples" / "hosts" / "python" / "messages.py"
BLOCK = "I look. <ACTION><echo><text>I look</text></echo></ACTION>"


@pytest.fixture(scope="module")
def host() -> Any:
    spec = importlib.util.spec_from_file_location("host_messages", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def messages(tmp_path: Path) -> list[dict[str, str]]:
    """Two rounds of a session: an answer and its result each."""
    world = World(tmp_path)
    world.tool("echo", echo)

    async def talk() -> None:
        await world.step(BLOCK)
        await world.step(BLOCK)

    asyncio.run(talk())
    found = [{"role": one.role, "content": one.content} for one in world.session().messages]
    assert [one["role"] for one in found] == ["assistant", "tool", "assistant", "tool"]
    return found


def test_a_rule_for_one_role_leaves_what_tools_gave(host: Any, messages: list[dict[str, str]]) -> None:  # V69
    made = host.replaced(messages, "I look", "I watch", {"assistant"})
    assert all("I watch" in one["content"] for one in made[::2])
    assert made[1::2] == messages[1::2]


@pytest.mark.parametrize("depth", range(6))
def test_nothing_comes_between_an_answer_and_its_results(
    host: Any, messages: list[dict[str, str]], depth: int
) -> None:  # V69
    extra = {"role": "system", "content": "Be brief."}
    made = host.inserted(messages, extra, depth)
    at = made.index(extra)
    assert [one for one in made if one is not extra] == messages
    assert at == len(made) - 1 or made[at + 1]["role"] != "tool"


def test_roles_are_mapped_and_neighbours_are_one_message(host: Any, messages: list[dict[str, str]]) -> None:  # V69
    spoken = [*messages, {"role": "user", "content": "Thanks."}]
    made = host.merged(spoken, {"tool": "user"})
    assert [one["role"] for one in made] == ["assistant", "user", "assistant", "user"]
    assert made[-1]["content"] == messages[-1]["content"] + "\n\nThanks."
    assert messages[-1]["role"] == "tool"
