"""Questions that an MCP server asks while one of its tools runs (``elicitation/create``): to a person, as one choice, or declined.

What is offered is a choice of one field (a boolean, one of some texts) or a plain yes; a form that needs more is declined, and so is
everything where nobody can be asked. No text of a person, and no secret, ever goes into an answer. Must not know how the question came,
nor how a person is asked.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ApprovalElicitation, ApprovalOption
from tamis.protocols.invisible import visible
from tamis.protocols.observation import cut_middle, plain
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.calls.running_calls import TimeHeld
from tamis.server.runtime.handlers.mcp.session import MAX_QUESTIONS, QuestionError
from tamis.server.runtime.observe.masking import without

MAX_MESSAGE_CHARS = 1_000
MAX_TITLE_CHARS = 80
MAX_VALUE_CHARS = 1_000
MAX_CHOICES = 20
_DECLINE = ApprovalOption(option_id="decline", label="Decline to answer", kind="reject_once")


class Choices(msgspec.Struct, frozen=True):
    """What a person may choose: the content of the answer for each option."""

    options: tuple[ApprovalOption, ...]
    contents: dict[str, dict[str, Any]]
    field: str = ""


def can_ask(call: Invocation) -> bool:
    """Whether somebody is there for a server's questions while a call runs."""
    asking = call.context.asking
    return asking.ask is not None and asking.elicits and not call.request.dry_run


class Questions:
    """The questions of one call, one after the other."""

    def __init__(self, call: Invocation, server: str, lines: list[str], time_held: TimeHeld) -> None:
        """``lines`` are the call's log; while a person is asked, the call's time is ``held``."""
        self._call = call
        self._server = server
        self._lines = lines
        self._held = time_held
        self._number = 0
        self._turn = asyncio.Lock()

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        """The result of ``elicitation/create``. Raises ``QuestionError``."""
        self._number += 1
        number = self._number
        if number > MAX_QUESTIONS:
            raise QuestionError(f"it asked more than {MAX_QUESTIONS} questions in one call")
        message = params.get("message")
        if not isinstance(message, str):
            raise QuestionError("it asks a question whose message is no text")
        choices = choices_of(params)
        if isinstance(choices, str):
            return self._said(number, "decline", choices)
        asked = ApprovalElicitation(
            server=self._server,
            message=self._shown(message, MAX_MESSAGE_CHARS),
            field=self._shown(choices.field) or UNSET,
        )
        labelled = tuple(
            msgspec.structs.replace(option, label=self._shown(option.label, 2 * MAX_TITLE_CHARS))
            for option in choices.options
        )
        if len({option.label for option in labelled}) < len(labelled):
            return self._said(number, "decline", "two of its choices look the same")
        async with self._turn:
            with self._held.held():
                self._call.trail.note("mcp.asked", server=self._server, message=asked.message)
                reply = await self._call.services.approvals.elicit(self._call, asked, labelled)
        content = choices.contents.get(reply.option_id)
        if reply.answer == "allow" and content is not None:
            return self._said(number, "accept", "a person chose") | {"content": content}
        if reply.answer in ("deny", "unavailable"):
            why = "a person declined" if reply.answer == "deny" else "there is no one to ask"
            return self._said(number, "decline", why)
        return self._said(
            number, "cancel", "nobody answered in time" if reply.answer == "timeout" else "no answer was chosen"
        )

    def _shown(self, text: str, limit: int = MAX_TITLE_CHARS) -> str:
        """A server's words as a person may see them: without secrets and without what cannot be seen, on one line, bounded."""
        # cut before the rest, which takes its time; what is masked or escaped makes it longer again
        bounded = without(cut_middle(text, 4 * limit), self._call.trail.secrets)
        return cut_middle(visible(plain(" ".join(bounded.split()))), limit)

    def _said(self, number: int, action: str, why: str) -> dict[str, Any]:
        self._call.trail.note("mcp.answered", server=self._server, answer=action, reason=why)
        self._lines.append(f"question {number} of the MCP server '{self._server}': {action} ({why})")
        return {"action": action}


def choices_of(params: dict[str, Any]) -> Choices | str:
    """What a person may choose; or why nothing can be chosen here. Raises ``QuestionError`` for what is no question at all."""
    if params.get("mode", "form") != "form":
        return "only forms are shown, no address is opened"
    schema = params.get("requestedSchema")
    fields = cast("dict[str, Any]", schema).get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(fields, dict):
        raise QuestionError("it asks a question whose requestedSchema is no schema of an object")
    named = cast("dict[str, Any]", fields)
    if not named:
        accept = ApprovalOption(option_id="accept", label="Answer: yes", kind="allow_once")
        return Choices((accept, _DECLINE), {"accept": {}})
    if len(named) > 1:
        return f"it wants {len(named)} fields, and only one choice is offered"
    name, raw = next(iter(named.items()))
    field = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    values = _values(field) if _is_unicode(name) else "its field has no name in Unicode"
    if isinstance(values, str):
        return values
    options = [
        ApprovalOption(option_id=f"choice-{at}", label=f"Answer: {title}", kind="allow_once")
        for at, (_, title) in enumerate(values, 1)
    ]
    contents = {option.option_id: {name: value} for option, (value, _) in zip(options, values, strict=True)}
    title = field.get("title")
    return Choices((*options, _DECLINE), contents, title if isinstance(title, str) and title else name)


def _values(field: dict[str, Any]) -> list[tuple[Any, str]] | str:
    """The values of a field with their titles; or why there is nothing to choose from."""
    if field.get("type") == "boolean":
        return [(True, "yes"), (False, "no")]
    listed, names = field.get("enum"), field.get("enumNames")
    titled = field.get("oneOf")
    if isinstance(titled, list):
        told = [cast("dict[str, Any]", item) if isinstance(item, dict) else {} for item in cast("list[Any]", titled)]
        listed, names = [option.get("const") for option in told], [option.get("title") for option in told]
    if field.get("type", "string") != "string" or not isinstance(listed, list) or not listed:
        return "it wants text or numbers to be typed, and only a choice is offered"
    values = cast("list[Any]", listed)
    titles = cast("list[Any]", names) if isinstance(names, list) else []
    if len(values) > MAX_CHOICES:
        return f"it has {len(values)} choices, and at most {MAX_CHOICES} are offered"
    choices: list[tuple[Any, str]] = []
    for at, value in enumerate(values):
        if not isinstance(value, str) or len(value) > MAX_VALUE_CHARS or not _is_unicode(value):
            return "its choices are no texts of bounded length"
        title = titles[at] if at < len(titles) else None
        choices.append((value, cut_middle(title if isinstance(title, str) and title else value, 4 * MAX_TITLE_CHARS)))
    return choices


def _is_unicode(text: str) -> bool:
    """Whether it can be sent: no half of a pair alone."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
