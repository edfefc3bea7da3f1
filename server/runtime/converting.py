"""Converting and formatting under a root: registered tools guide the reading and type the values.

Must not know framing or the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tamis.protocols.base import PlainCall, Shape
from tamis.protocols.contract import Loss
from tamis.protocols.convert.convert import Conversion, ConvertOptions, convert, targets, title_of
from tamis.protocols.convert.notes import loss
from tamis.protocols.convert.plain import wire_call
from tamis.protocols.model import ReadOptions, ToolHint
from tamis.server.runtime.runtime import InlineTool, Runtime


class BadCallError(ValueError):
    """A target or a call that is none; the message names its place."""


def convert_text(
    runtime: Runtime,
    text: str,
    to: str,
    *,
    protocol: str = "auto",
    shape: Shape | None = None,
    tools: Sequence[InlineTool] = (),
    options: Mapping[str, Any] | None = None,
    guided: bool = True,
) -> Conversion:
    """The calls of a text in another form; see ``convert``. Raises ``BadCallError`` for an unknown target."""
    _check(to)
    document = runtime.read(text, protocol, tools=tools, options=options, guided=guided)
    own = runtime.settings.protocol
    given = options or {}
    reading = ReadOptions(
        reasoning_calls=given.get("reasoningCalls", own.reasoning_calls),
        fenced_calls=given.get("fencedCalls", own.fenced_calls),
        allow_multiple_blocks=given.get("allowMultipleBlocks", own.allow_multiple_blocks),
        also=runtime.also,
    )
    known = hints(runtime, tools, guided=guided)
    return convert(document, to, ConvertOptions(known, shape, reading))


def convert_calls(
    runtime: Runtime,
    calls: Sequence[Mapping[str, Any]],
    to: str,
    *,
    shape: Shape | None = None,
    tools: Sequence[InlineTool] = (),
) -> Conversion:
    """Calls off the wire in another form; one that says ``executable: false`` is left out, with a loss (ruling 1)."""
    _check(to)
    known = hints(runtime, tools)
    plain: list[PlainCall] = []
    places: list[int] = []
    losses: list[Loss] = []
    for index, call in enumerate(calls):
        vendors = None if "toolId" in call else _vendors_call(call)
        try:
            made, failed = (vendors, []) if vendors is not None else wire_call(call, known, keep_hints=to == "tam")
        except ValueError as error:
            raise BadCallError(f"{error} - at `$.calls[{index}]`") from None
        if call.get("executable") is False or call.get("complete") is False:
            why = "its text was cut off or has more than one reading, so it is not executable"
            losses.append(loss("TC055", f"/calls/{index}", what=f"The call of '{made.tool_id}'", why=why))
            continue
        for name in failed:
            what, title = f"The type hint of '{name}'", title_of(to)
            args: dict[str, str | int] = {"what": what, "protocol": title, "why": "the value is not what the hint says"}
            losses.append(loss("TC052", f"/calls/{index}/typeHints/{name}", **args))
        plain.append(made)
        places.append(index)
    made = convert(plain, to, ConvertOptions(known, shape))
    return Conversion(made.text, losses + [_moved(one, places) for one in made.losses])


def hints(runtime: Runtime, tools: Sequence[InlineTool] = (), *, guided: bool = True) -> dict[str, ToolHint]:
    """What is known of the tools, registered (if ``guided``) and given; given ones win."""
    known = dict(runtime.registry.hints()) if guided else {}
    known.update({tool.tool_id: ToolHint(tool.tool_id, tool.parameters) for tool in tools})
    return known


def check_target(to: str) -> str:
    """Why there is nothing to convert to under this name, after looking at the installed packages; empty when there is."""
    if to in targets():
        return ""
    from tamis.server.runtime.protocols import load_protocol

    return f"no target '{to}'; known: {', '.join(targets())}" if load_protocol(to) else ""


def _check(to: str) -> None:
    if problem := check_target(to):
        raise BadCallError(f"{problem} - at `$.to`")


def _vendors_call(call: Mapping[str, Any]) -> PlainCall | None:
    """A call in a vendor's JSON (W14), or None when it is none."""
    from tamis.protocols.calljson.plain import read_call_json

    found = read_call_json([dict(call)]).calls
    return found[0] if len(found) == 1 else None


def _moved(one: Loss, places: list[int]) -> Loss:
    """A loss whose call is named by its place among all calls that were given."""
    parts = one.path.split("/")
    if len(parts) < 3 or parts[1] != "calls":
        return one
    parts[2] = str(places[int(parts[2])])
    return Loss(code=one.code, path="/".join(parts), message=one.message)
