"""Call JSON of the vendors: OpenAI's tool calls, Anthropic's ``tool_use``, MCP's ``tools/call``.

One JSON document per conversion. Tool names are made fit for the vendor (``[A-Za-z0-9_-]``, a length), each change with a loss;
a call's own id is kept, others are counted, so that the same calls give the same document. Must not know where calls come from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from tamis.protocols.base import PlainCall
from tamis.protocols.model import Json
from tamis.protocols.writing.values import json_text

Vendor = Literal["openai", "anthropic", "mcp"]
VENDORS: tuple[Vendor, ...] = ("openai", "anthropic", "mcp")
TITLES: dict[str, str] = {
    "openai": "OpenAI's tool calls",
    "anthropic": "Anthropic's tool_use",
    "mcp": "MCP's tools/call",
}
TOOL_ID_META = "tamis/toolId"
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
        for tool_id in sorted(dict.fromkeys(tool_ids), key=lambda one: self._fit(one) != one):
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
    made = {"openai": _openai, "anthropic": _anthropic, "mcp": _mcp}[vendor](parts, names)
    return json_text_indented(made)


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
