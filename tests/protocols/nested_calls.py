"""Blocks with a whole block in a value: every outer form with every inner one, cut or with one fault (ruling 50)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

OUTER_TOOL = "Note.write"
INNER_TOOL = "Danger"


class Form(NamedTuple):
    """How one call with the parameters ``first``, ``body`` and ``last`` is written."""

    name: str
    protocol: str
    head: str
    """Up to the start of ``body``'s value."""
    tail: str
    """From the end of the value on."""
    json: bool = False

    def parts(self, tool: str) -> tuple[str, str]:
        """What stands before and behind the value."""
        return _named(self.head, tool), _named(self.tail, tool)

    def value(self, value: str) -> str:
        """The value as it is written."""
        return json.dumps(value, ensure_ascii=False)[1:-1] if self.json else value


def _named(part: str, tool: str) -> str:
    # The markers' own word is no place for the tool's name.
    return part.replace("TOOL", tool).replace("\0", "TOOL")


def _forms() -> Iterator[Form]:
    yield Form(
        "action tag",
        "action",
        "<ACTION>\n<TOOL>\n<first>1</first>\n<body>",
        "</body>\n<last>z</last>\n</TOOL>\n</ACTION>",
    )
    yield Form(
        "action inputs",
        "action",
        '<ACTION>\n<tool_id>TOOL</tool_id>\n<inputs>\n<input name="first">1</input>\n<input name="body">',
        '</input>\n<input name="last">z</input>\n</inputs>\n</ACTION>',
    )
    yield Form(
        "tam",
        "tam",
        "<|[REQUEST_\0]|>\ncommand:»»»TOOL«««\nfirst:»»»1«««\nbody:»»»",
        "«««\nlast:»»»z«««\n<|[END_\0]|>",
    )
    yield Form(
        "vcp",
        "vcp",
        "<<<[\0_REQUEST]>>>\ntool_name:「始」TOOL「末」,\nfirst:「始」1「末」,\nbody:「始」",
        "「末」,\nlast:「始」z「末」\n<<<[END_\0_REQUEST]>>>",
    )
    yield Form(
        "vcp escape",
        "vcp",
        "<<<[\0_REQUEST]>>>\ntool_name:「始」TOOL「末」,\nfirst:「始」1「末」,\nbody:「始ESCAPE」",
        "「末ESCAPE」,\nlast:「始」z「末」\n<<<[END_\0_REQUEST]>>>",
    )
    yield Form(
        "hermes",
        "hermes",
        '<tool_call>\n{"name": "TOOL", "arguments": {"first": "1", "body": "',
        '", "last": "z"}}\n</tool_call>',
        json=True,
    )
    yield Form(
        "json",
        "json",
        '{"toolName": "TOOL", "arguments": {"first": "1", "body": "',
        '", "last": "z"}}',
        json=True,
    )


FORMS = {form.name: form for form in _forms()}


def written(form: Form, tool: str, value: str) -> str:
    """The block with the value in it."""
    head, tail = form.parts(tool)
    return head + form.value(value) + tail


def inner_value(form: Form) -> str:
    """A value that quotes a whole block of the form."""
    return f"It is written\n{written(form, INNER_TOOL, 'x')}\nlike that."
