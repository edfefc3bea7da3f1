"""Calls without places: what a parsed call or one off the wire says, ready to be written elsewhere.

Values are typed where the tool's schema or a TAM type hint types them, else texts as they were written (ruling 2). Must not
know targets beyond whether they have type hints of their own.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, cast

from tamis.protocols.base import PlainCall
from tamis.protocols.model import Call, Json, Param, ToolHint
from tamis.protocols.plugins import find_protocol
from tamis.protocols.schema.coerce import Reading
from tamis.protocols.schema.coerce_text import base64_bytes, read_json_text
from tamis.protocols.writing.values import Expectations, is_object

NOT_DECODED = "the value is not what the hint says; it stays as it is written"


def plain_call(
    call: Call, source: str, expectations: Expectations, tool: ToolHint | None, *, keep_hints: bool
) -> tuple[PlainCall, list[str]]:
    """The call and the parameters whose type hint could not be applied.

    ``keep_hints``: hinted values stay as they are written, with their hints; otherwise the hint is applied and gone.
    """
    args: dict[str, Json] = {}
    for param in call.params:
        args[param.name] = _as_declared(param, source, tool)
    return _plain(call, args, expectations, keep_hints)


def raw_call(call: Call, source: str) -> PlainCall:
    """The call with its values as they are written; nothing is coerced or decoded."""
    return _made(call, call.args(source), dict(call.type_hints))


def reading_of(protocol: str) -> Reading:
    """How the values of a protocol are coerced."""
    call_protocol = find_protocol(protocol)
    return "any" if call_protocol is None else call_protocol.markers.values


def wire_call(
    members: Mapping[str, Any], tools: dict[str, ToolHint], *, keep_hints: bool
) -> tuple[PlainCall, list[str]]:
    """A call as ``tool/parse`` gives it, or the least of one: ``{toolId, args}``.

    Its ``protocol`` says how texts in ``args`` are coerced; without one they are read like those of any. Raises ``ValueError`` with
    a sentence for what is no call.
    """
    tool_id = members.get("toolId")
    args = members.get("args", {})
    if not isinstance(tool_id, str) or not tool_id:
        raise ValueError("toolId must be a text that is not empty")
    if not isinstance(args, dict):
        raise ValueError("args must be an object")
    step, retry = members.get("step"), members.get("retry")
    for name, value in (("step", step), ("retry", retry)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(f"{name} must be a whole number")
    on_error = members.get("onError")
    if on_error not in (None, "stop", "continue"):
        raise ValueError("onError must be stop or continue")
    request_id = members.get("requestId")
    if request_id is not None and not isinstance(request_id, str):
        raise ValueError("requestId must be a text")
    protocol = members.get("protocol")
    call = Call(
        protocol=protocol if isinstance(protocol, str) else "",
        tool_id=tool_id,
        tool_span=(0, 0),
        span=(0, 0),
        step=step,
        retry=retry,
        on_error=on_error,
        request_id=request_id,
        uris=_texts(members, "uris"),
        type_hints=_texts(members, "typeHints"),
        meta=_texts(members, "meta"),
    )
    expectations = Expectations(tools, reading_of(call.protocol))
    return _plain(call, cast("dict[str, Json]", args), expectations, keep_hints)


def _texts(members: Mapping[str, Any], key: str) -> dict[str, str]:
    value = members.get(key, {})
    if not isinstance(value, dict) or not all(
        isinstance(item, str) for item in cast("dict[str, object]", value).values()
    ):
        raise ValueError(f"{key} must be an object of texts")
    return cast("dict[str, str]", value)


def _plain(
    call: Call, args: dict[str, Json], expectations: Expectations, keep_hints: bool
) -> tuple[PlainCall, list[str]]:
    expectation = expectations.of(call.tool_id)
    hints = dict(call.type_hints)
    failed: list[str] = []
    arguments: dict[str, Json] = {}
    for name, raw in args.items():
        hint = hints.get(name)
        if hint is None:
            arguments[name] = expectation.read(name, raw)[0]
        elif keep_hints:
            arguments[name] = raw
        else:
            value, sound = _decoded(raw, hint)
            if not sound:
                failed.append(name)
            arguments[name] = expectation.read(name, value)[0] if sound else raw
            del hints[name]
    return _made(call, arguments, hints), failed


def _made(call: Call, args: dict[str, Json], hints: dict[str, str]) -> PlainCall:
    return PlainCall(
        tool_id=call.tool_id,
        args=args,
        step=call.step,
        on_error=call.on_error,
        retry=call.retry,
        request_id=call.request_id,
        uris=dict(call.uris),
        type_hints=hints,
        meta=dict(call.meta),
    )


def _as_declared(param: Param, source: str, tool: ToolHint | None) -> Json:
    """Markup inside a parameter that is declared as a text is that text (ruling 15)."""
    value = param.value
    declared = tool.properties.get(param.name) if tool is not None else None
    if (
        value.kind in ("list", "object")
        and not value.repeated
        and is_object(declared)
        and declared.get("type") == "string"
    ):
        return value.text(source)
    return value.python(source)


def _decoded(raw: Json, hint: str) -> tuple[Json, bool]:
    """A value under its type hint (seed 002 §3), and whether the hint could be applied."""
    kind = hint.strip().lower()
    if not isinstance(raw, str) or kind == "text":
        return raw, True
    if kind == "json":
        value, notes = read_json_text(raw)
        return (raw, False) if any(note.error for note in notes) else (value, True)
    if kind != "base64":
        return raw, False
    data = base64_bytes(raw)
    return (raw, False) if data is None else (base64.b64encode(data).decode("ascii"), True)
