"""Streaming: the mean cost of a token of four characters in a text of 1 MB beside a text of 10 KB (bar 1.5, stretch 1.1)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

# Behind what is installed: the folder `tamis` here holds only a part of the package.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.measure import Sample, in_turn, table

_TOKEN = 4
_SMALL, _LARGE = 10_000, 1_000_000
_LINE = "some words of a value, line after line\n"
_TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»write«««\npath:»»»a.txt«««\ncontent:»»»{}«««\n<|[END_TOOL]|>\n"
_VCP = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」write「末」,\ncontent:「始」{}「末」\n<<<[END_TOOL_REQUEST]>>>\n"


def _fill(head: str, part: str, tail: str = "") -> Callable[[int], str]:
    return lambda size: head + part * max(1, (size - len(head) - len(tail)) // len(part)) + tail


TEXTS: dict[str, Callable[[int], str]] = {
    "prose": _fill("", "lorem ipsum dolor sit amet, 3 < 5 consectetur\n"),
    "one long CDATA value": _fill("<ACTION><w><c><![CDATA[", _LINE, "]]></c></w></ACTION>"),
    "one long TAM value": _fill("<|[REQUEST_TOOL]|>\ncommand:»»»w«««\nc:»»»", _LINE, "«««\n<|[END_TOOL]|>"),
    "log of ACTION blocks": _fill("", _LINE * 8 + "<ACTION><w><c>" + _LINE * 6 + "</c></w></ACTION>\n"),
    "log of TAM and VCP blocks": _fill("", _LINE * 8 + _TAM.format(_LINE * 6) + _LINE * 8 + _VCP.format(_LINE * 6)),
    "many openers": _fill("", "<ACTION> "),
    "many openers of TAM": _fill("", "<|[REQUEST_TOOL]|> "),
    "many closers inside one block": _fill("<ACTION><w><c><![CDATA[", "</c></w></ACTION>\n", "]]></c></w></ACTION>"),
    "many END markers in a value": _fill(
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」w「末」,\nc:「始」", "<<<[END_TOOL_REQUEST]>>>\n"
    ),
    "a block that is never closed": _fill("<ACTION><w><c>", _LINE),
    "unclosed fences": _fill("", "```text\n" + _LINE + "~~~\n"),
    "backticks without end": _fill("", "` `` ``` x "),
    "a marker without end": _fill("<ACTION ", "a"),
    "blocks in an open fence": _fill("```\n", "<ACTION><w><c>x</c></w></ACTION>\n"),
    "reasoning with openers": _fill("<think>", "<ACTION><w><c>x</c></w></ACTION> </think><think>"),
}
_ORDINARY = (
    "prose",
    "one long CDATA value",
    "one long TAM value",
    "log of ACTION blocks",
    "log of TAM and VCP blocks",
)
"""Read at the full size; the others cost ten times as much a token, at any size."""


def stream(text: str, size: int = _TOKEN) -> int:
    """Feeds a text in pieces of ``size`` characters; gives the number of calls that were certain before the end."""
    from tamis.protocols.streaming.reader import StreamReader

    reader = StreamReader()
    calls = 0
    for at in range(0, len(text), size):
        calls += len(reader.feed(text[at : at + size]).calls)
    return calls


def _per_token(name: str, sample: Sample, size: int) -> Sample:
    return Sample(name, tuple(seconds / (size / _TOKEN) for seconds in sample.seconds))


def bench_streaming() -> str:
    """A Markdown table of cost per token, large text beside small."""
    rows: list[tuple[str, Sample, Sample, str]] = []
    for name, build in TEXTS.items():
        size = _LARGE if name in _ORDINARY else _LARGE // 10
        small, large = build(_SMALL), build(size)
        found = in_turn(
            {"small": lambda t=small: stream(t), "large": lambda t=large: stream(t)},
            rounds=2,
            at_least=0.1,
            clock=time.process_time,
        )
        anchor = _per_token("10 KB", found["small"], len(small))
        what = name if size == _LARGE else f"{name} (100 KB)"
        rows.append((what, _per_token("large", found["large"], len(large)), anchor, "≤ 1.5 (1.1)"))
    return table("Streaming (per token of 4 characters, 1 MB beside 10 KB; stress texts 100 KB)", rows)


if __name__ == "__main__":
    print(bench_streaming())
