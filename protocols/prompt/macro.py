"""The ``{{tools}}`` macro (seed 001 §6): its metadata, and the filling of a template. Must not know what its value is made of."""

from __future__ import annotations

import re

from tamis.protocols.contract import PromptMacro

MACRO = "{{tools}}"
_MACRO = re.compile(r"(\\?)\{\{tools\}\}")

TOOLS_MACRO = PromptMacro(
    name="tools",
    type="VALUE",
    phase="SUBSTITUTE",
    description="Injects the definitions of the tools that the current agent may call, in the protocol's format",
    example=MACRO,
    accepts_args=False,
    priority=95,
    supported=True,
    context_free=False,
)
"""What a macro engine registers it with (V30)."""


def fill(template: str, value: str) -> tuple[str, int]:
    """The template with ``value`` for every ``{{tools}}``, and how many there were.

    ``\\{{tools}}`` stands for the letters ``{{tools}}``. Nothing else is touched: other macros, ``{{ tools }}`` and ``{{tools::x}}``
    (the macro takes no arguments) stay byte for byte, and what was filled in is not looked at again.
    """
    count = 0

    def put(match: re.Match[str]) -> str:
        nonlocal count
        if match.group(1):
            return MACRO
        count += 1
        return value

    return _MACRO.sub(put, template), count
