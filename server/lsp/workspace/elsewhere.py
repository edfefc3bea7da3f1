"""Places in files that need not be open: their text, their URI, and their ranges in the client's units (ruling 9).

An open document counts as the editor has it, other files as the index has them, and scripts as they stand on disk. Line starts
are found once per file and answer. Must not know which verb asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tamis.protocols.positions import LineIndex, Span
from tamis.server.lsp.documents import uri_of

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session


class Elsewhere:
    """The files of one answer."""

    def __init__(self, session: Session, snapshot: Snapshot | None = None) -> None:
        self._session = session
        self._index = session.workspace.index
        self._snapshot = snapshot
        self._lines: dict[str, LineIndex] = {}
        self._texts: dict[str, str | None] = {}

    def uri(self, path: str) -> str:
        """The URI of a path; what is one already (a document that was never saved) stays."""
        document = self.document(path)
        return document.uri if document is not None else uri_of(path) if path.startswith("/") else path

    @property
    def settings_file(self) -> str:
        """The ``tamis.toml`` of the folder that the asked document lies in; empty where there is none."""
        root = None if self._snapshot is None else self._session.workspace.root_of(self._snapshot.path)
        return "" if root is None else f"{root.path.rstrip('/')}/tamis.toml"

    def document(self, path: str) -> Document | None:
        """The open document of a path."""
        documents = self._session.documents
        document = documents.get(uri_of(path)) if path.startswith("/") else documents.get(path)
        if document is not None or not path.startswith("/"):
            return document
        # Clients spell URIs in their own ways.
        return next((document for document in list(documents.values()) if document.path == path), None)

    def text(self, path: str) -> str | None:
        """The text of a file, or None where there is none to be had."""
        if path not in self._texts:
            self._texts[path] = self._find(path)
        return self._texts[path]

    def _find(self, path: str) -> str | None:
        if self._snapshot is not None and path == self._snapshot.path:
            return self._snapshot.text
        document = self.document(path)
        if document is not None:
            return document.text
        if self._index.knows(path):
            return self._index.text(path)
        from tamis.server.runtime.tools.loader import FoundFile, read_manifest_file

        manifest_file = read_manifest_file(path) if path.startswith("/") else None
        return manifest_file.text if isinstance(manifest_file, FoundFile) else None

    def range(self, path: str, span: Span) -> dict[str, Any]:
        """A span of a file as an LSP range."""
        lines = self._lines.get(path)
        if lines is None:
            lines = self._lines[path] = LineIndex(self.text(path) or "")
        encoding = self._session.encoding
        start, end = lines.position(span[0], encoding), lines.position(span[1], encoding)
        return {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        }

    def location(self, path: str, span: Span) -> dict[str, Any]:
        """A span of a file as an LSP location."""
        return {"uri": self.uri(path), "range": self.range(path, span)}


def asked(session: Session, uri: str) -> tuple[Document, Snapshot] | None:
    """A document and its snapshot, with an index that has every open document as it stands; None for one that is not open."""
    document = session.documents.get(uri)
    if document is None:
        return None
    snapshot = session.workspace.snapshot(document, wait=0.5)
    session.workspace.settle()
    if snapshot.kind == "text" and session.workspace.index.knows(snapshot.path):
        session.workspace.index.take_reading(snapshot.path, snapshot.document)
    return document, snapshot


def offset_of(document: Document, position: Any) -> int:
    """The code-point offset of an LSP position."""
    return document.lines.offset(position.line, position.character, document.encoding)


def all_read(session: Session, seconds: float) -> bool:
    """Waits until every folder was read once, and what the client told of changed files was read too; says whether that is so."""
    end = time.monotonic() + seconds
    if not all(root.indexed.wait(max(0.0, end - time.monotonic())) for root in session.workspace.roots):
        return False
    settled = threading.Event()
    # Its turn comes behind the files.
    session.scanner.later(settled.set)
    return settled.wait(max(0.0, end - time.monotonic()))


def looked_again(session: Session, paths: Iterable[str]) -> bool:
    """Reads files that are not open once more before they are edited; says whether any of them has changed or is gone."""
    from tamis.server.runtime.tools.loader import FoundFile, read_manifest_file

    index = session.workspace.index
    changed = False
    for path in dict.fromkeys(paths):
        if session.workspace.is_open(path) or not path.startswith("/"):
            continue
        manifest_file = read_manifest_file(path)
        text = manifest_file.text if isinstance(manifest_file, FoundFile) else None
        if text is None:
            index.remove(path)
        elif text != index.text(path):
            index.update(path, text)
        else:
            continue
        changed = True
    return changed
