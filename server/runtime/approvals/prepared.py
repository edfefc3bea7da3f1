"""A call that is ready to run but for a person's word, and the digests of what such a word is about.

Must not know who is asked, nor what was answered.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import msgspec

from tamis.server.runtime.registry.registry import Tool
from tamis.server.runtime.rights.permissions import Grant
from tamis.server.runtime.scripts.service import ScriptTarget

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
"""Of a longer script its beginning, its length and its time of change are what is compared."""


class Prepared(msgspec.Struct, frozen=True):
    """A tool with the arguments, the script and the rights that it would run with."""

    tool: Tool
    args: dict[str, Any]
    target: ScriptTarget | None
    rights: Grant


def tool_digest(ready: Prepared, *scope: str) -> str:
    """What a tool is and may do: id, version, manifest, script, rights; with ``scope`` whatever else an answer is bound to."""
    tool = ready.tool
    script = ""
    if ready.target is not None:
        script = _script(os.path.join(ready.target.folder, ready.target.handler.script_path))
    granted = msgspec.to_builtins(ready.rights.permissions.granted)
    return _digest([tool.tool_id, tool.manifest.version, tool.manifest.raw, script, granted, *scope])


def call_digest(ready: Prepared, *scope: str) -> str:
    """What a call is: its tool as in ``tool_digest``, and its arguments."""
    return _digest([tool_digest(ready, *scope), ready.args])


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _script(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_SCRIPT_BYTES + 1)
            state = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return "unreadable"
    rest = f"{state.st_size} {state.st_mtime_ns}" if len(data) > MAX_SCRIPT_BYTES else ""
    return hashlib.sha256(data).hexdigest() + rest
