"""Python functions as tools of a host: a manifest made from the signature, and a handler that calls the function.

The signature is the contract: annotations become JSON Schema, and arguments come as the types that are annotated. Must not know a connection.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from tamis.client.results import ServiceRegistration
from tamis.protocols.manifest.from_python import Docstring

P = ParamSpec("P")
R = TypeVar("R")
SERVICE = "host"
"""The service of a function that names none."""
_TOOL_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[A-Za-z][A-Za-z0-9_-]*")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_OF_METHODS = (
    "description",
    "displayName",
    "version",
    "parameters",
    "output",
    "tags",
    "aliases",
    "examples",
    "execution",
)


class ToolFunction(Generic[P, R]):
    """A function that is a tool: called as before, with its manifest and its handler beside it."""

    def __init__(self, function: Callable[P, R], tool_id: str | None, more: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        signature = _Signature(function)
        name = signature.name
        if tool_id is None and _NAME.fullmatch(name) is None:
            raise TypeError(f"'{name}' is no name of a tool: give one with tool_id='{SERVICE}:name'")
        self.tool_id = f"{SERVICE}:{name}" if tool_id is None else tool_id
        if _TOOL_ID.fullmatch(self.tool_id) is None:
            raise ValueError(
                f"'{self.tool_id}' is no id of a tool: write 'service:name', in letters, digits, '_' and '-'"
            )
        self.service, _, self.name = self.tool_id.rpartition(":")
        self._signature = signature
        self.manifest: dict[str, Any] = {
            "toolId": self.tool_id,
            "displayName": name.replace("_", " ").strip().capitalize(),
            "description": signature.about.text or name,
            "version": "1.0.0",
            "handler": {"type": "service-method", "serviceName": self.service, "methodName": self.name},
            "parameters": signature.parameters,
            **({} if signature.output is None else {"output": signature.output}),
            **{name: value for name, value in more.items() if value not in (None, (), [])},
        }
        """What a ``*.tool.json`` would say of it: plain data."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function."""
        return self._function(*args, **kwargs)

    def handle(self, args: Mapping[str, Any]) -> Any:
        """Calls the function with arguments as JSON has them; gives its result as plain data, or a coroutine of it for a coroutine function.

        Raises ``msgspec.ValidationError`` for arguments that are not of the annotated types, and what the function raises.
        """
        positional, named = self._signature.bound(args)
        result: Any = self._function(*positional, **named)  # pyright: ignore[reportCallIssue]
        return _later(result) if inspect.isawaitable(result) else msgspec.to_builtins(result)

    @property
    def method(self) -> dict[str, Any]:
        """Its metadata for ``service/register``."""
        fields = {name: self.manifest[name] for name in _OF_METHODS if name in self.manifest}
        return {"name": self.name, "agentCallable": True, **fields}


@overload
def tool(function: Callable[P, R], /) -> ToolFunction[P, R]: ...


@overload
def tool(
    *,
    tool_id: str | None = None,
    version: str = "1.0.0",
    tags: Iterable[str] = (),
    aliases: Iterable[str] = (),
    examples: Iterable[Mapping[str, Any]] = (),
    secret: Iterable[str] = (),
    execution: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], ToolFunction[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    tool_id: str | None = None,
    version: str = "1.0.0",
    tags: Iterable[str] = (),
    aliases: Iterable[str] = (),
    examples: Iterable[Mapping[str, Any]] = (),
    secret: Iterable[str] = (),
    execution: Mapping[str, Any] | None = None,
) -> Any:
    """Makes a tool of a typed function, as a decorator with or without arguments.

    The docstring's text becomes the description, what it says of a parameter that one's. Annotations may be what JSON has, ``Literal``, enums, unions, dates,
    typed dictionaries, dataclasses, named tuples and msgspec's Structs. ``tool_id`` is ``service:name``, by default ``host:`` and the function's name; the
    others are the manifest's fields, and ``secret`` names parameters whose values are shown nowhere. Models may call it: who writes the decorator says so.

    Raises ``TypeError`` for a signature that cannot be called by name or annotations that JSON has no form for, ``ValueError`` for an id that is none.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     "Adds two numbers."
    ...     return a + b
    >>> add(2), add.handle({"a": 2}), add.manifest["toolId"]
    (3, 3, 'host:add')
    >>> add.manifest["parameters"]["required"]
    ['a']
    """
    more: dict[str, Any] = {
        "version": version,
        "tags": [*tags],
        "aliases": [*aliases],
        "examples": [dict(example) for example in examples],
        "execution": None if execution is None else dict(execution),
    }
    hidden = [*secret]

    def make(function: Callable[..., Any]) -> ToolFunction[..., Any]:
        tool_function = ToolFunction(function, tool_id, more)
        properties: dict[str, Any] = tool_function.manifest["parameters"]["properties"]
        for name in hidden:
            if name not in properties:
                raise ValueError(f"secret names '{name}', which is no parameter of {tool_function.name}")
            properties[name]["x-secret"] = True
            # What stands there is told to every model.
            properties[name].pop("default", None)
        return tool_function

    return make if function is None else make(function)


def rejected(registration: ServiceRegistration) -> None:
    """Raises ``ValueError`` for functions that the daemon did not take."""
    if registration.rejected:
        raise ValueError(
            "; ".join(
                f"{rejected_method.method_name}: {rejected_method.reason}" for rejected_method in registration.rejected
            )
        )


def as_tools(functions: Iterable[Callable[..., Any]]) -> dict[str, list[ToolFunction[..., Any]]]:
    """Functions by their service; a plain one is made a tool. Raises ``ValueError`` for two of one id, and what ``tool`` raises."""
    services: dict[str, list[ToolFunction[..., Any]]] = {}
    taken: set[str] = set()
    for function in functions:
        tool_function = (
            cast("ToolFunction[..., Any]", function) if isinstance(function, ToolFunction) else tool(function)
        )
        if tool_function.tool_id in taken:
            raise ValueError(f"two functions are the tool '{tool_function.tool_id}': give one another tool_id")
        taken.add(tool_function.tool_id)
        services.setdefault(tool_function.service, []).append(tool_function)
    return services


async def _later(result: Any) -> Any:
    return msgspec.to_builtins(await result)


class _Signature:
    """What a function takes and gives, as JSON Schema and as types."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.about = Docstring(inspect.getdoc(function) or "")
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except NameError as error:
            raise TypeError(
                f"an annotation of {self.name} is not known: {error}; name types of the module's top"
            ) from None
        self._kinds: dict[str, Any] = {}
        self._positional: list[str] = []
        self._takes_more = False
        self.parameters: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        definitions: dict[str, Any] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                raise TypeError(f"{self.name} takes *{name}, and arguments of a tool go by name: make it a list")
            if parameter.kind is parameter.VAR_KEYWORD:
                self._takes_more = self.parameters["additionalProperties"] = True
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append(name)
            kind = self._kinds[name] = hints.get(name, Any)
            schema = self._schema(kind, f"its parameter '{name}'", definitions)
            if text := self.about.parameters.get(name) or _said(kind):
                schema = {**schema, "description": text}
            if parameter.default is parameter.empty:
                self.parameters["required"].append(name)
            else:
                schema = {**schema, **_default(parameter.default)}
            self.parameters["properties"][name] = schema
        if definitions:
            self.parameters["$defs"] = definitions
        self.output = self._output(hints.get("return", Any))

    def bound(self, args: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments in their types, by position and by name."""
        if not self._takes_more and (unknown := [name for name in args if name not in self._kinds]):
            raise msgspec.ValidationError(f"{self.name} has no parameter '{unknown[0]}'")
        typed: dict[str, Any] = {}
        for name, value in args.items():
            try:
                typed[name] = msgspec.convert(value, self._kinds.get(name, Any))
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"'{name}': {error}") from None
        positional: list[Any] = []
        for name in self._positional:
            if name not in typed:
                break
            positional.append(typed.pop(name))
        return positional, typed

    def _output(self, kind: Any) -> dict[str, Any] | None:
        if kind is Any or kind is None or kind is type(None):
            return None
        definitions: dict[str, Any] = {}
        schema = self._schema(kind, "what it gives", definitions)
        if self.about.returns:
            schema = {**schema, "description": self.about.returns}
        return ({**schema, "$defs": definitions} if definitions else schema) or None

    def _schema(self, kind: Any, what: str, definitions: dict[str, Any]) -> dict[str, Any]:
        try:
            (schema,), below = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
        except (TypeError, RecursionError) as error:
            raise TypeError(f"{self.name}: {what} has no form in JSON: {error}") from None
        definitions |= below
        return schema


def _said(kind: Any) -> str:
    """The text of ``Annotated[kind, "text"]``."""
    if typing.get_origin(kind) is not Annotated:
        return ""
    return next((text for text in typing.get_args(kind)[1:] if isinstance(text, str)), "")


def _default(value: Any) -> dict[str, Any]:
    """``default`` where JSON has the value."""
    try:
        return {"default": msgspec.json.decode(msgspec.json.encode(value))}
    except (TypeError, ValueError, RecursionError, OverflowError):
        return {}
