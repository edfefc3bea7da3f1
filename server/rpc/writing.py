"""Writing calls in another form (``tool/convert``). A thin face; holds no rules of its own."""

from __future__ import annotations

from tamis.server.rpc.params import Group, Host


def methods(host: Host) -> Group:
    """The methods of this group."""
    del host
    return {}
