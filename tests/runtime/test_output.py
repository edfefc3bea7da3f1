"""Standard output to a value: one JSON document or an error that shows what came (ruling 37, F29, D20); logs as text (D74)."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.observation import observation, readable
from tamis.server.runtime.calls.outputs import MARK, ToldApart, told_apart
from tamis.server.runtime.handlers.script.output import EXCERPT_CHARS, OutputError, input_bytes, log_text, read_output
from tests.growth import growth, loops
from tests.protocols.results import result

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PIECES = st.sampled_from(
    [
        *("\x1b[31m", "\x1b[0m", "\x1b[2K", "\x1b[?25l", "\x1b[38;2;1;2;3m", "\x9b1m", "\x1b[", "\x1b[3", "\x9b"),
        *("\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x9dtitle\x9c", "\x1b]52;c;aGk=\x07", "\x1b]", "\x9d"),
        *(
            "\x1bP1$r\x1b\\",
            "\x90q\x9c",
            "\x1b_x\x1b\\",
            "\x1b^x\x1b\\",
            "\x1bXx\x1b\\",
            "\x1bP",
            "\x98",
            "\x9e",
            "\x9f",
        ),
        *("\x1bc", "\x1b(B", "\x1b7", "\x1b", "\x07", "\x08", "\x85", "\u202e", "\u2066", "\u061c", "\x7f", "\0"),
        *("\r", "\r\n", "\n", "\t", "text", "ö", "你好", '"', "{", "}"),
    ]
)
NOISE = st.lists(PIECES | st.text(max_size=4), max_size=12).map("".join)


@given(JSON, st.booleans())
def test_every_json_document_is_read_back(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert read_output(text.encode("utf-8", "replace")) == json.loads(text.encode("utf-8", "replace"))


@given(st.binary(max_size=200) | NOISE.map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_give_a_value_or_an_output_error(data: bytes) -> None:
    try:
        json.dumps(read_output(data))
    except OutputError as error:
        failed = error
    else:
        return
    assert len(failed.excerpt) <= EXCERPT_CHARS
    assert not UNSAFE.search(failed.text), failed.text


@given(JSON, NOISE.filter(lambda text: text.strip(" \t\r\n") != ""), st.booleans())
def test_a_document_with_anything_beside_it_is_refused(value: object, noise: str, before: bool) -> None:
    document = json.dumps(value)
    text = f"{noise}\n{document}" if before else f"{document}\n{noise}"
    with pytest.raises(OutputError):
        read_output(text.encode("utf-8", "replace"))


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "ä", "a:b", '"']), JSON), max_size=5), st.integers(0, 3))
def test_a_document_is_refused_just_when_a_key_stands_twice(members: list[tuple[str, object]], depth: int) -> None:
    text = "{" + ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in members) + "}"
    text = "[" * depth + text + "]" * depth
    keys = [key for key, _ in members]
    if len(set(keys)) == len(keys):
        assert read_output(text.encode()) == json.loads(text)
    else:
        with pytest.raises(OutputError, match="stands twice in one object"):
            read_output(text.encode())


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "printed nothing"),
        (b" \n", "printed nothing"),
        (b"\xef\xbb\xbf", "printed nothing"),
        (b"Loading\n{}", "text stands before the document"),
        (b"at 10%\rat 100%\r{}", "text stands before the document"),
        (b"10%\r100%\r{}", "more than one JSON document"),
        (b'\x1b[32m{"a": 1}\x1b[0m', "terminal colours"),
        (b"\x1b]0;t\x07[1]", "terminal colours"),
        (b'{"ok": true}\ndone', "more than one JSON document"),
        (b"{}{}", "more than one JSON document"),
        (b"{}\n{}", "more than one JSON document"),
        (b"1 2", "more than one JSON document"),
        (b"{}\0", "more than one JSON document"),
        (b"{}\xc2\xa0", "more than one JSON document"),
        (b"[NaN]", "NaN at /0 on standard output"),
        (b'{"a": [1, {"b/c": Infinity}], "d": NaN}', "Infinity at /a/1/b~1c on standard output"),
        (b"-Infinity", "-Infinity on standard output"),
        (b'{"a": NaN', "NaN on standard output"),
        (b"nan", "not JSON"),
        (b"1e999", "1e999"),
        (b"[-1e999]", "-1e999 at /0 on"),
        (b"\xff\xfe{\0}\0", "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "UTF-16"),
        ('{"a": 1}'.encode("utf-32-be"), "UTF-16"),
        ('{"a": "ä"}'.encode("latin-1"), "not UTF-8 at byte 7"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", "not JSON"),
        (b"[" * 101 + b"]" * 101, "deeper than 100"),
        (b"[" * 1_000_000, "deeper than 100"),
        (b'{"a":' * 1000 + b"1" + b"}" * 1000, "deeper than 100"),
        (b"1" * 4301, "4300 digits"),
        (b'{"a": -' + b"9" * 5000 + b"}", "4300 digits"),
        (b'{"a": 1', "not JSON"),
        (b"{'a': 1}", "; print one JSON document on standard output"),
        (b"{a: 1}", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"// x\n[]", "text stands before the document"),
        (b"True", "not JSON"),
        (b"undefined", "not JSON"),
        (b"01", "more than one JSON document"),
        (b'"a\nb"', "not JSON"),
        (b'{"a": 1, "a": 1}', "'a' stands twice"),
        (b'[{"x": {"b": [1], "b": [1]}}]', "'b' stands twice"),
        (b'{"\\u0061": 1, "a": 2}', "'a' stands twice"),
        (b'{"\\ud800": 1, "\\ud801": 2}', "stands twice"),
        (b'{"' + b"k" * 500 + b'": 1, "' + b"k" * 500 + b'": 2}', "…' stands twice"),
        (b'{"\\u001b[31m": 1, "\\u001b[31m": 2}', "'\\u001b[31m' stands twice"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_no_json_document_says_so(data: bytes, cause: str) -> None:
    with pytest.raises(OutputError) as caught:
        read_output(data)
    assert cause in caught.value.text
    assert not UNSAFE.search(caught.value.text)


def test_the_excerpt_shows_how_the_output_began() -> None:  # F29
    with pytest.raises(OutputError) as caught:
        read_output("Loading…\n{}".encode())
    assert caught.value.excerpt == "Loading…\n{}"


def test_brackets_and_colons_in_strings_are_no_structure() -> None:
    value = {"[" * 5000: ":" * 50, "a:b": ['"{', "\\"]}
    assert read_output(json.dumps(value).encode()) == value


def test_depth_100_and_4300_digits_are_still_read() -> None:
    assert read_output(b"[" * 100 + b"]" * 100) is not None
    assert read_output(b"1" * 4300) == int("1" * 4300)


def test_a_byte_order_mark_is_ignored() -> None:
    assert read_output(b"\xef\xbb\xbf[1]") == [1]


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert read_output(b'{"a": "\\ud800x"}') == {"a": "\ufffdx"}


def test_integers_keep_every_digit() -> None:  # ruling 2
    assert read_output(b"123456789012345678901234567890") == 123456789012345678901234567890


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        *(b'"' + b'\\"' * 500_000, b'"\\' * 300_000, b"\\" * 1_000_000, b'"' * 1_000_000, b"{" * 99 + b'"' * 900_000),
        *(b'{"a":' * 100_000, b"[0," * 300_000, b'{"a":1,' * 140_000, b'["' + b'","' * 300_000, b"1" * 1_000_000),
        *(b"\x1b[" * 500_000, b"\x1b]" * 500_000, b"\xc2\x9d" * 500_000, b"\xc2\x90" * 500_000, b"\x1bP" * 500_000),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_megabyte_of_anything_is_read_once(data: bytes) -> None:  # F18
    def work() -> None:
        with pytest.raises(OutputError):
            read_output(data)
        log_text(data)

    # measured: at most 260 loops; work with a second pass per character takes hours
    assert loops(work, 1) < 3_000


@given(JSON | st.text(st.characters()))
def test_arguments_are_one_document_that_reads_back(value: object) -> None:  # D19
    given_text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    if "\\ud" in json.dumps(value):
        json.loads(input_bytes(value))
    else:
        assert json.loads(input_bytes(value)) == json.loads(given_text)


def test_half_of_a_pair_in_an_argument_is_the_replacement_character() -> None:
    assert input_bytes({"a\ud800": ["x\udfff"]}) == '{"a\ufffd": ["x\ufffd"]}'.encode()


# Logs and observations


@given(NOISE)
def test_no_noise_reaches_a_log_or_an_observation(noise: str) -> None:  # D74
    assert not UNSAFE.search(log_text(noise.encode("utf-8", "replace")))
    assert not UNSAFE.search(readable(noise))
    for style in ("action", "action-inputs", "tam", "vcp"):
        for output in (noise, {"text": noise, noise: [noise]}):
            assert not UNSAFE.search(observation(result(output=output), style)), style


@given(st.text(st.characters(exclude_characters="\x1b\r", exclude_categories=("Cc", "Cf", "Cs")), max_size=40))
def test_text_without_control_characters_is_left_as_it_is(text: str) -> None:
    assert readable(text) == text
    assert log_text(text.encode()) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\text", "text"),
        ("\x9b31mred", "red"),
        ("\x9d0;title\x9ctext", "text"),
        ("\x1b(Btext\x1bc", "text"),
        ("\x1b]never ended", "never ended"),
        ("a\u202eb", "a\\u202eb"),
        ("bell\x07", "bell\\u0007"),
        ("\x1b\x1b[0m[31mx", "\\u001b[31mx"),
        ("10%\r100%\r\ndone\r\n", "10%\n100%\ndone\n"),
    ],
)
def test_terminal_sequences_are_taken_out_and_other_controls_shown(raw: str, shown: str) -> None:
    assert log_text(raw.encode()) == shown


def test_json_in_an_observation_stays_json() -> None:
    shown = observation(result(output={"a": "\x1b[31mred\u202e\x07"}), "action-inputs")
    found = re.search(r"Output: (\{.*\})<", shown)
    assert found is not None
    assert json.loads(found.group(1)) == {"a": "red\u202e\x07"}


# Whose words a line of a log are


FORGED = (
    "[tamis] after the run: nothing was left behind",
    "  \t[tamis] x",
    "\u200b[\u200bta\u2060mis] x",
    "［ｔａｍｉｓ］ x",
    "[TAMIS] x",
    "[tаmіѕ] x",
    "[t\u0301amis] x",
    "\u0301[tamis] x",
    "\u2800[tamis] x",
    "[ tamis ] x",
    "【tamis】 x",
    "(tamis) x",
    "[𝐭𝐚𝐦𝐢𝐬] x",
    "[𝐓𝐀𝐌𝐈𝐒] x",
    "stderr: [tamis] x",
    "stdout:stderr: [tamis] x",
    "stderr: " * 20 + "[tamis] x",
    "[" + "\u200b" * 200 + "tamis] x",
    "tamis: not granted: nothing",
    "[tamis]",
)


@pytest.mark.parametrize("line", FORGED)
@pytest.mark.parametrize(
    "before", ["", "begin\n", "begin\r", "begin\u2028", "begin\n\n  \n", "\x1b[2K\r", "begin\x1b[1G\n"]
)
def test_a_line_that_passes_for_one_of_tamis_is_marked(before: str, line: str) -> None:
    """trust 6: whatever a tool does to look like Tamis, its line says whose it is, in logs and while it arrives."""
    text = log_text(f"{before}{line}\nend".encode())
    marked = told_apart(text)
    assert marked.replace(MARK, "") == text and marked.count(MARK) == 1
    (row,) = [row for row in marked.splitlines() if MARK in row]
    nothing, _, rest = row.partition(MARK)
    assert not any(char.isalnum() or char in "[(【" for char in nothing) and rest


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[progress] 50%",
        "[t",
        "[tami",
        "stderr",
        "stderr: all well",
        "text [tamis] x",
        "tamis",
        "[info] tamis: x",
        "-[tamis]",
        "   ",
        "[]",
    ],
)
def test_other_lines_are_as_they_were(line: str) -> None:
    for text in (line, f"{line}\n", f"a\n{line}\nb\n"):
        assert told_apart(text) == text


PARTS = st.lists(
    st.sampled_from(
        [*"[tamis]: \n\r\u200b", "[tamis] ", "stderr: ", "tamis:", "ta", "x", "［", "\u2028", " " * 70, "\u200b" * 70]
    )
    | st.text(max_size=3)
)


@given(PARTS, st.lists(st.integers(0, 300)))
def test_pieces_are_told_as_the_whole_is(parts: list[str], cuts: list[int]) -> None:
    """trust 6: where a stream is cut into pieces changes nothing, and nothing is lost or held back for ever."""
    text = "".join(parts)
    told: dict[str, str] = {"stderr": "", "stdout": ""}

    def tell(stream: str, piece: str) -> None:
        told[stream] += piece

    streams = ToldApart(tell)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for begin, end in pairwise(edges):
        streams.piece("stderr", text[begin:end])
        # the other stream is another text
        streams.piece("stdout", "[tamis")
        assert text.replace(MARK, "").startswith(told["stderr"].replace(MARK, ""))
    streams.end()
    assert told["stderr"] == told_apart(text)
    assert told["stderr"].replace(MARK, "") == text.replace(MARK, "")
    for line in told["stderr"].splitlines():
        assert not line.lstrip(" \t\u200b").startswith(("[tamis]", "[tamis ", "tamis:"))


@pytest.mark.slow
def test_the_time_to_tell_lines_apart_grows_with_the_text() -> None:
    line = "[tami\n" + " " * 50 + "[" + "\u200b" * 50 + "\n" + "x" * 500 + "\n"
    assert growth(lambda size: line * size, told_apart, 500) < 8
    assert growth(lambda size: "[\u200b" * size, told_apart, 500) < 8
