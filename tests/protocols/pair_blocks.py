"""Good TAM and VCP blocks, kept as the parts they are written from, for the metamorphic tests.

A fault changes one of the parts, and what the block says stays known.
"""

from __future__ import annotations

import random
import re
from typing import Any

import msgspec

Rng = random.Random
Shown = tuple[Any, ...]

PLAIN_VALUES = ["1", "a b", "v", "007", "true", "null", "北京 天气", "😀👩‍💻", "/a b/文件.txt", "x@y.z", "naïve", "50%"]
NASTY_VALUES = [
    "",
    "line one\nline two",
    "  indented\n    more\n  back",
    '{"a": [1, 2], "b": "c: d"}',
    "def f(x):\n    return x << 2 >> 1\n",
    "if (a < b && c > d) { x->y; }",
    "cat <<EOF >> file\nbody\nEOF",
    "# heading\n- item: one\n- item: two",
    "他说「你好」，书名『红楼梦』",
    "“quoted” and 'more'",
    "a, b；c、d。e",
    "see https://a.b/c?d=e&f=g",
    "C:\\new\\table",
    "&lt;b&gt; &amp;",
    "<![CDATA[x]]>",
    "```py\ncode\n```",
    "use <think>…</think> here",
    "x = 1, y = 2",
    "tab\there",
    "@{common_dir}/run.log",
    "<ACTION><t><p>1</p></t></ACTION>",
    "\u200bzero\u200dwidth\u202e",
    "a\r\nb",
    "年末「end",
    "'''",
    "- [ ] todo\n* other",
    "1. first\n2. second",
    "key: value\nother: thing",
    "// comment\n/* x */",
    "-- sql comment",
]
TAM_VALUES = ["x ««two»» y", "a <<< b", "a >>> b", "a » b", "x « » y", "「始」x「末」", "<<<[TOOL_REQUEST]>>>"]
VCP_VALUES = ["»»»x«««", "<<< >>> <<<[X]>>>", "<|[REQUEST_TOOL]|>", "「始", "a「b", "末", "始末", "{始}", "年末」"]
NAMES = ["path", "file_path", "query", "content", "x", "max_results", "base64", "utf8", "city", "text_2nd", "lang"]
TOOLS = ["File.Write", "T.t", "core:run-script", "SciCalculator", "搜索.Web", "a_b"]
WORDS = ["then", "Note that this is done", "好的，现在调用。", "I will call the tool"]


class Field(msgspec.Struct):
    """One pair as it is written."""

    key: str
    value: str
    head: str
    tail: str
    sep: str = ":"
    before: str = ""
    wrap: tuple[str, str] = ("", "")
    after: str = ""


class Written(msgspec.Struct):
    """A text with one block, by parts; ``want`` is what it says."""

    protocol: str
    open: str
    close: str
    fields: list[Field]
    want: list[Shown]
    lead: str = ""
    trail: str = ""
    indent: str = ""
    newline: str = "\n"
    glue: str = "\n"
    blank_matters: bool = True
    """False once a fault may cost a value its blanks at both ends."""

    def text(self) -> str:
        lines = [self.open]
        lines += [
            f"{f.before}{f.wrap[0]}{f.key}{f.wrap[1]}{f.sep}{f.head}{f.value}{f.tail}{f.after}" for f in self.fields
        ]
        if self.close:
            lines.append(self.close)
        body = self.glue.join(lines)
        if self.indent:
            body = "\n".join(self.indent + line for line in body.split("\n"))
        text = f"{self.lead}{body}{self.trail}"
        return text if self.newline == "\n" else re.sub(r"\r\n|\n", self.newline, text)


def _value(rng: Rng, own: list[str]) -> str:
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(PLAIN_VALUES)
    return rng.choice(NASTY_VALUES if kind < 0.85 else own)


def tam_block(rng: Rng) -> Written:
    """A canonical TAM block with one to three steps."""

    def field(key: str, value: str) -> Field:
        return Field(key, value, "»»»", "«««")

    several = rng.random() < 0.5
    numbers = sorted(rng.sample(range(1, 12), rng.randint(1, 3))) if several else [0]
    fields: list[Field] = []
    shared: dict[str, str] = {}
    request = None
    if rng.random() < 0.3:
        request = f"req-{rng.randint(1, 99)}"
        fields.append(field("request_id", request))
    if rng.random() < 0.3:
        shared["dir"] = _value(rng, TAM_VALUES)
        fields.append(field("common_dir", shared["dir"]))
    if rng.random() < 0.2:
        fields.append(field("comment", rng.choice(WORDS)))
    want: list[Shown] = []
    for number in numbers:
        tail = f"_{number}" if number else ""
        tool = rng.choice(TOOLS)
        fields.append(field("command" + tail, tool))
        args: dict[str, str] = {}
        uris: dict[str, str] = {}
        hints: dict[str, str] = {}
        for name in rng.sample(NAMES, rng.randint(0, 3)):
            args[name] = _value(rng, TAM_VALUES)
            fields.append(field(name + tail, args[name]))
            if rng.random() < 0.1:
                hints[name] = "json"
                fields.append(field(f"type_hint_{name}{tail}", "json"))
        if rng.random() < 0.15:
            uris["image"] = "fam://data/in.png"
            fields.append(field("uri_image" + tail, uris["image"]))
        on_error = rng.choice([None, None, "stop", "continue"])
        if on_error:
            fields.append(field("on_error" + tail, on_error))
        retry = rng.choice([None, None, 0, 3])
        if retry is not None:
            fields.append(field("retry" + tail, str(retry)))
        want.append((tool, args | shared, number or 1, on_error, retry, request, uris, hints, {}))
    return Written("tam", "<|[REQUEST_TOOL]|>", "<|[END_TOOL]|>", fields, want)


def vcp_block(rng: Rng) -> Written:
    """A canonical VCP block with one tool."""
    tool = rng.choice(TOOLS)
    fields = [Field("tool_name", tool, "「始」", "「末」", after=",")]
    args: dict[str, str] = {}
    for name in rng.sample([*NAMES, "maxResults", "BM25", "maid"], rng.randint(0, 4)):
        args[name] = _value(rng, VCP_VALUES)
        fields.append(Field(name, args[name], "「始」", "「末」", after=","))
    meta: dict[str, str] = {}
    if rng.random() < 0.2:
        meta["archery"] = "no_reply"
        fields.append(Field("archery", "no_reply", "「始」", "「末」", after=","))
    if rng.random() < 0.5:
        for one in fields:
            one.after = ""
    else:
        fields[-1].after = ""
    want = [(tool, args, None, None, None, None, {}, {}, meta)]
    return Written("vcp", "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>", fields, want)
