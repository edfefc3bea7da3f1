"""Params of the methods: reading them into structs, and what every group of methods is given.

A group is a module with a function ``methods(host)`` that names its methods with the struct of their params and their
handler. Must not know what a method does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.contract import Problem
from tamis.protocols.model import escape_pointer
from tamis.protocols.observation import plain
from tamis.protocols.plugins import find_protocol
from tamis.protocols.positions import PositionEncoding
from tamis.protocols.suggest import best, hint
from tamis.server.rpc.session import Session, named_error
from tamis.server.runtime.runtime import MAX_TEXT_CHARS, Runtime
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.rpc.running import Runs

P = TypeVar("P", bound=msgspec.Struct)
MAX_CURSOR_DIGITS = 19
MAX_UNREAD = 16
_OF_MESSAGES = frozenset({"workDoneToken", "partialResultToken", "_meta"})
"""Members that JSON-RPC's relatives put into any params."""
_NO_VALUE = re.compile(r"Invalid enum value ['\"](.*)['\"] - at `(.*)`", re.S)


class Params(msgspec.Struct, rename="camel", kw_only=True):
    """Base of every method's params: camelCase names on the wire."""


class Empty(Params):
    """Params of methods that take none."""


class ReadingOptions(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """``options`` of whatever reads a text: what is given goes over the settings."""

    reasoning_calls: Literal["ignore", "run"] | UnsetType = UNSET
    reasoning_tags: list[str] | UnsetType = UNSET
    assume_open_reasoning: bool | UnsetType = UNSET
    fenced_calls: Literal["auto", "run", "ignore"] | UnsetType = UNSET
    allow_multiple_blocks: bool | UnsetType = UNSET
    stderr_fails: bool | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


def given(options: ReadingOptions | None) -> dict[str, Any]:
    """The options that were given, by their names on the wire."""
    return {} if options is None else msgspec.to_builtins(options)


class Host(Protocol):
    """What a group of methods may use of the server."""

    @property
    def session(self) -> Session:
        """The connection."""
        ...

    @property
    def runtime(self) -> Runtime:
        """Settings and registry of the root."""
        ...

    @property
    def encoding(self) -> PositionEncoding | None:
        """The negotiated position encoding; None without ``initialize``."""
        ...

    @property
    def trusted(self) -> bool:
        """False where the host said that the folder is not trusted: then nothing is run."""
        ...

    @property
    def approval(self) -> str:
        """How the client can be asked: ``request``, ``poll`` or ``none``."""
        ...

    @property
    def elicits(self) -> bool:
        """Whether ``tool/requestApproval`` may be a question of an MCP server."""
        ...

    @property
    def shows_forms(self) -> bool:
        """Whether such a question may have a form, or an address to open."""
        ...

    @property
    def shows_messages(self) -> bool:
        """Whether the client answers ``window/showMessageRequest``."""
        ...

    @property
    def client(self) -> str:
        """The client's own name, as far as it gave one."""
        ...

    @property
    def streams(self) -> bool:
        """Whether the client takes output while calls run."""
        ...

    @property
    def events(self) -> bool:
        """Whether the client wants to be told the states of calls and workflows."""
        ...

    @property
    def runs(self) -> Runs:
        """What runs calls for this client."""
        ...

    @property
    def declared(self) -> Group:
        """Every method that the groups bring, for its description."""
        ...


Group = dict[str, tuple[type[msgspec.Struct], Callable[..., Any]]]
"""Method name → the struct of its params and its handler, which takes the request and that struct.

The descriptions that hosts read are made from it (``described/``): the handler's return annotation is the result (a Struct of
``protocols``, imported at run time), its docstring says what the method does, texts below fields say what they mean.
"""


def read_params(kind: type[P], params: Any) -> P:
    """Params as a struct; missing params are empty ones, and wrong ones are the request's fault.

    A param that may be left out and is ``null`` is left out: many hosts write every field that they have.
    """
    params = {} if params is None else params
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(_without_nulls(params, _shape(kind)), kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"wrong params: {_with_values(str(error), kind)}") from None


def unread(kind: type[msgspec.Struct], params: Any) -> list[Problem]:
    """The members of params that the method does not read, which its result tells. Raises ``RpcError`` for options that it has none for."""
    if not isinstance(params, dict):
        return []
    members = cast("dict[str, Any]", params)
    known = kind.__struct_encode_fields__
    if members.keys() <= set(known):
        return []
    problems: list[Problem] = []
    for name, value in members.items():
        if name in known or name in _OF_MESSAGES or value is None:
            continue
        if name == "options" and value != {}:
            names = list(cast("dict[str, Any]", value)) if isinstance(value, dict) else []
            inner = ", ".join(f"'{name}'" for name in names[:8])
            own = [name for name in names if name in known]
            meant = f"; '{own[0]}' stands beside 'options', not in it" if own else ""
            raise RpcError(
                INVALID_PARAMS,
                f"wrong params: this method takes no options{inner and ': ' + inner}{meant} - at `$.options`",
            )
        near = best(name, known)
        text = (
            f"Unknown member '{name}'{hint(near)} It was passed over."
            if near
            else f"Unknown member '{name}': it was passed over"
        )
        path = "/" + escape_pointer(name)
        suggestion = UNSET if near is None else near
        problems.append(
            Problem(code="VA441", slug=CATALOGUE["VA441"].slug, path=path, message=plain(text), suggestion=suggestion)
        )
        if len(problems) == MAX_UNREAD:
            break
    return problems


def with_warnings(result: Any, problems: list[Problem]) -> Any:
    """A result that tells what of its request was not read, beside what it tells anyway."""
    if not problems:
        return result
    told = msgspec.to_builtins(result) if isinstance(result, msgspec.Struct) else result
    if not isinstance(told, dict):
        return result
    members = cast("dict[str, Any]", told)
    before = members.get("warnings")
    return {**members, "warnings": [*(cast("list[Any]", before) if isinstance(before, list) else []), *problems]}


def _shape(kind: type[msgspec.Struct]) -> Any:
    # Only for a request that is wrong or has such a null.
    import msgspec.inspect

    return msgspec.inspect.type_info(kind)


def _without_nulls(value: Any, kind: Any) -> Any:
    """The value without the fields that are null where their type has no null and they may be missing."""
    import msgspec.inspect

    for alternative in kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,):
        if isinstance(alternative, msgspec.inspect.ListType) and isinstance(value, list):
            return [_without_nulls(item, alternative.item_type) for item in cast("list[Any]", value)]
        if isinstance(alternative, msgspec.inspect.StructType) and isinstance(value, dict):
            fields = {field.encode_name: field for field in alternative.fields}
            return {
                name: _without_nulls(item, fields[name].type) if name in fields else item
                for name, item in cast("dict[str, Any]", value).items()
                if item is not None or name not in fields or fields[name].required or _takes_null(fields[name].type)
            }
    return value


def _takes_null(kind: Any) -> bool:
    import msgspec.inspect

    types = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    return any(isinstance(alternative, (msgspec.inspect.NoneType, msgspec.inspect.AnyType)) for alternative in types)


def _with_values(text: str, kind: type[msgspec.Struct]) -> str:
    """The error's text; of a value that is none of several, with these and the nearest."""
    # Only for a request that is wrong.
    import msgspec.inspect

    match = _NO_VALUE.fullmatch(text)
    values = () if match is None else _values(msgspec.inspect.type_info(kind), re.findall(r"\.(\w+)|\[", match[2]))
    if match is None or not values:
        return text
    listed = ", ".join(f"'{value}'" for value in values)
    near = best(match[1].replace("-", "").replace("_", ""), values) or best(match[1], values)
    return f"'{match[1]}' is none of {listed}{hint(near)} - at `{match[2]}`"


def _values(kind: Any, path: list[str]) -> tuple[str, ...]:
    """The texts that may stand at a path: names of fields, and an empty text for any item."""
    import msgspec.inspect

    if isinstance(kind, msgspec.inspect.UnionType):
        return next((values for candidate in kind.types if (values := _values(candidate, path))), ())
    if not path:
        own = kind.values if isinstance(kind, msgspec.inspect.LiteralType) else ()
        return tuple(str(value) for value in own)
    if isinstance(kind, msgspec.inspect.StructType):
        return next((_values(field.type, path[1:]) for field in kind.fields if field.encode_name == path[0]), ())
    below = getattr(kind, "item_type", None) or getattr(kind, "value_type", None)
    return () if below is None else _values(below, path[1:])


def check_page(cursor: str | None, limit: int | None) -> None:
    """Refuses a page that there cannot be: fewer than one item, or behind a cursor that no answer ever had."""
    if limit is not None and limit < 1:
        raise RpcError(INVALID_PARAMS, "wrong params: at least 1 - at `$.limit`")
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < MAX_CURSOR_DIGITS):
        raise RpcError(INVALID_PARAMS, "wrong params: not a cursor of an earlier answer - at `$.cursor`")


def check_size(text: str) -> None:
    """Refuses a text above the limit (1202 ``textTooLarge``)."""
    if len(text) > MAX_TEXT_CHARS:
        raise named_error("textTooLarge", f"the text is larger than {MAX_TEXT_CHARS} characters", "send it in parts")


def check_protocol(name: str) -> None:
    """Refuses a protocol that nobody brings, after looking at the installed packages; ``auto`` is always there."""
    if name == "auto" or find_protocol(name) is not None:
        return
    from tamis.server.runtime.settings.protocols import load_protocol

    problem = load_protocol(name)
    if problem:
        raise RpcError(INVALID_PARAMS, f"wrong params: {problem} - at `$.protocol`")
