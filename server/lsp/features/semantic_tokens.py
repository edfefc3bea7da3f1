"""``textDocument/semanticTokens``: full, the difference to what was sent before, and a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from tamis.server.analysis.kinds import serves
from tamis.server.lsp import convert
from tamis.server.lsp.verb import Verb

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.protocols.positions import Span
    from tamis.server.analysis.shown.block_tokens import TokenCache
    from tamis.server.lsp.session import Session


class Sent:
    """What a session's client can take, and what it was sent of each document."""

    def __init__(self, session: Session) -> None:
        from tamis.server.lsp.token_data import legend_for

        self._session = session
        client = _client(session)
        self._legend = legend_for(client)
        self._multiline = client.get("multilineTokenSupport") is True
        self._whole = client.get("augmentsSyntaxTokens") is False
        self._caches: dict[str, TokenCache] = {}
        self._sent: dict[str, tuple[str, list[int]]] = {}
        self._count = 0

    def data(self, uri: str, wanted: types.Range | None = None) -> list[int]:
        """The tokens of a document, or of a range of it; none of one that is not open."""
        from tamis.server.analysis.shown.block_tokens import TokenCache, semantic_tokens
        from tamis.server.lsp.token_data import encode

        session = self._session
        document = session.documents.get(uri)
        for gone in self._caches.keys() - session.documents.keys():
            self._caches.pop(gone, None)
            self._sent.pop(gone, None)
        if document is None or not serves(document.kind, "tokens"):
            return []
        snapshot = session.workspace.snapshot(document, wait=0.5)
        span: Span | None = convert.to_span(document, wanted) if wanted is not None else None
        cache = self._caches.setdefault(uri, TokenCache())
        tokens = semantic_tokens(snapshot, span, whole=self._whole, cache=cache)
        begin = (0, 0)
        if tokens and span is not None:
            line = document.lines.position(min(tokens[0][0], span[0]))[0]
            begin = (line, document.lines.line_span(line)[0])
        return encode(document.text, tokens, self._legend, document.encoding, multiline=self._multiline, begin=begin)

    def before(self, uri: str, result_id: str) -> list[int] | None:
        """What was sent last of a document, if it is known by this id."""
        known = self._sent.get(uri)
        return known[1] if known is not None and known[0] == result_id else None

    def remember(self, uri: str, data: list[int]) -> str:
        """The id of what is sent now."""
        self._count += 1
        self._sent[uri] = (str(self._count), data)
        return str(self._count)


def full(session: Session, params: types.SemanticTokensParams) -> msgspec.Raw:
    """The tokens of a document."""
    sent, uri = session.state(Sent), params.text_document.uri
    data = sent.data(uri)
    return _raw({"resultId": sent.remember(uri, data), "data": data})


def full_delta(session: Session, params: types.SemanticTokensDeltaParams) -> msgspec.Raw:
    """The difference to what was sent before, or all where that is not known any more."""
    from tamis.server.lsp.token_data import delta

    sent, uri = session.state(Sent), params.text_document.uri
    data = sent.data(uri)
    before = sent.before(uri, params.previous_result_id)
    result_id = sent.remember(uri, data)
    if before is None:
        return _raw({"resultId": result_id, "data": data})
    return _raw({"resultId": result_id, "edits": delta(before, data)})


def of_range(session: Session, params: types.SemanticTokensRangeParams) -> msgspec.Raw:
    """The tokens of a range."""
    return _raw({"data": session.state(Sent).data(params.text_document.uri, params.range)})


def _client(session: Session) -> dict[str, Any]:
    declared: Any = session.capability("textDocument.semanticTokens")
    return cast("dict[str, Any]", declared) if isinstance(declared, dict) else {}


def _raw(answer: dict[str, Any]) -> msgspec.Raw:
    # A hundred thousand numbers are encoded once and never looked at by the framework's converter.
    return msgspec.Raw(msgspec.json.encode(answer))


def _capability(session: Session) -> dict[str, Any]:
    if not isinstance(session.capability("textDocument.semanticTokens"), dict):
        return {}
    from tamis.server.lsp.token_data import legend_for

    legend = legend_for(_client(session))
    if not legend.kinds:
        return {}
    names = {"tokenTypes": list(legend.kinds), "tokenModifiers": list(legend.modifiers)}
    return {"semanticTokensProvider": {"legend": names, "full": {"delta": True}, "range": True}}


REQUESTS = (
    Verb(
        method="textDocument/semanticTokens/full",
        params="SemanticTokensParams",
        handler=full,
        schedule="snapshot",
        capability=_capability,
    ),
    Verb(
        method="textDocument/semanticTokens/full/delta",
        params="SemanticTokensDeltaParams",
        handler=full_delta,
        schedule="snapshot",
    ),
    Verb(
        method="textDocument/semanticTokens/range",
        params="SemanticTokensRangeParams",
        handler=of_range,
        schedule="snapshot",
    ),
)
