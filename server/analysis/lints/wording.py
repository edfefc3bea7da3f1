"""What is wrong with a description that a model reads: nothing in it, something left over, something hidden.

Pure functions over texts. Must not know JSON or where a description stands.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from tamis.protocols.invisible import HIDING
from tamis.protocols.patterns import lazy

TOOL_TOKENS = 600
PARAMETER_TOKENS = 200
_LOOKED_AT = 2_000
"""Characters of a description that slips are looked for in; what is hidden or opens a call is looked for in all of it.

The last two descriptions are remembered: a keystroke elsewhere looks at them again."""

_LEFT_OVER = lazy(
    r"\b(?:TODO|FIXME|TBD|XXX)\s*[:：(]"
    r"|(?i:lorem ipsum|description goes here|(?:your|insert|add|enter|put|write)[\w ]{0,20}\bdescription here)"
    r"|<(?:description|your[^<>]{0,30}|insert[^<>]{0,30})>|待补充|待完善|此处填写|在此填写"
)
_EMPTY_WORDS = lazy(
    r"(?i:\W*(?:todo|fixme|tbd|xxx|wip|n/?a|none|null|string|text|desc|description|test|foo|bar|asdf|placeholder"
    r"|描述|说明|参数|测试)?\W*)"
)
_WORD = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_FILLERS = frozenset(
    (
        *("a", "an", "the", "this", "that", "of", "for", "to", "is", "s", "your", "my", "its", "be", "used", "in"),
        *("parameter", "param", "argument", "arg", "value", "field", "input", "option", "tool", "function", "string"),
        *("number", "integer", "boolean", "list", "array", "object", "specifies", "specify", "provide", "provided"),
    )
)
_HIDDEN = re.compile(f"[{HIDING}]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_SPOKEN = lazy(
    r"(?i:\b(?:parameters?|arguments?|params?|options?)\b[ :]{1,2}|参数\s?)[`'\"]([A-Za-z_][\w-]{0,63})[`'\"]"
    r"|[`'\"]([A-Za-z_][\w-]{0,63})[`'\"](?i:\s(?:parameter|argument|param)\b|\s?参数)"
)
_CODE = lazy(r"`([A-Za-z_][\w-]{0,63})`")


@lru_cache(maxsize=2)
def placeholder(text: str) -> str | None:
    """What was left over in a description, or None."""
    if _EMPTY_WORDS.fullmatch(text):
        return text.strip() or None
    found = _LEFT_OVER.search(text, 0, _LOOKED_AT)
    return found.group().strip() if found else None


def words(text: str) -> list[str]:
    """The words of a name or sentence in small letters: ``userId`` and ``User ID`` are the same two."""
    return [word.lower() for word in _WORD.findall(text)]


def repeats(text: str, name: str) -> bool:
    """Whether a description says nothing beyond a name."""
    if len(text) > 160:
        return False
    named = frozenset(words(name))
    if not named:
        return False
    for found in _WORD.finditer(text):  # most descriptions say something with their first words
        word = found.group().lower()
        if word not in named and word not in _FILLERS and word.rstrip("s") not in named:
            return False
    return True


@lru_cache(maxsize=2)
def hidden(text: str) -> str | None:
    """What invisible characters a text holds, in words; joiners of scripts and of emoji are none."""
    if text.isascii() or _HIDDEN.search(text) is None:
        return None
    chars = dict.fromkeys(_HIDDEN.findall(_FLAG.sub("", text)))
    if not chars:
        return None
    shown = ", ".join(f"U+{ord(char):04X}" for char in list(chars)[:4])
    return f"invisible characters ({shown}{'…' if len(chars) > 4 else ''})"


def without_hidden(text: str) -> str:
    """The text without what ``hidden`` finds."""
    return "".join(part if _FLAG.fullmatch(part) else _HIDDEN.sub("", part) for part in _FLAGS.split(text))


_FLAGS = re.compile(f"({_FLAG.pattern})")


def call_marker(text: str) -> str | None:
    """The first marker in a text that would open a call."""
    if not any(char in text for char in "<＜《"):
        return None
    found = _openers().search(text)
    return found.group().strip() if found else None


@cache
def _openers() -> re.Pattern[str]:
    from tamis.protocols.plugins import BUILT_IN, find_protocol

    protocols = [find_protocol(name) for name in BUILT_IN]
    return re.compile("|".join(f"(?:{protocol.opener.pattern})" for protocol in protocols if protocol is not None))


def named_parameters(text: str) -> list[tuple[str, bool]]:
    """The names that a description speaks of as parameters, each once; False for one that only stands in code marks."""
    found: dict[str, bool] = {}
    if "`" in text or "'" in text or '"' in text:
        for match in _SPOKEN.finditer(text, 0, _LOOKED_AT):
            found[match[1] or match[2]] = True
        for match in _CODE.finditer(text, 0, _LOOKED_AT):
            found.setdefault(match[1], False)
    return list(found.items())


@lru_cache(maxsize=2)
def too_long(text: str, limit: int) -> int:
    """The estimated tokens of a text above ``limit``, else 0; short texts are not counted, very long ones by their first part."""
    # No text has more tokens than characters and a half.
    if len(text) * 1.5 <= limit:
        return 0
    from tamis.protocols.tokens import estimate_tokens

    counted = text[: 4 * _LOOKED_AT]
    count = estimate_tokens(counted)
    count = count if len(counted) == len(text) else round(count * len(text) / len(counted))
    return count if count > limit else 0
