"""Answers that hold for later calls: for a session, in memory; for always, in the store.

An answer is bound to a digest of the tool as it was when it was given (``calls/prepared.py``), so that a changed tool, or one with other
rights, asks again. Arguments are never kept. Must not know how a person was asked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from tamis.protocols.contract import Granted, StandingApproval

if TYPE_CHECKING:
    import sqlite3

    from tamis.server.runtime.store.store import Store

Kind = Literal["allow_session", "allow_always", "reject_always"]
MAX_SESSION = 1_000
"""So many answers for sessions are kept; then the oldest is asked for again."""


class StandingAnswers:
    """What holds in one root; ``store`` is opened when an answer for always is looked for, given, listed or revoked."""

    def __init__(self, root: str, store: Callable[[], Store], say: Callable[[str], object] = str) -> None:
        """``say`` is told once of answers that an earlier version kept and that hold no longer."""
        self._root = root
        self._store = store
        self._say = say
        self._looked = False
        self._session: dict[tuple[str, str], StandingApproval] = {}

    async def find(self, session_id: str, binding: str) -> Kind | None:
        """The answer that holds for a binding, if any; a refusal goes before all."""
        stored = await self._stored(binding)
        if stored is not None:
            return stored
        return self.in_session(session_id, binding)

    def in_session(self, session_id: str, binding: str) -> Kind | None:
        """The same of what was answered in that session alone."""
        return "allow_session" if (session_id, binding) in self._session else None

    async def keep(self, entry: StandingApproval, binding: str) -> None:
        """Keeps an answer in the place of an earlier one to the same question."""
        if entry.kind == "allow_session":
            self._session[entry.session_id, binding] = entry
            while len(self._session) > MAX_SESSION:
                self._session.pop(next(iter(self._session)))
            return
        row = (
            entry.id,
            self._root,
            binding,
            entry.kind,
            entry.tool_id,
            entry.version,
            entry.agent_id,
            msgspec.json.encode(entry.permissions),
            time.time(),
        )

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO approvals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

        await self._store().run(write)

    async def listed(self) -> list[StandingApproval]:
        """All that holds, those for sessions first, each sort in the order in which it was given."""
        query = (
            "SELECT approval_id, kind, tool_id, version, agent_id, permissions, created FROM approvals WHERE root = ?"
            " ORDER BY created, approval_id"
        )

        def read(connection: sqlite3.Connection) -> list[tuple[str, Kind, str, str, str, bytes, float]]:
            return connection.execute(query, (self._root,)).fetchall()

        standing_approvals = list(self._session.values())
        for identity, kind, tool_id, version, agent_id, permissions, created in await self._store().run(read):
            standing_approvals.append(
                StandingApproval(
                    id=identity,
                    kind=kind,
                    tool_id=tool_id,
                    version=version,
                    agent_id=agent_id,
                    session_id="",
                    permissions=msgspec.json.decode(permissions, type=Granted),
                    created_at=_iso(created),
                )
            )
        return standing_approvals

    def forget_session(self, session_id: str) -> None:
        """A session has ended: what was allowed for it is asked for again, also by another one of the same id."""
        self._session = {key: entry for key, entry in self._session.items() if key[0] != session_id}

    async def revoke(self, wanted: Callable[[StandingApproval], bool]) -> list[str]:
        """Forgets the answers that are wanted; returns their ids."""
        gone = [entry.id for entry in await self.listed() if wanted(entry)]
        self._session = {key: entry for key, entry in self._session.items() if entry.id not in gone}

        def delete(connection: sqlite3.Connection) -> None:
            statement = "DELETE FROM approvals WHERE root = ? AND approval_id = ?"
            connection.executemany(statement, [(self._root, identity) for identity in gone])

        if gone:
            await self._store().run(delete)
        return gone

    async def _stored(self, binding: str) -> Kind | None:
        def read(connection: sqlite3.Connection) -> tuple[str | None, int]:
            gone = 0 if self._looked else _forget_old(connection, self._root)
            query = "SELECT kind FROM approvals WHERE root = ? AND binding = ?"
            row = connection.execute(query, (self._root, binding)).fetchone()
            return None if row is None else str(row[0]), gone

        kind, gone = await self._store().run(read)
        self._looked = True
        if gone:
            text = "answer for always was about a script" if gone == 1 else "answers for always were about scripts"
            self._say(f"{gone} {text} alone and no longer held: all files of a tool are what is asked about now")
        return cast("Kind", kind) if kind in ("allow_always", "reject_always") else None


def _forget_old(connection: sqlite3.Connection, root: str) -> int:
    """Forgets answers of the form that says nothing of what stands beside a script; how many there were."""
    return connection.execute("DELETE FROM approvals WHERE root = ? AND binding NOT LIKE '_:%'", (root,)).rowcount


def new_entry(
    kind: Kind, tool_id: str, version: str, permissions: Granted, *, session_id: str, agent_id: str
) -> StandingApproval:
    """An answer as it is given now."""
    return StandingApproval(
        id=f"standing-{os.urandom(8).hex()}",
        kind=kind,
        tool_id=tool_id,
        version=version,
        agent_id=agent_id,
        session_id=session_id if kind == "allow_session" else "",
        permissions=permissions,
        created_at=_iso(time.time()),
    )


def _iso(seconds: float) -> str:
    # not needed before somebody was asked
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat()
