"""Parameter names in TAM: how a written key becomes a name and a step number (ruling 20).

Also what makes a name suspicious to a person's eye. Must not know blocks, delimiters or diagnostics.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from tamis.protocols.invisible import IN_LAYOUT

_WORD = re.compile(r"[^\W_]*[a-z][^\W_]*")
"""A word with a small letter; one in capitals stays whole (``2ND``)."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"(.+?)(_?)(\d+)(_?)")
_CANONICAL = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SMALL_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789" * 2)
_MAX_STEP_DIGITS = 9
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Key(msgspec.Struct, frozen=True):
    """A normalised key: ``normal`` is the whole of it, ``base`` what stands before a trailing number.

    ``glued``: the number follows a letter directly (``base64``), so it may belong to the word.
    """

    normal: str
    base: str
    number: int | None = None
    digits: str = ""
    glued: bool = False
    bracketed: bool = False
    """The number is set in brackets or in small digits (``x[7]``, ``x₇``)."""

    @property
    def plain_number(self) -> bool:
        """Whether the number is written as a step number should be: ASCII digits, no leading zero."""
        return self.number is None or (self.digits == str(self.number) and not self.bracketed)


@lru_cache(maxsize=4096)
def parse_key(raw: str) -> Key:
    """Normalises one key as it was written; ``normal`` is empty when it has no letter or digit."""
    plain = raw if raw.isascii() else raw.translate(_SMALL_DIGITS)
    split = _WORD.sub(lambda word: _CAMEL.sub("_", word.group()), plain.strip())
    normal = _OTHER.sub("_", split).lower()
    if normal.strip("_") == "":
        return Key("", "")
    match = _NUMBER.fullmatch(normal)
    if match is None:
        return Key(normal, normal)
    base, gap, digits, rest = match.groups()
    if len(digits) > _MAX_STEP_DIGITS or base.strip("_") == "":
        return Key(normal, normal)
    return Key(normal, base, int(digits), digits, glued=not gap, bracketed=rest != "" or plain != raw)


def is_canonical(raw: str) -> bool:
    """Whether a key is written the way it is read, so that nothing needs to be said about it."""
    return _CANONICAL.fullmatch(raw) is not None


def squash(name: str) -> str:
    """A name without separators and case, the form in which keys and declared names are compared."""
    return _OTHER.sub("", name).casefold()


def declared_names(names: Iterable[str]) -> dict[str, str]:
    """Declared spellings by squashed name; of two that collide, the first."""
    by_squashed: dict[str, str] = {}
    for name in names:
        by_squashed.setdefault(squash(name), name)
    return by_squashed


def visible(name: str) -> str:
    """The name without characters that have no width."""
    if name.isascii():
        return name
    return "".join(char for char in name if char not in IN_LAYOUT)


def suspicious_script(name: str) -> str | None:
    """Why a name may not be what it looks like: a bidi control, or Latin letters mixed with their look-alikes."""
    if name.isascii():
        return None
    scripts: set[str] = set()
    for char in name:
        if char in _BIDI:
            return "bidi"
        if char.isalpha():
            word = unicodedata.name(char, "").split(" ", 1)[0]
            if word in ("LATIN", "CYRILLIC", "GREEK"):
                scripts.add(word)
    if "LATIN" in scripts and len(scripts) > 1:
        return "Cyrillic" if "CYRILLIC" in scripts else "Greek"
    return None
