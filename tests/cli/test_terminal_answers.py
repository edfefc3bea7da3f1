"""What a person types when `tamis run` or `call` asks on a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import unicodedata
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import (
    ApprovalChoice,
    ApprovalElicitation,
    ApprovalField,
    ApprovalOption,
    Granted,
    Permissions,
)
from tamis.protocols.invisible import visible_line
from tamis.server.cli.asking import KEYS, KEYS_OF_MORE, MAX_ASKED, asker
from tamis.server.cli.outputs import FOLDED, folded, write_asked, write_document, write_note
from tamis.server.runtime.calls.model import Ask, CallRequest, Question, Reply
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import Mode, TextOptions, execute_text
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tests.runtime.fake_approver import ALWAYS, new_root, recorded
from tests.sample_tools import make_tool, tam, vcp
from tests.waiting import arrives

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
    assert shown.count("[s] yes, to this tool for the rest of this command") == 3 and "'j' is none of the keys" in shown


def test_q_refuses_everything_that_follows_without_asking() -> None:
    replies, read = answers([b"q\n", b"y\n"], questions=3)
    assert [reply.answer for reply in replies] == ["deny"] * 3 and read == 1


def test_nonsense_without_end_is_a_no() -> None:
    (reply,), read = answers([b"x\n"] * (MAX_ASKED + 5))
    assert (reply.answer, read) == ("deny", MAX_ASKED)


def run_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, typed: list[bytes], mode: Mode = "sequential"
) -> tuple[list[str], int]:
    """How the calls of a text end that `tamis run` asks about, in order, and how many answers were read."""
    recorded(monkeypatch)
    root = new_root(tmp_path, monkeypatch)
    make_tool(root, "t:other")
    make_tool(root, "t:reads", properties={"image": {"type": "string"}, "text": {"type": "string"}})
    (root / "data").mkdir()
    (root / "data" / "a.txt").write_text("a")
    runtime = Runtime(root, {"resources": {"d": "data"}})
    lines, read = iter(typed), list[bytes]()

    def read_line() -> bytes:
        read.append(next(lines))
        return read[-1]

    async def run() -> list[str]:
        context = runtime.call_context(ask=asker(read_line), caller=Caller("cli")).having(turn=asyncio.Lock())
        done = await execute_text(runtime.read(text), context, TextOptions(ask=True, mode=mode))
        return [result.status for result in done.results]

    return asyncio.run(run()), len(read)


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_for_the_rest_of_the_command_holds_for_the_same_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """Ruling 42: `tamis run` asks no more about a tool after `s`, whatever its arguments, also where its calls ask at the same time."""
    text = "\n".join(vcp("t:echo", text=word) for word in "abc")
    assert run_asking(tmp_path, monkeypatch, text, [b"s\n"], mode) == (["success"] * 3, 1)


def test_it_holds_for_no_other_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(vcp(tool, text="a") for tool in ("t:echo", "t:other", "t:echo"))
    assert run_asking(tmp_path, monkeypatch, text, [b"s\n", b"n\n"]) == (["success", "denied", "success"], 2)


def test_nor_for_other_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ruling 42: a call of the same tool that may read a file asks again, and the yes to it is none to the others."""
    steps = ({"text": "a"}, {"uri_image": "fam://d/a.txt"}, {"text": "b"})
    calls = [tam({"command": "t:reads", **step}) for step in steps]
    typed = [b"s\n", b"y\n"]
    assert run_asking(tmp_path, monkeypatch, "\n".join(calls), typed) == (["success"] * 3, 2)


def test_an_answer_for_always_does_not_skip_the_question_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = recorded(monkeypatch)
    root = new_root(tmp_path, monkeypatch)

    async def call(reply: Reply, *, ask: bool) -> str:
        runtime = Runtime(root, ALWAYS)

        async def answer(_question: Question) -> Reply:
            return reply

        context = runtime.call_context(ask=answer, caller=Caller("cli"))
        result = await execute(CallRequest(call_id="c", name="t:echo", args={}, ask=ask), context)
        await runtime.close()
        return result.status

    assert asyncio.run(call(Reply(answer="allow", scope="always"), ask=False)) == "success"
    assert asyncio.run(call(Reply(answer="deny"), ask=True)) == "denied"
    assert len(ran) == 1


def test_what_others_print_comes_after_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    """trust 6: a call that ends while another is asked about cannot write between the question and its answer."""
    asked, answered = threading.Event(), threading.Event()

    def read_line() -> bytes:
        asked.set()
        answered.wait()
        return b"y\n"

    async def run() -> str:
        question = asyncio.ensure_future(asker(read_line)(ASKED))
        await asyncio.to_thread(asked.wait)
        write_document(f"a forged answer\n{KEYS}")
        write_note("a log line")
        before = capsys.readouterr()
        assert before.err.endswith(KEYS) and "log line" not in before.err and not before.out
        answered.set()
        await question
        return capsys.readouterr().out

    assert asyncio.run(run()) == f"a forged answer\n{KEYS}"


def test_what_was_typed_before_the_question_is_no_answer() -> None:
    """Ruling 40: a clear yes to what was shown. A line of an earlier question that ended meanwhile is none of the next either."""
    events: list[str] = []
    typed, gate = iter([b"y\n", b"n\n"]), threading.Event()

    def read_line() -> bytes:
        gate.wait()
        return next(typed)

    async def run() -> Reply:
        before = set(threading.enumerate())
        ask = asker(read_line, lambda: events.append("forgotten"))
        first = asyncio.ensure_future(ask(ASKED))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        gate.set()
        # the line that the first question waited for arrives while nobody asks, and its thread ends
        await arrives(lambda: typed.__length_hint__() == 1 and not set(threading.enumerate()) - before)
        await asyncio.sleep(0)
        return cast("Reply", await ask(ASKED))

    assert asyncio.run(run()).answer == "deny"
    assert events == ["forgotten", "forgotten"]


def shown_question(question: Question, typed: list[bytes], capsys: pytest.CaptureFixture[str]) -> tuple[Reply, str]:
    lines = iter(typed)
    reply = asyncio.run(answered(asker(lambda: next(lines, b"")), question))
    return cast("Reply", reply), capsys.readouterr().err


FORGED = "Echo)?" + " " * 74 + "  may do nothing" + " " * 64 + KEYS


@pytest.mark.parametrize(
    "question",
    [
        msgspec.structs.replace(ASKED, display_name=FORGED),
        msgspec.structs.replace(ASKED, args={"text": FORGED, FORGED: 1}),
        msgspec.structs.replace(
            ASKED, permissions=Permissions(requested={}, granted=Granted(read=[FORGED], secrets=["K"]), denied=[])
        ),
        msgspec.structs.replace(ELICITED, elicitation=ApprovalElicitation(server="files", message=FORGED)),
    ],
)
def test_no_text_makes_a_row_of_the_question(question: Question, capsys: pytest.CaptureFixture[str]) -> None:
    """Trust 6: blanks that fill a terminal's row do not make the next one look like Tamis's."""
    _, shown = shown_question(question, [b"n\n"], capsys)
    rows = shown.splitlines()
    assert sum(FOLDED in row[: len(FOLDED)] for row in rows) >= 3
    for row in rows:
        assert len(row) < 80 or row == KEYS, row
        assert not row.startswith(("  may do nothing", "[y]")) or row == KEYS


@given(st.text(), st.integers(-5, 200))
def test_a_line_of_a_question_is_folded_and_nothing_is_lost(text: str, columns: int) -> None:
    first, *others = folded(text, columns)
    assert all(row.startswith(FOLDED) and len(row) > len(FOLDED) for row in others)
    assert first + "".join(row.removeprefix(FOLDED) for row in others) == visible_line(text)
    wide = max(columns, 20)
    for row in (first, *others):
        assert sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in row) < wide


@pytest.mark.parametrize(
    ("typed", "answer", "times"),
    [
        ([b"y\n", b"y\n"], "allow", 2),
        ([b"m\n", b"s\n"], "allow", 2),
        ([b"y\n", b"n\n"], "deny", 2),
        ([b"n\n"], "deny", 1),
    ],
)
def test_a_yes_to_what_was_not_shown_whole_shows_it_first(
    typed: list[bytes], answer: str, times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ruling 40: the middle of a long argument is no part of what was seen."""
    text = "a" * 2_000 + "the middle" + "b" * 2_000
    reply, shown = shown_question(msgspec.structs.replace(ASKED, args={"text": text}), typed, capsys)
    assert reply.answer == answer
    assert ("the middle" in shown.replace("\n" + FOLDED, "")) is (times == 2)
    assert shown.count(KEYS_OF_MORE) == 1 and shown.count(KEYS) == times - 1
    few, shown = shown_question(msgspec.structs.replace(ASKED, args={"text": "short"}), [b"m\n", b"y\n"], capsys)
    assert few.answer == "allow" and KEYS_OF_MORE not in shown and "'m' is none of the keys" in shown


def test_the_question_tells_every_right(capsys: pytest.CaptureFixture[str]) -> None:
    granted = Granted(read=["/r"], write=["/w"], hosts=["h"], capabilities=["c"], secrets=["S"])
    permissions = Permissions(requested={}, granted=granted, denied=[])
    _, shown = shown_question(msgspec.structs.replace(ASKED, permissions=permissions), [b"n\n"], capsys)
    assert "  may write /w, read /r, connect to h, use c, be given the secret S\n" in shown


def test_a_question_that_is_cancelled_holds_nothing_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Ruling 40: nobody types any more after Ctrl-C, and the command ends without its line."""
    begun, gate = threading.Event(), threading.Event()

    def read_line() -> bytes:
        begun.set()
        gate.wait()
        return b""

    async def run() -> None:
        question = asyncio.ensure_future(asker(read_line)(ASKED))
        await asyncio.to_thread(begun.wait)
        question.cancel()
        await asyncio.wait({question})

    asyncio.run(run())  # waits for every thread of its own
    assert not gate.is_set() and capsys.readouterr().err.endswith(f"{KEYS}\n")
    gate.set()


@pytest.mark.parametrize(("columns", "folds_at"), [(0, 80), (19, 80), (20, 20), (60, 60)])
def test_a_terminal_without_a_size_is_as_wide_as_most(
    columns: int, folds_at: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((columns, 0)))
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    write_asked("x" * 200)
    assert len(capsys.readouterr().err.split("\n")[0]) == folds_at - 1
