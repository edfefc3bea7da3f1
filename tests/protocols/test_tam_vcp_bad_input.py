"""Bad TAM and VCP input: a finding or a result in linear time, never an exception, never a changed value (ruling 10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tamis.protocols.model import MAX_BLOCK_CHARS, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.repair import explain, repair
from tests.growth import growth
from tests.protocols.tam_vcp_blocks import codes, read, runs, tam, vcp

COMMAND, NAME = "command:»»»T.t«««", "tool_name:「始」T「末」,"
TO, TE, VO, VE = "<|[REQUEST_TOOL]|>", "<|[END_TOOL]|>", "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>"

# name → (size, text of that size, the calls that run)
BAD: dict[str, tuple[int, Callable[[int], str], list[tuple[str, dict[str, object]]]]] = {
    "TAM openers": (10_000, lambda n: TO * n, []),
    "VCP openers": (9_000, lambda n: VO * n, []),
    "TAM openers on lines": (10_000, lambda n: f"{TO}\n" * n, []),
    "TAM closers": (100_000, lambda n: TE * n, []),
    "VCP closers on lines": (100_000, lambda n: f"{VE}\n" * n, []),
    "TAM keys": (100_000, lambda n: tam(COMMAND, *(f"k{i}:»»»v«««" for i in range(n))), []),
    "VCP keys": (100_000, lambda n: vcp(NAME, *(f"k{i}:「始」v「末」," for i in range(n))), []),
    "equal TAM keys": (50_000, lambda n: tam(COMMAND, *("k:»»»v«««" for _ in range(n))), []),
    "equal VCP keys": (50_000, lambda n: vcp(NAME, *("k:「始」v「末」," for _ in range(n))), []),
    "TAM steps": (20_000, lambda n: tam(*(f"command_{i}:»»»T«««" for i in range(n))), []),
    "TAM commands in reverse": (900, lambda n: tam(*(f"command_{n - i}:»»»T«««" for i in range(n))), [("T", {})] * 900),
    "bare keys": (50_000, lambda n: tam(COMMAND, *(f"k{i}: v" for i in range(n))), []),
    "comments": (50_000, lambda n: tam(COMMAND, *("# note" for _ in range(n))), [("T.t", {})]),
    "half delimiters": (50_000, lambda n: tam(COMMAND, f"x:»»»{'«« a: »» ' * n}«««"), []),
    "half marks": (50_000, lambda n: vcp(NAME, f"x:「始」{'「末 末」 {末} ' * n}"), []),
    "quotes": (50_000, lambda n: tam(COMMAND, f"x: {'“' * n}”"), []),
    "brackets": (50_000, lambda n: vcp(NAME, f"x: {'「a」' * n}"), []),
    "a line of heads": (50_000, lambda n: tam(COMMAND, "x " + ">>> " * n), []),
    "spaced tails": (50_000, lambda n: tam(COMMAND, f"x:»»{'« ' * n}"), [("T.t", {"x": ""})]),
    "escaped openers": (5_000, lambda n: "&lt;|[REQUEST_TOOL]|&gt;\n" * n + "&lt;|[END_TOOL]|&gt;", []),
    "fenced blocks": (
        2_000,
        lambda n: f"```\n{tam(COMMAND)}\n```\n" * n,
        [],  # ruling 7: where several fences hold blocks, none of them is a wrapper
    ),
    "separators": (50_000, lambda n: tam(COMMAND, f"x{':' * n}»»»1«««"), []),
    "decoration": (50_000, lambda n: tam(COMMAND, f"{'*' * n}x{'*' * n}:»»»1«««"), [("T.t", {"x": "1"})]),
    "underscores": (50_000, lambda n: tam(COMMAND, f"{'_' * n}:»»»1«««"), []),
}


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_answered_and_gives_the_calls_that_it_holds(name: str) -> None:
    size, build, calls = BAD[name]
    text = build(size)
    for complete in (True, False):
        found = runs(text, complete=complete)
        assert found == calls or (not complete and found == calls[: len(found)])
    if not calls:
        assert codes(text)


@pytest.mark.share(8)
@pytest.mark.parametrize("name", BAD)
def test_time_grows_with_bad_input(name: str) -> None:
    size, build, _ = BAD[name]
    assert growth(build, read, max(100, size // 16)) <= 8


@pytest.mark.share(8)
@pytest.mark.parametrize("name", ["escaped openers", "half marks", "fenced blocks", "TAM closers"])
def test_repairing_and_explaining_bad_input_is_linear_too(name: str) -> None:
    size, build, _ = BAD[name]
    assert growth(build, lambda text: repair(read_text(text), read_text, None), max(100, size // 64)) <= 8
    assert growth(build, lambda text: explain(read_text(text), read_text, None), max(100, size // 64)) <= 8


# Lone surrogates come out of JSON; bidi controls, noncharacters and other odd ones stand in values as they are.
ODD = [
    "\ud800",
    "\udfff\ud800",
    "\u202e\u2066x\u2069",
    "\ufffe\uffff",
    "\x85\u2028\u2029",
    "\U0010ffff",
    "a\x0bb\x0c",
    "\x7f\x1b[1m",
]


@pytest.mark.parametrize("value", ODD, ids=ascii)
def test_odd_characters_in_values_are_kept(value: str) -> None:
    assert runs(tam(COMMAND, f"x:»»»<{value}>«««")) == [("T.t", {"x": f"<{value}>"})]
    assert runs(vcp(NAME, f"x:「始」<{value}>「末」")) == [("T", {"x": f"<{value}>"})]


@pytest.mark.parametrize("value", [*ODD, "\x00"], ids=ascii)
def test_odd_characters_anywhere_raise_nothing(value: str) -> None:
    good = f"{tam(COMMAND, 'x:»»»a ««« b«««')}\n{vcp(NAME, 'x:「始」a「末」b「末」')}"
    for at in range(0, len(good), 3):
        text = good[:at] + value + good[at:]
        document = read_text(text)
        repair(document, read_text, "utf-16")
        explain(document, read_text, "utf-16")


def test_a_nul_rejects_its_block_and_no_other() -> None:
    assert runs("\n".join((tam(COMMAND, "x:»»»a\x00b«««"), tam("command:»»»B.b«««")))) == [("B.b", {})]


@pytest.mark.slow
def test_a_value_of_10_mb_with_everything_in_it_is_read_whole() -> None:
    value = ("line « » 「 」 <<< >>> key: value # \ud800\n" * 260_000).strip()
    assert len(value) > 9_000_000
    assert runs(tam(COMMAND, f"x:»»»{value}«««")) == [("T.t", {"x": value})]
    assert runs(vcp(NAME, f"x:「始」{value}「末」")) == [("T", {"x": value})]


def test_a_block_over_the_limit_is_rejected() -> None:
    text = tam(COMMAND, f"x:»»»{'a' * MAX_BLOCK_CHARS}«««")
    assert (runs(text), codes(text)) == ([], ["TC021"])


def test_what_is_refused_when_whole_is_refused_when_cut() -> None:
    for text in (tam(COMMAND, "x:»»»a ««« b«««"), vcp(NAME, "x:「始」a「末」b「末」")):
        for cut in range(len(text)):
            assert not any(call.executable for call in read_text(text[:cut], options=ReadOptions(complete=False)).calls)
