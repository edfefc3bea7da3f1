"""Messages of every method of the protocol, valid and not, in any state: each request has one answer, and none ends the session.

Made from lsprotocol's types, as its own test data is: valid values by construction, wrong ones by taking a member away or giving it
another type.
"""

from __future__ import annotations

import copy
import enum
import queue
import types as python_types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import msgspec
import pytest
from lsprotocol import converters, types

from tamis.server.lsp.session import Session
from tamis.server.lsp.table import REQUESTS
from tests.lsp.validation import check_message

CONVERTER = converters.get_converter()
TEXT = "<ACTION><core:echo><text>x</text></core:echo></ACTION>\n"


class InProcess:
    """A session whose messages are collected."""

    def __init__(self) -> None:
        self.sent: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.session = Session(lambda body, **_: self.sent.put(body), self.work.put)
        self._next = 0
        self._asked: dict[Any, str] = {}

    def send(self, message: dict[str, Any]) -> None:
        self.session.receive([msgspec.json.encode({"jsonrpc": "2.0", **message})])
        while not self.work.empty():
            self.work.get()()

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """The one answer to a request."""
        self._next += 1
        self._asked[self._next] = method
        self.send({"id": self._next, "method": method, "params": params})
        if isinstance(params, dict) and "partialResultToken" in params:
            # Such a request may be held until something changes.
            self.send({"method": "$/cancelRequest", "params": {"id": self._next}})
        while True:
            while not self.work.empty():
                self.work.get()()
            try:
                message = msgspec.json.decode(self.sent.get(timeout=0.02))
            except queue.Empty:
                continue
            check_message(message, self._asked)
            if "method" not in message:
                assert message["id"] == self._next, (message, method, params)
                return message

    def start(self) -> None:
        capabilities = {"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {"refreshSupport": True}}}
        assert "result" in self.ask("initialize", {"capabilities": capabilities, "processId": None, "rootUri": None})
        self.send({"method": "initialized", "params": {}})
        for uri, language in ((URIS[0], "markdown"), (URIS[1], "json")):
            item = {"uri": uri, "languageId": language, "version": 1, "text": TEXT if language == "markdown" else "{}"}
            self.send({"method": "textDocument/didOpen", "params": {"textDocument": item}})

    def still_there(self) -> None:
        params = {"textDocument": {"uri": URIS[0]}, "position": {"line": 0, "character": 0}}
        assert "result" in self.ask("textDocument/completion", params)


URIS = ["untitled:a.md", "untitled:a.tool.json"]


def is_request(method: str) -> bool:
    return types.METHOD_TO_TYPES[method][1] is not None


def params_type(method: str) -> Any:
    message = types.METHOD_TO_TYPES[method][0]
    found = typing.get_type_hints(message, vars(types))["params"]
    return None if found is type(None) else without_none(found)


def without_none(kind: Any) -> Any:
    left = [one for one in typing.get_args(kind) if one is not type(None)]
    return left[0] if is_union(kind) and len(left) == 1 else kind


def is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, python_types.UnionType)


def build(kind: Any, *, full: bool, depth: int = 0, name: str = "") -> Any:
    """A value of a type; ``full`` gives what is optional too, a few levels deep."""
    if kind is Any or kind is object:
        return {"any": 1}
    if is_union(kind):
        choices = [one for one in typing.get_args(kind) if one is not type(None)]
        return build(choices[-1 if full else 0], full=full, depth=depth, name=name)
    origin = typing.get_origin(kind)
    if origin is tuple:
        return tuple(build(one, full=full, depth=depth + 1) for one in typing.get_args(kind))
    if origin is not None and issubclass(origin, Sequence):
        return [build(typing.get_args(kind)[0], full=full, depth=depth + 1, name=name)]
    if origin is not None:
        return {"key": build(typing.get_args(kind)[1], full=full, depth=depth + 1)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    if kind is str:
        return URIS[1 if full else 0] if "uri" in name else "x"
    if kind in (int, float, bool):
        return kind(1)
    if attrs.has(kind):
        hints = typing.get_type_hints(kind, vars(types))
        given = {
            field.name: build(hints[field.name], full=full, depth=depth + 1, name=field.name)
            for field in attrs.fields(kind)
            if field.init and (field.default is attrs.NOTHING or (full and depth < 3 and field.name != "kind"))
        }
        return kind(**given)
    return {}


def valid(method: str) -> Iterator[Any]:
    kind = params_type(method)
    if kind is None:
        yield None
        return
    for full in (False, True):
        yield CONVERTER.unstructure(build(kind, full=full))


ANYTHING = {"data", "arguments", "settings", "value", "initializationOptions", "capabilities", "params"}


def wrong(method: str) -> Iterator[Any]:
    """Parameters that lack a member, or have one of another type."""
    kind = params_type(method)
    if kind is None:
        return
    right = CONVERTER.unstructure(build(kind, full=False))
    if right:
        yield from (None, [], {}, 3, "x")
    for path in paths(right):
        if any(name in ANYTHING for name in path):
            continue
        if method == "workspaceSymbol/resolve" and path == ("location", "range"):
            continue  # to be filled in by the answer
        for change in ("drop", "type", "negative"):
            changed = copy.deepcopy(right)
            holder = changed
            for name in path[:-1]:
                holder = holder[name]
            if change == "negative":
                if path[-1] not in ("line", "character"):
                    continue
                holder[path[-1]] = -1
            elif change == "type":
                holder[path[-1]] = 3 if isinstance(holder[path[-1]], (dict, list)) else [[]]
            elif isinstance(holder, dict):
                del holder[path[-1]]
            else:
                continue
            yield changed


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        yield (*above, name)
        yield from paths(one, (*above, name))


def to_server() -> list[str]:
    return [method for method in types.METHOD_TO_TYPES if types.message_direction(method) != "serverToClient"]


@pytest.fixture(scope="module")
def started() -> InProcess:
    started = InProcess()
    started.start()
    return started


@pytest.mark.slow
@pytest.mark.parametrize("method", [method for method in to_server() if is_request(method)])
def test_every_request_is_answered_and_wrong_ones_are_refused(started: InProcess, method: str) -> None:
    if method in ("initialize", "shutdown"):
        return
    served = method in REQUESTS
    for params in valid(method):
        answer = started.ask(method, params)
        if not served:
            assert answer["error"]["code"] == -32601
        elif "error" in answer:
            # About a command, document or place that is not there; never a fault of ours.
            assert answer["error"]["code"] not in (-32603, -32601), answer
    for params in wrong(method):
        answer = started.ask(method, params)
        assert "error" in answer, (method, params)
        assert answer["error"]["code"] == (-32602 if served else -32601), (method, params, answer)
    started.still_there()


@pytest.mark.parametrize("method", [method for method in to_server() if not is_request(method) and method != "exit"])
def test_every_notification_is_taken_or_ignored(
    started: InProcess, method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for params in (*valid(method), *wrong(method)):
        started.send({"method": method, "params": params})
    started.still_there()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("method", to_server())
def test_every_message_in_any_state(method: str) -> None:
    """Before ``initialize`` and after ``shutdown``."""
    if method in ("initialize", "exit"):
        return
    early = InProcess()
    for params in (*valid(method), *list(wrong(method))[:3]):
        if is_request(method):
            assert early.ask(method, params)["error"]["code"] == -32002
        else:
            early.send({"method": method, "params": params})
    early.start()
    early.still_there()
    assert "result" in early.ask("shutdown", None)
    for params in (*valid(method), *list(wrong(method))[:3]):
        if is_request(method):
            assert early.ask(method, params)["error"]["code"] == -32600
        else:
            early.send({"method": method, "params": params})
    assert early.session.exit_code is None


def test_every_offer_of_a_client_is_answered() -> None:
    for params in valid("initialize"):
        session = InProcess()
        assert "result" in session.ask("initialize", params)
    for params in wrong("initialize"):
        session = InProcess()
        answer = session.ask("initialize", params)
        # What is not needed may be missing; what is there must be what it says.
        assert "result" in answer or answer["error"]["code"] == -32602
        if "error" in answer:
            session.start()


@pytest.mark.parametrize("method", [method for method in types.METHOD_TO_TYPES if method not in to_server()])
def test_messages_that_only_a_server_sends_are_unknown(started: InProcess, method: str) -> None:
    for params in valid(method):
        if is_request(method):
            assert started.ask(method, params)["error"]["code"] == -32601
        else:
            started.send({"method": method, "params": params})
    started.still_there()
