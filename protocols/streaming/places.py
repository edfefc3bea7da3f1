"""A call that was read in a part of a text, with its places in the whole of it. Must not know how anything was read."""

from __future__ import annotations

import msgspec

from tamis.protocols.model import Call, Diag, Edit, Param, Piece, Value
from tamis.protocols.positions import Span


def moved_call(call: Call, by: int) -> Call:
    """The call ``by`` characters further on; values included."""
    return msgspec.structs.replace(
        call,
        tool_span=_span(call.tool_span, by),
        span=_span(call.span, by),
        params=[_param(param, by) for param in call.params],
        repairs=[_diag(diag, by) for diag in call.repairs],
    )


def _span(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def _param(param: Param, by: int) -> Param:
    return msgspec.structs.replace(
        param,
        value=_value(param.value, by),
        span=_span(param.span, by),
        name_span=_span(param.name_span, by),
    )


def _value(value: Value, by: int) -> Value:
    return msgspec.structs.replace(
        value,
        span=_span(value.span, by),
        pieces=tuple([Piece(piece.start + by, piece.end + by, piece.text) for piece in value.pieces]),
        items=[_value(item, by) for item in value.items],
        entries={name: _value(part, by) for name, part in value.entries.items()},
    )


def _diag(diag: Diag, by: int) -> Diag:
    fix = diag.fix
    if fix is not None:
        edits = tuple([Edit(edit.start + by, edit.end + by, edit.new_text) for edit in fix.edits])
        fix = msgspec.structs.replace(fix, edits=edits)
    return msgspec.structs.replace(diag, span=_span(diag.span, by), fix=fix)
