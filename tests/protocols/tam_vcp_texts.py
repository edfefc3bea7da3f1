"""Random texts made of the marks of TAM and VCP."""

from __future__ import annotations

from hypothesis import strategies as st

PARTS = st.sampled_from(
    [
        "<|[REQUEST_TOOL]|>",
        "<|[END_TOOL]|>",
        "<<<[TOOL_REQUEST]>>>",
        "<<<[END_TOOL_REQUEST]>>>",
        "<<<[TOOL_DEFINITION]>>>",
        "»»»",
        "«««",
        ">>>",
        "<<<",
        "»",
        "««",
        "「始」",
        "「末」",
        "「始ESCAPE」",
        "「末ESCAPE」",
        "{始}",
        "「未」",
        "command",
        "command_1",
        "tool_name",
        "command1",
        "x_1",
        "common_y",
        ":",
        "：",
        "=",
        ",",
        "\n",
        "\r\n",
        "  ",
        "# note",
        "// note",
        "```",
        "a",
        "文",
        "😀",
        "\u200b",
        "\x00",
        "**",
        "- ",
    ]
)


SOUP = st.lists(st.one_of(PARTS, st.text(max_size=4)), max_size=40).map("".join)
