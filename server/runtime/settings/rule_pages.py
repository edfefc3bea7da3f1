"""The page that explains each finding, shipped with the package: where it is, and what it says of one rule.

Looked for once and read only when someone asks for the words. Must not know findings.
"""

from __future__ import annotations

import os
import re
from functools import cache


def _page() -> str:
    # The same way from here in a check-out and in an installed package.
    here = os.path.realpath(__file__)
    return os.path.join(os.path.dirname(here), "..", "..", "..", "docs", "diagnostics.md")


@cache
def _base() -> str:
    from pathlib import Path

    page = Path(os.path.normpath(_page()))
    return page.as_uri() if page.is_file() else ""


def page_uri(code: str) -> str:
    """Where a finding is explained: a file URI with the rule's anchor; empty where the page is not installed."""
    base = _base()
    return f"{base}#{code.lower()}" if base else ""


@cache
def _sections() -> dict[str, str]:
    try:
        with open(_page(), encoding="utf-8") as stream:
            text = stream.read()
    except OSError:
        return {}
    pieces = re.split(r"(?m)^### ([A-Z]{2}\d{3}) .*\n", text)
    ends = re.compile(r"(?m)^(?:## |<a id=)")
    return {code: ends.split(body)[0].strip() for code, body in zip(pieces[1::2], pieces[2::2], strict=True)}


def page_text(code: str) -> str:
    """What the page says of a finding, as Markdown; empty where it says nothing."""
    return _sections().get(code, "")
