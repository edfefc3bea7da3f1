"""How long calls of asynchronous tools may run: ``tasks.wallMs`` stands where ``sandbox.wallMs`` does for others. Must not know what a task is."""

from __future__ import annotations

import msgspec

from tamis.server.runtime.calls.model import Surroundings


def for_tasks(around: Surroundings) -> Surroundings:
    """What a call of an asynchronous tool runs under, whether it is waited for or not."""
    settings = around.settings
    sandbox = msgspec.structs.replace(settings.sandbox, wall_ms=settings.tasks.wall_ms)
    return msgspec.structs.replace(around, settings=msgspec.structs.replace(settings, sandbox=sandbox))
