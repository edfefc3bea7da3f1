"""Prompts, resources and completion: what a host may show a person or a model beside tools.

Prompts are the instructions for hosts whose models write calls as text (ACTION, TAM, VCP). Resources are the definitions of the tools that are listed, the
agents' profiles, the files behind ``fam://`` that the policy shows, and the last results of this server whole, with logs and rights. Holds no rules of its own.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.export.losses import Losses
from tamis.protocols.export.targets import shown_parameters
from tamis.protocols.invisible import visible_line
from tamis.protocols.plugins import BUILT_IN
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.suggest import best, hint
from tamis.server.mcp.revisions import Peer, as_object, completed
from tamis.server.mcp.tools import PAGE, read_cursor, write_cursor
from tamis.server.rpc.aside import aside
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.mcp.tools import Kept, Tools
    from tamis.server.runtime.policy.resources import ShownPlaces
    from tamis.server.runtime.texts.prompts import Prompts

T = TypeVar("T")
RESOURCE_NOT_FOUND = -32002
"""Of the revisions before the stateless one, which has -32602 for it."""
TTL_MS = 5_000
MAX_VALUES = 100
MAX_RESULTS = 50
MAX_RESULT_BYTES = 8 * 1024 * 1024
TOOL = "tamis:tool/"
RESULT = "tamis-result:"
PROFILE = "tamis:profile"
"""The profile in force; behind ``/`` that of an agent."""
PLACE = "fam://"
FILES = f"{PLACE}{{place}}/{{+path}}"
JSON = "application/json"
BYTES = "application/octet-stream"
MAX_FOLLOWED = 100
"""So many resources one client may follow."""
LOOK_S = 1.0
_PACKED = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz"}
_TEXTS = {
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".ts": "",
}
"""What the table of the library lacks in some versions; TypeScript is more often meant than video."""
_MEDIA = ("image/", "audio/", "video/", "font/")
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


def _observed(encoded: bytes | None) -> bytes | None:
    """A kept result with the observation that no call waited for (``told_later``)."""
    if encoded is None:
        return None
    result = msgspec.json.decode(encoded, type=ExecutionResult)
    if result.observation:
        return encoded
    from tamis.protocols.observation import observation

    result.observation = observation(result, "action")
    return msgspec.json.encode(result)


class Shown:
    """What one client may look at."""

    def __init__(self, tools: Tools, kept: Kept) -> None:
        self._tools = tools
        self._prompts: Prompts | None = None
        self._kept = kept
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
            raise _unknown_prompt(name)
        arguments = as_object(params.get("arguments"))
        style = arguments.get("style", "full")
        if style not in STYLES:
            raise RpcError(INVALID_PARAMS, f"wrong params: style is {' or '.join(STYLES)} - at `/arguments/style`")
        wanted = arguments.get("tools", "")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "wrong params: names between commas - at `/arguments/tools`")
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
        kept, results = self._kept, self._kept.results
        kept.result_bytes += len(encoded) - len(results.pop(result.call_id, b""))
        results[result.call_id] = encoded
        while len(results) > MAX_RESULTS or kept.result_bytes > MAX_RESULT_BYTES:
            kept.result_bytes -= len(results.popitem(last=False)[1])
        return f"{RESULT}{result.call_id}"

    def _listed(self) -> list[str]:
        return list(self._kept.results) if self._is_listed else []

    async def resources(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``resources/list``: the tools that are listed, profiles, files, and behind the last of them the results that are kept."""
        cursor, after = params.get("cursor"), ""
        listed: list[dict[str, Any]] = []
        try:
            page, more = self._tools.page(cursor)
        except RpcError:
            after = read_cursor(cursor, "u")
        else:
            listed = [
                _entry(f"{TOOL}{name}", tool.tool_id, "The definition of this tool.", title=tool.manifest.display_name)
                for name, tool in page
            ]
            if more:
                return completed(peer, {"resources": listed, "nextCursor": more}, ttl_ms=0)
        others = [entry for entry in await self._others() if entry["uri"] > after]
        room = PAGE - len(listed)
        listing: dict[str, Any] = {"resources": [*listed, *others[:room]]}
        if len(others) > room:
            listing["nextCursor"] = write_cursor(others[room - 1]["uri"] if room else "", "u")
        else:
            words = "The result of this call, with its logs and rights."
            listing["resources"] += [_entry(f"{RESULT}{call_id}", call_id, words) for call_id in self._listed()]
        return completed(peer, listing, ttl_ms=0)

    async def _others(self) -> list[dict[str, Any]]:
        """Files and profiles, by URI."""
        profiles = [
            _entry(uri, name, "What the agent may call: toolCallConfig and tool_ids_inventory.")
            for uri, name in self._profiles().items()
        ]
        if not self._tools.runtime.settings.resources:
            return profiles
        files = await self._in_places(lambda places: places.files())
        shown = [
            _entry(file.uri, file.path.rpartition("/")[2], "", mime=mime_of(file.path), size=file.size)
            for file in files
        ]
        return [*shown, *profiles]

    async def _in_places(self, work: Callable[[ShownPlaces], T]) -> T:
        """Work on the places that are shown now, away from the loop: a disk may be slow."""
        from tamis.server.runtime.policy.resources import ShownPlaces

        runtime = self._tools.runtime
        settings, root, registry, outside = runtime.settings, runtime.root, runtime.registry, runtime.gate.is_trusted()
        return await aside(lambda: work(ShownPlaces(settings, root, registry, outside=outside)))

    def _profiles(self) -> dict[str, str]:
        """The profiles that there are: by URI, whose each is. None but the configured one is read for it."""
        from tamis.server.runtime.settings.profile import agents_beside

        runtime = self._tools.runtime
        profiles = {PROFILE: "agent profile"} if runtime.agent.profile is not None else {}
        return profiles | {f"{PROFILE}/{name}": name for name in agents_beside(runtime.root, runtime.settings.profile)}

    def templates(self, peer: Peer, _params: Mapping[str, Any]) -> dict[str, Any]:
        """``resources/templates/list``."""
        shown = [
            (f"{TOOL}{{name}}", "tool", "The definition of a tool, by its name.", JSON),
            (f"{RESULT}{{callId}}", "result", "The result of a call.", JSON),
            (f"{PROFILE}/{{agentId}}", "profile", "What an agent may call.", JSON),
            (FILES, "file", "A file of one of the places behind fam://.", ""),
        ]
        told = [
            {"uriTemplate": uri, "name": name, "description": words} | ({"mimeType": mime} if mime else {})
            for uri, name, words, mime in shown
        ]
        return completed(peer, {"resourceTemplates": told}, ttl_ms=TTL_MS)

    async def resource(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``resources/read``. Raises ``RpcError``."""
        uri = uri_of(params)
        if uri[: len(PLACE)].lower() == PLACE:
            held = await self._file(peer, uri)
        elif (encoded := self._encoded(uri)) is not None:
            held = {"mimeType": JSON, "text": encoded.decode("utf-8", "replace")}
        else:
            raise not_found(peer, uri, near=best(uri, self._addresses()))
        return completed(peer, {"contents": [{"uri": uri, **held}]}, ttl_ms=0)

    def _addresses(self) -> list[str]:
        """What this client may read that is no file."""
        tools, results = self._tools.names(), self._listed()
        return [*(f"{TOOL}{name}" for name in tools), *(f"{RESULT}{item}" for item in results), *self._profiles()]

    async def _file(self, peer: Peer, uri: str) -> dict[str, Any]:
        from tamis.server.runtime.policy.resources import ResourceError

        try:
            content = await self._in_places(lambda places: places.read(uri))
        except (ResourceError, OSError) as error:
            raise not_found(peer, uri, str(error)) from None
        return as_content(uri, content)

    def _encoded(self, uri: str) -> bytes | None:
        """What a resource that is no file holds, as JSON; None where there is none."""
        if uri.startswith(RESULT):
            return _observed(self._kept.results.get(uri.removeprefix(RESULT)))
        if uri.startswith(TOOL):
            return self._definition(uri.removeprefix(TOOL))
        if uri not in self._profiles():
            return None
        runtime = self._tools.runtime
        profile = runtime.agent_for(uri.removeprefix(PROFILE).removeprefix("/")).profile
        if profile is None:
            return None
        raw = profile.raw
        return msgspec.json.encode({key: raw[key] for key in ("toolCallConfig", "tool_ids_inventory") if key in raw})

    async def stamps(self, uris: Iterable[str]) -> dict[str, object]:
        """What tells that a resource is another than before; None for one that is not there."""
        files = [uri for uri in uris if uri[: len(PLACE)].lower() == PLACE]
        stamps: dict[str, object] = {uri: self._encoded(uri) for uri in uris if uri not in files}
        if files:
            stamps |= await self._in_places(lambda places: {uri: places.stamp(uri) for uri in files})
        return stamps

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

    async def complete(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``completion/complete``: names of tools, styles, call ids, agents, places and paths; for the address of a tool the values that a parameter of its lists."""
        ref, argument = as_object(params.get("ref")), as_object(params.get("argument"))
        name, value = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise RpcError(
                INVALID_PARAMS, "wrong params: an argument has the texts `name` and `value` - at `/argument`"
            )
        if ref.get("type") == "ref/prompt":
            if ref.get("name") not in PROMPTS:
                raise _unknown_prompt(ref.get("name"))
            completions = self._of_prompt(name, value)
        elif ref.get("type") == "ref/resource" and ref.get("uri") == FILES:
            place = as_object(as_object(params.get("context")).get("arguments")).get("place")
            completions = await self._in_places(lambda places: _of_files(places, name, value, place))
        elif ref.get("type") == "ref/resource" and isinstance(ref.get("uri"), str):
            completions = self._of_resource(ref["uri"], name, value)
        else:
            raise RpcError(INVALID_PARAMS, "wrong params: a reference is a prompt or a resource - at `/ref`")
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
        if uri == f"{PROFILE}/{{agentId}}" and name == "agentId":
            agents = [uri.removeprefix(f"{PROFILE}/") for uri in self._profiles() if uri != PROFILE]
            return [agent for agent in agents if agent.startswith(value)]
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


def uri_of(params: Mapping[str, Any]) -> str:
    """The resource that a request names. Raises ``RpcError``."""
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RpcError(INVALID_PARAMS, "wrong params: a resource has a `uri` - at `/uri`")
    return uri


def _unknown_prompt(name: object) -> RpcError:
    near = hint(best(name, PROMPTS)) if isinstance(name, str) else ""
    return RpcError(INVALID_PARAMS, f"Unknown prompt: {str(name)[:200]}{near}")


def not_found(peer: Peer, uri: str, why: str = "", near: str | None = None) -> RpcError:
    """That there is no such resource for this client, in the words of its revision; ``near`` is the one that may have been meant."""
    code = INVALID_PARAMS if peer.modern else RESOURCE_NOT_FOUND
    told = {"uri": uri[:2_000], "reason": why} if why else {"uri": uri[:2_000]}
    return RpcError(code, f"Resource not found{hint(near)}", told)


def _entry(
    uri: str, name: str, description: str, *, title: str = "", mime: str = JSON, size: int | None = None
) -> dict[str, Any]:
    words = {"title": visible_line(title), "description": description, "mimeType": mime}
    entry: dict[str, Any] = {
        "uri": uri,
        "name": visible_line(name),
        **{key: word for key, word in words.items() if word},
    }
    return entry if size is None else {**entry, "size": size}


def mime_of(path: str) -> str:
    """The media type that a file's name stands for; empty for one that says nothing. The same on every machine."""
    import mimetypes

    # behind a slash no name is taken for an address of the scheme `data`, which names a type of its own
    kind, packed = mimetypes.MimeTypes(filenames=()).guess_type(f"/{path.rpartition('/')[2]}", strict=True)
    if packed:
        return _PACKED.get(packed, BYTES)
    return _TEXTS.get(os.path.splitext(path)[1].lower(), kind or "")


def _of_files(places: ShownPlaces, name: str, value: str, place: object) -> list[str]:
    if name == "place":
        return [place for place in places.tops if place.startswith(value)]
    if name != "path" or not isinstance(place, str) or place not in places.tops:
        return []
    # the template keeps escapes as they are, so only the sign of one is an escape here
    return [file.path.replace("%", "%25") for file in places.files(place, value.replace("%25", "%"))]


def as_content(uri: str, content: bytes) -> dict[str, Any]:
    """What a file holds, as ``resources/read`` tells it: text where it is some, else bytes."""
    mime = mime_of(uri)
    try:
        text = content.decode("utf-8") if b"\0" not in content else None
    except UnicodeDecodeError:
        text = None
    if text is None:
        return {"mimeType": mime or BYTES, "blob": base64.b64encode(content).decode("ascii")}
    is_media = mime.startswith(_MEDIA) and not mime.endswith("+xml")
    return {"mimeType": "text/plain" if is_media or not mime else mime, "text": text}


class Following:
    """Looks whether resources changed, as long as the client follows some."""

    def __init__(self, shown: Shown, tell: Callable[[str], None]) -> None:
        """``tell`` is told of each resource that changed."""
        self._shown = shown
        self._tell = tell
        self._known: dict[str, object] = {}
        self._wanted: dict[str, int] = {}
        self._looking: asyncio.Task[None] | None = None

    async def begin(self, uris: Iterable[str]) -> list[str]:
        """Follows those of the resources that are there, and says which. Raises ``RpcError`` for too many."""
        stamps = {uri: stamp for uri, stamp in (await self._shown.stamps(uris)).items() if stamp is not None}
        if len(self._wanted.keys() | stamps.keys()) > MAX_FOLLOWED:
            raise RpcError(INVALID_PARAMS, f"at most {MAX_FOLLOWED} resources are followed at once")
        for uri, stamp in stamps.items():
            self._known.setdefault(uri, stamp)
            self._wanted[uri] = self._wanted.get(uri, 0) + 1
        if self._looking is None and self._wanted:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        return list(stamps)

    def end(self, uris: Iterable[str]) -> None:
        """Follows them no more for one of those who asked."""
        for uri in uris:
            left = self._wanted.pop(uri, 0) - 1
            if left > 0:
                self._wanted[uri] = left
            else:
                self._known.pop(uri, None)
        if not self._wanted:
            self.close()

    def close(self) -> None:
        """Looks no more."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                stamps = await self._shown.stamps(tuple(self._wanted))
            except Exception:  # what cannot be looked at now is looked at again
                continue
            for uri, stamp in stamps.items():
                if uri in self._known and self._known[uri] != stamp:
                    self._known[uri] = stamp
                    self._tell(uri)
