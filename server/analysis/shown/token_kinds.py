"""What a semantic token can be: kinds and modifiers by LSP's standard names, and what stands in for one that a client does not know."""

from __future__ import annotations

KINDS = (
    "keyword",
    "function",
    "parameter",
    "variable",
    "property",
    "string",
    "number",
    "operator",
    "comment",
    "enumMember",
    "type",
    "decorator",
)
MODIFIERS = ("declaration", "deprecated", "readonly", "defaultLibrary")

KEYWORD, FUNCTION, PARAMETER, VARIABLE, PROPERTY, STRING, NUMBER, OPERATOR, COMMENT, MEMBER, TYPE, DECORATOR = range(12)
DECLARATION, DEPRECATED, READONLY, KNOWN = 1, 2, 4, 8

INSTEAD = {
    "decorator": "keyword",
    "enumMember": "variable",
    "type": "class",
    "function": "method",
    "parameter": "variable",
}
"""For clients that know fewer kinds: the nearest one that most know."""


Token = tuple[int, int, int, int]
"""Start and end in code points, kind, modifiers (bits). A plain tuple: a long document has hundreds of thousands."""


def token(start: int, end: int, kind: int, modifiers: int = 0) -> Token:
    """A stretch of the text with its kind and modifiers."""
    return start, end, kind, modifiers
