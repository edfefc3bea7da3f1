"""What every message on the wire stands on: the version of the contract, names in camelCase, places in a text.

Ranges are LSP ranges in the negotiated encoding; without negotiation they count code points and carry ``offset``. Must not know
what stands at a place.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

RPC_VERSION = 1


class Wire(msgspec.Struct, rename="camel"):
    """Base of everything on the wire: camelCase names. Keyword construction is set by each class: it is not inherited."""


class Position(Wire, kw_only=True):
    """Zero-based line and character, in the negotiated encoding."""

    line: int
    character: int


class Range(Wire, kw_only=True):
    """An LSP range; ``offset`` (code points, half open) is there when no encoding was negotiated."""

    start: Position
    end: Position
    offset: tuple[int, int] | UnsetType = UNSET


class TextEdit(Wire, kw_only=True):
    """An LSP text edit."""

    range: Range
    new_text: str
