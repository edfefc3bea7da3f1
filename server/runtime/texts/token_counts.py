"""How many tokens a text is: exact where the extra ``tokens`` is installed, else the estimate.

The extra brings a tokenizer with its tables in the wheel, so nothing is fetched. It is loaded at the first count (about 150 ms
and 45 MB per vocabulary), never at start.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from tamis.protocols.tokens import Encoding, estimate_tokens

PIECE_CHARS = 32_768
_CUT = re.compile(r"\n(?=[A-Za-z0-9<])")


def count_tokens(text: str, encoding: Encoding = "o200k_base") -> tuple[int, bool]:
    """The number of tokens of ``text``, and whether it is exact.

    What looks like a special token (``<|endoftext|>``) counts as the text that it is; a lone surrogate counts as U+FFFD.
    """
    encode = _encoder(encoding)
    if encode is None:
        return sum(estimate_tokens(piece, encoding) for piece in _pieces(text)), False
    return sum(_counted(encode, piece) for piece in _pieces(text)), True


def _counted(encode: Callable[[str], list[int]], text: str) -> int:
    try:
        return len(encode(text))
    except UnicodeEncodeError:
        return len(encode(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")))


def _pieces(text: str) -> Iterator[str]:
    """The text in parts that are counted apart: other threads get their turn between two, not within one (R4).

    Cut behind a line's end before a letter, a digit or `<`, where no token of either vocabulary reaches across.
    """
    start = 0
    while len(text) - start > PIECE_CHARS and (cut := _CUT.search(text, start + PIECE_CHARS)) is not None:
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:] if start else text


@functools.cache
def _encoder(encoding: Encoding) -> Callable[[str], list[int]] | None:
    try:
        import splintr
    except ImportError:
        return None
    tokenizer = splintr.Tokenizer.from_pretrained(encoding)
    # The first text that is no single token has it build tables for 0.1 s. Of its methods only those for several texts let other
    # threads of the process work meanwhile (R4).
    tokenizer.encode_batch(["zq zqx"])
    return tokenizer.encode_ordinary
