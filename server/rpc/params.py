"""Params of the methods: reading them into structs, and what every group of methods is given.

A group is a module with a function ``methods(host)`` that names its methods with the struct of their params and their
handler. Must not know what a method does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.contract import Problem
from tamis.protocols.model import escape_pointer
from tamis.protocols.observation import plain
from tamis.protocols.plugins import find_protocol
from tamis.protocols.positions import PositionEncoding
from tamis.protocols.suggest import best, hint, short_for
from tamis.server.rpc.session import Session, named_error
from tamis.server.runtime.runtime import MAX_TEXT_CHARS, Runtime
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.rpc.running import Runs

P = TypeVar("P", bound=msgspec.Struct)
MAX_CURSOR_DIGITS = 19
MAX_UNREAD = 16
MAX_LOOKED_AT = 1_000
"""So many members are looked through for the one that is wrong."""
_OF_MESSAGES = frozenset({"workDoneToken", "partialResultToken", "_meta"})
"""Members that JSON-RPC's relatives put into any params."""
_NO_VALUE = re.compile(r"Invalid enum value (?:['\"](.*)['\"]|(.*))", re.S)


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
    params = _without_nulls(params, _shape(kind))
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"wrong params: {_in_words(str(error), kind, params)}") from None


def read_request(kind: type[P], params: Any) -> tuple[P, list[Problem]]:
    """Params as a struct, and the members that the method does not read, which its result tells. Raises ``RpcError``."""
    problems = unread(kind, params)
    with meaning(problems):
        arguments = read_params(kind, params)
    if isinstance(params, dict) and len(problems) < MAX_UNREAD:
        _unread_below(arguments, cast("dict[str, Any]", params), "", problems)
    return arguments, problems


@contextmanager
def meaning(problems: list[Problem]) -> Generator[None]:
    """Has an error about params ask whether a member that was not read was meant as one that was."""
    try:
        yield
    except RpcError as error:
        asked = asked_for(problems)
        if error.code != INVALID_PARAMS or not asked:
            raise
        raise RpcError(error.code, f"{error.text}; {asked}", error.data, error.identity) from None


def asked_for(problems: list[Problem]) -> str:
    """Whether members that were not read were meant as ones that are, as a part of a sentence; empty where nothing resembles one."""
    near = ((problem.path[1:], problem.suggestion) for problem in problems if problem.suggestion is not UNSET)
    return "; ".join(f"unknown member '{plain(name)}'{hint(str(meant))}" for name, meant in islice(near, 3))


def unread(kind: type[msgspec.Struct], params: Any) -> list[Problem]:
    """The members of params that the method does not read. Raises ``RpcError`` for options that it has none for."""
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
                f"wrong params: this method takes no options{inner and ': ' + inner}{meant} - at `/options`",
            )
        problems.append(_passed_over(name, meant_by(name, known, members), ""))
        if len(problems) == MAX_UNREAD:
            break
    return problems


def _passed_over(name: str, near: str | None, above: str) -> Problem:
    text = (
        f"Unknown member '{name}'{hint(near)} It was passed over."
        if near
        else f"Unknown member '{name}': it was passed over"
    )
    path = f"{above}/{escape_pointer(name)}"
    suggestion = UNSET if near is None else near
    return Problem(code="VA441", slug=CATALOGUE["VA441"].slug, path=path, message=plain(text), suggestion=suggestion)


def meant_by(name: str, known: Sequence[str], given: Collection[str]) -> str | None:
    """The known member that another name may stand for, a longer or shorter one too (``arguments``, ``args``), and that was not given."""
    free = [candidate for candidate in known if candidate not in given]
    longer = [candidate for candidate in free if len(candidate) > 3 and name[:3] == candidate[:3]]
    return best(name, free) or short_for(name, free) or next((one for one in longer if short_for(one, [name])), None)


def _unread_below(read: msgspec.Struct, members: dict[str, Any], path: str, problems: list[Problem]) -> None:
    """Members of objects in params that are not read and resemble one that is."""
    kind = type(read)
    for name, field in zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True):
        given, value = members.get(name), getattr(read, field)
        above = f"{path}/{escape_pointer(name)}"
        inner: Iterable[tuple[str, Any, Any]] = [(above, given, value)]
        if isinstance(given, list) and isinstance(value, list):
            both = zip(cast("list[Any]", given), cast("list[Any]", value), strict=False)
            inner = ((f"{above}/{number}", *pair) for number, pair in enumerate(islice(both, MAX_LOOKED_AT)))
        for place, raw, item in inner:
            if not isinstance(item, msgspec.Struct) or not isinstance(raw, dict):
                continue
            own = cast("dict[str, Any]", raw)
            known = type(item).__struct_encode_fields__
            for unknown in islice((one for one in own if one not in known), MAX_UNREAD):
                near = meant_by(unknown, known, own)
                if near is not None and len(problems) < MAX_UNREAD:
                    problems.append(_passed_over(unknown, near, place))
            _unread_below(item, own, place, problems)


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


def _in_words(error: str, kind: type[msgspec.Struct], params: Any) -> str:
    """What is wrong with params, in words, and where, as a JSON Pointer."""
    # the place is the last that is said: a value may look like one
    what, _, where = error.rpartition(" - at `")
    what, where = (what, where.rstrip("`")) if where.startswith(("$", "key")) and what else (error, "$")
    steps = [name or number or None for name, number in _STEP.findall(where)]
    text = _with_values(what, kind, steps) or _of_shape(what, kind, steps)
    pointer = "".join(f"/{escape_pointer(step)}" for step in _named(steps, error, kind, params))
    return f"{text} - at `{pointer}`" if pointer else text


_STEP = re.compile(r"\.([^.\[`]+)|\[(?:(\d+)|\.\.\.)\]")
_SHAPE = re.compile(r"Expected `([\w |]+)`([^,]*)(?:, got `(\w+)`)?")
_MISSING = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.S)
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
_BOUNDS = (
    (" of length >= ", " no shorter than "),
    (" of length <= ", " no longer than "),
    (" >= ", " of at least "),
    (" <= ", " of at most "),
    (" matching regex ", " that fits "),
)


def _of_shape(what: str, kind: type[msgspec.Struct], steps: list[str | None]) -> str:
    """A finding of msgspec in words; as it is where there are none for it."""
    missing = _MISSING.fullmatch(what)
    if missing is not None:
        name = missing[2]
        if missing[1] == "missing required":
            return f"'{name}' is missing"
        return f"there is no '{name}' here{hint(best(name, _at(_shape(kind), steps, _field_names)))}"
    shape = _SHAPE.fullmatch(what)
    if shape is None:
        return what
    wanted = " or ".join(_KINDS.get(part, part) for part in shape[1].split(" | "))
    bound = shape[2]
    for theirs, ours in _BOUNDS:
        bound = bound.replace(theirs, ours)
    return f"must be {wanted}{bound}{f', not {_KINDS.get(shape[3], shape[3])}' if shape[3] else ''}"


def _named(steps: list[str | None], error: str, kind: type[msgspec.Struct], params: Any) -> list[str]:
    """The steps to a place with the names of the members of which msgspec only says that it is one: the first for which it says so."""
    path: list[str] = []
    for step in steps:
        path.append(
            step
            or next((name for name in _members(params, path) if _says(error, kind, _only(params, path, name))), "*")
        )
    return path


def _members(params: Any, path: list[str]) -> list[str]:
    for step in path:
        try:
            params = cast("list[Any]", params)[int(step)] if isinstance(params, list) else params[step]
        except (LookupError, TypeError, ValueError):
            return []  # the name of a member that looks like a place
    return list(islice(cast("dict[str, Any]", params), MAX_LOOKED_AT)) if isinstance(params, dict) else []


def _only(params: Any, path: list[str], name: str) -> Any:
    """The params with that member alone at the path."""
    if not path:
        return {name: params[name]}
    step, rest = path[0], path[1:]
    if isinstance(params, list):
        items = cast("list[Any]", params)
        return [_only(item, rest, name) if number == int(step) else item for number, item in enumerate(items)]
    return {**params, step: _only(params[step], rest, name)}


def _says(error: str, kind: type[msgspec.Struct], params: Any) -> bool:
    try:
        msgspec.convert(params, kind)
    except msgspec.ValidationError as again:
        return str(again) == error
    return False


def _with_values(text: str, kind: type[msgspec.Struct], steps: list[str | None]) -> str:
    """Of a value that is none of several: these and the nearest; empty for another finding."""
    match = _NO_VALUE.fullmatch(text)
    values = () if match is None else _at(_shape(kind), steps, _values)
    if match is None or not values:
        return ""
    listed = ", ".join(f"'{value}'" for value in values)
    value = match[1] if match[1] is not None else match[2]
    near = best(value.replace("-", "").replace("_", ""), values) or best(value, values)
    return f"'{value}' is none of {listed}{hint(near)}"


def _values(kind: Any) -> tuple[str, ...]:
    import msgspec.inspect

    return tuple(str(value) for value in kind.values) if isinstance(kind, msgspec.inspect.LiteralType) else ()


def _field_names(kind: Any) -> tuple[str, ...]:
    import msgspec.inspect

    return tuple(field.encode_name for field in kind.fields) if isinstance(kind, msgspec.inspect.StructType) else ()


def _at(kind: Any, steps: list[str | None], told: Callable[[Any], tuple[str, ...]]) -> tuple[str, ...]:
    """What is told of the type at a place: by names of fields, and None or a number for any item."""
    import msgspec.inspect

    if isinstance(kind, msgspec.inspect.UnionType):
        return next((found for candidate in kind.types if (found := _at(candidate, steps, told))), ())
    if not steps:
        return told(kind)
    if isinstance(kind, msgspec.inspect.StructType):
        return next((_at(field.type, steps[1:], told) for field in kind.fields if field.encode_name == steps[0]), ())
    below = getattr(kind, "item_type", None) or getattr(kind, "value_type", None)
    return () if below is None else _at(below, steps[1:], told)


def check_page(cursor: str | None, limit: int | None) -> None:
    """Refuses a page that there cannot be: fewer than one item, or behind a cursor that no answer ever had."""
    if limit is not None and limit < 1:
        raise RpcError(INVALID_PARAMS, "wrong params: at least 1 - at `/limit`")
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < MAX_CURSOR_DIGITS):
        raise RpcError(INVALID_PARAMS, "wrong params: not a cursor of an earlier answer - at `/cursor`")


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
        raise RpcError(INVALID_PARAMS, f"wrong params: {problem} - at `/protocol`")
