"""Which blocks are calls: contexts in which nothing is meant to run (rulings 5, 7, 44 to 49)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given as every
from hypothesis import strategies as st

from tamis.protocols.catalogue import severity
from tamis.protocols.inert import inert
from tamis.protocols.marks import alike, marks_of
from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.streaming.reader import StreamReader
from tests.growth import growth, processor_seconds
from tests.protocols.contexts import ACTION, BLOCKS, LINES, PREFIXES, SET_ASIDE, TAM, VCP, prefixed
from tests.protocols.streams import check_stream, pieces


def runs(text: str, protocol: str = "auto", **options: object) -> int:
    """How many calls of a text may run; each is the good one."""
    document = read_text(text, protocol, ReadOptions(**options))  # type: ignore[arg-type]
    calls = [call for call in document.calls if call.executable]
    assert all(call.args(text) == {"path": "/etc/x"} for call in calls)
    return len(calls)


def contexts(document: Document) -> list[str]:
    """The contexts of the blocks that are set aside."""
    return [block.context for block in document.blocks if block.aside]


def stream(text: str, size: int, **options: object) -> tuple[list[int], set[int]]:
    """The indexes of the runnable calls that a stream gives, and of those that it takes back."""
    reader = StreamReader("auto", ReadOptions(**options))  # type: ignore[arg-type]
    feds = [reader.feed(text[i : i + size]) for i in range(0, len(text), size)]
    assert reader.close() == read_text(text, "auto", ReadOptions(**options))  # type: ignore[arg-type]
    given = [call.index for fed in (*feds, reader.rest) for call in fed.calls if call.call.executable]
    return given, {index for fed in feds for index in fed.retracted}


@pytest.mark.slow
def test_every_text_of_the_sample_is_read_as_a_careful_reader_would(corpora: Path) -> None:
    wrong: list[str] = []
    for line in (corpora / "calls" / "contexts.jsonl").read_text().splitlines():
        row = json.loads(line)
        document = read_text(row["text"])
        calls = [call for call in document.calls if call.executable]
        if row["want"] == "run":
            good = [call.args(row["text"]) for call in calls] == [{"path": "/etc/x"}]
        else:
            good = not calls and (row["family"] in ("escaped", "data") or bool(document.diagnostics))
        if not good:
            wrong.append(row["id"])
        for size in (1, 5, len(row["text"])):
            given, retracted = stream(row["text"], size)
            if set(given) - retracted != {i for i, call in enumerate(document.calls) if call.executable}:
                wrong.append(f"{row['id']} in pieces of {size}")
    assert wrong == []


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("wrap", SET_ASIDE.values(), ids=SET_ASIDE)
def test_a_block_in_a_quoting_context_is_told_and_not_run(wrap: str, block: str) -> None:  # ruling 44
    if wrap.lstrip("- a\n").startswith("> ") or "> {}" in wrap:
        block = block.replace("\n", "\n> ")
    text = wrap.format(block)
    document = read_text(text)
    assert not any(call.executable for call in document.calls)
    assert document.diagnostics
    assert {severity(diag) for diag in document.diagnostics} <= {"hint", "information"}
    for size in (1, 4, 50):
        given, retracted = stream(text, size)
        assert set(given) <= retracted


@pytest.mark.parametrize("block", [LINES, TAM, VCP])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_lines_that_all_carry_one_prefix_are_quoted(prefix: str, block: str) -> None:  # ruling 47
    text = "Text:\n\n" + prefixed(prefix, block) + "\n\nMore."
    assert runs(text) == 0
    assert set(contexts(read_text(text))) <= {"prefix", "quote", "table"}


@pytest.mark.parametrize("form", ["{}: ", "{:>3} | ", "2026-01-01T10:00:{:02} WARN  ", "[{}] ", "{}\t"])
def test_a_prefix_that_counts_is_one_prefix(form: str) -> None:  # ruling 47
    lines = LINES.split("\n")
    assert runs("\n".join(form.format(i + 8) + line for i, line in enumerate(lines))) == 0


@pytest.mark.parametrize(
    "text", ["// see\n// {}\n// end", "@@ -1 +1 @@\n+{}\n", "/*\n * {}\n */", "| a | b |\n|---|---|\n| {} | x |"]
)
def test_a_block_on_one_line_among_quoted_lines_is_quoted(text: str) -> None:  # rulings 46 47
    assert runs(text.format(ACTION)) == 0


RUN = [
    "{}",
    "I will not run it.\n\n{}",
    "<think>a</think>\n{}",
    "<think>use <ACTION> here</think>\n{}",
    "<think><ACTION><tool_id>x</tool_id>\nhm</think>\n{}",
    "`<think>` opens reasoning, `</think>` ends it.\n\n{}",
    "{}\n\nThe tag `</think>` ends it.",
    "{}\n\n```\n</think>\n```",
    "<!-- plan -->\n{}",
    "The mark <!-- begins a comment.\n\n{}",
    "Use the <code> element.\n\n{}",
    "> look\n\n{}",
    "> look\n{}",
    "| a |\n|---|\n| 1 |\n{}",
    "```python\nprint(1)\n```\n\n{}",
    "~~~\nx\n~~~\n{}",
    "```py\nx\n```\n{}\n```py\ny\n```",
    "The key ` is above Tab.\n\n{}",
    "Run `ls` and ``a ` b`` now:\n{}",
    'The file is called "x".\n{}',
    'The file is called "x"\n{}\n"quoted" prose.',
    "It's here; don't wait.\n{}\nIt's done.",
    "- first\n- {}",
    "1. look:\n   {}",
    "# Title\n\n{}",
    "**Step**\n{}",
    "    {}",
    "<tool_response>4</tool_response>\n{}",
    "Observation: 4 rows.\n\n{}",
    "User: look.\n{}",
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n{}",
    "[INST] look [/INST] {}",
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{}",
    "<details><summary>a</summary>b</details>\n{}",
    "Price: 5 < 6, a > b, x <- y.\n{}",
    'Set it to 5" wide.\n\n{}',
    "```xml\n{}\n```",
    "Now:\n\n```xml\n{}\n```\n\n",
    "[a](b.md) and [c].\n{}",
    "Obviously.\nOK:\n{}",
]


@pytest.mark.parametrize("block", [ACTION, LINES, TAM, VCP], ids=BLOCKS)
@pytest.mark.parametrize("around", RUN)
def test_a_good_call_is_never_lost(around: str, block: str) -> None:  # ruling 44
    if "```xml" in around and block == VCP:
        return
    text = around.format(block)
    assert runs(text) == 1
    for size in (1, 7):
        given, retracted = stream(text, size)
        assert len(given) == 1 and not retracted


@pytest.mark.parametrize("block", [TAM, VCP])
def test_a_quotation_mark_counts_in_its_paragraph_only(block: str) -> None:
    """Ruling 44: behind a blank line it sets none of several blocks aside."""
    text = f'Set it to 5" wide.\n\n{block}\n{block}\nis 5" too.'
    assert runs(text, allow_multiple_blocks=True) == 2


IN_VALUE = {
    "tam": '<|[REQUEST_TOOL]|>\ncommand:»»»t«««\npath:»»»a "b\n\nc«««\n<|[END_TOOL]|>',
    "vcp": '<<<[TOOL_REQUEST]>>>\ntool_name:「始」t「末」,\npath:「始」a " b「末」\n<<<[END_TOOL_REQUEST]>>>',
}
NOT_QUOTED = [
    'Say "a:\n{}\n{later}',
    'Say "a:\n{}\nthen\n{later}\nend.',
    'A 5" plate:\n{}\n{later}',
    'It is 5" wide.\n{}\nThat is 6" long.',
    'The "version 5" is\n{}\nand "that" is all.',
    'Size "5"\n{}\nis 6" wide.',
    'See "a" and "b".\n{}\n"c" is next.',
]
QUOTED = [
    'He wrote "{} and {later}" to me.',
    'He wrote "{}\n{later}\n" to me.',
    'He wrote "\n{}\n" to me.',
    'He wrote " {} " to me.',
    'He wrote "{}"and left.',
    'He wrote ("see {}").',
    '"The 5" plate {} is thick" he said.',
    "He wrote ＂{}＂ to me.",
    'He wrote "\u200b{}\u200b" to me.',
    "He wrote “a {}\n{later}” to me.",
    'He wrote "see <ACTION> or {} there" to me.',
]


@pytest.mark.parametrize("later", IN_VALUE.values(), ids=IN_VALUE)
@pytest.mark.parametrize("around", NOT_QUOTED)
def test_a_mark_that_is_no_prose_or_for_inches_quotes_nothing(around: str, later: str) -> None:  # ruling 44
    text = around.format(TAM, later=later)
    wanted = read_text(text).calls
    assert all(call.executable for call in wanted)
    for size in (1, 2, 7, 50):
        assert stream(text, size) == ([*range(len(wanted))], set())


@pytest.mark.parametrize("later", IN_VALUE.values(), ids=IN_VALUE)
@pytest.mark.parametrize("block", [ACTION, TAM, VCP], ids=["action", "tam", "vcp"])
@pytest.mark.parametrize("around", QUOTED)
def test_a_block_between_marks_of_prose_is_quoted(around: str, block: str, later: str) -> None:  # ruling 44
    text = around.format(block, later=later)
    assert not read_text(text).calls[0].executable
    for size in (1, 2, 7, 50):
        given, retracted = stream(text, size)
        assert 0 not in set(given) - retracted


PROSE = st.lists(
    st.sampled_from(['"', '"', " ", "a", "5", ".", ",", "(", "\n", "\n\n", "“", "”", "＂", "\u200b", "\\", "`", "<"]),
    max_size=8,
).map("".join)


@every(PROSE, PROSE, PROSE, st.sampled_from(['"', 'a "b c', '" "', "“", 'x"', "\n\n"]))
def test_what_stands_in_a_later_value_never_quotes_a_block(
    before: str, between: str, behind: str, value: str
) -> None:  # ruling 44
    def first(value: str) -> bool:
        later = f"<|[REQUEST_TOOL]|>\ncommand:»»»t«««\np:»»»{value}«««\n<|[END_TOOL]|>"
        return read_text(f"{before}{TAM}{between}\n{later}{behind}").calls[0].executable

    assert first(value) == first("x")


@every(
    st.lists(st.one_of(PROSE, st.sampled_from([ACTION, TAM, VCP, *IN_VALUE.values(), "<ACTION><t>"])), max_size=8),
    st.data(),
)
def test_quotation_marks_and_blocks_in_any_pieces_give_what_the_whole_gives(
    parts: list[str], data: st.DataObject
) -> None:  # ruling 11
    text = "".join(parts)
    check_stream(pieces(text, data.draw(st.sets(st.integers(0, len(text)), max_size=12))))
    check_stream(list(text))


MARKS = [
    "<think>",
    "</think>",
    "<!-- a -->",
    "-->",
    "```",
    "`",
    '"',
    "> a",
    "<pre>",
    "</code>",
    "Observation: x",
    "[INST]",
    "<|im_start|>user",
    "| a |",
]


@pytest.mark.parametrize("mark", MARKS)
def test_marks_in_a_value_are_text(mark: str) -> None:  # ruling 44
    for block in (
        f"<ACTION><t><p><![CDATA[a\n{mark}\nb]]></p></t></ACTION>",
        f"<|[REQUEST_TOOL]|>\ncommand:»»»t«««\np:»»»a\n{mark}\nb«««\n<|[END_TOOL]|>",
        f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」t「末」,\np:「始」a\n{mark}\nb「末」\n<<<[END_TOOL_REQUEST]>>>",
    ):
        for text in (block, f"I do it.\n\n{block}\n\nDone."):
            (call,) = read_text(text).calls
            assert call.executable, text
            assert mark in str(call.args(text)["p"])
        assert not any(call.executable for call in read_text(f"<think>{block}</think>").calls)


def test_what_is_set_aside_does_not_change_how_the_rest_is_read() -> None:  # ruling 44
    broken = ["<ACTION><t><p>1", "<|[REQUEST_TOOL]|>\ncommand:»»»t", "<<<[TOOL_REQUEST]>>>\ntool_name:「始」t"]
    wraps = ["<think>{}</think>", "<!-- {} -->", "```\n{}\n```", "<pre>{}</pre>", "<tool_response>{}</tool_response>"]
    for wrap in wraps:
        for one in broken:
            assert runs(wrap.format(one) + "\n\n" + LINES) == 1, (wrap, one)


def test_reasoning_is_told_by_its_ranges() -> None:  # ruling 45
    text = "a <think>b</think> c <THINKING>d"
    assert [text[a:b] for a, b in read_text(text).reasoning] == ["<think>b</think>", "<THINKING>d"]
    assert read_text("a </think> b").reasoning == [(0, 10)]
    assert read_text("a b").reasoning == []


def test_the_marks_of_reasoning_are_a_setting() -> None:  # ruling 45
    assert runs(f"<plan>{ACTION}</plan>", reasoning_tags=("plan",)) == 0
    assert runs(f"<think>{ACTION}</think>", reasoning_tags=("plan",)) == 1
    assert runs(f"(plan){ACTION}(/plan)", reasoning_tags=("(plan)",)) == 0


def test_a_text_can_begin_inside_reasoning() -> None:  # ruling 45
    text = f"so {ACTION}</think>\n{ACTION}"
    assert runs(text, assume_open_reasoning=True) == 1
    assert stream(text, 3, assume_open_reasoning=True) == ([1], set())
    assert runs(ACTION, assume_open_reasoning=True) == 0
    assert runs(f"<think>so</think>\n{ACTION}", assume_open_reasoning=True) == 1


def test_a_stream_takes_back_what_a_closer_makes_reasoning() -> None:  # ruling 45
    reader = StreamReader()
    assert [call.call.executable for call in reader.feed(f"so\n{ACTION}\nno").calls] == [True]
    assert reader.feed("</think>").retracted == (0,)
    assert [call.call.executable for call in reader.feed(f"\n{ACTION}").calls] == [True]
    assert [call.executable for call in reader.close().calls] == [False, True]


def test_calls_in_reasoning_run_when_asked_for() -> None:  # ruling 5
    assert runs(f"<think>{ACTION}</think>", reasoning_calls="run") == 1
    assert runs(f"{ACTION}</think>", reasoning_calls="run") == 1


@pytest.mark.parametrize("wrap", ['Say "{}', "Say `{}", "<code>{}", "Hm <!-- {}", "```\n{}\n```"])
def test_nothing_runs_in_a_text_cut_off_where_a_context_may_still_close(wrap: str) -> None:  # ruling 1
    assert runs(wrap.format(ACTION), complete=False) == 0


@pytest.mark.parametrize(
    "text", ['{"role": "user", "content": "%s"}', '[{"a": ["%s"]}, 2]', '  {"a": 1, "b": {"c": "x %s y"}}\n']
)
def test_texts_of_a_json_document_are_data(text: str) -> None:  # ruling 46
    assert runs(text % ACTION) == 0


UNITS = {
    "comments": "<!--\n" + ACTION,
    "inline comments": "x <!-- " + ACTION + " ",
    "comment openers": "x <!-- y ",
    "fences": "```\n" + ACTION + "\n",
    "spans": "` " + ACTION + " ``\n",
    "ticks of many widths": "` `` ``` ```` x " + ACTION + "\n",
    "elements": "x <code> " + ACTION + " ",
    "elements at line starts": "<pre>\n" + ACTION + "\n",
    "closed elements": "x <code>" + ACTION + "</code>\n",
    "interleaved": "<pre><think>" + ACTION + "</pre></think>",
    "unclosed blocks in elements": "x <code><ACTION><t></code>",
    "unclosed blocks in reasoning": "<think><ACTION><t></think>",
    "quotes": "> " * 50 + ACTION + "\n",
    "marks on one line": 'a "' + ACTION,
    "marks and values": 'a "\n' + TAM + "\n",
    "marks and unclosed blocks": 'a "' + "<|[REQUEST_TOOL]|>\ncommand:»»»t",
    "prefix": "// " + ACTION + "\n",
    "observations": 'Observation: Result: {"a\n\n',
    "turns": "<|im_start|>user\n" + ACTION,
    "closers": "</think>" + ACTION,
    "attributes": "<pre a=\"b' c",
    "angle brackets": "<!-<pre <",
    "invisible characters in brackets": "<\u200b\u200b\u200b",
    "invisible characters in a name": "<p\u200b\u200b\u200b",
    "invisible characters in backticks": "`\u200b`\u200b x ",
}


@pytest.mark.share(8)
@pytest.mark.parametrize("name", UNITS)
def test_time_grows_with_the_text(name: str) -> None:  # ruling 10
    assert growth(lambda n: UNITS[name] * n, read_text, 300) <= 8


@pytest.mark.share(8)
@pytest.mark.parametrize("name", UNITS)
def test_a_stream_stays_linear(name: str) -> None:  # rulings 10 11
    def feed(text: str) -> None:
        reader = StreamReader()
        for i in range(0, len(text), 64):
            reader.feed(text[i : i + 64])

    assert growth(lambda n: UNITS[name] * n, feed, 200) <= 9


UNSEEN_IN = {
    "reasoning": ("<think>", "</think>"),
    "reasoning, full-width": ("＜think＞", ""),
    "reasoning, other bracket": ("[THINK]", "[/THINK]"),
    "reasoning, triangle": ("◁think▷", "◁/think▷"),
    "harmony": ("<|channel|>analysis<|message|>", "<|end|>"),
    "comment": ("<!-- ", " -->"),
    "element": ("<pre>", "</pre>"),
    "element of one letter": ("<q>", "</q>"),
    "echo": ("<tool_response>", "</tool_response>"),
    "observation": ("Observation: a ", ""),
    "result": ("<<<[TOOL_RESULT]>>>\n", "\n<<<[END_TOOL_RESULT]>>>"),
    "summary": ("[[VCP调用结果信息汇总:\n", ""),
    "turn": ("<|im_start|>user\n", ""),
    "turn of Mistral": ("[INST] ", "[/INST]"),
    "fence": ("```\nx\n", ""),
    "tilde fence": ("~~~\nx\n", ""),
    "code": ("`", "`"),
    "code, two ticks": ("``", "``"),
}


@pytest.mark.parametrize("char", ["\u200b", "\u00ad", "\ufe0f", "\U000e0041"], ids=ascii)
@pytest.mark.parametrize("name", UNSEEN_IN)
def test_a_mark_with_an_invisible_character_anywhere_is_a_mark(name: str, char: str) -> None:  # rulings 44 to 49
    opener, closer = UNSEEN_IN[name]
    for i in range(len(opener) + 1):
        for block in (ACTION, TAM):
            text = f"{opener[:i]}{char}{opener[i:]}{block}{closer}"
            assert runs(text) == 0, text
            if i % 4 == 0:
                given, retracted = stream(text, 1)
                assert set(given) <= retracted, text


@every(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("\u200b\u00ad\u034f\u2066\u3164\ufeff")), max_size=30))
def test_any_number_of_invisible_characters_hides_no_mark(places: list[tuple[int, str]]) -> None:  # rulings 44 to 49
    for opener, closer in UNSEEN_IN.values():
        shown = opener
        for at, char in places:
            at %= len(shown) + 1
            shown = shown[:at] + char + shown[at:]
        assert runs(f"{shown}{ACTION}{closer}") == 0


@pytest.mark.parametrize("mark", ["<рre>", "<ΤΗΙΝΚ>", "<thιnk>", "<𝐭𝐡𝐢𝐧𝐤>", "<ｐｒｅ>", "<сode>"])
def test_a_mark_in_letters_that_look_alike_is_a_mark(mark: str) -> None:  # ruling 45
    assert runs(f"{mark}\n{ACTION}\n") == 0


ECHO_WORDS = [
    "Observation:",
    "OBSERVATION：",
    "Оbservation:",
    "Οbservation:",
    "Ｏbservation:",
    "Ｏｂｓｅｒｖａｔｉｏｎ：",
    "Observаtiоn:",
    "OBSERVATIΟN:",
    "О\u200bbservatіon\u2066 :",
]


@pytest.mark.parametrize("word", ECHO_WORDS, ids=ascii)
def test_an_echo_in_letters_that_look_alike_is_an_echo(word: str) -> None:
    """Ruling 48: in batch and stream; and in what a tool returned the word is written so that it begins none."""
    for block in (ACTION, TAM, VCP):
        text = f"Then:\n{word} {block}\n"
        document = read_text(text)
        assert runs(text) == 0 and contexts(document) == ["echo"]
        for size in (1, 3, 64):
            given, retracted = stream(text, size)
            assert set(given) <= retracted
    changed = inert(f"a\n{word} b")
    assert changed != f"a\n{word} b"
    assert runs(f"{changed}{ACTION}") == 1


@pytest.mark.parametrize("around", ["The Оblast of О.\n{}", "Ob\n{}", "Observations: 4.\n{}", "An observation: 4.\n{}"])
def test_a_word_that_only_begins_like_an_echo_is_none(around: str) -> None:  # ruling 48
    assert runs(around.format(ACTION)) == 1
    assert stream(around.format(ACTION), 1) == ([0], set())


HELD = {
    "long attributes": ("<think a='" + "x" * 300 + "' b='" + "y" * 300 + "' c=" + "z" * 900 + ">", "</think>"),
    "an attribute with a bracket": ("<pre a='b > c' d>", "</pre>"),
    "many invisible characters": ("<" + "\u200b" * 200 + "think>", "</think>"),
    "line end of old": ("a\rObservation: x ", ""),
    "blanks before": ("a\n   Observation\u200b : x ", ""),
    "a setting's tag": ("§plan§", "§/plan§"),
    "a setting's long tag": ("(plan mode)", "(/plan mode)"),
}


@pytest.mark.parametrize("size", [1, 3, 64])
@pytest.mark.parametrize("name", HELD)
def test_a_stream_waits_for_the_whole_of_a_mark(name: str, size: int) -> None:  # rulings 11 45
    opener, closer = HELD[name]
    text = f"{opener}{ACTION}{closer}"
    tags = ("think", "§plan§", "(plan mode)")
    assert runs(text, reasoning_tags=tags) == 0
    given, retracted = stream(text, size, reasoning_tags=tags)
    assert set(given) <= retracted


def test_a_stream_shows_what_only_looks_like_a_tag_at_once() -> None:
    """A ``<`` in prose holds nothing back once its word is no mark's."""
    reader = StreamReader()
    assert "".join(reader.feed(char).text for char in "if a <b then c") == "if a <b then c"


@pytest.mark.parametrize("protocol", ["auto", "action"])
@pytest.mark.parametrize("head", ["", "Hm. ", '{"a": "', "[", "{"])
def test_a_stream_keeps_no_more_of_a_quiet_text_than_it_looks_back(head: str, protocol: str) -> None:
    """Rulings 10, 11, 53: whether the text is a JSON document is asked without holding it in the window."""
    reader = StreamReader(protocol)
    text = head + "lorem ipsum O < x dolor sit amet\n" * 2_000
    for at in range(0, len(text), 7):
        reader.feed(text[at : at + 7])
    assert len(reader._walk._text) < 20_000  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("size", [1, 50, 5_000])
@pytest.mark.parametrize("end", ['"}', '"', '"} and', "x}"])
def test_a_call_in_a_long_json_document_stays_data_in_a_stream(end: str, size: int) -> None:  # rulings 46 53
    filling = "lorem ipsum dolor sit amet " * 400
    for text in (f'{{"a": "{filling}{ACTION}{end}', f'  [1, "{filling}{end}\n{ACTION}', f"{{x}} {filling}{ACTION}"):
        for protocol in ("auto", "action"):
            check_stream([text[at : at + size] for at in range(0, len(text), size)], protocol)


WRAPS = {
    "reasoning": "<think>{}</think>\nx",
    "comment": "<!-- {} -->",
    "open comment": "<!--\n{}",
    "element": "a <pre>{}</pre> b",
    "closer": "{}\n</think>x",
    "echo": "<tool_response>{}</tool_response>",
    "turn": "<|im_start|>user\n{}<|im_end|>",
    "fence": "`````\nx\n{}\n`````",
    "marks": "He said “{}” so.",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["action_tag", "action_inputs", "tam", "vcp"])
def test_no_good_text_of_the_corpus_runs_in_a_quoting_context(
    corpora: Path, name: str, is_long: bool
) -> None:  # rulings 44 to 49
    for line in (corpora / "calls" / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        text = row["text"]
        if row["expect"]["outcome"] != "ok" or row["ambiguous"]:
            continue
        wrapped = {kind: wrap.replace("{}", text) for kind, wrap in WRAPS.items()}
        wrapped["quote"] = prefixed("> ", text)
        for kind, whole in wrapped.items():
            assert not any(call.executable for call in read_text(whole).calls), (row["id"], kind)
            if kind in ("closer", "marks") or len(whole) > 600:
                continue
            for cut in range(len(row["id"]) % 7, len(whole), 7 if is_long else 140):
                document = read_text(whole[:cut], "auto", ReadOptions(complete=False))
                assert not any(call.executable for call in document.calls), (row["id"], kind, cut)


_CUT = {
    "ACTION": "<ACTION>\n<t>\n<p>x{}\nMore.",
    "TAM": "<|[REQUEST_TOOL]|>\ncommand:»»»t«««\np:»»»x{}\nMore.",
    "VCP": "<<<[TOOL_REQUEST]>>>\ntool_name:「始」t「末」,\np:「始」x{}\nMore.",
}


@pytest.mark.parametrize("block", _CUT)
@pytest.mark.parametrize(
    "closer",
    [
        "</think>",
        "<／think>",
        "＜/think＞",
        "<\u200b/think>",
        "</THINK >",
        "[/THINK]",
        "◁/think▷",
        "a/b c/d </think>",
        "/" * 20 + "</think>",
    ],
)
def test_a_closer_in_a_block_that_was_cut_off_ends_the_reasoning_before_it(
    block: str, closer: str
) -> None:  # ruling 45
    document = read_text(_CUT[block].format(closer))
    assert [(start, document.text[end - 1]) for start, end in document.reasoning] == [(0, closer[-1])]
    assert all(one.aside for one in document.blocks)


@pytest.mark.timeout(900)
@pytest.mark.share(8)
@pytest.mark.parametrize("name", sorted(UNITS))
def test_ten_megabytes_of_open_contexts(name: str, is_long: bool) -> None:
    """Rulings 10 44, issue 14: unclosed comments, fences, spans and elements, interleaved; without ``--long`` shorter."""
    size = 10 * 1024 * 1024 if is_long else 128 * 1024
    text = UNITS[name] * (size // len(UNITS[name]))
    part = processor_seconds(lambda: read_text(text[: len(text) // 8]))
    # Eight times the text may cost 24 times the time on a loaded machine, not 64 times.
    assert processor_seconds(lambda: read_text(text)) < 24 * part
    document = read_text(text)
    assert all(call.args(text) == {"path": "/etc/x"} for call in document.calls if call.executable)


NESTED: dict[str, Callable[[int, str], str]] = {
    "quotes": lambda n, block: "> " * n + block,
    "quotation marks": lambda n, block: "“" * n + block + "”" * n,
    "elements": lambda n, block: "<pre>\n" * n + block + "\n</pre>" * n,
    "different elements": lambda n, block: "<pre>\n<code>\n<q>\n" * (n // 3) + block + "</q></code></pre>" * (n // 3),
    "reasoning": lambda n, block: "<think>" * n + block + "</think>" * n,
    "comments": lambda n, block: "<!--\n" * n + block + "\n-->",
    "turns": lambda n, block: "[INST]\n" * n + block,
    "echoes": lambda n, block: "<tool_response>\n" * n + block + "</tool_response>" * n,
}


@pytest.mark.slow
@pytest.mark.parametrize("block", [ACTION, TAM, VCP], ids=["action", "tam", "vcp"])
@pytest.mark.parametrize("name", NESTED)
@pytest.mark.share(4)
def test_ten_thousand_nested_contexts(name: str, block: str) -> None:
    """Rulings 10 44, issue 14: nothing runs in them, however deep."""
    assert runs(NESTED[name](10_000, block)) == 0


# what is compiled for a text


def test_a_text_without_marks_has_none_of_their_patterns_compiled() -> (
    None
):  # bar 2: they take longer than a small command
    tags = ("only_here",)
    read_text(ACTION, options=ReadOptions(reasoning_tags=tags))
    known = vars(marks_of(tags))
    assert "candidate" in known
    assert "angle" not in known
    assert not any("match" in vars(pattern) for sign, pattern in marks_of(tags).others if sign == "[")


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("name", ["think", "pre", "observation", "example", "script"])
def test_a_mark_with_a_double_of_a_letter_is_looked_at(name: str, at: int) -> None:  # ruling 45
    for spelled in (*alike(name[at]), f"{name[at]}\u00ad", f"\u200b{name[at]}"):
        tag = f"<{name[:at]}{spelled}{name[at + 1 :]}>"
        if marks_of().match(tag, 0) is not None:
            assert marks_of().candidate.match(tag) is not None, tag
