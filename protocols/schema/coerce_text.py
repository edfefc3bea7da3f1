"""One text to one typed scalar, without loss and never silently (ruling 2).

A text is read as what it plainly is, or loosely with a warning (``30000.0`` for an integer, ``True``), or refused: nothing is
rounded, cut or guessed. Must not know schemas beyond the names of types.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Literal

import msgspec

from tamis.protocols.model import Json

MAX_DIGITS = 4_000
_INTEGER = re.compile(r"[+-]?[0-9]+")
_PLAIN_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LOOSE_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BLANKS = " \t\r\n"
_EXACT_FLOAT = 2**53
_YES_NO = {
    **dict.fromkeys(("yes", "y", "on", "1", "是", "对", "真", "enabled", "t"), "true"),
    **dict.fromkeys(("no", "n", "off", "0", "否", "不", "假", "disabled", "f"), "false"),
}


class Read(msgspec.Struct, frozen=True):
    """A text that could be read as a scalar; ``loose`` when the spelling is not the canonical one."""

    value: Json
    loose: bool = False


class Refused(msgspec.Struct, frozen=True):
    """Why a text is no value of a type: it is something else, or it would lose digits."""

    why: Literal["other", "lossy", "too-long"] = "other"
    suggestion: str | None = None


_OTHER = Refused()


def read_scalar(text: str, wanted: str) -> Read | Refused:
    """Reads a text as ``integer``, ``number``, ``boolean`` or ``null``; blanks around it do not count."""
    text = text.strip(_BLANKS)
    if wanted == "integer":
        return _integer(text)
    if wanted == "number":
        return _number(text)
    if wanted == "boolean":
        return _boolean(text)
    return Read(None) if text == "null" else _OTHER


def _integer(text: str) -> Read | Refused:
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            return Refused("too-long")
        return Read(int(text), _PLAIN_INTEGER.fullmatch(text) is None or text == "-0")
    if not _LOOSE_NUMBER.fullmatch(text):
        return _OTHER
    if len(text) > MAX_DIGITS:
        return Refused("too-long")
    value = float(text)
    # Above 2**53 a float no longer says which integer was meant.
    if value.is_integer() and abs(value) < _EXACT_FLOAT and _is_exact(text):
        return Read(int(value), loose=True)
    return Refused("lossy")


def _is_exact(text: str) -> bool:
    """Whether the digits that the text gives are all in the integer: ``5.0000000000000000001`` is none."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    shift = int(exponent) if exponent and len(exponent) < 6 else 0
    if shift >= 0:
        return not fraction[shift:].strip("0")
    return not fraction.strip("0") and not whole.lstrip("+-")[shift:].strip("0")


def _number(text: str) -> Read | Refused:
    if not _LOOSE_NUMBER.fullmatch(text):
        return _OTHER
    if len(text) > MAX_DIGITS:
        return Refused("too-long")
    loose = _NUMBER.fullmatch(text) is None
    if _INTEGER.fullmatch(text):
        return Read(int(text), loose or text == "-0")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return Refused("lossy")
    return Read(value, loose)


def _boolean(text: str) -> Read | Refused:
    if text == "true":
        return Read(True)
    if text == "false":
        return Read(False)
    folded = text.lower()
    if folded in ("true", "false"):
        return Read(folded == "true", loose=True)
    return Refused("other", _YES_NO.get(folded))


def base64_bytes(text: str) -> bytes | None:
    """The bytes of base64 text in either alphabet, with blanks in it and without padding too; None where it is none."""
    compact = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
