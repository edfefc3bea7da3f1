"""What a person must know of what ran: manifests and scripts that are not saved. Must not know how anything is run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.lsp.documents import Document, uri_of
from tamis.server.lsp.running.unsaved import is_unsaved

if TYPE_CHECKING:
    from tamis.server.runtime.registry.registry import Tool


def unsaved_notes(documents: Mapping[str, Document], document: Document, tools: Sequence[Tool]) -> tuple[str, ...]:
    """What differs from the files of the tools, of the open documents and the one that was run from; looks at the disk."""
    notes: list[str] = []
    for tool in dict.fromkeys(tools):
        shown = document if tool.path == document.path else documents.get(uri_of(tool.path))
        if shown is not None and is_unsaved(shown):
            what = {"workflow": "graph", "node": "definition"}.get(tool.origin, "manifest")
            clean = _reads_clean(tool, shown.text)
            as_it_is = f"ran with its {what} as it stands in the editor, which is not saved"
            last = f"ran with the last version of its {what} that read clean; the one in the editor has errors"
            notes.append(f"{tool.tool_id} {as_it_is if clean else last}")
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript):
            script = documents.get(uri_of(os.path.join(tool.folder, handler.script_path)))
            if script is not None and is_unsaved(script):
                notes.append(f"the script of {tool.tool_id} is not saved; the file on disk was run")
    return tuple(notes)


def _reads_clean(tool: Tool, text: str) -> bool:
    if tool.origin == "workflow":
        from tamis.protocols.workflow.reading import read_workflow

        return read_workflow(text, tool.tool_id.partition(":")[2]).workflow is not None
    if tool.origin == "node":
        from tamis.protocols.manifest.node import read_nodes

        return not read_nodes(text).faults
    from tamis.protocols.manifest.reading import read_manifest

    return read_manifest(text).manifest is not None
