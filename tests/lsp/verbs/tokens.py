"""``⟦tokens⟧``: the semantic tokens of the document, and ``⟦tokens:n⟧`` those of the ``n`` lines from a place on."""

from __future__ import annotations

from typing import Any

from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.analysis.shown.block_tokens import semantic_tokens
from tamis.server.analysis.shown.token_kinds import KINDS, MODIFIERS
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "tokens"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "semanticTokens": {
            "requests": {"full": {"delta": True}, "range": True},
            "tokenTypes": list(KINDS),
            "tokenModifiers": list(MODIFIERS),
            "formats": ["relative"],
            "multilineTokenSupport": True,
            "overlappingTokenSupport": False,
        }
    }
}


def _span(text: str, mark: Mark) -> tuple[int, int]:
    index = LineIndex(text)
    line = index.position(mark.offset)[0] + int(mark.argument)
    return mark.offset, index.offset(line, 0)


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    text = core.text(name)
    span = _span(text, mark) if mark.argument else None
    rows = [
        (
            token[:2],
            KINDS[token[2]],
            [word for i, word in enumerate(MODIFIERS) if token[3] >> i & 1],
        )
        for token in semantic_tokens(core.snapshot(name), span)
    ]
    return _render(name, text, mark, rows)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    text = wire.text(name)
    identity = {"textDocument": {"uri": wire.uri(name)}}
    if not mark.argument:
        answer = wire.ask("textDocument/semanticTokens/full", identity)
        again = wire.ask("textDocument/semanticTokens/full/delta", {**identity, "previousResultId": answer["resultId"]})
        assert again["edits"] == [], "nothing changed between the two"
    else:
        span = _span(text, mark)
        wanted = {"start": wire.position(name, span[0]), "end": wire.position(name, span[1])}
        answer = wire.ask("textDocument/semanticTokens/range", {**identity, "range": wanted})
    legend = wire.capabilities["semanticTokensProvider"]["legend"]
    rows: list[tuple[tuple[int, int], str, list[str]]] = []
    line = character = 0
    data = answer["data"]
    for at in range(0, len(data), 5):
        lines, characters, length, kind, bits = data[at : at + 5]
        line, character = (line + lines, characters) if lines else (line, character + characters)
        start = wire.span(
            name, {"start": {"line": line, "character": character}, "end": {"line": line, "character": character}}
        )[0]
        rows.append(
            (
                (start, _advanced(text, start, length, wire.encoding)),
                legend["tokenTypes"][kind],
                [word for i, word in enumerate(legend["tokenModifiers"]) if bits >> i & 1],
            )
        )
    return _render(name, text, mark, rows)


def _advanced(text: str, start: int, units: int, encoding: PositionEncoding) -> int:
    """The offset that many code units behind another."""
    while units > 0:
        char = text[start]
        units -= (
            1 if encoding == "utf-32" else len(char.encode("utf-8")) if encoding == "utf-8" else 1 + (char > "\uffff")
        )
        start += 1
    assert units == 0, "a token ends between characters"
    return start


def _render(name: str, text: str, mark: Mark, rows: list[tuple[tuple[int, int], str, list[str]]]) -> list[str]:
    where = ""
    if mark.argument:
        line, column = LineIndex(text).position(mark.offset)
        where = f":{line + 1}:{column + 1}"
    lines = [f"tokens {name}{where}"]
    for span, kind, modifiers in rows:
        lines.append(f"  {place(text, span)} {' '.join([kind, *modifiers])}")
    return lines
