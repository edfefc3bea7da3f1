"""From the call model to the wire: offsets become ranges, findings get their sentence, slug and edits.

Must not know where a text came from or what is done with the result.
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import UNSET

from tamis.protocols import contract
from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Call, Diag, Document, Json, escape_pointer
from tamis.protocols.positions import LineIndex, PositionEncoding, Span


def parse_result(document: Document, encoding: PositionEncoding | None, prefix: str = "call") -> contract.ParseResult:
    """The ``ParseResult`` of the interface.

    ``encoding`` None means that nothing was negotiated: ranges count code points and carry ``offset``. ``callId`` is
    ``{prefix}-1`` … in order.
    """
    text = document.text
    lines = LineIndex(text)
    start, end = document.response_span
    tail_start, tail_end = document.trailing_span
    return contract.ParseResult(
        response_text=text[start:end],
        trailing_text=text[tail_start:tail_end],
        blocks=[
            contract.WireBlock(
                protocol=block.protocol,
                range=to_range(block.span, lines, encoding),
                complete=block.state != "truncated",
            )
            for block in document.blocks
        ],
        calls=[
            wire_call(call, index, f"{prefix}-{index + 1}", call.args(text), lines, encoding)
            for index, call in enumerate(document.calls)
        ],
        diagnostics=[diagnostic(diag, lines, encoding) for diag in document.diagnostics],
        comments=[
            contract.WireComment(range=to_range(comment.span, lines, encoding), text=comment.text)
            for comment in document.comments
        ],
        reasoning=[to_range(span, lines, encoding) for span in document.reasoning],
    )


def diagnostic(diag: Diag, lines: LineIndex, encoding: PositionEncoding | None) -> contract.Diagnostic:
    """A finding with its range, sentence and edits; ``data`` holds ``applicability`` of the edits and ``aliases``."""
    entry = CATALOGUE[diag.code]
    data: dict[str, Any] = dict(diag.data)
    fix: Any = UNSET
    if diag.fix is not None:
        data["applicability"] = diag.fix.applicability
        data["title"] = diag.fix.title
        fix = [
            contract.TextEdit(range=to_range((edit.start, edit.end), lines, encoding), new_text=edit.new_text)
            for edit in diag.fix.edits
        ]
    if entry.aliases:
        data["aliases"] = list(entry.aliases)
    return contract.Diagnostic(
        code=diag.code,
        slug=entry.slug,
        severity=severity(diag),
        range=to_range(diag.span, lines, encoding),
        message=message(diag),
        fix=fix,
        data=data or UNSET,
    )


class Lines(Protocol):
    """Whatever tells the line and character of an offset."""

    def position(self, offset: int, encoding: PositionEncoding = "utf-32") -> tuple[int, int]:
        """As ``LineIndex.position``."""
        ...


def to_range(span: Span, lines: Lines, encoding: PositionEncoding | None) -> contract.Range:
    """An LSP range of code-point offsets; with ``offset`` when ``encoding`` is None."""
    start_line, start_character = lines.position(span[0], encoding or "utf-32")
    end_line, end_character = lines.position(span[1], encoding or "utf-32")
    return contract.Range(
        start=contract.Position(line=start_line, character=start_character),
        end=contract.Position(line=end_line, character=end_character),
        offset=(span[0], span[1]) if encoding is None else UNSET,
    )


def wire_call(
    call: Call, index: int, call_id: str, args: dict[str, Json], lines: Lines, encoding: PositionEncoding | None
) -> contract.WireCall:
    """One call with its uncoerced ``args``."""
    ranges: dict[str, contract.Range] = {}
    for param in call.params:
        value, pointer = param.value, f"/{escape_pointer(param.name)}"
        if value.kind == "text":
            ranges[pointer] = to_range(value.span, lines, encoding)
            continue
        for place, part in value.walk(pointer):
            ranges[place] = to_range(part.span, lines, encoding)
    return contract.WireCall(
        call_id=call_id,
        index=index,
        protocol=call.protocol,
        tool_id=call.tool_id,
        args=args,
        step=UNSET if call.step is None else call.step,
        on_error=UNSET if call.on_error is None else call.on_error,
        retry=UNSET if call.retry is None else call.retry,
        request_id=UNSET if call.request_id is None else call.request_id,
        uris=call.uris or UNSET,
        type_hints=call.type_hints or UNSET,
        meta=call.meta or UNSET,
        complete=call.complete,
        executable=call.executable,
        repairs=[
            contract.Repair(
                code=diag.code,
                slug=CATALOGUE[diag.code].slug,
                range=to_range(diag.span, lines, encoding),
                message=message(diag),
            )
            for diag in call.repairs
        ],
        range=to_range(call.span, lines, encoding),
        tool_id_range=to_range(call.tool_span, lines, encoding),
        arg_ranges=ranges,
    )
