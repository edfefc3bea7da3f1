"""Conversion of calls: a text in place, or a list of calls, to another protocol or to a vendor's call JSON.

Only calls that would run are converted. The text around the blocks stays byte for byte, and what was made is read again in
its place: a block whose calls would not run there is left as it is. Every loss is named. Must not know files or the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tamis.protocols.base import PlainCall
from tamis.protocols.catalogue import message, severity
from tamis.protocols.contract import Loss
from tamis.protocols.convert.blocks import block_fields, has_crlf_only, message_texts, with_line_ends
from tamis.protocols.convert.calls import (
    CALL_JSON,
    VENDORS,
    Conversion,
    ConvertOptions,
    Envelope,
    Part,
    Ready,
    convert_list,
    loss,
    make_ready,
    members_lost,
    read_envelope,
    title_of,
    vendor_document,
    write_ready,
)
from tamis.protocols.convert.plain import NOT_DECODED, plain_call, reading_of
from tamis.protocols.model import Block, Call, Document
from tamis.protocols.plugins import BUILT_IN, extras_of, find_protocol, known_protocols
from tamis.protocols.positions import LineIndex, Span
from tamis.protocols.writing.values import Expectations

# Converting a text in place: its blocks one by one, and the proof that what took their place would run there.


_ROUNDS = 3


class _Piece(msgspec.Struct):
    """A block of the source with the calls that take its place; ``text`` None leaves it as it is."""

    block: Block
    ready: list[Ready]
    text: str | None = None
    lead: str = ""
    """What call JSON says before its calls, and behind the first of them."""
    tail: str = ""
    losses: list[Loss] = []
    """What does not come along if the block is converted."""


class TextConversion:
    """The conversion of one text."""

    def __init__(self, source: Document, to: str, options: ConvertOptions) -> None:
        self.source = source
        self.lines = LineIndex(source.text)
        self.crlf = has_crlf_only(source.text)
        self.to = to
        self.title = title_of(to)
        self.options = options
        self.losses: list[Loss] = []
        self.index = {id(call): index for index, call in enumerate(source.calls)}
        self.comments = {id(comment): number for number, comment in enumerate(source.comments)}
        self.expectations: dict[str, Expectations] = {}

    def convert(self) -> Conversion:
        """The text with its blocks converted, or the vendor's document."""
        pieces = [piece for block in self.source.blocks if (piece := self.piece(block)) is not None]
        self.losses += [
            loss("TC055", "", what="The rest of the text", why=message(diagnostic))
            for diagnostic in self.source.diagnostics
            if diagnostic.code == "TC028"
        ]
        if self.to in (*VENDORS, CALL_JSON):
            return self.to_document(pieces)
        pieces = self.join(pieces)
        for piece in pieces:
            self.write(piece)
        text = self.put_together(pieces)
        return Conversion(text, sorted(self.losses, key=_place))

    def piece(self, block: Block) -> _Piece | None:
        """What is to be done with one block; None where it is left."""
        same = block.protocol == self.to != CALL_JSON
        if not block.calls or not all(call.executable for call in block.calls):
            why = self.why_not(block)
            if why is None:
                self.losses += [
                    loss("TC057", f"/calls/{self.index[id(call)]}", tool=call.tool_id) for call in block.calls
                ]
                return None
            self.leave(block.calls, why)
            if not block.calls:
                line, column = self.lines.position(block.span[0])
                what = f"The block at {line + 1}:{column + 1}, without a readable call,"
                self.losses.append(loss("TC055", "", what=what, why=why))
            return None
        if same and not self.other_shape(block) and not self.must_join():
            return None
        ready: list[Ready] = []
        losses: list[Loss] = []
        whole = True
        around = read_envelope(self.source.text, block) if extras_of(block.protocol).whole_text else Envelope()
        for position, call in enumerate(block.calls, 1):
            index = self.index[id(call)]
            plain, more = self.plain(call, index)
            if position <= len(around.calls):
                surroundings = around.calls[position - 1]
                plain = msgspec.structs.replace(plain, number_id=surroundings.number_id)
                more += members_lost(surroundings.members, f"/calls/{index}", self.title)
            converted, notes = make_ready(plain, index, position, self.to, self.options)
            losses += [*more, *notes]
            if converted is None:
                whole = False
            else:
                ready.append(Ready(index, converted))
        if not whole:
            # A block that lost one of its calls would do something else: all of them stay.
            self.losses += [loss for loss in losses if loss.code == "TC050"]
            self.leave(
                [call for call in block.calls if self.index[id(call)] in {ready_call.index for ready_call in ready}],
                _BESIDE,
            )
            return None
        losses += self.fields(block)
        piece = _Piece(block, ready, losses=losses)
        if extras_of(block.protocol).whole_text:
            losses += members_lost(around.members, "", self.title)
            surroundings = message_texts(self.source.text, block)
            piece.lead, piece.tail = surroundings.lead, surroundings.tail
            if surroundings.between:
                losses.append(self.lost("", "The place of the text between two calls", "it stands behind them now"))
            for kind in surroundings.others:
                losses.append(self.lost("", f"A part of type '{kind}' of the message", "it has no place for it"))
        return piece

    def other_shape(self, block: Block) -> bool:
        """A block whose shape is not the one that was asked for, of a protocol that has several."""
        wanted = self.options.shape
        several = len(extras_of(self.to).shapes) > 1
        return several and wanted is not None and any(call.shape != wanted for call in block.calls)

    def plain(self, call: Call, index: int) -> tuple[PlainCall, list[Loss]]:
        """The call without places, and a loss for each type hint that could not be applied."""
        expectations = self.expectations.get(call.protocol)
        if expectations is None:
            expectations = Expectations(self.options.tools, reading_of(call.protocol))
            self.expectations[call.protocol] = expectations
        tool = self.options.tools.get(call.tool_id)
        plain, failed = plain_call(call, self.source.text, expectations, tool, keep_hints=extras_of(self.to).modifiers)
        return plain, [
            loss(
                "TC052",
                f"/calls/{index}/typeHints/{name}",
                what=f"The type hint {call.type_hints[name]} of '{name}'",
                protocol=self.title,
                why=NOT_DECODED,
            )
            for name in failed
        ]

    def fields(self, block: Block) -> list[Loss]:
        """Comments of a block, which no other form has a place for."""
        why = "it has no place for comments here"
        losses = [
            self.lost(f"/comments/{self.comments[id(comment)]}", f"The comment {comment.text[:60]!r}", why)
            for comment in block.comments
        ]
        fields = [field for field in block_fields(self.source.text, block) if field.kind == "comment"]
        losses += [self.lost("", f"The comment {field.text[:60]!r}", why) for field in fields]
        return losses

    def lost(self, path: str, what: str, why: str) -> Loss:
        """Something that does not come along."""
        return loss("TC052", path, what=what, protocol=self.title, why=why)

    def why_not(self, block: Block) -> str | None:
        """The finding that keeps the calls of a block from running; None for calls in reasoning and in examples."""
        levels = ("error", "warning")
        diagnostic = next((diag for level in levels for diag in block.diagnostics if severity(diag) == level), None)
        return None if diagnostic is None else message(diagnostic)

    def leave(self, calls: Sequence[Call], why: str) -> None:
        """Names calls that stay as they are."""
        for call in calls:
            what = f"The call of '{call.tool_id}'"
            self.losses.append(loss("TC055", f"/calls/{self.index[id(call)]}", what=what, why=why))

    def must_join(self) -> bool:
        """Whether several blocks of the source have to become one, because only one of a text is run (ruling 14)."""
        protocol = find_protocol(self.to)
        if protocol is None or not protocol.markers.one_block or self.options.reading.allow_multiple_blocks:
            return False
        return sum(any(call.executable for call in block.calls) for block in self.source.blocks) > 1

    def join(self, pieces: list[_Piece]) -> list[_Piece]:
        """Gives the calls of all blocks to the first one, where they must stand in one; what is left to be converted.

        Calls keep their order: behind a block that stays, nothing can go to the one before it.
        """
        if len(pieces) < 2 or not self.must_join():
            return pieces
        first = pieces[0]
        by_block = {id(piece.block): piece for piece in pieces}
        kept: list[_Piece] = []
        barred = False
        for block in self.source.blocks:
            piece = by_block.get(id(block))
            if piece is None:
                barred = barred or (bool(kept) and any(call.executable for call in block.calls))
            elif barred:
                self.leave(block.calls, "a call before it stays, and only one block of a text is run")
            else:
                kept.append(piece)
        for piece in kept[1:]:
            first.ready += piece.ready
            first.losses += piece.losses
            piece.ready, piece.losses = [], []
        if len(kept) > 1:
            first.losses.append(loss("TC056", "", n=len(kept), protocol=self.title))
        return kept

    def write(self, piece: _Piece) -> None:
        """Writes a block's calls; all of them or none."""
        if not piece.ready:
            piece.text = piece.lead + piece.tail
            return
        text, losses = write_ready(piece.ready, self.to, self.options)
        refusals = [loss for loss in losses if loss.code in ("TC050", "TC051")]
        if not refusals:
            text = with_line_ends(text, self.crlf, [ready_call.call for ready_call in piece.ready])
            piece.text = "\n\n".join(part for part in (piece.lead, text, piece.tail) if part)
            piece.losses += losses
            return
        self.losses += refusals
        named = {refusal.path.split("/")[2] for refusal in refusals}
        calls = [
            self.source.calls[ready_call.index] for ready_call in piece.ready if str(ready_call.index) not in named
        ]
        self.leave(calls, _BESIDE)

    def put_together(self, pieces: list[_Piece]) -> str:
        """The text with every written block in its place; blocks whose calls would not run there are left."""
        for _ in range(_ROUNDS):
            text, places = self.replaced(pieces)
            wrong = self.not_running(text, places)
            if not wrong:
                self.losses += [loss for piece, _ in places for loss in piece.losses]
                return text
            for piece, why in wrong:
                piece.text = None
                self.leave([self.source.calls[ready_call.index] for ready_call in piece.ready], why)
        return self.source.text

    def replaced(self, pieces: list[_Piece]) -> tuple[str, list[tuple[_Piece, Span]]]:
        """The text with the written blocks, and where each of them stands in it."""
        source = self.source.text
        out: list[str] = []
        places: list[tuple[_Piece, Span]] = []
        at = length = 0
        # The first block holds the calls of the others only if it was written itself.
        joined = bool(pieces) and pieces[0].text is None
        for piece in pieces:
            if piece.text is None or (joined and not piece.ready):
                continue
            start, end = piece.block.span
            out += (source[at:start], piece.text)
            length += start - at
            places.append((piece, (length, length + len(piece.text))))
            length += len(piece.text)
            at = end
        out.append(source[at:])
        return "".join(out), places

    def not_running(self, text: str, places: list[tuple[_Piece, Span]]) -> list[tuple[_Piece, str]]:
        """The blocks whose calls do not come back from where they were put."""
        from tamis.protocols.reader import read_text

        used = {self.to, *(block.protocol for block in self.source.blocks)} - {*BUILT_IN, CALL_JSON}
        also = tuple(sorted(used | set(self.options.reading.also)))
        reading = msgspec.structs.replace(self.options.reading, tools=self.options.tools, also=also)
        document = read_text(text, "auto", reading)
        wrong: list[tuple[_Piece, str]] = []
        at = 0
        for piece, (start, end) in places:
            blocks: list[Block] = []
            while at < len(document.blocks) and document.blocks[at].span[0] < end:
                if document.blocks[at].span[0] >= start:
                    blocks.append(document.blocks[at])
                at += 1
            names = [call.tool_id for block in blocks for call in block.calls if call.executable]
            if names != [ready_call.call.tool_id for ready_call in piece.ready]:
                diag = next((diag for block in blocks for diag in block.diagnostics), None)
                phrase = f": {message(diag)}" if diag is not None else ""
                wrong.append((piece, f"in this place it would not run in {self.title}{phrase}"))
        if not wrong and _running(document) != self.expected(places):
            return [(piece, "beside it, another block would not be read as before") for piece, _ in places]
        return wrong

    def expected(self, places: list[tuple[_Piece, Span]]) -> list[str]:
        """The tools that the converted text is to call, in order."""
        taken = {piece.block.span: piece for piece, _ in places}
        names: list[str] = []
        for block in self.source.blocks:
            piece = taken.get(block.span)
            if piece is None:
                names += [call.tool_id for call in block.calls if call.executable]
            else:
                names += [ready_call.call.tool_id for ready_call in piece.ready]
        return names

    def to_document(self, pieces: list[_Piece]) -> Conversion:
        """All calls as one document, with the text around them where it has a place for that."""
        # Around a JSON document stand its line end and its fence, which are no text of the message.
        is_json = any(extras_of(piece.block.protocol).whole_text for piece in pieces)
        source = "" if is_json else self.source.text
        parts: list[Part] = []
        indices: list[int] = []
        at = 0
        for piece in pieces:
            start, end = piece.block.span
            parts.append(Part(text=source[at:start] + piece.lead))
            for ready_call in piece.ready:
                parts.append(Part(call=ready_call.call))
                indices.append(ready_call.index)
            parts.append(Part(text=piece.tail))
            at = end
        parts.append(Part(text=source[at:]))
        self.losses += [loss for piece in pieces for loss in piece.losses]
        behind = "".join(part.text for part in parts[1:])
        if self.to in ("mcp", CALL_JSON) and "".join(part.text for part in parts).strip():
            self.losses.append(self.lost("", "The text around the calls", "it holds nothing but calls"))
        elif self.to == "openai" and indices and behind.strip():
            why = "all text stands before the calls there"
            self.losses.append(self.lost("", "The place of the text behind a call", why))
        if self.to == CALL_JSON:
            text, losses = write_ready(
                [ready_call for piece in pieces for ready_call in piece.ready], self.to, self.options
            )
        else:
            text, losses = vendor_document(parts, indices, self.to)
        return Conversion(text, sorted(self.losses + losses, key=_place))


_BESIDE = "another call of its block cannot be converted"


def _running(document: Document) -> list[str]:
    return [call.tool_id for call in document.calls if call.executable]


def _place(loss: Loss) -> tuple[int, int]:
    """Losses of the whole text last, the others by call."""
    parts = loss.path.split("/")
    return (0, int(parts[2])) if len(parts) > 2 and parts[1] == "calls" and parts[2].isdigit() else (1, 0)


__all__ = ["Conversion", "ConvertOptions", "convert", "targets", "title_of"]


def targets() -> tuple[str, ...]:
    """Everything that calls can be converted to."""
    return (*known_protocols(), *VENDORS)


def convert(source: Document | Sequence[PlainCall], to: str, options: ConvertOptions | None = None) -> Conversion:
    """Converts a text that was read, or a list of calls. Raises ``ValueError`` for an unknown target, and nothing else."""
    if to not in targets():
        raise ValueError(f"unknown target {to!r}; known: {', '.join(targets())}")
    options = options or ConvertOptions()
    if isinstance(source, Document):
        return TextConversion(source, to, options).convert()
    return convert_list(source, to, options)
