"""A call that is ready to run but for a person's word, and the digests of what such a word is about.

Must not know who is asked, nor what was answered.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.policy.contents import contents_digest
from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.tools.builtin import ScriptTarget
from tamis.server.runtime.tools.registry import Tool

_FORM = "2"
"""Of what the digests are made. Answers of an earlier form are asked for again: they say nothing of the files beside the script."""


class Prepared(msgspec.Struct, frozen=True):
    """A tool with the arguments, the script and the rights that it would run with."""

    tool: Tool
    args: dict[str, Any]
    target: ScriptTarget | None
    rights: Grant
    server: tuple[Tool, Any] | None = None
    """The MCP server that the tool is one of, as a tool, and what the settings say of it."""
    contents: str = ""
    """What a person's word is bound to of the folder; empty where nobody had to be asked."""


def tool_digest(ready: Prepared, *scope: str) -> str:
    """What a tool is and may do: id, version, manifest, files, rights; with ``scope`` whatever else an answer is bound to."""
    tool, declared = ready.tool, None if ready.server is None else ready.server[1]
    granted = msgspec.to_builtins(ready.rights.permissions.granted)
    parts = [tool.tool_id, tool.manifest.version, tool.manifest.raw, declared, contents_of(ready), granted, *scope]
    return f"{_FORM}:{_digest(parts)}"


def contents_of(ready: Prepared) -> str:
    """What the folder holds that the call would run; empty where no script is run."""
    if ready.target is not None:
        return script_contents(ready.tool, ready.target, ready.rights)
    if ready.server is None:
        return ""
    stand_in, _ = ready.server
    handler = stand_in.manifest.handler
    assert isinstance(handler, ExternalScript)
    return contents_digest(stand_in.folder, handler, (), _written(ready.rights))


def script_contents(tool: Tool, target: ScriptTarget, rights: Grant) -> str:
    """The same of a script that is run once."""
    return contents_digest(target.folder, target.handler, tool.manifest.execution.files, _written(rights))


def _written(rights: Grant) -> tuple[str, ...]:
    """What the tool may change itself is no part of what it is."""
    return tuple(folder.path for folder in (*rights.write, *rights.own_write))


def call_digest(ready: Prepared, *scope: str) -> str:
    """What a call is: its tool as in ``tool_digest``, and its arguments."""
    return _digest([tool_digest(ready, *scope), ready.args])


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
