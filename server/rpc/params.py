"""Params of the methods: reading them into structs, and what every group of methods is given.

A group is a module with a function ``methods(host)`` that names its methods with the struct of their params and their
handler. Must not know what a method does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.plugins import find_protocol
from tamis.protocols.positions import PositionEncoding
from tamis.server.rpc.errors import named_error
from tamis.server.rpc.session import Session
from tamis.server.runtime.runtime import MAX_TEXT_CHARS, Runtime
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.rpc.running import Runs

P = TypeVar("P", bound=msgspec.Struct)


class Params(msgspec.Struct, rename="camel", kw_only=True):
    """Base of every method's params: camelCase names on the wire."""


class ReadingOptions(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """``options`` of whatever reads a text: what is given goes over the settings."""

    reasoning_calls: Literal["ignore", "run"] | UnsetType = UNSET
    fenced_calls: Literal["auto", "run", "ignore"] | UnsetType = UNSET
    allow_multiple_blocks: bool | UnsetType = UNSET
    stderr_fails: bool | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


def given(options: ReadingOptions | None) -> dict[str, Any]:
    """The options that were given, by their names on the wire."""
    return {} if options is None else msgspec.to_builtins(options)


class Host(Protocol):
    """What a group of methods may use of the server."""

    session: Session

    @property
    def runtime(self) -> Runtime:
        """Settings and registry of the root."""
        ...

    @property
    def encoding(self) -> PositionEncoding | None:
        """The negotiated position encoding; None without ``initialize``."""
        ...

    trusted: bool
    """Whether anything may be run."""
    approval: str
    """How the client can be asked: ``request``, ``poll`` or ``none``."""
    streams: bool
    """Whether the client takes output while calls run."""

    @property
    def runs(self) -> Runs:
        """What runs calls for this client."""
        ...


Group = dict[str, tuple[type[msgspec.Struct], Callable[..., Any]]]
"""Method name → the struct of its params and its handler, which takes the request and that struct."""


def read_params(kind: type[P], params: Any) -> P:
    """Params as a struct; missing params are empty ones, and wrong ones are the request's fault."""
    try:
        return msgspec.convert({} if params is None else params, kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None


def check_size(text: str) -> None:
    """Refuses a text above the limit (1202 ``textTooLarge``)."""
    if len(text) > MAX_TEXT_CHARS:
        raise named_error("textTooLarge", f"the text is larger than {MAX_TEXT_CHARS} characters", "send it in parts")


def check_protocol(name: str) -> None:
    """Refuses a protocol that nobody brings, after looking at the installed packages; ``auto`` is always there."""
    if name == "auto" or find_protocol(name) is not None:
        return
    from tamis.server.runtime.texts.protocols import load_protocol

    problem = load_protocol(name)
    if problem:
        raise RpcError(INVALID_PARAMS, f"wrong params: {problem} - at `$.protocol`")
