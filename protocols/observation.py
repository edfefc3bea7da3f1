"""Observations: what a model reads after its calls ran.

The sentences are the seeds' (000 §3.3, 003 §3.4, 001 §10), and ours where they are silent (interface, Observations). Each
protocol's sentence is made from one ``ExecutionResult``; must not know how the result came about. What a tool, a model or a
person wrote stands in it without live markers (ruling 48).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.base import ELEMENT_STYLE
from tamis.protocols.contract import ExecutionError, ExecutionResult, Granted, Permissions, Problem, Usage
from tamis.protocols.inert import inert
from tamis.protocols.model import Json
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import SHIPPED, extras_of
from tamis.protocols.suggest import best, hint

Style = str
"""Whose sentences: ``action``, ``action-inputs``, ``tam``, ``vcp``, or the id of a protocol that words its results itself."""
_ERROR = "Observation: Error - "
Shorten = Callable[[str], str]
"""What is done to every value that a tool gave before it is put into its sentence."""

# What would end the element or block that a value stands in; a value that holds it is shown with its bracket escaped.
_ELEMENT_MARK = lazy(r"<(?=/?(?i:observation)\b)")
_BLOCK_MARK = lazy(r"<{2,4}(?=\[(?i:(?:END_)?TOOL_(?:RESULT|DEFINITION))\]>{2,4})")
_ESCAPE_MARK = lazy("「(?=[始末](?i:ESCAPE)」)")

# Everything but tab and line end that a terminal, a log or a prompt could take for more than text (D74).
_CONTROL = lazy(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# What a terminal takes for a command (ECMA-48): CSI, OSC, the other strings (DCS, SOS, PM, APC), two-character escapes. No part
# can hold its own beginning, so that each character is looked at once.
_SEQUENCE = lazy(
    r"(?:\x1b\[|\x9b)[\x30-\x3f]*+[\x20-\x2f]*+[\x40-\x7e]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d]*+(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c\x9e\x9f]*+(?:\x1b\\|\x9c)"
    r"|\x1b[\x20-\x2f]*+[\x30-\x7e]"
)

_NOT_RUN = {
    "denied": "the user denied it (用户拒绝了该操作)",
    "approvalTimeout": "no one answered the approval request in time; this is not a refusal",
    "approvalUnavailable": "there is no one to ask for approval",
    "cancelled": "it was cancelled",
    "inputRequired": "it waits for an approval",
}


def why_not_run(status: str) -> str:
    """Why a call with that status was not executed, in words; the status itself where it says no such thing."""
    return _NOT_RUN.get(status, status)


def plain(text: str) -> str:
    """The text with control and direction characters shown as escapes, so that it can be read and logged safely."""
    if text.isprintable():
        return text
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text.replace("\r\n", "\n"))


def readable(text: str) -> str:
    """What a script wrote, as ``plain`` text without the sequences that only a terminal understands."""
    return plain(_SEQUENCE.sub("", text))


def value_text(value: object) -> str:
    """A result as it is shown: a text as it reads, anything else as JSON on one line."""
    return readable(value) if isinstance(value, str) else _json_text(value)


_JSON = json.JSONEncoder(ensure_ascii=False)


def _json_text(value: object) -> str:
    """JSON on one line, whose texts hold no terminal sequences and no bare control or direction characters."""
    text = _JSON.encode(value)
    if "\\u001b" in text or (not text.isprintable() and _CONTROL.search(text)):
        text = plain(_JSON.encode(_without_sequences(value)))
    return text


def _without_sequences(value: object) -> object:
    if isinstance(value, str):
        return _SEQUENCE.sub("", value)
    if isinstance(value, list):
        return [_without_sequences(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        return {_SEQUENCE.sub("", name): _without_sequences(item) for name, item in members}
    return value


def style_of(protocol: str, shape: str = "") -> Style:
    """Whose sentences the calls of a protocol get: its own."""
    return extras_of(protocol).styles.get(shape, protocol)


def _observed(style: Style) -> Literal["line", "block", "own"]:
    """How a result is told in a style; of any other name: as the protocol of that name says."""
    return "line" if style == ELEMENT_STYLE else extras_of(style).observed


def observation(
    result: ExecutionResult,
    style: Style,
    *,
    step: int | None = None,
    problems: bool = False,
    request_id: str = "",
    shorten: Shorten = str,
) -> str:
    """The observation of one result, with the name that the call used.

    ``step`` is given for a TAM block of several steps; ``problems`` says that the call itself was wrong (unknown tool,
    unfit arguments), which has its own sentence in the ACTION-by-tag style. ``shorten`` is applied to each value before it is put in.
    """
    shorten = _of_inert(shorten)
    result = for_reading(result)
    if result.called_as is not UNSET:
        result = msgspec.structs.replace(result, tool_id=result.called_as, called_as=UNSET)
    tool_id = inert(result.tool_id)
    edited = _approval(result, "editedArgs")
    if edited is not None:
        rest = {
            name: value for name, value in cast("dict[str, object]", result.approval).items() if name != "editedArgs"
        }
        result = msgspec.structs.replace(result, approval=rest)
        told = observation(result, style, step=step, problems=problems, request_id=request_id, shorten=shorten)
        shown = _beside(_json_text(edited), shorten)
        return f"Note: the user changed the arguments of {plain(tool_id)} to {shown}\n{told}"
    if result.warnings is not UNSET:
        warned, result = result.warnings, msgspec.structs.replace(result, warnings=UNSET)
        text = observation(result, style, step=step, problems=problems, request_id=request_id, shorten=shorten)
        # what became of the result itself is of a workflow's outputs
        odd, workflow_problems = (
            [problem for problem in warned if problem.code[:2] != "WF"],
            [problem for problem in warned if problem.code[:2] == "WF"],
        )
        notes = [f"Note: the arguments of {plain(tool_id)} are odd: {_beside(_told(odd), shorten)}"] if odd else []
        notes += [
            f"Note: the result of {plain(tool_id)}: {_beside(readable(problem.message), shorten)}"
            for problem in workflow_problems
        ]
        return "\n".join([*notes, text])
    observed = _observed(style)
    if observed == "own":
        return _of_protocol(result, style, shorten)
    if observed == "block":
        return _vcp_block(result, request_id or result.call_id, shorten)
    if not result.tool_id and result.error is not UNSET:
        return f"Observation: {_sentence(result, '', 'Result', shorten)}"
    shown_name = tool_id if step is None else f"{tool_id} (step {step})"
    if style == ELEMENT_STYLE:
        inner = _ELEMENT_MARK.sub(r"\\u003c", _sentence(result, shown_name, "Output", shorten))
        from html import escape

        return f'<OBSERVATION tool_id="{escape(result.tool_id)}">{inner}</OBSERVATION>'
    if problems and result.error is not UNSET:
        told = shorten(result.error.message)
        if result.error.type == "UnknownTool":
            return f"Observation: Error - {told}"
        return f"Observation: Error - Invalid parameters for {shown_name}: {told}"
    return f"Observation: {_sentence(result, shown_name, 'Result', shorten)}"


def _beside(text: str, shorten: Shorten) -> str:
    """What stands before what a protocol marks, and must not look like it."""
    return _BLOCK_MARK.sub(lambda match: r"\u003c" * len(match.group()), _ELEMENT_MARK.sub(r"\\u003c", shorten(text)))


def _told(problems: list[Problem]) -> str:
    from tamis.protocols.check import told

    return readable(told(problems))


def _of_inert(shorten: Shorten) -> Shorten:
    """``shorten`` over inert text. A cut may move two halves of a marker together, so that a shortened text is looked at again."""

    def shortened(value: str) -> str:
        whole = inert(value)
        piece = shorten(whole)
        return piece if piece == whole else inert(piece)

    return shortened


def inert_result(result: ExecutionResult, protocol: str) -> ExecutionResult:
    """The result for a protocol of a package, which knows no other's markers: without live ones in its texts (ruling 48)."""
    if protocol in SHIPPED:
        return result
    if result.output is not UNSET:
        result = msgspec.structs.replace(result, output=_inert_value(result.output))
    error = result.error
    if error is UNSET:
        return result
    details = error.details
    if details is not UNSET and details.text is not UNSET:
        details = msgspec.structs.replace(details, text=inert(details.text))
    return msgspec.structs.replace(
        result, error=msgspec.structs.replace(error, message=inert(error.message), details=details)
    )


def _inert_value(value: object) -> object:
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, list):
        return [_inert_value(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {inert(name): _inert_value(item) for name, item in cast("dict[str, object]", value).items()}
    return value


def _of_protocol(result: ExecutionResult, name: str, shorten: Shorten) -> str:
    """The result as the protocol of that id words it; without such a protocol, ACTION's sentence."""
    from tamis.protocols.plugins import find_protocol

    protocol = find_protocol(name)
    if protocol is None:
        return observation(result, "action", shorten=shorten)
    if result.output is not UNSET:
        whole = value_text(result.output)
        shown = shorten(whole)
        if shown != inert(whole):
            result = msgspec.structs.replace(result, output=shown)
    return protocol.format_tool_results((inert_result(result, name),))


def for_reading(result: ExecutionResult) -> ExecutionResult:
    """The result as a model reads it: images, sounds and files in its output are named with type and size, their data is the host's to show (F10)."""
    parts = result.parts
    if parts is UNSET or not parts:
        return result
    output: object = result.output
    if not isinstance(output, list):
        return result  # structured content stands for itself
    named = [_named(part, parts) for part in cast("list[object]", output)]
    return msgspec.structs.replace(result, output=named)


def _named(part: object, parts: list[dict[str, object]]) -> object:
    if part not in parts or not isinstance(part, dict):
        return part
    content = cast("dict[str, object]", part)
    inner = content.get("resource")
    if isinstance(inner, dict):
        return {**content, "resource": _without_data(cast("dict[str, object]", inner), "blob")}
    return _without_data(content, "data")


def _without_data(content: dict[str, object], field: str) -> dict[str, object]:
    data = content.get(field)
    if not isinstance(data, str):
        return content
    size = max(0, len(data) * 3 // 4 - data[-2:].count("="))
    return {name: value for name, value in content.items() if name != field} | {"bytes": size, "shown": "to the user"}


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """One result with what its observation needs to know; see ``observation``."""

    result: ExecutionResult
    style: Style
    step: int | None = None
    problems: bool = False
    request_id: str = ""
    given: str = ""
    """An observation that only its origin could write (the place in a text); it is taken as it is."""

    def text(self, shorten: Shorten = str) -> str:
        """Its observation."""
        if self.given:
            return self.given
        return observation(
            self.result,
            self.style,
            step=self.step,
            problems=self.problems,
            request_id=self.request_id,
            shorten=shorten,
        )


def observations(observed: Sequence[Observed], max_chars: int | None = None) -> str:
    """The observations of several results, a line or block each.

    With ``max_chars`` the values of tools (outputs, messages, details) are shortened until the whole text has no more characters:
    short values stay whole, long ones are cut to one common length in their middle, which says how many characters are missing. Sentences
    and markers are never cut, so a text of many results may still be longer.
    """
    lengths: list[int] = []

    def note(value: str) -> str:
        lengths.append(len(value))
        return value

    whole = "\n".join(observation.text(note) for observation in observed)
    if max_chars is None or len(whole) <= max_chars:
        return whole
    left = max_chars - (len(whole) - sum(lengths))
    limit = 0
    for at, length in enumerate(sorted(lengths)):
        limit = max(left, 0) // (len(lengths) - at)
        if length > limit:
            break
        left -= length
    return "\n".join(observation.text(lambda value: cut_middle(value, limit)) for observation in observed)


def cut_middle(text: str, limit: int) -> str:
    """A text of at most ``limit`` characters: two thirds from its beginning, a third from its end, and how many are missing.

    Where not even that note fits, the note alone.
    """
    if len(text) <= limit:
        return text
    keep = limit - len(_missing(len(text)))
    if keep <= 0:
        note = _missing(len(text)).strip(" …")
        return note if len(note) < len(text) else text
    tail = keep // 3
    head = keep - tail
    return f"{text[:head]}{_missing(len(text) - keep)}{text[len(text) - tail :]}"


def _missing(count: int) -> str:
    return f" … [{count} characters cut] … "


def malformed(protocol: str, line: int, column: int, cause: str) -> str:
    """The observation of a block that could not be read; ``line`` and ``column`` are one-based (A29, ruling 19)."""
    what = extras_of(protocol).malformed or f"Malformed {protocol.upper()} block"
    return f"{_ERROR}{what}: line {line}, column {column}: {inert(plain(cause))}"


def malformed_result(error: ExecutionError, sentence: str, style: Style) -> str:
    """A block without a readable call as its protocol words a result; ``sentence`` is what ``malformed`` says, which ACTION and TAM show as it is.

    The protocol gets a result without a tool id, whose message is that sentence.
    """
    if _observed(style) == "line":
        return sentence
    error = msgspec.structs.replace(error, message=sentence.removeprefix(_ERROR))
    result = ExecutionResult(
        call_id="",
        tool_id="",
        version="",
        status="error",
        error=error,
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
    return observation(result, style)


def unknown_tool(tool_id: str, known: list[str]) -> tuple[str, str | None]:
    """The message for an unknown tool and the suggestion in it, if any (ruling 3)."""
    suggestion = best(tool_id, known)
    return f"Unknown tool ID '{plain(tool_id[:256])}'{hint(suggestion)}", suggestion


def _approval(result: ExecutionResult, name: str) -> object:
    """A part of what a person answered before the call; None without it."""
    approval: object = result.approval
    return cast("dict[str, object]", approval).get(name) if isinstance(approval, dict) else None


def refusal_comment(result: ExecutionResult) -> str:
    """What a person said who refused the call; empty without it."""
    comment = _approval(result, "comment") if result.status == "denied" else None
    return comment if isinstance(comment, str) else ""


def _is_dry_run(result: ExecutionResult) -> bool:
    """Whether everything was checked and nothing ran; a tool's own output of that form has an attempt behind it."""
    output: object = result.output
    return result.attempts == 0 and isinstance(output, dict) and cast("dict[str, object]", output).get("dryRun") is True


def _sentence(result: ExecutionResult, name: str, word: str, shorten: Shorten) -> str:
    if result.status == "success":
        value: Json = None if result.output is UNSET else result.output
        shown = value_text(value) if word == "Result" else _json_text(value)
        if _is_dry_run(result):
            return f"Tool {name} was not executed: this was a dry run, and the call can run. {word}: {shorten(shown)}"
        return f"Tool {name} executed successfully. {word}: {shorten(shown)}"
    if result.status == "accepted":
        ask = f"Call system:task_status with task_id {result.task_id} to learn whether it has ended and what it gave"
        return f"Tool {name} was started as task {result.task_id} and goes on. {ask}."
    if result.status == "cancelled" and result.attempts:
        return f"Tool {name} was stopped while it ran: it was cancelled. What it did until then stands."
    if result.status == "inputRequired" and result.attempts:
        return f"Tool {name} has not ended: {_NOT_RUN[result.status]}."
    if result.status in _NOT_RUN:
        comment = refusal_comment(result)
        text = f" The user's comment: {_ended(comment, shorten)}" if comment else ""
        cause = "" if result.error is UNSET else f", since {shorten(plain(result.error.message))}"
        return f"Tool {name} was not executed: {_NOT_RUN[result.status]}{cause}.{text}"
    error = result.error
    if error is UNSET:
        return f"Tool {name} failed."
    if result.status == "blocked":
        return f"Tool {name} was not executed: policy forbids it: {_ended(error.message, shorten)}"
    if not result.tool_id:
        return f"Error - {shorten(plain(error.message))}"
    sentence = f"Tool {name} failed. Error type: {error.type}. Message: {_ended(error.message, shorten)}"
    details = UNSET if error.details is UNSET else error.details.text
    if details is not UNSET and details.strip():
        told = details.strip()
        if error.type in _OF_SCRIPTS:
            told = last_words(told)
        sentence += f" Details: {shorten(plain(told))}"
    return sentence


_OF_SCRIPTS = frozenset(("ScriptError", "ServiceError"))
"""The errors whose details are what a program wrote on standard error."""
MAX_DETAIL_LINES = 12
_LIBRARY = r"(?:<frozen |node:|[^\"]*/(?:lib(?:64)?/python\d|site-packages/|dist-packages/|node_modules/))"
_PYTHON_FRAME = lazy(rf'(\s*)File "(?={_LIBRARY})')
_NODE_FRAME = lazy(rf"\s+at (?:[^()]*\()?(?:file://)?(?={_LIBRARY})")


def last_words(text: str) -> str:
    """The end of what a program wrote, at most 12 lines and a first that says what is left out.

    Of a trace that is longer, the calls inside libraries go first: the error and the calls of the tool's own script say what is wrong.
    """
    lines = text.splitlines()
    if len(lines) <= MAX_DETAIL_LINES:
        return text
    kept: list[str] = []
    depth = -1
    for line in lines:
        blank = len(line) - len(line.lstrip())
        if 0 <= depth < blank:
            continue  # the source of a call that was left out
        depth = -1
        frame = _PYTHON_FRAME.match(line)
        if frame is not None:
            depth = len(frame[1])
        elif line.strip() and _NODE_FRAME.match(line) is None:
            kept.append(line)
    kept = kept[-MAX_DETAIL_LINES:]
    return "\n".join([f"[{len(lines) - len(kept)} lines left out]", *kept])


def _ended(message: str, shorten: Shorten) -> str:
    """A message as the end of a sentence: with one mark, its own question or exclamation mark if it has one."""
    text = shorten(plain(message.rstrip(".")))
    return text if text.endswith(("?", "!", "？", "！", "。")) else f"{text}."


def _vcp_block(result: ExecutionResult, request_id: str, shorten: Shorten) -> str:
    if result.status == "success" and not _is_dry_run(result):
        status, shown = "success", shorten(value_text(None if result.output is UNSET else result.output))
    else:
        status = result.status if result.status in ("denied", "success", "accepted") else "error"
        shown = _sentence(result, inert(result.tool_id), "Result", shorten)
    fields = {
        "request_id": inert(request_id),
        "tool_name": inert(result.tool_id),
        "status": status,
        "duration_ms": str(round(result.duration_ms)),
        "result": shown,
    }
    lines = ",\n".join(f"{name}:{_marked(value)}" for name, value in fields.items())
    return f"<<<[TOOL_RESULT]>>>\n{lines}\n<<<[END_TOOL_RESULT]>>>"


def _marked(value: str) -> str:
    value = _BLOCK_MARK.sub(lambda match: r"\u003c" * len(match.group()), value)
    # A value that holds the closing mark needs the ESCAPE form, which real VCP text knows (ruling 28).
    if "「末" not in value and "「始" not in value:
        return f"「始」{value}「末」"
    value = _ESCAPE_MARK.sub(r"\\u300c", value)
    return f"「始ESCAPE」{value}「末ESCAPE」"
