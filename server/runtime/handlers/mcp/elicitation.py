"""Questions that an MCP server asks while one of its tools runs (``elicitation/create``): to a person, or declined.

A form of one field that is a choice (a boolean, one of some texts), or of none, is offered as a choice, which every face can show; another one is
shown as a form where there is a face for it, and an address is shown where a person can open it. Everything is declined where nobody can be asked.
A form that asks for a secret is declined, and no secret of the call goes into an answer. Must not know how the question came, nor how a person is asked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import (
    ApprovalAddress,
    ApprovalChoice,
    ApprovalElicitation,
    ApprovalField,
    ApprovalOption,
)
from tamis.protocols.invisible import visible
from tamis.protocols.observation import cut_middle, plain
from tamis.server.runtime.calls.model import Reply
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.calls.running_calls import TimeHeld
from tamis.server.runtime.handlers.mcp.session import MAX_QUESTIONS, QuestionError
from tamis.server.runtime.observe.masking import without, without_in

MAX_MESSAGE_CHARS = 1_000
MAX_TITLE_CHARS = 80
MAX_DESCRIPTION_CHARS = 300
MAX_VALUE_CHARS = 1_000
MAX_CHOICES = 20
MAX_FIELDS = 20
MAX_NAME_CHARS = 100
MAX_FORM_CHOICES = 100
"""So many values has a field of a form at most; as a choice alone ``MAX_CHOICES``."""
MAX_TYPED_CHARS = 4_000
MAX_NUMBER = 2**53
MAX_URL_CHARS = 2_000
MAX_ROUNDS = 3
"""So often a form is shown whose answers do not fit."""
ACCEPT = "accept"
_MAX_NAMED = 8
_ACCEPT = ApprovalOption(option_id=ACCEPT, label="Answer: yes", kind="allow_once")
_ACCEPT_FORM = ApprovalOption(option_id=ACCEPT, label="Answer with this form", kind="allow_once")
_ACCEPT_ADDRESS = ApprovalOption(option_id=ACCEPT, label="Answer: I open this address", kind="allow_once")
_DECLINE = ApprovalOption(option_id="decline", label="Decline to answer", kind="reject_once")
_FORMATS: tuple[Literal["email", "uri", "date", "date-time"], ...] = ("email", "uri", "date", "date-time")
_ADDRESS = re.compile(r"https?://[!#-;=?-Z\]\[_a-z~]+", re.IGNORECASE)
"""Of what is no ASCII, an address may look like another one; nor is there a reason for quotes, brackets of XML or a backslash."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_SECRET = re.compile(
    r"[a-z]*pass ?(word|phrase|code)s?|passwd|pwd|secrets?|credentials?|(api|access|private|secret|encryption|ssh|signing) ?keys?|"
    r"(access|auth|bearer|refresh|session|api) ?tokens?|one ?time (code|pass)|otp|totp|2fa|cvv|cvc|security code|card number|"
    r"iban|social security|ssn|recovery (code|phrase)|seed phrase|kennw(o|ö)rt|passwort|mot de passe|contraseña|senha|пароль|"
    r"密码|密碼|口令|密钥|密鑰|令牌|验证码|驗證碼|パスワード|비밀번호"
)
_SECRET_NAME = re.compile(r"tokens?|pin|pin code")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")


class Choices(msgspec.Struct, frozen=True):
    """What a person may choose: the content of the answer for each option."""

    options: tuple[ApprovalOption, ...]
    contents: dict[str, dict[str, Any]]
    field: str = ""


class Form(msgspec.Struct, frozen=True):
    """What a person may type: the fields in the server's order and words."""

    fields: tuple[ApprovalField, ...]


def modes_of(call: Invocation) -> tuple[str, ...]:
    """What a server may ask while a call runs; nothing where nobody is there for its questions."""
    asking = call.context.asking
    is_reachable = asking.ask is not None or asking.suspended is not None
    if not is_reachable or not asking.elicits or call.request.dry_run:
        return ()
    return ("form", "url") if asking.addresses else ("form",)


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

    @property
    def modes(self) -> tuple[str, ...]:
        """What can be shown."""
        return modes_of(self._call)

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        """The result of ``elicitation/create``. Raises ``QuestionError``."""
        self._number += 1
        number = self._number
        if number > MAX_QUESTIONS:
            raise QuestionError(f"it asked more than {MAX_QUESTIONS} questions in one call")
        message = params.get("message")
        if not isinstance(message, str):
            raise QuestionError("it asks a question whose message is no text")
        asking = self._call.context.asking
        wanted = question_of(params, forms=asking.forms, addresses=asking.addresses)
        if isinstance(wanted, str):
            return self._said(number, "decline", wanted)
        asked = ApprovalElicitation(server=self._server, message=self._shown(message, MAX_MESSAGE_CHARS))
        if isinstance(wanted, Choices):
            return await self._choice(number, asked, wanted)
        if isinstance(wanted, ApprovalAddress):
            if without(wanted.url, self._call.trail.secrets) != wanted.url:
                return self._said(number, "decline", "its address has a secret of this call in it")
            return await self._address(number, msgspec.structs.replace(asked, url=wanted))
        fields = self._shown_fields(wanted.fields)
        return (
            self._said(number, "decline", fields)
            if isinstance(fields, str)
            else await self._form(number, asked, fields)
        )

    async def _choice(self, number: int, asked: ApprovalElicitation, choices: Choices) -> dict[str, Any]:
        asked = msgspec.structs.replace(asked, field=self._shown(choices.field) or UNSET)
        labelled = tuple(
            msgspec.structs.replace(option, label=self._shown(option.label, 2 * MAX_TITLE_CHARS))
            for option in choices.options
        )
        if _look_alike([option.label for option in labelled]):
            return self._said(number, "decline", "two of its choices look the same")
        reply = await self._asked(asked, labelled)
        content = choices.contents.get(reply.option_id)
        if reply.answer == "allow" and content is not None:
            return self._said(number, "accept", "a person chose") | {"content": content}
        return self._not_accepted(number, reply)

    async def _address(self, number: int, asked: ApprovalElicitation) -> dict[str, Any]:
        reply = await self._asked(asked, (_ACCEPT_ADDRESS, _DECLINE))
        if reply.answer == "allow" and reply.option_id == ACCEPT:
            return self._said(number, "accept", "a person opens the address")
        return self._not_accepted(number, reply)

    async def _form(self, number: int, asked: ApprovalElicitation, fields: Sequence[ApprovalField]) -> dict[str, Any]:
        errors: dict[str, str] = {}
        for _ in range(MAX_ROUNDS):
            reply = await self._asked(msgspec.structs.replace(asked, form=[*fields]), (_ACCEPT_FORM, _DECLINE))
            # an allow without an answer is what a host says that takes every question for an approval
            if reply.answer != "allow" or reply.option_id != ACCEPT:
                return self._not_accepted(number, reply)
            if not isinstance(reply.content, dict):
                named = ", ".join(f"'{field.name}'" for field in fields[:_MAX_NAMED])
                lacks = "has no 'content'" if reply.content is None else "has a 'content' that is no object"
                why = f"the host's answer '{ACCEPT}' {lacks}: an object with the form's fields, {named}"
                return self._said(number, "cancel", why)
            content, errors = fitting(fields, cast("dict[str, Any]", reply.content), self._call.trail.secrets)
            if not errors:
                return self._said(number, "accept", "a person answered") | {"content": content}
            fields = [_put_again(field, content, errors) for field in fields]
        name, wrong = next(iter(errors.items()))
        return self._said(number, "cancel", f"the answers did not fit its form: {name}: {wrong}")

    async def _asked(self, asked: ApprovalElicitation, options: tuple[ApprovalOption, ...]) -> Reply:
        async with self._turn:
            with self._held.held():
                self._call.trail.note("mcp.asked", server=self._server, message=asked.message)
                return await self._call.services.approvals.elicit(self._call, asked, options)

    def _not_accepted(self, number: int, reply: Reply) -> dict[str, Any]:
        if reply.answer in ("deny", "unavailable"):
            why = "a person declined" if reply.answer == "deny" else "there is no one to ask"
            return self._said(number, "decline", why)
        # a host that answers in another shape is told so: else its author never learns what it is
        closed = reply.fault or "no answer was chosen"
        return self._said(number, "cancel", "nobody answered in time" if reply.answer == "timeout" else closed)

    def _shown_fields(self, fields: Sequence[ApprovalField]) -> list[ApprovalField] | str:
        """Fields as a person may see them; or why they cannot be shown."""
        shown: list[ApprovalField] = []
        for field in fields:
            options = UNSET
            values = [] if field.options is UNSET else [choice.value for choice in field.options]
            # these come back as they are, so nothing of them can be masked or escaped
            if any(self._shown(text, MAX_VALUE_CHARS) != text for text in (field.name, *values)):
                return "a name or a value of its form holds what cannot be shown"
            if isinstance(field.default, str) and self._shown(field.default, MAX_TYPED_CHARS) != field.default:
                field = msgspec.structs.replace(field, default=UNSET)
            if field.options is not UNSET:
                options = [ApprovalChoice(value=one.value, title=self._shown(one.title)) for one in field.options]
                if _look_alike([choice.title for choice in options]):
                    return "two of its choices look the same"
            about = UNSET if field.description is UNSET else self._shown(field.description, MAX_DESCRIPTION_CHARS)
            title = self._shown(field.title) or field.name
            shown.append(msgspec.structs.replace(field, title=title, description=about, options=options))
        return shown

    def _shown(self, text: str, limit: int = MAX_TITLE_CHARS) -> str:
        """A server's words as a person may see them: without secrets and without what cannot be seen, on one line, bounded."""
        # cut before the rest, which takes its time; what is masked or escaped makes it longer again
        bounded = without(cut_middle(text, 4 * limit), self._call.trail.secrets)
        return cut_middle(visible(plain(" ".join(bounded.split()))), limit)

    def _said(self, number: int, action: str, why: str) -> dict[str, Any]:
        self._call.trail.note("mcp.answered", server=self._server, answer=action, reason=why)
        self._lines.append(f"question {number} of the MCP server '{self._server}': {action} ({why})")
        return {"action": action}


def question_of(params: dict[str, Any], *, forms: bool, addresses: bool) -> Choices | Form | ApprovalAddress | str:
    """What a person is asked; or why nobody is. Raises ``QuestionError`` for what is no question at all."""
    mode = params.get("mode", "form")
    if mode == "url" and addresses:
        return address_of(params)
    choices = choices_of(params)
    return form_of(params) if forms and mode == "form" and isinstance(choices, str) else choices


def address_of(params: Mapping[str, Any]) -> ApprovalAddress | str:
    """The address that a question wants to be opened, and its host; or why it is not shown."""
    url = params.get("url")
    if not isinstance(url, str) or not 0 < len(url) <= MAX_URL_CHARS or not _ADDRESS.fullmatch(url):
        return f"its address is no http or https address in ASCII of at most {MAX_URL_CHARS} characters"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "its address cannot be read"
    if not host or "@" in parts.netloc:
        return "its address has no host, or a user's name before it"
    shown = f"[{host}]" if ":" in host else host
    return ApprovalAddress(url=url, host=shown if port is None else f"{shown}:{port}")


def _named(params: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a question's schema. Raises ``QuestionError``."""
    schema = params.get("requestedSchema")
    fields = cast("dict[str, Any]", schema).get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(fields, dict):
        raise QuestionError("it asks a question whose requestedSchema is no schema of an object")
    return cast("dict[str, Any]", fields)


def choices_of(params: dict[str, Any]) -> Choices | str:
    """What a person may choose; or why nothing can be chosen here. Raises ``QuestionError`` for what is no question at all."""
    if params.get("mode", "form") != "form":
        return "only forms are shown here, no address is opened"
    named = _named(params)
    if not named:
        return Choices((_ACCEPT, _DECLINE), {ACCEPT: {}})
    if len(named) > 1:
        return f"it wants {len(named)} fields, and only one choice is offered here"
    name, raw = next(iter(named.items()))
    field = _object(raw)
    values = _values(field, MAX_CHOICES) if _is_unicode(name) else "its field has no name in Unicode"
    if isinstance(values, str):
        return values
    options = [
        ApprovalOption(option_id=f"choice-{at}", label=f"Answer: {title}", kind="allow_once")
        for at, (_, title) in enumerate(values, 1)
    ]
    contents = {option.option_id: {name: value} for option, (value, _) in zip(options, values, strict=True)}
    return Choices((*options, _DECLINE), contents, _text(field, "title") or name)


def _values(field: dict[str, Any], most: int) -> list[tuple[Any, str]] | str:
    """The values of a field with their titles; or why there is nothing to choose from."""
    if field.get("type") == "boolean":
        return [(True, "yes"), (False, "no")]
    if field.get("type", "string") != "string":
        return "it wants text or numbers to be typed, and only a choice is offered here"
    return _texts(field, most)


def _texts(field: dict[str, Any], most: int) -> list[tuple[Any, str]] | str:
    """The texts of an `enum`, a `oneOf` or an `anyOf` with their titles."""
    listed, names = field.get("enum"), field.get("enumNames")
    titled = field.get("oneOf", field.get("anyOf"))
    if isinstance(titled, list):
        told = [_object(item) for item in cast("list[Any]", titled)]
        listed, names = [option.get("const") for option in told], [option.get("title") for option in told]
    if not isinstance(listed, list) or not listed:
        return "it wants text or numbers to be typed, and only a choice is offered here"
    values = cast("list[Any]", listed)
    titles = cast("list[Any]", names) if isinstance(names, list) else []
    if len(values) > most:
        return f"it has {len(values)} choices, and at most {most} are offered"
    choices: list[tuple[Any, str]] = []
    for at, value in enumerate(values):
        if not isinstance(value, str) or len(value) > MAX_VALUE_CHARS or not _is_unicode(value):
            return "its choices are no texts of bounded length"
        title = titles[at] if at < len(titles) else None
        choices.append((value, cut_middle(title if isinstance(title, str) and title else value, 4 * MAX_TITLE_CHARS)))
    return choices


def form_of(params: dict[str, Any]) -> Form | str:
    """What a person may type; or why it is not shown. Raises ``QuestionError`` for what is no question at all."""
    named = _named(params)
    if len(named) > MAX_FIELDS:
        return f"its form has {len(named)} fields, and at most {MAX_FIELDS} are shown"
    wanted = params["requestedSchema"].get("required")
    required = cast("list[object]", wanted) if isinstance(wanted, list) else []
    fields: list[ApprovalField] = []
    for name, raw in named.items():
        if not name or len(name) > MAX_NAME_CHARS or not _is_unicode(name):
            return "a field of its form has no name of bounded length in Unicode"
        schema = _object(raw)
        field = _field(name, schema, required=name in required)
        if isinstance(field, str):
            return f"the field '{visible(name)}' of its form {field}"
        if field.type != "boolean" and field.options is UNSET and _asks_for_secret(field, schema, params):
            return f"the field '{visible(name)}' of its form asks for what looks like a secret, and no form does that"
        fields.append(field)
    return Form(tuple(fields))


def _field(name: str, schema: dict[str, Any], *, required: bool) -> ApprovalField | str:
    kind = schema.get("type", "string")
    if kind not in ("string", "number", "integer", "boolean", "array"):
        return "is no text, number, truth value or choice"
    field = ApprovalField(
        name=name,
        title=_text(schema, "title") or name,
        type=kind,
        required=required,
        description=_text(schema, "description") or UNSET,
    )
    choice = _object(schema.get("items")) if kind == "array" else schema
    if kind == "array" or (kind == "string" and any(word in schema for word in ("enum", "oneOf", "anyOf"))):
        values = _texts(choice, MAX_FORM_CHOICES)
        if isinstance(values, str):
            return f"is no list of texts to choose from: {values}"
        field.options = [ApprovalChoice(value=value, title=title) for value, title in values]
        if kind == "array":
            field.min_items, field.max_items = _count(schema, "minItems"), _count(schema, "maxItems")
    elif kind == "string":
        field.min_length, field.max_length = _count(schema, "minLength"), _count(schema, "maxLength")
        field.format = next((known for known in _FORMATS if known == schema.get("format")), UNSET)
    elif kind != "boolean":
        field.minimum, field.maximum = _bound(schema, "minimum"), _bound(schema, "maximum")
    given = schema.get("default")
    if given is not None:
        fit, wrong = value_of(field, given)
        field.default = UNSET if wrong else fit
    return field


def _asks_for_secret(field: ApprovalField, schema: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Whether what is typed would be a secret, by all that the server says of it. What is chosen is none: the server knows it."""
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        return True
    texts = (field.name, field.title, "" if field.description is UNSET else field.description, params.get("message"))
    words = [" ".join(_WORDS.split(str(text)[: 4 * MAX_MESSAGE_CHARS])).strip().lower() for text in texts]
    if any(re.search(rf"(?<![a-z])(?:{_SECRET.pattern})(?![a-z])", text) for text in words):
        return True
    # a limit of tokens is a number
    return field.type == "string" and any(re.search(rf"\b(?:{_SECRET_NAME.pattern})$", text) for text in words[:2])


def fitting(
    fields: Sequence[ApprovalField], content: Mapping[str, Any], secrets: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """What an answer has of a form's fields, and what is wrong with it, by field. What belongs to no field is left out."""
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field in fields:
        value = content.get(field.name)
        if value is None or (value == "" and field.type not in ("string",)):
            if field.required:
                errors[field.name] = "an answer is needed"
            continue
        values[field.name], wrong = value_of(field, value)
        if not wrong and without_in(value, secrets) != value:
            del values[field.name]
            wrong = "it holds a secret of this call, which no answer may hold"
        if wrong:
            errors[field.name] = wrong
    return values, errors


def value_of(field: ApprovalField, value: Any) -> tuple[Any, str]:
    """A value as the field has it, and what is wrong with it; empty for nothing."""
    if field.type == "boolean":
        return value, "" if isinstance(value, bool) else "it is yes or no"
    if field.type == "array":
        return value, _wrong_choices(field, value)
    if field.type in ("number", "integer"):
        return _number_of(field, value)
    if not isinstance(value, str):
        return value, "it is a text"
    if field.options is not UNSET:
        return value, "" if any(value == choice.value for choice in field.options) else "it is one of the choices"
    return value, _wrong_text(field, value)


def _wrong_choices(field: ApprovalField, value: Any) -> str:
    chosen = cast("list[object]", value) if isinstance(value, list) else None
    offered = [] if field.options is UNSET else [choice.value for choice in field.options]
    if chosen is None or len(chosen) > len(offered) or any(item not in offered for item in chosen):
        return "it is some of the choices"
    if len({str(item) for item in chosen}) < len(chosen):
        return "each choice counts once"
    return _wrong_size(len(chosen), field.min_items, field.max_items, "choices")


def _wrong_text(field: ApprovalField, value: str) -> str:
    if len(value) > MAX_TYPED_CHARS:
        return f"it has at most {MAX_TYPED_CHARS} characters"
    if _CONTROL.search(value) or not _is_unicode(value):
        return "it has no control characters"
    wrong = _wrong_size(len(value), field.min_length, field.max_length, "characters")
    if not wrong and field.format is not UNSET and not _has_format(value, field.format):
        example = {
            "email": "an email address",
            "uri": "an address such as https://example.com/",
            "date": "a date such as 2026-07-28",
            "date-time": "a time such as 2026-07-28T09:30:00Z",
        }
        wrong = f"it is {example[field.format]}"
    return wrong


def _has_format(value: str, named: str) -> bool:
    try:
        if named == "date":
            return _DATE.fullmatch(value) is not None and bool(date.fromisoformat(value))
        if named == "date-time":
            return _DATE_TIME.fullmatch(value) is not None and bool(datetime.fromisoformat(value.upper()))
        if named == "uri":
            parts = urlsplit(value)
            return bool(parts.scheme) and bool(parts.netloc or parts.path) and not re.search(r"\s", value)
    except ValueError:
        return False
    return re.fullmatch(r"[^@\s]{1,64}@[^@\s]{1,255}", value) is not None


def _number_of(field: ApprovalField, value: Any) -> tuple[Any, str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value, "it is a number"
    if not abs(value) <= MAX_NUMBER:  # what is no number at all is not either
        return None, f"it is a number up to {MAX_NUMBER}"
    if field.type == "integer":
        if value != int(value):
            return value, "it is a whole number"
        value = int(value)
    if field.minimum is not UNSET and value < field.minimum:
        return value, f"it is at least {_bare(field.minimum)}"
    if field.maximum is not UNSET and value > field.maximum:
        return value, f"it is at most {_bare(field.maximum)}"
    return value, ""


def _bare(number: float) -> str:
    """A bound as it is: neither rounded nor with a point that it does not need."""
    return str(int(number)) if number == int(number) else repr(number)


def _wrong_size(size: int, least: Any, most: Any, what: str) -> str:
    if least is not UNSET and size < least:
        return f"it has at least {least} {what}"
    return f"it has at most {most} {what}" if most is not UNSET and size > most else ""


def _put_again(field: ApprovalField, content: Mapping[str, Any], errors: Mapping[str, str]) -> ApprovalField:
    """The field of a form that is shown again: with what was answered, and what was wrong with it."""
    value = content.get(field.name)
    # a value of another type than the field's, or one that cannot be shown, is not shown again
    shown = (
        value if value_of(field, value)[1] == "" or (isinstance(value, str) and not _CONTROL.search(value)) else None
    )
    if isinstance(shown, str):
        shown = shown[:MAX_TYPED_CHARS] if _is_unicode(shown) and field.options is UNSET else None
    return msgspec.structs.replace(
        field, default=field.default if shown is None else shown, error=errors.get(field.name, UNSET)
    )


def _look_alike(labels: Sequence[str]) -> bool:
    return len(set(labels)) < len(labels)


def _count(schema: Mapping[str, Any], word: str) -> Any:
    value = schema.get(word)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER else UNSET


def _bound(schema: Mapping[str, Any], word: str) -> Any:
    value = schema.get(word)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return UNSET
    return value if abs(value) <= MAX_NUMBER else UNSET


def _text(schema: Mapping[str, Any], word: str) -> str:
    value = schema.get(word)
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_unicode(text: str) -> bool:
    """Whether it can be sent: no half of a pair alone."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
