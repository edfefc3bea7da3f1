"""What holds for every TAM and VCP text: nothing raises, values survive, cuts are safe, both readers agree, time is linear."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import Source
from tamis.protocols.model import ReadOptions
from tamis.protocols.pairs.lexer import lex
from tamis.protocols.pairs.walk import Lexed
from tamis.protocols.reader import read_text
from tamis.protocols.tam.dialect import DIALECT
from tamis.protocols.tam.dialect import lex_canonical as tam_canonical
from tamis.protocols.tam.protocol import TAM
from tamis.protocols.vcp.dialect import DIALECTS
from tamis.protocols.vcp.dialect import lex_canonical as vcp_canonical
from tamis.protocols.vcp.protocol import VCP
from tests.growth import growth
from tests.protocols.tam_vcp_blocks import read, repaired, runs, tam, vcp, warnings
from tests.protocols.tam_vcp_texts import SOUP

WORDS = st.text(st.sampled_from("ab 文😀\n\t:#»>「始<&{}`\"'-,"), max_size=24)
NAMES = st.from_regex(r"[a-z]{1,6}(?:_[a-z]{1,4})?", fullmatch=True).filter(
    lambda name: not name.startswith(("command", "common", "uri", "type", "comment", "on_error", "retry", "tool"))
)


@given(SOUP, st.booleans())
def test_no_text_raises_and_every_span_lies_in_it(text: str, complete: bool) -> None:
    source = Source(text)
    for protocol in (TAM, VCP):
        for opener in protocol.opener.finditer(text):
            block = protocol.read_block(source, opener.span(), len(text), ReadOptions(complete=complete))
            assert opener.start() == block.span[0] <= block.span[1] <= len(text)
            for call in block.calls:
                assert text[slice(*call.tool_span)].strip() == text[slice(*call.tool_span)]
                for param in call.params:
                    value = param.value
                    assert param.span[0] <= value.span[0] <= value.span[1] <= param.span[1]
                    assert value.text(text) == "".join(text[p.start : p.end] for p in value.pieces)


@given(SOUP)
# P6
def test_fixes_are_sorted_disjoint_and_inside_the_text(text: str) -> None:
    for diag in read_text(text).diagnostics:
        edits = diag.fix.edits if diag.fix else ()
        assert all(0 <= edit.start <= edit.end <= len(text) for edit in edits)
        assert all(a.end <= b.start for a, b in pairwise(edits))


@given(SOUP)
# T05
def test_a_value_without_its_tail_round_trips_after_the_trim_rule(value: str) -> None:
    # What stands at the delimiters, a line that starts a pair of its own and a NUL are the exceptions the rules make.
    if "«««" in value or "\x00" in value or value.startswith("»") or value.endswith("«"):
        return
    if any("»»»" in line and not line.startswith("»»»") for line in value.splitlines()):
        return
    text = tam("command:»»»T.t«««", f"x:»»»{value}«««", "y:»»»2«««")
    if "[REQUEST" in value or "[END" in value:
        return
    assert runs(text) == [("T.t", {"x": value.strip(), "y": "2"})]


@given(WORDS)
def test_a_vcp_value_without_its_end_mark_round_trips_to_the_byte(value: str) -> None:
    if (
        value.startswith(("「始", "」"))
        or value.endswith("「")
        or ":「始" in value.replace(" ", "").replace("\t", "").replace("\n", "")
    ):
        return
    text = vcp("tool_name:「始」T「末」,", f"x:「始」{value}「末」,", "y:「始」2「末」")
    assert runs(text) == [("T", {"x": value, "y": "2"})]


def _shape(lexed: Lexed | None) -> object:
    assert lexed is not None
    pairs = [(p.start, p.end, p.key, p.raw, p.value, p.family, p.delimited) for p in lexed.pairs]
    return pairs, lexed.comments, lexed.close, lexed.stop, lexed.end


@given(st.dictionaries(NAMES, st.text(st.sampled_from("ab 文😀\n:#,{}"), max_size=12), max_size=5), st.booleans())
def test_the_canonical_and_the_tolerant_walk_agree_on_canonical_blocks(fields: dict[str, str], note: bool) -> None:
    fields |= {"q": "x « two » y", "r": "未来（末尾）\n"} if note else {}
    lines = [f"{name}:»»»{value}«««" for name, value in fields.items()]
    text = tam("command:»»»T.t«««", *(["# note"] if note else []), *lines)
    start = len("<|[REQUEST_TOOL]|>")
    tolerant = lex(Source(text), start, len(text), DIALECT, complete=True)
    assert _shape(tam_canonical(Source(text), start, len(text))) == _shape(tolerant)
    assert tolerant.findings.items == []
    text = vcp("tool_name:「始」T「末」,", *(f"{name}:「始」{value}「末」," for name, value in fields.items()))
    start = len("<<<[TOOL_REQUEST]>>>")
    tolerant = lex(Source(text), start, len(text), DIALECTS[""], complete=True)
    assert _shape(vcp_canonical(Source(text), start, len(text))) == _shape(tolerant)
    assert tolerant.findings.items == []


@given(
    st.one_of(
        SOUP,
        SOUP.map(lambda text: tam("command:»»»T.t«««", text)),
        SOUP.map(lambda text: vcp("tool_name:「始」T「末」", text)),
    )
)
# F1, F17
def test_every_prefix_read_as_cut_off_gives_leading_calls_or_nothing(text: str) -> None:
    # What is ambiguous in the whole text may still have run nothing: only its executable calls may appear early.
    whole = runs(text)
    for cut in range(0, len(text), max(1, len(text) // 40)):
        early = runs(text[:cut], complete=False)
        assert early == whole[: len(early)], cut


@given(
    st.lists(
        st.sampled_from(["x:>>>1<<<", "y：»»»2«««", "- z:»»»3«««", "u:»»1««", "v: 4", "w:»»»5", "# c", "K-l:»»»6«««"]),
        max_size=6,
    )
)
# P4
def test_safe_fixes_keep_the_calls_and_leave_no_repair(lines: list[str]) -> None:
    text = tam("command:»»»T.t«««", *dict.fromkeys(lines))
    mended = repaired(text)
    assert runs(mended) == runs(text)
    # A bare line below a value that nothing closes may be part of it: then nothing runs, and a person repairs.
    assert warnings(mended) == [] or runs(text) == []


TO, TE, VO, VE = "<|[REQUEST_TOOL]|>\n", "<|[END_TOOL]|>", "<<<[TOOL_REQUEST]>>>\n", "<<<[END_TOOL_REQUEST]>>>"
TAM_HEAD, VCP_HEAD = f"{TO}command:»»»T.t«««\n", f"{VO}tool_name:「始」T「末」,\n"
STRESS: dict[str, tuple[int, Callable[[int], str]]] = {
    "unclosed TAM openers": (8_000, lambda n: TO * n),
    "unclosed VCP openers": (8_000, lambda n: VO * n),
    "unclosed TAM blocks with a value": (2_000, lambda n: f"{TAM_HEAD}x:»»»a\n" * n),
    "unclosed VCP blocks with a value": (2_000, lambda n: f"{VCP_HEAD}x:「始」a\n" * n),
    "VCP open marks": (100_000, lambda n: f"{VCP_HEAD}x:{'「始」' * n}\n{VE}"),
    "VCP open marks apart": (20_000, lambda n: f"{VCP_HEAD}x:「始」{'a 「始」 b' * n}「末」\n{VE}"),
    "TAM parameters": (8_000, lambda n: TAM_HEAD + "".join(f"p{i}x:»»»v«««\n" for i in range(n)) + TE),
    "VCP parameters": (8_000, lambda n: VCP_HEAD + "".join(f"p{i}:「始」v「末」,\n" for i in range(n)) + VE),
    "VCP parameters on one line": (8_000, lambda n: VCP_HEAD + ",".join(f"p{i}:「始」v「末」" for i in range(n)) + VE),
    "missing TAM tails": (20_000, lambda n: TAM_HEAD + "".join(f"p{i}x:»»»v\n" for i in range(n)) + TE),
    "bare lines": (20_000, lambda n: TAM_HEAD + "".join(f"k{i}: v\n" for i in range(n)) + TE),
    "END markers in a value": (10_000, lambda n: f"{TAM_HEAD}x:»»»{TE * n}«««\n{TE}"),
    "heads in a value": (20_000, lambda n: f"{TAM_HEAD}x:»»»{'a »»» b' * n}«««\n{TE}"),
    "tails behind a value": (20_000, lambda n: f"{TAM_HEAD}x:»»»{'a««« ' * n}\n{TE}"),
    "blanks around a key": (200_000, lambda n: f"{TO}command{' ' * n}:»»»T.t«««\n{TE}"),
    "a key of that length": (200_000, lambda n: f"{TAM_HEAD}{'k-' * (n // 2)}:»»»v«««\n{TE}"),
    "one big TAM value": (2_000_000, lambda n: TAM_HEAD + "  x:»»»" + "  line of text\n" * (n // 15) + f"«««\n{TE}"),
    "one big VCP value": (2_000_000, lambda n: VCP_HEAD + "x:「始」" + "line of text\n" * (n // 13) + f"「末」\n{VE}"),
}


@pytest.mark.share(8)
@pytest.mark.parametrize("name", STRESS)
def test_ruling_10_time_grows_with_the_size_of_the_text(name: str) -> None:
    n, build = STRESS[name]
    assert growth(build, read, n // 4) <= 8


def test_a_value_of_10_mb_is_read_whole() -> None:
    value = "x" * 10_000_000
    assert runs(tam("command:»»»T.t«««", f"x:»»»{value}«««")) == [("T.t", {"x": value})]
    assert runs(vcp("tool_name:「始」T「末」", f"x:「始」{value}「末」")) == [("T", {"x": value})]
