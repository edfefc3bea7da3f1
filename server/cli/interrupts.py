"""The end of commands that run tools: Ctrl-C cancels the running tool, and nothing that is left behind keeps the process alive."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine
from typing import Any

from tamis.server.cli.outputs import flush

_received: list[signal.Signals] = []
"""The signals that ended the command of this process."""
END_SECONDS = 5.0
"""How long what is still at work may take to end behind a command."""


def run_to_end(work: Coroutine[Any, Any, int], seconds: float = END_SECONDS) -> int:
    """``asyncio.run`` for an exit code, which is 128 and the signal's number where a signal ended the work: 130 after Ctrl-C. What a handler of an installed package leaves behind, a task that does not let itself be
    cancelled or a thread that never ends, is waited for so long; then the process ends with the code all the same."""
    timers: list[threading.Timer] = []
    _received.clear()  # of an earlier command in this process

    async def work_and_watch() -> int:
        code = await work
        code = ended_by_signal() or code
        timer = threading.Timer(seconds, _leave, (code,))
        timer.daemon = True
        timer.start()
        timers.append(timer)
        return code

    try:
        return asyncio.run(work_and_watch())
    finally:
        for timer in timers:
            timer.cancel()


def ended_by_signal() -> int:
    """The exit code of a command that a signal ended; 0 where none came."""
    return 128 + _received[0] if _received else 0


def _leave(code: int) -> None:
    try:
        flush()
    finally:
        os._exit(code)


def cancel_on_interrupt() -> asyncio.Event:
    """An event that SIGINT and SIGTERM set; a second one ends the command."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()

    def cancel(number: signal.Signals) -> None:
        if event.is_set():
            loop.remove_signal_handler(number)
        _received.append(number)
        event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel, number)
    return event
