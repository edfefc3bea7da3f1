"""``textDocument/semanticTokens``: full, the difference to what was sent before, and a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
from lsprotocol import types

from tamis.server.analysis.shown.semantic_tokens import TokenCache, semantic_tokens
from tamis.server.lsp import convert
from tamis.server.lsp.token_data import delta, encode, legend_for

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.protocols.positions import Span
    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""
    declared: Any = session.capability("textDocument.semanticTokens")
    client = cast("dict[str, Any]", declared) if isinstance(declared, dict) else {}
    legend = legend_for(client)
    multiline = client.get("multilineTokenSupport") is True
    whole = client.get("augmentsSyntaxTokens") is False
    caches: dict[str, TokenCache] = {}
    sent: dict[str, tuple[str, list[int]]] = {}
    count = 0

    def data_of(uri: str, wanted: types.Range | None = None) -> list[int]:
        document = session.documents.get(uri)
        for gone in caches.keys() - session.documents.keys():
            caches.pop(gone, None)
            sent.pop(gone, None)
        if document is None or document.kind == "other":
            return []
        snapshot = session.workspace.snapshot(document, wait=0.5)
        span: Span | None = convert.to_span(document, wanted) if wanted is not None else None
        tokens = semantic_tokens(snapshot, span, whole=whole, cache=caches.setdefault(uri, TokenCache()))
        begin = (0, 0)
        if tokens and span is not None:
            line = document.lines.position(min(tokens[0][0], span[0]))[0]
            begin = (line, document.lines.line_span(line)[0])
        return encode(document.text, tokens, legend, document.encoding, multiline=multiline, begin=begin)

    def remember(uri: str, data: list[int]) -> str:
        nonlocal count
        count += 1
        sent[uri] = (str(count), data)
        return str(count)

    def full(params: types.SemanticTokensParams) -> msgspec.Raw:
        uri = params.text_document.uri
        data = data_of(uri)
        return _raw({"resultId": remember(uri, data), "data": data})

    def full_delta(params: types.SemanticTokensDeltaParams) -> msgspec.Raw:
        uri = params.text_document.uri
        data = data_of(uri)
        before = sent.get(uri)
        result_id = remember(uri, data)
        if before is None or before[0] != params.previous_result_id:
            return _raw({"resultId": result_id, "data": data})
        return _raw({"resultId": result_id, "edits": delta(before[1], data)})

    def of_range(params: types.SemanticTokensRangeParams) -> msgspec.Raw:
        return _raw({"data": data_of(params.text_document.uri, params.range)})

    names = types.SemanticTokensLegend(list(legend.kinds), list(legend.modifiers))
    server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, names)(full)
    server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA, names)(full_delta)
    server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, names)(of_range)


def _raw(answer: dict[str, Any]) -> msgspec.Raw:
    # A hundred thousand numbers are encoded once and never looked at by the framework's converter.
    return msgspec.Raw(msgspec.json.encode(answer))
