"""A person's word before a call, through the client: a form in the result (the modern era) or a request of ours (before it).

Where the client shows no form, nobody is asked, and the call ends as the policy says: never silently allowed. The state that goes through the client
is a token that nobody can guess; what it stands for stays here, bound to the tool, its arguments and rights, used once, and forgotten when its time
is over. Must not decide whether a person has to be asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from tamis.protocols.contract import (
    ApprovalElicitation,
    ApprovalField,
    ApprovalOption,
    ApprovalRequest,
    Permissions,
)
from tamis.server.mcp.revisions import NAMESPACE, SERVER, Peer, as_object
from tamis.server.runtime.calls.model import Ask, Question, Reply, TokenAnswer
from tamis.server.runtime.execution.approvals.replies import (
    ALLOW,
    CANCELLED,
    MAX_SENTENCE_CHARS,
    REJECT,
    SESSION,
    chosen,
    question_text,
    sentence,
)
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

KEY = "approval"
"""The name of the question among the inputs that a result asks for."""
FIELD = "decision"
CHOICES = {"allow_once": ALLOW, "allow_session": SESSION, "deny": REJECT}
CHOICES_ONCE = {name: option for name, option in CHOICES.items() if option is not SESSION}
"""For a client without a session: there is nothing that an answer could hold for."""
_LABELS = {"allow_once": ALLOW.label, "allow_session": "Allow until this server ends", "deny": REJECT.label}
TITLED_SINCE = "2025-11-25"
Send = Callable[[str, object], Awaitable[Any]]


def by_request(send: Send, version: str) -> Ask:
    """Asks by a request of ours; the client's error means that nobody can be asked."""

    async def ask(question: Question) -> Reply:
        choices, asked = CHOICES, question.elicitation
        if asked is not None and (asked.form is not UNSET or asked.url is not UNSET):
            return await _passed_on(send, question, asked, version)
        if asked is None:
            params = form(question.tool_id, question.display_name, question.preview, question.permissions, version)
        else:
            choices = {option.option_id: option for option in question.options if option.kind == "allow_once"}
            labels = {name: option.label for name, option in choices.items()}
            params = _choice(question_text(question), "Answer", labels, version)
        try:
            answer = as_object(await send("elicitation/create", params))
        except RpcError:
            return Reply(answer="unavailable")
        if asked is not None and answer.get("action") == "decline":
            return Reply(answer="deny")
        option = option_of(answer, choices)
        return CANCELLED if option is None else chosen(option, question.options)

    return ask


async def _passed_on(send: Send, question: Question, asked: ApprovalElicitation, version: str) -> Reply:
    """A server's form or address, put as ours: the client's own user answers, and what is typed is checked as everywhere."""
    params: dict[str, Any] = {"message": question_text(question)}
    if asked.url is not UNSET:
        params |= {"mode": "url", "url": asked.url.url, "elicitationId": question.approval_id}
    elif asked.form is not UNSET:
        if version < TITLED_SINCE and any(field.type == "array" for field in asked.form):
            return Reply(answer="unavailable")  # a list of values is no field of those revisions
        params |= {"mode": "form"} if version >= TITLED_SINCE else {}
        params["requestedSchema"] = schema_of(asked.form, version)
    try:
        answer = as_object(await send("elicitation/create", params))
    except RpcError:
        return Reply(answer="unavailable")
    if answer.get("action") == "decline":
        return Reply(answer="deny")
    accepts = answer.get("action") == "accept"
    return chosen("accept", question.options, content=answer.get("content")) if accepts else CANCELLED


_WORDS = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "format": "format",
    "minimum": "minimum",
    "maximum": "maximum",
    "default": "default",
}


def schema_of(fields: Sequence[ApprovalField], version: str) -> dict[str, Any]:
    """A form as the ``requestedSchema`` of a revision."""
    properties: dict[str, dict[str, Any]] = {}
    for field in fields:
        schema: dict[str, Any] = {"type": field.type, "title": field.title}
        words = [text for text in (field.error, field.description) if text is not UNSET]
        if words:
            schema["description"] = ". ".join(words)
        schema |= {word: value for name, word in _WORDS.items() if (value := getattr(field, name)) is not UNSET}
        if field.options is not UNSET:
            titled = [{"const": choice.value, "title": choice.title} for choice in field.options]
            if field.type == "array":
                schema["items"] = {"anyOf": titled}
            elif version >= TITLED_SINCE:
                schema["oneOf"] = titled
            else:
                schema["enum"] = [choice.value for choice in field.options]
                schema["enumNames"] = [choice.title for choice in field.options]
        properties[field.name] = schema
    required = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def form(
    tool_id: str,
    display_name: str,
    preview: str,
    permissions: Permissions,
    version: str,
    choices: Mapping[str, ApprovalOption] = CHOICES,
) -> dict[str, Any]:
    """The params of ``elicitation/create``: one choice."""
    text = sentence(tool_id, display_name, preview, permissions, MAX_SENTENCE_CHARS)
    return _choice(text, "Decision", {name: _LABELS[name] for name in choices}, version)


def _choice(text: str, title: str, labels: Mapping[str, str], version: str) -> dict[str, Any]:
    choice: dict[str, Any] = {"type": "string", "title": title}
    if version >= TITLED_SINCE:
        choice["oneOf"] = [{"const": name, "title": label} for name, label in labels.items()]
    else:
        choice |= {"enum": list(labels), "enumNames": list(labels.values())}
    params: dict[str, Any] = {"mode": "form"} if version >= TITLED_SINCE else {}
    params["message"] = text
    params["requestedSchema"] = {"type": "object", "properties": {FIELD: choice}, "required": [FIELD]}
    return params


def option_of(answer: Mapping[str, Any], choices: Mapping[str, ApprovalOption] = CHOICES) -> str | None:
    """The option that an answer chose; None for one that chose none: a closed form, or what is no answer."""
    action = answer.get("action")
    if action == "decline":
        return REJECT.option_id
    decision = as_object(answer.get("content")).get(FIELD)
    option = choices.get(decision) if action == "accept" and isinstance(decision, str) else None
    return None if option is None else option.option_id


def input_required(
    question: ApprovalRequest, display_name: str, peer: Peer, choices: Mapping[str, ApprovalOption]
) -> dict[str, Any]:
    """The result that asks; the client sends the same call again with the person's answer and the state."""
    params = form(question.tool, display_name, question.args_preview, question.permissions, peer.version, choices)
    return {
        "resultType": "input_required",
        "inputRequests": {KEY: {"method": "elicitation/create", "params": params}},
        "requestState": question.token,
        "_meta": {f"{NAMESPACE}serverInfo": SERVER},
    }


class Answered:
    """What a repeated call brings: the state that it was given, and the person's answer."""

    def __init__(self, params: Mapping[str, Any], choices: Mapping[str, ApprovalOption]) -> None:
        """Raises ``RpcError`` for a state that is no text."""
        state = params.get("requestState")
        if state is not None and not isinstance(state, str):
            raise RpcError(INVALID_PARAMS, "wrong params: the state of a request is text - at `$.requestState`")
        self.state = state or ""
        answer = as_object(as_object(params.get("inputResponses")).get(KEY))
        self.closed = bool(self.state) and answer.get("action") == "cancel"
        """The person closed the form without a choice."""
        option = option_of(answer, choices)
        self.token = TokenAnswer(token=self.state, option_id=option) if self.state and option is not None else None
        self.is_missing = bool(self.state) and self.token is None and not self.closed
        """The state came back without an answer that can be read: the question is put again."""
