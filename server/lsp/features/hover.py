"""``textDocument/hover``, as Markdown or as plain text, whichever the client shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types

from tamis.server.analysis.hover.explain import explain
from tamis.server.analysis.hover.tools import HoverFacts
from tamis.server.lsp.diagnostics import speaks
from tamis.server.lsp.shown import markup, prompt_view

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.protocols.contract import Permissions
    from tamis.server.analysis.snapshot import Snapshot, ToolView
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""
    formats = session.capability("textDocument.hover.contentFormat")

    def hover(params: types.HoverParams) -> dict[str, Any] | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or not speaks(document):
            return None
        place = params.position
        offset = document.lines.offset(place.line, place.character, document.encoding)
        snapshot = session.workspace.snapshot(document, wait=0.5)
        found = explain(snapshot, offset, facts_of(session, document, snapshot))
        if found is None:
            return None
        return {"contents": markup(found.markdown, formats), "range": msgspec.to_builtins(document.range(found.span))}

    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)


def facts_of(session: Session, document: Document, snapshot: Snapshot) -> HoverFacts:
    """What a hover needs to know beside the snapshot."""
    root = session.workspace.root_of(document.path)

    def rights(tool: ToolView) -> Permissions | None:
        from tamis.server.runtime.registry.registry import Registry, Tool
        from tamis.server.runtime.rights.preview import permissions_of

        config, registry = snapshot.settings.config, snapshot.registry
        if config is None or root is None or not isinstance(tool, Tool) or not isinstance(registry, Registry):
            return None
        return permissions_of(tool, registry, config, Path(root.path))

    return HoverFacts(prompt_view(session, snapshot), rights)
