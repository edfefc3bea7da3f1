"""The names of the tool methods, which an editor's session answers like ``tamis rpc`` does: known without loading what answers them.

A test holds them against the daemon's own.
"""

from __future__ import annotations

NAMES = (
    *("agent/end", "agent/session", "agent/step"),
    *("approval/list", "approval/revoke"),
    *("observation/format", "parse/close", "parse/feed", "parse/open", "prompt/generate", "prompt/grammar"),
    *("registry/reload", "registry/status", "rpc.discover", "server/health", "server/metrics"),
    *("service/list", "service/register", "service/unregister", "state/get", "state/set", "stream/read"),
    *("task/cancel", "task/get", "task/list", "task/result"),
    *("tool/cancel", "tool/convert", "tool/describe", "tool/execute", "tool/executeText", "tool/explain"),
    *("tool/list", "tool/parse", "tool/repair", "tool/validate"),
    *("workflow/describe", "workflow/graph", "workflow/list", "workflow/run"),
)
_KNOWN = frozenset(NAMES)


def is_tool_method(method: str) -> bool:
    """Whether a method is one of ``tamis rpc``."""
    return method in _KNOWN
