"""The network of a run with allowed hosts: a listening socket made inside, handed out, served by the egress proxy.

A socket belongs to the network namespace that it was made in, so the daemon can accept what the script connects to
without a helper process inside, without a mounted socket, and without a moment in which nobody listens yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence

import msgspec

from tamis.sandbox.job import PROXY_PORT
from tamis.sandbox.model import AddedHeader, Denial, Refusal, RunOutcome, Unavailable
from tamis.sandbox.network.egress import Budgets, Egress

SECONDS = 10.0

# `_socket` and `posix` alone: `socket` would cost as much again as the interpreter's start, `os` a tenth of it
LISTENER = b"""\
import _socket as s, posix, sys
channel = s.socket(fileno=int(sys.argv[1]))
posix.set_inheritable(channel.fileno(), False)
listener = s.socket(s.AF_INET, s.SOCK_STREAM)
listener.bind(("127.0.0.1", 3128))
listener.listen(64)
channel.sendmsg([b"l"], [(s.SOL_SOCKET, s.SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))])
if channel.recv(1) != b"g":
    sys.exit(125)
channel.close()
listener.close()
posix.execv(sys.argv[2], sys.argv[2:])
"""


class Handoff:
    """Both ends of the channel and the proxy behind it, for one run.

    `pins` are (name, address) as the operator gave them, never a manifest. Raises `Refusal` naming a bad rule, range or pin.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        allow_cidrs: Sequence[str] = (),
        pins: Sequence[tuple[str, str]] = (),
        *,
        budgets: Budgets = Budgets(),  # noqa: B008 - frozen
        headers: Sequence[AddedHeader] = (),
    ) -> None:
        try:
            self.egress = Egress(hosts, allow_cidrs, pins=pins, budgets=budgets, headers=headers)
        except ValueError as error:
            raise Refusal(f"the network's rules: {error}", "correct it in allowHosts, allowCidrs or pin") from error
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
        await self.egress.serve(_listener(fds))
        with contextlib.suppress(OSError):
            self._ours.send(b"g")

    async def close(self) -> None:
        """End the proxy and release the channel."""
        self._ours.close()
        self._theirs.close()
        await self.egress.close()


def _listener(fds: Sequence[int]) -> socket.socket:
    """The one socket that was handed out, if it is the proxy's listener; whatever else came is closed."""
    try:
        if len(fds) != 1:
            raise ValueError(f"{len(fds)} descriptors")
        listener = socket.socket(fileno=fds[0])
    except (OSError, ValueError) as error:
        for fd in fds:
            os.close(fd)
        raise Unavailable(f"the sandbox handed out no listener: {error}") from error
    try:
        check_listener(listener)
    except (OSError, ValueError) as error:
        listener.close()
        raise Unavailable(f"the sandbox handed out something else than a listener: {error}") from error
    return listener


def check_listener(listener: socket.socket) -> None:
    """ValueError unless it is the proxy's listening socket. Asked of the kernel: it comes from inside the sandbox."""
    facts = {
        "an IPv4 socket": listener.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET,
        "a TCP socket": listener.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP,
        "listening": bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)),
    }
    for fact, holds in facts.items():
        if not holds:
            raise ValueError(f"it is not {fact}")
    if listener.getsockname() != ("127.0.0.1", PROXY_PORT):
        raise ValueError(f"it is not bound to 127.0.0.1:{PROXY_PORT}")


def with_contacts(outcome: RunOutcome, egress: Egress) -> RunOutcome:
    """The outcome with what the proxy refused and let through; a script that failed after a refusal most likely failed of it."""
    denials = tuple(Denial(target, reason) for target, reason in egress.denials.items())
    if denials and outcome.kind == "error":
        named = ", ".join(denial.target for denial in denials[:5])
        host, _, port = denials[0].target.rpartition(":")
        granted = egress.rules.decide(host, int(port)).allowed
        outcome = msgspec.structs.replace(
            outcome,
            error_type="SecurityError",
            message=f"{outcome.message}, after it was refused {named}: {denials[0].reason}",
            # what is refused for another cause than its name says in its reason what helps
            remedy="" if granted else "allowHosts of the tool and of the policy must both open it",
        )
    return msgspec.structs.replace(
        outcome,
        denied_hosts=tuple(denial.target for denial in denials),
        denials=denials,
        reached_hosts=tuple(egress.reached),
    )
