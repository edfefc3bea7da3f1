"""Whether an open document is what its file holds. Must not know what documents mean."""

from __future__ import annotations

import os

from tamis.server.lsp.documents import Document

MAX_BYTES = 64 * 1024 * 1024


def is_unsaved(document: Document) -> bool:
    """Whether the editor's text differs from the file, or there is no such file; looks at the disk."""
    if document.path is None:
        return True
    text = document.text.encode("utf-8", "surrogatepass")
    try:
        size = os.stat(document.path).st_size
        if size > MAX_BYTES or abs(size - len(text)) > len(b"\xef\xbb\xbf"):
            return True
        with open(document.path, "rb") as stream:
            return stream.read(MAX_BYTES).removeprefix(b"\xef\xbb\xbf") != text.removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return True
