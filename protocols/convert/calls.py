"""Converting calls without a text: what a target can have of each, and the calls written in it.

Must not know blocks or the text that calls stood in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from tamis.protocols.base import PlainCall, Shape, WriteOptions, Written
from tamis.protocols.contract import Loss
from tamis.protocols.convert.notes import by_address, loss, refused, types_lost, without_extras
from tamis.protocols.convert.plain import reading_of
from tamis.protocols.convert.vendors import TITLES, VENDORS, Names, Part, Vendor, document
from tamis.protocols.model import ReadOptions, ToolHint
from tamis.protocols.plugins import extras_of, find_protocol
from tamis.protocols.writing.expect import Expectations
from tamis.protocols.writing.values import fault_of

CALL_JSON = "json"
"""The protocol of whole documents: JSON inside prose is never a call."""


class ConvertOptions(msgspec.Struct, frozen=True):
    """How calls are converted. ``tools`` by id (and alias) type what a text holds, and let a schema carry what a text cannot."""

    tools: dict[str, ToolHint] = {}
    shape: Shape | None = None
    """The shape of ACTION; None writes tags, and ``<inputs>`` where tags cannot carry the calls."""
    reading: ReadOptions = ReadOptions()
    """How the text was read; what was made is read the same way."""


class Conversion(msgspec.Struct, frozen=True):
    """The converted text and what did not come along, in the order of the calls.

    A loss of TC050 or TC051 means that its call was not converted: in a text it stands as it was, in a list it is missing.
    """

    text: str
    losses: list[Loss]

    @property
    def refused(self) -> bool:
        """Whether any call was not converted."""
        return any(loss.code in ("TC050", "TC051", "TC055") for loss in self.losses)


class Ready(msgspec.Struct, frozen=True):
    """A call that can be written: ``index`` is its place in the list of calls."""

    index: int
    call: PlainCall


def title_of(to: str) -> str:
    """A target's name in sentences."""
    return TITLES.get(to) or extras_of(to).title or to


def convert_list(calls: Sequence[PlainCall], to: str, options: ConvertOptions) -> Conversion:
    """A list of calls as one text or document of the target; a call that it cannot carry is left out, with its losses."""
    losses: list[Loss] = []
    ready: list[Ready] = []
    for index, call in enumerate(calls):
        plain, more = make_ready(call, index, index + 1, to, options)
        losses += more
        if plain is not None:
            ready.append(Ready(index, plain))
    if to in VENDORS:
        text, more = vendor_document([Part(call=one.call) for one in ready], [one.index for one in ready], to)
    else:
        text, more = write_ready(ready, to, options)
        text += "\n" if text else ""
    return Conversion(text, losses + more)


def make_ready(
    call: PlainCall, index: int, position: int, to: str, options: ConvertOptions
) -> tuple[PlainCall | None, list[Loss]]:
    """The call as the target can have it, or None with the reasons."""
    title = title_of(to)
    refusals = by_address(call, index, to, title)
    if refusals:
        return None, refusals
    plain, losses = without_extras(call, index, position, to, title)
    if to in VENDORS and (faults := _json_faults(plain, index, title)):
        return None, faults
    return plain, losses


def _json_faults(call: PlainCall, index: int, title: str) -> list[Loss]:
    if not call.tool_id or fault_of(call.tool_id) is not None:
        why = "it is empty, or holds half of a surrogate pair"
        return [loss("TC050", f"/calls/{index}/toolId", what="The tool id", protocol=title, why=why)]
    fault = fault_of(dict(call.args))
    if fault is None:
        return []
    return [loss("TC050", f"/calls/{index}/args{fault[0]}", what="The value", protocol=title, why=fault[1])]


def write_ready(ready: list[Ready], to: str, options: ConvertOptions) -> tuple[str, list[Loss]]:
    """Calls in a protocol's canonical spelling; calls that cannot be written are left out, with their losses."""
    protocol = find_protocol(to)
    assert protocol is not None
    indices = [one.index for one in ready]
    calls = [one.call for one in ready]
    written: Written = protocol.write_calls(calls, WriteOptions(shape=options.shape or "tag", tools=options.tools))
    if to == "action" and options.shape is None and written.refusals:
        # The other shape carries any name (ruling 12).
        other = protocol.write_calls(calls, WriteOptions(shape="inputs", tools=options.tools))
        written = other if _refused_calls(other) < _refused_calls(written) else written
    losses = [refused(refusal, indices) for refusal in written.refusals]
    out = {loss.path.split("/")[2] for loss in losses}
    expectations = Expectations(options.tools, reading_of(to))
    for one in ready:
        if str(one.index) not in out:
            losses += types_lost(one.call, one.index, to, title_of(to), expectations)
    return written.text, losses


def _refused_calls(written: Written) -> int:
    return len({refusal.path.split("/")[1] for refusal in written.refusals})


def vendor_document(parts: Sequence[Part], indices: list[int], to: str) -> tuple[str, list[Loss]]:
    """Texts and calls as a vendor's document; ``indices`` are the places of the calls, for the losses."""
    vendor = cast("Vendor", to)
    names = Names(vendor)
    calls = [part.call for part in parts if part.call is not None]
    names.add([call.tool_id for call in calls])
    losses: list[Loss] = []
    told: set[str] = set()
    for index, call in zip(indices, calls, strict=True):
        name = names.of(call.tool_id)
        if name != call.tool_id and call.tool_id not in told:
            told.add(call.tool_id)
            args: dict[str, str | int] = {"protocol": title_of(to), "name": call.tool_id, "other": name}
            losses.append(loss("TC053", f"/calls/{index}/toolId", **args))
    return document(parts, vendor, names), losses
