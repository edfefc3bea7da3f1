"""Texts for a model's prompt (``prompt/generate``, ``prompt/grammar``, ``observation/format``). A thin face; holds no rules of its own."""

from __future__ import annotations

from tamis.server.rpc.params import Group, Host


def methods(host: Host) -> Group:
    """The methods of this group."""
    del host
    return {}
