"""What of a document can be run, where an editor offers it, and why something is not run.

A target is an exact stretch of the text: what is run is what is shown, so its digest travels with every offer. Must not run
anything nor know LSP.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from tamis.protocols.catalogue import message, severity
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.model import Block, Call, Document
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.diagnostics import is_markup, is_template
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.snapshot import Snapshot

TargetKind = Literal["block", "call", "example", "manifest"]
MAX_TARGETS = 2_000
"""More are not offered; a text of this many calls is a log, and each could still be run by its place."""


_TEMPLATE = "it is a template, with a placeholder for the tool"


class Target(msgspec.Struct, frozen=True):
    """Something that can be run, or could if it were in order.

    ``span`` is its exact text, ``head`` the line's place where an offer stands. ``block`` is its number among the text's blocks, ``call``
    its place in the block (for ``kind: "call"``), ``example`` its number in the manifest. ``reason`` says why it cannot be run.
    """

    kind: TargetKind
    span: Span
    head: Span
    tool_ids: tuple[str, ...] = ()
    block: int = -1
    call: int = -1
    example: int = -1
    examples: int = 0
    """Of a manifest: how many examples it has."""
    step: int | None = None
    protocol: str = ""
    reason: str = ""
    needs: tuple[str, ...] = ()
    """Of a block: the names of earlier blocks whose results it uses."""


def digest_of(text: str) -> str:
    """A short digest that names an exact text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def targets(snapshot: Snapshot) -> list[Target]:
    """Everything of a document that can be run, in its order; the calls of a block of several follow the block."""
    find = answer(snapshot, "targets")
    return find(snapshot) if find is not None else []


def target_at(snapshot: Snapshot, span: Span, kind: TargetKind | None = None) -> Target | None:
    """The target of exactly this span, else the smallest one that holds it."""
    holding = [
        target
        for target in targets(snapshot)
        if (kind is None or target.kind == kind) and target.span[0] <= span[0] and span[1] <= target.span[1]
    ]
    exact = next((target for target in holding if target.span == span), None)
    return exact or min(holding, key=lambda target: target.span[1] - target.span[0], default=None)


def selected(document: Document, target: Target) -> Document:
    """The document as if the target's calls were all it held; places stay those of the whole text."""
    block = document.blocks[target.block]
    if target.kind == "call":
        block = msgspec.structs.replace(block, calls=[block.calls[target.call]])
    return msgspec.structs.replace(document, blocks=[block], calls=list(block.calls))


def example_input(snapshot: Snapshot, number: int) -> dict[str, Any] | None:
    """The input of an example as it is written, comments and trailing commas allowed; None when it is no object."""
    node = _node(snapshot, f"/examples/{number}/input")
    arguments = node.to_python() if node is not None else None
    return arguments if is_object(arguments) else None


def expected_output(snapshot: Snapshot, number: int) -> tuple[bool, Any]:
    """Whether an example says what should come out, and what."""
    node = _node(snapshot, f"/examples/{number}/expectedOutput")
    return (False, None) if node is None else (True, node.to_python())


def expected_span(snapshot: Snapshot, number: int) -> Span | None:
    """Where an example says what should come out."""
    node = _node(snapshot, f"/examples/{number}/expectedOutput")
    return None if node is None else node.span


def expected_match(snapshot: Snapshot, number: int) -> Any:
    """What an example says about how its output is compared (``x-match``), if it does."""
    node = _node(snapshot, f"/examples/{number}/x-match")
    return None if node is None else node.to_python()


def _node(snapshot: Snapshot, pointer: str) -> JsonNode | None:
    return snapshot.manifest.tree.node_at(pointer)


def of_text(snapshot: Snapshot) -> list[Target]:
    """The blocks and calls of a text."""
    targets: list[Target] = []
    for number, block in enumerate(snapshot.document.blocks):
        if (not block.calls and block.state == "mention") or is_markup(snapshot, block):
            continue
        reason = _TEMPLATE if is_template(snapshot, block) else _why_not(block)
        names = tuple(call.tool_id for call in block.calls)
        targets.append(
            Target(
                "block",
                block.span,
                block.open,
                names,
                block=number,
                protocol=block.protocol,
                reason=reason,
                needs=_needs(snapshot, block, number),
            )
        )
        if len(block.calls) > 1:
            targets += [_of_call(block, number, place, call, reason) for place, call in enumerate(block.calls)]
        if len(targets) >= MAX_TARGETS:
            break
    return targets[:MAX_TARGETS]


def _needs(snapshot: Snapshot, block: Block, number: int) -> tuple[str, ...]:
    if "{{" not in snapshot.text[block.span[0] : block.span[1]]:
        return ()
    from tamis.server.analysis.running.variables import needed, variables_in

    return tuple(
        variable.name for variable in needed(block, snapshot.text, variables_in(snapshot)) if variable.block < number
    )


def _of_call(block: Block, number: int, place: int, call: Call, reason: str) -> Target:
    if not reason and not call.executable:
        reason = "this call is not complete, or has more than one reading"
    return Target(
        "call",
        call.span,
        call.tool_span,
        (call.tool_id,),
        block=number,
        call=place,
        step=call.step,
        protocol=block.protocol,
        reason=reason,
    )


def _why_not(block: Block) -> str:
    """The first reason why nothing of a block is run; empty when something is."""
    if any(call.executable for call in block.calls):
        return ""
    if block.aside:
        inside = any(diag.code == "TC017" for diag in block.diagnostics)
        return "it stands in reasoning" if inside else "it stands in an example"
    for level in ("error", "warning"):
        for diag in block.diagnostics:
            if severity(diag) == level:
                return message(diag)
    return "no call could be read here"


def of_manifest(snapshot: Snapshot) -> list[Target]:
    """A manifest and its examples."""
    root = snapshot.manifest.tree.root
    if root is None or root.kind != "object":
        return []
    tool_id = root.get("toolId")
    if tool_id is None or not isinstance(tool_id.value, str) or not tool_id.value:
        return []
    names = (tool_id.value,)
    examples = root.get("examples")
    items = examples.items if examples is not None and examples.kind == "array" else []
    reason = "" if snapshot.manifest.manifest is not None else "the manifest has errors; its tool is not registered"
    head = root.member("toolId")
    targets = [
        Target("manifest", root.span, head.key_span if head else root.span, names, examples=len(items), reason=reason)
    ]
    for number, item in enumerate(items[:MAX_TARGETS]):
        head_span = (item.span[0], min(item.span[0] + 1, item.span[1]))
        targets.append(Target("example", item.span, head_span, names, example=number, reason=reason))
    return targets


# Where a script failed: the innermost line of its own files in what Python, Node or Bun wrote on standard error. What a script writes is not trusted:
# only paths below the tool's folder count.


MAX_LINES = 400
MAX_PLACES = 10
_PYTHON = lazy(r'\s*File "/tool/([^"\n]{1,400})", line (\d{1,7})')
# `at name (/tool/x.js:3:5)`, `at file:///tool/x.mjs:3:5`, and the line `/tool/x.js:3` above the quoted source of a syntax error
_NODE = lazy(
    r"(?:\s*at [^\n]{0,400}?\(?(?:file://)?|(?:file://)?)/tool/([^:\n()]{1,400}):(\d{1,7})(?::\d{1,7})?\)?\s*$"
)


class Place(msgspec.Struct, frozen=True):
    """A line of a file of the tool: path relative to its folder, zero-based line."""

    path: str
    line: int


def places(logs: Sequence[str]) -> list[Place]:
    """The places that a failure names, the innermost first, each once; ``logs`` as an execution result has them."""
    python: list[Place] = []
    node: list[Place] = []
    for log in logs[-MAX_LINES:]:
        if not log.startswith("stderr: ") or "/tool/" not in log:
            continue
        line = log[len("stderr: ") : 1_000]
        if (match := _PYTHON.match(line)) is not None:
            python.append(_place(match[1], match[2]))
        elif (match := _NODE.match(line)) is not None:
            node.append(_place(match[1], match[2]))
    # Python names the innermost call last, Node first.
    places = [*reversed(python), *sorted(node, key=lambda place: place.line < 0)]
    return [place for place in dict.fromkeys(places) if place.line >= 0][:MAX_PLACES]


def _place(path: str, line: str) -> Place:
    clean = posixpath.normpath(path)
    outside = clean.startswith(("/", "..")) or "node_modules" in clean.split("/")
    return Place(clean, -1 if outside else max(0, int(line) - 1))
