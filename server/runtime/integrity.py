"""A script against the hash that its manifest pins (``execution.integrity``, D80)."""

from __future__ import annotations

import base64
import hashlib
import os

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.registry import Tool


def integrity_fault(tool: Tool) -> str:
    """Why the script is not the pinned one; empty when it is, or when nothing is pinned."""
    wanted = tool.manifest.execution.integrity
    handler = tool.manifest.handler
    if not wanted or not isinstance(handler, ExternalScript):
        return ""
    path = os.path.join(tool.folder, handler.script_path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            found = "sha256-" + base64.b64encode(hashlib.file_digest(stream, "sha256").digest()).decode()
    except OSError as error:
        return f"the script '{handler.script_path}' cannot be read to check execution.integrity: {error.strerror}"
    if found == wanted:
        return ""
    return f"the script '{handler.script_path}' is not the one that execution.integrity pins; it is {found}"
