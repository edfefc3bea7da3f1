"""Regular expressions that are compiled when they are first used.

Reading a plain text needs few of the patterns that reading a broken block needs, and compiling them all would cost more than
the rest of a command's start. Must not know what any pattern is for.
"""

from __future__ import annotations

import re
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


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like ``re.compile``, but a mistake in the pattern shows at its first use (every one is used in a test)."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))
