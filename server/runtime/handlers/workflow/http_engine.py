"""An engine behind a URL (W17): the payload is posted as JSON, the answer has the outputs.

``{"outputs": {…}}`` or ``{"error": {"message", "nodeId"?, "type"?}}``; as ``application/x-ndjson`` also one line for each item of a stream
(``{"output": name, "item": …}``) and each step (``{"step": {"nodeId", "status"}}``) before. Nothing but the operator's URL is asked: no proxy, no redirect.
Its name is looked up once, each address is judged by the policy for hosts, and what was judged is what is dialled.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from tamis.protocols.contract import StepStatus
from tamis.protocols.workflow.payload import Payload
from tamis.sandbox.network.egress_hosts import Addresses, Refused
from tamis.sandbox.network.hosts import canonical_host
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.handlers.workflow.engine import EngineError, NodeFailed
from tamis.server.runtime.handlers.workflow.run import Run
from tamis.server.runtime.handlers.workflow.streams import StreamFull
from tamis.server.runtime.settings.config import Policy
from tamis.server.runtime.settings.installed import is_near

MAX_BYTES = 64 * 1024 * 1024
MAX_EXCERPT = 300
MAX_UNTOLD = 256
"""So many lines of an answer are read before the first of them is taken."""
CONNECT_S = 10.0
SILENCE_S = 24 * 60 * 60.0
"""The run's own time bounds the answer; this only lets no thread live for ever."""
THREAD = "tamis-engine"
LINES = "application/x-ndjson"
_STEPS = ("running", "success", "error", "timeout", "cancelled", "skipped")


class HttpEngine:
    """Posts payloads to a URL."""

    def __init__(self, url: str, policy: Policy | None = None) -> None:
        self.url = url
        self._policy = policy or Policy()

    async def run(self, payload: Payload, run: Run) -> dict[str, Any]:
        """The outputs that the answer names."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[dict[str, Any]] = loop.create_future()
        # a query may hold a key, and models read what is said here
        where = self.url.partition("?")[0]
        exchange = _Exchange(self.url, _body(payload), await self._addresses(where))

        def tell(message: dict[str, Any]) -> None:
            exchange.room.release()
            if not done.done():
                try:
                    self._take(message, run)
                except EngineError as error:
                    done.set_exception(error)

        def settle(result: dict[str, Any] | Exception) -> None:
            if not done.done():
                done.set_exception(result) if isinstance(result, Exception) else done.set_result(result)

        def later(work: Callable[[Any], None], value: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(work, value)

        def one(message: dict[str, Any]) -> None:
            # no more of them wait for the loop than it can take between two other things
            exchange.room.acquire()
            later(tell, message)

        def work() -> None:
            try:
                later(settle, exchange.answer(one))
            except EngineError as error:
                later(settle, error)
            except Exception as error:
                what = "broke off" if exchange.is_asked else "cannot be asked"
                text = f"{type(error).__name__}: {error}"[:MAX_EXCERPT]
                later(settle, EngineError(f"the engine at {where} {what}: {text}"))

        threading.Thread(target=work, name=THREAD, daemon=True).start()
        stop = asyncio.ensure_future(run.stopping.wait())
        try:
            await asyncio.wait({done, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            exchange.close()
        if not done.done():
            done.cancel()
            return run.outputs
        return self._outputs(done.result(), payload, run)

    async def _addresses(self, where: str) -> list[str]:
        """Where to dial: this machine where the URL names it, else what the policy lets through. Raises ``EngineError``."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if is_near(host):
            # the name is the operator's word for this machine, and must lead nowhere else
            return ["127.0.0.1", "::1"] if host == "localhost" else [host]
        addresses = Addresses(self._policy.allow_cidrs, tuple(self._policy.pin.items()))
        try:
            name = canonical_host(f"[{host}]" if ":" in host else host)
            async with asyncio.timeout(CONNECT_S):
                return await addresses.vetted(name, parts.port or (443 if parts.scheme == "https" else 80))
        except Refused as refused:
            raise EngineError(f"the engine at {where} cannot be asked: {refused.reason}") from None
        except (TimeoutError, ValueError) as error:
            text = str(error) or f"its name was not looked up within {CONNECT_S:g} s"
            raise EngineError(f"the engine at {where} cannot be asked: {text}") from None
        finally:
            addresses.close()

    def _take(self, message: dict[str, Any], run: Run) -> None:
        name, step = message.get("output"), message.get("step")
        if isinstance(name, str) and run.is_stream(name):
            try:
                run.push(name, message.get("item"))
            except StreamFull as full:
                raise EngineError(f"the stream '{name}': {full}") from None
        elif isinstance(step, dict):
            told = cast("dict[str, Any]", step)
            if told.get("status") in _STEPS:
                run.step(str(told.get("nodeId")), cast("StepStatus", told["status"]))

    def _outputs(self, answer: dict[str, Any], payload: Payload, run: Run) -> dict[str, Any]:
        error = answer.get("error")
        if error is not None:
            told = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
            text = str(told.get("message") or "the engine gave no reason")[:MAX_EXCERPT]
            node_id = told.get("nodeId")
            types = {str(node.get("id")): str(node.get("fullType")) for node in payload["nodes"]}
            if not isinstance(node_id, str) or node_id not in types:
                named = node_id[:100] if isinstance(node_id, str) else ""
                at = f" at '{named}'" if named else ""
                raise EngineError(f"the engine failed{at}: {text}", named, str(told.get("type") or "")[:200])
            reason = failure("WorkflowError", text)
            run.step(node_id, "error", reason)
            raise NodeFailed(node_id, str(told.get("type") or types[node_id])[:200], "error", reason)
        outputs = answer.get("outputs")
        if not isinstance(outputs, dict):
            raise EngineError("the engine's answer has neither 'outputs' nor 'error'")
        for name, value in cast("dict[str, Any]", outputs).items():
            if name not in payload["outputInterfaceMappings"] and name not in payload.get("interfaceOutputs", {}):
                continue
            if run.is_stream(name):
                try:
                    run.push_rest(name, value)
                except StreamFull as full:
                    raise EngineError(f"the stream '{name}': {full}") from None
            else:
                run.give(name, value)
        return run.outputs


class _Exchange:
    """One request and its answer, in a thread of its own; ``close`` from another ends it."""

    def __init__(self, url: str, body: bytes, addresses: list[str]) -> None:
        self._parts = urlsplit(url)
        self._body = body
        self._addresses = addresses
        self._connection: http.client.HTTPConnection | None = None
        self._closed = False
        self.is_asked = False
        """Whether the engine was reached."""
        self.room = threading.Semaphore(MAX_UNTOLD)
        """For what was read and not told yet."""

    def answer(self, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """The answer's object, of a streamed one the last. Raises ``EngineError``, ``OSError`` or ``HTTPException``."""
        parts = self._parts
        host = parts.hostname or ""
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, parts.port, timeout=CONNECT_S, context=context)
        else:
            context = None
            connection = http.client.HTTPConnection(host, parts.port, timeout=CONNECT_S)
        self._connection = connection
        try:
            sock = self._dialled(connection.port)
            connection.sock = sock if context is None else context.wrap_socket(sock, server_hostname=host)
            self.is_asked = True
            if self._closed:
                raise EngineError("the run has ended")
            connection.sock.settimeout(SILENCE_S)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = {"Content-Type": "application/json", "Accept": f"application/json, {LINES}"}
            connection.request("POST", target, self._body, headers)
            return self._read(connection.getresponse(), tell)
        finally:
            connection.close()

    def _dialled(self, port: int) -> socket.socket:
        """A connection to the first judged address that takes one. Raises OSError."""
        last: OSError = OSError("no address")
        for address in self._addresses:
            try:
                sock = socket.create_connection((address, port), CONNECT_S)
            except OSError as error:
                # the first refusal says most: what comes after may be another family that is not there
                last = error if address == self._addresses[0] else last
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        raise last

    def _read(self, response: http.client.HTTPResponse, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        if response.status != 200:
            excerpt = response.read(MAX_EXCERPT).decode("utf-8", "replace")
            raise EngineError(f"the engine answered {response.status} {response.reason[:MAX_EXCERPT]}: {excerpt}")
        if (response.getheader("Content-Type") or "").split(";")[0].strip().lower() != LINES:
            body = response.read(MAX_BYTES + 1)
            if len(body) > MAX_BYTES:
                raise EngineError(f"the engine's answer has more than {MAX_BYTES} bytes")
            if response.length:
                raise EngineError(f"the engine's answer broke off: {response.length} bytes are missing")
            return _object(body)
        size = 0
        while line := response.readline(MAX_BYTES + 1):
            size += len(line)
            if size > MAX_BYTES:
                raise EngineError(f"the engine's answer has more than {MAX_BYTES} bytes")
            if not line.endswith(b"\n") and not line.rstrip().endswith(b"}"):
                break  # a line that came in part
            if line.strip():
                told = _object(line)
                if "outputs" in told or "error" in told:
                    return told
                tell(told)
            if self._closed:
                break
        raise EngineError("the engine's answer broke off: it ended without a line of 'outputs' or 'error'")

    def close(self) -> None:
        """Ends the exchange, whatever it waits for."""
        self._closed = True
        self.room.release(MAX_UNTOLD)
        sock = self._connection.sock if self._connection is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _body(payload: Payload) -> bytes:
    try:
        return msgspec.json.encode(payload)
    except (OverflowError, UnicodeEncodeError):
        # numbers beyond 64 bits and lone surrogates
        return json.dumps(payload).encode("ascii")
    except RecursionError:
        raise EngineError("the payload is nested too deeply for JSON") from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise EngineError(f"the engine's answer is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise EngineError("the engine's answer is no JSON object")
    return cast("dict[str, Any]", content)
