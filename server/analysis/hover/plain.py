"""Our own Markdown as plain text, for clients that show no other. Must not be used on Markdown of others' making."""

from __future__ import annotations

import re

_FENCE = re.compile(r"(`{3,})\w*\Z")
_CODE = re.compile(r"(`+) ?(.+?) ?\1")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"\[([^\]\n]+)\]\(<?([^)\s>]+)>?\)")
_ESCAPED = re.compile(r"\\([\\`*_\[\]<>#|~!])")
_HEADING = re.compile(r"#{1,6} +")
_RULE = re.compile(r"-{3,}\Z")


def plain_text(markdown: str) -> str:
    """The text without marks; what stands in a fence stays as it is, indented."""
    out: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        if fence:
            if line.strip() == fence:
                fence = ""
            else:
                out.append(f"    {line}".rstrip())
            continue
        opened = _FENCE.match(line)
        if opened is not None:
            fence = opened[1]
            continue
        if _RULE.match(line):
            out.append("")
            continue
        line = _HEADING.sub("", line, count=1) if line.startswith("#") else line
        line = _CODE.sub(r"\2", line)
        line = _STRONG.sub(r"\2", line)
        out.append(_ESCAPED.sub(r"\1", _LINK.sub(r"\1 (\2)", line)))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()
