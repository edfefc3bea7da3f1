"""Whether what stands behind ``<ACTION>`` in the middle of a line is the start of a call that was cut off, or a mention.

Prose names the markup (``the <ACTION><tool> form``), a model writes it and goes on with content. Nothing runs either way;
the difference is whether anybody learns of the lost call (ruling 6). Must not know blocks, findings or tools beyond names.
"""

from __future__ import annotations

from collections.abc import Container

from tamis.protocols.action.names import TOOL_ID_ALIASES, WRAPPERS
from tamis.protocols.patterns import lazy

_NAME = r"[^\W\d][\w.:\-/]{0,255}+"
_TAG = lazy(rf"(?P<gap>\s{{0,400}}+)<(?P<name>{_NAME})(?P<attrs>\s[^<>]{{0,400}}+)?>")
_TAG_HALF = lazy(rf"\s{{0,400}}+<{_NAME}(?:\s++[\w\-]++\s*+=\s*+(?:[\"'][^<>]*+)?)?\Z")
_SECTION = lazy(r"\s{0,400}+<!(?:--|\[CDATA\[)")
_REST_BLANK = lazy(r"\s{0,400}+\Z")
_PROSE = lazy(r"[ \t]|[`\"'’”)\]}.,;:!?…，。；：！？、）】」/|\\]")
_ID = lazy(r"(?:[ \t]*+\r?\n\s{0,400}+)?\w[\w.:\-/@]{0,255}+\s{0,400}+(?:\Z|<)")
_JSON = lazy(r"\s{0,400}+\{\s{0,400}+(?:[\"}]|\Z)")
_PLACEHOLDERS = frozenset({"name", "tag", "function_name"}) | WRAPPERS | TOOL_ID_ALIASES


def starts_call(text: str, start: int, end: int, tools: Container[str]) -> bool:
    """True when ``text[start:end]``, which follows an opening marker and closes no element, begins a call.

    That is an element, with only blanks before it, that either the text ends in or that holds the start of a parameter. What
    prose puts behind a tag (a blank on the line, a quote, a full stop) makes it a mention, except where a registered tool or
    a line break between the tags says otherwise. Looks at a bounded stretch.
    """
    part = text[start : min(end, start + 2_000)]
    whole = end - start == len(part)
    tag = _TAG.match(part)
    if tag is None:
        return whole and _TAG_HALF.match(part) is not None
    at, name = tag.end(), tag.group("name")
    if name.lower() in TOOL_ID_ALIASES and _ID.match(part, at) is not None:
        return True
    if whole and _REST_BLANK.match(part, at) is not None:
        return name.lower() not in _PLACEHOLDERS or tag.group("attrs") is not None or "\n" in tag.group("gap")
    if _SECTION.match(part, at) is not None or _JSON.match(part, at) is not None:
        return True
    inner = _TAG.match(part, at)
    if inner is None:
        return whole and _TAG_HALF.match(part, at) is not None
    if name in tools or "\n" in inner.group("gap"):
        return True
    return inner.end() == len(part) or _PROSE.match(part, inner.end()) is None
