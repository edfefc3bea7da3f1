"""The edges of values (ruling 67): pieces of a protocol's own marks that a typing slip left in a value, and values that a slip emptied.

Every protocol asks here, with the marks that it expects around a value and the marks as they are written. Must not know a protocol.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.positions import Span


class Slip(msgspec.Struct, frozen=True):
    """What is nearly a mark, with the part of it that lies in the value; and the mark."""

    span: Span
    mark: str


def slip_before(text: str, value: Span, written: Span, marks: tuple[str, ...], *, doubled: bool = True) -> Slip | None:
    """Returns the slip in the opening mark of a value, or None.

    ``written`` is the opening mark as written in the text, an empty span if there is none. ``doubled``: a value that begins with
    the mark's last character counts too, behind a mark in any spelling.
    """
    start, end = value
    widest = max(map(len, marks)) + 1
    if written[1] - written[0] > widest:
        return None
    part = text[start : min(end, start + widest)]
    found = _piece(part, text[written[0] : written[1]], marks, doubled)
    return None if found is None else Slip((written[0], start + found[0]), found[1])


def slip_behind(text: str, value: Span, written: Span, marks: tuple[str, ...], *, doubled: bool = True) -> Slip | None:
    """Returns the slip in the closing mark of a value, or None; the arguments are those of ``slip_before``."""
    start, end = value
    widest = max(map(len, marks)) + 1
    if written[1] - written[0] > widest:
        return None
    part = text[max(start, end - widest) : end][::-1]
    found = _piece(part, text[written[0] : written[1]][::-1], tuple(mark[::-1] for mark in marks), doubled)
    return None if found is None else Slip((end - found[0], written[1]), found[1][::-1])


def _piece(part: str, written: str, marks: tuple[str, ...], doubled: bool) -> tuple[int, str] | None:
    """How many characters at the start of `part` complete `written` to nearly a mark, and the mark."""
    for mark in marks:
        if written and doubled and part[:1] == mark[-1]:
            return 1, mark
        if written == mark:
            continue
        for length in range(1, min(len(part), len(mark) + 1 - len(written)) + 1):
            if part[length - 1] in mark and one_slip(written + part[:length], mark):
                return length, mark
    return None


def one_slip(written: str, mark: str) -> bool:
    """Whether one deleted, inserted or replaced character, or two swapped neighbours, make the mark of what is written."""
    if written == mark or abs(len(written) - len(mark)) > 1:
        return False
    at = 0
    while at < len(written) and at < len(mark) and written[at] == mark[at]:
        at += 1
    if len(written) > len(mark):
        return written[at + 1 :] == mark[at:]
    if len(written) < len(mark):
        return written[at:] == mark[at + 1 :]
    if written[at + 1 :] == mark[at + 1 :]:
        return True
    return written[at : at + 2] == mark[at : at + 2][::-1] and written[at + 2 :] == mark[at + 2 :]
