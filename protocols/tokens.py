"""A token estimate for prompt texts, without a tokenizer's tables.

Words, digits, punctuation and CJK characters weigh what they weigh on average in the byte-pair vocabularies of 2024-2026
models. An estimate, and called one wherever it is shown. Pure.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z]+|\d{1,3}|\s+|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]|.", re.DOTALL)


def estimate_tokens(text: str) -> int:
    """About how many tokens a model reads for ``text``."""
    total = 0.0
    for match in _WORD.finditer(text):
        part = match.group()
        first = part[0]
        if first.isascii() and first.isalpha():
            total += 1 if len(part) <= 8 else len(part) / 6
        elif first.isspace():
            total += 0 if part == " " else 0.7
        elif first.isascii():
            total += 1 if first.isdigit() else 0.7
        else:
            total += 1.1
    return round(total)
