"""What is kept of each agent's conversation: its messages, how many rounds it had, what its last rounds did (seed 001 §9 and §10).

Everything is in memory and bounded: how many sessions, how long an idle one stays, how many messages and characters each has. Must
not know how calls are run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import (
    ExecutionResult,
    MessageMetadata,
    RequestedToolCall,
    SessionMessage,
    SessionView,
    StepStop,
    ToolCallRecord,
)
from tamis.protocols.observation import cut_middle
from tamis.server.runtime.agents.views import Asked, narrow, result_text
from tamis.server.runtime.calls.model import NEXT, State, end_state
from tamis.server.runtime.calls.running_calls import RunningCalls

# When an agent turns in circles: the same calls with the same arguments and the same results three rounds running (ruling 41, V51). Rounds are
# compared, not single calls: the same call twice in one answer is two calls (ruling 8), and a call that comes again among others that changed is
# work.


LOOP_ROUNDS = 3
"""So many equal rounds running are a loop."""
DENIED_ROUNDS = 2
"""So many equal rounds running whose calls a person denied: the model insists."""


class Repeats:
    """How many times running the last round came; only digests are kept."""

    def __init__(self) -> None:
        self._last = b""
        self.times = 0

    def add(self, digest: bytes) -> int:
        """One more round; how many times running it has come now."""
        self.times = self.times + 1 if digest == self._last else 1
        self._last = digest
        return self.times

    def clear(self) -> None:
        """What came before counts no more."""
        self._last, self.times = b"", 0


def digest_of(calls: Iterable[tuple[dict[str, Any], ExecutionResult]]) -> bytes:
    """What a round did: its tools, arguments and outcomes, in order; not how long they took, nor what they logged."""
    sha256 = hashlib.sha256()
    for args, result in calls:
        error = None if result.error is UNSET else [result.error.type, result.error.message]
        output = None if result.output is UNSET else result.output
        told = [result.tool_id, args, result.status, output, error]
        try:
            text = json.dumps(told, sort_keys=True, default=repr)
        except (RecursionError, TypeError, ValueError):
            # what cannot be compared is never a repeat
            return os.urandom(32)
        sha256.update(text.encode() + b"\0")
    return sha256.digest()


MAX_SESSIONS = 1_000
MAX_IDLE_S = 24 * 60 * 60
MAX_MESSAGES = 1_000
"""Of one session; the oldest go first."""
MAX_SESSION_CHARS = 8 * 1024 * 1024
MAX_ALL_CHARS = 64 * 1024 * 1024
"""Of all sessions together; then the one that was used longest ago goes."""
MAX_CONTENT_CHARS = 256 * 1024
MAX_VALUE_CHARS = 16 * 1024
MAX_REQUESTED = 500
"""Calls listed with one answer."""
MAX_OPEN = 2_000
"""Calls of a session whose end is still to come; the oldest of more keep the state that was noted last."""
MAX_WAITING = 16
"""Steps of one session that wait for the one that runs."""
DEFAULT_PAGE = 100
MAX_PAGE = 500
_PAGE_CHARS = 4 * 1024 * 1024

_Recorded = Literal["pending", "awaiting_approval", "executing", "completed", "denied"]
_RECORDED: dict[State, _Recorded] = {
    "pending": "pending",
    "awaitingApproval": "awaiting_approval",
    "executing": "executing",
    "completed": "completed",
    "denied": "denied",
    "cancelled": "completed",
}
"""The states of a call in seed 001's words; a cancelled one is completed with an error."""


class TooManyWaitingError(Exception):
    """More steps of one session were asked for at once than wait."""


class Unfinished(msgspec.Struct, frozen=True):
    """A round of which a call waits for a person's answer: the host comes back with it."""

    digest: bytes
    """Of its text."""
    prefix: str
    """Of the ids of its calls."""
    done: dict[int, ExecutionResult]
    """The results that stand, by the calls' places in the text."""
    counted: bool


class AgentSession:
    """One conversation. Its steps run one after another."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.iteration = 0
        self.turn_iteration = 0
        self.idle_rounds = 0
        """Rounds running that asked for calls of which none could run."""
        self.answered = False
        """The model's last answer had no call: what comes next is a new turn."""
        self.repeats = Repeats()
        self.denials = Repeats()
        self.messages: deque[SessionMessage] = deque()
        self.count = 0
        self.size = 0
        self.used = 0.0
        self.waiting = 0
        self.unfinished: Unfinished | None = None
        self._turn = asyncio.Lock()
        self._sizes: deque[int] = deque()
        self._open: dict[str, RequestedToolCall] = {}
        self._asked_in: dict[str, int] = {}
        """The index of the message that asked for each of them."""
        self._results: set[str] = set()

    @property
    def busy(self) -> bool:
        """Whether a step runs or waits."""
        return self._turn.locked() or self.waiting > 0

    @asynccontextmanager
    async def turn(self, cancelled: asyncio.Event) -> AsyncGenerator[bool]:
        """Waits until no other step of the session runs; False when it was cancelled before. Raises ``TooManyWaitingError``."""
        if self.waiting >= MAX_WAITING:
            raise TooManyWaitingError
        self.waiting += 1
        try:
            mine = await _acquired(self._turn, cancelled)
        finally:
            self.waiting -= 1
        try:
            yield mine
        finally:
            if mine:
                self._turn.release()

    def new_turn(self) -> None:
        """Somebody spoke to the model: rounds and repeats count from here."""
        self.turn_iteration = self.idle_rounds = 0
        self.answered = False
        self.repeats.clear()
        self.denials.clear()

    def add_answer(self, text: str, asked: Sequence[Asked]) -> None:
        """The model's answer, with the calls that it asks for."""
        requested = [
            RequestedToolCall(
                request_id=question.request.request_id,
                tool_name=cut_middle(question.request.tool_name, MAX_VALUE_CHARS),
                args=_cut(question.shown),
                status="pending",
            )
            for question in asked[:MAX_REQUESTED]
        ]
        self._open.update((call.request_id, call) for call in requested)
        self._asked_in.update((call.request_id, self.count) for call in requested)
        while len(self._open) > MAX_OPEN:
            # what never came back
            self._closed(next(iter(self._open)))
        more = len(asked) - len(requested)
        metadata = MessageMetadata(tool_calls_requested=requested or UNSET, more_requested=more or UNSET)
        self._add("assistant", text, metadata)

    def add_result(self, asked: Asked, result: ExecutionResult) -> None:
        """What came of a call."""
        request = asked.request
        requested, asked_in = self._open.get(request.request_id), self._asked_in.get(request.request_id, UNSET)
        if requested is not None:
            requested.result_in = self.count
        self._note_result(asked, result)
        record = ToolCallRecord(
            request_id=request.request_id,
            tool_name=cut_middle(request.tool_name, MAX_VALUE_CHARS),
            status=narrow(result),
            duration_ms=result.duration_ms,
            raw_args=_cut(asked.shown),
            requested_in=asked_in,
        )
        self._add("tool", result.observation, MessageMetadata(tool_call=record))

    def add_unread(self, observation: str) -> None:
        """What the model is told of a block that gave no call."""
        self._add("tool", observation, MessageMetadata())

    def add_stop(self, stop: StepStop, explanation: str) -> None:
        """Why the loop ends here (V50)."""
        self._add("system", explanation, MessageMetadata(stop=stop))

    def note_state(self, call_id: str, state: State) -> None:
        """A call is in a state now."""
        call = self._open.get(call_id)
        if call is not None:
            call.status = _RECORDED[state]
            if not NEXT[state] and call_id in self._results:
                # a task that outlived its round
                self._closed(call_id)

    def _note_result(self, asked: Asked, result: ExecutionResult) -> None:
        call_id = asked.request.request_id
        call = self._open.get(call_id)
        if call is None:
            return
        if result.status not in ("success", "accepted", "inputRequired"):
            call.error = cut_middle(result_text(asked, result), MAX_VALUE_CHARS)
        if NEXT[end_state(result.status)]:
            self._results.add(call_id)
        else:
            self._closed(call_id)

    def _closed(self, call_id: str) -> None:
        self._open.pop(call_id, None)
        self._asked_in.pop(call_id, None)
        self._results.discard(call_id)

    def broke_off(self, call_ids: Sequence[str], cause: str) -> None:
        """A step ended without results, as when the daemon ends: none of its calls stays open (V54)."""
        for call_id in call_ids:
            call = self._open.get(call_id)
            if call is not None:
                call.status, call.error = "completed", f"the step broke off: {cause}"
                self._closed(call_id)
        self.add_stop("cancelled", f"The step broke off: {cause}.")

    def view(self, start: int, limit: int) -> SessionView:
        """The session with at most ``limit`` messages from number ``start`` on."""
        dropped = self.count - len(self.messages)
        start = max(start, dropped)
        chosen: list[SessionMessage] = []
        chars = 0
        for at in range(start - dropped, len(self.messages)):
            chars += self._sizes[at]
            if len(chosen) >= limit or (chosen and chars > _PAGE_CHARS):
                break
            chosen.append(self.messages[at])
        end = start + len(chosen)
        return SessionView(
            session_id=self.session_id,
            state="running" if self.busy else "idle",
            iteration=self.iteration,
            turn_iteration=self.turn_iteration,
            messages=chosen,
            dropped=dropped,
            next_cursor=str(end) if end < self.count else UNSET,
        )

    def _add(self, role: Literal["assistant", "system", "tool"], content: str, metadata: MessageMetadata) -> None:
        message = SessionMessage(
            index=self.count,
            role=role,
            content=cut_middle(content, MAX_CONTENT_CHARS),
            metadata=metadata,
        )
        size = _size(message)
        self.messages.append(message)
        self._sizes.append(size)
        self.count += 1
        self.size += size
        while len(self.messages) > 1 and (len(self.messages) > MAX_MESSAGES or self.size > MAX_SESSION_CHARS):
            self.messages.popleft()
            self.size -= self._sizes.popleft()


async def _acquired(lock: asyncio.Lock, cancelled: asyncio.Event) -> bool:
    if cancelled.is_set():
        return False
    if not lock.locked():
        return await lock.acquire()
    taking = asyncio.ensure_future(lock.acquire())
    stop = asyncio.ensure_future(cancelled.wait())
    try:
        await asyncio.wait({taking, stop}, return_when=asyncio.FIRST_COMPLETED)
        if taking.done() and not cancelled.is_set():
            return True
    finally:
        stop.cancel()
        if not taking.done():
            taking.cancel()
            await asyncio.wait({taking})
    if not taking.cancelled():
        lock.release()
    return False


class Sessions:
    """The sessions of one runtime."""

    def __init__(self, running: RunningCalls, clock: Callable[[], float] = time.monotonic) -> None:
        self._running = running
        self._clock = clock
        self._sessions: dict[str, AgentSession] = {}
        self._steps = 0

    def number(self) -> int:
        """The next step's number, over all sessions: call ids are made of it."""
        self._steps += 1
        return self._steps

    def open(self, session_id: str) -> AgentSession:
        """The session of that id, a new one if there is none; it was used now."""
        now = self._clock()
        session = self._sessions.pop(session_id, None)
        if session is None or (now - session.used > MAX_IDLE_S and not session.busy):
            session = AgentSession(session_id)
        session.used = now
        # the one that was used last stands last
        self._sessions[session_id] = session
        self.trim()
        return session

    def trim(self) -> None:
        """Forgets what is too old or too much, never a session whose step runs."""
        oldest = self._clock() - MAX_IDLE_S
        total = sum(session.size for session in self._sessions.values())
        count = len(self._sessions)
        for session in [*self._sessions.values()][:-1]:
            if count <= MAX_SESSIONS and total <= MAX_ALL_CHARS and session.used >= oldest:
                break
            if not session.busy:
                del self._sessions[session.session_id]
                total -= session.size
                count -= 1

    def view(self, session_id: str, cursor: str | None = None, limit: int | None = None) -> SessionView:
        """A session's messages from ``cursor`` on, oldest first; at most ``MAX_PAGE`` at once."""
        session = self._sessions.get(session_id)
        if session is None:
            return SessionView(
                session_id=session_id, state="none", iteration=0, turn_iteration=0, messages=[], dropped=0
            )
        start = int(cursor) if cursor is not None and cursor.isascii() and cursor.isdigit() and len(cursor) < 12 else 0
        return session.view(start, max(1, min(limit or DEFAULT_PAGE, MAX_PAGE)))

    def end(self, session_id: str) -> list[str] | None:
        """Forgets a session and cancels what runs for it: the ids of its calls; None when there is none."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return None
        return self.cancel(session_id)

    def cancel(self, session_id: str) -> list[str]:
        """Cancels all that runs for a session (V52): the ids of its calls. Each gives its result soon."""
        return self._running.cancel(session_id=session_id)

    def __len__(self) -> int:
        return len(self._sessions)


def _cut(args: dict[str, str]) -> dict[str, str]:
    return {cut_middle(name, MAX_VALUE_CHARS): cut_middle(value, MAX_VALUE_CHARS) for name, value in args.items()}


def _size(message: SessionMessage) -> int:
    """Characters of a message, about: what it says, and the arguments that stand in it."""
    record, requested = message.metadata.tool_call, message.metadata.tool_calls_requested
    held: list[dict[str, str]] = []
    if record is not UNSET and record.raw_args is not UNSET:
        held.append(record.raw_args)
    if requested is not UNSET:
        held.extend(call.args for call in requested)
    return (
        200 + len(message.content) + sum(len(name) + len(value) + 100 for args in held for name, value in args.items())
    )
