"""Converting calls without a text: what a target can have of each, and the calls written in it.

Must not know blocks or the text that calls stood in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, cast

import msgspec

from tamis.protocols.base import PlainCall, Refusal, Shape, WriteOptions, Written
from tamis.protocols.calljson.forms import FoundCall, find_calls
from tamis.protocols.catalogue import message
from tamis.protocols.contract import Loss
from tamis.protocols.convert.plain import reading_of
from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.model import MCP_META, Block, Diag, Json, ReadOptions, ToolHint, escape_pointer
from tamis.protocols.plugins import extras_of, find_protocol
from tamis.protocols.writing.values import Expectations, as_text, fault_of, json_text

# Call JSON of the vendors: OpenAI's tool calls, Anthropic's ``tool_use``, MCP's ``tools/call``. One JSON document per conversion. Tool names are made
# fit for the vendor (``[A-Za-z0-9_-]``, a length), each change with a loss; a call's own id is kept, others are counted, so that the same calls give
# the same document.


Vendor = Literal["openai", "anthropic", "mcp"]
VENDORS: tuple[Vendor, ...] = ("openai", "anthropic", "mcp")
TITLES: dict[str, str] = {
    "openai": "OpenAI's tool calls",
    "anthropic": "Anthropic's tool_use",
    "mcp": "MCP's tools/call",
}
TOOL_ID_META = f"{MCP_META}toolId"
"""The key in MCP's ``_meta`` under which a changed tool id stays."""
_LENGTHS: dict[str, int] = {"openai": 64, "anthropic": 128, "mcp": 64}
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


class Part(msgspec.Struct, frozen=True):
    """A stretch of the source: text, or a call with its index."""

    text: str = ""
    call: PlainCall | None = None


class Names:
    """Vendor names for tool ids: the same id has one name, and two ids never share one."""

    def __init__(self, vendor: str) -> None:
        self._length = _LENGTHS[vendor]
        self._by_id: dict[str, str] = {}
        self._taken: set[str] = set()

    def add(self, tool_ids: Sequence[str]) -> None:
        """Names for all ids, those that fit as they are first, so that none of them has to give way."""
        for tool_id in sorted(dict.fromkeys(tool_ids), key=lambda item: self._fit(item) != item):
            base = self._fit(tool_id)
            name, n = base, 1
            while name in self._taken:
                n += 1
                name = f"{base[: self._length - len(str(n)) - 1]}_{n}"
            self._taken.add(name)
            self._by_id[tool_id] = name

    def of(self, tool_id: str) -> str:
        """The name of an id that was added."""
        return self._by_id[tool_id]

    def _fit(self, tool_id: str) -> str:
        return _OTHER.sub("_", tool_id)[: self._length]


def document(parts: Sequence[Part], vendor: Vendor, names: Names) -> str:
    """The JSON document of texts and calls in order, indented, with a line end."""
    vendor_calls = {"openai": _openai, "anthropic": _anthropic, "mcp": _mcp}[vendor](parts, names)
    return json_text_indented(vendor_calls)


def json_text_indented(value: Json) -> str:
    """JSON with two blanks of indentation and a line end."""
    import json

    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _openai(parts: Sequence[Part], names: Names) -> Json:
    """The assistant's message; all text is its content, since there is one place for it."""
    content = "".join(part.text for part in parts)
    calls: list[Json] = []
    for call in _calls(parts):
        function: Json = {"name": names.of(call.tool_id), "arguments": json_text(call.args)}
        call_id = call.meta.get("id", f"call_{len(calls) + 1}")
        calls.append({"id": call_id, "type": "function", "function": function})
    if not calls:
        # An empty list is refused by vendors, and so is a message with neither text nor calls.
        return {"role": "assistant", "content": content}
    return {"role": "assistant", "content": content if content.strip() else None, "tool_calls": calls}


def _anthropic(parts: Sequence[Part], names: Names) -> Json:
    """The assistant's message; texts and calls are blocks in their order."""
    content: list[Json] = []
    n = 0
    for part in parts:
        if part.call is not None:
            n += 1
            name = names.of(part.call.tool_id)
            call_id = part.call.meta.get("id", f"toolu_{n}")
            content.append({"type": "tool_use", "id": call_id, "name": name, "input": part.call.args})
        elif part.text.strip():
            content.append({"type": "text", "text": part.text})
    return {"role": "assistant", "content": content}


def _mcp(parts: Sequence[Part], names: Names) -> Json:
    """One request, or a list of them."""
    requests: list[Json] = []
    for call in _calls(parts):
        name = names.of(call.tool_id)
        params: dict[str, Json] = {"name": name, "arguments": call.args}
        if name != call.tool_id:
            params["_meta"] = {TOOL_ID_META: call.tool_id}
        call_id: Json = call.meta.get("id", len(requests) + 1)
        if call.number_id is not None:
            call_id = call.number_id
        requests.append({"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params})
    return requests[0] if len(requests) == 1 else requests


def _calls(parts: Sequence[Part]) -> list[PlainCall]:
    return [part.call for part in parts if part.call is not None]


# Losses of a conversion: the catalogue's sentences with the place in the list of calls. TC050 and TC051 say that a call cannot be written and is left
# as it is; the others say what did not come along.


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
    extras = extras_of(protocol)
    if not extras.loses_types:
        return []
    from tamis.protocols.action.write import has_elements

    expectation = expectations.of(call.tool_id)
    losses: list[Loss] = []
    for name, value in call.args.items():
        if isinstance(value, str) or (extras.elements and has_elements(value)):
            continue
        if expectation.verdict(name, as_text(value), value) != "exact":
            path = f"/calls/{index}/args/{escape_pointer(name)}"
            losses.append(loss("TC054", path, what=f"The value of '{name}'", protocol=title))
    return losses


CALL_JSON = "json"
"""The protocol of whole documents: JSON inside prose is never a call."""


class ConvertOptions(msgspec.Struct, frozen=True):
    """How calls are converted. ``tools`` by id (and alias) type what a text holds, and let a schema carry what a text cannot."""

    tools: dict[str, ToolHint] = {}
    shape: Shape | None = None
    """The shape of ACTION; None writes tags, and ``<inputs>`` where tags cannot carry the calls."""
    reading: ReadOptions = ReadOptions()
    """How the text was read; what was made is read the same way."""


class Conversion(msgspec.Struct, frozen=True):
    """The converted text and what did not come along, in the order of the calls.

    A loss of TC050 or TC051 means that its call was not converted: in a text it stands as it was, in a list it is missing.
    """

    text: str
    losses: list[Loss]

    @property
    def refused(self) -> bool:
        """Whether any call was not converted."""
        return any(loss.code in ("TC050", "TC051", "TC055") for loss in self.losses)


class Ready(msgspec.Struct, frozen=True):
    """A call that can be written: ``index`` is its place in the list of calls."""

    index: int
    call: PlainCall


def title_of(to: str) -> str:
    """A target's name in sentences."""
    return TITLES.get(to) or extras_of(to).title or to


def convert_list(calls: Sequence[PlainCall], to: str, options: ConvertOptions) -> Conversion:
    """A list of calls as one text or document of the target; a call that it cannot carry is left out, with its losses."""
    losses: list[Loss] = []
    ready: list[Ready] = []
    for index, call in enumerate(calls):
        plain, more = make_ready(call, index, index + 1, to, options)
        losses += more
        if plain is not None:
            ready.append(Ready(index, plain))
    if to in VENDORS:
        text, more = vendor_document(
            [Part(call=ready_call.call) for ready_call in ready], [ready_call.index for ready_call in ready], to
        )
    else:
        text, more = write_ready(ready, to, options)
        text += "\n" if text else ""
    return Conversion(text, losses + more)


def make_ready(
    call: PlainCall, index: int, position: int, to: str, options: ConvertOptions
) -> tuple[PlainCall | None, list[Loss]]:
    """The call as the target can have it, or None with the reasons."""
    title = title_of(to)
    refusals = by_address(call, index, to, title)
    if refusals:
        return None, refusals
    plain, losses = without_extras(call, index, position, to, title)
    if to in VENDORS and (faults := _json_faults(plain, index, title)):
        return None, faults
    return plain, losses


def _json_faults(call: PlainCall, index: int, title: str) -> list[Loss]:
    if not call.tool_id or fault_of(call.tool_id) is not None:
        why = "it is empty, or holds half of a surrogate pair"
        return [loss("TC050", f"/calls/{index}/toolId", what="The tool id", protocol=title, why=why)]
    fault = fault_of(dict(call.args))
    if fault is None:
        return []
    return [loss("TC050", f"/calls/{index}/args{fault[0]}", what="The value", protocol=title, why=fault[1])]


def write_ready(ready: list[Ready], to: str, options: ConvertOptions) -> tuple[str, list[Loss]]:
    """Calls in a protocol's canonical spelling; calls that cannot be written are left out, with their losses."""
    protocol = find_protocol(to)
    assert protocol is not None
    indices = [ready_call.index for ready_call in ready]
    calls = [ready_call.call for ready_call in ready]
    written: Written = protocol.write_calls(calls, WriteOptions(shape=options.shape or "tag", tools=options.tools))
    if "inputs" in extras_of(to).shapes and options.shape is None and written.refusals:
        # The other shape carries any name (ruling 12).
        other = protocol.write_calls(calls, WriteOptions(shape="inputs", tools=options.tools))
        written = other if _refused_calls(other) < _refused_calls(written) else written
    losses = [refused(refusal, indices) for refusal in written.refusals]
    out = {loss.path.split("/")[2] for loss in losses}
    expectations = Expectations(options.tools, reading_of(to))
    for ready_call in ready:
        if str(ready_call.index) not in out:
            losses += types_lost(ready_call.call, ready_call.index, to, title_of(to), expectations)
    return written.text, losses


def _refused_calls(written: Written) -> int:
    return len({refusal.path.split("/")[1] for refusal in written.refusals})


def vendor_document(parts: Sequence[Part], indices: list[int], to: str) -> tuple[str, list[Loss]]:
    """Texts and calls as a vendor's document; ``indices`` are the places of the calls, for the losses."""
    vendor = cast("Vendor", to)
    names = Names(vendor)
    calls = [part.call for part in parts if part.call is not None]
    names.add([call.tool_id for call in calls])
    losses: list[Loss] = []
    told: set[str] = set()
    for index, call in zip(indices, calls, strict=True):
        name = names.of(call.tool_id)
        if name != call.tool_id and call.tool_id not in told:
            told.add(call.tool_id)
            args: dict[str, str | int] = {"protocol": title_of(to), "name": call.tool_id, "other": name}
            losses.append(loss("TC053", f"/calls/{index}/toolId", **args))
    return document(parts, vendor, names), losses


# What a vendor's JSON says around its calls: members that no conversion carries, and ids that are numbers.


_OF_MESSAGE = frozenset(("role", "type", "content", "tool_calls", "function_call"))
_OF_FORM = {"openai": frozenset(("type", "index", "function")), "mcp": frozenset(("jsonrpc", "method", "params"))}
_OF_OTHERS = frozenset(("type",))
"""What every target says in its own way."""


class CallEnvelope(msgspec.Struct, frozen=True):
    """What is said beside a call's name, arguments and id, by the members' names; the id if it is a whole number."""

    members: tuple[str, ...]
    number_id: int | None


class Envelope(msgspec.Struct, frozen=True):
    """Of a document of call JSON: its calls in order, and the members of the message that are not carried."""

    calls: tuple[CallEnvelope, ...] = ()
    members: tuple[str, ...] = ()


def read_envelope(text: str, block: Block) -> Envelope:
    """The envelope of a block of call JSON whose calls can all run. Never raises."""
    from tamis.protocols.jsontext.parse import parse_json

    root = parse_json(text[block.span[0] : block.span[1]]).root
    found_calls = find_calls(root, bare=True) if root is not None else None
    if root is None or found_calls is None:
        return Envelope()
    calls = tuple(CallEnvelope(tuple(_beside(call)), _number(call.call_id)) for call in found_calls)
    members: list[str] = []
    if root.kind == "object" and not any(call.node is root for call in found_calls):
        members += [member.key for member in root.members if member.key not in _OF_MESSAGE and _says(member)]
        content = root.get("content")
        for item in content.items if content is not None else ():
            kind = item.get("type")
            if kind is not None and kind.value == "text":
                members += [
                    member.key for member in item.members if member.key not in ("type", "text") and _says(member)
                ]
    return Envelope(calls, tuple(dict.fromkeys(members)))


def members_lost(members: Sequence[str], path: str, title: str) -> list[Loss]:
    """A loss for each member, below the place of what it stood beside."""
    why = "it has no place for it"
    return [
        loss(
            "TC052",
            f"{path}/{escape_pointer(name)}" if path else "",
            what=f"The member '{name}'",
            protocol=title,
            why=why,
        )
        for name in members
    ]


def _beside(call: FoundCall) -> Iterator[str]:
    inner = call.node.get({"openai": "function", "mcp": "params"}.get(call.form, ""))
    own = _OF_FORM.get(call.form, _OF_OTHERS)
    for node in (call.node, inner):
        for member in node.members if node is not None and node.kind == "object" else ():
            ours = any(member is own_member for own_member in (call.name, call.args)) or member.value is call.call_id
            if not ours and _says(member) and (node is inner or member.key not in own):
                yield member.key


def _number(node: JsonNode | None) -> int | None:
    value = node.value if node is not None and node.kind == "number" else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _says(member: Member) -> bool:
    """Whether the member holds anything: vendors write ``null`` and empty lists for what is not there."""
    node = member.value
    return node is not None and (bool(node.members) or bool(node.items) or node.value not in (None, ""))
