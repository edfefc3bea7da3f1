"""Questions of MCP servers while their tools run: to the person who is asked for approvals, bounded, declined where nobody is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tamis.protocols.contract import ApprovalField, ApprovalOption, ExecutionResult
from tamis.server.runtime.calls.model import Answer, CallContext, Question, Reply
from tamis.server.runtime.execution.approvals.replies import chosen, question_text, read_reply
from tamis.server.runtime.handlers.mcp.elicitation import Form, address_of, choices_of, fitting, form_of, question_of
from tamis.server.runtime.handlers.mcp.session import McpSession, QuestionError
from tests.runtime.mcp_calls import call, make, run
from tests.waiting import arrives

COLOUR: dict[str, Any] = {
    "message": "Which colour?",
    "requestedSchema": {
        "type": "object",
        "properties": {"colour": {"type": "string", "title": "Colour", "enum": ["red", "blue"]}},
        "required": ["colour"],
    },
}
SURE: dict[str, Any] = {
    "mode": "form",
    "message": "Overwrite?",
    "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
}
YES: dict[str, Any] = {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
TYPED: dict[str, Any] = {
    "message": "Your password?",
    "requestedSchema": {"type": "object", "properties": {"password": {"type": "string"}}},
}
URL: dict[str, Any] = {"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "1"}
ERAS = pytest.mark.parametrize("how", ["", "modern"])
Chooser = Callable[[Question], Awaitable[Answer | Reply]]


class Person:
    """Chooses an option by its id, for each question the next; or answers as it is told."""

    def __init__(self, *answers: str | Reply) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Reply:
        self.questions.append(question)
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Reply) else chosen(answer, question.options)


def asked(
    tmp_path: Path,
    how: str,
    person: Chooser | None,
    questions: list[Any],
    *,
    settings: str = "",
    shows: bool = False,
    **args: Any,
) -> ExecutionResult:
    async def work(context: CallContext) -> ExecutionResult:
        around = context.having(elicits=True, forms=shows, addresses=shows)
        return await call(around, "question", questions=questions, **args)

    return run(make(tmp_path, how, settings=settings), work, ask=person)


def heard(result: ExecutionResult) -> list[Any]:
    assert result.status == "success", result
    return json.loads(result.output)["heard"]


@ERAS
def test_a_person_s_choice_reaches_the_server(tmp_path: Path, how: str) -> None:
    person = Person("choice-2", "choice-1", "accept")
    result = asked(tmp_path, how, person, [COLOUR, SURE, YES])
    assert heard(result) == [
        {"action": "accept", "content": {"colour": "blue"}},
        {"action": "accept", "content": {"sure": True}},
        {"action": "accept", "content": {}},
    ]
    assert json.loads(result.output)["able"]["elicitation"] == {"form": {}}
    first = person.questions[0]
    assert [option.label for option in first.options] == ["Answer: red", "Answer: blue", "Decline to answer"]
    assert question_text(first) == (
        "The MCP server 'test' asks (its words, not those of Tamis) while its tool mcp:question runs: “Which colour?” "
        "It asks for: Colour."
    )
    assert "question 1 of the MCP server 'test': accept (a person chose)" in result.logs


@ERAS
def test_what_is_no_choice_is_never_accepted(tmp_path: Path, how: str) -> None:
    """An allow without an option is what a host says that takes every question for an approval."""
    answers: list[str | Reply] = [
        "decline",
        Reply(answer="cancelled"),
        Reply(answer="allow"),
        "allow",
        Reply(answer="timeout"),
    ]
    result = asked(tmp_path, how, Person(*answers), [YES] * 5)
    assert [answer["action"] for answer in heard(result)] == ["decline", "cancel", "cancel", "cancel", "cancel"]


@ERAS
@pytest.mark.parametrize(("question", "why"), [(TYPED, "to be typed"), (URL, "no address is opened")])
def test_a_form_that_is_no_choice_is_declined_and_the_log_says_why(
    tmp_path: Path, how: str, question: dict[str, Any], why: str
) -> None:
    person = Person()
    result = asked(tmp_path, how, person, [question])
    assert heard(result) == [{"action": "decline"}]
    assert person.questions == []
    assert any("decline" in line and why in line for line in result.logs)


FORM: dict[str, Any] = {
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "title": "City", "minLength": 2, "default": "Berlin"},
            "people": {"type": "integer", "minimum": 1, "maximum": 9},
            "mail": {"type": "string", "format": "email"},
            "window": {"type": "boolean", "default": False},
            "class": {"type": "string", "oneOf": [{"const": "1", "title": "First"}, {"const": "2", "title": "Second"}]},
            "meals": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "maxItems": 2},
        },
        "required": ["city", "people"],
    },
}


def typed(**content: Any) -> Reply:
    return Reply(answer="allow", option_id="accept", content=content)


@ERAS
def test_a_form_is_shown_typed_and_its_answer_reaches_the_server(tmp_path: Path, how: str) -> None:
    """mcp 1: text, number, boolean, one choice and several, with formats and defaults."""
    person = Person(typed(city="Köln", people=2.0, mail="a@b.example", meals=["a", "c"], window=True, other=1))
    result = asked(tmp_path, how, person, [FORM], shows=True)
    content = {"city": "Köln", "people": 2, "mail": "a@b.example", "window": True, "meals": ["a", "c"]}
    assert heard(result) == [{"action": "accept", "content": content}]
    assert json.loads(result.output)["able"]["elicitation"] == {"form": {}, "url": {}}
    (question,) = person.questions
    assert [option.option_id for option in question.options] == ["accept", "decline"]
    asked_form = msgspec.to_builtins(question.elicitation)["form"]
    assert asked_form[0] == {
        "name": "city", "title": "City", "type": "string", "required": True, "minLength": 2, "default": "Berlin"
    }  # fmt: skip
    assert asked_form[4]["options"] == [{"value": "1", "title": "First"}, {"value": "2", "title": "Second"}]
    assert "Köln" not in str(result.logs)


def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong(tmp_path: Path) -> None:
    person = Person(typed(city="K", people=0, window=True), typed(city="Köln", people=1))
    result = asked(tmp_path, "", person, [FORM], shows=True)
    assert heard(result) == [{"action": "accept", "content": {"city": "Köln", "people": 1}}]
    again = person.questions[1].elicitation
    assert again is not None
    assert [field.error for field in again.form][:3] == ["it has at least 2 characters", "it is at least 1", UNSET]
    assert again.form[0].default == "K" and again.form[3].default is True


def test_an_answer_that_never_fits_is_no_answer(tmp_path: Path) -> None:
    person = Person(*[typed(city="Köln")] * 9)
    result = asked(tmp_path, "", person, [FORM], shows=True)
    assert heard(result) == [{"action": "cancel"}]
    assert len(person.questions) == 3
    assert any("people: an answer is needed" in line for line in result.logs)


@pytest.mark.parametrize("answer", ["accept", "decline", Reply(answer="allow", content={"city": "x", "people": 1})])
def test_a_form_is_never_accepted_without_its_answers(tmp_path: Path, answer: str | Reply) -> None:
    """A host that takes every question for an approval allows nothing by it."""
    (action,) = heard(asked(tmp_path, "", Person(answer), [FORM], shows=True))
    assert action == {"action": "decline" if answer == "decline" else "cancel"}


OFFERED = (ApprovalOption(option_id="accept", label="Send", kind="allow_once"),)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"outcome": "selected", "optionId": "accept"}, "the host's answer 'accept' has no 'content': an object with"),
        (
            {"outcome": "selected", "optionId": "accept", "content": "Köln"},
            "has a 'content' that is no object: an object with the form's fields, 'city', 'people'",
        ),
        ({"action": "accept", "content": {"city": "Köln"}}, "the host's answer was none of the options"),
        ("yes", "outcome 'selected' with optionId 'accept'"),
    ],
    ids=["no content", "a text", "the shape of MCP", "no object"],
)
def test_an_answer_of_another_shape_is_told_to_the_host(tmp_path: Path, raw: object, said: str) -> None:
    """The finding of a fresh user: such an answer was `no answer was chosen`, and nobody learnt why."""
    result = asked(tmp_path, "", Person(read_reply(raw, OFFERED)), [FORM], shows=True)
    assert heard(result) == [{"action": "cancel"}]
    assert any(said in line for line in result.logs), result.logs
    assert "Köln" not in str(result.logs)


SECRETS = (
    {"password": {"type": "string"}},
    {"userPassword1": {"type": "string"}},
    {"newpassword": {"type": "string"}},
    {"x": {"type": "string", "title": "API key of the service"}},
    {"x": {"type": "string", "description": "your one-time code"}},
    {"github_token": {"type": "string"}},
    {"pin": {"type": "string"}},
    {"x": {"type": "integer", "title": "CVV"}},
    {"x": {"type": "string", "format": "password"}},
    {"x": {"type": "string", "title": "密码"}},
    {"a": {"type": "boolean"}, "passphrase": {"type": "string"}},
)


@pytest.mark.parametrize("fields", SECRETS, ids=lambda fields: next(reversed(fields)))
def test_no_form_asks_for_a_secret(fields: dict[str, Any]) -> None:
    """mcp, elicitation: sensitive things are not asked for by a form."""
    told = form_of({"message": "m", "requestedSchema": {"properties": fields}})
    assert isinstance(told, str) and "looks like a secret" in told


@pytest.mark.parametrize("field", [{"maxTokens": {"type": "integer"}}, {"key": {"type": "string"}}, {"pinned": {"type": "string"}}, {"password_policy": {"type": "string", "enum": ["a", "b"]}}])  # fmt: skip
def test_what_only_sounds_like_a_secret_is_asked(field: dict[str, Any]) -> None:
    assert isinstance(form_of({"message": "How?", "requestedSchema": {"properties": field}}), Form)


def test_a_secret_of_the_message_counts_too() -> None:
    question = {"message": "Enter your password:", "requestedSchema": {"properties": {"x": {"type": "string"}}}}
    assert "looks like a secret" in str(form_of(question))


@ERAS
def test_an_address_is_shown_with_its_host_and_opened_by_nobody_else(tmp_path: Path, how: str) -> None:
    """mcp 1, mode url: the answer is a person's consent, without content."""
    person = Person("accept", "decline")
    result = asked(tmp_path, how, person, [URL, URL], shows=True)
    assert heard(result) == [{"action": "accept"}, {"action": "decline"}]
    question = person.questions[0]
    assert msgspec.to_builtins(question.elicitation)["url"] == {"url": "https://example.com", "host": "example.com"}
    assert question_text(question).endswith("open an address of the host example.com: https://example.com")


@pytest.mark.parametrize("url", ["", 7, "ftp://a/", "file:///etc/passwd", "javascript:alert(1)", "https://", "https://a@b.example/", "https://gооgle.example/", "https://a.example/\n", "https://a.example\\@b/", "https://a/" + "x" * 2_000, "https://[x/", "https://a:b/"])  # fmt: skip
def test_an_address_that_is_not_plain_is_declined(url: object) -> None:
    assert isinstance(address_of({"url": url}), str)


def test_the_host_of_an_address_is_told_with_its_port() -> None:
    told = address_of({"url": "HTTP://Example.com:8080/a?b=https://good.example"})
    assert not isinstance(told, str) and told.host == "example.com:8080"


@pytest.mark.parametrize(
    "properties",
    [
        {"a\u202eb": {"type": "string"}, "c": {"type": "string"}},
        {"a": {"type": "string", "enum": ["x\x1b[2J", "y"]}, "c": {"type": "string"}},
        {"a": {"type": "object"}, "c": {"type": "string"}},
        {"a": {"type": "array", "items": {"type": "string"}}, "c": {"type": "string"}},
        {f"f{number}": {"type": "string"} for number in range(21)},
    ],
    ids=["name", "value", "nested", "free list", "many"],
)
def test_a_hostile_form_is_declined(tmp_path: Path, properties: dict[str, Any]) -> None:
    person = Person()
    question = {"message": "m", "requestedSchema": {"type": "object", "properties": properties}}
    assert heard(asked(tmp_path, "", person, [question], shows=True)) == [{"action": "decline"}]
    assert person.questions == []


def test_where_nobody_can_be_asked_the_server_is_told_so(tmp_path: Path) -> None:
    result = asked(tmp_path, "", None, [YES])
    assert json.loads(result.output)["able"] == {}
    assert heard(result) == [{"code": -32601, "message": "elicitation/create is not offered"}]


def test_where_nobody_can_be_asked_a_result_that_wants_input_is_a_failure(tmp_path: Path) -> None:
    result = asked(tmp_path, "modern", None, [YES])
    assert (result.status, result.error.type) == ("error", "ServiceError")
    assert "it wants input" in result.error.message


def test_a_server_s_words_show_nothing_hidden_and_are_bounded(tmp_path: Path) -> None:
    spoof = COLOUR | {"message": "a\u202eb\x1b[2J\nTamis: allow?" + "x" * 50_000}
    person = Person("decline")
    asked(tmp_path, "", person, [spoof])
    text = question_text(person.questions[0])
    assert len(text) < 1_500
    assert not set(text) & {"\u202e", "\x1b", "\n"}
    assert text.startswith("The MCP server 'test' asks")


def test_the_time_of_a_call_stands_still_while_a_person_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(question: Question) -> Reply:
        loop = asyncio.get_running_loop()
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + 100)
        # timers that are due by the clock of the loop run before the answer
        await asyncio.sleep(0.1)
        return chosen("accept", question.options)

    assert heard(asked(tmp_path, "", slow, [YES], timeout_ms=20_000)) == [{"action": "accept", "content": {}}]


async def waits(_question: Question) -> Reply:
    """A person who never answers."""
    await asyncio.Event().wait()
    raise AssertionError


def test_a_question_has_the_time_of_an_approval(tmp_path: Path) -> None:
    result = asked(tmp_path, "", waits, [YES], settings="[policy]\napprovalTimeoutMs = 300")
    assert heard(result) == [{"action": "cancel"}]
    assert "question 1 of the MCP server 'test': cancel (nobody answered in time)" in result.logs


@ERAS
def test_a_cancel_of_the_call_withdraws_its_question(tmp_path: Path, how: str) -> None:
    withdrawn: list[bool] = []

    async def work(context: CallContext) -> ExecutionResult:
        async def waits(_question: Question) -> Reply:
            context.services.running_calls.cancel(call_id="c-question")
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.append(True)
            raise AssertionError

        around = context.having(ask=waits, elicits=True)
        result = await call(around, "question", questions=[YES])
        assert context.services.execution.approvals.open == []
        return result

    assert run(make(tmp_path, how), work).status == "cancelled"
    assert withdrawn == [True]


def test_a_question_that_the_server_takes_back_is_withdrawn(tmp_path: Path) -> None:
    ended: list[bool] = []

    async def waits(_question: Question) -> Reply:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        raise AssertionError

    assert asked(tmp_path, "", waits, [YES], raw="takes back").output == "taken back"
    assert ended == [True]


@ERAS
def test_a_server_that_asks_for_ever_ends_its_call(tmp_path: Path, how: str) -> None:
    person = Person(*["accept"] * 20)
    result = asked(tmp_path, how, person, [YES] * 20)
    assert (result.status, result.error.type) == ("error", "OutputFormatError")
    assert len(person.questions) == 8


@pytest.mark.parametrize("raw", ["deep", "big", "flood"])
def test_a_hostile_question_ends_its_call_at_once(tmp_path: Path, raw: str) -> None:
    # a call that waited for the person or for the server would end by its time, as a "timeout"
    result = asked(tmp_path, "", waits, [YES], raw=raw, settings="[sandbox]\nstdoutBytes = 1000000")
    assert result.status == "error"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, "does not say which"),
        ({"inputRequests": []}, "are no object"),
        ({"requestState": 1}, "is no text"),
        ({"requestState": "again"}, "for the 9th time"),
        ({"inputRequests": {"a": {"method": "sampling/createMessage", "params": {}}}}, "which is not offered"),
        ({"inputRequests": {"a": {"method": "elicitation/create", "params": {}}}}, "message is no text"),
        ({"inputRequests": {str(number): {} for number in range(9)}}, "more than 8 questions"),
    ],
)
def test_a_result_that_wants_nonsense_ends_its_call(tmp_path: Path, wanted: dict[str, Any], words: str) -> None:
    result = asked(tmp_path, "modern", Person(), [], result={"resultType": "input_required", **wanted})
    assert (result.status, result.error.type) == ("error", "OutputFormatError")
    assert words in result.error.message


class Queue:
    """A connection whose other end is the test."""

    def __init__(self) -> None:
        self.lines = asyncio.Queue[bytes | None]()
        self.written: list[dict[str, Any]] = []

    async def read(self) -> bytes | None:
        return await self.lines.get()

    async def write(self, line: bytes) -> None:
        self.written.append(json.loads(line))

    def say(self, **message: Any) -> None:
        self.lines.put_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def reply(self, message_id: str) -> dict[str, Any]:
        """Waits for the session's reply to a request of this end."""
        return await arrives(lambda: next((one for one in self.written if one.get("id") == message_id), None))


def test_a_question_is_for_one_call_alone() -> None:
    """While two calls run nobody knows whose it is; while none runs it is no question."""

    async def work() -> None:
        ends = Queue()
        session = McpSession(ends, lambda _text: None)
        starting = asyncio.ensure_future(session.start(elicits=("form",)))
        ends.say(id=1, error={"code": -32601, "message": "?"})
        await arrives(lambda: len(ends.written) == 2)
        ends.say(id=2, result={"protocolVersion": "2025-06-18"})
        await starting

        class Accepts:
            modes = ("form",)

            async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
                return {"action": "accept", "content": {}}

        calls = [asyncio.ensure_future(session.call("a", {}, {}, None, Accepts())) for _ in range(2)]
        await asyncio.sleep(0)
        ends.say(id="q-1", method="elicitation/create", params=YES)
        assert (await ends.reply("q-1"))["result"] == {"action": "decline"}
        ends.say(id=3, result={})
        await calls[0]
        ends.say(id="q-2", method="elicitation/create", params=YES)
        assert (await ends.reply("q-2"))["result"] == {"action": "accept", "content": {}}
        ends.say(id=4, result={})
        await calls[1]
        ends.say(id="q-3", method="elicitation/create", params=YES)
        assert (await ends.reply("q-3"))["error"]["code"] == -32600
        await session.close()

    asyncio.run(work())


def test_an_answer_after_its_cancel_is_nobody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """mcp 3: a server that answers a request that was given up costs the one that waits nothing."""
    monkeypatch.setattr("tamis.server.runtime.handlers.mcp.session.STRANGE_S", 0)

    async def work() -> None:
        ends = Queue()
        session = McpSession(ends, lambda _text: None)
        starting = asyncio.ensure_future(session.start())
        ends.say(id=1, error={"code": -32601, "message": "?"})
        await arrives(lambda: len(ends.written) == 2)
        ends.say(id=2, result={"protocolVersion": "2025-06-18"})
        await starting
        waits, given_up = [asyncio.ensure_future(session.call("a", {}, {}, None)) for _ in range(2)]
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait({given_up})
        ends.say(id=4, result={"content": []})
        ends.say(id=4, error={"code": -32800, "message": "cancelled"})
        await asyncio.sleep(0.05)
        assert [told["params"]["requestId"] for told in ends.written if "cancelled" in told.get("method", "")] == [4]
        assert not waits.done()
        ends.say(id=3, result={"content": [], "of": "the first"})
        assert (await waits)["of"] == "the first"
        await session.close()

    asyncio.run(work())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "enum", "oneOf", "const", "title", "a"]), inner, max_size=3),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["mode", "message", "requestedSchema"]), JSON), JSON)
def test_any_schema_is_a_choice_of_its_own_values_or_declined(params: dict[str, Any], field: Any) -> None:
    for one in (params, {"message": "m", "requestedSchema": {"properties": {"a": field}}}):
        try:
            found = choices_of(one)
            shown = question_of(one, forms=True, addresses=True)
        except QuestionError:
            continue
        if isinstance(shown, Form):
            msgspec.json.decode(msgspec.json.encode(shown.fields), type=list[ApprovalField])
        if isinstance(found, str):
            continue
        assert found.options[-1].option_id == "decline"
        assert set(found.contents) == {option.option_id for option in found.options[:-1]}
        assert all(isinstance(value, str | bool) for content in found.contents.values() for value in content.values())


ANSWERS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.text(max_size=2), max_size=4)
)


@given(st.dictionaries(st.sampled_from([*FORM["requestedSchema"]["properties"], "other"]), ANSWERS))
def test_whatever_is_answered_fits_the_form_or_is_told(content: dict[str, Any]) -> None:
    """What a server is sent is valid under the schema that it asked with."""
    form = form_of(FORM)
    assert isinstance(form, Form)
    values, errors = fitting(form.fields, content)
    if not errors:
        jsonschema.validate(values, FORM["requestedSchema"])
        msgspec.json.encode(values)


ANSWERS_OF_CLIENTS = json.loads(
    (Path(__file__).resolve().parents[2] / "editors" / "vscode" / "test" / "answers.json").read_text("utf-8")
)
"""What the editors' clients say of answers (``test/pure.test.ts``, ``test_neovim_questions.py``)."""


@pytest.mark.parametrize("case", ANSWERS_OF_CLIENTS, ids=lambda case: str(case["typed"])[:20])
def test_what_clients_say_of_an_answer_is_what_is_said_here(case: dict[str, Any]) -> None:  # issue 17
    field = msgspec.convert(case["field"], ApprovalField)
    values, errors = fitting([field], {"a": case["value"]})
    assert errors.get("a", "") == case["wrong"]
    if not case["wrong"]:
        assert values.get("a") == case["value"]
