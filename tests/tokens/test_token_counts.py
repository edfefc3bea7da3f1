"""Token counts against npm gpt-tokenizer: the estimate on texts it was not fitted on, and the exact count (V35)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.tokens import Encoding, estimate_tokens
from tamis.server.runtime.texts import token_counts
from tests.growth import growth
from tests.tokens.held_out import gpt_tokenizer_counts, held_out

ENCODINGS: tuple[Encoding, ...] = ("o200k_base", "cl100k_base")
Counted = dict[str, list[tuple[str, tuple[int, int]]]]


@pytest.fixture(scope="module")
def counted(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """Each kind's texts with their true counts."""
    groups = held_out(corpora)
    texts = [text for group in groups.values() for text in group]
    counts = iter(gpt_tokenizer_counts(texts, tmp_path_factory.mktemp("tokens")))
    return {name: [(text, next(counts)) for text in group] for name, group in groups.items()}


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "splintr", None)
    token_counts._encoder.cache_clear()
    yield
    token_counts._encoder.cache_clear()


@pytest.mark.parametrize("column", [0, 1], ids=ENCODINGS)
def test_the_estimate_is_within_a_tenth_for_every_kind_of_text(counted: Counted, column: int) -> None:
    off: dict[str, float] = {}
    for name, group in counted.items():
        assert group, f"no text of the kind {name}"
        true = sum(counts[column] for _, counts in group)
        off[name] = sum(estimate_tokens(text, ENCODINGS[column]) for text, _ in group) / true - 1
    print({name: f"{error:+.1%}" for name, error in off.items()})
    assert {name: error for name, error in off.items() if abs(error) > 0.1} == {}


def test_the_estimate_is_within_a_tenth_for_every_chinese_document(counted: Counted) -> None:
    for text, counts in counted["Chinese"] + counted["mixed"]:
        assert abs(estimate_tokens(text) / counts[0] - 1) < 0.1, text[:40]


@pytest.mark.parametrize(
    "text", ["", "a", "a" * 5000, " " * 5000, "=" * 5000, "\n" * 5000, "好" * 5000, "\ud800", "\x00", "𒀀" * 9]
)
def test_an_estimate_is_never_less_than_one_token_of_a_text_nor_more_than_its_bytes(text: str) -> None:
    for encoding in ENCODINGS:
        assert min(1, len(text)) <= estimate_tokens(text, encoding) <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.share(4)
@pytest.mark.parametrize("unit", ["word ", "a", "-", "\n ", "1", "好", "é", "😀", "Ab", "=a"])
def test_the_estimate_takes_linear_time(unit: str) -> None:
    assert growth(lambda n: unit * n, estimate_tokens, 20_000) < 8


@pytest.mark.parametrize("column", [0, 1], ids=ENCODINGS)
def test_the_extra_counts_exactly(counted: Counted, column: int) -> None:
    pytest.importorskip("splintr", reason="the extra `tokens` is not installed")
    for group in counted.values():
        for text, counts in group:
            assert token_counts.count_tokens(text, ENCODINGS[column]) == (counts[column], True)


def test_a_special_token_in_a_text_counts_as_text() -> None:
    pytest.importorskip("splintr", reason="the extra `tokens` is not installed")
    assert token_counts.count_tokens("<|endoftext|>") == (7, True)


def test_a_lone_surrogate_is_counted() -> None:
    pytest.importorskip("splintr", reason="the extra `tokens` is not installed")
    assert token_counts.count_tokens("a\ud800b") == token_counts.count_tokens("a\ufffdb")


@pytest.mark.usefixtures("without_the_extra")
def test_without_the_extra_the_estimate_is_given_as_one() -> None:
    assert token_counts.count_tokens("Hello, world") == (estimate_tokens("Hello, world"), False)


_SPANS = [
    "a",
    "Abc",
    "12",
    "/",
    "//",
    "<",
    "</x>",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    ".",
    "»",
    "中文",
    "🚀",
    "'s",
    "\t",
    "-",
    "\ud800",
]


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@given(st.lists(st.sampled_from(_SPANS), min_size=30, max_size=120).map("".join))
def test_a_long_text_counted_in_parts_has_the_same_tokens(encoding: Any, text: str) -> None:
    # R4: counted at once, a prompt of 4 MB kept every other thread waiting for half a second
    pytest.importorskip("splintr")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_counts, "PIECE_CHARS", len(text))
        whole = token_counts.count_tokens(text, encoding)
        patch.setattr(token_counts, "PIECE_CHARS", 10)
        assert token_counts.count_tokens(text, encoding) == whole
