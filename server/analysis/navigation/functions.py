"""Where a script defines a function: found in its text, which is never run or imported.

For Python and for JavaScript and TypeScript in the spellings that people write; the first definition at the outermost level wins. A
dotted name leads through a class. Must not know manifests.
"""

from __future__ import annotations

import re

from tamis.protocols.positions import Span

_MAX_CHARS = 4 * 1024 * 1024
_SCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx")


def find_function(text: str, name: str, path: str) -> Span | None:
    """The place of a function's name in a script, or None. ``name`` may be ``Class.method``."""
    if not name or len(text) > _MAX_CHARS:
        return None
    find = _in_javascript if path.endswith(_SCRIPT) else _in_python
    start, end = 0, len(text)
    found: Span | None = None
    for part in name.split("."):
        found = find(text, part, start, end)
        if found is None:
            return None
        start = found[1]
    return found


def _in_python(text: str, name: str, start: int, end: int) -> Span | None:
    word = re.escape(name)
    pattern = re.compile(
        rf"(?m)^([ \t]*)(?:async[ \t]+def|def|class)[ \t]+({word})\b|^()({word})[ \t]*(?::[^=\n]+)?=(?!=)"
    )
    return _outermost(pattern, text, start, end)


def _in_javascript(text: str, name: str, start: int, end: int) -> Span | None:
    word = re.escape(name)
    named = rf"(?<![\w$.]){word}(?![\w$])"
    for body in (
        rf"(?m)^([ \t]*)(?:export[ \t]+)?(?:default[ \t]+)?(?:async[ \t]+)?(?:function[ \t]*\*?|class)[ \t]*({named})",
        rf"(?m)^([ \t]*)(?:export[ \t]+)?(?:const|let|var)[ \t]+({named})[ \t]*[=:]",
        rf"(?m)^([ \t]*)(?:module\.)?exports\.({word})(?![\w$])[ \t]*=",
        rf"(?m)^([ \t]*)(?:static[ \t]+)?(?:async[ \t]+)?\*?[ \t]*({named})[ \t]*\([^\n]{{0,2000}}\)[ \t]{{0,8}}(?::[^\n{{]{{1,200}})?\{{",
        rf"(?m)^([ \t]*)[\"']?({named})[\"']?[ \t]*:[ \t]*(?:async\b|function\b|\()",
        rf"(?m)^([ \t]*)export[ \t]*\{{[^{{}}]*?\bas[ \t]+({word})\b",
        rf"(?m)^([ \t]*)(?:module\.exports[ \t]*=[ \t]*|export[ \t]*)\{{[^{{}}]*?({named})",
    ):
        found = _outermost(re.compile(body), text, start, end)
        if found is not None:
            return found
    return None


def _outermost(pattern: re.Pattern[str], text: str, start: int, end: int) -> Span | None:
    """The match with the least indentation; of equal ones the last, which is the one that counts when a script runs."""
    best: tuple[int, Span] | None = None
    for match in pattern.finditer(text, start, end):
        group = 2 if match[2] is not None else 4
        depth = len((match[1] or "").expandtabs(8))
        if best is None or depth <= best[0]:
            best = (depth, match.span(group))
    return best[1] if best is not None else None
