"""Reading: canonical text beside XML libraries and plain expressions, broken text beside canonical text."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from time import process_time

from bench.measure import EFFORT, Sample, in_turn, shown, table
from bench.node_side import FastXmlParser, fast_xml_parser
from bench.texts import (
    ACTION_FAULTS,
    TAM_FAULTS,
    VCP_FAULTS,
    faulty,
    inputs_message,
    log,
    message,
    tam_message,
    vcp_message,
)
from tamis.protocols.reader import read_text

Rows = list[tuple[str, Sample, Sample, str]]
LXML, PIPELINE = "lxml.fromstring(block)", "regex + lxml + dict"


def pipeline(text: str) -> list[tuple[str, dict[str, str]]]:
    """What most agents do: cut the blocks out, parse each as XML, make dictionaries."""
    from lxml import etree

    found: list[tuple[str, dict[str, str]]] = []
    for match in re.finditer(r"<ACTION>(.*?)</ACTION>", text, re.S):
        tree = etree.fromstring(match.group())
        found.extend((str(tool.tag), {str(child.tag): child.text or "" for child in tool}) for tool in tree)
    return found


def bench_parse(*, node: bool = True) -> str:
    """Canonical ACTION text beside lxml, the usual pipeline and fast-xml-parser, every row in one turn."""
    from lxml import etree

    rows: Rows = []

    def compare(
        what: str, text: str, block: str, bars: dict[str, str], other: FastXmlParser | None, rounds: int
    ) -> None:
        anchors: dict[str, Callable[[], object]] = {
            LXML: lambda: etree.fromstring(block),
            PIPELINE: lambda: pipeline(text),
        }
        chosen = {name: anchor for name, anchor in anchors.items() if name in bars}
        others = {} if other is None else {other.name: other.reading(text)}
        found = in_turn({"ours": lambda: read_text(text), **chosen}, others=others, rounds=rounds, clock=process_time)
        rows.extend((what, found["ours"], found[name], bars.get(name, "")) for name in (*chosen, *others))

    with fast_xml_parser() if node else nullcontext() as other:
        text, block = message(1_700, cdata=False)
        compare("2 KB message", text, block, {LXML: "≤ 8 (5)", PIPELINE: "≤ 2 (1.2)"}, other, 15)
        text, block = message(1_700, cdata=True)
        compare("2 KB message, CDATA", text, block, {LXML: "≤ 8 (5)", PIPELINE: "≤ 2 (1.2)"}, other, 15)
        text, block = inputs_message(1_700)
        compare("2 KB message, `<tool_id>` and `<inputs>`", text, block, {LXML: "≤ 8 (5)"}, other, 15)
        text, block = message(EFFORT.size(90_000), cdata=True)
        compare("100 KB message, 90 KB CDATA", text, block, {LXML: "≤ 0.7 (0.35)", PIPELINE: ""}, other, 15)
        block = message(1_700, cdata=False)[1]
        text = log(block, EFFORT.size(2_000))
        compare("10 MB log, 2,000 blocks", text, block, {PIPELINE: "≤ 2.5 (1.5)"}, other, 7)
    prose = "lorem ipsum dolor sit amet, consectetur\n" * EFFORT.size(250_000)
    find = "text.find('<ACTION>')"
    found = in_turn(
        {"ours": lambda: read_text(prose), find: lambda: prose.find("<ACTION>")}, rounds=9, clock=process_time
    )
    rows.append(("10 MB prose without a block", found["ours"], found[find], "≤ 4 (2.5)"))
    return table("Reading ACTION", rows)


_TAM_BLOCK = re.compile(r"<\|\[REQUEST_TOOL\]\|>(.*?)<\|\[END_TOOL\]\|>", re.S)
_TAM_FIELD = re.compile(r"(\w+)\s*:\s*»»»(.*?)«««", re.S)
_VCP_BLOCK = re.compile(r"<<<\[TOOL_REQUEST\]>>>(.*?)<<<\[END_TOOL_REQUEST\]>>>", re.S)
_VCP_FIELD = re.compile(r"([\w-]+)\s*:\s*「始」(.*?)「末」", re.S)


def bench_protocols() -> str:
    """TAM and VCP beside two regular expressions, which know no place, no repair and no finding."""
    rows: Rows = []
    plain = "two regular expressions"
    for name, made, block, field in (
        ("TAM", tam_message, _TAM_BLOCK, _TAM_FIELD),
        ("VCP", vcp_message, _VCP_BLOCK, _VCP_FIELD),
    ):
        text, one = made(1_700)
        texts = (("2 KB message", text), ("10 MB log, 2,000 blocks", log(one, EFFORT.size(2_000))))
        for what, text in texts:

            def expressions(
                text: str = text, block: re.Pattern[str] = block, field: re.Pattern[str] = field
            ) -> list[dict[str, str]]:
                return [dict(field.findall(match.group(1))) for match in block.finditer(text)]

            found = in_turn(
                {"ours": lambda text=text: read_text(text), plain: expressions}, rounds=7, clock=process_time
            )
            rows.append((f"{name}, {what}", found["ours"], found[plain], ""))
    return table("Reading TAM and VCP", rows)


def bench_tolerant() -> str:
    """A 2 KB block with one fault beside the same block without it (bar 8, stretch 4)."""
    lines = [
        "### One fault in a 2 KB block ÷ the canonical block (bar ≤ 8, stretch ≤ 4)",
        "",
        "| protocol | canonical (min) | fault | with the fault (min) | ratio of medians | ratio of minima |",
        "|---|---|---|---|---|---|",
    ]
    for name, text, faults in (
        ("ACTION", message(1_700, cdata=False)[0], ACTION_FAULTS),
        ("TAM", tam_message(1_700)[0], TAM_FAULTS),
        ("VCP", vcp_message(1_700)[0], VCP_FAULTS),
    ):
        work: dict[str, Callable[[], object]] = {"": lambda text=text: read_text(text)}
        for fault, change in faults.items():
            broken = faulty(text, change)
            work[fault] = lambda broken=broken: read_text(broken)
        found = in_turn(work, rounds=9, at_least=0.01, clock=process_time)
        good = found.pop("")
        lines += [
            f"| {name} | {shown(good.minimum)} | {fault} | {shown(sample.minimum)} "
            f"| {sample.median / good.median:.2f} | {sample.minimum / good.minimum:.2f} |"
            for fault, sample in found.items()
        ]
    return "\n".join([*lines, ""])
