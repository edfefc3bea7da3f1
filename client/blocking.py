"""The client for threads. Safe to use from several at once; a thread of its own reads what the daemon sends."""

from __future__ import annotations

import contextlib
import inspect
import io
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import IO, Any, cast, overload

import msgspec

from tamis.client import messages
from tamis.client.host import MAX_SERVED, Host, busy_reply
from tamis.client.messages import DaemonEnded, Frames, Incoming, Serve
from tamis.client.methods import Methods
from tamis.client.results import InitializeResult, ServiceRegistration


class Client(Methods, Host):
    """A running daemon. Use it as a context manager, or call ``close``.

    Every method of the daemon is a method here (``tool_list``, ``tool_execute`` …) that takes the params by name and gives the
    contract's Struct; ``call`` does the same by the wire's names, ``request`` gives plain data. ``on_notification`` is called in the
    reader's thread; ``on_approval``, ``on_request`` and the functions of services run in threads of their own and may use the client.
    """

    def _start(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self._words, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe)
        self._waiting: dict[int, tuple[Future[Any], str, Any]] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._beginning = threading.Lock()
        self._serving = threading.Semaphore(MAX_SERVED)
        self._logs = threading.Thread(target=self._read_log, name="tamis-client-log", daemon=True)
        self._logs.start()
        self._reader = threading.Thread(target=self._read, name="tamis-client", daemon=True)
        self._reader.start()

    def initialize(
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
        return self.call_with("initialize", params, timeout)

    def request(self, method: str, params: Any = None, *, timeout: float | None = None) -> Any:
        """Sends a request and gives its result as plain data.

        Raises ``RpcFailure`` for an error reply, ``TimeoutError`` (the request is cancelled then), ``DaemonEnded``.
        """
        number, future = self.send(method, params)
        return self._wait(number, future, timeout)

    def call(self, method: str, /, *, timeout: float | None = None, **params: Any) -> Any:
        """Sends a request with params by their names on the wire; gives the method's Struct, or plain data for a method that
        this client does not know. Raises what ``request`` raises, and ``WrongResult``."""
        return self.call_with(method, params, timeout)

    def call_with(self, method: str, params: dict[str, Any], timeout: float | None) -> Any:
        """``call`` with the params as one object; those that are None are left out."""
        number, future = self._send(method, messages.given(params), messages.shape_of(method))
        return self._wait(number, future, timeout)

    def send(self, method: str, params: Any = None) -> tuple[int, Future[Any]]:
        """Sends a request; returns its id (for ``cancel``) and the future of its result as plain data."""
        return self._send(method, params, Any)

    def notify(self, method: str, params: Any = None) -> None:
        """Sends a notification."""
        self._write(messages.notification(method, params))

    def cancel(self, number: int) -> None:
        """Asks the daemon to cancel a request; its reply still comes."""
        self.notify("$/cancelRequest", {"id": number})

    @overload
    def serve(self, service: Iterable[Callable[..., Any]]) -> list[str]: ...

    @overload
    def serve(
        self, service: str, methods: Sequence[Mapping[str, Any]], handlers: Mapping[str, Serve]
    ) -> ServiceRegistration: ...

    def serve(
        self,
        service: str | Iterable[Callable[..., Any]],
        methods: Sequence[Mapping[str, Any]] = (),
        handlers: Mapping[str, Serve] | None = None,
    ) -> Any:
        """Registers functions of this host as tools: those that ``tamis.tool`` made tools of, and plain ones. Gives the ids of the tools.

        Or a service by its name, with the metadata of its methods, and by method name the function that runs it: it takes the arguments as one
        dictionary, and gives the output. Gives the registration.

        What a function raises is the tool's failure. Functions run in threads of their own, several at once. Raises ``ValueError`` for a function
        that cannot be a tool.
        """
        if not isinstance(service, str):
            from tamis.client.functions import as_tools, rejected

            ids: list[str] = []
            for name, tools in as_tools(service).items():
                definitions = [tool.method for tool in tools]
                rejected(self.serve(name, definitions, {tool.name: tool.handle for tool in tools}))
                ids += [tool.tool_id for tool in tools]
            return ids
        # First the functions: a call may come before the answer.
        self._services[service] = dict(handlers or {})
        try:
            return self.call_with("service/register", {"serviceName": service, "methods": [*methods]}, None)
        except BaseException:
            self._services.pop(service, None)
            raise

    def close(self, timeout: float = 1.0) -> int:
        """Ends the daemon by closing its stdin, and kills it after ``timeout`` seconds; returns its exit code."""
        self._closed = True
        stdin = self.process.stdin
        assert stdin is not None
        # Who holds the lock writes to a daemon that does not read: only the daemon's end ends that.
        if not self._shut(stdin, min(0.2, timeout)):
            self.process.kill()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._shut(stdin, 0.5)
        for thread, pipe in ((self._reader, self.process.stdout), (self._logs, self.process.stderr)):
            if thread is not threading.current_thread():
                thread.join(0.5)
            # A process that the daemon left behind may hold the pipe open; nobody waits for it.
            if not thread.is_alive() and pipe is not None:
                pipe.close()
        return code

    def _shut(self, stdin: IO[bytes], timeout: float) -> bool:
        if not self._writing.acquire(timeout=timeout):
            return False
        try:
            stdin.close()
        finally:
            self._writing.release()
        return True

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, method: str) -> None:
        # under a lock, so that no other thread's request goes ahead of it
        with self._beginning:
            beginning = self._beginning_of(method)
            if beginning is not None:
                self._write(beginning)

    def _send(self, method: str, params: Any, shape: Any) -> tuple[int, Future[Any]]:
        self._begin(method)
        number = next(self._numbers)
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._waiting[number] = (future, method, shape)
        try:
            self._write(messages.request(number, method, params))
        except BaseException:
            with self._lock:
                self._waiting.pop(number, None)
            raise
        return number, future

    def _wait(self, number: int, future: Future[Any], timeout: float | None) -> Any:
        if threading.current_thread() is self._reader:
            raise RuntimeError("on_notification must not wait for an answer: the thread that would read it is this one")
        limit = self._timeout if timeout is None else timeout
        try:
            return future.result(limit)
        except TimeoutError:
            if future.done():
                raise
            with contextlib.suppress(ConnectionError):
                self.cancel(number)
            raise TimeoutError(f"no answer within {limit} s; the request was cancelled") from None

    def _write(self, message: dict[str, Any]) -> None:
        data = memoryview(messages.encode(message, self._framing))
        stdin = self.process.stdin
        assert stdin is not None
        with self._writing:
            try:
                while data:
                    data = data[stdin.write(data) or 0 :]
                return
            except (OSError, ValueError):
                pass
        raise self._end()

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        frames = Frames(self._framing)
        wrong = ""
        try:
            while data := stdout.read(1 << 16):
                for message in frames.feed(data):
                    self._received(message)
        except msgspec.DecodeError as error:
            wrong = f"the daemon wrote what is no message ({error})"
            self.process.kill()
        except (OSError, ValueError):
            pass
        ended = self._end(wrong)
        with self._lock:
            left = [*self._waiting.values()]
            self._waiting.clear()
        for future, _, _ in left:
            future.set_exception(ended)

    def _end(self, wrong: str = "") -> DaemonEnded:
        """Why nothing comes any more: found out once."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(1.0)
        if threading.current_thread() is not self._logs:
            self._logs.join(0.2)
        with self._lock:
            return self._why_ended(code, wrong)

    def _read_log(self) -> None:
        stderr = self.process.stderr
        assert stderr is not None
        # A text stream wants a buffer below it, and closes what it stands on.
        raw = cast("io.RawIOBase", stderr)
        with (
            contextlib.suppress(OSError, ValueError),
            io.TextIOWrapper(io.BufferedReader(raw), "utf-8", "backslashreplace") as lines,
        ):
            for line in lines:
                self._logged(line.rstrip("\n"))

    def _received(self, message: Incoming) -> None:
        if message.method is None:
            with self._lock:
                entry = self._waiting.pop(message.id, None) if isinstance(message.id, int) else None
            if entry is not None:
                future, method, shape = entry
                try:
                    future.set_result(messages.result_of(message, method, shape))
                except Exception as error:  # an error reply, or a result of another shape
                    future.set_exception(error)
        elif message.id is None:
            self._notified(message)
        elif self._serving.acquire(blocking=False):
            threading.Thread(target=self._answer, args=(message,), name="tamis-client-serve", daemon=True).start()
        else:
            self._reply(busy_reply(message))

    def _answer(self, message: Incoming) -> None:
        try:
            work = self._work(message)
            reply = {"jsonrpc": "2.0", "id": message.id, "result": work.result(_finished(work.run()))}
        except Exception as error:
            reply = messages.failure_reply(message.id, error)
        finally:
            self._serving.release()
        self._reply(reply)

    def _reply(self, reply: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError):
            try:
                self._write(reply)
            except TypeError as error:
                self._write(messages.error_reply(reply["id"], messages.INTERNAL_ERROR, f"no JSON: {error}"))


def _finished(value: Any) -> Any:
    """What a host's function gave; a coroutine function's is run to its end, in this thread."""
    if not inspect.iscoroutine(value):
        return value
    import asyncio

    return asyncio.run(value)
