"""One session's bookkeeping, without a process: the ids of requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tamis.server.rpc.session import Method, Request, Session


async def sleepy(_request: Request, params: Any) -> Any:
    await asyncio.sleep(0)
    return params


def broken(_request: Request, _params: Any) -> Any:
    raise ValueError("broken")


@pytest.mark.parametrize("method", ["plain", "sleepy", "finishes", "broken", "unknown"])
def test_an_id_may_be_used_again_as_soon_as_its_reply_is_out(method: str) -> None:
    methods = {
        "plain": Method(lambda _request, params: params),
        "sleepy": Method(sleepy),
        "finishes": Method(sleepy, finishes=True),
        "broken": Method(broken),
    }
    replies: list[dict[str, Any]] = []

    async def run() -> None:
        session = Session(methods)
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {}}

        def answer(reply: bytes | None) -> None:
            assert reply is not None
            replies.append(json.loads(reply))
            if len(replies) < 5:
                session._message(message, answer)  # pyright: ignore[reportPrivateUsage]

        session._message(message, answer)  # pyright: ignore[reportPrivateUsage]
        for _ in range(100):
            await asyncio.sleep(0)
        assert not session.pending

    asyncio.run(run())
    assert len(replies) == 5
    assert not [reply for reply in replies if "still answered" in json.dumps(reply)]


def test_an_id_that_is_not_answered_yet_is_refused_and_its_request_goes_on() -> None:
    replies: list[dict[str, Any]] = []

    async def run() -> None:
        gate = asyncio.Event()

        async def waits(_request: Request, params: Any) -> Any:
            await gate.wait()
            return params

        session = Session({"waits": Method(waits)})
        message = {"jsonrpc": "2.0", "id": 7, "method": "waits", "params": {}}
        for _ in range(2):
            session._message(message, lambda reply: replies.append(json.loads(reply or b"")))  # pyright: ignore[reportPrivateUsage]
        assert len(session.pending) == 1
        gate.set()
        for _ in range(20):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert [reply.get("error", {}).get("code") for reply in replies] == [-32600, None]
