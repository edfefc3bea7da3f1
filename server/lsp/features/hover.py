"""``textDocument/hover``, as Markdown or as plain text, whichever the client shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.server.analysis.kinds import KINDS
from tamis.server.lsp.client_settings import prompt_view
from tamis.server.lsp.convert import markup
from tamis.server.lsp.diagnostics import speaks
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.protocols.contract import Permissions
    from tamis.server.analysis.answers import HoverText
    from tamis.server.analysis.hover.tools import HoverFacts
    from tamis.server.analysis.snapshot import Snapshot, ToolView
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

MAX_RESULT_CHARS = 20_000


def hover(session: Session, params: types.HoverParams) -> dict[str, Any] | None:
    """What is known of what stands at a position."""
    from tamis.server.analysis.hover.explain import explain

    document = session.documents.get(params.text_document.uri)
    if document is None or not speaks(document):
        return None
    offset = offset_of(document, params.position)
    snapshot = session.workspace.snapshot(document, wait=0.5)
    hover = explain(snapshot, offset, facts_of(session, document, snapshot))
    if session.has_runs(document.uri):
        hover = _with_result(session, document, snapshot, offset, hover)
    if hover is None:
        return None
    formats = session.capability("textDocument.hover.contentFormat")
    return {"contents": markup(hover.markdown, formats), "range": msgspec.to_builtins(document.range(hover.span))}


def _with_result(
    session: Session, document: Document, snapshot: Snapshot, offset: int, hover: HoverText | None
) -> HoverText | None:
    """What the last run of a call or example gave, behind what is known of its tool or marker; nothing at its arguments."""
    from tamis.protocols.observation import cut_middle, plain
    from tamis.server.analysis.answers import HoverText
    from tamis.server.analysis.embedded import block_at, calls_at, param_at
    from tamis.server.analysis.hover.tools import fenced
    from tamis.server.analysis.running.runnables import targets

    block = block_at(snapshot.document.blocks, offset) if KINDS[snapshot.kind].holds_calls else None
    if block is not None and any(param_at(call, offset) is not None for call in calls_at(block, offset)):
        return hover
    spans = [target.span for target in targets(snapshot) if target.span[0] <= offset <= target.span[1]]
    runs = session.runs.results(document.uri, document.text, [target.span for target in targets(snapshot)])
    here = min((span for span in spans if span in runs), key=lambda span: span[1] - span[0], default=None)
    if here is None:
        return hover
    run = runs[here]
    seen = fenced(cut_middle(plain(run.observation), MAX_RESULT_CHARS))
    text = f"**Last run**: {plain(run.outcome.partition(chr(10))[0])}\n\n{seen}"
    if hover is None:
        return HoverText(here, text)
    return msgspec.structs.replace(hover, markdown=f"{hover.markdown}\n\n---\n\n{text}")


def facts_of(session: Session, document: Document, snapshot: Snapshot) -> HoverFacts:
    """What a hover needs to know beside the snapshot."""
    from tamis.server.analysis.hover.tools import HoverFacts

    root = session.workspace.root_of(document.path)

    def rights(tool: ToolView) -> Permissions | None:
        from tamis.server.runtime.policy.permissions import permissions_of
        from tamis.server.runtime.tools.registry import Registry, Tool

        config, registry = snapshot.settings.config, snapshot.registry
        if config is None or root is None or not isinstance(tool, Tool) or not isinstance(registry, Registry):
            return None
        return permissions_of(tool, registry, config, Path(root.path))

    return HoverFacts(prompt_view(session, snapshot), rights)


REQUESTS = (
    Verb(
        method="textDocument/hover",
        params="HoverParams",
        handler=hover,
        schedule="snapshot",
        capability={"hoverProvider": True},
    ),
)
