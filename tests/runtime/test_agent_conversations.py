"""A scripted model talks to the runtime for fifteen rounds in each protocol; every transcript stands word for word in ``conversations/``.

TAMIS_UPDATE_GOLDEN=1 writes the files anew; read the difference before keeping it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import StepResult
from tamis.server.runtime.calls.model import Question, Reply
from tamis.server.runtime.settings.protocols import load_protocol
from tests.runtime.agent_world import World
from tests.runtime.scripted_model import FORMS, MAX_ITERATIONS, Model, check, make_world, script, transcript


async def talk(world: World, protocol: str, model: Model, rounds: int) -> list[tuple[str, StepResult]]:
    """The host's loop. It does not end at a ``stop`` here: the script goes on to see what follows."""
    world.runtime.parts.stays = True
    said: list[tuple[str, StepResult]] = []
    observation = ""
    for _ in range(rounds):
        text = model.answer(observation)
        cancelled = asyncio.Event()

        async def hang(cancelled: asyncio.Event = cancelled) -> None:
            cancelled.set()
            await asyncio.Event().wait()

        world.functions["hang"] = hang
        parallel = protocol in ("vcp", "hermes")
        config: dict[str, Any] = {"protocol": protocol, "parallelExecution": parallel, "maxIterations": MAX_ITERATIONS}
        result = await world.step(text, cancelled=cancelled, **config)
        if result.results and result.results[0].status == "accepted":
            # the host does something else until the task has ended
            await world.runtime.parts.tasks.result(str(result.results[0].task_id), 20_000)
        said.append((text, result))
        observation = result.observation
    await world.runtime.close()
    return said


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_goes_as_its_transcript_says(
    form: str, tmp_path: Path
) -> None:  # A40, A48, V48, V49, V50, V51, V53, V54, V56, V57, V61, V62, A29, A30
    protocol, call, broken = FORMS[form]
    load_protocol(protocol)
    world = make_world(tmp_path)

    async def deny(_question: Question) -> Reply:
        return Reply(answer="deny")

    world.ask = deny
    lines = script(call, broken, several=form != "inputs")
    said = asyncio.run(talk(world, protocol, Model(lines), len(lines)))
    check(form, said, transcript(said, world.states, world.session(limit=500).messages))
