"""The registry and the daemon's own state (``registry/reload``, ``registry/status``, ``server/health``). Holds no rules of its own."""

from __future__ import annotations

import msgspec

from tamis.protocols.contract import Health, RegistryChanges
from tamis.server.rpc.aside import aside
from tamis.server.rpc.params import Empty, Group, Host
from tamis.server.rpc.session import Request
from tamis.server.runtime.health import health


def methods(host: Host) -> Group:
    """The methods of this group."""

    async def reload(_request: Request, _params: Empty) -> RegistryChanges:
        """Reads settings, tools, workflows and the agent profile again, and says what changed since the last reload."""
        runtime = host.runtime
        # What was there before counts, also where nobody asked for it yet.
        assert runtime.registry is not None
        runtime.take(await aside(runtime.read_again))
        return runtime.changes_since_reload(reset=True)

    def status(_request: Request, _params: Empty) -> RegistryChanges:
        """Says what is wrong with definitions, and what changed since the last reload; reads nothing."""
        return host.runtime.changes_since_reload()

    def state(_request: Request, _params: Empty) -> Health:
        """Says how the daemon is: versions, the sandbox, what runs, what is wrong."""
        return msgspec.convert(health(host.runtime), Health)

    return {"registry/reload": (Empty, reload), "registry/status": (Empty, status), "server/health": (Empty, state)}
