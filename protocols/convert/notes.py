"""Losses of a conversion: the catalogue's sentences with the place in the list of calls.

TC050 and TC051 say that a call cannot be written and is left as it is; the others say what did not come along. Must not
know how anything is converted.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.base import PlainCall, Refusal
from tamis.protocols.catalogue import message
from tamis.protocols.contract import Loss
from tamis.protocols.model import Diag, escape_pointer
from tamis.protocols.plugins import extras_of
from tamis.protocols.writing.expect import Expectations
from tamis.protocols.writing.values import as_text

_VENDOR_META: dict[str, frozenset[str]] = dict.fromkeys(("openai", "anthropic", "mcp"), frozenset(("id",)))
"""The fields beside the arguments that a vendor's form has a place for; a protocol says it of itself."""
_NO_PLACE = "it has no place for it"


def loss(code: str, path: str, **args: str | int) -> Loss:
    """One loss with the catalogue's sentence."""
    return Loss(code=code, path=path, message=message(Diag(code, (0, 0), args)))


def refused(refusal: Refusal, indices: list[int]) -> Loss:
    """A writer's refusal, whose path begins with a place in ``indices``."""
    place, _, rest = refusal.path[1:].partition("/")
    path = f"/calls/{indices[int(place)]}" + (f"/{rest}" if rest else "")
    return Loss(code=refusal.code, path=path, message=message(Diag(refusal.code, (0, 0), refusal.args)))


def without_extras(
    call: PlainCall, index: int, position: int, protocol: str, title: str
) -> tuple[PlainCall, list[Loss]]:
    """The call with only what the target has a place for, and a loss for everything else.

    ``position`` is the call's number in the order of running. ``uris`` are no such thing: an argument given by address cannot
    go missing, so the call is refused instead.
    """
    here = f"/calls/{index}"
    losses: list[Loss] = []

    def lose(field: str, what: str) -> None:
        losses.append(loss("TC052", f"{here}/{field}", what=what, protocol=title, why=_NO_PLACE))

    step, on_error, retry, request_id, hints = call.step, call.on_error, call.retry, call.request_id, call.type_hints
    if not extras_of(protocol).modifiers:
        if step is not None and step != position:
            lose("step", f"Step number {step}")
        if on_error is not None:
            lose("onError", f"on_error {on_error}")
        if retry is not None:
            lose("retry", f"retry {retry}")
        if request_id is not None:
            lose("requestId", f"The request id '{request_id}'")
        for name, hint in hints.items():
            lose(f"typeHints/{escape_pointer(name)}", f"The type hint {hint} of '{name}'")
        step, on_error, retry, request_id, hints = None, None, None, None, {}
    places = _VENDOR_META.get(protocol) or extras_of(protocol).meta
    for name in call.meta:
        if name not in places:
            lose(f"meta/{escape_pointer(name)}", f"The field '{name}'")
    meta = {name: value for name, value in call.meta.items() if name in places}
    plain = PlainCall(call.tool_id, call.args, step, on_error, retry, request_id, call.uris, hints, meta)
    if protocol == "mcp" and call.number_id is not None:
        plain = msgspec.structs.replace(plain, number_id=call.number_id)
    return plain, losses


def by_address(call: PlainCall, index: int, protocol: str, title: str) -> list[Loss]:
    """Refusals for arguments that are given by URI, which only TAM can say."""
    if extras_of(protocol).modifiers:
        return []
    why = "it cannot give an argument by its address, and without it the call would say something else"
    return [
        loss(
            "TC050", f"/calls/{index}/uris/{escape_pointer(name)}", what=f"The URI of '{name}'", protocol=title, why=why
        )
        for name in call.uris
    ]


def types_lost(call: PlainCall, index: int, protocol: str, title: str, expectations: Expectations) -> list[Loss]:
    """A loss for each typed value that comes back as a text, because no schema of the tool is known (ruling 2)."""
    if not extras_of(protocol).loses_types:
        return []
    from tamis.protocols.action.write import has_elements

    expectation = expectations.of(call.tool_id)
    losses: list[Loss] = []
    for name, value in call.args.items():
        if isinstance(value, str) or (protocol == "action" and has_elements(value)):
            continue
        if expectation.verdict(name, as_text(value), value) != "exact":
            path = f"/calls/{index}/args/{escape_pointer(name)}"
            losses.append(loss("TC054", path, what=f"The value of '{name}'", protocol=title))
    return losses
