"""The one table of the language server: every verb by its method, and what the server announces of them.

Both lanes look here. A new verb is a module of ``features/`` with its ``REQUESTS`` or ``NOTIFICATIONS``, and a line in ``_MODULES``. Must not
hold rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tamis.server.lsp.features import (
    call_hierarchy,
    code_action,
    code_lens,
    completion,
    definition,
    document_sync,
    execute_command,
    folding_range,
    formatting,
    hover,
    inlay_hint,
    lifecycle,
    linked_editing,
    links,
    pull_diagnostics,
    references,
    rename,
    selection_range,
    semantic_tokens,
    signature_help,
    symbols,
    tool_methods,
    watched_files,
)

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.verb import Verb

_ASKING = (
    call_hierarchy,
    code_action,
    code_lens,
    completion,
    definition,
    execute_command,
    folding_range,
    formatting,
    hover,
    inlay_hint,
    lifecycle,
    linked_editing,
    links,
    pull_diagnostics,
    references,
    rename,
    selection_range,
    semantic_tokens,
    signature_help,
    symbols,
    tool_methods,
)
_TELLING = (document_sync, execute_command, lifecycle, watched_files)

REQUESTS: dict[str, Verb] = {verb.method: verb for module in _ASKING for verb in module.REQUESTS}
NOTIFICATIONS: dict[str, Verb] = {verb.method: verb for module in _TELLING for verb in module.NOTIFICATIONS}
"""All but ``exit`` and ``$/cancelRequest``, which are about other messages and not about documents (``session.py``)."""


def server_capabilities(session: Session) -> dict[str, Any]:
    """``ServerCapabilities`` for this client: what the verbs announce, put together."""
    announced: dict[str, Any] = {"positionEncoding": session.encoding}
    for verb in (*REQUESTS.values(), *NOTIFICATIONS.values()):
        part = verb.capability
        if part is not None:
            _add(announced, part(session) if callable(part) else part)
    return announced


def _add(whole: dict[str, Any], part: dict[str, Any]) -> None:
    for name, value in part.items():
        known = whole.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            _add(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        else:
            assert known is None, f"'{name}' is announced twice"
            whole[name] = _copy(value)


def _copy(value: Any) -> Any:
    """Objects are copied, so that adding to one does not change a verb."""
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in cast("dict[str, Any]", value).items()}
    return value
