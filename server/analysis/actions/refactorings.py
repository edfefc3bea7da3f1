"""Code actions that are more than the fix of one finding: what is offered at a place, as plain data.

Each action says which files it changes or creates. Actions that need another file's text take it from the snapshot's index or
facts. Must not know LSP's spelling, nor read files.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.model import Edit
from tamis.protocols.positions import Span
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.snapshot import Snapshot

Kind = Literal["quickfix", "refactor.rewrite", "refactor.extract", "source.sortKeys.tamis"]
KINDS: tuple[Kind, ...] = (
    "quickfix",
    "refactor.rewrite",
    "refactor.extract",
    "source.sortKeys.tamis",
)


class FileChange(msgspec.Struct, frozen=True):
    """What happens to one file: edits of the text that is there, or a new file (``create``) with a text.

    ``path`` empty means the document that was asked about.
    """

    path: str = ""
    edits: tuple[Edit, ...] = ()
    create: bool = False
    text: str = ""


class Refactoring(msgspec.Struct, frozen=True):
    """One action. ``disabled`` says why it cannot be done; ``slug`` names the finding that it mends, if any.

    ``notes`` are said to the user with it: what was assumed or is lost. ``snippet`` is the edit's text with tab stops, for one
    edit and clients that know them.
    """

    title: str
    kind: Kind
    changes: tuple[FileChange, ...] = ()
    preferred: bool = False
    disabled: str = ""
    code: str = ""
    notes: tuple[str, ...] = ()
    snippet: str = ""


def refactorings(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """What can be done at a selection. Never raises on any text."""
    find = answer(snapshot, "refactor")
    return find(snapshot, span) if find is not None else []
