"""A scripted model and the transcript of its conversation, for every protocol: the same over the runtime and over the wire.

The model reads the last observation and answers only what its script says to that: it corrects itself, is denied something, waits for a
task, is cancelled, turns in circles and runs against the limit.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import SessionMessage, StepResult
from tests.runtime.agent_world import TEXT, World, hangs
from tests.sample_tools import tam, vcp

HERE = Path(__file__).parent / "conversations"
MAX_ITERATIONS = 10
Calls = tuple[tuple[str, dict[str, str]], ...]


def action_block(*calls: tuple[str, dict[str, str]]) -> str:
    inner = "".join(
        f"\n  <{name}>{''.join(f'<{key}>{value}</{key}>' for key, value in args.items())}</{name}>"
        for name, args in calls
    )
    return f"<ACTION>{inner}\n</ACTION>"


def inputs_block(*calls: tuple[str, dict[str, str]]) -> str:
    ((name, args),) = calls
    inputs = "".join(f'\n    <input name="{key}"><![CDATA[{value}]]></input>' for key, value in args.items())
    return f"<ACTION>\n  <tool_id>{name}</tool_id>\n  <inputs>{inputs}\n  </inputs>\n</ACTION>"


def tam_block(*calls: tuple[str, dict[str, str]]) -> str:
    return tam(*({"command": name, **args} for name, args in calls))


def vcp_blocks(*calls: tuple[str, dict[str, str]]) -> str:
    return "\n".join(vcp(name, **args) for name, args in calls)


def hermes_blocks(*calls: tuple[str, dict[str, str]]) -> str:
    return "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': args}, ensure_ascii=False)}\n</tool_call>"
        for name, args in calls
    )


FORMS: dict[str, tuple[str, Callable[..., str], str]] = {
    "action": ("action", action_block, "<ACTION><weather><city>Ber"),
    "inputs": ("action", inputs_block, "<ACTION>\n  <tool_id>weather</tool_id>\n  <inputs>\n    <input name="),
    "tam": ("tam", tam_block, "<|[REQUEST_TOOL]|>\ncommand_1:»»»weather"),
    "vcp": ("vcp", vcp_blocks, "<<<[TOOL_REQUEST]>>>\ntool_name:「始」weather「末」,\ncity:「始」Ber"),
    "hermes": ("hermes", hermes_blocks, '<tool_call>\n{"name": "weather", "arguments": {"city": "Ber'),
}
"""For each: the protocol, how calls are written, and a block that breaks off."""


class Model:
    """Answers by a script of (words that the last observation must hold, answer); words from the observation can stand in the answer."""

    def __init__(self, script: list[tuple[str, Callable[[str], str]]]) -> None:
        self._script = script
        self.round = 0

    def answer(self, observation: str) -> str:
        words, say = self._script[self.round]
        assert words in observation, (self.round, words, observation)
        self.round += 1
        return say(observation)

    def hangs(self, text: str) -> bool:
        """Whether that answer calls the tool that never ends."""
        return "hang" in text


def script(call: Callable[..., str], broken: str, *, several: bool) -> list[tuple[str, Callable[[str], str]]]:
    weather = ("weather", {"city": "Berlin"})
    # TAM's keys are read without regard to case and separators (ruling 20)
    wrong = "playr_id" if call is tam_block else "playerId"
    pair: Calls = (weather, ("mood", {"of": "安娜 😀"})) if several else (("mood", {"of": "安娜 😀"}),)
    return [
        ("", lambda _: "I look outside first.\n" + call(weather)),
        ("sunny in Berlin", lambda _: "Now the player.\n" + call(("GetPlayerInfo", {wrong: "player123"}))),
        (
            "did you mean 'player_id'?",
            lambda _: "I misspelled it.\n" + call(("GetPlayerInfo", {"player_id": "player123"})),
        ),
        ("player123 is Ann", lambda _: "I clean up.\n" + call(("erase", {"what": "everything"}))),
        ("用户拒绝了该操作", lambda _: "As you wish.\n" + call(("slow", {}))),
        ("TimeoutError", lambda _: "Once more the weather.\n" + broken),
        (("cut off" if call is vcp_blocks else "Malformed"), lambda _: "Whole this time.\n" + call(*pair)),
        ("安娜 😀 is glad", lambda _: "Something that takes long.\n" + call(("render", {"scene": "harbour"}))),
        ("was started as task", lambda seen: call(("system:task_status", {"task_id": _task_in(seen)}))),
        ("completed", lambda _: "There it is.\n" + call(("hang", {}))),
        ("cancelled", lambda _: "Then round and round.\n" + call(weather)),
        ("sunny in Berlin", lambda _: call(weather)),
        ("sunny in Berlin", lambda _: call(weather)),
        ("sunny in Berlin", lambda _: call(("mood", {"of": "Ben"}))),
        ("maxIterations", lambda _: "That was all."),
    ]


def _task_in(observation: str) -> str:
    found = re.search(r"as task ([\w-]+)", observation)
    assert found is not None, observation
    return found[1]


def make_world(root: Path) -> World:
    """The tools that the script calls."""
    world = World(root)
    world.tool("weather", lambda city: f"sunny in {city}", {"city": TEXT}, ["city"])
    world.tool("mood", lambda of: f"{of} is glad", {"of": TEXT}, ["of"])
    world.tool("GetPlayerInfo", lambda player_id: f"{player_id} is Ann", {"player_id": TEXT}, ["player_id"])
    world.tool("erase", lambda what: what, {"what": TEXT}, execution={"requireConfirmation": True})
    world.tool("slow", hangs, {}, execution={"timeoutMs": 40})
    world.tool("hang", hangs, {})
    world.tool("render", lambda scene: {"image": scene}, {"scene": TEXT}, execution={"mode": "async"})
    return world


def transcript(
    said: list[tuple[str, StepResult]], states: Callable[[str], Sequence[str]], messages: list[SessionMessage]
) -> str:
    """The conversation and what is kept of it, without what differs from run to run."""
    parts: list[str] = []
    for number, (text, result) in enumerate(said, 1):
        parts.append(f"=== round {number}: the model\n{text}")
        calls = [
            f"{one.request_id} {one.tool_name}: {' → '.join(states(one.request_id))}; {outcome.status}"
            for one, outcome in zip(result.requests, result.results, strict=True)
        ]
        stop = (
            "" if result.stop is UNSET else f"; stop {result.stop}: {result.explanation if result.explanation else ''}"
        )
        parts.append("\n".join([f"--- iteration {result.iteration}{stop}", *calls]))
        parts.append(f"--- the model reads\n{result.observation}")
    parts.append("=== messages")
    for message in messages:
        metadata = msgspec.to_builtins(message.metadata)
        told = json.dumps(metadata, ensure_ascii=False, sort_keys=True)
        parts.append(f"{message.index} {message.role} ({len(message.content.splitlines())} lines) {told}")
    return _settled("\n".join(parts) + "\n")


def _settled(text: str) -> str:
    text = re.sub(r'("durationMs": )[\d.]+', r"\1…", text)
    text = re.sub(r"(duration_ms:「始」)\d+", r"\1…", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)", "(time)", text)
    # the task's own record belongs to other tests
    text = re.sub(r'\{\\?"taskId\\?": .*?\\?"status\\?": \\?"(\w+)\\?".*', r"(a task that is \1)", text)
    ids = dict.fromkeys(re.findall(r"as task ([\w-]+)", text))
    for number, task_id in enumerate(ids, 1):
        text = text.replace(task_id, f"(task {number})")
    return text


def check(form: str, said: list[tuple[str, StepResult]], found: str) -> None:
    """Compares a transcript with the one that is kept."""
    # what no golden may ever say otherwise
    for _, result in said:
        assert [one.request_id for one in result.requests] == [one.call_id for one in result.results]
    stops = [None if result.stop is UNSET else result.stop for _, result in said]
    assert stops == [*[None] * 9, "cancelled", None, None, "loopDetected", "maxIterations", "noTools"]
    assert [result.iteration for _, result in said] == [1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10]
    path = HERE / f"{form}.txt"
    if os.environ.get("TAMIS_UPDATE_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
