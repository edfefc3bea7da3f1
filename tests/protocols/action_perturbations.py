"""What models do to a good ACTION block: each function spoils one thing, or returns None where there is nothing to spoil.

None of them changes what a careful person would read, so a reader may give the same calls or refuse them, never others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random

from tests.protocols.action_calls import Block, Part

Perturbation = Callable[[Random, Block], Block | None]
CLOSERS = ("param-close", "tool-close", "action-close", "id-close", "inputs-close", "child-close")
OPENERS = ("param-open", "tool-open", "action-open", "id-open", "inputs-open", "child-open")
ZERO_WIDTH = ["\ufeff", "\u200b", "\u2060"]
PROSE = [", ", " and ", "Now:", "参数如下", "* ", "-", ";", "// next", "…", "|"]


def _pick(rng: Random, block: Block, *kinds: str) -> int | None:
    places = block.places(*kinds)
    return rng.choice(places) if places else None


def _edit(rng: Random, block: Block, kinds: tuple[str, ...], change: Callable[[str], str]) -> Block | None:
    i = _pick(rng, block, *kinds)
    if i is None:
        return None
    text = change(block.parts[i].text)
    return block.retext(i, text) if text != block.parts[i].text else None


def _drop(*kinds: str) -> Perturbation:
    def drop(rng: Random, block: Block) -> Block | None:
        i = _pick(rng, block, *kinds)
        return None if i is None else block.swap(i)

    return drop


def _on(kinds: tuple[str, ...], *changes: Callable[[str], str]) -> Perturbation:
    return lambda rng, block: _edit(rng, block, kinds, rng.choice(changes))


def _insert(kinds: tuple[str, ...], texts: list[str]) -> Perturbation:
    def insert(rng: Random, block: Block) -> Block | None:
        i = _pick(rng, block, *kinds)
        if i is None:
            return None
        return block.swap(i, block.parts[i], Part("extra", rng.choice(texts)))

    return insert


def swapped_closers(rng: Random, block: Block) -> Block | None:
    """``</tool></param>``: two closing tags that follow one another change places."""
    closers = block.places(*CLOSERS)
    pairs = [(a, b) for a, b in pairwise(closers) if all(part.kind == "gap" for part in block.parts[a + 1 : b])]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    first, second = block.parts[a].text, block.parts[b].text
    return block.retext(a, second).retext(b, first) if first != second else None


def crossed_closers(rng: Random, block: Block) -> Block | None:
    """``<a>1</b><b>2</a>``."""
    closers = block.places("param-close")
    if len(closers) < 2:
        return None
    at = rng.randrange(len(closers) - 1)
    a, b = closers[at], closers[at + 1]
    first, second = block.parts[a].text, block.parts[b].text
    return block.retext(a, second).retext(b, first) if first != second else None


def foreign_closer(rng: Random, block: Block) -> Block | None:
    """A closing tag with a typo or another word."""
    i = _pick(rng, block, "param-close", "tool-close")
    if i is None:
        return None
    name = block.parts[i].text[2:-1]
    at = rng.randrange(len(name))
    word = rng.choice(
        [name[:at] + name[at + 1 :], name + "s", "parameter", "param", "tool", name[:at] + "z" + name[at:]]
    )
    if not word or word in {part.name for part in block.parts} | {"input", "inputs"}:
        return None
    return block.retext(i, f"</{word}>")


def stray_closer(rng: Random, block: Block) -> Block | None:
    """A closing tag that closes nothing, between elements."""
    i = _pick(rng, block, "param-close", "tool-close", "inputs-close", "id-close")
    if i is None:
        return None
    names = ["b", "parameter", "function", "invoke", "tool_call", "content", block.parts[i].text[2:-1]]
    return block.swap(i, block.parts[i], Part("extra", rng.choice(["", "\n"]) + f"</{rng.choice(names)}>"))


def decorated_id(rng: Random, block: Block) -> Block | None:
    """Quotes or backticks around a tool's name."""
    quote = rng.choice(["`{}`", '"{}"', "'{}'", "“{}”", " {} ", "\n{}\n", "**{}**"][:6])
    i = _pick(rng, block, "id")
    if i is not None:
        return block.retext(i, quote.format(block.parts[i].text))
    i = _pick(rng, block, "tool-open")
    if i is None or quote.strip() == "{}":
        return None
    name = block.parts[i].name
    j = next(
        k for k in range(i, len(block.parts)) if block.parts[k].kind == "tool-close" and block.parts[k].name == name
    )
    block = block.retext(i, f"<{quote.format(name)}>")
    return block if rng.random() < 0.3 else block.retext(j, f"</{quote.format(name)}>")


def zero_width(rng: Random, block: Block) -> Block | None:
    """An invisible character in the layout or in a name."""
    char = rng.choice(ZERO_WIDTH)
    if rng.random() < 0.5:
        i = _pick(rng, block, *OPENERS, *CLOSERS)
        if i is None or block.parts[i].kind in ("param-open", "child-open", "param-close", "child-close"):
            return None
        return block.swap(i, block.parts[i], Part("extra", char)) if block.parts[i].kind != "id-open" else None
    i = _pick(rng, block, "tool-open", "param-open", "id", "tool-close", "param-close", "action-open", "action-close")
    if i is None:
        return None
    text = block.parts[i].text
    inside = [m.end() for m in re.finditer(r"\w", text[:-1]) if not text.startswith("<input") or m.start() > 12]
    if not inside:
        return None
    at = rng.choice(inside)
    return block.retext(i, text[:at] + char + text[at:])


def dropped_opener(rng: Random, block: Block) -> Block | None:
    """An opening tag is missing; not that of a structure or of nothing, where the rest is as good without it."""
    places = [
        i
        for i in block.places("param-open", "tool-open", "id-open", "inputs-open")
        if block.parts[i].kind != "param-open" or block.parts[i + 1].value.strip()
    ]
    return block.swap(rng.choice(places)) if places else None


def entity_form(rng: Random, block: Block) -> Block | None:
    """A character of a value as a reference."""
    i = _text_value(rng, block, "text")
    if i is None or not block.parts[i].value:
        return None
    value, out = block.parts[i].value, ""
    for char in value:
        if char in "<&":
            out += rng.choice(
                [f"&#{ord(char)};", f"&#x{ord(char):x};", f"&#x{ord(char):X};", {"<": "&lt;", "&": "&amp;"}[char]]
            )
        elif rng.random() < 0.1:
            out += f"&#{ord(char)};"
        else:
            out += char
    return block.retext(i, out)


def _text_value(rng: Random, block: Block, style: str) -> int | None:
    places = [i for i in block.places("value") if block.parts[i].style == style]
    return rng.choice(places) if places else None


AMBIGUOUS_RAW = ("<!--", "<![CDATA[", "&lt;", "&amp;", "<ACTION><", "<tool_id>", "]]>")
"""What means something else when it stands unescaped: comments, sections, entities, structure."""


def raw_value(rng: Random, block: Block) -> Block | None:
    """A value without escaping."""
    places = [
        i
        for i in block.places("value")
        if not any(mark in block.parts[i].value for mark in AMBIGUOUS_RAW)
        and block.parts[i].value.strip() == block.parts[i].value
    ]
    if not places:
        return None
    i = rng.choice(places)
    return block.retext(i, block.parts[i].value) if block.parts[i].text != block.parts[i].value else None


def own_closer_in_value(rng: Random, block: Block) -> Block | None:
    """A value that speaks of its own closing tag (F4)."""
    i = _text_value(rng, block, "text")
    if i is None or block.parts[i + 1].kind != "param-close" or not block.parts[i].value.strip():
        return None
    close = block.parts[i + 1].text
    name = block.parts[i + 1].name
    said = f"{block.parts[i].value} ends with {close} here."
    calls: list[tuple[str, dict[str, object]]] = []
    owner = [k for k in block.places("tool-open", "id") if k < i][-1]
    for tool, args in block.calls:
        mine = tool == block.parts[owner].name and name in args
        calls.append((tool, {**args, name: said} if mine else dict(args)))
    return replace(block, calls=tuple(calls)).retext(i, f"{block.parts[i].text} ends with {close} here.")  # type: ignore[arg-type]  # JSON values stay JSON


def cdata_spelling(rng: Random, block: Block) -> Block | None:
    """CDATA as models spell it."""
    i = _text_value(rng, block, "cdata")
    if i is None or block.parts[i].text.count("<![CDATA[") > 1 or "]]" in block.parts[i].value:
        return None
    text = block.parts[i].text
    mark = rng.choice(["<![cdata[", "<[CDATA[", "<! [CDATA[", "<![ CDATA [", "<![CData[", "<!CDATA[", "<![CDATA["])
    end = rng.choice(["]]>", "]]>", "]]>", "]] >", "] ]>", "]]", "]>"])
    return block.retext(i, mark + text[9:-3] + end)


def cdata_unclosed(rng: Random, block: Block) -> Block | None:
    """A CDATA section that is never closed."""
    i = _text_value(rng, block, "cdata")
    if i is None or block.parts[i].text.count("<![CDATA[") > 1 or block.parts[i].value.endswith("]"):
        return None
    return block.retext(i, block.parts[i].text[:-3])


def cdata_early_end(rng: Random, block: Block) -> Block | None:
    """``]]>`` inside a section."""
    places = [i for i in block.places("value") if "]]>" in block.parts[i].value]
    if not places:
        return None
    i = rng.choice(places)
    return block.retext(i, f"<![CDATA[{block.parts[i].value}]]>")


def cdata_around_layout(rng: Random, block: Block) -> Block | None:
    """Blanks around a section."""
    i = _text_value(rng, block, "cdata")
    if i is None:
        return None
    return block.retext(i, rng.choice(["\n    {}\n  ", " {} ", "\n{}", "{}\n"]).format(block.parts[i].text))


def json_inputs(rng: Random, block: Block) -> Block | None:
    """A JSON object where elements were due."""
    opens = block.places("inputs-open", "tool-open")
    closes = block.places("inputs-close", "tool-close")
    at = rng.randrange(len(opens))
    args = block.calls[at][1]
    if not args or any(not isinstance(value, str) for value in args.values()):
        return None
    body = json.dumps(args, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 2]))
    plain = not any(char in body for char in "<&")
    text = body if plain and rng.random() < 0.7 else f"<![CDATA[{body}]]>"
    if "]]>" in body:
        return None
    text = rng.choice(["", "\n"]) + text + rng.choice(["", "\n"])
    return replace(block, parts=(*block.parts[: opens[at] + 1], Part("json", text), *block.parts[closes[at] :]))


def _attribute(value: str) -> str | None:
    return None if any(char in value for char in '<>&"\n\r') else f'"{value}"'


def attributes_for_children(rng: Random, block: Block) -> Block | None:
    """``<T a="1"/>``."""
    opens = block.places("tool-open")
    if not opens:
        return None
    at = rng.randrange(len(opens))
    args = block.calls[at][1]
    quoted = {name: _attribute(value) if isinstance(value, str) else None for name, value in args.items()}
    if not args or None in quoted.values():
        return None
    body = " ".join(f"{name}={value}" for name, value in quoted.items())
    name = block.parts[opens[at]].name
    close = block.places("tool-close")[at]
    text = rng.choice([f"<{name} {body}/>", f"<{name} {body} />", f"<{name} {body}></{name}>"])
    return replace(block, parts=(*block.parts[: opens[at]], Part("tool", text), *block.parts[close + 1 :]))


def value_as_attribute(rng: Random, block: Block) -> Block | None:
    """``<a value="1"/>``."""
    i = _text_value(rng, block, "text")
    if i is None or block.parts[i - 1].kind != "param-open" or not block.parts[i].value:
        return None
    value = _attribute(block.parts[i].value)
    if value is None:
        return None
    open_ = block.parts[i - 1]
    tag = open_.text[:-1] + f" value={value}/>"
    return replace(block, parts=(*block.parts[: i - 1], Part("param", tag), *block.parts[i + 2 :]))


def name_attribute(rng: Random, block: Block) -> Block | None:
    """``<input>`` with its name written in another way."""
    if block.shape != "inputs":
        return None
    i = _pick(rng, block, "param-open")
    if i is None:
        return None
    name = block.parts[i].name
    forms = [
        "<input name={}>",
        "<input name='{}'>",
        "<input name=“{}”>",
        "<input name=\"{}'>",
        '<input name={}">',
        '<input name="{}>',
        '<input Name="{}">',
        '<input NAME="{}">',
        '<input key="{}">',
        '<input id="{}">',
        '<input param="{}">',
        '<input name = "{}" >',
        "<input={}>",
        '<input="{}">',
        '<input "{}">',
        '<input name="{}" type="string">',
        '<input name=" {} ">',
        '<input name="`{}`">',
        '<input type="text" name="{}">',
        '<input name:"{}">',
        '<input name=""{}"">',
        "<input name=&quot;{}&quot;>",
        '<input name=\\"{}\\">',
        "<input name=「{}」>",
    ]
    return block.retext(i, rng.choice(forms).format(name))


def input_closer(rng: Random, block: Block) -> Block | None:
    """``</input>`` with the name of the parameter."""
    if block.shape != "inputs":
        return None
    i = _pick(rng, block, "param-close")
    if i is None:
        return None
    name = block.parts[i].name
    return block.retext(i, rng.choice([f'</input name="{name}">', f"</{name}>", f"</input:{name}>", "</inputs>"][:3]))


def aliases(rng: Random, block: Block) -> Block | None:
    """Other words for the reserved tags, or ``<parameter name="…">`` in the tag shape."""
    if block.shape == "tag":
        words = rng.choice(["parameter", "param", "input", "arg"])
        parts = tuple(
            replace(part, text=f'<{words} name="{part.name}">')
            if part.kind == "param-open"
            else replace(part, text=f"</{words}>")
            if part.kind == "param-close"
            else part
            for part in block.parts
        )
        return replace(block, parts=parts) if parts != block.parts else None
    words = {
        "tool_id": rng.choice(["tool_id", "toolId", "tool-id", "Tool_Id", "tool", "tool_name", "TOOL_ID"]),
        "inputs": rng.choice(["inputs", "Inputs", "parameters", "params", "arguments", "INPUTS"]),
        "input": rng.choice(["input", "Input", "parameter", "param", "arg"]),
    }

    def renamed(part: Part) -> Part:
        if not part.kind.startswith(("id-", "inputs-", "param-")):
            return part
        text = re.sub(r"^(</?)(tool_id|inputs|input)\b", lambda m: m.group(1) + words[m.group(2)], part.text)
        return replace(part, text=text)

    return replace(block, parts=tuple(renamed(part) for part in block.parts))


def children_as_inputs(rng: Random, block: Block) -> Block | None:
    """``<inputs><query>…</query></inputs>``."""
    if block.shape != "inputs":
        return None
    parts = tuple(
        replace(part, text=f"<{part.name}>")
        if part.kind == "param-open"
        else replace(part, text=f"</{part.name}>")
        if part.kind == "param-close"
        else part
        for part in block.parts
    )
    return replace(block, parts=parts) if rng.random() < 2 else None


def order_swapped(rng: Random, block: Block) -> Block | None:
    """``<inputs>`` before ``<tool_id>``."""
    if block.shape != "inputs":
        return None
    a, b = block.places("id-open")[0], block.places("inputs-open")[0]
    end = block.places("inputs-close")[0]
    head, body = block.parts[a:b], block.parts[b : end + 1]
    return replace(block, parts=(*block.parts[:a], *body, Part("gap", "\n"), *head, *block.parts[end + 1 :]))


def inputs_missing(rng: Random, block: Block) -> Block | None:
    """``<input>`` without ``<inputs>``."""
    if block.shape != "inputs" or not block.places("param-open"):
        return None
    return replace(block, parts=tuple(part for part in block.parts if part.kind not in ("inputs-open", "inputs-close")))


def tool_attribute(rng: Random, block: Block) -> Block | None:
    """``<ACTION tool_id="…">``."""
    if block.shape != "inputs":
        return None
    i, at, end = block.places("action-open")[0], block.places("id-open")[0], block.places("id-close")[0]
    name = block.parts[at + 1].name
    parts = (*block.parts[:at], *block.parts[end + 1 :])
    word = rng.choice(["tool_id", "tool", "name", "toolId"])
    return replace(block, parts=parts).retext(i, f'<ACTION {word}="{name}">')


def name_value_pairs(rng: Random, block: Block) -> Block | None:
    """``<input><name>q</name><value>x</value></input>``."""
    if block.shape != "inputs" or not block.places("param-open"):
        return None
    parts = tuple(
        replace(part, text=f"<input><name>{part.name}</name><value>")
        if part.kind == "param-open"
        else replace(part, text="</value></input>")
        if part.kind == "param-close"
        else part
        for part in block.parts
    )
    return replace(block, parts=parts)


def wrapped_call(rng: Random, block: Block) -> Block | None:
    """``<invoke name="T">`` or ``<tool_call>`` around what was meant."""
    if block.shape == "inputs":
        a, end = block.places("id-open")[0], block.places("inputs-close")[0]
        word = rng.choice(["tool_call", "invoke", "call", "tool"])
        inner = block.parts[a : end + 1]
        return replace(
            block,
            parts=(
                *block.parts[:a],
                Part("wrap", f"<{word}>"),
                *inner,
                Part("wrap", f"</{word}>"),
                *block.parts[end + 1 :],
            ),
        )
    i = rng.randrange(len(block.calls))
    open_, close = block.places("tool-open")[i], block.places("tool-close")[i]
    name = block.parts[open_].name
    word = rng.choice(["invoke", "tool", "function", "tool_call"])
    return block.retext(open_, f'<{word} name="{name}">').retext(close, f"</{word}>")


def fence(rng: Random, block: Block) -> Block | None:
    """A Markdown fence around the block."""
    mark = rng.choice(["```", "```xml", "```json", "~~~", "````xml"])
    close = re.sub(r"\w", "", mark)
    first, last = block.parts[0], block.parts[-1]
    return replace(
        block, parts=(Part("extra", f"{mark}\n"), first, *block.parts[1:-1], last, Part("extra", f"\n{close}"))
    )


def prose_around(rng: Random, block: Block) -> Block | None:
    """Text before and behind the block, also with mentions."""
    before = rng.choice(
        [
            "Sure.\n",
            "I use `<ACTION>` now:\n",
            "好的，🎉 ",
            "a < b\n",
            "<br>\n",
            "> ",
            "- ",
            "\ufeff",
            "<think>plan</think>\n",
        ]
    )
    behind = rng.choice(
        ["\nDone.", " ok", "\nThe `</ACTION>` above ends it.", "\n\n<p>x</p>", "\n</p>", "\n```", "</think>"]
    )
    return replace(block, parts=(Part("extra", before), *block.parts, Part("extra", behind)))


def nested_opener(rng: Random, block: Block) -> Block | None:
    """A doubled opening or closing marker."""
    open_, close = block.places("action-open")[0], block.places("action-close")
    how = rng.randrange(4)
    if how == 0:
        return block.retext(open_, rng.choice(["<ACTION><ACTION>", "<ACTION>\n<ACTION>", "<ACTION>\n<action>"]))
    if not close:
        return None
    if how == 1:
        return block.retext(close[0], rng.choice(["</ACTION></ACTION>", "</ACTION>\n</ACTION>"]))
    if how == 2:
        return block.retext(open_, "<ACTION>\n<ACTION>").retext(close[0], "</ACTION>\n</ACTION>")
    return block.retext(open_, "<ACTION>\n").retext(close[0], "<ACTION>")


def line_ends(rng: Random, block: Block) -> Block | None:
    """Other layout between the tags."""
    change = rng.choice(["\r\n", "\r", "\n\n", "\n\u3000\u3000", "\n\t", "\n\u00a0"])
    return replace(
        block, parts=tuple(replace(p, text=p.text.replace("\n", change)) if p.kind == "gap" else p for p in block.parts)
    )


def comments(rng: Random, block: Block) -> Block | None:
    """A comment between elements."""
    i = _pick(
        rng, block, "action-open", "tool-open", "inputs-open", "param-close", "tool-close", "inputs-close", "id-close"
    )
    if i is None:
        return None
    texts = [
        "<!-- note -->",
        "<!-- a -- b -->",
        "<!-- <x>1</x> -->",
        "<!-- </ACTION> -->",
        "<!---->",
        "<!-- R&D < -->",
        "<!--- x --->",
    ]
    return block.swap(i, block.parts[i], Part("extra", rng.choice(texts)))


def cut(rng: Random, block: Block) -> Block | None:
    """The text ends anywhere, and the host knows it."""
    text = block.text
    at = rng.randrange(len(text))
    return replace(block, parts=(Part("cut", text[:at]),), complete=False)


def cut_unknown(rng: Random, block: Block) -> Block | None:
    """The text ends anywhere, and the host does not know it."""
    text = block.text
    return replace(block, parts=(Part("cut", text[: rng.randrange(len(text))]),), done=(*block.done, "cut"))


def prologue(rng: Random, block: Block) -> Block | None:
    """What XML documents begin with."""
    i = block.places("action-open")[0]
    return block.retext(i, block.parts[i].text + rng.choice(['<?xml version="1.0" encoding="UTF-8"?>', "\n<?xml?>\n"]))


def _half_up(text: str) -> str:
    return "".join(char.upper() if k % 2 else char for k, char in enumerate(text))


def _wide(text: str) -> str:
    return text.replace("<", "＜").replace(">", "＞").replace("/", "／")


PERTURBATIONS: dict[str, Perturbation] = {
    "drop-param-close": _drop("param-close"),
    "drop-tool-close": _drop("tool-close"),
    "drop-action-close": _drop("action-close"),
    "drop-child-close": _drop("child-close"),
    "drop-id-close": _drop("id-close"),
    "drop-inputs-close": _drop("inputs-close"),
    "drop-open": dropped_opener,
    "swapped-closers": swapped_closers,
    "crossed-closers": crossed_closers,
    "foreign-closer": foreign_closer,
    "stray-closer": stray_closer,
    "double-closer": lambda rng, block: _edit(rng, block, CLOSERS, lambda t: t + t),
    "double-opener": lambda rng, block: _edit(rng, block, OPENERS[:2] + OPENERS[3:], lambda t: t + t),
    "case-close": _on(CLOSERS, str.upper, str.lower, str.title, _half_up),
    "case-open": _on(("action-open", "id-open", "inputs-open"), str.lower, str.title, _half_up),
    "wide-marker": _on(("action-open", "action-close"), _wide, lambda t: t.replace("<", "＜").replace(">", "＞")),
    "wide-tag": _on(
        (*OPENERS[:5], *CLOSERS[:5]),
        lambda t: t.replace("<", "＜").replace(">", "＞"),
        lambda t: t.replace(">", "＞"),
        lambda t: t.replace("<", "＜"),
    ),
    "blank-in-open": _on(
        OPENERS, lambda t: "< " + t[1:], lambda t: t[:-1] + " >", lambda t: t[:-1] + "\n>", lambda t: "<\t" + t[1:]
    ),
    "blank-in-close": _on(
        CLOSERS,
        lambda t: "</ " + t[2:],
        lambda t: "< /" + t[2:],
        lambda t: t[:-1] + " >",
        lambda t: "<\n/" + t[2:],
        lambda t: t[:-1] + "\n>",
    ),
    "no-bracket-open": _on(OPENERS[:5], lambda t: t[:-1], lambda t: t[:-1] + " ", lambda t: t[1:]),
    "no-bracket-close": _on(CLOSERS, lambda t: t[:-1], lambda t: t[1:], lambda t: t[:-1] + "\n"),
    "no-slash": _on(CLOSERS, lambda t: "<" + t[2:]),
    "wrong-slash": _on(
        CLOSERS,
        lambda t: "<\\" + t[2:],
        lambda t: "<" + t[2:-1] + "/>",
        lambda t: t[:-1] + "/>",
        lambda t: "<//" + t[2:],
        lambda t: "<|" + t[2:],
    ),
    "double-bracket": _on(("action-open", "tool-open", "inputs-open", *CLOSERS[:5]), lambda t: t + ">"),
    "double-bracket-left": _on((*OPENERS[:5], "tool-close", "inputs-close", "action-close"), lambda t: "<" + t),
    "decorated-tag": _on(
        (*OPENERS[:2], "tool-close", "action-close", "inputs-close"),
        lambda t: f"`{t}`",
        lambda t: f"**{t}**",
        lambda t: "\\" + t,
        lambda t: f'"{t}"',
    ),
    "escaped-tag": _on(
        (*OPENERS[:5], *CLOSERS[:5]),
        lambda t: t.replace("<", "&lt;").replace(">", "&gt;"),
        lambda t: t.replace("<", "\\<").replace(">", "\\>"),
    ),
    "extra-attribute": _on(
        ("action-open", "inputs-open", "id-open", "param-open"),
        lambda t: t[:-1] + ' type="string">',
        lambda t: t[:-1] + " required>",
        lambda t: t[:-1] + ' xmlns="u">',
    ),
    "close-attribute": _on(CLOSERS, lambda t: t[:-1] + ' x="1">', lambda t: t[:-1] + " x>"),
    "decorated-id": decorated_id,
    "zero-width": zero_width,
    "prose": _insert(
        ("action-open", "tool-open", "inputs-open", "param-close", "tool-close", "inputs-close", "id-close"), PROSE
    ),
    "comments": comments,
    "entity-form": entity_form,
    "raw-value": raw_value,
    "own-closer-in-value": own_closer_in_value,
    "cdata-spelling": cdata_spelling,
    "cdata-unclosed": cdata_unclosed,
    "cdata-early-end": cdata_early_end,
    "cdata-layout": cdata_around_layout,
    "json-inputs": json_inputs,
    "attributes-for-children": attributes_for_children,
    "value-as-attribute": value_as_attribute,
    "name-attribute": name_attribute,
    "input-closer": input_closer,
    "aliases": aliases,
    "children-as-inputs": children_as_inputs,
    "order-swapped": order_swapped,
    "inputs-missing": inputs_missing,
    "tool-attribute": tool_attribute,
    "name-value-pairs": name_value_pairs,
    "wrapped-call": wrapped_call,
    "fence": fence,
    "prose-around": prose_around,
    "nested-opener": nested_opener,
    "line-ends": line_ends,
    "prologue": prologue,
    "cut": cut,
    "cut-unknown": cut_unknown,
}


def perturbed(rng: Random, block: Block, names: list[str]) -> Block:
    """The block with one or two things spoiled; ``done`` names them."""
    for name in sorted(names, key=lambda name: name.startswith("cut")):
        try:
            spoiled = PERTURBATIONS[name](rng, block)
        except (IndexError, StopIteration, ValueError):
            continue  # what this one spoils, an earlier one took away
        if spoiled is not None:
            block = replace(spoiled, done=(*block.done, name))
    return block
