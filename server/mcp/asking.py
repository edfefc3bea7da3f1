"""A person's word before a call, and the answers to a tool's MCP server, through the client: a form in the result (the modern era) or a request of
ours (before it).

Where the client shows no form, nobody is asked, and the call ends as the policy says: never silently allowed. The state that goes through the client
is a token that nobody can guess; what it stands for stays here, bound to the tool, its arguments and rights, used once, and forgotten when its time
is over. Must not decide whether a person has to be asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from tamis.protocols.contract import (
    ApprovalElicitation,
    ApprovalField,
    ApprovalOption,
    ApprovalRequest,
    Permissions,
)
from tamis.server.mcp.revisions import MISSING_CAPABILITY, NAMESPACE, SERVER, Peer, as_object
from tamis.server.runtime.calls.model import Ask, Question, Reply, TokenAnswer
from tamis.server.runtime.execution.approvals.replies import (
    ALLOW,
    CANCELLED,
    MAX_SENTENCE_CHARS,
    REJECT,
    SESSION,
    chosen,
    elicitation_text,
    sentence,
)
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.mcp.tools import HandedOut

KEY = "approval"
"""The name of the question among the inputs that a result asks for."""
KEY_OF_SERVER = "question"
"""The same for one of a tool's MCP server."""
FIELD = "decision"
CHOICES = {"allow_once": ALLOW, "allow_session": SESSION, "deny": REJECT}
CHOICES_ONCE = {name: option for name, option in CHOICES.items() if option is not SESSION}
"""For a client without a session: there is nothing that an answer could hold for."""
_LABELS = {"allow_once": ALLOW.label, "allow_session": "Allow until this server ends", "deny": REJECT.label}
ACCEPT = "accept"
"""The option that answers a form, or opens an address."""
TITLED_SINCE = "2025-11-25"
Send = Callable[[str, object], Awaitable[Any]]


def by_request(send: Send, version: str) -> Ask:
    """Asks by a request of ours; the client's error means that nobody can be asked."""

    async def ask(question: Question) -> Reply:
        asked = question.elicitation
        if asked is None:
            params = form(question.tool_id, question.display_name, question.preview, question.permissions, version)
        elif version < TITLED_SINCE and asked.form is not UNSET and any(one.type == "array" for one in asked.form):
            return Reply(answer="unavailable")  # a list of values is no field of those revisions
        else:
            params = _passed_on(question.tool_id, asked, question.options, version)
            if asked.url is not UNSET:
                params["elicitationId"] = question.approval_id
        try:
            answer = as_object(await send("elicitation/create", params))
        except RpcError:
            return Reply(answer="unavailable")
        if asked is not None and answer.get("action") == "decline":
            return Reply(answer="deny")
        option = option_of(answer) if asked is None else _option_of_server(answer, asked, question.options)
        return CANCELLED if option is None else chosen(option, question.options, content=answer.get("content"))

    return ask


def _passed_on(
    tool_id: str, asked: ApprovalElicitation, options: Sequence[ApprovalOption], version: str
) -> dict[str, Any]:
    """A server's question put as ours: the client's own user answers, and what is typed is checked as everywhere."""
    text = elicitation_text(tool_id, asked)
    if asked.url is not UNSET:
        return {"message": text, "mode": "url", "url": asked.url.url}
    if asked.form is UNSET:
        labels = {option.option_id: option.label for option in options if option.kind == "allow_once"}
        return _choice(text, "Answer", labels, version)
    mode = {"mode": "form"} if version >= TITLED_SINCE else {}
    return {"message": text, **mode, "requestedSchema": schema_of(asked.form, version)}


def _option_of_server(
    answer: Mapping[str, Any], asked: ApprovalElicitation, options: Sequence[ApprovalOption]
) -> str | None:
    """The option that accepts a server's question; None for what is no such answer."""
    if answer.get("action") != "accept":
        return None
    content = answer.get("content")
    if asked.url is not UNSET or asked.form is not UNSET:
        return ACCEPT if asked.url is not UNSET or isinstance(content, dict) else None
    decision = as_object(content).get(FIELD)
    return next((one.option_id for one in options if (one.option_id, one.kind) == (decision, "allow_once")), None)


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
    if question.elicitation is not UNSET:
        key, params = KEY_OF_SERVER, _passed_on(question.tool, question.elicitation, question.options, peer.version)
    else:
        key, permissions = KEY, question.permissions
        params = form(question.tool, display_name, question.args_preview, permissions, peer.version, choices)
    return {
        "resultType": "input_required",
        "inputRequests": {key: {"method": "elicitation/create", "params": params}},
        "requestState": question.token,
        "_meta": {f"{NAMESPACE}serverInfo": SERVER},
    }


class Answered:
    """What a repeated call brings: the state that it was given, and the person's answer."""

    def __init__(
        self, params: Mapping[str, Any], choices: Mapping[str, ApprovalOption], questions: Mapping[str, HandedOut]
    ) -> None:
        """``questions``: those that were handed out, by their state. Raises ``RpcError`` for a state that is no text."""
        state = params.get("requestState")
        if state is not None and not isinstance(state, str):
            raise RpcError(INVALID_PARAMS, "wrong params: the state of a request is text - at `/requestState`")
        self.state = state or ""
        self.handed_out = questions.get(self.state)
        """The question that is answered; None where there is none, or none any more."""
        responses = as_object(params.get("inputResponses"))
        self.closed = False
        """The person closed the form of an approval without a choice."""
        self.token: TokenAnswer | None = None
        asked = UNSET if self.handed_out is None else self.handed_out.question.elicitation
        if self.handed_out is not None and asked is not UNSET:
            answer = as_object(responses.get(KEY_OF_SERVER))
            self.token = _token_of_server(self.state, answer, asked, self.handed_out.question.options)
        elif self.state:
            answer = as_object(responses.get(KEY))
            self.closed = answer.get("action") == "cancel"
            option = option_of(answer, choices)
            self.token = None if option is None else TokenAnswer(token=self.state, option_id=option)
        self.is_missing = bool(self.state) and self.token is None and not self.closed
        """The state came back without an answer that can be read: the question is put again."""

    def check(self, peer: Peer) -> None:
        """Refuses to go on with a run for a client that says that it can do less now. Raises ``RpcError``; the state stays as it was."""
        handed_out = self.handed_out
        if handed_out is None or handed_out.question.elicitation is UNSET:
            return
        if not peer.elicits or (handed_out.opens and not peer.opens):
            modes: dict[str, Any] = {"form": {}, "url": {}} if handed_out.opens else {"form": {}}
            needed = {"requiredCapabilities": {"elicitation": modes}}
            raise RpcError(MISSING_CAPABILITY, "Missing required client capability", needed)


def _token_of_server(
    state: str, answer: Mapping[str, Any], asked: ApprovalElicitation, options: Sequence[ApprovalOption]
) -> TokenAnswer | None:
    """What a server is answered; None for what is no answer."""
    action = answer.get("action")
    if action == "cancel":
        return TokenAnswer(token=state)
    if action == "decline":
        return TokenAnswer(token=state, option_id=next(one.option_id for one in options if one.kind == "reject_once"))
    option = _option_of_server(answer, asked, options)
    return None if option is None else TokenAnswer(token=state, option_id=option, content=answer.get("content"))
