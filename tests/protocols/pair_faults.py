"""The faults that models put into TAM and VCP blocks.

What a reader may do with a faulty block: read the same calls, or none; never others. A fault that leaves nothing a reader could
know returns False.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.protocols.pair_blocks import PLAIN_VALUES, TOOLS, WORDS, Field, Rng, Written

Fault = Callable[[Rng, Written], object]


def _one(rng: Rng, w: Written) -> Field:
    return rng.choice(w.fields)


def _some(rng: Rng, w: Written) -> list[Field]:
    return w.fields if rng.random() < 0.4 else [_one(rng, w)]


def _is_simple(value: str) -> bool:
    """Whether a value carries no structure of its own, so that one without delimiters has one reading."""
    return value != "" and value in PLAIN_VALUES


# --- faults of one value or one key ---------------------------------------------------------------------------------


def delimiters(heads: list[str], tails: list[str]) -> Fault:
    """Other delimiters; where a value holds the very characters of marks, nobody can tell it from them."""

    def fault(rng: Rng, w: Written) -> bool:
        head, tail = rng.choice(heads), rng.choice(tails)
        chosen = _some(rng, w)
        for f in chosen:
            f.head, f.tail = head, tail
        return w.protocol == "tam" or not any(char in f.value for f in chosen for char in "始末")

    return fault


def missing_tail(rng: Rng, w: Written) -> None:
    f = _one(rng, w)
    f.tail = ""
    f.after = ""
    w.blank_matters = False


def missing_head(rng: Rng, w: Written) -> bool:
    f = _one(rng, w)
    f.head = ""
    return _is_simple(f.value) or f.value == ""


def bare(rng: Rng, w: Written) -> bool:
    chosen = _some(rng, w)
    for f in chosen:
        f.head = " "
        f.tail = f.after = ""
    return all(_is_simple(f.value) or f.value in (*TOOLS, "json", "continue", "stop", "0", "3") for f in chosen)


def reversed_delimiters(rng: Rng, w: Written) -> None:
    for f in _some(rng, w):
        f.head, f.tail = f.tail, f.head


def doubled_tail(rng: Rng, w: Written) -> None:
    f = _one(rng, w)
    # Set close, one run of TAM's delimiter is six long and three of it belong to the value (ruling 56).
    f.tail += rng.choice(["", " ", "  "] if w.protocol == "vcp" else [" ", "  "]) + f.tail


def doubled_head(rng: Rng, w: Written) -> bool:
    f = _one(rng, w)
    f.head += f.head
    return w.protocol == "vcp"


def separators(choices: list[str]) -> Fault:
    def fault(rng: Rng, w: Written) -> None:
        sep = rng.choice(choices)
        for f in _some(rng, w):
            f.sep = sep

    return fault


def decoration(rng: Rng, w: Written) -> None:
    wrap = rng.choice(
        [
            ("- ", ""),
            ("* ", ""),
            ("• ", ""),
            ("1. ", ""),
            ("**", "**"),
            ("`", "`"),
            ('"', '"'),
            ("'", "'"),
            ("“", "”"),
            ("- **", "**"),
            ("*", "*"),
            ("> ", ""),
            ("<", ">"),
            ("__", "__"),
            ("+ ", ""),
            ("- [ ] ", ""),
        ]
    )
    if w.protocol == "vcp" and wrap[0] == "__":
        wrap = ("`", "`")  # underscores are letters of a VCP key
    for f in _some(rng, w):
        f.wrap = wrap


def emphasis_around_key_and_colon(rng: Rng, w: Written) -> None:
    for f in _some(rng, w):
        f.wrap = ("**", "")
        f.sep = ":** "


def after_value(rng: Rng, w: Written) -> None:
    mark = rng.choice([",", ";", "，", "；", "、", ".", "|", " ,", "\\", "  ", " ;;", "。", ",,"])
    for f in _some(rng, w):
        f.after = mark


def zero_width(rng: Rng, w: Written) -> None:
    char = rng.choice("\u200b\u200c\u200d\u2060\ufeff\u00ad")
    f = _one(rng, w)
    where = rng.randint(0, 5)
    if where == 0:
        w.open = w.open[:5] + char + w.open[5:]
    elif where == 1:
        w.close = w.close[:6] + char + w.close[6:]
    elif where == 2:
        f.sep = f.sep + char
    elif where == 3:
        f.key = f.key[:2] + char + f.key[2:]
    elif where == 4:
        f.head = f.head[:1] + char + f.head[1:]
    else:
        f.tail = f.tail[:1] + char + f.tail[1:]


# --- faults of the block ----------------------------------------------------------------------------------------------


def marker_parts(opens: list[str], closes: list[str]) -> Fault:
    def fault(rng: Rng, w: Written) -> None:
        which = rng.randint(0, 2)
        if which != 1:
            w.open = rng.choice(opens)
        if which != 0:
            w.close = rng.choice(closes)

    return fault


def missing_close(rng: Rng, w: Written) -> None:
    w.close = ""


def missing_open(rng: Rng, w: Written) -> None:
    w.open = rng.choice(["", "```"])


def doubled_markers(rng: Rng, w: Written) -> None:
    if rng.random() < 0.5:
        w.open += "\n" + w.open
    else:
        w.close += "\n" + w.close


def fenced(rng: Rng, w: Written) -> None:
    mark = rng.choice(["```", "~~~", "````"])
    w.lead = rng.choice(["", "Text:\n"]) + mark + rng.choice(["", "text", "xml"]) + "\n" + w.lead
    w.trail = "\n" + mark + w.trail


def fence_inside(rng: Rng, w: Written) -> None:
    w.open += "\n```"
    w.close = "```\n" + w.close


def prose_around(rng: Rng, w: Written) -> None:
    w.lead = rng.choice(WORDS) + rng.choice(["\n", "\n\n", " ", "：", ""]) + w.lead
    w.trail += rng.choice(["\n", "\n\n", " ", ""]) + rng.choice(WORDS)


def prose_between(rng: Rng, w: Written) -> None:
    f = _one(rng, w)
    f.before = rng.choice(WORDS) + "\n" + f.before


def comments(rng: Rng, w: Written) -> None:
    f = _one(rng, w)
    f.before = rng.choice(["# n", "// n", "-- n", "<!-- n -->", "/* n */", "; n", "#n: x"]) + "\n" + f.before


def blank_lines(rng: Rng, w: Written) -> None:
    w.glue = rng.choice(["\n\n", "\n \n", " \n", "\n\n\n", "\n\t\n"])


def one_line(rng: Rng, w: Written) -> None:
    w.glue = rng.choice([" ", "", ", ", "  "])


def indented(rng: Rng, w: Written) -> bool:
    w.indent = rng.choice(["  ", "    ", "\t"])
    return w.protocol == "tam" or all("\n" not in f.value for f in w.fields)


def quoted_block(rng: Rng, w: Written) -> bool:
    w.indent = "> "
    return all("\n" not in f.value for f in w.fields)


def line_ends(rng: Rng, w: Written) -> None:
    w.newline = rng.choice(["\r\n", "\r"])


def byte_order_mark(rng: Rng, w: Written) -> None:
    w.lead = "\ufeff" + w.lead


def shuffled(rng: Rng, w: Written) -> None:
    rng.shuffle(w.fields)


def duplicated(rng: Rng, w: Written) -> bool:
    f = _one(rng, w)
    i = w.fields.index(f)
    w.fields.insert(rng.randint(0, i), Field(f.key, "earlier", f.head, f.tail, after=f.after))
    return True


def in_reasoning(rng: Rng, w: Written) -> None:
    w.lead = "<think>\n" + w.lead
    w.trail += "\n</think>"


def inline_code(rng: Rng, w: Written) -> None:
    w.open, w.close = f"`{w.open}`", f"`{w.close}`"


def escaped(rng: Rng, w: Written) -> None:
    def html(part: str) -> str:
        return part.replace("<", "&lt;").replace(">", "&gt;")

    w.open, w.close = html(w.open), html(w.close)
    if rng.random() < 0.5:
        for f in w.fields:
            f.head = f.head.replace("»", "&raquo;")
            f.tail = f.tail.replace("«", "&laquo;")


def key_case(rng: Rng, w: Written) -> None:
    change = rng.choice([str.upper, str.title, str.capitalize])
    for f in _some(rng, w):
        f.key = f.key.upper() if _digits_inside(f.key) else change(f.key)


def nested(_rng: Rng, w: Written) -> None:
    w.open = f"{w.open}\n\n{w.open}"


def closing_tag(rng: Rng, w: Written) -> None:
    w.close = rng.choice(["</ACTION>", "<|[END_TOOL]|>", "<<<[END_TOOL_REQUEST]>>>", "</tool_call>", "[END]", "END"])


SHARED: dict[str, Fault] = {
    "missing tail": missing_tail,
    "missing head": missing_head,
    "bare value": bare,
    "reversed": reversed_delimiters,
    "doubled tail": doubled_tail,
    "doubled head": doubled_head,
    "separator": separators(
        ["：", " = ", "=", " -> ", " => ", "->", "", " ", "︰", " : ", ": ", " ： ", "::", ":\n", ": \t"]
    ),
    "decoration": decoration,
    "emphasis": emphasis_around_key_and_colon,
    "after value": after_value,
    "zero width": zero_width,
    "missing close": missing_close,
    "missing open": missing_open,
    "doubled markers": doubled_markers,
    "fence": fenced,
    "fence inside": fence_inside,
    "prose around": prose_around,
    "prose between": prose_between,
    "comment": comments,
    "blank lines": blank_lines,
    "one line": one_line,
    "indented": indented,
    "block quote": quoted_block,
    "line ends": line_ends,
    "byte order mark": byte_order_mark,
    "shuffled": shuffled,
    "duplicate": duplicated,
    "reasoning": in_reasoning,
    "inline code": inline_code,
    "escaped": escaped,
    "nested opener": nested,
    "other closing tag": closing_tag,
}

# --- what only one of them has ----------------------------------------------------------------------------------------


def _digits_inside(key: str) -> bool:
    """Whether a name holds digits of its own, which other spellings would run into the step number."""
    return re.search(r"\d(?!\d*$)|[^_]\d+(?:_\d+)?$", key) is not None


def step_form(rng: Rng, w: Written) -> bool:
    numbered = [f for f in w.fields if re.search(r"_\d+$", f.key) and not _digits_inside(f.key)]
    if not numbered:
        return False
    f = rng.choice(numbered)
    base, number = f.key.rsplit("_", 1)
    wide = "".join(chr(ord(digit) + 0xFEE0) for digit in number)
    small = "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in number)
    f.key = rng.choice(
        [
            f"{base}{number}",
            f"{base} {number}",
            f"{base}-{number}",
            f"{base}_0{number}",
            f"{base}_{wide}",
            f"{base}[{number}]",
            f"{base}({number})",
            f"{base}#{number}",
            f"{base}.{number}",
            f"{base}_{small}",
            f"{base}__{number}",
            f"{base}_{number}_",
        ]
    )
    return True


def camel(rng: Rng, w: Written) -> None:
    for f in _some(rng, w):
        if _digits_inside(f.key):
            continue
        parts = f.key.split("_")
        f.key = parts[0] + "".join(part.capitalize() for part in parts[1:])


def hyphens(rng: Rng, w: Written) -> None:
    for f in _some(rng, w):
        f.key = f.key.replace("_", rng.choice(["-", " ", ".", "/"]))


TAM_FAULTS: dict[str, Fault] = {
    **SHARED,
    "backup delimiters": delimiters([">>>"], ["<<<"]),
    "mixed delimiters": delimiters(["»»»", ">>>", "»>>", ">»»"], ["«««", "<<<", "<««", "<<«"]),
    "short delimiters": delimiters(["»»", "»", ">>", "»»»"], ["««", "«", "<<", "«««"]),
    "long delimiters": delimiters([">>>>", "»»»"], ["<<<<", "«««"]),
    "wide delimiters": delimiters(["》》》", "＞＞＞", "》》", "»»»"], ["《《《", "＜＜＜", "《《", "«««"]),
    "spaced delimiters": delimiters(["» » »", "> > >", " »»» ", "»» »"], ["« « «", "< < <", " ««« ", "«« «"]),
    "other marks": delimiters(
        ["「始」", '"""', "```", "“", "<<<", "<![CDATA["], ["「末」", '"""', "```", "”", ">>>", "]]>"]
    ),
    "marker": marker_parts(
        [
            "<|[request_tool]|>",
            "< |[REQUEST_TOOL]| >",
            "<|[REQUEST-TOOL]|>",
            "<|[REQUEST TOOL]|>",
            "<[REQUEST_TOOL]>",
            "<|REQUEST_TOOL|>",
            "<<|[REQUEST_TOOL]|>>",
            "＜｜［REQUEST_TOOL］｜＞",
            "<|【REQUEST_TOOL】|>",
            "<|[REQUESTTOOL]|>",
            "<|[REQUEST_TOOL]>",
            "<|[TOOL_REQUEST]|>",
            "[REQUEST_TOOL]",
            "<|[REQUEST_TOOL|>",
            "|[REQUEST_TOOL]|>",
            "**<|[REQUEST_TOOL]|>**",
            "<||[REQUEST_TOOL]||>",
            "<<<[REQUEST_TOOL]>>>",
            "<|[REQUEST_TOOLS]|>",
            "<|[[REQUEST_TOOL]]|>",
        ],
        [
            "<|[end_tool]|>",
            "< |[END_TOOL]| >",
            "<|[END-TOOL]|>",
            "<[END_TOOL]>",
            "<|END_TOOL|>",
            "<|[/REQUEST_TOOL]|>",
            "<|[END_REQUEST_TOOL]|>",
            "<|[END]|>",
            "<|[ENDTOOL]|>",
            "＜｜［END_TOOL］｜＞",
            "<|[END_TOOLS]|>",
            "<|[END_TOOL]>",
            "[END_TOOL]",
            "<|[END_TOOL|>",
            "</|[REQUEST_TOOL]|>",
            "**<|[END_TOOL]|>**",
            "<|[TOOL_END]|>",
            "<|[/END_TOOL]|>",
            "<|[END_TOOL_REQUEST]|>",
        ],
    ),
    "key case": key_case,
    "camel case": camel,
    "hyphens": hyphens,
    "step form": step_form,
}


def unit_marks(rng: Rng, w: Written) -> None:
    for f in _some(rng, w):
        if rng.random() < 0.7:
            f.head = rng.choice(["「始ESCAPE」", "「始escape」", "「始exp」", "「始EXP」", "「始ESCAPE」"])
            f.tail = f.head.replace("始", "末")
        else:
            f.head, f.tail = rng.choice(
                [("「始ESCAPE」", "「末」"), ("「始」", "「末ESCAPE」"), ("「始exp」", "「末ESCAPE」")]
            )


def tool_name_form(rng: Rng, w: Written) -> bool:
    named = [f for f in w.fields if f.key == "tool_name"]
    if len(named) != 1:
        return False
    named[0].key = rng.choice(
        [
            "tool-name",
            "toolName",
            "ToolName",
            "TOOL_NAME",
            "tool name",
            "toolname",
            "tool_Name",
            "tool",
            "name",
            "工具名",
            "tool＿name",
        ]
    )
    return True


def pair_separator(rng: Rng, w: Written) -> None:
    mark = rng.choice([",", "", "，", "；", ";", "、", " ", ",\n\n", ",,", " , ", "|"])
    w.glue = rng.choice(["\n", " ", ""])
    for f in w.fields:
        f.after = mark
    w.open += "\n"
    w.close = "\n" + w.close


VCP_FAULTS: dict[str, Fault] = {
    **SHARED,
    "brace marks": delimiters(["{始}", "｛始｝", "「始」"], ["{末}", "｛末｝", "「末」"]),
    "half-width marks": delimiters(["｢始｣", "「始｣", "「始」"], ["｢末｣", "「末｣", "「末」"]),
    "double marks": delimiters(
        ["『始』", "【始】", "[始]", "〔始〕", "《始》"], ["『末』", "【末】", "[末]", "〔末〕", "《末》"]
    ),
    "look-alike marks": delimiters(
        ["「始」", "「开始」", "「開始」", "「起」", "「始"], ["「未」", "「结束」", "「終」", "「终」", "末」", "「末"]
    ),
    "english marks": delimiters(["「START」", "「start」", "「BEGIN」"], ["「END」", "「end」", "「Stop」"]),
    "spaced marks": delimiters(["「 始 」", "「始 」", " 「始」 "], ["「 末 」", "「末 」", " 「末」 "]),
    "round marks": delimiters(
        ["(始)", "（始）", "<始>", "＜始＞", "始」", "「始"], ["(末)", "（末）", "<末>", "＜末＞", "末」", "「末"]
    ),
    "other marks": delimiters(["»»»", '"', "```", "“", "「", "[[", "'"], ["«««", '"', "```", "”", "」", "]]", "'"]),
    "escape marks": unit_marks,
    "marker": marker_parts(
        [
            "<<<[tool_request]>>>",
            "<<[TOOL_REQUEST]>>",
            "<<<<[TOOL_REQUEST]>>>>",
            "<[TOOL_REQUEST]>",
            "<<<TOOL_REQUEST>>>",
            "<<<[TOOL-REQUEST]>>>",
            "<<<[TOOL REQUEST]>>>",
            "<<<[ TOOL_REQUEST ]>>>",
            "《《《[TOOL_REQUEST]》》》",
            "＜＜＜[TOOL_REQUEST]＞＞＞",
            "<<<【TOOL_REQUEST】>>>",
            "<<< [TOOL_REQUEST] >>>",
            "<<<[TOOL_REQUEST]>>",
            "<<<[REQUEST_TOOL]>>>",
            "<<<[TOOL_REQUESTS]>>>",
            "<|[TOOL_REQUEST]|>",
            "**<<<[TOOL_REQUEST]>>>**",
            "<<<[TOOL_CALL]>>>",
            "<<<[TOOL_REQUEST]",
            "«««[TOOL_REQUEST]»»»",
            "<<<[TOOL_REQUEST_EXP]>>>",
            "<<<[TOOL_REQUEST_ESCAPE]>>>",
        ],
        [
            "<<<[end_tool_request]>>>",
            "<<[END_TOOL_REQUEST]>>",
            "<<<<[END_TOOL_REQUEST]>>>>",
            "<[END_TOOL_REQUEST]>",
            "<<<END_TOOL_REQUEST>>>",
            "<<<[END-TOOL-REQUEST]>>>",
            "<<<[END TOOL REQUEST]>>>",
            "<<<[/TOOL_REQUEST]>>>",
            "《《《[END_TOOL_REQUEST]》》》",
            "＜＜＜[END_TOOL_REQUEST]＞＞＞",
            "<<<[END_TOOL]>>>",
            "<<<[TOOL_REQUEST_END]>>>",
            "<<<[ENDTOOL_REQUEST]>>>",
            "<<<[END_TOOL_REQUEST]>>",
            "<<<[END_TOOL_REQUESTS]>>>",
            "<<<[END_TOOL_REQUEST",
            "<<<[END_TOOL_REQUEST_EXP]>>>",
            "<<<[END_TOOL_RESULT]>>>",
        ],
    ),
    "tool_name form": tool_name_form,
    "pair separator": pair_separator,
}

# Two faults that together leave a value without a visible end: no reader can know.
NOT_TOGETHER = (
    {
        frozenset(("missing tail", other))
        for other in (
            "prose between",
            "comment",
            "fence inside",
            "one line",
            "bare value",
            "doubled tail",
            "nested opener",
            "missing close",
            "prose around",
            "other closing tag",
            "pair separator",
            "after value",
            "block quote",
            "other marks",
            "missing head",
            "marker",
            "inline code",
            "escaped",
        )
    }
    | {
        frozenset(("bare value", other))
        for other in (
            "prose between",
            "comment",
            "fence inside",
            "one line",
            "missing close",
            "prose around",
            "after value",
            "other closing tag",
            "other marks",
            "pair separator",
            "block quote",
            "marker",
            "missing head",
            "inline code",
            "escaped",
        )
    }
    | {frozenset(("indented", "line ends")), frozenset(("block quote", "line ends"))}
)
