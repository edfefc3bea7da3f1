"""The registry and the daemon's own state (``registry/reload``, ``server/health``). Holds no rules of its own."""

from __future__ import annotations

from typing import Any

from tamis.server.rpc.params import Group, Host, Params
from tamis.server.rpc.session import Request
from tamis.server.runtime.health import health


class Empty(Params):
    """Params of methods that take none."""


def methods(host: Host) -> Group:
    """The methods of this group."""

    def reload(_request: Request, _params: Empty) -> dict[str, Any]:
        runtime = host.runtime
        before = {(tool.tool_id, tool.manifest.version): tool.manifest.raw for tool in runtime.registry.tools}
        registry = runtime.reload()
        after = {(tool.tool_id, tool.manifest.version): tool.manifest.raw for tool in registry.tools}
        return {
            "added": sorted("@".join(key) for key in after.keys() - before.keys()),
            "removed": sorted("@".join(key) for key in before.keys() - after.keys()),
            "updated": sorted("@".join(key) for key in after.keys() & before.keys() if after[key] != before[key]),
            "errors": registry.errors,
            "conflicts": registry.conflicts,
            "etag": registry.etag(),
        }

    def state(_request: Request, _params: Empty) -> dict[str, Any]:
        return health(host.runtime)

    return {"registry/reload": (Empty, reload), "server/health": (Empty, state)}
