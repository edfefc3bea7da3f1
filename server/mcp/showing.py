"""Prompts, resources and completion: what a host may show a person or a model beside tools.

Prompts are the instructions for hosts whose models write calls as text (ACTION, TAM, VCP). Resources are the definitions of the tools that are listed, and
the last results of this server whole, with logs and rights. Files are no resources here: they reach a model by tools alone. Holds no rules of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.export.losses import Losses
from tamis.protocols.export.targets import shown_parameters
from tamis.protocols.plugins import BUILT_IN
from tamis.protocols.schema.words import is_list, is_object
from tamis.server.mcp.revisions import Peer, as_object, completed
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.mcp.tools import Kept, Tools
    from tamis.server.runtime.texts.prompts import Prompts

RESOURCE_NOT_FOUND = -32002
"""Of the revisions before the stateless one, which has -32602 for it."""
TTL_MS = 5_000
MAX_VALUES = 100
MAX_RESULTS = 50
MAX_RESULT_BYTES = 8 * 1024 * 1024
TOOL = "tamis:tool/"
RESULT = "tamis-result:"
STYLES = ("full", "compact")
PROMPTS = {
    f"tools-{name}": (
        name,
        f"The tools, and how a call is written as {'an' if name[0] in 'aeiou' else 'a'} {name.upper()} block",
    )
    for name in BUILT_IN
}
ARGUMENTS = [
    {"name": "tools", "description": "Only these tools: names of tools/list, between commas.", "required": False},
    {"name": "style", "description": f"How much is told: {' or '.join(STYLES)}.", "required": False},
]


class Shown:
    """What one client may look at."""

    def __init__(self, tools: Tools, kept: Kept) -> None:
        self._tools = tools
        self._prompts: Prompts | None = None
        self._results = kept.results
        self._is_listed = kept.listed

    # Prompts

    def prompts(self, peer: Peer, _params: Mapping[str, Any]) -> dict[str, Any]:
        """``prompts/list``."""
        listed = [
            {"name": name, "title": words, "description": words, "arguments": ARGUMENTS}
            for name, (_, words) in PROMPTS.items()
        ]
        return completed(peer, {"prompts": listed}, ttl_ms=TTL_MS)

    def prompt(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``prompts/get``. Raises ``RpcError``."""
        from tamis.server.runtime.texts.prompts import PromptError, PromptRequest, Prompts

        name = params.get("name")
        known = PROMPTS.get(name) if isinstance(name, str) else None
        if known is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {str(name)[:200]}")
        arguments = as_object(params.get("arguments"))
        style = arguments.get("style", "full")
        if style not in STYLES:
            raise RpcError(INVALID_PARAMS, f"wrong params: style is {' or '.join(STYLES)} - at `$.arguments.style`")
        wanted = arguments.get("tools", "")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "wrong params: names between commas - at `$.arguments.tools`")
        names = [item.strip() for item in wanted.split(",") if item.strip()]
        ids = tuple(self._tools.find(name)[1].tool_id for name in names)
        self._prompts = self._prompts or Prompts()
        request = PromptRequest(protocol=known[0], style=style, tool_ids=ids or None)
        try:
            text = self._prompts.generate(self._tools.runtime, request).text
        except PromptError as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return completed(peer, {"description": known[1], "messages": [message]})

    # Resources

    def keep(self, result: ExecutionResult) -> str:
        """Keeps a result for a while; its address, empty for one that is too large."""
        encoded = msgspec.json.encode(result)
        if len(encoded) > MAX_RESULT_BYTES:
            return ""
        self._results[result.call_id] = encoded
        while len(self._results) > MAX_RESULTS or sum(map(len, self._results.values())) > MAX_RESULT_BYTES:
            self._results.popitem(last=False)
        return f"{RESULT}{result.call_id}"

    def _listed(self) -> list[str]:
        return list(self._results) if self._is_listed else []

    def resources(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``resources/list``: the tools that are listed, in the same pages, and behind the last one the results that are kept."""
        page, more = self._tools.page(params.get("cursor"))
        listed = [
            {
                "uri": f"{TOOL}{name}",
                "name": tool.tool_id,
                "title": tool.manifest.display_name,
                "description": "The definition of this tool.",
                "mimeType": "application/json",
            }
            for name, tool in page
        ]
        listing: dict[str, Any] = {"resources": listed}
        if more:
            listing["nextCursor"] = more
        else:
            words = "The result of this call, with its logs and rights."
            listed += [
                {"uri": f"{RESULT}{call_id}", "name": call_id, "description": words, "mimeType": "application/json"}
                for call_id in self._listed()
            ]
        return completed(peer, listing, ttl_ms=0)

    def templates(self, peer: Peer, _params: Mapping[str, Any]) -> dict[str, Any]:
        """``resources/templates/list``."""
        shown = [
            {"uriTemplate": f"{TOOL}{{name}}", "name": "tool", "description": "The definition of a tool, by its name."},
            {"uriTemplate": f"{RESULT}{{callId}}", "name": "result", "description": "The result of a call."},
        ]
        told = [{**item, "mimeType": "application/json"} for item in shown]
        return completed(peer, {"resourceTemplates": told}, ttl_ms=TTL_MS)

    def resource(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``resources/read``. Raises ``RpcError``."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "wrong params: a resource has a `uri` - at `$.uri`")
        encoded = self._results.get(uri.removeprefix(RESULT)) if uri.startswith(RESULT) else None
        if uri.startswith(TOOL):
            encoded = self._definition(uri.removeprefix(TOOL))
        if encoded is None:
            code = INVALID_PARAMS if peer.modern else RESOURCE_NOT_FOUND
            raise RpcError(code, "Resource not found", {"uri": uri[:2_000]})
        held = {"uri": uri, "mimeType": "application/json", "text": encoded.decode("utf-8", "replace")}
        return completed(peer, {"contents": [held]}, ttl_ms=0)

    def _definition(self, name: str) -> bytes | None:
        try:
            _, tool = self._tools.find(name)
        except RpcError:
            return None
        shown = dict(tool.manifest.raw)
        if "parameters" in shown:
            shown["parameters"] = shown_parameters(tool.manifest, Losses())
        return msgspec.json.encode(shown)

    # Completion

    def complete(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``completion/complete``: names of tools, styles, call ids; for the address of a tool the values that a parameter of its lists."""
        ref, argument = as_object(params.get("ref")), as_object(params.get("argument"))
        name, value = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise RpcError(
                INVALID_PARAMS, "wrong params: an argument has the texts `name` and `value` - at `$.argument`"
            )
        if ref.get("type") == "ref/prompt":
            if ref.get("name") not in PROMPTS:
                raise RpcError(INVALID_PARAMS, f"Unknown prompt: {str(ref.get('name'))[:200]}")
            completions = self._of_prompt(name, value)
        elif ref.get("type") == "ref/resource" and isinstance(ref.get("uri"), str):
            completions = self._of_resource(ref["uri"], name, value)
        else:
            raise RpcError(INVALID_PARAMS, "wrong params: a reference is a prompt or a resource - at `$.ref`")
        told = {"values": completions[:MAX_VALUES], "total": len(completions), "hasMore": len(completions) > MAX_VALUES}
        return completed(peer, {"completion": told})

    def _of_prompt(self, name: str, value: str) -> list[str]:
        if name == "style":
            return [style for style in STYLES if style.startswith(value)]
        if name != "tools":
            return []
        before, comma, last = value.rpartition(",")
        return [f"{before}{comma}{name}" for name in self._tools.names() if name.startswith(last.strip())]

    def _of_resource(self, uri: str, name: str, value: str) -> list[str]:
        if uri == f"{TOOL}{{name}}" and name == "name":
            return [name for name in self._tools.names() if name.startswith(value)]
        if uri == f"{RESULT}{{callId}}" and name == "callId":
            return [item for item in self._listed() if item.startswith(value)]
        if not uri.startswith(TOOL):
            return []
        try:
            _, tool = self._tools.find(uri.removeprefix(TOOL))
        except RpcError:
            return []
        properties = shown_parameters(tool.manifest, Losses()).get("properties")
        part = properties.get(name) if is_object(properties) else None
        listed = part.get("enum") if is_object(part) else None
        return [item for item in listed if isinstance(item, str) and item.startswith(value)] if is_list(listed) else []
