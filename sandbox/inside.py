"""A fixed program of the daemon's own choice, run to its end in a sandbox with nothing granted: the try of a backend, and
questions to the operator's programs (`questions`)."""

from __future__ import annotations

import asyncio
import os

from tamis.sandbox import engine, host, uids
from tamis.sandbox.apart import apart
from tamis.sandbox.backends import seccomp
from tamis.sandbox.backends.choice import Backend
from tamis.sandbox.job import Binary, Job
from tamis.sandbox.model import Interpreter, Limits
from tamis.sandbox.paths import grants
from tamis.sandbox.paths.walk import open_absolute


def run_inside(
    backend: Backend, binary: Binary, machine: str, program: Interpreter, command: tuple[str, ...], limits: Limits
) -> engine.Ended:
    """Run `command` with no network and only a sandbox's own variables. `/tool` is the machine's `/usr`, so that no folder is made:
    there may be no place for one.

    `program` says what is shown of the host for it. Raises `Unavailable` when the sandbox did not come up.
    """
    reserved: uids.Reserved | None = None
    try:
        # one of its own: processes are counted by uid, and many daemons may look at once
        reserved = uids.reserve() if os.geteuid() == 0 else None
        opening = grants.Opening()
        opening.add("tool", open_absolute("/usr"), "/tool", writable=False)
        job = Job(
            binary=binary,
            layout=host.root_layout(),
            interpreter=program,
            script="",
            limits=limits,
            grants=tuple(opening.grants),
            uid=reserved.uid if reserved is not None else None,
            setpriv=host.find_setpriv() if reserved is not None else "",
            program=command,
            machine=machine,
        )

        async def once() -> engine.Ended:
            opened = {name: item.fd for name, item in opening.opened.items()}
            filter_bytes = seccomp.filter_bytes(machine)
            return await engine.execute(
                backend.build(job), opened=opened, stdin=b"", limits=limits, seccomp=filter_bytes
            )

        try:
            # the caller may have a loop running
            return apart("tamis-sandbox-probe", lambda: asyncio.run(once()))
        finally:
            opening.close()
    finally:
        if reserved is not None:
            reserved.close()
