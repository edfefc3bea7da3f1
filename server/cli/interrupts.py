"""Ctrl-C during a run: the running tool is cancelled and said, instead of leaving anything behind."""

from __future__ import annotations

import asyncio
import signal


def cancel_on_interrupt() -> asyncio.Event:
    """An event that SIGINT and SIGTERM set; a second one ends the command."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()

    def cancel(number: signal.Signals) -> None:
        if event.is_set():
            loop.remove_signal_handler(number)
        event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel, number)
    return event
