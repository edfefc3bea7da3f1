"""``textDocument/inlayHint`` and ``inlayHint/resolve``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
from lsprotocol import types

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.positions import LineIndex
from tamis.server.analysis.shown.inlay import Hint, HintWish, Part, inlay_hints, token_tooltip
from tamis.server.lsp import convert
from tamis.server.lsp.documents import uri_of
from tamis.server.lsp.shown import prompt_view

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.protocols.jsontext.tree import JsonTree
    from tamis.protocols.positions import PositionEncoding, Span
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

_KINDS = {"type": 1, "parameter": 2}


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verbs."""
    resolved: Any = session.capability("textDocument.inlayHint.resolveSupport.properties")
    later = "tooltip" in cast("list[Any]", resolved) if isinstance(resolved, list) else False

    def inlay_hint(params: types.InlayHintParams) -> msgspec.Raw | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or document.kind == "other":
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
        hints = [
            _plain(document, hint, manifests, "" if later else _tooltip(session, snapshot, hint))
            for hint in inlay_hints(snapshot, convert.to_span(document, params.range), wish)
        ]
        return msgspec.Raw(msgspec.json.encode(hints))

    def resolve(hint: types.InlayHint) -> types.InlayHint:
        data: Any = hint.data
        given = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        document = session.documents.get(str(given.get("uri")))
        if document is not None and given.get("tooltip") == "tokens":
            snapshot = session.workspace.snapshot(document, wait=0.5)
            text = token_tooltip(snapshot, prompt_view(session, snapshot))
            hint.tooltip = types.MarkupContent(types.MarkupKind.Markdown, text) if text else None
        return hint

    server.feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions(resolve_provider=later))(inlay_hint)
    server.feature(types.INLAY_HINT_RESOLVE)(resolve)


def _results(session: Session, document: Document, snapshot: Snapshot) -> dict[Span, str]:
    """What the last runs of the document's calls and examples gave."""
    runs = session.runs
    if not runs.has(document.uri):
        return {}
    from tamis.server.analysis.running.runnables import targets
    from tamis.server.lsp.running.runs import in_short

    spans = [target.span for target in targets(snapshot)]
    found = runs.results(document.uri, document.text, spans)
    return {span: in_short(run).title for span, run in found.items()}


def _tooltip(session: Session, snapshot: Snapshot, hint: Hint) -> str:
    return token_tooltip(snapshot, prompt_view(session, snapshot)) if hint.later == "tokens" else ""


def _plain(document: Document, hint: Hint, manifests: _Manifests, tooltip: str) -> dict[str, Any]:
    made: dict[str, Any] = {"position": msgspec.to_builtins(document.range((hint.offset, hint.offset)).start)}
    made["label"] = [_part(part, manifests) for part in hint.parts]
    if hint.kind:
        made["kind"] = _KINDS[hint.kind]
    tooltip = hint.tooltip or tooltip
    if tooltip:
        made["tooltip"] = {"kind": "markdown", "value": tooltip}
    if hint.left:
        made["paddingLeft"] = True
    if hint.right:
        made["paddingRight"] = True
    if hint.later:
        made["data"] = {"uri": document.uri, "tooltip": hint.later}
    return made


def _part(part: Part, manifests: _Manifests) -> dict[str, Any]:
    made: dict[str, Any] = {"value": part.text}
    if part.tooltip:
        made["tooltip"] = {"kind": "markdown", "value": part.tooltip}
    if part.path:
        location = manifests.location(part.path, part.pointer)
        if location is not None:
            made["location"] = location
    return made


class _Manifests:
    """Where keys stand in the manifests of a document's folder; each manifest is read once for an answer."""

    def __init__(self, session: Session, document: Document) -> None:
        root = session.workspace.root_of(document.path)
        self._texts: Mapping[str, str] = root.texts if root is not None else {}
        self._encoding: PositionEncoding = document.encoding
        self._read: dict[str, tuple[JsonTree, LineIndex]] = {}

    def location(self, path: str, pointer: str) -> dict[str, Any] | None:
        """The key that a JSON Pointer leads to, as a location."""
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
