"""Carries MCP between lines on standard streams and a server over Streamable HTTP. Runs in the sandbox, so that the egress policy decides what it reaches.

``bridge.py URL LIMIT [VARIABLE]``: the endpoint, the most bytes that one answer may have, and the variable that holds the bearer token. Follows no
redirect: the token goes to the host that the settings name, and to no other. In a session it holds open the stream of what belongs to no request, and
takes up a stream that broke off behind its last event. Standard library only; must not import Tamis.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import threading
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import IO, Any, cast

META = "io.modelcontextprotocol/"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SILENT_S = 600.0
FAILED = -32000
MAX_WORDS = 500
MAX_CHALLENGE = 8_192
CANCELLED = "notifications/cancelled"
READY = "notifications/initialized"
MAX_RESUMES = 100
MAX_EVENT_ID = 1_024
LEAST_PAUSE_S, MOST_PAUSE_S = 0.1, 60.0
"""However long a server says that is waited before a stream is taken up again."""
MAX_DEPTH = 32
_PARAMETER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for what it is: an answer that is none."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Goes nowhere."""
        return


class Place:
    """How far a stream of events was heard, and when it is taken up again."""

    def __init__(self) -> None:
        self.last = ""
        self.pause = 1.0

    def field(self, name: bytes, value: bytes) -> None:
        """A field of an event; what cannot be a header, or no number, is not taken."""
        text = value.decode("utf-8", "replace")
        if name == b"id" and len(text) <= MAX_EVENT_ID and _PLAIN.fullmatch(text):
            self.last = text
        elif name == b"retry" and text.isdecimal() and len(text) < 10:
            self.pause = min(max(int(text) / 1000, LEAST_PAUSE_S), MOST_PAUSE_S)


class Bridge:
    """One connection, as its client sees it."""

    def __init__(self, url: str, limit: int, token: str) -> None:
        self._url = url
        self._limit = limit
        self._token = token
        self._opener = urllib.request.build_opener(NoRedirect())
        self._writing = threading.Lock()
        self._open: dict[object, Any] = {}
        self._given_up: set[object] = set()
        self._over = threading.Event()
        self._in_headers: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        self._session = ""
        self._version = ""

    def line(self, line: bytes) -> None:
        """Takes one message of the client; each request waits in a thread of its own."""
        message: dict[str, Any] = json.loads(line)
        method = str(message.get("method", ""))
        params = _params(message)
        meta: dict[str, Any] = params.get("_meta") or {}
        modern = str(meta.get(f"{META}protocolVersion") or "")
        if method == CANCELLED:
            self._given_up.add(params.get("requestId"))
        if method == CANCELLED and not self._session:
            # without a session the end of the connection is the word for it
            taken = self._open.pop(params.get("requestId"), None)
            if taken is not None:
                taken.close()
            return
        work = threading.Thread(target=self._post, args=(message, method, modern), daemon=True)
        work.start()
        if "id" not in message or method == "initialize":
            work.join()  # what comes next stands on it
        if method == READY:
            threading.Thread(target=self._listen, daemon=True).start()

    def _headers(self, message: dict[str, Any], method: str, modern: str) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if modern:
            headers["MCP-Protocol-Version"] = modern
            headers["Mcp-Method"] = method
            name = _params(message).get(NAMED.get(method, ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = _header(name)
                headers |= self._repeated(name, _params(message).get("arguments"))
        else:
            if self._session:
                headers["Mcp-Session-Id"] = self._session
            if self._version:
                headers["MCP-Protocol-Version"] = self._version
        return headers

    def _repeated(self, name: str, arguments: object) -> dict[str, str]:
        """The arguments of a tool that it wants in headers."""
        headers: dict[str, str] = {}
        for header, path in self._in_headers.get(name, ()):
            value = arguments
            for step in path:
                value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
            if isinstance(value, str | int):
                headers[f"Mcp-Param-{header}"] = _header(str(value).lower() if isinstance(value, bool) else str(value))
        return headers

    def _learn(self, result: object) -> None:
        """Which arguments the tools of a list want in headers; one that wants what no header can be is taken out of the list."""
        listed: object = cast("dict[str, Any]", result).get("tools") if isinstance(result, dict) else None
        for tool in cast("list[Any]", listed)[:] if isinstance(listed, list) else []:
            if not isinstance(tool, dict):
                continue
            told = cast("dict[str, Any]", tool)
            try:
                self._in_headers[str(told.get("name"))] = _in_headers(told.get("inputSchema"))
            except ValueError as error:
                cast("list[Any]", listed).remove(tool)
                sys.stderr.write(f"the tool {str(told.get('name'))[:100]!r} is left out: {error}\n")

    def _post(self, message: dict[str, Any], method: str, modern: str) -> None:
        identity = message.get("id") if method else None  # an answer has the server's id, which may be one of ours too
        request = urllib.request.Request(
            self._url, json.dumps(message).encode(), self._headers(message, method, modern), method="POST"
        )
        place = Place()
        try:
            answered = self._asked(request, identity, method, place)
            if identity is None or not method or answered:
                return
            if not modern and self._resumed(identity, method, place):
                return
            self._fail(identity, "the server closed the connection before it answered")
        except urllib.error.HTTPError as error:
            with error:
                self._refused(identity, error)
        except (OSError, HTTPException, ValueError, AttributeError) as error:
            if modern or not isinstance(error, OSError | HTTPException) or not self._resumed(identity, method, place):
                self._fail(identity, f"the server cannot be reached: {_words(error)}")
        finally:
            self._open.pop(identity, None)
            self._given_up.discard(identity)

    def _asked(self, request: urllib.request.Request, identity: object, method: str, place: Place) -> bool:
        """Sends a request and passes on what comes; whether an answer was among it."""
        with self._opener.open(request, timeout=SILENT_S) as answer:
            self._open[identity] = answer
            if method == "initialize":
                self._session = answer.headers.get("Mcp-Session-Id") or ""
            return self._read(answer, identity, method, place)

    def _resumed(self, identity: object, method: str, place: Place) -> bool:
        """Takes up the stream of a request behind its last event, until the answer came; whether it did."""
        for _ in range(MAX_RESUMES):
            if not place.last or self._over.wait(place.pause) or identity in self._given_up:
                return False
            request = urllib.request.Request(self._url, headers=self._to_hear(place))
            try:
                with self._opener.open(request, timeout=SILENT_S) as answer:
                    self._open[identity] = answer
                    if answer.headers.get_content_type() != "text/event-stream":
                        return False
                    if self._events(answer, identity, method, place):
                        return True
            except urllib.error.HTTPError as error:
                error.close()
                return False
            except (OSError, HTTPException):
                continue
            except (ValueError, AttributeError):
                return False
        return False

    def _listen(self) -> None:
        """Hears what belongs to no request, as long as the server offers it."""
        place, pause = Place(), 0.0
        while not self._over.wait(pause):
            request = urllib.request.Request(self._url, headers=self._to_hear(place))
            began = time.monotonic()
            try:
                with self._opener.open(request, timeout=SILENT_S) as answer:
                    if answer.headers.get_content_type() != "text/event-stream":
                        return
                    self._events(answer, None, "", place)
            except urllib.error.HTTPError as error:
                error.close()
                return  # 405: it is not offered; anything else is said to the next request
            except (OSError, HTTPException):
                pass
            except (ValueError, AttributeError):
                return
            # one that ends at once every time is asked ever more seldom
            brief = time.monotonic() - began < 1.0
            pause = min(max(place.pause, pause * 2 if brief else 0.0), MOST_PAUSE_S)

    def _to_hear(self, place: Place) -> dict[str, str]:
        headers = self._headers({}, "", "") | {"Accept": "text/event-stream"}
        del headers["Content-Type"]
        return headers | ({"Last-Event-ID": place.last} if place.last else {})

    def _read(self, answer: Any, identity: object, method: str, place: Place) -> bool:
        """Passes on what came; whether an answer was among it."""
        if answer.status == 202 or answer.status == 204:
            return False
        kind = answer.headers.get_content_type()
        if kind == "text/event-stream":
            return self._events(answer, identity, method, place)
        body = answer.read(self._limit + 1)
        if len(body) > self._limit:
            raise ValueError(f"its answer has more than {self._limit} bytes")
        if answer.length:
            raise ValueError(f"its answer broke off: {answer.length} bytes are missing")
        if kind != "application/json":
            raise ValueError(f"it answered with {kind[:100]}, which is no MCP")
        return self._passed(body, method)

    def _events(self, answer: IO[bytes], identity: object, method: str, place: Place) -> bool:
        """A stream of events, to its end or to the answer of the request; whether there was one, if only to another."""
        answered = False
        held: list[bytes] = []
        size = 0
        while line := answer.readline(self._limit + 1):
            size += len(line)
            if size > self._limit:
                raise ValueError(f"an event has more than {self._limit} bytes")
            line = line.rstrip(b"\r\n")
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                held.append(value)
            elif line:
                place.field(name, value)
            else:
                body, held, size = b"\n".join(held), [], 0
                if body.strip() and self._passed(body, method):
                    answered = True
                    if identity is not None and _answers(body, identity):
                        return True
        return answered

    def _passed(self, body: bytes, method: str) -> bool:
        try:
            message: object = json.loads(body)
        except RecursionError:
            raise ValueError("its answer is nested too deeply") from None
        first: dict[str, Any] = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        if method == "initialize" and isinstance(first.get("result"), dict):
            self._version = str(first["result"].get("protocolVersion") or "")
        if method == "tools/list" and not self._version:
            self._learn(first.get("result"))
        self._write(json.dumps(message))
        return isinstance(message, list) or "method" not in first

    def _refused(self, identity: object, error: urllib.error.HTTPError) -> None:
        """An answer with a status of an error: MCP's own error where it is one, else what a person can do."""
        body = error.read(min(self._limit, 1_048_576))
        if error.code in (401, 403):
            challenge = ", ".join(error.headers.get_all("WWW-Authenticate") or ())[:MAX_CHALLENGE]
            text = f"the server refused the request ({error.code}): {_start_of(body)}"
            self._fail(identity, text, {"httpStatus": error.code, "challenge": challenge})
            return
        try:
            message: Any = json.loads(body)
            if isinstance(message["error"]["code"], int):
                self._write(json.dumps({"jsonrpc": "2.0", "id": identity, "error": message["error"]}))
                return
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        finally:
            if error.code == 404 and self._session:
                self._gone(identity)
        where = str(error.headers.get("Location") or "")[:MAX_WORDS]
        if 300 <= error.code < 400:
            text = f"the server redirects to '{where}'; redirects are not followed: name that address as url"
        else:
            text = f"the server answered with status {error.code}: {_start_of(body)}"
        self._fail(identity, text)

    def _gone(self, identity: object) -> None:
        """The session has ended: the next call begins another one."""
        self._fail(identity, "the server has ended the session; call again")
        os._exit(3)

    def _fail(self, identity: object, text: str, data: object = None) -> None:
        if identity is not None:
            error = {"code": FAILED, "message": text} | ({} if data is None else {"data": data})
            self._write(json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}))

    def _write(self, line: str) -> None:
        with self._writing:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def end(self) -> None:
        """Tells the server that the session is over."""
        self._over.set()
        if self._session:
            request = urllib.request.Request(self._url, headers=self._headers({}, "", ""), method="DELETE")
            try:
                self._opener.open(request, timeout=1).close()
            except (OSError, HTTPException):
                return


def _params(message: dict[str, Any]) -> dict[str, Any]:
    return message.get("params") or {}


def _header(text: str) -> str:
    if _PLAIN.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def _in_headers(schema: object, path: tuple[str, ...] = ()) -> list[tuple[str, tuple[str, ...]]]:
    """The headers that a schema wants (`x-mcp-header`), each with the path of its argument. Raises ``ValueError``."""
    found: list[tuple[str, tuple[str, ...]]] = []
    properties: object = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    for key, part in cast("dict[str, Any]", properties).items() if isinstance(properties, dict) else ():
        if not isinstance(part, dict):
            continue
        about = cast("dict[str, Any]", part)
        if "x-mcp-header" in about:
            name = about["x-mcp-header"]
            if not isinstance(name, str) or not _PARAMETER.fullmatch(name):
                raise ValueError("its x-mcp-header is no name of a header")
            if about.get("type") not in ("string", "integer", "boolean"):
                raise ValueError("its x-mcp-header is for a value that is no text, whole number or boolean")
            found.append((name, (*path, key)))
        if len(path) < MAX_DEPTH:
            found += _in_headers(about, (*path, key))
    if len({name.lower() for name, _ in found}) < len(found):
        raise ValueError("two of its parameters want the same x-mcp-header")
    return found


def _answers(body: bytes, identity: object) -> bool:
    message: object = json.loads(body)
    return not isinstance(message, dict) or cast("dict[str, Any]", message).get("id") == identity


def _start_of(body: bytes) -> str:
    return body[:MAX_WORDS].decode("utf-8", "replace")


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(reason)[:MAX_WORDS]


def main() -> None:
    """Until standard input ends."""
    for name in ("NO_PROXY", "no_proxy"):
        # the sandbox's own loopback has no server: whatever the settings name is the proxy's to reach, or to refuse
        os.environ.pop(name, None)
    token = os.environ.get(sys.argv[3], "") if len(sys.argv) > 3 else ""
    bridge = Bridge(sys.argv[1], int(sys.argv[2]), token)
    for line in sys.stdin.buffer:
        bridge.line(line)
    bridge.end()


if __name__ == "__main__":
    main()
