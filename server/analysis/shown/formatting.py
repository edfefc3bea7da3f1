"""Formatting: a manifest's layout, the blocks of a text, as few edits as lead there.

Key order, comments and every value stay as they are; what has syntax errors, or would not mean the same, is left alone.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.changes import applied, joined, layout_edits, line_edits, with_crlf
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.manifest.format import FIELD_ORDER, HANDLER_ORDER, format_json
from tamis.protocols.model import Document, Edit
from tamis.protocols.positions import Span
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.snapshot import Snapshot

MAX_INDENT = 16


class Layout(msgspec.Struct, frozen=True):
    """What an editor wants of the layout; None where it does not say."""

    tab_size: int = 2
    insert_spaces: bool = True
    trim_final_newlines: bool | None = None
    insert_final_newline: bool | None = None

    @property
    def indent(self) -> str:
        """One level of indentation."""
        return " " * max(1, min(self.tab_size, MAX_INDENT)) if self.insert_spaces else "\t"


def format_document(snapshot: Snapshot, layout: Layout | None = None, *, sort_keys: bool = False) -> tuple[Edit, ...]:
    """The edits that format a document, sorted and disjoint; none where it is formatted or cannot be.

    ``sort_keys`` puts a manifest's fields in the order of seed 003 as well, as ``tamis format`` does.
    """
    formatter = answer(snapshot, "format")
    return formatter(snapshot, layout or Layout(), sort_keys=sort_keys) if formatter is not None else ()


def format_ranges(snapshot: Snapshot, spans: list[Span], layout: Layout | None = None) -> tuple[Edit, ...]:
    """The edits of ``format_document`` that belong to the lines of some spans, or to the blocks that they touch."""
    formatter = answer(snapshot, "format_ranges")
    wanted = [_lines(snapshot.text, span) for span in spans]
    return formatter(snapshot, wanted, layout or Layout()) if formatter is not None else ()


def format_blocks(snapshot: Snapshot, _layout: Layout, *, sort_keys: bool) -> tuple[Edit, ...]:
    """The blocks of a text in their canonical form."""
    del sort_keys  # the order of arguments is their writer's
    return tuple(_blocks(snapshot, None))


def format_block_ranges(snapshot: Snapshot, wanted: list[Span], _layout: Layout) -> tuple[Edit, ...]:
    """The blocks that some lines touch."""
    return tuple(_blocks(snapshot, wanted))


def format_json_document(snapshot: Snapshot, layout: Layout, *, sort_keys: bool) -> tuple[Edit, ...]:
    """A JSON document in its canonical form."""
    return tuple(_json(snapshot, layout, sort_keys=sort_keys))


def format_json_ranges(snapshot: Snapshot, wanted: list[Span], layout: Layout) -> tuple[Edit, ...]:
    """What of it belongs to some lines."""
    text = snapshot.text
    chosen = [
        edit
        for edit in _json(snapshot, layout)
        if any(edit.start <= end and start <= edit.end for start, end in wanted)
    ]
    # Only edits of layout stand alone; a comma that moves does it in two places.
    return tuple(chosen) if not chosen or _same_json(text, applied(text, chosen)) else ()


def _lines(text: str, span: Span) -> Span:
    """The whole lines that a span touches."""
    start = max(text.rfind("\n", 0, span[0]), text.rfind("\r", 0, span[0])) + 1
    ends = [at for at in (text.find("\n", span[1]), text.find("\r", span[1])) if at >= 0]
    # A selection of whole lines ends at the start of the next one, which is not meant.
    if span[1] > span[0] and text[span[1] - 1] in "\r\n":
        return start, span[1] - 1
    return start, min(ends, default=len(text))


# JSON


def _json(snapshot: Snapshot, layout: Layout, *, sort_keys: bool = False) -> list[Edit]:
    text = snapshot.text
    order, inner = (FIELD_ORDER, {"handler": HANDLER_ORDER}) if sort_keys and snapshot.kind == "manifest" else ((), {})
    formatted = format_json(text.replace("\r\n", "\n"), order, inner, indent=layout.indent).text
    if formatted is None:
        return []
    formatted = _final_newlines(text, formatted, layout)
    if _line_end(text) != "\n":
        formatted = formatted.replace("\n", _line_end(text))
    edits = None if order else layout_edits(text, formatted)
    return line_edits(text, formatted) if edits is None else edits


def _final_newlines(text: str, formatted: str, layout: Layout) -> str:
    """The end of the text as the editor wants it; the canonical form ends with one line feed."""
    body = formatted.rstrip("\n")
    had = len(text) - len(text.rstrip("\r\n"))
    lines = text[len(text) - had :].replace("\r\n", "\n")
    if not lines and layout.insert_final_newline is False:
        return body
    if len(lines) > 1 and layout.trim_final_newlines is False:
        return body + "\n" * len(lines)
    return formatted


def _line_end(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _same_json(before: str, after: str) -> bool:
    tree, other = parse_json(before), parse_json(after)
    if tree.root is None or other.root is None or not other.ok:
        return False
    return tree.root.to_python() == other.root.to_python()


# Blocks


def _blocks(snapshot: Snapshot, wanted: list[Span] | None) -> list[Edit]:
    from tamis.protocols.convert.blocks import format_blocks

    text = snapshot.text
    crlf = "\r" in text
    if crlf and not text.count("\r") == text.count("\r\n") == text.count("\n"):
        # Lone carriage returns and mixed line ends are a value's own.
        return []
    plain = text.replace("\r\n", "\n") if crlf else text
    document = snapshot.read(plain) if crlf else snapshot.document
    edits: list[Edit] = []
    for (start, end), new in format_blocks(document, snapshot.reading, snapshot.protocol).made:
        block_edits = line_edits(plain[start:end], new)
        edits += [Edit(edit.start + start, edit.end + start, edit.new_text) for edit in block_edits]
    if crlf:
        edits = list(with_crlf(plain, edits))
    if wanted is not None:
        touched = [block.span for block in snapshot.document.blocks if _touches(block.span, wanted)]
        edits = [edit for edit in edits if any(span[0] <= edit.start <= span[1] for span in touched)]
    if not edits or not (crlf or wanted is not None):
        return edits
    after = snapshot.read(applied(text, edits))
    return joined(text, edits) if _said(after) == _said(snapshot.document) else []


def _touches(span: Span, wanted: list[Span]) -> bool:
    return any(span[0] <= end and start <= span[1] for start, end in wanted)


def _said(document: Document) -> list[object]:
    """What the calls of a text say, without their places."""
    source = document.text
    return [
        (
            *(call.protocol, call.tool_id, call.args(source), call.step, call.on_error, call.retry, call.request_id),
            *(call.uris, call.type_hints, call.meta, call.executable),
        )
        for call in document.calls
    ]
