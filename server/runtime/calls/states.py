"""The states of a call and which may follow which (seed 001 §11.2.2 and §12, V60, V62).

Whoever runs a call says what it does; a state that may not follow the last one is not told, so that nobody ever sees an illegal
step. Must not know who listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from tamis.protocols.contract import CallState, Status

State = CallState
STATES: tuple[State, ...] = get_args(State)
NEXT: dict[State, frozenset[State]] = {
    # completed from here: unknown tool, unfit arguments, refused by policy, no one to ask, replayed
    "pending": frozenset({"awaitingApproval", "executing", "completed", "denied", "cancelled"}),
    # completed from here: no answer in time
    "awaitingApproval": frozenset({"executing", "completed", "denied", "cancelled"}),
    "executing": frozenset({"completed", "cancelled"}),
    "completed": frozenset(),
    "denied": frozenset(),
    "cancelled": frozenset(),
}
"""The states that may follow each; a call begins ``pending``. ``denied`` is a person's refusal, nothing else."""

OnEvent = Callable[[str, State], None]
"""Called with a call's id and the state that it is in now."""


def end_state(status: Status) -> State:
    """The state in which a call with that result is left.

    ``accepted`` goes on as a task and ``inputRequired`` waits for a person: they are not at their end.
    """
    if status == "denied" or status == "cancelled":
        return status
    if status == "accepted":
        return "executing"
    return "awaitingApproval" if status == "inputRequired" else "completed"


class States:
    """Tells the states of the calls of one request, each once and only legal steps. It is an ``OnEvent`` itself."""

    def __init__(self, tell: OnEvent | None) -> None:
        self._tell = tell
        self._now: dict[str, State] = {}

    def begin(self, call_id: str) -> None:
        """A call begins, again if one with that id has ended."""
        now = self._now.get(call_id)
        if now is None or not NEXT[now]:
            self._now[call_id] = "pending"
            self._told(call_id, "pending")

    def __call__(self, call_id: str, state: State) -> None:
        """A call is in a state now; the same state again, or one that may not follow, is not told."""
        now = self._now.get(call_id)
        if now is None:
            self.begin(call_id)
            now = "pending"
        if state in NEXT[now]:
            self._now[call_id] = state
            self._told(call_id, state)

    def now(self, call_id: str) -> State | None:
        """The state that was told last."""
        return self._now.get(call_id)

    def _told(self, call_id: str, state: State) -> None:
        if self._tell is not None:
            self._tell(call_id, state)


def states_of(on_event: OnEvent | None) -> States:
    """The states that a request's calls are told through; the same ones for every call of a text."""
    return on_event if isinstance(on_event, States) else States(on_event)
