"""Strict reading: what was repaired is an error, and an ACTION block must be well-formed XML besides (``options.strict``).

It goes over a document that was read as always, so that strict and tolerant reading never differ in what they find. Every
entry that the catalogue marks as ``strict`` is lifted; a block with an error runs nothing (ruling 1). Must not know how
blocks are written, beyond that ACTION is XML.
"""

from __future__ import annotations

from bisect import bisect_left

from msgspec.structs import replace

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Block, Diag, Document


def lift(document: Document) -> None:
    """Makes ``document`` the strict reading of its text, in place; blocks that only stand as examples are left alone."""
    blocks = document.blocks
    starts = [block.span[0] for block in blocks]
    doomed: set[int] = set()
    lifted: dict[int, Diag] = {}
    for diag in document.diagnostics:
        if severity(diag) == "warning" and severity(diag, strict=True) == "error":
            lifted[id(diag)] = replace(diag, severity="error", repair=False)
            # A finding that stands in no block (TC006) is about the next one.
            i = bisect_left(starts, diag.span[1])
            inside = i > 0 and diag.span[0] < blocks[i - 1].span[1]
            if inside or i < len(blocks):
                doomed.add(i - 1 if inside else i)
    added: list[Diag] = []
    for i, block in enumerate(blocks):
        block.diagnostics = [lifted.get(id(diag), diag) for diag in block.diagnostics]
        verdict = _verdict(document.text, block) if block.protocol == "action" and not block.aside else None
        if verdict is not None:
            block.diagnostics = sorted([*block.diagnostics, verdict], key=_place)
            added.append(verdict)
            doomed.add(i)
    for i in doomed:
        _reject(blocks[i])
    document.diagnostics = sorted([*(lifted.get(id(diag), diag) for diag in document.diagnostics), *added], key=_place)


def _reject(block: Block) -> None:
    block.state = "rejected" if block.state == "complete" else block.state
    for call in block.calls:
        call.executable = False
        # What was a repair is an error now.
        call.repairs = [diag for diag in call.repairs if severity(diag, strict=True) == "warning"]


def _verdict(text: str, block: Block) -> Diag | None:
    """AX170 for a closed block that is no well-formed XML, at the exact place; None for any other."""
    if block.close is None:
        return None
    from xml.parsers import expat

    start, end = block.span
    data = text[start:end].encode("utf-8", "surrogatepass")
    parser = expat.ParserCreate("utf-8")
    # A block can hold no DTD; were there one, nothing of it would be fetched or expanded (ruling 10).
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        at = start + len(data[: parser.ErrorByteIndex].decode("utf-8", "ignore"))
        reason, span = expat.ErrorString(error.code), (at, min(at + 1, end))
        for diag in block.diagnostics:
            # libexpat calls a name that XML does not take an invalid token.
            if diag.code == "AX133" and diag.span[0] - 2 <= at <= diag.span[1]:
                reason, span = f"{diag.args['name']} is not an XML name", diag.span
        return Diag("AX170", span, {"reason": reason})
    return None


def _place(diag: Diag) -> tuple[int, int]:
    return diag.span
