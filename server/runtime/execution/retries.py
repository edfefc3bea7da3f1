"""How often a call that fails is tried again, and how long to wait before that (seed 002 ``retry_N``, ruling 24).

Must not know what a runner does.
"""

from __future__ import annotations

import asyncio
from traceback import format_exception
from typing import TypeVar

from msgspec import UNSET

from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.results import failure
from tamis.server.runtime.calls.runner import Invocation, Runner
from tamis.server.runtime.calls.timing import unless_cancelled

T = TypeVar("T")

MAX_ATTEMPTS = 101
"""The first and a hundred more: a text may ask for any number."""
FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 5.0


def backoff_s(attempt: int) -> float:
    """Seconds to wait after that failed attempt (the first is 1): 0.1, 0.2, 0.4 and so on, at most 5."""
    return min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16))


async def run_attempts(runner: Runner, call: Invocation, attempts: int) -> None:
    """Runs a call until it does not fail, at most ``attempts`` times; a cancel ends the pauses between them too. ``timeoutMs`` is each attempt's.

    Raises ``Stopped`` when the runner did not start it.
    """
    result = call.result
    last = min(max(1, attempts), MAX_ATTEMPTS)
    for attempt in range(1, last + 1):
        result.attempts = attempt
        try:
            await runner.run(call)
        except Stopped as stop:
            if not stop.started:
                result.attempts -= 1
                raise
            result.status, result.error = stop.status, UNSET if stop.error is None else stop.error
        except Exception as error:
            # a fault in a runner costs the call, never the results of the other calls of its text
            text = f"the handler failed with {type(error).__name__}: {error}"
            result.status, result.error = "error", failure("ServiceError", text, code="handlerFailed")
            call.trail.note("handler.failed", "error", message="".join(format_exception(error, limit=8)))
        if result.status not in ("error", "timeout"):
            return
        if attempt == last:
            if attempts > MAX_ATTEMPTS:
                text = (
                    f"{attempts - 1} further attempts were asked for, and {MAX_ATTEMPTS - 1} are the most that are made"
                )
                result.logs = [*result.logs, f"stderr: [tamis] {text}"]
            return
        pause = backoff_s(attempt)
        call.trail.note("call.retried", attempt=attempt, status=result.status, pauseMs=round(pause * 1000))
        try:
            await unless_cancelled(call.context.cancelled, asyncio.sleep(pause))
        except Stopped as stop:
            result.status, result.error = stop.status, UNSET
            return
