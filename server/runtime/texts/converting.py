"""Converting and formatting under a root: registered tools guide the reading and type the values.

Must not know framing or the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.protocols.base import PlainCall, Shape
from tamis.protocols.contract import Loss
from tamis.protocols.convert.blocks import message_texts
from tamis.protocols.convert.calls import loss, members_lost, read_envelope
from tamis.protocols.convert.convert import Conversion, ConvertOptions, convert, targets, title_of
from tamis.protocols.convert.plain import wire_call
from tamis.protocols.model import ReadOptions, ToolHint
from tamis.protocols.plugins import extras_of
from tamis.server.runtime.tools.inline import InlineTool

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime

UNREAD_HERMES = (
    '<tool_call> is not read: Hermes has to be asked for, by `also = ["hermes"]` in [protocol] of tamis.toml '
    "(`tamis convert` also takes --from hermes)"
)


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
    members = options or {}
    reading = ReadOptions(
        reasoning_calls=members.get("reasoningCalls", own.reasoning_calls),
        reasoning_tags=tuple(members["reasoningTags"]) if "reasoningTags" in members else own.reasoning_tags,
        assume_open_reasoning=members.get("assumeOpenReasoning", own.assume_open_reasoning),
        fenced_calls=members.get("fencedCalls", own.fenced_calls),
        allow_multiple_blocks=members.get("allowMultipleBlocks", own.allow_multiple_blocks),
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
        if "toolId" not in call and (vendor_calls := _vendors_calls(call)):
            for vendors, lost in vendor_calls:
                plain.append(vendors)
                places.append(index)
                losses += members_lost(lost, f"/calls/{index}", title_of(to))
            continue
        try:
            converted, failed = wire_call(call, known, keep_hints=extras_of(to).modifiers)
        except ValueError as error:
            raise BadCallError(f"{error} - at `/calls/{index}`") from None
        if call.get("executable") is False or call.get("complete") is False:
            why = "its text was cut off or has more than one reading, so it is not executable"
            losses.append(loss("TC055", f"/calls/{index}", what=f"The call of '{converted.tool_id}'", why=why))
            continue
        for name in failed:
            what, title = f"The type hint of '{name}'", title_of(to)
            args: dict[str, str | int] = {"what": what, "protocol": title, "why": "the value is not what the hint says"}
            losses.append(loss("TC052", f"/calls/{index}/typeHints/{name}", **args))
        plain.append(converted)
        places.append(index)
    converted = convert(plain, to, ConvertOptions(known, shape))
    return Conversion(converted.text, losses + [_moved(loss, places) for loss in converted.losses])


def hints(runtime: Runtime, tools: Sequence[InlineTool] = (), *, guided: bool = True) -> dict[str, ToolHint]:
    """What is known of the tools, registered (if ``guided``) and given; given ones win."""
    known = dict(runtime.registry.hints()) if guided else {}
    known.update({tool.tool_id: ToolHint(tool.tool_id, tool.parameters) for tool in tools})
    return known


def check_target(to: str) -> str:
    """Why there is nothing to convert to under this name, after looking at the installed packages; empty when there is."""
    if to in targets():
        return ""
    from tamis.server.runtime.settings.protocols import installed_protocols, load_protocol

    if not load_protocol(to):
        return ""
    # Every target that can be had, not only what this process has loaded.
    return f"no target '{to}'; known: {', '.join(dict.fromkeys((*targets(), *installed_protocols())))}"


def unread_hermes(text: str, protocol: str, also: Sequence[str]) -> bool:
    """Whether a text has Hermes' marker and is read without Hermes."""
    return protocol == "auto" and "hermes" not in also and "<tool_call>" in text


def _check(to: str) -> None:
    if problem := check_target(to):
        raise BadCallError(f"{problem} - at `/to`")


def _vendors_calls(call: Mapping[str, Any]) -> list[tuple[PlainCall, tuple[str, ...]]]:
    """The calls of a vendor's call JSON (W14), a call or a message with them, and the members that are not carried.

    None of them when it is no such thing, or when one of its calls cannot run.
    """
    from tamis.protocols.calljson.plain import read_call_json

    read_calls = read_call_json(dict(call))
    document = read_calls.document
    if not read_calls.calls or len(read_calls.calls) != len(document.calls) or len(document.blocks) != 1:
        return []
    block = document.blocks[0]
    around = read_envelope(document.text, block)
    if len(around.calls) != len(read_calls.calls):
        return [(call, ()) for call in read_calls.calls]
    texts = message_texts(document.text, block)
    more = around.members + (("content",) if (texts.lead + texts.tail).strip() or texts.others else ())
    pairs = zip(read_calls.calls, around.calls, strict=True)
    calls = [
        (msgspec.structs.replace(plain_call, number_id=about.number_id), about.members) for plain_call, about in pairs
    ]
    return [(calls[0][0], more + calls[0][1]), *calls[1:]]


def _moved(loss: Loss, places: list[int]) -> Loss:
    """A loss whose call is named by its place among all calls that were given."""
    parts = loss.path.split("/")
    if len(parts) < 3 or parts[1] != "calls":
        return loss
    parts[2] = str(places[int(parts[2])])
    return Loss(code=loss.code, path="/".join(parts), message=loss.message)
