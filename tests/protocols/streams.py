"""A text through the streaming reader, checked against the batch result at every step (ruling 11)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import msgspec

from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.streaming.reader import Fed, StreamReader, outside_blocks


def pieces(text: str, cuts: Iterable[int]) -> list[str]:
    """The text cut at these offsets."""
    places = [0, *sorted(cut for cut in cuts if 0 < cut < len(text)), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places)]


def feed(chunks: Iterable[str], protocol: str = "auto", options: ReadOptions | None = None) -> list[Fed]:
    """What each piece gives."""
    reader = StreamReader(protocol, options)
    return [reader.feed(chunk) for chunk in chunks]


def shown(feds: Iterable[Fed]) -> str:
    """All text of some feeds."""
    return "".join(fed.text for fed in feds)


def called(feds: Iterable[Fed]) -> list[tuple[str, bool]]:
    """All calls of some feeds as (tool id, executable)."""
    return [(call.call.tool_id, call.call.executable) for fed in feds for call in fed.calls]


def _thought(whole: Document, at: int) -> bool:
    return any(start <= at < end for start, end in whole.reasoning)


def _taken_back(whole: Document) -> bool:
    """Whether a closer of reasoning without an opener made reasoning of all before it."""
    if not whole.reasoning or whole.reasoning[0][0] != 0:
        return False
    first = whole.text[: whole.reasoning[0][1]].lower()
    return first.count("</think") >= first.count("<think")


def check_feeds(feds: list[Fed], whole: Document, outside: str) -> int:
    """Everything that was given is in the result of the whole text, once and unchanged; gives the number of calls."""
    text = shown(feds)
    retracted = {index for fed in feds for index in fed.retracted}
    if not retracted and not _taken_back(whole):
        assert outside.startswith(text), (text, outside)
    calls = [call for fed in feds for call in fed.calls]
    assert [call.index for call in calls] == list(range(len(calls)))
    for call in calls:
        wanted = whole.calls[call.index]
        if call.index in retracted or _thought(whole, call.start):
            # It was given before a closer of reasoning came, which says that it was none (ruling 45).
            assert not wanted.executable
            continue
        assert call.call == wanted
        assert call.args == wanted.args(whole.text)
        assert whole.text[call.start : call.start + len(call.block)] == call.block
    return len(calls)


def check_stream(
    chunks: list[str], protocol: str = "auto", options: ReadOptions | None = None, *, complete: bool = True
) -> None:
    """The stream of ``chunks`` and its end give what ``read_text`` gives of the whole text."""
    options = options or ReadOptions()
    reader = StreamReader(protocol, options)
    feds = [reader.feed(chunk) for chunk in chunks]
    document = reader.close(complete)
    whole = read_text("".join(chunks), protocol, msgspec.structs.replace(options, complete=complete))
    assert document == whole
    outside = outside_blocks(whole)
    given = check_feeds(feds, whole, outside)
    if not _taken_back(whole):
        assert shown(feds) + reader.rest.text == outside
    live = {call.index for fed in feds for call in fed.calls if call.call.executable}
    live -= {index for fed in feds for index in fed.retracted}
    live |= {call.index for call in reader.rest.calls if call.call.executable}
    assert live == {i for i, call in enumerate(whole.calls) if call.executable}
    assert [call.index for call in reader.rest.calls] == list(range(given, len(whole.calls)))
    assert [call.call for call in reader.rest.calls] == whole.calls[given:]
