"""``textDocument/documentLink`` and ``documentLink/resolve``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tamis.server.lsp.documents import uri_of
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.analysis.navigation.links import Link
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session


def document_link(session: Session, params: types.DocumentLinkParams) -> list[dict[str, Any]]:
    """What in a document leads to a file or a page."""
    from tamis.server.analysis.navigation.links import links_of

    opened = asked(session, params.text_document.uri)
    if opened is None:
        return []
    _document, snapshot = opened
    places = Elsewhere(session, snapshot)
    tooltips = session.can("textDocument.documentLink.tooltipSupport")
    document_link: list[dict[str, Any]] = []
    for link in links_of(snapshot):
        target = _target(session, places, snapshot, link)
        if target:
            tooltip = {"tooltip": link.tooltip} if tooltips else {}
            document_link.append({"range": places.range(snapshot.path, link.span), "target": target, **tooltip})
    return document_link


def resolve(_session: Session, link: types.DocumentLink) -> types.DocumentLink:
    """Every link has its target at once: a client that resolves all the same gets it back."""
    return link


def _target(session: Session, places: Elsewhere, snapshot: Snapshot, link: Link) -> str:
    if link.uri:
        return link.uri
    if link.resource:
        path = _resource(session, snapshot, link.resource)
        return uri_of(path) if path else ""
    if not link.sure and not _is_file(session, snapshot, link.path):
        return ""
    uri = places.uri(link.path)
    if link.target is None or link.target == (0, 0):
        return uri
    start = places.range(link.path, link.target)["start"]
    return f"{uri}#{start['line'] + 1},{start['character'] + 1}"


def _is_file(session: Session, snapshot: Snapshot, path: str) -> bool:
    """Whether a file is there, of one in the open folder: what a document names elsewhere is not looked for."""
    from tamis.server.runtime.settings.files import stays_inside

    root = session.workspace.root_of(snapshot.path)
    top = root.path if root is not None and root.contains(snapshot.path) else os.path.dirname(snapshot.path)
    return stays_inside(os.path.relpath(path, top), os.path.realpath(top)) and os.path.isfile(path)


def _resource(session: Session, snapshot: Snapshot, uri: str) -> str:
    """The file of a ``fam://`` URI; empty where the operator's settings lead to none."""
    from tamis.server.runtime.policy.resources import ResourceError, resolve_resource

    root = session.workspace.root_of(snapshot.path)
    if root is None or root.settings is None:
        return ""
    loaded = root.settings
    try:
        path = resolve_resource(uri, loaded.settings.resources, loaded.root)
    except (ResourceError, OSError, ValueError):
        return ""
    return path if os.path.isfile(path) else ""


REQUESTS = (
    Verb(
        method="textDocument/documentLink",
        params="DocumentLinkParams",
        handler=document_link,
        schedule="snapshot",
        capability={"documentLinkProvider": {"resolveProvider": True}},
    ),
    Verb(method="documentLink/resolve", params="DocumentLink", handler=resolve, schedule="snapshot"),
)
