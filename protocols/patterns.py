"""Regular expressions that are compiled when they are first used.

Reading a plain text needs few of the patterns that reading a broken block needs, and compiling them all would cost more than
the rest of a command's start. Must not know what any pattern is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

_METHODS = (
    "match",
    "fullmatch",
    "search",
    "finditer",
    "findall",
    "split",
    "sub",
    "subn",
    "flags",
    "groups",
    "groupindex",
)


class _Lazy:
    """Stands for a compiled pattern; its first use puts the compiled methods in place of itself."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._wanted_flags = flags

    def __getattr__(self, name: str) -> Any:
        # Called only while the name is not there: from the first use on, the bound methods are found directly.
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._wanted_flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


class _Signed:
    """Stands for a pattern that begins with one of a few signs, of which most texts have the first alone."""

    def __init__(self, signs: str, follow: str, rest: str) -> None:
        self.pattern = f"(?i:[{signs}]{rest})"
        self._whole = lazy(self.pattern)
        self._others = signs[1:]
        # A literal beginning, to which the regex engine jumps many times as fast as to one of a set of characters.
        self._first = lazy(f"{re.escape(signs[0])}(?=[{follow}])(?i:{rest})")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def finditer(self, text: str, at: int = 0) -> Iterator[re.Match[str]]:
        for sign in self._others:
            if text.find(sign, at) >= 0:
                return self._whole.finditer(text, at)
        return self._first.finditer(text, at)


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like ``re.compile``, but a mistake in the pattern shows at its first use (every one is used in a test)."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


def signed(signs: str, follow: str, rest: str) -> re.Pattern[str]:
    """A lazy pattern, in any letter case: one of ``signs``, and then ``rest``, which begins with one of the characters ``follow``.

    Its ``finditer`` is fast in texts that have only the first of the signs.
    """
    return cast("re.Pattern[str]", _Signed(signs, follow, rest))
