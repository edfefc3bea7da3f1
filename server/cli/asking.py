"""What a command asks a person on the terminal before it runs anything: for trust, for grants. Holds no rules."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from tamis.protocols.contract import ApprovalField, ExecutionResult
from tamis.server.cli.outputs import Paint, asking, warn, write_asked, write_note, write_question
from tamis.server.runtime.calls.model import Answer, Ask, OnProgress, Question, Reply

if TYPE_CHECKING:
    import asyncio

    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.registry import Tool


def ask_for_trust(root: Path, *, stdin_is_text: bool = False) -> None:
    """On a terminal asks once whether a folder that wants more than it may set by itself is trusted; the answer is recorded."""
    if stdin_is_text or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    from tamis.server.runtime.settings.loading import load_settings

    if load_settings(root).not_in_force:
        from tamis.server.cli.trust_command import offer

        offer(root)


def ask_for_grants(runtime: Runtime, called: Iterable[Tool | None], *, may_ask: bool) -> None:
    """On a terminal asks once whether the tools of a folder that is not trusted get what the operator's configuration grants.

    ``called``: the tools that the command would call first. What a workflow calls is any tool of the folder. Without a terminal, what a call
    gets is told when it gets it.
    """
    runtime.gate.tell_by(warn)
    if not may_ask or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    from tamis.server.runtime.policy.permissions import grant_of
    from tamis.server.runtime.policy.strangers import told

    tools = [tool for tool in called if tool is not None]
    if any(tool.origin == "workflow" for tool in tools):
        tools = runtime.registry.tools
    stands = [_with_its_rights(tool, runtime) for tool in tools]
    grants = tuple(
        dict.fromkeys(
            gain
            for tool in stands
            for gain in runtime.gate.asked_of(tool, grant_of(tool, runtime.registry, runtime.settings, runtime.root))
        )
    )
    if not grants:
        return
    write_note(told(runtime.loaded, grants))
    write_question("Run with these? [y] yes  [n] no, run without them (default): ")
    answer = sys.stdin.readline().strip().lower()
    runtime.gate.allowed = frozenset(grants) if answer in ("y", "yes") else frozenset()


def _with_its_rights(tool: Tool, runtime: Runtime) -> Tool:
    """The tool, or the server whose rights it has."""
    from tamis.protocols.manifest.reading import McpTool

    handler = tool.manifest.handler
    return (runtime.parts.mcp.stand_in(handler.server) or tool) if isinstance(handler, McpTool) else tool


# Asking on the terminal before a call runs, and turning results into exit codes. Shared by ``run`` and ``call``.


REFUSED = frozenset({"denied", "approvalTimeout", "approvalUnavailable", "blocked", "inputRequired"})


def exit_code(results: Iterable[ExecutionResult], *, unread: bool = False) -> int:
    """0 all succeeded, 1 a call failed, 3 refused, unanswered or no sandbox; the largest wins."""
    code = 1 if unread else 0
    for result in results:
        if result.status in REFUSED or (result.error and result.error.type == "SandboxUnavailable"):
            code = max(code, 3)
        elif result.status not in ("success", "accepted"):
            code = max(code, 1)
    return code


def tell_beside(result: ExecutionResult, told: set[str]) -> None:
    """Says what neither an output nor an observation tells a person of a call: what the run left behind, what it asked for and was not
    granted. Each once in a command: ``told`` keeps what was said."""
    from tamis.server.runtime.calls.outputs import is_own_line

    lines = [line for line in result.logs if is_own_line(line)]
    lines += [
        f"tamis: not granted: {denied.kind} {denied.value}: {denied.reason}" for denied in result.permissions.denied
    ]
    for line in lines:
        if line not in told:
            told.add(line)
            write_note(line)


SHOWN_CHARS = 1_000
"""So much of an argument is shown at first."""
KEYS_OF_MORE = "[m] show all of the arguments  [n] no (default)  [q] no, and no to all that follows: "
KEYS = "[y] yes, once  [s] yes, to this tool for the rest of this command  [n] no (default)  [q] no, and no to all that follows: "
_MEANINGS: dict[str, Literal["once", "session", "no", "quit"]] = {
    **dict.fromkeys(("y", "yes"), "once"),
    **dict.fromkeys(("s", "session"), "session"),
    **dict.fromkeys(("", "n", "no"), "no"),
    **dict.fromkeys(("q", "quit"), "quit"),
}
MAX_ASKED = 20
"""How often an answer that is none is asked for again; a terminal that only gives nonsense must not hold a command for ever."""


def terminal_ask() -> Ask | None:
    """Asks on the controlling terminal; None when there is none."""
    try:
        terminal = open("/dev/tty", "r+b", buffering=0)  # noqa: SIM115 (kept for every question of the command)
    except OSError:
        return None
    if not sys.stderr.isatty():
        terminal.close()
        return None

    def forget() -> None:
        import termios

        with suppress(termios.error):
            termios.tcflush(terminal, termios.TCIFLUSH)

    return asker(terminal.readline, forget)


class _Typed:
    """The lines that a person types, for one question after the other."""

    def __init__(self, read_line: Callable[[], bytes], forget: Callable[[], object]) -> None:
        import asyncio

        self._read_line = read_line
        self._forget = forget
        self._coming: asyncio.Future[bytes] | None = None
        self.turn = asyncio.Lock()

    def begin(self) -> None:
        """A question is about to be shown: what was typed before it is no answer to it."""
        self._forget()
        if self._coming is not None and self._coming.done():
            self._coming = None

    @contextmanager
    def ended(self) -> Generator[None]:
        """A question that is withdrawn ends its line on the terminal."""
        import asyncio

        try:
            yield
        except asyncio.CancelledError:
            write_note()
            raise

    async def line(self) -> bytes:
        """The next line. The one that a question was still waiting for when it was withdrawn is the next question's."""
        import asyncio

        if self._coming is None:
            self._coming = self._begin_line()
        line = await asyncio.shield(self._coming)
        self._coming = None
        if not line:
            write_note()  # the terminal's end leaves the cursor behind the question
        return line

    def _begin_line(self) -> asyncio.Future[bytes]:
        """Waits for a line on a thread of its own, which does not keep the command alive when nobody types any more."""
        import asyncio
        from threading import Thread

        loop = asyncio.get_running_loop()
        coming: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            try:
                line = self._read_line()
            except OSError:
                line = b""  # the terminal is gone
            with suppress(RuntimeError):  # the command ended meanwhile
                loop.call_soon_threadsafe(lambda: coming.done() or coming.set_result(line))

        Thread(target=read, name="tamis-answer", daemon=True).start()
        return coming


def asker(read_line: Callable[[], bytes], forget: Callable[[], object] = lambda: None) -> Ask:
    """Asks on standard error, one question after the other.

    ``read_line`` waits for the answer and gives nothing at the terminal's end, which is a no; ``forget`` drops what was typed already.
    """
    paint = Paint(sys.stderr)
    typed = _Typed(read_line, forget)
    over = False

    async def ask(question: Question) -> Reply:
        nonlocal over
        async with typed.turn:
            if over:
                return Reply(answer="deny")
            typed.begin()
            with asking(), typed.ended():
                if question.elicitation is None:
                    reply, over = await _allow(question, typed, paint)
                    return reply
                form = question.elicitation.form
                return await (_choose(question, typed) if form is UNSET else _fill(question, form, typed))

    return ask


async def _allow(question: Question, typed: _Typed, paint: Paint) -> tuple[Reply, bool]:
    """Whether a call may run; and whether the person refused all that follow. One says yes to what was shown, whole."""
    granted = question.permissions.granted
    rights = [
        *(f"write {path}" for path in granted.write),
        *(f"read {path}" for path in granted.read),
        *(f"connect to {host}" for host in granted.hosts),
        *(f"use {capability}" for capability in granted.capabilities),
        *(f"be given the secret {name}" for name in granted.secrets or ()),
    ]
    write_note()
    write_note("Run ", paint("1", question.tool_id), "?")
    if question.display_name != question.tool_id:
        write_asked(f"  called {question.display_name}")
    whole = _show_args(question.args, SHOWN_CHARS)
    if rights:
        write_asked(f"  may {', '.join(rights)}")
    for _ in range(MAX_ASKED):
        write_question(KEYS if whole else KEYS_OF_MORE)
        answer = (await typed.line()).decode("utf-8", "replace").strip().lower()
        meaning = _MEANINGS.get(answer)
        if not whole and (answer in ("m", "more") or meaning in ("once", "session")):
            # also for a yes: it would be one to what nobody saw
            _show_args(question.args, None)
            whole = True
        elif meaning == "once" or meaning == "session":
            return Reply(answer="allow", scope=meaning), False
        elif meaning is not None:
            return Reply(answer="deny"), meaning == "quit"
        else:
            write_note(f"'{answer[:40]}' is none of the keys.")
    return Reply(answer="deny"), False


def _show_args(args: dict[str, Any], most: int | None) -> bool:
    """Shows the arguments, each with so many characters; whether that was all of them."""
    from tamis.protocols.observation import cut_middle

    whole = True
    for name, value in args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = text if most is None else cut_middle(text, most)
        whole = whole and shown == text
        # with its end, folded, and nothing that the terminal obeys or does not show
        write_asked(f"  {name} = {shown}")
    return whole


async def _choose(question: Question, lines: _Typed) -> Reply:
    """A question of an MCP server: one of its options by number; Enter declines."""
    from tamis.server.runtime.execution.approvals.replies import chosen, question_text

    write_note()
    write_asked(question_text(question))
    for number, option in enumerate(question.options, 1):
        write_asked(f"  {number} = {option.label}")
    for _ in range(MAX_ASKED):
        write_question(f"[1-{len(question.options)}, Enter declines] ")
        typed = (await lines.line()).decode("utf-8", "replace").strip()
        if not typed:
            break
        if typed.isascii() and typed.isdigit() and 0 < int(typed[:9]) <= len(question.options):
            return chosen(question.options[int(typed[:9]) - 1].option_id, question.options)
        write_note(f"'{typed[:40]}' is none of the numbers.")
    return Reply(answer="deny")


ANSWERS_FORM = "[y] answer  [n] decline (default): "


async def _fill(question: Question, form: Sequence[ApprovalField], lines: _Typed) -> Reply:
    """A form of an MCP server, field by field, sent only when it was shown whole; Enter leaves a field as it is, or out."""
    from tamis.server.runtime.execution.approvals.replies import chosen, question_text

    async def typed(words: str) -> str:
        write_question(words)
        line = await lines.line()
        if not line:
            raise EOFError
        return line.decode("utf-8", "replace").strip()

    write_note()
    write_asked(question_text(question))
    for field in form:
        about = "" if field.description is UNSET else f": {field.description}"
        write_asked(f"  {field.title}{about}{'' if field.required else ' (may be left out)'}")
        if field.error is not UNSET:
            write_asked(f"    the answer before does not fit: {field.error}")
    content: dict[str, Any] = {}
    try:
        if (await typed(ANSWERS_FORM)).lower() not in ("y", "yes"):
            return Reply(answer="deny")
        for field in form:
            value = await _field(field, typed)
            if value is not None:
                content[field.name] = value
        write_asked(f"Answer: {json.dumps(content, ensure_ascii=False)}")
        if (await typed("Send this to the server? [y] yes  [n] no, decline (default): ")).lower() not in ("y", "yes"):
            return Reply(answer="deny")
    except EOFError:
        return Reply(answer="deny")
    return chosen("accept", question.options, content=content)


async def _field(field: ApprovalField, typed: Callable[[str], Awaitable[str]]) -> Any:
    """The value of one field; None where it is left out. Raises ``EOFError`` after nonsense without end."""
    from tamis.server.runtime.handlers.mcp.elicitation import value_of

    choices = [] if field.options is UNSET else field.options
    for number, choice in enumerate(choices, 1):
        write_asked(f"  {number} = {choice.title}")
    how = {"string": "a number" if choices else "", "array": "numbers with commas", "boolean": "y or n"}.get(
        field.type, field.type
    )
    given = (
        ""
        if field.default is UNSET or field.error is not UNSET
        else f", Enter takes {json.dumps(field.default, ensure_ascii=False)}"
    )
    for _ in range(MAX_ASKED):
        text = await typed(f"{field.title}{f' ({how}{given})' if how else given}: ")
        if not text and field.default is not UNSET and field.error is UNSET:
            return field.default
        if not text and not field.required:
            return None
        value, wrong = value_of(field, _read_value(field, text)) if text else (None, "an answer is needed")
        if not wrong:
            return value
        write_note(f"    that does not fit: {wrong}")
    raise EOFError


def _read_value(field: ApprovalField, text: str) -> Any:
    """What a person typed as a value of the field's type; the text itself where it is none."""
    if field.options is not UNSET:
        numbers = text.replace(",", " ").split() if field.type == "array" else [text]
        known = {str(number): choice.value for number, choice in enumerate(field.options, 1)}
        values = [known.get(number, number) for number in numbers]
        return values if field.type == "array" else values[0]
    if field.type == "boolean":
        return {"y": True, "yes": True, "n": False, "no": False}.get(text.lower(), text)
    if field.type in ("number", "integer"):
        try:
            return int(text) if text.lstrip("+-").isdigit() and len(text) < 20 else float(text)
        except ValueError:
            return text
    return text


def told_progress() -> OnProgress | None:
    """Says on a terminal's standard error where an installation stands; None without a terminal."""
    if not sys.stderr.isatty():
        return None

    def tell(_call_id: str, text: str) -> None:
        write_note(f"packages: {text}")

    return tell


def positive(text: str) -> int:
    """An argument that must be a whole number above zero."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above zero")
    return int(text)


def asked_here(arguments: argparse.Namespace) -> dict[str, Any]:
    """How a command that runs calls asks, for ``CallContext.having``: one question at a time, those of MCP servers too; with ``--yes`` none of theirs."""
    import asyncio

    return {"turn": asyncio.Lock(), **dict.fromkeys(("elicits", "forms", "addresses"), not arguments.yes)}


async def always(_question: Question) -> Answer:
    """The answer of ``--yes``."""
    return "allow"
