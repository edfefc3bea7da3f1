"""Hermes' blocks in an editor: their markers, around a call that is JSON."""

from __future__ import annotations

from typing import Final

from tamis.protocols.editing import Editing
from tamis.protocols.patterns import lazy


class HermesEditing(Editing):
    """See ``Editing``."""

    begin = "<tool_call>"
    empty_call = '<tool_call>\n{{"name": "{0}", "arguments": {{}}}}\n</tool_call>'
    call_title = "Hermes call"
    json_block = (lazy("(?i:<tool_call>)"), lazy(r"(?i:</tool_call\s{0,8}>)"))


EDITING: Final = HermesEditing()
