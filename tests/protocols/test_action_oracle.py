"""ACTION blocks that are well-formed XML, against lxml: the same names, and the same texts by our own rule for blanks.

lxml is the oracle only for what XML says (tags, entities, CDATA, comments). What a value is made of is ruling 15, how it is
trimmed ruling 16; both are written here a second time, in the plainest way, from lxml's tree.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.protocols.lxml_oracle import children_of, etree, only_own_pair, together
from tests.protocols.reader_helpers import codes, read, runnable

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}(?:[.\-][a-z0-9]{1,4})?", fullmatch=True).map(
    lambda name: f"x{name}"
) | st.just("item")
# No control characters: XML has none. No carriage return: XML makes it a line feed, ruling 16 keeps it.
PLAIN = st.text(
    st.sampled_from("ab 1.,;'\"=/>\n\t我😀é{}[]-#") | st.characters(codec="utf-8", categories=["L", "N"]), max_size=12
)


def _escaped(text: str) -> str:
    # A ">" may stand as it is, except at the end of "]]>".
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")


TEXTS = st.lists(
    PLAIN.map(_escaped)
    | st.sampled_from(["&lt;", "&amp;", "&gt;", "&quot;", "&apos;", "&#65;", "&#x1F600;", "&amp;lt;"]),
    max_size=4,
).map("".join)
SECTIONS = st.text(st.sampled_from("a<>&]b \n/😀\"'"), max_size=12).filter(lambda text: "]]>" not in text)
LAYOUT = st.sampled_from(["", "\n", "\n  ", " ", "<!-- note -->", "\n<!-- a > b -->\n"])


def leaf(name: str) -> st.SearchStrategy[str]:
    section = SECTIONS.map(lambda text: f"<![CDATA[{text}]]>")
    return (TEXTS | section | st.just("")).map(lambda body: f"<{name}>{body}</{name}>")


@st.composite
def elements(draw: st.DrawFn, depth: int = 2) -> str:
    name = draw(NAMES)
    if depth == 0 or draw(st.integers(0, 3)):
        return draw(leaf(name))
    inner = draw(st.lists(elements(depth - 1), min_size=1, max_size=3))
    return f"<{name}>" + "".join(draw(LAYOUT) + part for part in inner) + draw(LAYOUT) + f"</{name}>"


@st.composite
def blocks(draw: st.DrawFn) -> str:
    tool = "x" + draw(st.from_regex(r"[a-z]{1,6}(?:-[a-z]{1,4})?", fullmatch=True))
    params = draw(st.lists(elements(), max_size=4))
    body = "".join(draw(LAYOUT) + part for part in params) + draw(LAYOUT)
    return f"<ACTION>{draw(LAYOUT)}<{tool}>{body}</{tool}>{draw(LAYOUT)}</ACTION>"


# The second spelling of the markers goes through the tolerant path, which must come to the same.
@pytest.mark.slow
@pytest.mark.parametrize("marker", ["ACTION", "action"])
@given(blocks())
@example("<ACTION><xt><xa>\n  a\n</xa><xa> b </xa><xb><item>1</item><item>2</item></xb></xt></ACTION>")
@example("<ACTION><xt><xa><![CDATA[\n  a\n  ]]></xa><xb>&amp;lt;&#65;</xb></xt></ACTION>")
def test_a_well_formed_block_is_read_as_lxml_reads_it(marker: str, block: str) -> None:
    tree = etree.fromstring(block, etree.XMLParser(strip_cdata=False, resolve_entities=False, no_network=True))
    tool = children_of(tree)[0]
    assume("TC062" not in codes(read(block)))  # ruling 67: a slip in a mark, whatever XML says
    assume(not any(only_own_pair(param) for param in children_of(tool)))  # ruling 52: an error, whatever XML says
    text = block.replace("<ACTION>", f"<{marker}>").replace("</ACTION>", f"</{marker}>")
    document = read(text)
    assert runnable(document) == [(tool.tag, together(children_of(tool)))]
    # A comment inside a structure is left out with a warning (ruling 17).
    assert set(codes(document)) - {"AX127"} == (set() if marker == "ACTION" else {"TC004"})
