"""The network of a run with allowed hosts: a listening socket made inside, handed out, served by the egress proxy.

A socket belongs to the network namespace that it was made in, so the daemon can accept what the script connects to
without a helper process inside, without a mounted socket, and without a moment in which nobody listens yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

from tamis.sandbox.egress import Egress
from tamis.sandbox.model import Refusal, Unavailable

SECONDS = 10.0

# `_socket` alone: the `socket` module would cost as much again as the interpreter's start
LISTENER = b"""\
import _socket as s, os, sys
channel = s.socket(fileno=int(sys.argv[1]))
os.set_inheritable(channel.fileno(), False)
listener = s.socket(s.AF_INET, s.SOCK_STREAM)
listener.bind(("127.0.0.1", 3128))
listener.listen(64)
channel.sendmsg([b"l"], [(s.SOL_SOCKET, s.SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))])
if channel.recv(1) != b"g":
    sys.exit(125)
channel.close()
listener.close()
os.execv(sys.argv[2], sys.argv[2:])
"""


class Handoff:
    """Both ends of the channel and the proxy behind it, for one run."""

    def __init__(self, hosts: tuple[str, ...], allow_cidrs: tuple[str, ...]) -> None:
        try:
            self.egress = Egress(hosts, allow_cidrs)
        except ValueError as error:
            raise Refusal(f"allowHosts: {error}", "correct the rule") from error
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)

    @property
    def inside(self) -> int:
        """The descriptor that the sandbox inherits."""
        return self._theirs.fileno()

    async def serve(self) -> None:
        """Take the listener and serve it. Raises `Unavailable` when it is not what it should be."""
        self._theirs.close()  # so that the end of the sandbox is seen as the end of the channel
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._ours.fileno(), ready.set)
        try:
            async with asyncio.timeout(SECONDS):
                await ready.wait()
        except TimeoutError:
            raise Unavailable("the proxy's listener did not come out of the sandbox") from None
        finally:
            loop.remove_reader(self._ours.fileno())
        data, fds, _, _ = socket.recv_fds(self._ours, 1, 1)
        if not data:
            return  # the sandbox ended before: its own end says why
        if len(fds) != 1:
            raise Unavailable("the sandbox handed out no listener")
        listener = socket.socket(fileno=fds[0])
        try:
            await self.egress.serve(listener)
        except ValueError as error:
            listener.close()
            raise Unavailable(f"the sandbox handed out something else than a listener: {error}") from error
        with contextlib.suppress(OSError):
            self._ours.send(b"g")

    async def close(self) -> None:
        """End the proxy and release the channel."""
        self._ours.close()
        self._theirs.close()
        await self.egress.close()
