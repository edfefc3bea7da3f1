"""Helpers of the writers' tests: writing, reading again, and what counts as equal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tamis.protocols.base import PlainCall, Shape, WriteOptions, Written
from tamis.protocols.catalogue import CATALOGUE, message
from tamis.protocols.check import check_call
from tamis.protocols.model import Call, Diag, Document, Json, ReadOptions, ToolHint
from tamis.protocols.plugins import BUILT_IN, find_protocol
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan

FORMS: tuple[tuple[str, Shape], ...] = (("action", "tag"), ("action", "inputs"), ("tam", "tag"), ("vcp", "tag"))
OWN = frozenset(("AX135", "AX162", "TM247", "VC316", "VC327"))
"""Findings that a canonical text may have: several calls in a block, ``@{…}``, the marks and fields of VCP's extensions."""


def write(calls: Sequence[PlainCall], form: tuple[str, Shape], tools: dict[str, ToolHint] | None = None) -> Written:
    protocol = find_protocol(form[0])
    assert protocol is not None
    written = protocol.write_calls(calls, WriteOptions(shape=form[1], tools=tools or {}))
    for refusal in written.refusals:
        sentence = message(Diag(refusal.code, (0, 0), refusal.args))
        assert refusal.code in ("TC050", "TC051")
        assert "{" not in CATALOGUE[refusal.code].message.format(**refusal.args) or "{" in str(refusal.args)
        assert sentence
    return written


def read(text: str, form: tuple[str, Shape], tools: dict[str, ToolHint] | None = None) -> Document:
    also = () if form[0] in BUILT_IN else (form[0],)
    return read_text(text, "auto", ReadOptions(tools=tools or {}, also=also))


def kept(calls: Sequence[PlainCall], written: Written) -> list[PlainCall]:
    """The calls that were not refused."""
    out = {int(refusal.path.split("/")[1]) for refusal in written.refusals}
    return [call for index, call in enumerate(calls) if index not in out]


def plain_args(call: Call, source: str) -> dict[str, Json]:
    """The raw arguments with type hints applied, as a tool without a schema gets them."""
    checked = check_call(call, source, compile_plan({}))
    assert checked.valid, checked.problems
    return checked.coerced


def typed_args(call: Call, source: str, tools: dict[str, ToolHint]) -> dict[str, Json]:
    checked = check_call(call, source, compile_plan(tools[call.tool_id].parameters))
    assert checked.valid, checked.problems
    return checked.coerced


def roundtrip_calls(corpora: Path) -> list[tuple[str, list[PlainCall]]]:
    """The rows of ``roundtrip.jsonl``."""
    rows = (corpora / "calls" / "roundtrip.jsonl").read_text("utf-8").splitlines()
    found: list[tuple[str, list[PlainCall]]] = []
    for line in rows:
        row = json.loads(line)
        found.append((row["id"], [PlainCall(call["tool"], call["params"]) for call in row["calls"]]))
    return found
