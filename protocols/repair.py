"""What a reading assumed, and the readings that it did not take (``tool/explain``); its safe edits (``tool/repair``).

An assumption is a finding of warning level. An alternative is another way to read a construct that has several: what would
run then, and the edit or the option that makes it so. Everything is found by reading again, so that an alternative never says
what the reader would not do. Must not know how a protocol is written.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET

from tamis.protocols import contract
from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Block, Call, Diag, Document, Edit, Json, Param
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import LineIndex, PositionEncoding, Span
from tamis.protocols.wire import parse_result, to_range

# The sum of the safe fixes of a text: what "repair this block" and ``tool/repair`` apply. A repair keeps every call as it was read (P4): ``mended``
# reads the text again after each round of edits and takes back what would change one.


ROUNDS = 4
"""Edits that overlap wait for the next round; three are enough for anything seen, and the last one shows that it is."""
_MAX_APART = 32


class Repair(msgspec.Struct, frozen=True):
    """A text with its safe edits applied: ``edits`` turn the text that was given into ``document.text``."""

    edits: tuple[Edit, ...]
    document: Document


def safe_edits(diagnostics: Iterable[Diag]) -> list[Edit]:
    """Every edit of every safe fix, sorted, disjoint and each once.

    Where two fixes insert at one place, that of the inner construct comes first (it begins later in the text). Of two fixes
    that overlap, the one of the earlier finding is taken; the other stays for the next time.
    """
    kept_edits: list[tuple[int, int, int, str]] = []
    taken: set[tuple[int, int, str]] = set()
    for diag in diagnostics:
        if diag.fix is None or diag.fix.applicability != "safe":
            continue
        new = [edit for edit in diag.fix.edits if (edit.start, edit.end, edit.new_text) not in taken]
        if any(_overlaps(edit, kept_edits) for edit in new):
            continue
        for edit in new:
            taken.add((edit.start, edit.end, edit.new_text))
            insort(kept_edits, (edit.start, edit.end, -diag.span[0], edit.new_text))
    return [Edit(start, end, text) for start, end, _, text in kept_edits]


def mended(document: Document, read: Callable[[str], Document]) -> Repair:
    """Applies safe edits until none is left; the calls stay what they are.

    ``read`` reads a text as ``document`` was read. Edits that would change a call are left out, block by block.
    """
    wanted = [says(call, document.text) for call in document.calls]
    length = len(document.text)
    pieces: list[tuple[int, int] | str] = [(0, length)]
    for _ in range(ROUNDS):
        edits = safe_edits(document.diagnostics)
        if not edits:
            break
        after = read(apply_edits(document.text, edits))
        if [says(call, after.text) for call in after.calls] != wanted:
            edits, after = _apart(document, edits, wanted, read)
            if not edits:
                break
        pieces = _edited(pieces, edits)
        document = after
    return Repair(tuple(_composed(pieces, length)), document)


def says(call: Call, text: str) -> tuple[object, ...]:
    """What a call says, without its places and findings."""
    return (
        call.protocol,
        call.tool_id,
        call.args(text),
        call.step,
        call.on_error,
        call.retry,
        call.request_id,
        call.uris,
        call.type_hints,
        call.meta,
        call.complete,
        call.executable,
    )


def _apart(
    document: Document, edits: list[Edit], wanted: list[tuple[object, ...]], read: Callable[[str], Document]
) -> tuple[list[Edit], Document]:
    """The edits of those blocks whose repair keeps every call; none when there are too many blocks to try."""
    groups: list[list[Edit]] = []
    taken: set[int] = set()
    for block in document.blocks:
        inside = [
            i for i, e in enumerate(edits) if block.span[0] <= e.start and e.end <= block.span[1] and i not in taken
        ]
        taken.update(inside)
        groups.append([edits[i] for i in inside])
    kept: list[Edit] = []
    result = document
    for group in groups if len(groups) <= _MAX_APART else []:
        if not group:
            continue
        tried = sorted([*kept, *group], key=lambda edit: (edit.start, edit.end))
        after = read(apply_edits(document.text, tried))
        if [says(call, after.text) for call in after.calls] == wanted:
            kept, result = tried, after
    return kept, result


def _edited(pieces: list[tuple[int, int] | str], edits: Sequence[Edit]) -> list[tuple[int, int] | str]:
    """A text made of stretches of the first one and inserted ones, after another round of edits."""
    out: list[tuple[int, int] | str] = []
    rest = list(reversed(pieces))
    at = 0

    def take(length: int, *, keep: bool) -> None:
        nonlocal at
        at += length
        while length > 0:
            piece = rest.pop()
            size = len(piece) if isinstance(piece, str) else piece[1] - piece[0]
            used = min(size, length)
            length -= used
            head = piece[:used] if isinstance(piece, str) else (piece[0], piece[0] + used)
            if used < size:
                rest.append(piece[used:] if isinstance(piece, str) else (piece[0] + used, piece[1]))
            if keep:
                out.append(head)

    for edit in edits:
        take(edit.start - at, keep=True)
        take(edit.end - edit.start, keep=False)
        if edit.new_text:
            out.append(edit.new_text)
    out.extend(reversed(rest))
    return out


def _composed(pieces: list[tuple[int, int] | str], length: int) -> list[Edit]:
    """The edits of the first text, of that length, that give what the pieces say."""
    edits: list[Edit] = []
    at = 0
    new: list[str] = []
    for piece in [*pieces, (length, length)]:
        if isinstance(piece, str):
            new.append(piece)
            continue
        if new or piece[0] > at:
            edits.append(Edit(at, piece[0], "".join(new)))
            new = []
        at = piece[1]
    return edits


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """``text`` with sorted, disjoint edits applied."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts.append(text[at : edit.start])
        parts.append(edit.new_text)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


def _overlaps(edit: Edit, kept_edits: list[tuple[int, int, int, str]]) -> bool:
    i = bisect_left(kept_edits, (edit.start,))
    if i > 0 and kept_edits[i - 1][1] > edit.start:
        return True
    while i < len(kept_edits) and kept_edits[i][0] < edit.end:
        if kept_edits[i][0] > edit.start or kept_edits[i][1] > edit.start:
            return True
        i += 1
    return False


MAX_ALTERNATIVES = 50
"""Readings that are tried for one text; each costs the reading of one block."""
_MAX_BLOCK = 200_000
_ELEMENT = lazy(r"<([A-Za-z_][\w.\-]*)>[^<]*</\1\s*>")

Read = Callable[[str], Document]


class Reading(msgspec.Struct, frozen=True):
    """One reading that was not taken: what would run, by which edits of the text or by which option."""

    title: str
    diag: Diag
    document: Document
    """The text of the block as it would be read then."""
    edits: tuple[Edit, ...] = ()
    options: dict[str, Json] = {}


def explain(document: Document, read: Read, encoding: PositionEncoding | None) -> contract.ExplainResult:
    """The assumptions of a reading and its alternatives; ``read`` reads a text as ``document`` was read."""
    lines = LineIndex(document.text)
    readings = [
        contract.Alternative(
            title=reading.title,
            code=reading.diag.code,
            slug=CATALOGUE[reading.diag.code].slug,
            range=to_range(reading.diag.span, lines, encoding),
            calls=[_call(call, reading.document.text) for call in reading.document.calls if call.executable],
            edits=_edits(reading.edits, lines, encoding) or UNSET,
            options=reading.options or UNSET,
        )
        for reading in alternatives(document, read)
    ]
    return contract.ExplainResult(assumptions=_assumptions(document, lines, encoding), alternatives=readings)


def repair(document: Document, read: Read, encoding: PositionEncoding | None) -> contract.RepairResult:
    """The safe edits of a text, the repaired text, and its calls with their ranges there; they say what they said before (P4)."""
    done = mended(document, read)
    return contract.RepairResult(
        edits=_edits(done.edits, LineIndex(document.text), encoding),
        text=done.document.text,
        calls=parse_result(done.document, encoding).calls,
    )


def _call(call: Call, text: str) -> contract.AlternativeCall:
    return contract.AlternativeCall(
        protocol=call.protocol,
        tool_id=call.tool_id,
        args=call.args(text),
        step=UNSET if call.step is None else call.step,
    )


def _edits(edits: tuple[Edit, ...], lines: LineIndex, encoding: PositionEncoding | None) -> list[contract.TextEdit]:
    return [
        contract.TextEdit(range=to_range((edit.start, edit.end), lines, encoding), new_text=edit.new_text)
        for edit in edits
    ]


# --- assumptions -------------------------------------------------------------------------------------------------------


def _assumptions(document: Document, lines: LineIndex, encoding: PositionEncoding | None) -> list[contract.Assumption]:
    touched = _touched(document)
    return [
        contract.Assumption(
            code=diag.code,
            slug=CATALOGUE[diag.code].slug,
            range=to_range(diag.span, lines, encoding),
            message=message(diag),
            calls=touched.get(id(diag), []),
            fix=_edits(diag.fix.edits, lines, encoding) if diag.fix is not None else UNSET,
            applicability=diag.fix.applicability if diag.fix is not None else UNSET,
        )
        for diag in document.diagnostics
        if severity(diag) == "warning"
    ]


def _touched(document: Document) -> dict[int, list[int]]:
    """The indices of the calls that each finding is about, by the finding's identity."""
    index = {id(call): number for number, call in enumerate(document.calls)}
    touched: dict[int, list[int]] = {}
    for block in document.blocks:
        for call in block.calls:
            for diag in call.repairs:
                touched.setdefault(id(diag), []).append(index[id(call)])
        for diag in block.diagnostics:
            if id(diag) in touched or severity(diag) != "warning":
                continue
            inside = [call for call in block.calls if call.span[0] <= diag.span[0] < call.span[1]]
            touched[id(diag)] = [index[id(call)] for call in inside or block.calls]
    return touched


# --- alternatives ------------------------------------------------------------------------------------------------------


def alternatives(document: Document, read: Read) -> Iterator[Reading]:
    """The readings that were not taken, in order of place; one that would run the very same calls is none."""
    tried = 0
    for block in document.blocks:
        if block.span[1] - block.span[0] > _MAX_BLOCK:
            continue
        text = document.text[slice(*block.span)]
        taken = [says(call, document.text) for call in block.calls if call.executable]
        seen: set[str] = set()
        for title, diag, edits, options in _others(document, block):
            inside = all(block.span[0] <= edit.start and edit.end <= block.span[1] for edit in edits)
            if not inside:
                continue
            moved = [Edit(edit.start - block.span[0], edit.end - block.span[0], edit.new_text) for edit in edits]
            changed = apply_edits(text, moved)
            if changed in seen:
                continue
            seen.add(changed)
            tried += 1
            if tried > MAX_ALTERNATIVES:
                return
            other = read(changed)
            if [says(call, other.text) for call in other.calls if call.executable] != taken:
                yield Reading(title, diag, other, edits, options)


_Other = tuple[str, Diag, tuple[Edit, ...], dict[str, Json]]


def _others(document: Document, block: Block) -> Iterator[_Other]:
    """What might be tried for one block: title, the finding that it answers, and the edits or the option."""
    for diag in block.diagnostics:
        if diag.span == block.open:
            option = _option(document, block, diag)
            if option is not None:
                yield (*option,)
                # What stands inside a block that is not run anyway is not looked at further.
                return
    params = {param.name_span: param for call in block.calls for param in call.params}
    for diag in block.diagnostics:
        if diag.code in ("TM216", "VC315"):
            yield from _own_close(diag)
        elif diag.code == "AX112":
            yield from _first_close(diag, block, "The value ends at its first closing tag")
        elif diag.code == "AX114":
            yield from _elements(document.text, diag, block)
        elif diag.code in ("TC060", "TM223"):
            later = params.get(diag.span)
            if later is not None:
                yield "The first one is used", diag, (Edit(*later.span, ""),), {}
        elif diag.code == "VC304":
            yield from _first_name(document.text, diag, block)
        elif diag.fix is not None and diag.fix.applicability == "unsafe":
            yield diag.fix.title, diag, diag.fix.edits, {}


def _option(document: Document, block: Block, diag: Diag) -> _Other | None:
    """The option under which a block that was set aside would run."""
    if diag.code == "TC007":
        return "Every ACTION block is run", diag, (), {"allowMultipleBlocks": True}
    if diag.code == "TC017":
        return "Calls in reasoning are run", diag, (), {"reasoningCalls": "run"}
    if diag.code == "TC018" and diag.data.get("context") == "fence":
        return "Calls in code fences are run", diag, (), {"fencedCalls": "run"}
    return None


def _own_close(diag: Diag) -> Iterator[_Other]:
    """The two readings of a value that holds its own closing delimiter: the whole of it, or what stands before."""
    if diag.fix is None:
        return
    yield "The value ends at its last closing delimiter", diag, diag.fix.edits, {}
    end = max(edit.end for edit in diag.fix.edits)
    if end > diag.span[1]:
        yield "The value ends at its first closing delimiter", diag, (Edit(diag.span[1], end, ""),), {}


def _first_close(diag: Diag, block: Block, title: str) -> Iterator[_Other]:
    param = _param_at(block, diag.span)
    if param is not None and param.span[1] > diag.span[1]:
        yield title, diag, (Edit(diag.span[1], param.span[1], ""),), {}


def _first_name(text: str, diag: Diag, block: Block) -> Iterator[_Other]:
    """A VCP block with the first of its tool names: the later pair is left out, up to its closing mark."""
    for call in block.calls:
        end = text.find("」", call.tool_span[1], block.span[1])
        if diag.span[1] <= call.tool_span[0] and end >= 0:
            yield "The first tool_name is used", diag, (Edit(diag.span[0], end + 1, ""),), {}
            return


def _elements(text: str, diag: Diag, block: Block) -> Iterator[_Other]:
    """Mixed content as its elements alone: the text beside them is left out."""
    param = _param_at(block, diag.span)
    if param is None:
        return
    start, end = param.value.span
    edits: list[Edit] = []
    at = start
    matches: list[re.Match[str]] = list(_ELEMENT.finditer(text, start, end))
    for match in matches:
        if match.start() > at:
            edits.append(Edit(at, match.start(), ""))
        at = match.end()
    if at < end:
        edits.append(Edit(at, end, ""))
    if matches and edits:
        yield "The elements are read and the text beside them is left out", diag, tuple(edits), {}


def _param_at(block: Block, span: Span) -> Param | None:
    return next(
        (
            param
            for call in block.calls
            for param in call.params
            if param.span[0] <= span[0] and span[1] <= param.span[1]
        ),
        None,
    )
