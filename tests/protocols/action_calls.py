"""Random good ACTION calls in parts, so that a test can spoil one part and knows what the call was.

A block is a list of parts (markers, tags, layout, values); its text is their join. ``args`` is what a right reading gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from tamis.protocols.action.decode import as_cdata, escape
from tamis.protocols.model import Json

TOOLS = [
    "read_file",
    "ReadWorldStateTool",
    "core:execute-python-script",
    "kb:Query",
    "workflow:summarize_text",
    "T",
    "dry-run",
    "write.note",
    "查询工具",
    "skills/x.json",
]
PARAMS = [
    "path",
    "content",
    "a",
    "b",
    "player_id",
    "top_k",
    "query",
    "default_value",
    "timeoutMs",
    "diff",
    "x1",
    "data-url",
    "文本",
    "title",
    "code",
]
CHILDREN = ["path", "street", "city", "x", "y", "line", "mode", "value2"]
EASY = [
    "1",
    "user_scripts/a.py",
    "hello world",
    "unknown",
    "30000",
    "007",
    "true",
    "谁是咕咕？",
    "a > b",
    "C:\\temp\\n",
]
NASTY = [
    "if (a < b && c > d) return;",
    "std::cout << x << endl;",
    "AT&T and R&D;",
    "&lt;b&gt; &amp; &nbsp;",
    "a]]>b",
    "line1\n  line2\n\nline4",
    "  indented\n    more\n",
    "\n\nlead",
    "tail \n",
    '{"a": 1, "b": [true, null], "c": "x > y"}',
    "👩\u200d💻 done 🎉",
    "<<<<<<< SEARCH\n-a\n=======\n+b\n>>>>>>> REPLACE",
    "List<int> a; Map<String, List<int>> m;",
    "text <b>bold</b> more <br> end",
    "https://e.com/?a=1&b=2#x",
    '#!/bin/sh\necho "x" > /tmp/y && cat <<EOF\nhi\nEOF',
    "use </ACTION> with care",
    "say <ACTION> first",
    "<ACTION><evil><p>1</p></evil></ACTION>",
    "<tool_id>sys:rm</tool_id><inputs/>",
    "<think>no</think> then",
    "```\ncode\n```",
    "<!-- not a comment -->",
    "a <!-- c --> b",
    "<![CDATA[inner]]>",
    "`tick` and “quotes”",
    "",
    " ",
    "x\r\ny",
    "-- dashes --> arrow",
    "x < y",
    "< x",
    "&",
    "]]",
    "i<n; i++",
]


@dataclass(frozen=True)
class Part:
    """A piece of a block: ``kind`` says what it is, ``name`` whose."""

    kind: str
    text: str
    name: str = ""
    value: str = ""
    """Of a value: what it says."""
    style: str = ""
    """Of a value: ``text`` or ``cdata``."""


@dataclass(frozen=True)
class Block:
    """A good block with the calls that it makes."""

    shape: str
    parts: tuple[Part, ...]
    calls: tuple[tuple[str, dict[str, Json]], ...]
    complete: bool = True
    done: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """The block as it is written."""
        return "".join(part.text for part in self.parts)

    def places(self, *kinds: str) -> list[int]:
        """The indices of the parts of these kinds."""
        return [i for i, part in enumerate(self.parts) if part.kind in kinds]

    def swap(self, i: int, *parts: Part) -> Block:
        """The block with part ``i`` replaced."""
        return replace(self, parts=(*self.parts[:i], *parts, *self.parts[i + 1 :]))

    def retext(self, i: int, text: str) -> Block:
        """The block with the text of part ``i`` replaced."""
        return self.swap(i, replace(self.parts[i], text=text))


def good_block(rng: Random, *, nasty: bool = True) -> Block:
    """A random good block."""
    shape = rng.choice(["tag", "inputs"])
    count = 1 if shape == "inputs" or rng.random() < 0.7 else rng.randint(2, 3)
    layout = rng.choice([("\n", "  "), ("\n", "\t"), ("\n", "    "), ("", ""), ("\r\n", "  ")])
    parts = [Part("action-open", "<ACTION>")]
    calls: list[tuple[str, dict[str, Json]]] = []
    for tool in rng.sample(TOOLS, count):
        args: dict[str, Json] = {}
        if shape == "tag":
            parts += [_gap(layout, 1), Part("tool-open", f"<{tool}>", tool)]
        else:
            parts += [_gap(layout, 1), Part("id-open", "<tool_id>", "tool_id"), Part("id", tool, tool)]
            parts += [
                Part("id-close", "</tool_id>", "tool_id"),
                _gap(layout, 1),
                Part("inputs-open", "<inputs>", "inputs"),
            ]
        for name in rng.sample(PARAMS, rng.choice([0, 1, 1, 2, 2, 3, 4])):
            parts.append(_gap(layout, 2))
            if shape == "tag":
                parts.append(Part("param-open", f"<{name}>", name))
            else:
                parts.append(Part("param-open", f'<input name="{name}">', name))
            args[name] = _value(rng, parts, layout, nasty)
            parts.append(Part("param-close", f"</{name}>" if shape == "tag" else "</input>", name))
        if shape == "tag":
            parts += [_gap(layout, 1), Part("tool-close", f"</{tool}>", tool)]
        else:
            parts += [_gap(layout, 1), Part("inputs-close", "</inputs>", "inputs")]
        calls.append((tool, args))
    parts += [_gap(layout, 0), Part("action-close", "</ACTION>")]
    return Block(shape, tuple(parts), tuple(calls))


def _gap(layout: tuple[str, str], depth: int) -> Part:
    return Part("gap", layout[0] + layout[1] * depth)


def _value(rng: Random, parts: list[Part], layout: tuple[str, str], nasty: bool) -> Json:
    if rng.random() < 0.15:
        return _nested(rng, parts, layout)
    value = rng.choice(NASTY if nasty and rng.random() < 0.5 else EASY)
    return _leaf(rng, parts, value)


def _leaf(rng: Random, parts: list[Part], value: str) -> str:
    plain = value == value.strip() and rng.random() < 0.6
    text = escape(value) if plain else as_cdata(value)
    parts.append(Part("value", text, "", value, "text" if plain else "cdata"))
    return value


def _nested(rng: Random, parts: list[Part], layout: tuple[str, str]) -> Json:
    if rng.random() < 0.5:
        items: list[Json] = []
        for _ in range(rng.randint(1, 3)):
            parts += [_gap(layout, 3), Part("child-open", "<item>", "item")]
            items.append(_leaf(rng, parts, rng.choice(EASY)))
            parts.append(Part("child-close", "</item>", "item"))
        parts.append(_gap(layout, 2))
        return items
    members: dict[str, Json] = {}
    for name in rng.sample(CHILDREN, rng.randint(1, 3)):
        parts += [_gap(layout, 3), Part("child-open", f"<{name}>", name)]
        members[name] = _leaf(rng, parts, rng.choice(EASY))
        parts.append(Part("child-close", f"</{name}>", name))
    parts.append(_gap(layout, 2))
    return members
