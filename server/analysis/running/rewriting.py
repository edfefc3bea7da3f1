"""A block's calls in another form: in its place (convert), or to take away (copy as). Everything is proven by reading it again.

What would be lost is named; whoever asks decides. Must not know LSP.
"""

from __future__ import annotations

import shlex
from typing import Literal, cast, get_args

import msgspec

from tamis.protocols.contract import Loss
from tamis.protocols.convert.convert import Conversion, ConvertOptions, convert, title_of
from tamis.protocols.model import Document, Edit, Json, ReadOptions
from tamis.protocols.observation import plain
from tamis.server.analysis.running.runnables import Target, selected
from tamis.server.analysis.snapshot import Snapshot

Protocol = Literal["action", "tam", "vcp"]
Form = Literal["action", "tam", "vcp", "openai", "anthropic", "mcp", "cli"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
FORMS: tuple[Form, ...] = get_args(Form)
CLI_TITLE = "command line"
MAX_PROVEN_CHARS = 50_000


class Rewritten(msgspec.Struct, frozen=True):
    """A block's new text, the edit that puts it there, and the losses; ``problem`` says why there is none."""

    text: str = ""
    edit: Edit | None = None
    losses: tuple[Loss, ...] = ()
    problem: str = ""


def form_title(form: str) -> str:
    """A form's name in menus."""
    return CLI_TITLE if form == "cli" else title_of(form)


def converted(snapshot: Snapshot, target: Target, to: Protocol) -> Rewritten:
    """The block in another protocol, in its place; refused when it or a block beside it would not run there as before."""
    start, end = target.span
    if target.reason:
        return Rewritten(problem=target.reason)
    if target.protocol == to:
        return Rewritten(problem=f"it is written in {title_of(to)} already")
    conversion = _alone(snapshot, target, to)
    if isinstance(conversion, str):
        return Rewritten(problem=conversion)
    new = conversion.text.rstrip("\n")
    if conversion.refused or not new:
        return Rewritten(losses=tuple(conversion.losses), problem="; ".join(loss.message for loss in conversion.losses))
    after = snapshot.read(snapshot.text[:start] + new + snapshot.text[end:])
    if _running(after) != _running(snapshot.document):
        why = f"in this place {title_of(to)} would not be read as the same calls"
        return Rewritten(losses=tuple(conversion.losses), problem=why)
    return Rewritten(new, Edit(start, end, new), tuple(conversion.losses))


def can_become(snapshot: Snapshot, target: Target) -> tuple[Protocol, ...]:
    """The protocols that a block can be converted to in its place. In a text too large to be read at each move of the cursor all
    others are offered, and the command says why not."""
    others: list[Protocol] = [name for name in PROTOCOLS if name != target.protocol]
    if len(snapshot.text) > MAX_PROVEN_CHARS:
        return tuple(others)
    return tuple(name for name in others if converted(snapshot, target, name).edit is not None)


def copied(snapshot: Snapshot, target: Target, form: Form) -> Rewritten:
    """The block's calls by themselves in a form: a protocol, a vendor's call JSON, or lines for a shell."""
    if target.reason:
        return Rewritten(problem=target.reason)
    if form == "cli":
        return Rewritten(_command_lines(snapshot, target))
    if form == target.protocol:
        return Rewritten(snapshot.text[target.span[0] : target.span[1]] + "\n")
    conversion = _alone(snapshot, target, form)
    if isinstance(conversion, str):
        return Rewritten(problem=conversion)
    if conversion.refused or not conversion.text:
        return Rewritten(losses=tuple(conversion.losses), problem="; ".join(loss.message for loss in conversion.losses))
    return Rewritten(conversion.text, losses=tuple(conversion.losses))


def _alone(snapshot: Snapshot, target: Target, to: str) -> Conversion | str:
    """The target's block, read by itself as it is read in its place, in another form; or why it cannot be."""
    text = snapshot.text[target.span[0] : target.span[1]]
    document = snapshot.read(text)
    here = selected(snapshot.document, target)
    if _running(document) != _running(here) or _args(document) != _args(here):
        return "taken out of its text it would not be read as the same calls"
    hints = snapshot.registry.hints() if snapshot.registry is not None else {}
    settings = snapshot.settings
    reading = ReadOptions(
        reasoning_calls=settings.reasoning_calls,
        reasoning_tags=settings.reasoning_tags,
        assume_open_reasoning=settings.assume_open_reasoning,
        fenced_calls=settings.fenced_calls,
        allow_multiple_blocks=True,
        also=settings.also,
    )
    return convert(document, to, ConvertOptions(hints, None, reading))


def _running(document: Document) -> list[str]:
    return [call.tool_id for call in document.calls if call.executable]


def _args(document: Document) -> list[dict[str, Json]]:
    return [call.args(document.text) for call in document.calls if call.executable]


def _command_lines(snapshot: Snapshot, target: Target) -> str:
    """``tamis call`` lines; a shell reads each argument back as it is, whatever it holds."""
    from tamis.server.runtime.calls.checking import check_parsed

    document = selected(snapshot.document, target)
    lines: list[str] = []
    for call in document.calls:
        if not call.executable:
            continue
        tool = snapshot.tool(call.tool_id)
        args: dict[str, Json] = call.args(document.text)
        if tool is not None:
            from tamis.server.runtime.tools.registry import Tool

            checked = check_parsed(call, document.text, cast("Tool", tool), None)
            args = checked.coerced if checked.valid else args
        arguments = msgspec.json.encode(args).decode("utf-8", "replace")
        # JSON says the same with an escape, and no terminal takes it for a command.
        lines.append(f"tamis call {shlex.quote(call.tool_id)} --args {shlex.quote(plain(arguments))}")
    return "".join(line + "\n" for line in lines)
