"""``textDocument/inlayHint`` and ``inlayHint/resolve``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tamis.server.analysis.kinds import serves
from tamis.server.lsp import convert
from tamis.server.lsp.client_settings import prompt_view
from tamis.server.lsp.documents import uri_of
from tamis.server.lsp.verb import Verb

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.protocols.jsontext.tree import JsonTree
    from tamis.protocols.positions import LineIndex, PositionEncoding, Span
    from tamis.server.analysis.shown.inlay import Hint, Part
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

_KINDS = {"type": 1, "parameter": 2}


def inlay_hint(session: Session, params: types.InlayHintParams) -> msgspec.Raw | None:
    """What stands beside the text in a range."""
    from tamis.server.analysis.shown.inlay import HintWish, inlay_hints

    document = session.documents.get(params.text_document.uri)
    if document is None or not serves(document.kind, "hints"):
        return None
    snapshot = session.workspace.snapshot(document, wait=0.5)
    switch = session.workspace.client.switch
    wish = HintWish(
        view=prompt_view(session, snapshot),
        tokens=switch("inlayHints.tokens"),
        parameters=switch("inlayHints.parameters"),
        results=_results(session, document, snapshot) if switch("inlayHints.results") else {},
    )
    manifests = _Manifests(session, document)
    later = _resolves(session)
    hints = [
        _plain(document, hint, manifests, "" if later else _tooltip(session, snapshot, hint))
        for hint in inlay_hints(snapshot, convert.to_span(document, params.range), wish)
    ]
    return msgspec.Raw(msgspec.json.encode(hints))


def resolve(session: Session, hint: types.InlayHint) -> types.InlayHint:
    """A hint with its tooltip."""
    from tamis.server.analysis.shown.inlay import token_tooltip

    data: Any = hint.data
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    document = session.documents.get(str(fields.get("uri")))
    if document is not None and fields.get("tooltip") == "tokens":
        snapshot = session.workspace.snapshot(document, wait=0.5)
        text = token_tooltip(snapshot, prompt_view(session, snapshot))
        hint.tooltip = cast("Any", {"kind": "markdown", "value": text}) if text else None
    return hint


def _resolves(session: Session) -> bool:
    """Whether this client asks for tooltips when it shows them."""
    resolved: Any = session.capability("textDocument.inlayHint.resolveSupport.properties")
    return isinstance(resolved, list) and "tooltip" in cast("list[Any]", resolved)


def _results(session: Session, document: Document, snapshot: Snapshot) -> dict[Span, str]:
    """What the last runs of the document's calls and examples gave."""
    runs = session.runs
    if not runs.has(document.uri):
        return {}
    from tamis.server.analysis.running.runnables import targets
    from tamis.server.lsp.running.runs import in_short

    spans = [target.span for target in targets(snapshot)]
    by_span = runs.results(document.uri, document.text, spans)
    return {span: in_short(run).title for span, run in by_span.items()}


def _tooltip(session: Session, snapshot: Snapshot, hint: Hint) -> str:
    from tamis.server.analysis.shown.inlay import token_tooltip

    return token_tooltip(snapshot, prompt_view(session, snapshot)) if hint.later == "tokens" else ""


def _plain(document: Document, hint: Hint, manifests: _Manifests, tooltip: str) -> dict[str, Any]:
    members: dict[str, Any] = {"position": msgspec.to_builtins(document.range((hint.offset, hint.offset)).start)}
    members["label"] = [_part(part, manifests) for part in hint.parts]
    if hint.kind:
        members["kind"] = _KINDS[hint.kind]
    tooltip = hint.tooltip or tooltip
    if tooltip:
        members["tooltip"] = {"kind": "markdown", "value": tooltip}
    if hint.left:
        members["paddingLeft"] = True
    if hint.right:
        members["paddingRight"] = True
    if hint.later:
        members["data"] = {"uri": document.uri, "tooltip": hint.later}
    return members


def _part(part: Part, manifests: _Manifests) -> dict[str, Any]:
    members: dict[str, Any] = {"value": part.text}
    if part.tooltip:
        members["tooltip"] = {"kind": "markdown", "value": part.tooltip}
    if part.path:
        location = manifests.location(part.path, part.pointer)
        if location is not None:
            members["location"] = location
    return members


class _Manifests:
    """Where keys stand in the manifests of a document's folder; each manifest is read once for an answer."""

    def __init__(self, session: Session, document: Document) -> None:
        root = session.workspace.root_of(document.path)
        self._texts: Mapping[str, str] = root.texts if root is not None else {}
        self._encoding: PositionEncoding = document.encoding
        self._read: dict[str, tuple[JsonTree, LineIndex]] = {}

    def location(self, path: str, pointer: str) -> dict[str, Any] | None:
        """The key that a JSON Pointer leads to, as a location."""
        from tamis.protocols.jsontext.parse import parse_json
        from tamis.protocols.positions import LineIndex

        if path not in self._texts:
            return None
        if path not in self._read:
            text = self._texts[path]
            self._read[path] = (parse_json(text), LineIndex(text))
        tree, lines = self._read[path]
        span = tree.key_span(pointer)
        if span is None:
            return None
        start, end = (lines.position(offset, self._encoding) for offset in span)
        return {
            "uri": uri_of(path),
            "range": {
                "start": {"line": start[0], "character": start[1]},
                "end": {"line": end[0], "character": end[1]},
            },
        }


REQUESTS = (
    Verb(
        method="textDocument/inlayHint",
        params="InlayHintParams",
        handler=inlay_hint,
        schedule="snapshot",
        capability=lambda session: {"inlayHintProvider": {"resolveProvider": _resolves(session)}},
    ),
    Verb(method="inlayHint/resolve", params="InlayHint", handler=resolve, schedule="snapshot"),
)
