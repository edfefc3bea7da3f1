"""The client for asyncio. Belongs to the loop that opened it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, overload

import msgspec

from tamis.client import messages
from tamis.client.host import MAX_SERVED, Host, Work, busy_reply
from tamis.client.messages import DaemonEnded, Frames, Incoming, Serve
from tamis.client.methods import AsyncMethods
from tamis.client.results import InitializeResult, ServiceCancel, ServiceRegistration


class AsyncClient(AsyncMethods, Host):
    """A running daemon. Use it with ``async with``, or call ``open`` and ``close``.

    Every method of the daemon is a method here that takes the params by name and gives the contract's Struct. A task that waits
    for an answer and is cancelled cancels the request. ``on_request``, ``on_approval`` and the functions of services may be coroutine
    functions.
    """

    def _start(self) -> None:
        self._waiting: dict[int, tuple[asyncio.Future[Any], str, Any]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._invoked: dict[str, asyncio.Task[Any]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The daemon's process."""
        if self._process is None:
            raise DaemonEnded("the client was not opened")
        return self._process

    async def open(self) -> AsyncClient:
        """Starts the daemon."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*self._words, stdin=pipe, stdout=pipe, stderr=pipe)
        self._tasks = [asyncio.create_task(self._read_log()), asyncio.create_task(self._read())]
        return self

    async def initialize(
        self,
        *,
        trusted: bool | None = None,
        output: bool = False,
        settings: Mapping[str, Any] | None = None,
        position_encodings: Sequence[str] = ("utf-32",),
        timeout: float | None = None,
    ) -> InitializeResult:
        """Begins the session, as the first request; only needed for what it declares: streamed ``output``, trust, settings.
        With ``on_notification`` it asks for ``tool/event`` and ``workflow/stepChanged``.

        A client with ``on_approval`` or ``on_question`` that leaves it out sends it by itself, with these defaults, before its first request.
        """
        params = messages.initialize_params(
            approval=self._on_approval is not None,
            questions=self._on_question is not None,
            output=output,
            events=self._on_notification is not None,
            trusted=trusted,
            settings=settings,
            encodings=position_encodings,
        )
        return await self.call_with("initialize", params, timeout)

    async def request(self, method: str, params: Any = None, *, timeout: float | None = None) -> Any:
        """Sends a request and gives its result as plain data.

        Raises ``RpcFailure`` for an error reply, ``TimeoutError`` (the request is cancelled then), ``DaemonEnded``.
        """
        return await self._asked(method, params, Any, timeout)

    async def call(self, method: str, /, *, timeout: float | None = None, **params: Any) -> Any:
        """Sends a request with params by their names on the wire; gives the method's Struct, or plain data for a method that
        this client does not know. Raises what ``request`` raises, and ``WrongResult``."""
        return await self.call_with(method, params, timeout)

    async def call_with(self, method: str, params: dict[str, Any], timeout: float | None) -> Any:
        """``call`` with the params as one object; those that are None are left out."""
        return await self._asked(method, messages.given(params), messages.shape_of(method), timeout)

    async def notify(self, method: str, params: Any = None) -> None:
        """Sends a notification."""
        await self._write(messages.notification(method, params))

    @overload
    async def serve(self, service: Iterable[Callable[..., Any]]) -> list[str]: ...

    @overload
    async def serve(
        self, service: str, methods: Sequence[Mapping[str, Any]], handlers: Mapping[str, Serve]
    ) -> ServiceRegistration: ...

    async def serve(
        self,
        service: str | Iterable[Callable[..., Any]],
        methods: Sequence[Mapping[str, Any]] = (),
        handlers: Mapping[str, Serve] | None = None,
    ) -> Any:
        """Registers functions of this host as tools: those that ``tamis.tool`` made tools of, and plain ones. Gives the ids of the tools.

        Or a service by its name, with the metadata of its methods, and by method name the function that runs it: it takes the arguments as one
        dictionary, and gives the output. Gives the registration.

        What a function raises is the tool's failure. Functions may be coroutine functions. Raises ``ValueError`` for a function
        that cannot be a tool.
        """
        if not isinstance(service, str):
            from tamis.client.functions import as_tools, rejected

            ids: list[str] = []
            for name, tools in as_tools(service).items():
                definitions = [tool.method for tool in tools]
                rejected(await self.serve(name, definitions, {tool.name: tool.handle for tool in tools}))
                ids += [tool.tool_id for tool in tools]
            return ids
        # First the functions: a call may come before the answer.
        self._services[service] = dict(handlers or {})
        try:
            return await self.call_with("service/register", {"serviceName": service, "methods": [*methods]}, None)
        except BaseException:
            self._services.pop(service, None)
            raise

    async def close(self, timeout: float = 1.0) -> int:
        """Ends the daemon by closing its stdin, and kills it after ``timeout`` seconds; returns its exit code."""
        self._closed = True
        process = self.process
        if process.stdin is not None:
            process.stdin.close()
        try:
            code = await asyncio.wait_for(process.wait(), timeout)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            code = await process.wait()
        _, late = await asyncio.wait([*self._tasks], timeout=0.5)
        for task in [*late, *self._serving]:
            task.cancel()
        await asyncio.gather(*late, *self._serving, return_exceptions=True)
        return code

    async def __aenter__(self) -> AsyncClient:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _asked(self, method: str, params: Any, shape: Any, timeout: float | None) -> Any:
        if self._ended is not None:
            raise self._ended
        number = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, method, shape)
        limit = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit):
                beginning = self._beginning_of(method)
                if beginning is not None:
                    await self._write(beginning)
                await self._write(messages.request(number, method, params))
                return await future
        except (TimeoutError, asyncio.CancelledError) as error:
            if number in self._waiting:
                self._cancel(number)
                if isinstance(error, TimeoutError):
                    raise TimeoutError(f"no answer within {limit} s; the request was cancelled") from None
            raise
        finally:
            self._waiting.pop(number, None)

    def _cancel(self, number: int) -> None:
        stdin = self.process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(messages.encode(messages.notification("$/cancelRequest", {"id": number}), self._framing))

    async def _write(self, message: dict[str, Any]) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        try:
            if not stdin.is_closing():
                stdin.write(messages.encode(message, self._framing))
                await stdin.drain()
                return
        except (OSError, RuntimeError):
            pass
        raise await self._end()

    async def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        frames = Frames(self._framing)
        wrong = ""
        try:
            while data := await stdout.read(1 << 16):
                for message in frames.feed(data):
                    self._received(message)
        except msgspec.DecodeError as error:
            wrong = f"the daemon wrote what is no message ({error})"
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        except OSError:
            pass
        finally:
            ended = await self._end(wrong)
            for future, _, _ in [*self._waiting.values()]:
                if not future.done():
                    future.set_exception(ended)

    async def _end(self, wrong: str = "") -> DaemonEnded:
        code = None
        with contextlib.suppress(TimeoutError):
            code = await asyncio.wait_for(self.process.wait(), 1.0)
        await asyncio.wait(self._tasks[:1], timeout=0.2)
        return self._why_ended(code, wrong)

    async def _read_log(self) -> None:
        stderr = self.process.stderr
        assert stderr is not None
        rest = b""
        while data := await stderr.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._logged(line.decode("utf-8", "backslashreplace"))
            if len(rest) > 1 << 16:
                rest = rest[: 1 << 16]
        if rest:
            self._logged(rest.decode("utf-8", "backslashreplace"))

    def _received(self, message: Incoming) -> None:
        if message.method is None:
            future, method, shape = self._waiting.get(message.id, _NOBODY) if isinstance(message.id, int) else _NOBODY
            if future is not None and not future.done():
                try:
                    future.set_result(messages.result_of(message, method, shape))
                except Exception as error:  # an error reply, or a result of another shape
                    future.set_exception(error)
        elif message.id is None:
            if message.method == messages.WITHDRAW:
                self._withdraw(message)
            self._notified(message)
        else:
            task = asyncio.create_task(self._answer(message))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    def _withdraw(self, message: Incoming) -> None:
        """Ends a function that nobody waits for any more."""
        with contextlib.suppress(msgspec.ValidationError):
            task = self._invoked.get(msgspec.json.decode(message.params, type=ServiceCancel).call_id)
            if task is not None:
                task.cancel()

    async def _answer(self, message: Incoming) -> None:
        if len(self._serving) > MAX_SERVED:
            reply = busy_reply(message)
        else:
            try:
                reply = {"jsonrpc": "2.0", "id": message.id, "result": await self._served(self._work(message))}
            except Exception as error:
                reply = messages.failure_reply(message.id, error)
        with contextlib.suppress(ConnectionError):
            try:
                await self._write(reply)
            except TypeError as error:
                await self._write(messages.error_reply(message.id, messages.INTERNAL_ERROR, f"no JSON: {error}"))

    async def _served(self, work: Work) -> Any:
        if not work.call_id:
            return work.result(await _awaited(work.run()))
        task = asyncio.ensure_future(_awaited(work.run()))
        self._invoked[work.call_id] = task
        try:
            return work.result(await task)
        except asyncio.CancelledError:
            task.cancel()
            raise RuntimeError("the call was withdrawn") from None
        finally:
            self._invoked.pop(work.call_id, None)


_NOBODY: tuple[asyncio.Future[Any] | None, str, Any] = (None, "", Any)


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
