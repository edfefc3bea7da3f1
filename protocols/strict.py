"""Strict reading: what was repaired is an error, and an ACTION block must be well-formed XML besides (``options.strict``).

It goes over a document that was read as always, so that strict and tolerant reading never differ in what they find. Every
entry that the catalogue marks as ``strict`` is lifted; a block with an error runs nothing (ruling 1). Must not know how
blocks are written, beyond that ACTION is XML; whether it is well-formed is libxml2's verdict (lxml).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

from msgspec.structs import replace

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Block, Diag, Document
from tamis.protocols.plugins import extras_of

_LINE = re.compile(r" line \d+")
_MAX_REASON = 200


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
        verdict = _verdict(document.text, block) if not block.aside and extras_of(block.protocol).elements else None
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
    """AX170 for a closed block that is no well-formed XML, in libxml2's words and at its place; None for any other."""
    if block.close is None:
        return None
    start, end = block.span
    fault = _xml_fault(text[start:end])
    if fault is None:
        return None
    (first, last), reason = fault
    span = (start + first, start + last)
    for diag in block.diagnostics:
        # libxml2 reads a name that XML does not take up to the character that XML refuses, and speaks of that one alone.
        if diag.code == "AX133" and diag.span[0] - 2 <= span[0] <= diag.span[1]:
            reason, span = f"{diag.args['name']} is not an XML name", diag.span
    return Diag("AX170", span, {"reason": reason})


class _Nothing:
    """A target of the parser that takes no event: no tree is built, so that memory does not grow with the elements."""

    def close(self) -> None:
        """The end of the text."""


def _xml_fault(xml: str) -> tuple[tuple[int, int], str] | None:
    """Where ``xml`` is no well-formed XML 1.0, in code points, and why; None where it is.

    XML alone decides, not its namespaces: a prefix needs no declaration (ruling 13). No DTD and nothing outside the text is
    read and no entity is expanded (ruling 10); libxml2's own bounds stand (256 levels, 10 MB in one section or attribute).
    """
    from lxml import etree  # it costs 12 ms, and only this verdict needs it

    target: Any = _Nothing()
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        resolve_entities=False,
        huge_tree=False,
    )
    try:
        etree.fromstring(xml.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError:
        for entry in parser.error_log:
            if entry.level_name == "FATAL" and entry.domain_name != "NAMESPACE":
                return _place_of(xml, entry.line, entry.column, entry.type_name), _reason(entry.message)
        return (0, len(xml)), "it is not well-formed"
    return None


def _place_of(xml: str, line: int, column: int, kind: str) -> tuple[int, int]:
    """The characters that an error of libxml2 is about; it counts lines and characters from 1, and stands behind what it read."""
    begin = 0
    for _ in range(line - 1):
        begin = xml.find("\n", begin) + 1
    at = min(begin + max(column - 1, 0), len(xml))
    mark = "</" if kind == "ERR_TAG_NAME_MISMATCH" else "&" if "ENTITY" in kind or xml[at - 1 : at] == "&" else ""
    first = xml.rfind(mark, begin, at) if mark else -1
    if first >= 0:
        return first, at
    at = min(at, len(xml) - 1)
    return at, at + 1


def _reason(message: str) -> str:
    """libxml2's words on one line; it counts lines from the begin of the block, which would mislead."""
    words = _LINE.sub("", message.strip().partition("\n")[0])
    return words if len(words) <= _MAX_REASON else words[:_MAX_REASON] + "…"


def _place(diag: Diag) -> tuple[int, int]:
    return diag.span
