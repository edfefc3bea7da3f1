"""The methods of ``tamis rpc``, which an editor's session answers like the daemon does; ``running/tool_methods.py`` serves them.

Their names are written here too, so that they are known without loading what answers them; a test holds them against the daemon's own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tamis.server.lsp.features.execute_command import tool_methods_of
from tamis.server.lsp.verb import Verb

if TYPE_CHECKING:
    from tamis.server.lsp.envelope import MessageId
    from tamis.server.lsp.session import Session

NAMES = (
    *("agent/end", "agent/session", "agent/step"),
    *("approval/list", "approval/revoke"),
    *("observation/format", "parse/close", "parse/feed", "parse/open", "prompt/generate", "prompt/grammar"),
    *("registry/reload", "registry/status", "rpc.discover", "server/health", "server/metrics"),
    *("service/list", "service/register", "service/unregister", "state/get", "state/set", "stream/read"),
    *("task/answer", "task/cancel", "task/get", "task/list", "task/result"),
    *("tool/cancel", "tool/convert", "tool/describe", "tool/execute", "tool/executeText", "tool/explain"),
    *("tool/list", "tool/parse", "tool/repair", "tool/validate"),
    *("workflow/describe", "workflow/graph", "workflow/list", "workflow/run"),
)


async def answer(method: str, session: Session, params: Any, identity: MessageId) -> Any:
    """The result of a tool method."""
    return await tool_methods_of(session).answer(identity, method, params)


def _announced(name: str) -> dict[str, Any]:
    about: dict[str, Any] = {"methods": {name: "stable"}}
    if name == "rpc.discover":
        about["rpc"] = 1
    return {"experimental": {"tamis": about}}


REQUESTS = tuple(
    Verb(
        method=name,
        params=Any,
        handler=partial(answer, name),
        schedule="background",
        capability=_announced(name),
        gets_id=True,
    )
    for name in NAMES
)
