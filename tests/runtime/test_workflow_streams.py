"""Streamed outputs: handles, reading, what is bounded, what happens to a stream that nobody reads (W22)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.server.runtime.handlers.workflow import streams
from tamis.server.runtime.handlers.workflow.streams import StreamFull, Streams
from tamis.server.runtime.tools.workflows import READER
from tests.runtime.service_world import error_of
from tests.runtime.workflow_world import World, edge, flow

ITEMS = [1, 2, 3, 4, 5]


class Gate:
    """A tool whose calls wait until the test lets them go on."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def tool(self, args: dict[str, Any]) -> int:
        if args["item"] > 2:
            await self.open.wait()
        if args["item"] == 99:
            from tamis.server.runtime.calls.model import HostError

            raise HostError("no ninety-nine")
        return args["item"] * 10


def streamed(items: list[int], **more: Any) -> dict[str, Any]:
    content = flow(
        [
            {"id": "m", "type": "map", "config": {"type": "t:slow"}, "inputs": {"items": items}},
            {"id": "c", "type": "constant", "config": {"value": "now"}},
        ],
        outputs={"all": "m.results", "note": "c.value"},
        **more,
    )
    content["interfaceOutputs"]["all"]["isStream"] = True
    return content


def world(root: Path, gate: Gate, items: list[int], **settings: Any) -> World:
    made = World(root, {"s": streamed(items)}, {"slow": gate.tool}, **settings)
    made.runtime.parts.stays = True
    return made


def test_what_a_map_only_streams_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.server.runtime.handlers.workflow.run.MAX_HELD_BYTES", 100)
    items = list(range(200))
    content = streamed(items)
    made = World(tmp_path, {"s": content}, {"slow": lambda args: f"{args['item']:10}"})
    made.runtime.parts.stays = True

    async def work() -> list[Any]:
        result = await made.call("workflow:s")
        found: list[Any] = []
        while True:
            given = await made.runtime.parts.workflows.streams.read(result.output["all"]["handle"], 1_000)
            assert given is not None
            found += given.items
            if given.done:
                assert given.error is UNSET
                return found

    assert len(asyncio.run(work())) == len(items)


def test_a_handle_comes_at_once_and_the_items_as_they_are_made(tmp_path: Path) -> None:
    async def work() -> None:
        gate = Gate()
        made = world(tmp_path, gate, ITEMS)
        result = await made.call("workflow:s")
        assert result.status == "success"
        assert result.output["note"] == "now"
        handle = result.output["all"]["handle"]
        reading = made.runtime.parts.workflows.streams
        items: list[Any] = []
        while len(items) < 2:
            found = await reading.read(handle, 1000)
            assert found is not None
            assert not found.done
            items += found.items
        assert items == [10, 20]
        gate.open.set()
        while True:
            found = await reading.read(handle, 1000)
            assert found is not None
            items += found.items
            if found.done:
                break
        assert items == [10, 20, 30, 40, 50]
        assert found.error is UNSET
        assert await reading.read(handle, 0) is None  # it was read to its end
        await made.runtime.close()

    asyncio.run(work())


def test_agents_read_with_a_tool(tmp_path: Path) -> None:
    async def work() -> None:
        gate = Gate()
        gate.open.set()
        made = world(tmp_path, gate, [1, 2])
        handle = (await made.call("workflow:s")).output["all"]["handle"]
        items: list[Any] = []
        for _ in range(10):
            read = await made.call(READER, {"handle": handle, "waitMs": 500})
            assert read.status == "success"
            items += read.output["items"]
            if read.output["done"]:
                break
        assert items == [10, 20]
        gone = await made.call(READER, {"handle": handle})
        assert error_of(gone)["type"] == "WorkflowError"
        await made.runtime.close()

    asyncio.run(work())


def test_the_reader_is_there_only_where_a_workflow_streams(tmp_path: Path) -> None:
    plain = flow([{"id": "c", "type": "constant", "config": {"value": 1}}], outputs={"o": "c.value"})
    assert World(tmp_path, {"p": plain}).runtime.registry.get(READER) is None


def test_a_failure_after_the_handle_stands_at_the_streams_end(tmp_path: Path) -> None:
    async def work() -> None:
        gate = Gate()
        made = world(tmp_path, gate, [1, 99])
        handle = (await made.call("workflow:s")).output["all"]["handle"]
        gate.open.set()
        items: list[Any] = []
        reading = made.runtime.parts.workflows.streams
        while True:
            found = await reading.read(handle, 1000)
            assert found is not None
            items += found.items
            if found.done:
                break
        assert items == [10]
        assert found.error is not UNSET
        assert found.error.type == "WorkflowError"
        assert "no ninety-nine" in found.error.message
        await made.runtime.close()

    asyncio.run(work())


def test_where_nobody_could_read_the_items_come_as_a_list(tmp_path: Path) -> None:
    gate = Gate()
    gate.open.set()
    made = World(tmp_path, {"s": streamed([1, 2])}, {"slow": gate.tool})
    assert made.run("workflow:s").output == {"all": [10, 20], "note": "now"}


def test_a_workflow_inside_another_gives_its_items_as_a_list(tmp_path: Path) -> None:
    async def work() -> None:
        gate = Gate()
        gate.open.set()
        outer = flow(
            [{"id": "s", "type": "workflow:s"}, {"id": "t", "type": "template", "config": {"template": "{{x}}"}}],
            [edge("s.all", "t.x")],
            {"o": "t.text"},
        )
        made = World(tmp_path, {"s": streamed([1, 2]), "outer": outer}, {"slow": gate.tool})
        made.runtime.parts.stays = True
        assert (await made.call("workflow:outer")).output == "[10,20]"
        await made.runtime.close()

    asyncio.run(work())


def test_a_stream_that_nobody_reads_ends_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        gate = Gate()
        made = world(tmp_path, gate, ITEMS)
        made.runtime.parts.workflows.streams = Streams(idle_s=0.05)
        handle = (await made.call("workflow:s")).output["all"]["handle"]
        while made.runtime.parts.workflows.streams.get(handle) is not None:
            await asyncio.sleep(0.01)
        while not made.host.said("service/cancel"):
            await asyncio.sleep(0.01)
        await made.runtime.close()

    asyncio.run(work())


def test_the_runtimes_end_ends_what_still_streams(tmp_path: Path) -> None:
    async def work() -> None:
        before = asyncio.all_tasks()
        made = world(tmp_path, Gate(), ITEMS)
        await made.call("workflow:s")
        await made.runtime.close()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before

    asyncio.run(work())


def test_streams_are_bounded_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        held = Streams()
        made = [held.open() for _ in range(streams.MAX_STREAMS)]
        with pytest.raises(StreamFull, match="64 streams are open"):
            held.open()
        held.drop(made[0].handle)
        stream = held.open()
        monkeypatch.setattr(streams, "MAX_BYTES", 1000)
        stream.push("x" * 800)
        with pytest.raises(StreamFull, match="1000 bytes wait"):
            stream.push("x" * 800)
        found = await held.read(stream.handle, 0)
        assert found is not None
        assert (len(found.items), found.done) == (1, False)
        stream.push("y" * 800)  # there is room again
        held.close()

    asyncio.run(work())


def test_a_reading_waits_only_as_long_as_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_WAIT_MS", 10**9)

    async def work() -> None:
        held = Streams()
        stream = held.open()
        found = await held.read(stream.handle, 20)
        assert found is not None
        assert (found.items, found.done) == ([], False)
        waiting = asyncio.ensure_future(held.read(stream.handle, 10**9))
        await asyncio.sleep(0)
        stream.end()
        found = await waiting
        assert found is not None
        assert found.done
        held.close()

    asyncio.run(work())


# by key


def keyed(made: World, key: str = "k", **more: Any) -> Any:
    return made.call("workflow:s", idempotency_key=key, **more)


@pytest.fixture
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.usefixtures("_own_state")
def test_the_same_key_again_gives_the_items_of_the_whole_stream(tmp_path: Path) -> None:  # W22, ruling 26
    async def work() -> None:
        gate = Gate()
        made = world(tmp_path, gate, ITEMS)
        first = await keyed(made)
        handle = first.output["all"]["handle"]
        begun = await made.runtime.parts.workflows.streams.read(handle, 1_000)
        assert begun is not None
        assert begun.items[0] == 10
        # it waits for the end of the run, and does not read what is the first one's
        second = asyncio.ensure_future(keyed(made))
        late = await keyed(made, timeout_ms=50)
        assert error_of(late)["details"]["code"] == "stillRunning"
        gate.open.set()
        again = await second
        assert (again.replayed, again.status) == (True, "success")
        assert again.output == {"all": [10, 20, 30, 40, 50], "note": "now"}
        items = list(begun.items)
        while not (found := await made.runtime.parts.workflows.streams.read(handle, 1_000)).done:  # type: ignore[union-attr]
            items += found.items  # type: ignore[union-attr]
        assert [*items, *found.items] == [10, 20, 30, 40, 50]  # type: ignore[union-attr]
        await made.runtime.close()
        # another daemon knows no handle of this one
        later = world(tmp_path, gate, ITEMS)
        assert (await keyed(later)).output == again.output
        assert not later.host.asked
        await later.runtime.close()

    asyncio.run(work())


@pytest.mark.usefixtures("_own_state")
def test_a_stream_that_fails_or_is_left_is_what_its_key_says(tmp_path: Path) -> None:  # W22, ruling 26
    async def work() -> None:
        gate = Gate()
        gate.open.set()
        made = world(tmp_path, gate, [1, 99])
        assert (await keyed(made)).status == "success"
        failed = await keyed(made)
        assert (failed.status, failed.replayed) == ("error", True)
        assert "no ninety-nine" in error_of(failed)["message"]
        # nobody reads it: the run is cancelled, and the key is free
        gate.open.clear()
        first = await keyed(made, "left", args={})
        made.runtime.parts.workflows.streams.drop(first.output["all"]["handle"])
        second = await keyed(made, "left", args={})
        assert not second.replayed
        assert second.output["all"]["handle"] != first.output["all"]["handle"]
        await made.runtime.close()

    asyncio.run(work())


@pytest.mark.usefixtures("_own_state")
def test_a_stream_that_is_too_long_to_be_kept_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.server.runtime.handlers.workflow.run.MAX_COLLECTED", 3)

    async def work() -> None:
        gate = Gate()
        gate.open.set()
        made = world(tmp_path, gate, ITEMS)
        assert (await keyed(made)).status == "success"
        again = await keyed(made)
        assert (again.status, error_of(again)["details"]["code"]) == ("error", "streamNotKept")
        await made.runtime.close()

    asyncio.run(work())


def test_the_other_outputs_of_a_streaming_workflow_are_held_against_their_types(tmp_path: Path) -> None:
    """T5: a handle is not given for a run whose other output is wrong."""
    nodes = [
        {"id": "n", "type": "t:give"},
        {"id": "m", "type": "map", "config": {"type": "t:give"}, "inputs": {"items": [1, 2]}},
    ]
    content = flow(nodes, [], {"y": "n.output", "s": "m.results"})
    content["interfaceOutputs"] = {"y": {"dataFlowType": "INTEGER"}, "s": {"dataFlowType": "ARRAY", "isStream": True}}
    made = World(tmp_path, {"w": content}, {"give": lambda _args: "text"})
    made.runtime.parts.stays = True
    result = made.run("workflow:w")
    assert result.status == "error"
    assert "the output 'y' is INTEGER" in error_of(result)["message"]
