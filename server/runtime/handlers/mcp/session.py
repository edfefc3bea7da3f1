"""One connection to an MCP server over lines of JSON: the handshake, requests, and what the server asks in between.

The handshake of the older revisions is tried first, since every server of today answers it; one that names newer versions instead is
asked again in their way (`server/discover`, the version in each request's `_meta`). Must not know how the server is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, cast

import msgspec

from tamis import __version__
from tamis.protocols.jsontext.tree import read_leniently

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN_VERSIONS = ("2026-07-28",)
META = "io.modelcontextprotocol"
METHOD_NOT_FOUND = -32601
INVALID_REQUEST = -32600
UNSUPPORTED_VERSION = -32022
INVALID_PARAMS = -32602
MAX_PAGES = 100
MAX_TOOLS = 2_000
MAX_QUESTIONS = 8
"""So many questions a server may ask in one call, and so often a result may want input."""
MAX_STRAY_LINES = 50
MAX_PROGRESS_CHARS = 1_000
DISCOVER_S = 2.0
CONNECTION_FAILED = -32000
"""The code of what `bridge.py` says itself."""
MAX_FAILED_LOOKS = 3
MAX_TASK_ID = 1_024
CANCEL_S = 1.0
TASK_TTL_MS = 24 * 3_600_000
LEAST_POLL_S, MOST_POLL_S = 0.1, 30.0
LISTEN_S, MAX_LISTEN_S = 1.0, 300.0
"""What is waited before a server that stopped telling of changes is asked to go on, ever longer."""
STRANGE_S = 1.0
"""An answer to a request that nobody made: the only request that waits has so long to be answered all the same."""
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,15})\b')
_HEAD, _TAIL = 4_096, 256
_CLIENT = {"name": "tamis", "version": __version__}
OnProgress = Callable[[str], None]
_TASKS: dict[str, Any] = {"extensions": {f"{META}/tasks": {}}}


class OnQuestion(Protocol):
    """Whom a server's questions go to."""

    @property
    def modes(self) -> tuple[str, ...]:
        """What can be shown: ``form``, ``url``."""
        ...

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        """The result of ``elicitation/create`` for its params. Raises ``QuestionError``."""
        ...


class McpError(Exception):
    """The server answered with an error, with nonsense, or not at all any more."""

    def __init__(self, message: str, code: int = 0, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def is_refusal(error: McpError) -> bool:
    """Whether a server over HTTP refused a request for its token, as `bridge.py` says it."""
    return _info(error.data).get("httpStatus") in (401, 403)


class QuestionError(McpError):
    """What the server asks for is no question, or one too many: the call is over."""


class Lines(Protocol):
    """The connection."""

    async def read(self) -> bytes | None:
        """The next line, or None at the end."""
        ...

    async def write(self, line: bytes) -> None:
        """Sends a line; raises when nobody reads."""
        ...


class McpSession:
    """What is said with one server, from the handshake to its end."""

    def __init__(self, lines: Lines, note: Callable[[str], None]) -> None:
        """`note` is told what the server prints that is no message, and what it logs."""
        self._lines = lines
        self._note = note
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._progress: dict[int, OnProgress] = {}
        self._asked_by: dict[int, OnQuestion | None] = {}
        """The calls that wait, each with whom its server may ask."""
        self._questions: dict[Any, tuple[int, asyncio.Task[None]]] = {}
        """The server's questions that are open, by its id of each, with the call that they are asked for."""
        self._elicits = False
        self._reader: asyncio.Task[None] | None = None
        self._modern = ""
        self._stray = 0
        self._has_tasks = False
        self._cancelling: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._listens: set[int] = set()
        """The requests that are answered at their end only."""
        self._tools: dict[str, dict[str, Any]] | None = None
        self.tools_changed = False
        """Whether it has said so since it was started: what was imported of its tools may be stale."""
        self.heard = 0
        """How many lines it has said."""
        self.version = ""
        """The protocol's revision that both speak."""
        self.server: dict[str, Any] = {}
        """What the server says of itself: `name`, `version`."""

    async def start(self, *, elicits: tuple[str, ...] = (), discover_s: float = DISCOVER_S) -> None:
        """The handshake: the stateless revision first, then ``initialize``, which every older server knows. Raises `McpError`.

        ``elicits``: the server is told that somebody is there for its questions of these modes; in the stateless revision each call says so.
        A server that says nothing to ``server/discover`` for ``discover_s`` is greeted too: it is an older one, or one that is slow to start.
        """
        discovering = asyncio.get_running_loop().create_task(self._discovered())
        self._reader = asyncio.get_running_loop().create_task(self._read())
        try:
            await asyncio.wait({discovering}, timeout=discover_s)
            if not discovering.done() or not discovering.result():
                await self._greeted(elicits, discovering)
        finally:
            discovering.cancel()
            await asyncio.wait({discovering})
            if not discovering.cancelled():
                discovering.exception()  # of who was greeted meanwhile it is nobody's

    async def _greeted(self, elicits: tuple[str, ...], discovering: asyncio.Task[bool]) -> None:
        """The handshake of the earlier revisions; none where the server answers ``server/discover`` after all. Raises `McpError`."""
        self._modern = ""
        self._elicits = bool(elicits)
        able = _able(elicits)
        asked: dict[str, Any] = {
            "protocolVersion": HANDSHAKE_VERSIONS[0],
            "capabilities": able,
            "clientInfo": _CLIENT,
        }
        greeting = asyncio.ensure_future(self.request("initialize", asked))
        try:
            if not discovering.done():
                await asyncio.wait({discovering, greeting}, return_when=asyncio.FIRST_COMPLETED)
                if discovering.done() and discovering.result():
                    return
                self._modern = ""
            told = _object(await greeting, "initialize")
        except McpError as error:
            # one of the stateless revision alone says so
            names_another = error.code == UNSUPPORTED_VERSION and _mutual(_info(error.data).get("supported"))
            if not names_another or not await self._discovered():
                raise
            return
        finally:
            greeting.cancel()
            await asyncio.wait({greeting})
            if not greeting.cancelled():
                greeting.exception()
        version = told.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            raise McpError(f"it speaks MCP {version!r}; known are {', '.join((*MODERN_VERSIONS, *HANDSHAKE_VERSIONS))}")
        self.version = str(version)
        self.server = _info(told.get("serverInfo"))
        able_to = _info(_info(told.get("capabilities")).get("tasks"))
        self._has_tasks = "call" in _info(_info(able_to.get("requests")).get("tools"))
        await self._send({"method": "notifications/initialized"})

    async def _discovered(self) -> bool:
        """Whether the server speaks a stateless revision, which is spoken from now on. An error and an answer in another form say that it
        does not; one that names another version of it is asked again, and one that wants a token says nothing of it."""
        answer: dict[str, Any] | None = None
        self._modern = MODERN_VERSIONS[0]
        try:
            answer = _info(await self.request("server/discover", {}))
        except McpError as error:
            if self.over or is_refusal(error):
                raise
            self._modern = _mutual(_info(error.data).get("supported")) if error.code == UNSUPPORTED_VERSION else ""
        if answer is None and self._modern:
            with contextlib.suppress(McpError):
                answer = _info(await self.request("server/discover", {}))
        if answer is None or ("supportedVersions" not in answer and answer.get("resultType") != "complete"):
            return False
        mutual = _mutual(answer.get("supportedVersions", MODERN_VERSIONS))
        if not mutual:
            return False
        self._modern = self.version = mutual
        self.server = _info(_info(answer.get("_meta")).get(f"{META}/serverInfo"))
        if _info(_info(answer.get("capabilities")).get("tools")).get("listChanged") is True:
            self._listening = asyncio.get_running_loop().create_task(self._listen())
        return True

    async def _listen(self) -> None:
        """In the stateless revision: hears that the tools changed, for as long as the server tells it."""
        pause = LISTEN_S
        while not self.over:
            began = asyncio.get_running_loop().time()
            try:
                await self.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            except McpError as error:
                if error.code in (METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS):
                    return
            # what changed meanwhile is not known
            self._tools = None
            brief = asyncio.get_running_loop().time() - began < pause
            pause = min(pause * 2, MAX_LISTEN_S) if brief else LISTEN_S
            await asyncio.sleep(pause)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        on_question: OnQuestion | None = None,
    ) -> Any:
        """Sends a request and waits for its result; cancelling the task tells the server. Raises `McpError`.

        ``on_question`` is asked what the server asks meanwhile; None: it is told that there is no such method.
        """
        if self.over:
            raise McpError("the server has ended")  # nobody would hear an answer
        self._number += 1
        number = self._number
        told = dict(meta or {})
        if on_progress is not None:
            told["progressToken"] = number
            self._progress[number] = on_progress
        if self._modern:
            told |= {
                f"{META}/protocolVersion": self._modern,
                f"{META}/clientInfo": _CLIENT,
                f"{META}/clientCapabilities": _TASKS | _able(() if on_question is None else on_question.modes),
            }
        content = {**params, **({"_meta": told} if told else {})}
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        if method in ("tools/call", "tasks/result"):
            self._asked_by[number] = on_question
        elif method == "subscriptions/listen":
            self._listens.add(number)
        try:
            await self._send({"id": number, "method": method, "params": content})
            return await answer
        except (asyncio.CancelledError, QuestionError):
            if method not in ("initialize", "server/discover"):
                cancel = {"requestId": number, "reason": "the call was cancelled or took too long"}
                asyncio.get_running_loop().create_task(self._told("notifications/cancelled", cancel))
            raise
        finally:
            self._waiting.pop(number, None)
            self._progress.pop(number, None)
            self._asked_by.pop(number, None)
            self._listens.discard(number)
            open_still = {question for asked_for, question in self._questions.values() if asked_for == number}
            for question in open_still:
                question.cancel()
            if open_still:
                # withdrawn before the call's result is told
                await asyncio.wait(open_still)

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The server's tools by name; asked for again when it says that they changed."""
        if self._tools is None:
            by_name: dict[str, dict[str, Any]] = {}
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                request = await self.request("tools/list", {} if cursor is None else {"cursor": cursor})
                page = _object(request, "tools/list")
                listed = page.get("tools")
                for item in cast("list[object]", listed) if isinstance(listed, list) else []:
                    tool = _object(item, "a tool")
                    if isinstance(tool.get("name"), str) and len(by_name) < MAX_TOOLS:
                        by_name[tool["name"]] = tool
                after = page.get("nextCursor")
                if not isinstance(after, str) or not after or after == cursor:
                    break
                cursor = after
            self._tools = by_name
        return self._tools

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any],
        on_progress: OnProgress | None,
        on_question: OnQuestion | None = None,
    ) -> dict[str, Any]:
        """`tools/call`: the result as the server gave it, also of a call that became a task. In the stateless revision one that wants input
        is asked for again with the answers of ``on_question``. Raises `McpError`."""
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if self._is_task_only(name):
            params["task"] = {"ttl": TASK_TTL_MS}
        more: dict[str, Any] = {}
        for _ in range(MAX_QUESTIONS + 1):
            request = await self.request(
                "tools/call", {**params, **more}, meta=meta, on_progress=on_progress, on_question=on_question
            )
            result = _object(request, "tools/call")
            if self._modern and result.get("resultType") == "task":
                return await self._task(result, on_progress, on_question)
            if "task" in params and isinstance(result.get("task"), dict):
                return await self._task(_info(result["task"]), on_progress, on_question)
            if not self._modern or on_question is None or result.get("resultType") != "input_required":
                return result
            more = await _input(result, on_question)
        raise QuestionError(f"it wants input for the {MAX_QUESTIONS + 1}th time")

    def _is_task_only(self, name: str) -> bool:
        """Whether a tool of 2025-11-25 is called as a task or not at all. In the stateless revision the server decides."""
        execution = _info((self._tools or {}).get(name, {}).get("execution"))
        return not self._modern and self._has_tasks and execution.get("taskSupport") == "required"

    async def _task(
        self, task: dict[str, Any], on_progress: OnProgress | None, on_question: OnQuestion | None
    ) -> dict[str, Any]:
        """The result of a call that became a task, which is asked after until it has ended. Whoever gives the call up cancels the task."""
        task_id = task.get("taskId")
        if not isinstance(task_id, str) or not 0 < len(task_id) <= MAX_TASK_ID:
            raise McpError("it made the call a task without an id")
        try:
            return await self._ended(task_id, task, on_progress, on_question)
        except (asyncio.CancelledError, QuestionError):
            work = asyncio.get_running_loop().create_task(self._cancel_task(task_id))
            self._cancelling.add(work)
            work.add_done_callback(self._cancelling.discard)
            raise

    async def _ended(
        self, task_id: str, task: dict[str, Any], on_progress: OnProgress | None, on_question: OnQuestion | None
    ) -> dict[str, Any]:
        answered: set[str] = set()
        shown: object = None
        failed = 0
        while True:
            status, message = task.get("status"), task.get("statusMessage")
            if on_progress is not None and isinstance(message, str) and message and message != shown:
                shown = message
                on_progress(message[:MAX_PROGRESS_CHARS])
            if status in ("completed", "failed", "cancelled") or (status == "input_required" and not self._modern):
                return await self._result_of(task_id, task, on_question)
            if status == "input_required":
                await self._answer_task(task_id, task, answered, on_question)
            elif status != "working":
                raise McpError(f"its task has the status {str(status)[:40]!r}, which is none")
            await asyncio.sleep(_pause(task))
            try:
                told = await self.request("tasks/get", {"taskId": task_id}, on_question=on_question)
                task, failed = _object(told, "tasks/get"), 0
            except McpError as error:
                failed += 1
                if self.over or error.code != CONNECTION_FAILED or is_refusal(error) or failed > MAX_FAILED_LOOKS:
                    # without its data: the call has begun, and must not be made again with another token
                    raise McpError(f"its task cannot be asked after: {error}", error.code) from None

    async def _result_of(self, task_id: str, task: dict[str, Any], on_question: OnQuestion | None) -> dict[str, Any]:
        status = task.get("status")
        if status == "cancelled":
            raise McpError("it cancelled the task of the call")
        if not self._modern:
            # one that wants input asks for it now, as it would while it runs a call
            told = await self.request("tasks/result", {"taskId": task_id}, on_question=on_question)
            return _object(told, "tasks/result")
        if status == "failed":
            error = _info(task.get("error"))
            code = error.get("code")
            raise McpError(str(error.get("message", "its task failed")), code if isinstance(code, int) else 0)
        return _object(task.get("result"), "tasks/get")

    async def _answer_task(
        self, task_id: str, task: dict[str, Any], answered: set[str], on_question: OnQuestion | None
    ) -> None:
        """Answers what a task asks for and was not answered yet."""
        if on_question is None:
            raise QuestionError("its task wants input, and nobody can be asked")
        wanted = _info(task.get("inputRequests"))
        still = {key: request for key, request in wanted.items() if key not in answered}
        if wanted and not still:
            return
        answered.update(still)
        more = await _input({"inputRequests": still}, on_question)
        await self.request("tasks/update", {"taskId": task_id, **more}, on_question=on_question)

    async def _cancel_task(self, task_id: str) -> None:
        with contextlib.suppress(McpError):
            await self.request("tasks/cancel", {"taskId": task_id})

    async def ping(self) -> None:
        """Waits for a sign of life, an error too; or for the connection's end."""
        with contextlib.suppress(McpError):
            await self.request("ping", {})

    @property
    def over(self) -> bool:
        """Whether the connection has ended."""
        return self._reader is not None and self._reader.done()

    async def close(self) -> None:
        """Stops listening, when the tasks of calls that were given up are cancelled or a moment has gone by."""
        if self._cancelling and not self.over:
            await asyncio.wait(self._cancelling, timeout=CANCEL_S)
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})

    async def _told(self, method: str, params: Mapping[str, Any]) -> None:
        try:
            await self._send({"method": method, "params": params})
        except McpError:
            return

    async def _send(self, message: Mapping[str, Any]) -> None:
        try:
            line = msgspec.json.encode({"jsonrpc": "2.0", **message})
        except UnicodeEncodeError:
            raise McpError("what it wants to be sent back is no Unicode") from None
        try:
            await self._lines.write(line)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise McpError("the server has ended") from error

    async def _read(self) -> None:
        try:
            while (line := await self._lines.read()) is not None:
                await self._line(line)
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(McpError("the server ended before it answered"))
                    answer.exception()  # whoever could not even ask does not look at it

    async def _line(self, line: bytes) -> None:
        self.heard += 1
        if not line.strip():
            return
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            message = read_leniently(line)
        if message is None:
            broken = self._broken(line)
            if broken is not None:
                self._fail(broken, f"its answer to request {broken} cannot be read: {unreadable(line)}")
                return
            # a server that also prints what is no message: said, not suffered
            self._stray += 1
            if self._stray <= MAX_STRAY_LINES:
                self._note("printed beside its messages: " + line[:300].decode("utf-8", "replace"))
            return
        for item in cast("list[object]", message) if isinstance(message, list) else [cast("object", message)]:
            if isinstance(item, dict):
                await self._message(cast("dict[str, Any]", item))

    async def _message(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            params = message.get("params")
            members = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
            if "id" in message:
                await self._asked(method, number, members)
            else:
                self._noticed(method, members)
            return
        answer = self._waiting.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        if answer is None:
            self._strange(message, number)
            return
        if answer.done():
            return
        error = message.get("error")
        if error is None and "result" not in message:
            answer.set_exception(McpError(f"its answer to request {number} has neither a result nor an error"))
        elif error is not None and not isinstance(error, dict):
            answer.set_exception(McpError(f"its answer to request {number} has an error that is no object"))
        elif isinstance(error, dict):
            told = cast("dict[str, Any]", error)
            code = told.get("code")
            answer.set_exception(
                McpError(str(told.get("message", "")), code if isinstance(code, int) else 0, told.get("data"))
            )
        else:
            answer.set_result(message.get("result"))

    def _broken(self, line: bytes) -> int | None:
        """The request that a line answers which is no JSON; None for one that is no message."""
        if not line.lstrip().startswith((b"{", b"[")):
            return None
        for part in (line[:_HEAD], line[-_TAIL:]):
            for match in _ID.finditer(part):
                if int(match[1]) in self._waiting:
                    return int(match[1])
        return self._alone() if b'"jsonrpc"' in line[:_HEAD] else None

    def _alone(self) -> int | None:
        """The request that waits, if it is the only one."""
        waiting = self._waiting.keys() - self._listens
        return next(iter(waiting)) if len(waiting) == 1 else None

    def _fail(self, number: int, reason: str) -> None:
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():
            answer.set_exception(McpError(reason))

    def _strange(self, message: dict[str, Any], number: Any) -> None:
        """An answer whose id is that of no request that waits: one that can only be meant for one ends it."""
        if "result" not in message and "error" not in message:
            return
        if isinstance(number, str | float):
            meant = next((item for item in self._waiting if number in (str(item), float(item))), None)
            if meant is not None:
                self._fail(meant, f"its answer to request {meant} has the id {number!r}, which is not the request's")
                return
        alone = self._alone()
        if alone is None or (isinstance(number, int) and not isinstance(number, bool) and 0 < number <= self._number):
            return  # late, as after a cancel, or given twice
        reason = f"it answered with the id {str(number)[:40]!r}, which no request has, and not to request {alone}"
        if number is None:
            error = message.get("error")
            words = cast("dict[str, Any]", error).get("message", "") if isinstance(error, dict) else ""
            self._fail(alone, f"it could not read request {alone}: {str(words)[:1_000]}")
            return
        asyncio.get_running_loop().call_later(STRANGE_S, self._fail, alone, reason)

    async def _asked(self, method: str, number: Any, params: dict[str, Any]) -> None:
        if method == "elicitation/create" and self._elicits and not self._modern and isinstance(number, int | str):
            asked_for = next(iter(self._asked_by), None)
            if asked_for is not None and len(self._questions) > MAX_QUESTIONS:
                return  # one too many was asked already, which ends the call as soon as it is looked at
            if asked_for is not None and len(self._asked_by) == 1 and number not in self._questions:
                question = asyncio.get_running_loop().create_task(self._ask(number, asked_for, params))
                self._questions[number] = asked_for, question
                question.add_done_callback(partial(self._settled, number))
                return
            if self._asked_by:
                self._note(
                    "a question was declined: several calls run, or its id is taken, so nobody knows whose it is"
                )
                await self._reply(number, {"result": {"action": "decline"}})
                return
            error = {"code": INVALID_REQUEST, "message": "questions are for while a tool runs"}
            await self._reply(number, {"error": error})
            return
        reply: dict[str, Any]
        if method == "ping":
            reply = {"result": {}}
        elif method == "roots/list":
            reply = {"result": {"roots": []}}
        else:
            reply = {"error": {"code": METHOD_NOT_FOUND, "message": f"{method} is not offered"}}
        await self._reply(number, reply)

    async def _reply(self, number: Any, reply: Mapping[str, Any]) -> None:
        try:
            await self._send({"id": number, **reply})
        except McpError:
            return

    async def _ask(self, number: int | str, asked_for: int, params: dict[str, Any]) -> None:
        """Answers a question of the server; one that is none ends the call that it was asked for."""
        on_question = self._asked_by.get(asked_for)
        try:
            answer = {"action": "decline"} if on_question is None else await on_question(params)
            await self._reply(number, {"result": answer})
        except QuestionError as error:
            waits = self._waiting.get(asked_for)
            if waits is not None and not waits.done():
                waits.set_exception(error)
            await self._reply(number, {"error": {"code": INVALID_REQUEST, "message": str(error)}})

    def _settled(self, number: int | str, question: asyncio.Task[None]) -> None:
        """A question is none any more: by its answer, by the end of its call, or taken back, which alone needs no answer."""
        if self._questions.get(number, (0, None))[1] is not question:
            return
        del self._questions[number]
        if question.cancelled():
            asyncio.get_running_loop().create_task(self._reply(number, {"result": {"action": "cancel"}}))

    def _noticed(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/tools/list_changed":
            self._tools, self.tools_changed = None, True
        elif method == "notifications/cancelled":
            taken_back = params.get("requestId")
            if isinstance(taken_back, int | str) and (question := self._questions.pop(taken_back, None)) is not None:
                question[1].cancel()
        elif method == "notifications/progress":
            token = params.get("progressToken")
            show = self._progress.get(token) if isinstance(token, int) and not isinstance(token, bool) else None
            if show is not None:
                show(progress_words(params))
        elif method == "notifications/message":
            self._note(f"{params.get('level', 'info')}: {_words(params.get('data'))}")


def _able(modes: tuple[str, ...]) -> dict[str, Any]:
    """What a server is told that it may ask, as capabilities."""
    return {"elicitation": {mode: {} for mode in modes}} if modes else {}


def _pause(task: Mapping[str, Any]) -> float:
    """How long a server wants to be left alone before it is asked after a task again, in seconds, within bounds."""
    wanted = task.get("pollIntervalMs", task.get("pollInterval"))
    seconds = wanted / 1_000 if isinstance(wanted, int | float) and not isinstance(wanted, bool) else 1.0
    return min(max(seconds, LEAST_POLL_S), MOST_POLL_S)


def _mutual(names: object) -> str:
    """The stateless revision that both speak; empty for none."""
    listed = cast("list[object] | tuple[object, ...]", names) if isinstance(names, list | tuple) else ()
    return next((version for version in MODERN_VERSIONS if version in listed), "")


async def _input(result: Mapping[str, Any], on_question: OnQuestion) -> dict[str, Any]:
    """What a result that wants input is answered with. Raises `McpError`."""
    wanted, state = result.get("inputRequests"), result.get("requestState")
    if not (wanted is None or isinstance(wanted, dict)) or not (state is None or isinstance(state, str)):
        raise QuestionError("it wants input, and its inputRequests are no object or its requestState is no text")
    if not wanted and state is None:
        raise QuestionError("it wants input and does not say which")
    requests = cast("dict[str, Any]", wanted or {})
    if len(requests) > MAX_QUESTIONS:
        raise QuestionError(f"it asked more than {MAX_QUESTIONS} questions in one call")
    answers: dict[str, Any] = {}
    for key, request in requests.items():
        asked = _info(request)
        method = asked.get("method")
        if method == "elicitation/create":
            answers[key] = await on_question(_info(asked.get("params")))
        elif method == "roots/list":
            answers[key] = {"roots": []}
        else:
            raise QuestionError(f"it wants {str(method)[:100]}, which is not offered")
    return ({"inputResponses": answers} if wanted else {}) | ({} if state is None else {"requestState": state})


def unreadable(line: bytes) -> str:
    """Why a line is no message: where it stops being UTF-8, or JSON."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"it is no UTF-8 at byte {error.start}"
    try:
        msgspec.json.decode(line)
    except RecursionError:
        return "it is nested too deeply"
    except msgspec.DecodeError as error:
        return f"it is no JSON: {error}"
    return "it is no JSON"


def progress_words(params: Mapping[str, Any]) -> str:
    """How far a server says it is, as words of bounded length."""
    done, total, text = params.get("progress"), params.get("total"), params.get("message")
    parts = [text[:MAX_PROGRESS_CHARS]] if isinstance(text, str) and text else []
    if isinstance(done, int | float) and isinstance(total, int | float) and total:
        parts.append(f"{done:g} of {total:g}")
    return ", ".join(parts) or f"{done}"


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value[:1_000]
    return msgspec.json.encode(value)[:1_000].decode("utf-8", "replace")


def _info(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise McpError(f"its answer to {what} is no object")
    return cast("dict[str, Any]", value)
