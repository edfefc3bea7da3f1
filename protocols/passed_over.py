"""What a model wrote that was seen and not run, or read and left out: a sentence each, with what to write instead (ruling 54).

Pure: from a document to notes. Must not know results, nor whether anything else of the text ran.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.catalogue import message, severity
from tamis.protocols.inert import inert
from tamis.protocols.model import Block, Diag, Document
from tamis.protocols.observation import plain
from tamis.protocols.positions import LineIndex

Kind = Literal["setAside", "notRun", "leftOut"]
"""``setAside``: a block that a reader takes for no request. ``notRun``: a request that was not taken up. ``leftOut``: a part of a
request that is not given to the tool."""

MAX_NOTES = 20
_AGAIN = "To run the call, write its block again, by itself and at the start of a line"
_ADVICE: dict[str, str] = {
    "TC007": "Write all calls of an answer into one ACTION block, or send this one in the next answer",
    "TC010": "To run the call, write its markers with < and >",
    "TC019": "To run the call, write it in the form that the prompt shows, outside of a fence",
    "TC027": "Write the call in a form that is read",
    "TC028": "Write the calls that are missing in the next answer",
    "TC029": "Write the call again as one JSON document without the fault",
    "TC011": "Write a text that the tool needs into a parameter",
    "TC060": "Give each parameter once",
    "TM223": "Give each parameter once",
    "TM224": "Give the parameter a name of letters and digits",
    "TM230": "Give that step a command, or the parameter the number of a step that has one",
    "TM232": "Number the command too, or leave the number away",
    "TM243": "Give the parameter that the hint is for",
    "TM244": "Give the parameter once, by value or by URI",
    "AX105": "Leave the closing tag away, or open its element",
    "AX125": "Leave processing instructions away",
    "AX136": "Write what the tool needs as a child element",
    "AX163": "Write what the tool needs as <input>",
    "VC304": "Give tool_name once",
    "VC328": "To run the call, write its markers without EXP",
}
"""What to write instead, by the code of the finding. The keys are the findings at which something written is set aside, dropped or
overwritten."""


_NO_BLOCKS = ("TC010", "TC019", "TC027", "TC028", "TC029")
"""Findings about calls that are no block of the text."""


class Note(msgspec.Struct, frozen=True):
    """One thing that was passed over: in which block, counted from 0, and the sentence for the model."""

    block: int
    kind: Kind
    code: str
    text: str


def notes_of(document: Document) -> list[Note]:
    """The notes of a text, in the order of its blocks. At most ``MAX_NOTES``, and that a part of the text was not read; a last one counts the rest."""
    lines = LineIndex(document.text)
    notes: list[Note] = []
    left = 0
    for number, kind, diagnostic in _passed_over(document):
        if len(notes) >= MAX_NOTES and diagnostic.code != "TC028":
            left += 1
            continue
        notes.append(Note(number, kind, diagnostic.code, _sentence(diagnostic, kind, lines)))
    if left:
        notes.append(
            Note(notes[-1].block, notes[-1].kind, "", f"Note: {left} more parts of the text were passed over.")
        )
    return notes


def _passed_over(document: Document) -> list[tuple[int, Kind, Diag]]:
    passed_over: list[tuple[int, Kind, Diag]] = []
    for number, block in enumerate(document.blocks):
        if block.aside:
            if block.diagnostics:
                passed_over.append((number, "setAside", block.diagnostics[0]))
        elif block.calls:
            passed_over.extend((number, kind, diagnostic) for kind, diagnostic in _of_block(block))
    told = {id(diagnostic) for block in document.blocks for diagnostic in block.diagnostics}
    passed_over.extend(
        (max(0, len(document.blocks) - 1), "notRun" if diagnostic.code == "TC028" else "setAside", diagnostic)
        for diagnostic in document.diagnostics
        if diagnostic.code in _NO_BLOCKS and id(diagnostic) not in told
    )
    return passed_over


def _of_block(block: Block) -> list[tuple[Kind, Diag]]:
    """What is told of a block that has calls. A block with an error is told as a whole elsewhere."""
    if any(severity(diagnostic) == "error" for diagnostic in block.diagnostics):
        return []
    if not any(call.executable for call in block.calls):
        why = next((diagnostic for diagnostic in block.diagnostics if severity(diagnostic) == "warning"), None)
        return [("notRun", why)] if why is not None else []
    return [("leftOut", diagnostic) for diagnostic in block.diagnostics if diagnostic.code in _ADVICE]


def _sentence(diagnostic: Diag, kind: Kind, lines: LineIndex) -> str:
    line, column = lines.position(diagnostic.span[0])
    text = message(diagnostic).rstrip(".")
    advice = _ADVICE.get(diagnostic.code, "" if kind == "leftOut" else _AGAIN)
    not_run = ". This call was not run" if kind == "setAside" and "not executed" not in text else ""
    return inert(plain(f"Note: line {line + 1}, column {column + 1}: {text}{not_run}. {advice}."))
