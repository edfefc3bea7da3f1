"""``tamis approvals``: the answers that hold for always are listed and revoked (V61)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tamis.protocols.contract import Granted
from tamis.server.runtime.execution.approvals.remembered import Kind, new_entry
from tamis.server.runtime.runtime import Runtime
from tests.cli.in_process import Tamis


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))


def answered(root: Path, *answers: tuple[Kind, str]) -> list[str]:
    """Answers about tools, as they are kept after a person gave them; their ids."""

    async def keep() -> list[str]:
        runtime = Runtime(root)
        entries = [
            new_entry(kind, tool, "1.0.0", Granted(), session_id="s", agent_id="writer") for kind, tool in answers
        ]
        for entry in entries:
            await runtime.parts.approvals.standing.keep(entry, f"binding of {entry.id}")
        await runtime.close()
        return [entry.id for entry in entries]

    return asyncio.run(keep())


def test_answers_are_listed_for_people_and_machines(tamis: Tamis) -> None:
    assert tamis("approvals").out == "no answer holds here\n"
    one, two = answered(tamis.folder, ("allow_always", "t:a"), ("reject_always", "t:b"))
    answered(tamis.folder.parent, ("allow_always", "t:elsewhere"))
    done = tamis("approvals")
    assert done.code == 0
    assert f"{one}  always allowed  t:a 1.0.0, agent writer\n" in done.out
    assert f"{two}  never allowed  t:b 1.0.0, agent writer\n" in done.out
    assert "elsewhere" not in done.out
    listed = tamis("approvals", "list", "--tool", "t:b", "--json").json()["approvals"]
    assert [(entry["id"], entry["kind"], entry["toolId"], entry["agentId"]) for entry in listed] == [
        (two, "reject_always", "t:b", "writer")
    ]


def test_answers_are_revoked_by_id_by_tool_and_all(tamis: Tamis) -> None:
    ids = answered(tamis.folder, *[("allow_always", tool) for tool in ("t:a", "t:b", "t:b", "t:c", "t:d")])
    assert tamis("approvals", "revoke", ids[0], "--json").json() == {"revoked": [ids[0]]}
    assert tamis("approvals", "revoke", "--tool", "t:b").out == "2 answers revoked\n"
    gone = tamis("approvals", "revoke", ids[0])
    assert gone.code == 1
    assert f"no answer with the id '{ids[0]}' holds here" in gone.err
    assert sorted(tamis("approvals", "revoke", "--all", "--json").json()["revoked"]) == sorted(ids[3:])
    assert tamis("approvals", "--json").json() == {"approvals": []}


@pytest.mark.parametrize(
    "words",
    [("revoke",), ("revoke", "x", "--all"), ("revoke", "--tool", "t:a", "--all"), ("list", "x"), ("list", "--all")],
)
def test_wrong_usage_changes_nothing(tamis: Tamis, words: tuple[str, ...]) -> None:
    (kept,) = answered(tamis.folder, ("allow_always", "t:a"))
    assert tamis("approvals", *words).code == 2
    assert [entry["id"] for entry in tamis("approvals", "--json").json()["approvals"]] == [kept]
