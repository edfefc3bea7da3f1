"""What always holds of an editor's answers, whatever the text is: one function for each law, asked by ``test_laws.py`` of mutated documents.

A law takes a snapshot and a way to see the same document with another text, and raises ``AssertionError`` where it is broken.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from tamis.protocols.changes import applied, are_in_order
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Edit
from tamis.server.analysis.actions.fixes import SYNTAX, broken_places, faults, fix_all, quick_fixes
from tamis.server.analysis.answers import Finding
from tamis.server.analysis.completion.proposals import complete
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.lints.ignore import ignoring
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.navigation.rename import rename
from tamis.server.analysis.navigation.spelled import RenameRefusedError, in_files
from tamis.server.analysis.navigation.subject import subject_at
from tamis.server.analysis.shown.block_tokens import semantic_tokens
from tamis.server.analysis.shown.folding import folds
from tamis.server.analysis.shown.formatting import format_document
from tamis.server.analysis.shown.inlay import inlay_hints
from tamis.server.analysis.shown.selection import selection
from tamis.server.analysis.snapshot import Snapshot

Again = Callable[[str], Snapshot]
Law = Callable[[Snapshot, Again, random.Random], None]


def errors(findings: Sequence[Finding]) -> Counter[tuple[str, str]]:
    """The errors of a document, by code and words."""
    return Counter((one.code, one.message) for one in findings if one.severity == "error")


def moved(edits: Sequence[Edit], offset: int, *, end: bool) -> int:
    """Where an offset of a text is once edits are made."""
    by = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        if edit.end < offset or (edit.end == offset and (edit.start < edit.end or not end)):
            by += len(edit.new_text) - (edit.end - edit.start)
        elif edit.start < offset:
            return edit.start + by + (len(edit.new_text) if end else 0)
    return offset + by


FOR_THE_AUTHOR = frozenset(("LN720", "LN721", "LN780"))
"""Their fixes make a place for words that only the author has."""


def written(edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """Where the new texts of edits stand once they are made."""
    spans: list[tuple[int, int]] = []
    by = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        spans.append((edit.start + by, edit.start + by + len(edit.new_text)))
        by += len(edit.new_text) - (edit.end - edit.start)
    return spans


ASKED_FOR = frozenset(("VA402", "VA404", "VA430", "MF501", "MF540"))
"""What the right name or shape asks for: parameters, fields, a file, one of its values."""


def own_errors(before: Sequence[Finding], after: Sequence[Finding], edits: Sequence[Edit]) -> list[Finding]:
    """The new errors that lie in what was written; others were there and are seen now, as of a field whose name was wrong."""
    known, spans = errors(before), written(edits)
    new: list[Finding] = []
    for one in after:
        key = (one.code, one.message)
        if one.severity != "error" or one.code in ASKED_FOR or one.code.startswith("LN"):
            continue
        if known[key] > 0:
            known[key] -= 1
        elif any(start <= one.span[0] and one.span[1] <= end for start, end in spans):
            new.append(one)
    return new


def a_quick_fix_mends_its_finding_and_adds_no_error(snapshot: Snapshot, again: Again, draw: random.Random) -> None:
    before = diagnose(snapshot)
    actions = quick_fixes(snapshot, (0, len(snapshot.text)))
    for action in draw.sample(actions, min(6, len(actions))):
        about = (action.finding.code, action.finding.message, action.fix.title, action.fix.edits)
        key = (action.finding.code, action.finding.message)
        after = again(apply(snapshot.text, action.fix.edits))
        found = diagnose(after)
        if key[0] in SYNTAX:
            assert faults(after.tree) < faults(snapshot.tree), ("mends nothing", about, after.text)
        elif key[0] not in FOR_THE_AUTHOR:
            start = moved(action.fix.edits, action.finding.span[0], end=False)
            end = moved(action.fix.edits, action.finding.span[1], end=True)
            there = [
                one for one in found if (one.code, one.message) == key and start <= one.span[0] and one.span[1] <= end
            ]
            counts = [sum((one.code, one.message) == key for one in each) for each in (before, found)]
            assert not there or counts[1] < counts[0], ("is still there", about, after.text)
        new = own_errors(before, found, action.fix.edits) if key[0] not in (*SYNTAX, "VA420") else []
        assert not new or errors(found).total() <= errors(before).total(), (
            "adds errors",
            about,
            [(one.code, one.message) for one in new],
            after.text,
        )


def fixing_all_again_changes_nothing(snapshot: Snapshot, again: Again, _draw: random.Random) -> None:
    edits = fix_all(snapshot)
    assert are_in_order(edits)
    after = again(apply(snapshot.text, edits))
    before, found = diagnose(snapshot), diagnose(after)
    new = own_errors(before, found, edits)
    assert not new or errors(found).total() <= errors(before).total(), (
        "adds errors",
        [(one.code, one.message) for one in new],
        after.text,
    )
    rest = fix_all(after)
    assert not rest, ("more to fix", rest, after.text)


def formatting_again_changes_nothing_and_keeps_the_meaning(
    snapshot: Snapshot, again: Again, _draw: random.Random
) -> None:
    edits = format_document(snapshot)
    assert are_in_order(edits)
    after = again(applied(snapshot.text, edits))
    rest = format_document(after)
    assert rest == (), ("formats again", rest, after.text)
    assert meaning(snapshot) == meaning(after), ("another meaning", after.text)


def meaning(snapshot: Snapshot) -> object:
    """What a document says, without its layout."""
    if snapshot.kind == "text":
        return [
            (call.tool_id, call.args(snapshot.text), call.step, call.executable) for call in snapshot.document.calls
        ]
    if snapshot.path.endswith((".json", ".jsonc")):
        tree = parse_json(snapshot.text)
        return (tree.root and tree.root.to_python(), len(tree.comments))
    return None


def silencing_a_finding_silences_it(snapshot: Snapshot, again: Again, draw: random.Random) -> None:
    before = diagnose(snapshot)
    actions = ignoring(snapshot, (0, len(snapshot.text)))
    for finding, fix in draw.sample(actions, min(4, len(actions))):
        found = diagnose(again(apply(snapshot.text, fix.edits)))
        count = [sum(one.code == finding.code for one in each) for each in (before, found)]
        assert count[1] < count[0], ("is not silenced", finding.code, fix)
        assert sum(errors(found).values()) <= sum(errors(before).values()), (
            "adds errors",
            errors(found) - errors(before),
            fix,
        )


def tokens_are_in_order_and_apart(snapshot: Snapshot, _again: Again, _draw: random.Random) -> None:
    tokens = semantic_tokens(snapshot)
    assert all(0 <= token[0] < token[1] <= len(snapshot.text) for token in tokens)
    assert all(one[1] <= other[0] for one, other in pairwise(tokens))


def folds_are_nested(snapshot: Snapshot, _again: Again, _draw: random.Random) -> None:
    found = sorted((fold.span for fold in folds(snapshot)), key=lambda span: (span[0], -span[1]))
    ends: list[int] = []
    for start, end in found:
        assert 0 <= start < end <= len(snapshot.text)
        while ends and ends[-1] <= start:
            ends.pop()
        assert not ends or end <= ends[-1], ("cross", start, end)
        ends.append(end)


def selections_are_nested(snapshot: Snapshot, _again: Again, draw: random.Random) -> None:
    for _ in range(8):
        offset = draw.randint(0, len(snapshot.text))
        spans = selection(snapshot, offset)
        assert spans[-1] == (0, len(snapshot.text))
        assert all(start <= offset <= end for start, end in spans)
        assert all(out[0] <= one[0] and one[1] <= out[1] and one != out for one, out in pairwise(spans))


def hints_stand_in_the_text(snapshot: Snapshot, _again: Again, _draw: random.Random) -> None:
    for hint in inlay_hints(snapshot, (0, len(snapshot.text))):
        assert 0 <= hint.offset <= len(snapshot.text)
        # Never in the middle of a line end.
        assert snapshot.text[hint.offset - 1 : hint.offset + 1] != "\r\n"


def renames_apply_cleanly(snapshot: Snapshot, again: Again, draw: random.Random) -> None:
    for _ in range(6):
        offset = draw.randint(0, len(snapshot.text))
        try:
            edits = rename(snapshot, offset, draw.choice(("core:new-one", "fresh", "neu😋")))
        except RenameRefusedError:
            continue
        for path, mine in in_files(edits).items():
            text = snapshot.text if path == snapshot.path else snapshot.index.text(path) if snapshot.index else ""
            ordered = sorted((one.edit for one in mine), key=lambda edit: edit.start)
            assert all(0 <= edit.start < edit.end <= len(text) for edit in ordered), (path, ordered)
            assert all(one.end <= other.start for one, other in pairwise(ordered))
            if path == snapshot.path:
                after = again(apply(text, ordered))
                assert len(errors(diagnose(after))) >= 0


def what_is_chosen_stands_where_it_was_promised(snapshot: Snapshot, again: Again, draw: random.Random) -> None:
    """The chosen name of a tool or parameter is read as one, and JSON has no new fault."""
    for _ in range(4):
        offset = draw.randint(0, len(snapshot.text))
        items = complete(snapshot, offset).items
        for item in draw.sample(items, min(4, len(items))):
            assert 0 <= item.span[0] <= offset <= item.span[1] <= len(snapshot.text)
            edits = [Edit(*item.span, item.text), *(Edit(*one) for one in item.extra)]
            assert are_in_order(sorted(edits, key=lambda edit: edit.start)), item
            after = again(apply(snapshot.text, edits))
            if snapshot.path.endswith(".json"):
                if any(not start <= offset <= end for start, end in broken_places(snapshot.tree)):
                    continue  # elsewhere broken: what belongs here is a guess
                assert faults(after.tree) <= faults(snapshot.tree), (item.label, item.span, after.text)
            elif snapshot.text[offset : offset + 1] not in ("", "\r", "\n", " ", "<", "«", "「"):
                continue  # in a word: of a value that is not closed only what stands before the caret is replaced
            elif snapshot.kind == "text" and item.kind in ("tool", "parameter") and item.label in item.text:
                subject = subject_at(after, item.span[0] + item.text.index(item.label) + 1)
                about = (item.kind, item.label, item.span, subject and (subject.kind, subject.name), after.text)
                assert subject is not None, about
                assert (subject.kind, subject.name) == (item.kind, item.label), about


LAWS: tuple[Law, ...] = (
    a_quick_fix_mends_its_finding_and_adds_no_error,
    fixing_all_again_changes_nothing,
    formatting_again_changes_nothing_and_keeps_the_meaning,
    silencing_a_finding_silences_it,
    tokens_are_in_order_and_apart,
    folds_are_nested,
    selections_are_nested,
    hints_stand_in_the_text,
    renames_apply_cleanly,
    what_is_chosen_stands_where_it_was_promised,
)
