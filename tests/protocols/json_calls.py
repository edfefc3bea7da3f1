"""Helpers of the tests of protocols whose calls are JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tamis.protocols.hermes.protocol import HERMES
from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.plugins import find_protocol, register
from tamis.protocols.reader import read_text
from tests.protocols.reader_helpers import Shown, runnable

if find_protocol("hermes") is None:
    register(HERMES)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        *(
            "</tool_call>",
            "<tool_call>",
            '<tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call>',
            "{",
            "}}",
            '"',
            "'",
        ),
        *(
            "\n",
            "\t",
            "\\",
            "C:\\new",
            "a // b",
            "# c",
            "/* d",
            "```",
            "[1,]",
            "True",
            "，",
            "\u200b",
            "😀中文",
            "<think>",
        ),
        *("<ACTION><rm></rm></ACTION>", "<<<[TOOL_REQUEST]>>>", "\x7f", '"""', "\\n"),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)
NAMES = st.from_regex(r"[A-Za-z_][\w:.\-]{0,14}[a-z]", fullmatch=True)
ARGS = st.dictionaries(TEXTS.filter(bool), VALUES, max_size=4)
CALLS = st.lists(st.tuples(NAMES, ARGS), min_size=1, max_size=3)


def block(name: str, args: object, **beside: object) -> str:
    """A canonical block."""
    content = {"name": name, "arguments": args, **beside}
    return f"<tool_call>\n{json.dumps(content, ensure_ascii=False)}\n</tool_call>"


def read(text: str, mode: str = "hermes", **options: Any) -> Document:
    return read_text(text, mode, ReadOptions(**options))


def executable_calls(text: str, mode: str = "hermes", **options: Any) -> Shown:
    return runnable(read(text, mode, **options))


def check_spans(document: Document) -> None:
    """Every place slices to what it claims to be (ruling 9)."""
    text = document.text
    for found in document.blocks:
        assert 0 <= found.span[0] <= found.open[0] <= found.span[1] <= len(text)
    for call in document.calls:
        assert call.tool_id in text[slice(*call.tool_span)] or "\\" in text[slice(*call.tool_span)]
        for param in call.params:
            assert call.span[0] <= param.span[0] <= param.name_span[0] <= param.span[1] <= call.span[1]
            for _, value in param.value.walk():
                start, end = value.span
                assert call.span[0] <= start <= end <= call.span[1]
                written = text[start:end]
                if value.kind == "literal":
                    assert (
                        written.casefold() in (json.dumps(value.literal), "none", "null")
                        or _number(written) == value.literal
                    )
                elif value.kind == "text":
                    plain = value.text(text)
                    assert written == plain or "\\" in written or "'" in written or '"' in written, (written, plain)
                    for i in range(len(plain)):
                        assert start <= value.source_offset(i) < end
    for diag in document.diagnostics:
        assert 0 <= diag.span[0] <= diag.span[1] <= len(text)


def _number(text: str) -> object:
    try:
        return json.loads(text.lower().replace("none", "null"))
    except ValueError:
        return text
