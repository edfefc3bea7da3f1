"""Everything that the daemons of these tests send fits its published schema, whatever the test is about."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from tamis.client import blocking
from tamis.client.messages import Incoming
from tests.rpc import contract_check


@pytest.fixture(autouse=True)
def held_to_the_contract(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found: list[str] = []
    received = blocking.Client._received  # pyright: ignore[reportPrivateUsage]

    def look(client: blocking.Client, message: Incoming) -> None:
        waiting = client._waiting.get(message.id) if isinstance(message.id, int) else None  # pyright: ignore[reportPrivateUsage]
        method = "" if waiting is None else waiting[1]
        if message.method is not None and len(message.params) < contract_check.MAX_BYTES:
            told = {"method": message.method, "params": msgspec.json.decode(message.params)}
            found.extend(contract_check.message_faults(told, {}))
        elif message.error is not msgspec.UNSET:
            found.extend(contract_check.error_faults(method, message.error.code))
        elif method in contract_check.methods() and len(message.result) < contract_check.MAX_BYTES:
            found.extend(contract_check.faults("result", method, msgspec.json.decode(message.result)))
        received(client, message)

    monkeypatch.setattr(blocking.Client, "_received", look)
    yield
    assert found == []
