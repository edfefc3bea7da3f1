"""Conversion of calls: a text in place, or a list of calls, to another protocol or to a vendor's call JSON.

Only calls that would run are converted. The text around the blocks stays byte for byte, and what was made is read again in
its place: a block whose calls would not run there is left as it is. Every loss is named. Must not know files or the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.base import PlainCall
from tamis.protocols.convert.calls import Conversion, ConvertOptions, convert_list, title_of
from tamis.protocols.convert.texts import TextConversion
from tamis.protocols.convert.vendors import VENDORS
from tamis.protocols.model import Document
from tamis.protocols.plugins import known_protocols

__all__ = ["Conversion", "ConvertOptions", "convert", "targets", "title_of"]


def targets() -> tuple[str, ...]:
    """Everything that calls can be converted to."""
    return (*known_protocols(), *VENDORS)


def convert(given: Document | Sequence[PlainCall], to: str, options: ConvertOptions | None = None) -> Conversion:
    """Converts a text that was read, or a list of calls. Raises ``ValueError`` for an unknown target, and nothing else."""
    if to not in targets():
        raise ValueError(f"unknown target {to!r}; known: {', '.join(targets())}")
    options = options or ConvertOptions()
    if isinstance(given, Document):
        return TextConversion(given, to, options).convert()
    return convert_list(given, to, options)
