"""Messages as bytes: what goes out, and what came in. Pure; knows neither processes nor threads."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from tamis.client.methods import RESULTS
from tamis.client.results import ApprovalReply, ApprovalRequest

# What can go wrong between a host and the daemon. What happened to a tool is none of these: it is in the result.


class RpcFailure(Exception):  # noqa: N818 (an error reply of the daemon, named after JSON-RPC)
    """An error reply: the request or the daemon is wrong. ``code`` and ``data`` are JSON-RPC's."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data

    @property
    def name(self) -> str:
        """The name of one of the project's own errors, such as ``notTrusted``; empty for JSON-RPC's."""
        code = self.data.get("code") if isinstance(self.data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return code if isinstance(code, str) else ""


class DaemonEnded(ConnectionError):  # noqa: N818 (what happened, not a fault of this process)
    """The daemon is gone. ``exit_code`` is negative for a signal; ``stderr`` are the last lines that it wrote there."""

    def __init__(self, what: str, exit_code: int | None = None, stderr: tuple[str, ...] = ()) -> None:
        code = "" if exit_code is None else f" (exit code {exit_code})"
        text = "".join(f"\n  {line}" for line in stderr)
        super().__init__(f"{what}{code}" + (f"; its last lines on standard error:{text}" if text else ""))
        self.exit_code = exit_code
        self.stderr = stderr


class WrongResult(ValueError):  # noqa: N818 (a result, not a fault of this process)
    """A result that does not have the method's shape: daemon and client are of different versions."""


Framing = Literal["lines", "headers"]
Serve = Callable[[dict[str, Any]], Any]
"""A method of a host's service: arguments by name → the tool's output."""
Services = Mapping[str, Mapping[str, Serve]]
"""Service → method → what runs it."""
Decide = Callable[[ApprovalRequest], Any]
"""A question → the ``optionId`` chosen, a whole ``ApprovalReply``, or None for a person who turned away."""

APPROVAL = "tool/requestApproval"
INVOKE = "service/invoke"
WITHDRAW = "service/cancel"
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
BUSY = -32000
TAIL_LINES = 20

# -P: what lies in the host's working folder is never imported by the daemon.
_PYTHON = (sys.executable, "-P", "-m", "tamis.server.cli.main", "rpc")
_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(\d+)[ \t]*\r?$")


class NotServed(LookupError):  # noqa: N818 (an outcome of a request, not a fault)
    """A request of the daemon that this host does not answer."""


class Fault(msgspec.Struct):
    """JSON-RPC's error object."""

    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


class Incoming(msgspec.Struct):
    """Any message of the daemon; results stay bytes until their shape is known."""

    id: str | int | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Fault | UnsetType = UNSET


def words(root: str | os.PathLike[str] | None, command: Sequence[str] | None) -> list[str]:
    """The program that is started: ``command``, or this Python's ``tamis rpc``, with ``--root``."""
    start = [*(command if command is not None else _PYTHON)]
    return start if root is None else [*start, "--root", str(Path(root))]


def request(number: int, method: str, params: Any) -> dict[str, Any]:
    """A request as data."""
    return {"jsonrpc": "2.0", "id": number} | notification(method, params)


def notification(method: str, params: Any) -> dict[str, Any]:
    """A notification as data; params that are None are left out."""
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Params without those that were left out (None)."""
    return {name: value for name, value in params.items() if value is not None}


def encode(message: dict[str, Any], framing: Framing) -> bytes:
    """A message as it goes out. Text that UTF-8 cannot carry is escaped; the daemon reads it as U+FFFD."""
    try:
        body = msgspec.json.encode(message)
    except (UnicodeEncodeError, OverflowError):
        body = json.dumps(msgspec.to_builtins(message)).encode("ascii")
    return body + b"\n" if framing == "lines" else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Frames:
    """Collects bytes and gives whole messages."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[Incoming]:
        """The messages that are complete with these bytes. Raises ``msgspec.DecodeError`` for what is no message."""
        self._buffer += data
        incomings: list[Incoming] = []
        while (body := self._next()) is not None:
            if body.strip():
                incomings.append(msgspec.json.decode(body, type=Incoming))
        return incomings

    def _next(self) -> bytes | None:
        mark = b"\n" if self._framing == "lines" else b"\r\n\r\n"
        at = self._buffer.find(mark, self._searched)
        if at < 0:
            self._searched = max(0, len(self._buffer) - 3)
            return None
        start, end = 0, at
        if self._framing == "headers":
            length = _LENGTH.search(bytes(self._buffer[:at]))
            if length is None:
                raise msgspec.DecodeError("a message without a Content-Length")
            start = at + len(mark)
            end = start + int(length[1])
            if len(self._buffer) < end:
                self._searched = at
                return None
        body = bytes(self._buffer[start:end])
        del self._buffer[: end + (len(mark) if self._framing == "lines" else 0)]
        self._searched = 0
        return body


def shape_of(method: str) -> Any:
    """What a method's result is decoded into by the typed methods."""
    return RESULTS.get(method, Any)


def result_of(reply: Incoming, method: str, shape: Any) -> Any:
    """A reply's result in its shape. Raises ``RpcFailure`` for an error reply, ``WrongResult`` for another shape."""
    if reply.error is not UNSET:
        raise RpcFailure(reply.error.code, reply.error.message, reply.error.data)
    errors: list[str] = []
    kinds = cast("tuple[Any, ...]", shape) if isinstance(shape, tuple) else (shape,)
    for kind in kinds:
        try:
            return msgspec.json.decode(reply.result, type=kind)
        except msgspec.ValidationError as error:
            errors.append(str(error))
    text = f"the result of {method} is not what this client knows: {'; or '.join(errors)}"
    raise WrongResult(f"{text}; are daemon and client of one version?")


def initialize_params(
    *,
    approval: bool,
    questions: bool = False,
    output: bool = False,
    events: bool = False,
    trusted: bool | None = None,
    settings: Mapping[str, Any] | None = None,
    encodings: Sequence[str] = ("utf-32",),
) -> dict[str, Any]:
    """Params of ``initialize`` for this process. ``questions``: it shows those of MCP servers, with forms and addresses."""
    options: dict[str, Any] = {} if trusted is None else {"trusted": trusted}
    options |= {} if settings is None else {"settings": dict(settings)}
    return {
        "processId": os.getpid(),
        "capabilities": {
            "general": {"positionEncodings": [*encodings]},
            "experimental": {
                "tamis": {
                    "approval": "request" if approval or questions else "none",
                    "output": output,
                    "events": events,
                    **({"elicitation": True, "forms": True} if questions else {}),
                }
            },
        },
        "initializationOptions": options,
    }


def approval_reply(chosen: Any) -> Any:
    """What a ``Decide`` gave as the reply on the wire."""
    if chosen is None:
        return ApprovalReply(outcome="cancelled")
    return ApprovalReply(outcome="selected", option_id=chosen) if isinstance(chosen, str) else chosen


def question_reply(answered: Any) -> Any:
    """What an ``on_question`` gave as the reply on the wire: a dict is what was typed into the form."""
    if isinstance(answered, dict):
        return ApprovalReply(outcome="selected", option_id="accept", content=cast("dict[str, Any]", answered))
    return approval_reply(answered)


def served(services: Services, params: Any) -> tuple[Serve, dict[str, Any]]:
    """Who runs a ``service/invoke``, and the arguments. Raises ``NotServed`` for a service or method that nobody has."""
    content = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
    service, method = str(content.get("serviceName")), str(content.get("methodName"))
    serve = services.get(service, {}).get(method)
    if serve is None:
        raise NotServed(f"this host has no method '{method}' of a service '{service}'")
    args = content.get("args")
    return serve, cast("dict[str, Any]", args) if isinstance(args, dict) else {}


def words_of(error: Exception) -> str:
    """What an error says of itself."""
    return str(error) or type(error).__name__


def failure_reply(identity: object, error: Exception) -> dict[str, Any]:
    """The reply to a request of the daemon's that was not served, or failed: the daemon must hear of it, whatever it was."""
    return error_reply(identity, METHOD_NOT_FOUND if isinstance(error, NotServed) else INTERNAL_ERROR, words_of(error))


def error_reply(identity: object, code: int, text: str) -> dict[str, Any]:
    """An error reply to the daemon."""
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": text}}
