"""How many tokens a text is: exact where the extra ``tokens`` is installed, else the estimate.

The extra brings a tokenizer with its tables in the wheel, so nothing is fetched. It is loaded at the first count (about 50 ms
and 45 MB per vocabulary), never at start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from tamis.protocols.tokens import Encoding, estimate_tokens


def count_tokens(text: str, encoding: Encoding = "o200k_base") -> tuple[int, bool]:
    """The number of tokens of ``text``, and whether it is exact.

    What looks like a special token (``<|endoftext|>``) counts as the text that it is; a lone surrogate counts as U+FFFD.
    """
    encode = _encoder(encoding)
    if encode is None:
        return estimate_tokens(text, encoding), False
    try:
        return len(encode(text)), True
    except UnicodeEncodeError:
        return len(encode(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))), True


@functools.cache
def _encoder(encoding: Encoding) -> Callable[[str], list[int]] | None:
    try:
        import splintr
    except ImportError:
        return None
    return splintr.Tokenizer.from_pretrained(encoding).encode_ordinary
