"""Names that are made of a tool's id, and so become others with it: what exports call it, of a workflow also its bare name and its path.

Aliases are names of their own. Pure. Must not know LSP.
"""

from __future__ import annotations

import posixpath

from tamis.protocols.export.names import portable_name
from tamis.protocols.manifest.workflow import PREFIX
from tamis.server.analysis.index import WorkspaceIndex


def follows(index: WorkspaceIndex, tool_id: str, name: str, new: str, path: str = "") -> str | None:
    """What a name of a tool becomes when its id becomes ``new``; None for a name that stays. ``path``: the workflow's file."""
    if name == tool_id:
        return new
    if tool_id.startswith(PREFIX) and new.startswith(PREFIX):
        bare, then = tool_id.removeprefix(PREFIX), new.removeprefix(PREFIX)
        declared = [one for one in index.declarations(tool_id) if one.declared.kind == "workflow"]
        if name == bare:
            # The `id` in the file stays what it is.
            return None if any(one.declared.own_id == bare for one in declared) else then
        for file in (path, *(one.path for one in declared)):
            base = posixpath.basename(file)
            if base and f"/{file}".endswith(f"/{name}") and not any(one.declared.own_id == name for one in declared):
                return f"{name[: -len(base)]}{then}.{base.rpartition('.')[2]}"
    if name in index.exports(tool_id):
        gemini = name != portable_name(tool_id, "openai") and name == portable_name(tool_id, "gemini")
        return portable_name(new, "gemini" if gemini else "openai")
    return None
