"""Call JSON for a host that converts it: plain calls and what was found about them (W14).

Reads every form, also the ones that only the protocol ``json`` takes. Must not know what the calls become.
"""

from __future__ import annotations

import json

import msgspec

from tamis.protocols.base import PlainCall
from tamis.protocols.model import Diag, Document, Json
from tamis.protocols.reader import read_text


class ReadCalls(msgspec.Struct, frozen=True):
    """The calls that are sound, in order; ``diagnostics`` are at places of ``document.text``."""

    calls: tuple[PlainCall, ...]
    diagnostics: tuple[Diag, ...]
    document: Document


def read_call_json(source: str | list[Json] | dict[str, Json]) -> ReadCalls:
    """The calls of a JSON text, or of a value that was read from one. Never raises; what cannot run is left out.

    Places of a value are those of its JSON text on one line.
    """
    text = source if isinstance(source, str) else _text(source)
    document = read_text(text, "json")
    calls = tuple(
        PlainCall(call.tool_id, call.args(text), meta=dict(call.meta)) for call in document.calls if call.executable
    )
    return ReadCalls(calls, tuple(document.diagnostics), document)


def _text(value: list[Json] | dict[str, Json]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return ""
