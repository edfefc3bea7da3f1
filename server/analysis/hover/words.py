"""What markers, marks and a protocol's own fields mean, in a sentence or two (seeds 000 to 002, rulings 12 to 30)."""

from __future__ import annotations

import re
from collections.abc import Callable

from tamis.protocols.model import Call

_TAM_FIELDS: dict[str, tuple[str, str]] = {
    r"command(?:_\d+)?": (
        "the tool of a step",
        "The steps of a block run in the order of their numbers; `command` alone is step 1.",
    ),
    r"retry(?:_\d+)?": (
        "how often a step is tried again",
        "The number of further attempts after the first one failed; 0 without it.",
    ),
    r"on_error(?:_\d+)?": (
        "what happens when a step fails",
        "`stop` (the default) leaves out the steps that follow; `continue` runs them.",
    ),
    r"type_hint_.+": (
        "how a value is read",
        "`text` (the default), `json`: the value is JSON text, or `base64`: it is Base64 of any bytes, and the tool gets Base64.",
    ),
    r"uri_.+": (
        "a value by reference",
        "The file that a `fam://` URI names is given to the tool instead of a text; `[resources]` of tamis.toml says which folders there are.",
    ),
    r"common_.+": ("a parameter of all steps", "Every step has it; a step's own parameter of that name wins."),
    r"request_id": (
        "the block's own id",
        "The same id with the same content is not run again and gives the stored result; with other content it is an error.",
    ),
    r"comment": ("a note", "It is not passed on to any tool."),
}
"""By pattern of the normal key: what it is, and what it does."""
_VCP_FIELDS = {
    "toolname": (
        "the tool to run",
        "Its id, an alias, its `vcpCommand`, or `toolId_methodName` of a service (ruling 30).",
    ),
    **dict.fromkeys(("archery", "ink", "river", "vref"), ("a field of the host", "Read by the host, not by the tool.")),
    "timelycontact": ("a field of the host", "Tells the host when to run the call."),
    "toolpassword": ("a field of the host", "Read by the host to let the call pass; it is not handed to the tool."),
    "requireadmin": ("a field of the host", "Read by the host to ask an administrator; it is not handed to the tool."),
}
_META = "Meta fields go to the call's `meta` and not to the tool, unless its schema declares them (ruling 28)."
_ACTION_WORDS = {
    "action": ("an ACTION block", "Its elements are calls: a tool's id as tag name, or `<tool_id>` with `<inputs>`."),
    "tool_id": ("the tool to run", "Its id as text; `<inputs>` beside it holds the arguments."),
    "inputs": ("the arguments of a call", 'One `<input name="…">` for each.'),
    "input": ("one argument", "`name` says which; complex values are JSON text, best in CDATA."),
    "item": ("an item of a list", "An element with only `<item>` children is a list (ruling 15)."),
}


def about_field(protocol: str, key: str, calls: list[Call]) -> str:
    """What a key means that is no parameter, as Markdown; empty for one that means nothing."""
    if protocol == "tam":
        from tamis.protocols.tam.keys import parse_key

        normal = parse_key(key).normal
        found = next((about for pattern, about in _TAM_FIELDS.items() if re.fullmatch(pattern, normal)), None)
        return _card(key, *found, _effect(normal, calls)) if found else ""
    if protocol == "action":
        found = _ACTION_WORDS.get(key.strip("</> ").lower())
        return _card(key, *found) if found else ""
    from tamis.protocols.suggest import normalised

    name = normalised(key)
    found = _VCP_FIELDS.get(name)
    return _card(key, *found, "" if name == "toolname" else _META) if found else ""


def _card(name: str, title: str, text: str, more: str = "") -> str:
    return f"**{name.strip()}**: {title}\n\n{text}" + (f"\n\n{more}" if more else "")


def _effect(normal: str, calls: list[Call]) -> str:
    """What a step modifier makes of its step."""
    number = re.search(r"_(\d+)\Z", normal)
    step = int(number[1]) if number else 1
    call = next((call for call in calls if (call.step or 1) == step), None)
    if call is None:
        return ""
    if normal.startswith("retry") and call.retry is not None:
        times = "never again" if call.retry == 0 else f"up to {call.retry} more time{'' if call.retry == 1 else 's'}"
        return f"Step {step} is tried {times}."
    if normal.startswith("on_error") and call.on_error is not None:
        return f"Step {step}: `{call.on_error}`."
    return ""


# Markers and marks

_Sayer = Callable[[re.Match[str]], str]
_MARKERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(?i)<?\|?\[request_tool\]\|?>?"),
        "**TAM block**: the calls up to `<|[END_TOOL]|>`\n\nOne field on a line, `key:»»»value«««`; `command_1`, `command_2` … are the tools of its steps.",
    ),
    (
        re.compile(r"(?i)<?\|?\[end_tool\]\|?>?"),
        "**End of the TAM block**\n\nWithout it the block counts as cut off where the text ends.",
    ),
    (
        re.compile(r"(?i)<{2,4}\[tool_request\]>{2,4}"),
        "**VCP call**: the fields up to `<<<[END_TOOL_REQUEST]>>>`\n\nFields are `key:「始」value「末」`, separated by commas or lines; `tool_name` says which tool.",
    ),
    (
        re.compile(r"(?i)<{2,4}\[tool_request_?exp\]>{2,4}"),
        "**VCP call, `exp` variant**: an extension of upstream\n\nIts marks carry `exp` as well, so that values may hold the plain ones.",
    ),
    (
        re.compile(r"(?i)<{2,4}\[end_tool_request(?:_?exp)?\]>{2,4}"),
        "**End of the VCP call**\n\nInside a closed `「始」…「末」` it is text.",
    ),
    (
        re.compile(r"(?i)<action>"),
        "**ACTION block**: the calls up to `</ACTION>`\n\nEach element in it is a call: the tag is the tool's id, its children are the arguments.",
    ),
    (re.compile(r"(?i)</\s*action\s*>"), "**End of the ACTION block**"),
    (
        re.compile(r"<!\[CDATA\["),
        "**CDATA**: text that is taken as it is\n\nNo entity is decoded up to `]]>`; one newline after the opening and the last one are not part of it (ruling 16).",
    ),
    (re.compile(r"\]\]>"), "**End of CDATA**"),
    (
        re.compile(r"»»»|>>>|»{1,2}"),
        "**Opening mark of a TAM value**: it ends at `«««`\n\nThe indentation of the key's line is taken off the lines that follow, then both ends are trimmed (ruling 21).",
    ),
    (re.compile(r"«««|<<<|«{1,2}"), "**Closing mark of a TAM value**"),
    (
        re.compile(r"「始ESCAPE」"),
        "**Opening mark of a VCP value, ESCAPE variant**: it ends at `「末ESCAPE」`\n\nThe value may hold `「末」` and end markers as text.",
    ),
    (re.compile(r"「末ESCAPE」"), "**Closing mark of a VCP value, ESCAPE variant**"),
    (re.compile(r"「始(?:exp)?」"), "**Opening mark of a VCP value**: it ends at `「末」`"),
    (re.compile(r"「末(?:exp)?」"), "**Closing mark of a VCP value**"),
)
MARKER = re.compile(
    r"(?i)<\|?\[(?:request_tool|end_tool)\]\|?>|<{2,4}\[(?:end_)?tool_request(?:_?exp)?\]>{2,4}|</?action>"
)


def about_marker(text: str) -> str:
    """What a marker or mark means, as Markdown; empty for any other text."""
    text = text.strip()
    return next((said for pattern, said in _MARKERS if pattern.fullmatch(text)), "")
