"""No spelling of a secret comes through the filter, in whatever text and pieces; a text without one is unchanged (ruling 60, trust 7)."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.server.runtime.observe.masking import (
    MIN_LINE_CHARS,
    MIN_SECRET_CHARS,
    MaskedStreams,
    spelled,
    without,
    without_in,
)
from tests.growth import loops

ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "upper": str.upper,
    "lower": str.lower,
    "json": lambda text: json.dumps(text)[1:-1],
    "json, not ascii": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "ascii": lambda text: ascii(text)[1:-1],
    "bytes": lambda text: repr(text.encode())[2:-1],
    "repr in a list": lambda text: repr([f"a'{text}\""]),
    "html": html.escape,
    "quote": quote,
    "quote all": lambda text: quote(text, safe=""),
    "quote plus": quote_plus,
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
}
SECRETS = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="*\x00"),
    min_size=MIN_SECRET_CHARS,
    max_size=40,
)


def streamed(text: str, secrets: tuple[str, ...], cuts: list[int]) -> str:
    data, told = text.encode(), []
    streams = MaskedStreams(secrets, lambda _stream, shown: told.append(shown))
    for start, end in pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        streams.piece("stderr", data[start:end])
    streams.end()
    return "".join(told)


@given(
    secret=SECRETS,
    name=st.sampled_from(sorted(ENCODINGS)),
    before=st.text(alphabet="ab \n'\"%", max_size=12),
    after=st.text(alphabet="ab \n'\"%", max_size=12),
    cuts=st.lists(st.integers(0, 400), max_size=5),
)
def test_no_spelling_of_a_secret_comes_through(
    secret: str, name: str, before: str, after: str, cuts: list[int]
) -> None:
    # a surrounding that spells the secret by itself proves nothing
    assume(secret not in "***")
    form = ENCODINGS[name](secret)
    secrets = spelled((secret,))
    for shown in (
        without(before + form + after, secrets),
        streamed(before + form + after, secrets, cuts),
        *without_in([before + form + after], secrets),
    ):
        assert form not in shown
        assert secret not in shown


@given(
    secret=st.binary(min_size=6, max_size=30).map(lambda data: data.hex()),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
)
def test_base64_hides_a_secret_at_every_place_among_other_bytes(secret: str, before: bytes, after: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = without(encode(before + secret.encode() + after).decode(), spelled((secret,)))
        assert len(shown.replace("***", "")) <= 4 + 2 * (len(before) + len(after)) + 8


@given(
    lines=st.lists(
        st.text(alphabet="abcdefgh0123456789+/", min_size=MIN_LINE_CHARS, max_size=20), min_size=2, max_size=5
    ),
    name=st.sampled_from(["raw", "json", "hex", "base64", "quote all", "upper"]),
    at=st.integers(0, 4),
)
def test_each_line_of_a_secret_is_hidden_too(lines: list[str], name: str, at: int) -> None:
    line = lines[at % len(lines)]
    form = ENCODINGS[name](line)
    assert form not in without(f"<{form}>", spelled(("\n".join(lines),)))


@given(
    text=st.text(alphabet="xyz 123", max_size=200),
    secret=st.text(alphabet="abcd", min_size=4, max_size=20),
    cuts=st.lists(st.integers(0, 400), max_size=5),
)
def test_a_text_without_the_secret_is_unchanged(text: str, secret: str, cuts: list[int]) -> None:
    # hexadecimal of these letters has digits alone
    assume(not any(form in text for form in spelled((secret,))))
    secrets = spelled((secret,))
    assert without(text, secrets) == text
    assert streamed(text, secrets, cuts) == text


@given(
    secrets=st.lists(SECRETS, min_size=1, max_size=20),
    texts=st.lists(st.one_of(SECRETS, st.text(max_size=5)), max_size=6),
    cuts=st.lists(st.integers(0, 4000), max_size=8),
)
def test_pieces_give_what_the_whole_gives_for_any_number_of_secrets(
    secrets: list[str], texts: list[str], cuts: list[int]
) -> None:
    known = spelled(secrets)
    text = "".join((*texts, *secrets[:2]))
    assume(not any(0xD800 <= ord(char) <= 0xDFFF for char in text))
    assume("…" not in text)
    assert streamed(text, known, cuts) == streamed(text, known, [])
    assert streamed(text, known, []) == without(text, known)


def test_short_values_are_left_as_they_are() -> None:
    assert spelled(("abc", "", "1")) == ()


@pytest.mark.parametrize("text", ["the key hunter2-hun… is wrong", "hunter2-…"])
def test_a_message_that_cuts_a_secret_shows_nothing_of_it(text: str) -> None:
    assert "hunter2" not in without(text, spelled(("hunter2-hunter2-hunter2",)))


def test_the_end_of_a_text_that_was_cut_shows_no_beginning_of_a_secret() -> None:
    secrets = spelled(("hunter2-hunter2",))
    assert without("it is hunter2-hun", secrets, cut=True) == "it is ***"
    assert without("it is hunter2-hun", secrets) == "it is hunter2-hun"


@pytest.mark.parametrize("kind", ["one line", "lines"])
def test_a_large_secret_is_hidden_in_linear_time(kind: str, is_long: bool) -> None:
    lines = 20_000 if is_long else 4_000
    size = 50 * lines
    if kind == "lines":
        secret = "\n".join(f"line {i:08x} of it" for i in range(lines))
    else:
        secret = "k" * (size // 2) + "!" * (size // 2)
    hidden = ("<>", "<" + "\n" * (lines - 1) + ">")

    def work() -> None:
        secrets = spelled((secret,))
        assert without(f"<{secret}>", secrets).replace("***", "") in hidden
        plain = "nothing of it " * (size // 14)
        assert without(plain, secrets) == plain
        assert streamed(f"<{secret}>", secrets, list(range(0, size, 65_536))).replace("***", "") in hidden

    # measured: 50 loops for a thousand lines, linear; quadratic work takes more than 1000
    assert loops(work, 1) < 0.3 * lines
