"""What the prose of a VCP plug-in says of its commands: parameters in lists, request blocks that explain or show them.

Apart from ``vcp_plugin.py``, which makes a manifest of it, because prose is guessed at and a manifest is not. Pure. Must not know
manifests.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from tamis.protocols.model import Json, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan
from tamis.protocols.schema.words import is_list, is_object

COMMAND = "command"
_NEEDED = r"必需|必须|必填|required"
_FREE = r"可选|选填|非必需|非必填|optional"
_MARK = re.compile(
    rf"^\s*[(（【\[]?\s*(?P<need>{_FREE}|{_NEEDED})(?![A-Za-z])(?P<more>[^)）】\]\n]{{0,60}})[)）】\]]?\s*[:：,，]?\s*",
    re.I,
)
_IS_FREE = re.compile(_FREE, re.I)
_IS_NEEDED = re.compile(_NEEDED, re.I)
_PLAINLY_NEEDED = re.compile(rf"(?:{_NEEDED})(?:项|参数|字段)?", re.I)
# A value that stands for what is to be written: all of it in one pair of brackets.
_PLACEHOLDER = re.compile(r"[\[【<＜(（{]\s*([^\[\]【】<>＜＞()（）{}\n]{1,200})\s*[\]】>＞)）}]")
_DRESS = r"[`\"'“”*_]{0,3}"
_NAME = rf"{_DRESS}[A-Za-z_][A-Za-z0-9_]{{0,63}}{_DRESS}"
_BULLET = r"^[ \t]*(?:[-*•]|\d{1,2}[.)、])[ \t]*"
_NAMES = rf"(?P<names>{_NAME}(?:[ \t]*[/|、][ \t]*{_NAME}){{0,5}})[ \t]*"
# "- name (type, need): what it is", also with several names for one thing.
_LISTED = re.compile(
    _BULLET + _NAMES + r"[(（](?P<about>[^()（）\n]{1,120})[)）][ \t]*[:：\-—]?[ \t]*(?P<text>[^\n]{0,400})", re.M
)
# "- name: 可选，what it is"; without a word about the need it could be a list of anything.
_SAID = re.compile(_BULLET + _NAMES + rf"[:：][ \t]*(?P<text>[(（]?(?:{_FREE}|{_NEEDED})[^\n]{{0,400}})", re.M | re.I)
# "4. prompt:「始」[what it is]「末」 (need)"
_PAIRED = re.compile(
    _BULLET
    + _NAMES
    + r"[:：][ \t]*「始」(?P<text>[^「」\n]{0,200})「末」[ \t]*,?[ \t]*[(（](?P<about>[^()（）\n]{1,120})[)）]",
    re.M,
)
_TYPES = (
    (re.compile(r"数组|列表|\barray\b|\blist\b", re.I), "array"),
    (re.compile(r"整数|整型|\bint(?:eger)?\b", re.I), "integer"),
    (re.compile(r"数字|数值|浮点|\bnumber\b|\bfloat\b", re.I), "number"),
    (re.compile(r"布尔|\bbool(?:ean)?\b", re.I), "boolean"),
    (re.compile(r"对象|\bobject\b", re.I), "object"),
)
_TEXT = re.compile(r"字符串(?!数组|列表)|文本|\bstring\b(?!\[\]|\s*array)", re.I)
_WORD = re.compile(r"[\w.:-]{1,64}")
_QUOTED = re.compile(r"[`'\"“‘]([\w.:-]{1,64})[`'\"”’]")
# A line end that was escaped once too often: what follows begins a line of its own.
_ESCAPED = re.compile(
    r"(?:\\r)?\\n(?=[ \t]{0,99}(?:\\n|\r?\n|[-*•#<>【（(\u3400-\u9fff\U0001f300-\U0001faff]"
    r"|\d{1,2}[.)、]|[A-Za-z_][\w-]{0,63}[ \t]{0,9}[:：][ \t]{0,9}「|$))"
)


class Parameter:
    """What is known of one parameter."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        """JSON types that are named for it; text, where only that is."""
        self.about = ""
        self.needed: bool | None = None
        """None: nothing says so."""
        self.blocks = 0
        """In how many request blocks it stands."""
        self.shown: list[str] = []
        """Values of request blocks that show a call."""

    def need(self, needed: bool) -> None:
        """What one place says; a single one that calls it optional wins."""
        self.needed = needed and self.needed is not False


class Command:
    """One command of a plug-in."""

    def __init__(self, name: str, item: dict[str, Json]) -> None:
        self.name = name
        self.schema: dict[str, Json] | None = None
        """Its parameters, where it declares them as a schema."""
        self.found: dict[str, Parameter] = {}
        self.blocks = 0
        """How many request blocks of this plug-in it shows."""
        self.given: list[dict[str, Json]] = []
        """Arguments of request blocks that show a real call."""
        self.spoken: list[tuple[str, dict[str, str], bool]] = []
        """Every request block: the tool's name, its arguments, and whether it stands among the examples."""
        declared = item.get("parameters")
        if is_object(declared) and ("properties" in declared or declared.get("type") == "object"):
            self.schema = declared
        for place in ("description", "example"):
            text = item.get(place)
            if isinstance(text, str):
                self._read(plain_lines(text), place)
        if is_list(declared):
            self._declare(declared)

    def _read(self, text: str, place: str) -> None:
        for pattern in (_LISTED, _PAIRED, _SAID):
            for match in pattern.finditer(_without_blocks(text)):
                self._list(match)
        options = ReadOptions(fenced_calls="run", reasoning_calls="run")
        for call in read_text(text, "vcp", options).calls:
            args = {key: value for key, value in call.args(text).items() if isinstance(value, str)}
            self.spoken.append((call.tool_id, args, place == "example"))

    def _list(self, match: re.Match[str]) -> None:
        names = [name.strip("`\"'“”* \t") for name in re.split(r"[/|、]", match["names"])]
        about = match.groupdict().get("about") or ""
        text = match["text"].strip()
        for name in names:
            if name == "tool_name" or not re.fullmatch(r"[A-Za-z_]\w{0,63}", name):
                continue
            parameter = self.found.setdefault(name, Parameter())
            parameter.kinds |= _kinds(about)
            needed = _need_of(about)
            if not about:
                marked = _MARK.match(text)
                needed = None if marked is None else _IS_FREE.match(marked["need"]) is None
                text = text[marked.end() :] if marked is not None and not marked["more"].strip() else text
            inner = _PLACEHOLDER.fullmatch(text)
            parameter.about = parameter.about or (inner[1] if inner else text)
            if needed is not None:
                parameter.need(needed and len(names) == 1)

    def _declare(self, listed: list[Json]) -> None:
        """Parameters that stand in a list of (name, type, description, required)."""
        for item in listed:
            name = item.get("name") if is_object(item) else None
            if not is_object(item) or not isinstance(name, str) or not name:
                continue
            parameter = self.found.setdefault(name, Parameter())
            kind, about = item.get("type"), item.get("description")
            parameter.kinds = _kinds(kind) if isinstance(kind, str) else set()
            parameter.about = about if isinstance(about, str) else parameter.about
            if isinstance(needed := item.get("required"), bool):
                parameter.needed = needed

    def count(self, own: frozenset[str]) -> None:
        """Looks at the request blocks that name the tool by one of its own names; others tell of other tools."""
        for name, args, example in self.spoken:
            if name not in own:
                continue
            self.blocks += 1
            explained = False
            for key, value in args.items():
                parameter = self.found.setdefault(key, Parameter())
                parameter.blocks += 1
                marked = _MARK.match(value)
                inner = None if marked or _is_json(value) else _PLACEHOLDER.fullmatch(value.strip())
                if marked is not None:
                    parameter.need(_IS_FREE.match(marked["need"]) is None)
                    rest = value[marked.end() :].strip() if not marked["more"].strip(" ,，:：") else value.strip()
                    parameter.about = parameter.about or rest
                elif inner is not None:
                    parameter.about = parameter.about or inner[1].strip()
                else:
                    parameter.shown.append(value)
                    continue
                explained = True
            if example and not explained:
                self.given.append(dict(args))

    def needs(self, name: str) -> bool:
        """Whether a parameter is required: it is marked so, and no request block of the command is without it."""
        parameter = self.found[name]
        return parameter.needed is True and parameter.blocks == self.blocks

    @property
    def values(self) -> list[str] | None:
        """What its request blocks write as ``command``; None where that is free text."""
        parameter = self.found.get(COMMAND)
        if parameter is None:
            return []
        shown = list(dict.fromkeys(value.strip() for value in parameter.shown))
        if not all(_WORD.fullmatch(value) for value in shown):
            return None
        return shown or list(dict.fromkeys(_QUOTED.findall(parameter.about)))

    @property
    def carried(self) -> int:
        """How many of its request blocks write a ``command``."""
        parameter = self.found.get(COMMAND)
        return parameter.blocks if parameter is not None else 0


def own_names(name: str, commands: list[Command]) -> tuple[str, ...]:
    """The names by which a plug-in's own request blocks call it: its name, and the one other that all of them use instead."""
    spoken = Counter(called for command in commands for called, _, _ in command.spoken)
    if name in spoken or len(spoken) != 1:
        return (name,)
    return (name, *spoken)


def kind_of(parameters: list[Parameter]) -> str:
    """The JSON type of a parameter that several commands have: text where they differ, or where a call shows what does not fit."""
    kinds = {kind for parameter in parameters for kind in (parameter.kinds or ("string",))}
    if len(kinds) != 1:
        return "string"
    (kind,) = kinds
    if kind == "string":
        return kind
    plan = compile_plan({"type": "object", "properties": {"it": {"type": kind}}})
    fits = all(plan.check({"it": value}, "any").valid for parameter in parameters for value in parameter.shown)
    return kind if fits else "string"


def plain_lines(text: str) -> str:
    """A text whose line ends were escaped twice, with lines; what stands in values is left as it is."""
    if "\\n" not in text:
        return text
    pieces: list[str] = []
    done = 0
    head = text.find("「始")
    tail = text.find("「末", head) if head >= 0 else -1
    for match in _ESCAPED.finditer(text):
        while 0 <= tail < match.start():
            head = text.find("「始", tail)
            tail = text.find("「末", head) if head >= 0 else -1
        if not (tail >= 0 and head < match.start()):  # else it stands inside a value
            pieces += [text[done : match.start()], "\n"]
            done = match.end()
    pieces.append(text[done:])
    return "".join(pieces)


def _without_blocks(text: str) -> str:
    """The prose around request blocks; what is never closed is prose."""
    pieces: list[str] = []
    done = 0
    while (start := text.find("<<<[TOOL_REQUEST", done)) >= 0:
        end = text.find("<<<[END_TOOL_REQUEST", start)
        if end < 0:
            break
        pieces.append(text[done:start])
        done = end
    return "".join((*pieces, text[done:]))


def _kinds(about: str) -> set[str]:
    """The JSON types that a few words name; text among others makes it text."""
    kinds = {kind for sign, kind in _TYPES if sign.search(about)}
    if {"array", "object"} & kinds and re.search(
        r"(?:字符串|数字|整数|对象|string|number|integer|object)(?:数组|列表|\[\])", about
    ):
        kinds = {"array"}
    if (_TEXT.search(about) and kinds != {"array"}) or (_TEXT.search(about) and re.search(r"[|/或]", about)):
        return {"string"}
    return {"number"} if kinds == {"integer", "number"} else kinds


def _need_of(about: str) -> bool | None:
    """Whether the words in a list call a parameter needed; needed under a condition is not needed."""
    if _IS_FREE.search(about):
        return False
    if _IS_NEEDED.search(about) is None:
        return None
    return any(_PLAINLY_NEEDED.fullmatch(part.strip()) for part in re.split(r"[,，、;；|]", about))


def _is_json(value: str) -> bool:
    try:
        return isinstance(json.loads(value), (dict, list))
    except (ValueError, RecursionError):
        return False
