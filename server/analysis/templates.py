"""Blocks that are no calls of anybody: templates with a placeholder for the tool, and elements of HTML that only look like a block; and which
blocks of a text stand in one turn. Pure; must not know what is said of them.
"""

from __future__ import annotations

import re

from tamis.protocols.model import Block
from tamis.protocols.plugins import extras_of
from tamis.server.analysis.snapshot import Snapshot

_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\{%.*%\}|\$\{.*\}|\{\w+\}|<[\w .:-]+>|%\w+%|\.\.\.|…", re.S)
_ELEMENT = re.compile(r"<\s*/?\s*(?:\{\{|\{%|\$\{)")
_STOCK = re.compile(r"(?:your[_-]?)?tool[_-]?(?:name|id)(?:[_-]?here)?|your[_-]?tool(?:[_-]?here)?", re.I)
_HTML = frozenset(
    (
        "a",
        "b",
        "br",
        "button",
        "code",
        "div",
        "em",
        "form",
        "h1",
        "h2",
        "h3",
        "i",
        "img",
        "input",
        "label",
        "li",
        "ol",
        "option",
        "p",
        "pre",
        "select",
        "span",
        "strong",
        "svg",
        "table",
        "td",
        "textarea",
        "th",
        "tr",
        "u",
        "ul",
    )
)
_PART = re.compile(r"^(?:#{1,6}[ \t]|(?:-{3,}|\*{3,}|_{3,})[ \t]*$)", re.M)


def is_template(snapshot: Snapshot, block: Block) -> bool:
    """Whether a block has a placeholder where its tool would stand: it shows how a call is written, and calls nothing."""
    if any(_stands_for_a_tool(call.tool_id) and snapshot.tool(call.tool_id) is None for call in block.calls):
        return True
    return extras_of(block.protocol).elements and _ELEMENT.search(snapshot.text, *block.span) is not None


def _stands_for_a_tool(tool_id: str) -> bool:
    return _PLACEHOLDER.fullmatch(tool_id) is not None or _STOCK.fullmatch(tool_id) is not None


def is_markup(snapshot: Snapshot, block: Block) -> bool:
    """Whether a block is an element ``<action>`` of a page: not written as a block's marker is, and with nothing in it but text or HTML."""
    if not extras_of(block.protocol).elements or snapshot.text[block.open[0] : block.open[1]].lstrip("<").startswith(
        "ACTION"
    ):
        return False
    return all(call.tool_id.lower() in _HTML and snapshot.tool(call.tool_id) is None for call in block.calls)


def later_in_turn(snapshot: Snapshot) -> list[Block]:
    """The ACTION blocks that stand behind another one in the same turn: a heading or a rule between them parts turns (ruling 14)."""
    found: list[Block] = []
    before: Block | None = None
    for block in snapshot.document.blocks:
        if block.aside or not extras_of(block.protocol).elements or is_markup(snapshot, block):
            continue
        if before is not None and _PART.search(snapshot.text, before.span[1], block.span[0]) is None:
            found.append(block)
        before = block
    return found
