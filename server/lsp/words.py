"""What the server says, in the client's language (``initialize.locale``): Chinese, or English as everywhere else.

The rooms word everything in English; here, at the edge, a text that is about to be sent is looked up in a catalogue of templates
(``zh-cn.json``) and said anew with what stood in its holes, verbatim. A text that has no entry, or that could be read as more than one
template with different outcomes, stays English: no sentence is ever half of each, and no name in it can change what it says. Codes, ids,
``data`` and edits are never touched. Must not know documents or findings' rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from tamis.protocols.catalogue import CATALOGUE
from tamis.server.lsp.structs import (
    CompletionItem,
    CompletionList,
    Diagnostic,
    FullReport,
    MarkupContent,
    PublishDiagnosticsParams,
    WorkspaceFullReport,
)
from tamis.server.lsp.trace import report_failure
from tamis.server.wire.jsonrpc import RpcError, encode

FILE = "zh-cn.json"
MAX_TEXT = 8_000
"""Characters of a text that is looked up; a longer one is mostly somebody else's."""
MAX_STEPS = 400
"""Places at which a template is tried on one text; what needs more has too many readings anyway."""
MAX_KEPT = 4_096
_MAX_DEPTH = 5
_HOLE = re.compile(r"\{(\w+)([~?]?)\}")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`")
_TOGETHER = re.compile(_QUOTED.pattern + r"|\([^()]*\)")
"""What no joint parts."""
_LETTERS = re.compile(r"[A-Za-z]{2}")
_PARTS = {"; ": "；"}
_JOINTS = {" or ": "或", " and ": "和"}
_BREAKS = ",:;(, "
_NARROW = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'\"<>[]{}$*`/-")
_WIDE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_NUMBER = re.compile(r"≈?\d[\d.,]*\Z")
_SHAPES = {"n": _NUMBER, "m": _NUMBER, "word": re.compile(r"\S*\Z")}
"""Holes that hold a number or a word, by their names."""
_HINT = re.compile(r"(, did you mean '.*'\?)?\Z", re.S)
"""What a hole of this name holds (``suggest.hint``): it stands behind names and lists without a sign between them."""
_INPUT, _INPUT_OTHER, _BARE = "Input parameter '{p}'", "输入参数 '{p}'", "'{p}'"
_WHOLE = (("the arguments object", "参数对象"), ("the output", "输出"))
_LEVELS = {"error": "错误", "warning": "警告", "information": "信息", "hint": "提示", "off": "关闭"}
_RULE = re.compile(r"(.+) \(([\w-]+); usually (\w+)\)(\.?)\Z")

Say = Callable[[str], str]


class _SpentError(Exception):
    """A text was tried at too many places."""


class Template:
    """An English sentence with holes, and what is said instead.

    In the other sentence ``{name}`` is what stood in the hole, ``{name~}`` a phrase of ours that has to have an entry too, and
    ``{name?}`` one that may be anybody's word and then stays.
    """

    def __init__(self, english: str, other: str, *, shaped: bool = True) -> None:
        """``shaped``: whether the names of holes say what they hold (``_SHAPES``); those of findings are the catalogue's own."""
        self.fixed, self.holes = _pieces(english)
        self._shaped = shaped
        self._other = list(_marked(other))
        self._special: dict[Template, bool] = {}

    def readings(self, text: str) -> Iterator[dict[str, str]]:
        """What may stand in the holes, for each way to read a text as this sentence. Raises ``_SpentError``."""
        first, last = self.fixed[0], self.fixed[-1]
        if not self.holes:
            if text == first:
                yield {}
            return
        if len(text) >= len(first) + len(last) and text.startswith(first) and text.endswith(last):
            yield from self._fill(text, 0, len(first), len(text) - len(last), {}, [MAX_STEPS])

    def _fill(
        self, text: str, index: int, start: int, end: int, held: dict[str, str], left: list[int]
    ) -> Iterator[dict[str, str]]:
        name = self.holes[index]
        if index == len(self.holes) - 1:
            value = text[start:end]
            if self._fits(name, value) and held.get(name, value) == value:
                yield {**held, name: value}
            return
        literal = self.fixed[index + 1]
        for at in _places(text, literal, start, end):
            left[0] -= 1
            if left[0] < 0:
                raise _SpentError
            value = text[start:at]
            if self._fits(name, value) and held.get(name, value) == value:
                yield from self._fill(text, index + 1, at + len(literal), end, {**held, name: value}, left)

    def sayings(self, text: str, phrase: Callable[[str], str | None]) -> set[str]:
        """What may be said instead of a text: of its readings those in which most phrases of ours stand."""
        best = -1
        sayings: set[str] = set()
        for held in self.readings(text):
            said = self.said(held, phrase)
            if said is None:
                continue
            phrases = sum(1 for name, mark in self._other if mark == "~" and held.get(name))
            if phrases > best:
                best, sayings = phrases, {said}
            elif phrases == best:
                sayings.add(said)
        return sayings

    def reads(self, other: Template) -> bool:
        """Whether another template is a special case of this one: its sentence, with anything in its holes, is one of this too."""
        if other not in self._special:
            sentence = other.fixed[0] + "".join(
                f"\ue000{literal}" for literal in other.fixed[1:]
            )  # a sign that no sentence has
            self._special[other] = next(self.readings(sentence), None) is not None
        return self._special[other]

    def said(self, held: dict[str, str], phrase: Callable[[str], str | None]) -> str | None:
        """The other sentence; None where a phrase in it has no entry."""
        out, after = "", False
        for part, mark in self._other:
            if mark is None:
                out = _joined(out, part) if after else out + part
                after = False
                continue
            after = bool(mark)
            value = held.get(part, "")
            if mark:
                told = phrase(value)
                if told is None and mark == "~":
                    return None
                value = value if told is None else told
            out = _joined(out, value) if mark else out + value
        return out

    def _fits(self, name: str, value: str) -> bool:
        shape = _HINT if name == "hint" else _SHAPES.get(name) if self._shaped else None
        return shape is None or value == "\ue000" or shape.match(value) is not None


def _pieces(english: str) -> tuple[list[str], list[str]]:
    parts = _HOLE.split(english)
    return parts[::3], parts[1::3]


def _marked(other: str) -> Iterator[tuple[str, str | None]]:
    """The pieces of a sentence: text with None, names of holes with their mark."""
    parts = _HOLE.split(other)
    for index in range(0, len(parts), 3):
        if parts[index]:
            yield parts[index], None
        if index + 2 < len(parts):
            yield parts[index + 1], parts[index + 2]


def _places(text: str, literal: str, start: int, end: int) -> Iterator[int]:
    """Where a literal stands; where none stands between two holes, the second begins with what parts phrases, or is empty."""
    if not literal:
        yield from (at for at in range(start, end) if text[at] in _BREAKS)
        yield end
        return
    at = text.find(literal, start, end)
    while at >= 0:
        yield at
        at = text.find(literal, at + 1, end)


def _joined(before: str, after: str) -> str:
    """Two pieces, with a blank where Chinese meets what is not, as Chinese is set."""
    if not before or not after:
        return before + after
    one, other = before[-1], after[0]
    apart = (_WIDE.match(one) and other in _NARROW) or (one in _NARROW and _WIDE.match(other))
    return f"{before} {after}" if apart else before + after


class Table:
    """Templates by their sentences."""

    def __init__(self, entries: dict[str, str]) -> None:
        self._exact = {english: other for english, other in entries.items() if _HOLE.search(english) is None}
        self._patterns = [Template(english, other) for english, other in entries.items() if _HOLE.search(english)]

    def find(self, text: str, phrase: Callable[[str], str | None]) -> str | None:
        """What is said instead of a text; None where nothing is, or it is not clear what."""
        exact = self._exact.get(text)
        return exact if exact is not None else only(self._patterns, text, phrase)


def only(templates: list[Template], text: str, phrase: Callable[[str], str | None]) -> str | None:
    """The one thing that templates make of a text; None where that is nothing, or not one.

    A template that is a special case of another goes before it: ``Run {n} calls`` before ``Run {x}``.
    """
    found: list[tuple[Template, str | None]] = []
    try:
        for template in templates:
            if not (text.startswith(template.fixed[0]) and text.endswith(template.fixed[-1])):
                continue
            sayings = template.sayings(text, phrase)
            if sayings:
                found.append((template, sayings.pop() if len(sayings) == 1 else None))
        if len({said for _, said in found}) > 1:
            found = [one for one in found if all(other[0].reads(one[0]) for other in found if other is not one)]
    except _SpentError:
        return None
    return found[0][1] if found and len({said for _, said in found}) == 1 else None


class Words:
    """The sentences of one language."""

    def __init__(self, catalogue: dict[str, dict[str, str]]) -> None:
        findings = catalogue["findings"]
        self._findings = {
            code: _of_finding(entry.message, findings[entry.message])
            for code, entry in CATALOGUE.items()
            if entry.message in findings
        }
        rules = {_HOLE.sub("…", english): _HOLE.sub("…", other) for english, other in findings.items()}
        # cards begin them as sentences
        self._rules = {english[:1].upper() + english[1:]: other for english, other in rules.items()} | rules
        self._phrases = Table({**_as_phrases(findings), **catalogue["phrases"]})
        self._tables = {name: Table(catalogue[name]) for name in ("titles", "messages", "details")}
        lines = catalogue["lines"]
        # Who takes no Markdown gets the same without its marks.
        self._tables["lines"] = Table({**{plain(english): plain(other) for english, other in lines.items()}, **lines})
        self._sentences = Table(catalogue["sentences"] | _of_settings(catalogue["settings"]))
        self._kept: dict[tuple[str, str], str] = {}
        self._phrase_kept: dict[str, str | None] = {}

    # Texts

    def titles(self, titles: Sequence[str]) -> list[str]:
        """Titles to choose from, of which no two become the same."""
        said = [self.text("titles", title) for title in titles]
        return said if len(set(said)) == len(titles) else list(titles)

    def finding(self, code: str, message: str) -> str:
        """The message of a finding."""
        return self._keep(code, message, lambda: self._finding(code, message))

    def _finding(self, code: str, text: str) -> str | None:
        own = _OWN_SETTING.match(text) if code == "ST804" else None
        if own is None:
            return only(self._findings.get(code, []), text, self.phrase)
        # Whose fault it is stands before it: read with it, a sentence that begins with a name would have two readings.
        told = self.phrase(text[own.end() :])
        return None if told is None else f"{own[1]}：{told}"

    def text(self, kind: str, text: str) -> str:
        """A text of a kind: ``titles``, ``messages``, ``details``, ``lines``."""
        return self._keep(kind, text, lambda: self._tables[kind].find(text, self.phrase))

    def _keep(self, kind: str, text: str, find: Callable[[], str | None]) -> str:
        key = (kind, text)
        kept = self._kept.get(key)
        if kept is None:
            kept = (find() if len(text) <= MAX_TEXT else None) or text
            if len(self._kept) >= MAX_KEPT:
                self._kept = {}
            self._kept[key] = kept
        return kept

    def phrase(self, text: str, depth: int = 0) -> str | None:
        """A phrase inside of a sentence; None where it has no entry. What holds no words is itself."""
        if not text:
            return text
        if depth > _MAX_DEPTH:
            return None
        if text in (kept := self._phrase_kept):
            return kept[text]
        inner = partial(self.phrase, depth=depth + 1)
        # A row first: what one name of it could swallow would stay English.
        said = (
            self._in_parts(text, inner, _PARTS)
            or self._phrases.find(text, inner)
            or self._in_parts(text, inner, _JOINTS)
        )
        if len(kept) >= MAX_KEPT:
            # Another one, and not an empty one: threads look into it.
            self._phrase_kept = {}
        self._phrase_kept[text] = said
        return said

    def _in_parts(self, text: str, phrase: Callable[[str], str | None], joints: dict[str, str]) -> str | None:
        """Phrases and values in a row."""
        bare = _TOGETHER.sub(lambda quoted: "\0" * len(quoted[0]), text)
        for joint, other in joints.items():
            if joint not in bare or text != text.strip():
                continue
            out, at = "", 0
            for piece in bare.split(joint):
                part = text[at : at + len(piece)]
                said = phrase(part) or (part if _is_value(part) else None)
                if said is None:
                    return None
                out = _joined(_joined(out, other) if out else out, said)
                at += len(piece) + len(joint)
            return out
        return None

    def lines(self, text: str) -> str:
        """A text of several lines, each by itself; what stands in a fence of code is somebody's and stays."""
        if len(text) > 10 * MAX_TEXT:
            return text
        fence = ""
        own = _OF_A_TOOL.match(text) is None
        out: list[str] = []
        for line in text.split("\n"):
            if fence:
                if line.strip() == fence:
                    fence = ""
            elif opened := _FENCE.match(line):
                fence = opened[1]
            else:
                line = self._line(line, own=own)
            out.append(line)
        return "\n".join(out)

    def _line(self, line: str, *, own: bool) -> str:
        bare = line.rstrip(" ")
        rule = _RULE.match(bare)
        if rule is not None and (told := self._rules.get(rule[1])) is not None and rule[3] in _LEVELS:
            return f"{told}（{rule[2]}；通常为{_LEVELS[rule[3]]}）"
        said = self.text("lines", bare)
        if said == bare and own:
            said = self._keep("sentences", bare, lambda: self._sentences.find(bare, self.phrase))
        return said + line[len(bare) :]

    # Messages, by method

    def sent(self, method: str, params: Any) -> Any:
        """The params of a notification or request of ours."""
        return self._said(_SENT.get(method), method, params)

    def answered(self, method: str, result: Any) -> Any:
        """The result of a request of the client."""
        return self._said(_ANSWERED.get(method), method, result)

    def _said(self, say: Callable[[Words, Any], Any] | None, method: str, value: Any) -> Any:
        if say is None or value is None:
            return value
        try:
            return say(self, value)
        except Exception:  # a message in English is better than none
            report_failure(f"the Chinese words of '{method}'")
            return value

    def refused(self, error: RpcError) -> RpcError:
        """An error, which editors show."""
        text = self.text("messages", error.text)
        return error if text == error.text else RpcError(error.code, text, error.data)

    def diagnostic(self, item: Diagnostic) -> Diagnostic:
        """A finding as it is sent."""
        code = item.code if isinstance(item.code, str) else ""
        message = self.finding(code, item.message)
        related = item.related_information
        if related is not UNSET:
            related = [msgspec.structs.replace(one, message=self._related(one.message)) for one in related]
        return msgspec.structs.replace(item, message=message, related_information=related)

    def _related(self, text: str) -> str:
        return self._keep("related", text, lambda: self.phrase(text))


_FENCE = re.compile(r"\s*(`{3,})\w*\s*\Z")
_OWN_SETTING = re.compile(r"('[^'\s]+'): ")
"""How a finding about a setting's value begins (``server/analysis/configuration/findings.py``)."""
_OF_A_TOOL = re.compile(r"\*\*.{1,300}?\*\* (?:\(.{1,300}?\) of `|`)")
"""How a card begins that is about a tool or its parameter: its description is the tool author's."""


def _of_settings(settings: dict[str, str]) -> dict[str, str]:
    """What settings mean, as it is written and as cards have it: a whole sentence, and both without marks."""
    found: dict[str, str] = {}
    for english, other in settings.items():
        whole = english[:1].upper() + english[1:]
        for text, said in (
            (english, other),
            (whole if whole.endswith((".", "*")) else f"{whole}.", other if other.endswith("。") else f"{other}。"),
        ):
            found |= {plain(text): plain(said), text: said}
    return found


def _is_value(text: str) -> bool:
    """Whether a text has nothing of a sentence: a number, quoted text, a list of such."""
    return _LETTERS.search(_QUOTED.sub("", text)) is None and any(char.isalnum() for char in text)


def plain(markdown: str) -> str:
    """A line of our own Markdown without its marks."""
    return markdown.replace("**", "").replace("`", "")


def _as_phrases(findings: dict[str, str]) -> dict[str, str]:
    """The sentences of findings as they stand in others: also without the words for a call's parameter, or of a whole value."""
    found: dict[str, str] = {}
    for english, other in findings.items():
        if not any(char.isalnum() for char in _HOLE.sub("", english)):
            continue
        found[english] = other
        short, short_other = english.replace(_INPUT, _BARE), other.replace(_INPUT_OTHER, _BARE)
        found[short] = short_other
        if _BARE in short:
            for whole, said in _WHOLE:
                sentence = short.replace(_BARE, whole)
                found[sentence[0].upper() + sentence[1:]] = short_other.replace(_BARE, said)
    return found


def _of_finding(english: str, other: str) -> list[Template]:
    """The templates of a finding: one about a schema also for a tool's other one (``catalogue.message``)."""
    templates = [Template(english, other, shaped=False)]
    if "parameters" in english and "parameters" in other:
        changed = (sentence.replace("parameters", "output", 1) for sentence in (english, other))
        templates.append(Template(*changed, shaped=False))
    return templates


# What is said where, by method: the places of texts in params and results


def _with(members: dict[str, Any], **changes: Say) -> dict[str, Any]:
    """An object with some of its texts said otherwise."""
    changed = dict(members)
    for name, say in changes.items():
        value = changed.get(name)
        if isinstance(value, str):
            changed[name] = say(value)
    return changed


def _publish(words: Words, params: PublishDiagnosticsParams) -> PublishDiagnosticsParams:
    return msgspec.structs.replace(params, diagnostics=[words.diagnostic(item) for item in params.diagnostics])


def _report(words: Words, report: Any) -> Any:
    if not isinstance(report, (FullReport, WorkspaceFullReport)):
        return report
    changed = msgspec.structs.replace(report, items=[words.diagnostic(item) for item in report.items])
    if isinstance(changed, FullReport) and changed.related_documents is not UNSET:
        changed.related_documents = {uri: _report(words, one) for uri, one in changed.related_documents.items()}
    return changed


def _workspace_reports(words: Words, result: Any) -> Any:
    return {**result, "items": [_report(words, item) for item in result["items"]]}


def _progress(words: Words, params: dict[str, Any]) -> dict[str, Any]:
    value = params["value"]
    if "kind" in value:
        say = partial(words.text, "messages")
        return {**params, "value": _with(value, title=say, message=say)}
    return {**params, "value": _workspace_reports(words, value)} if "items" in value else params


def _message(words: Words, params: dict[str, Any]) -> dict[str, Any]:
    return _with(params, message=partial(_told, words))


_EXAMPLES = re.compile(r"[✓✗] \d+ of \d+ examples passed\n")


def _told(words: Words, text: str) -> str:
    """A message. Of several lines the first is ours, and below stands what a tool said, unless examples are told of."""
    first, newline, rest = text.partition("\n")
    if newline and _EXAMPLES.match(text):
        rest = "\n".join(words.text("messages", line) for line in rest.split("\n"))
    return words.text("messages", first) + newline + rest


def _command_result(words: Words, result: Any) -> Any:
    """What a command gave: what it says to people of runs, or why there is none."""
    say = partial(_told, words)
    if isinstance(result, dict):
        members = _with(cast("dict[str, Any]", result), outcome=say, reason=say)
        if "runs" in members:
            members["runs"] = [_command_result(words, run) for run in members["runs"]]
        return members
    outcome, notes = getattr(result, "outcome", None), getattr(result, "notes", None)
    if not isinstance(outcome, str) or not isinstance(notes, tuple):
        return result
    noted = tuple(say(note) for note in cast("tuple[str, ...]", notes))
    return msgspec.structs.replace(result, outcome=say(outcome), notes=noted)


def _content(words: Words, result: Any) -> Any:
    return _with(cast("dict[str, Any]", result), text=words.lines) if isinstance(result, dict) else result


def _action(words: Words, action: Any) -> Any:
    title = partial(words.text, "titles")
    changed = _with(action, title=title)
    command = changed.get("command")
    if isinstance(command, dict):
        changed["command"] = _command(words, cast("dict[str, Any]", command))
    disabled = changed.get("disabled")
    if isinstance(disabled, dict):
        changed["disabled"] = _with(cast("dict[str, Any]", disabled), reason=lambda text: words.phrase(text) or text)
    if "diagnostics" in changed:
        changed["diagnostics"] = [
            {**item, "message": words.finding(item.get("code", ""), item["message"])} for item in changed["diagnostics"]
        ]
    return changed


def _command(words: Words, command: dict[str, Any]) -> dict[str, Any]:
    return _with(command, title=partial(words.text, "titles"))


def _lens_command(words: Words, command: dict[str, Any]) -> dict[str, Any]:
    """As a command; a title that was cut is said anew from the whole, which its argument has, and cut again."""
    told = _command(words, command)
    title, given = told.get("title"), command.get("arguments")
    first: object = cast("list[object]", given)[0] if isinstance(given, list) and given else None
    english = cast("dict[str, Any]", first).get("reason") if isinstance(first, dict) else None
    if not isinstance(title, str) or not title.endswith("…") or not isinstance(english, str):
        return told
    if not english.startswith(title[:-1]):
        return told
    whole = words.text("titles", english)
    return told if whole == english else {**told, "title": _cut(whole, len(title))}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _actions(words: Words, actions: list[Any]) -> list[Any]:
    return [_action(words, action) for action in actions]


def _lens(words: Words, lens: dict[str, Any]) -> dict[str, Any]:
    return {**lens, "command": _lens_command(words, lens["command"])} if "command" in lens else lens


def _lenses(words: Words, result: Any) -> Any:
    lenses: list[Any] = msgspec.json.decode(result) if isinstance(result, Raw) else result
    return Raw(encode([_lens(words, lens) for lens in lenses]))


def _hover(words: Words, hover: Any) -> Any:
    if not isinstance(hover, dict):
        return hover
    members = cast("dict[str, Any]", hover)
    return {**members, "contents": _markup(words, members.get("contents"))}


def _markup(words: Words, content: Any) -> Any:
    if isinstance(content, MarkupContent):
        return msgspec.structs.replace(content, value=words.lines(content.value))
    return _with(cast("dict[str, Any]", content), value=words.lines) if isinstance(content, dict) else content


def _completion(words: Words, result: CompletionList) -> CompletionList:
    return msgspec.structs.replace(result, items=[_item(words, item) for item in result.items])


def _item(words: Words, item: CompletionItem) -> CompletionItem:
    detail = item.detail if item.detail is UNSET else words.text("details", item.detail)
    labels = item.label_details
    if labels is not UNSET and isinstance(labels.description, str):
        labels = msgspec.structs.replace(labels, description=words.text("details", labels.description))
    return msgspec.structs.replace(
        item, detail=detail, label_details=labels, documentation=_markup(words, item.documentation)
    )


def _resolved_item(words: Words, item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "documentation": _markup(words, item["documentation"])} if "documentation" in item else item


def _hints(words: Words, hints: Any) -> Any:
    hints = msgspec.json.decode(hints) if isinstance(hints, Raw) else hints
    return [_hint(words, hint) for hint in cast("list[dict[str, Any]]", hints)] if isinstance(hints, list) else hints


def _hint(words: Words, hint: dict[str, Any]) -> dict[str, Any]:
    changed = dict(hint)
    label = changed.get("label")
    if isinstance(label, list):
        changed["label"] = [_part(words, part) for part in cast("list[dict[str, Any]]", label)]
    if "tooltip" in changed:
        changed["tooltip"] = _markup(words, changed["tooltip"])
    return changed


def _part(words: Words, part: dict[str, Any]) -> dict[str, Any]:
    changed = _with(part, value=partial(words.text, "details"))
    if "tooltip" in changed:
        changed["tooltip"] = _markup(words, changed["tooltip"])
    return changed


def _links(words: Words, links: Any) -> Any:
    if not isinstance(links, list):
        return links
    return [_with(link, tooltip=partial(words.text, "titles")) for link in cast("list[dict[str, Any]]", links)]


def _edit(words: Words, edit: dict[str, Any]) -> dict[str, Any]:
    """What is said of parts of an edit; the edit stays."""
    notes: dict[str, dict[str, Any]] = edit.get("changeAnnotations") or {}
    if not notes:
        return edit

    def say(text: str) -> str:
        return words.text("messages", words.text("titles", text))

    return {
        **edit,
        "changeAnnotations": {name: _with(note, label=say, description=say) for name, note in notes.items()},
    }


_SENT: dict[str, Callable[[Words, Any], Any]] = {
    "textDocument/publishDiagnostics": _publish,
    "$/progress": _progress,
    "window/showMessage": _message,
    "window/showMessageRequest": _message,
    "experimental/serverStatus": _message,
}
_ANSWERED: dict[str, Callable[[Words, Any], Any]] = {
    "textDocument/diagnostic": _report,
    "workspace/diagnostic": _workspace_reports,
    "textDocument/codeAction": _actions,
    "textDocument/codeLens": _lenses,
    "codeLens/resolve": _lens,
    "textDocument/hover": _hover,
    "textDocument/completion": _completion,
    "completionItem/resolve": _resolved_item,
    "textDocument/inlayHint": _hints,
    "inlayHint/resolve": _hint,
    "textDocument/documentLink": _links,
    "textDocument/rename": _edit,
    "workspace/willRenameFiles": _edit,
    "workspace/executeCommand": _command_result,
    "workspace/textDocumentContent": _content,
}


@cache
def chinese() -> Words:
    """The words for who speaks Chinese."""
    return Words(catalogue())


def catalogue() -> dict[str, dict[str, str]]:
    """The sentences of ``zh-cn.json`` by their English ones, in groups."""
    text = resources.files("tamis.server.lsp").joinpath(FILE).read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, str]])
