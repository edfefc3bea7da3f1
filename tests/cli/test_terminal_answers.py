"""What a person types when `tamis run` or `call` asks on a terminal."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from tamis.protocols.contract import (
    ApprovalChoice,
    ApprovalElicitation,
    ApprovalField,
    ApprovalOption,
    Granted,
    Permissions,
)
from tamis.server.cli.asking import MAX_ASKED, asker
from tamis.server.runtime.calls.model import Ask, Question, Reply

ASKED = Question(
    approval_id="a",
    call_id="c",
    tool_id="t:echo",
    version="1.0.0",
    display_name="Echo",
    args={},
    preview="",
    risk="low",
    permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    timeout_ms=1000,
    expires_at="",
    binding="",
    options=(),
)


ELICITED = msgspec.structs.replace(
    ASKED,
    elicitation=ApprovalElicitation(server="files", message="Overwrite?"),
    options=(
        ApprovalOption(option_id="choice-1", label="Answer: yes", kind="allow_once"),
        ApprovalOption(option_id="decline", label="Decline to answer", kind="reject_once"),
    ),
)


@pytest.mark.parametrize(
    ("typed", "answer", "option"),
    [
        ([b"1\n"], "allow", "choice-1"),
        ([b"2\n"], "deny", "decline"),
        ([b"y\n", b"0\n", b"3\n", b"1\n"], "allow", "choice-1"),
        ([b"\n"], "deny", ""),
        ([b"y\n"] * 100, "deny", ""),
    ],
)
def test_a_question_of_an_mcp_server_is_answered_by_number(
    typed: list[bytes], answer: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(typed)
    reply = cast("Reply", asyncio.run(answered(asker(lambda: next(lines, b"")))))
    assert (reply.answer, reply.option_id) == (answer, option)
    assert "The MCP server 'files' asks" in capsys.readouterr().err


async def answered(ask: Ask, question: Question = ELICITED) -> object:
    return await ask(question)


FORM = msgspec.structs.replace(
    ASKED,
    elicitation=ApprovalElicitation(
        server="files",
        message="Where to?",
        form=[
            ApprovalField(name="city", title="City", type="string", required=True, min_length=2),
            ApprovalField(name="people", title="People", type="integer", required=True, minimum=1),
            ApprovalField(name="window", title="Window", type="boolean", required=False, default=True),
            ApprovalField(
                name="meals",
                title="Meals",
                type="array",
                required=False,
                options=[ApprovalChoice(value=one, title=one.upper()) for one in "ab"],
            ),
            ApprovalField(name="note", title="Note", type="string", required=False),
        ],
    ),
    options=(
        ApprovalOption(option_id="accept", label="Answer with this form", kind="allow_once"),
        ApprovalOption(option_id="decline", label="Decline to answer", kind="reject_once"),
    ),
)


@pytest.mark.parametrize(
    ("typed", "content"),
    [
        (b"y Oslo 2  2,1  y", {"city": "Oslo", "people": 2, "window": True, "meals": ["b", "a"]}),
        (b"y O Oslo x 0 3 n 9 1 hi yes", {"city": "Oslo", "people": 3, "window": False, "meals": ["a"], "note": "hi"}),
        (b"y Oslo 2   x n", None),
        (b"", None),
        (b"y", None),
        (b"y Oslo 2", None),
        (b"y" + b" -" * 50, None),
    ],
)
def test_a_form_of_an_mcp_server_is_answered_field_by_field(
    typed: bytes, content: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """mcp 1: what was typed is shown whole before it is sent; a terminal's end declines."""
    lines = iter(typed.split(b" ") if typed else [])

    def read_line() -> bytes:
        line = next(lines, None)
        return b"" if line is None else line + b"\n"

    reply = cast("Reply", asyncio.run(answered(asker(read_line), FORM)))
    assert (reply.answer, reply.content) == (("deny", None) if content is None else ("allow", content))
    assert "The MCP server 'files' asks" in capsys.readouterr().err


def answers(typed: list[bytes], questions: int = 1) -> tuple[list[Reply], int]:
    """The replies to so many questions, and how many lines were read."""
    lines = iter(typed)
    read: list[bytes] = []

    def line() -> bytes:
        read.append(next(lines, b""))
        return read[-1]

    ask = asker(line)

    async def all_of_them() -> list[Reply]:
        return [cast("Reply", await ask(ASKED)) for _ in range(questions)]

    return asyncio.run(all_of_them()), len(read)


@pytest.mark.parametrize(
    ("typed", "answer", "scope"),
    [
        (b"y\n", "allow", "once"),
        (b" YES \n", "allow", "once"),
        (b"s\n", "allow", "session"),
        (b"n\n", "deny", "once"),
        (b"\n", "deny", "once"),
        (b"", "deny", "once"),
    ],
)
def test_each_key_has_its_meaning(typed: bytes, answer: str, scope: str) -> None:
    (reply,), _ = answers([typed])
    assert (reply.answer, reply.scope) == (answer, scope)


def test_an_unknown_key_asks_again_with_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    (reply,), read = answers([b"j\n", b"\xff\n", b"y\n"])
    assert (reply.answer, read) == ("allow", 3)
    shown = capsys.readouterr().err
    assert shown.count("[s] yes, for the rest of this command") == 3 and "'j' is none of the keys" in shown


def test_q_refuses_everything_that_follows_without_asking() -> None:
    replies, read = answers([b"q\n", b"y\n"], questions=3)
    assert [reply.answer for reply in replies] == ["deny"] * 3 and read == 1


def test_nonsense_without_end_is_a_no() -> None:
    (reply,), read = answers([b"x\n"] * (MAX_ASKED + 5))
    assert (reply.answer, read) == ("deny", MAX_ASKED)


def test_for_the_rest_of_the_command_holds_for_the_same_tool(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.server.runtime.calls.model import CallRequest
    from tamis.server.runtime.execution.pipeline import execute
    from tamis.server.runtime.observe.trail import Caller
    from tamis.server.runtime.runtime import Runtime
    from tests.runtime.fake_approver import ALWAYS, new_root, recorded

    ran = recorded(monkeypatch)
    runtime = Runtime(new_root(tmp_path, monkeypatch), ALWAYS)
    typed = iter([b"s\n"])
    ask = asker(lambda: next(typed))

    async def both() -> list[str]:
        context = runtime.call_context(ask=ask, caller=Caller("cli"))
        done = [await execute(CallRequest(call_id=f"c{n}", name="t:echo", args={"count": n}), context) for n in (1, 2)]
        return [result.status for result in done]

    assert asyncio.run(both()) == ["success", "success"]
    assert len(ran) == 2
