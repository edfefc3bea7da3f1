"""What an MCP server lists as manifests whose handler calls its tools, so that calls go through the policy, the log and the checks.

Takes the result of ``tools/list`` as it comes: the answer, its result, the list, or one tool. Must not know how a server is started.
"""

from __future__ import annotations

from tamis.protocols.manifest.imported import Imported, ImportedTool, Note
from tamis.protocols.manifest.imports import MAX_TOOLS, distinct, import_one
from tamis.protocols.manifest.reading import is_semver, tool_id_fault
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

META = "dev.tamis/"
"""Prefix of what Tamis itself adds to a tool's ``_meta``."""


def import_mcp(data: Json, server: str) -> Imported:
    """The tools of a listing, called on ``server`` (its name in the operator's settings). Never raises."""
    listing, base = _listing(data)
    if listing is None:
        return Imported(why_not="it is no result of tools/list: there is no list 'tools'")
    tools: list[ImportedTool] = []
    notes: list[Note] = []
    if is_object(data) and "nextCursor" in str(list(data)) + str(list(_inner(data))):
        notes.append(
            Note("/nextCursor", "the listing goes on: ask for the next page and import it too", "tool-dropped")
        )
    for i, item in enumerate(listing[:MAX_TOOLS]):
        path = f"{base}/{i}" if listing is not data else f"/{i}"
        made = import_one("mcp", item, path) if is_object(item) else "it is no tool definition"
        if isinstance(made, ImportedTool) and is_object(item):
            tools.append(_called(made, item, server))
        else:
            notes.append(Note(path, f"left out: {made}", "tool-dropped"))
    if len(listing) > MAX_TOOLS:
        what = f"only the first {MAX_TOOLS} of {len(listing)} tools were converted"
        notes.append(Note(base, what, "tool-dropped"))
    return Imported(tuple(distinct(tools)), tuple(notes), "" if tools else "none of its entries is a tool definition")


def _inner(data: dict[str, Json]) -> dict[str, Json]:
    result = data.get("result")
    return result if is_object(result) else data


def _listing(data: Json) -> tuple[list[Json] | None, str]:
    if is_list(data):
        return data, ""
    if not is_object(data):
        return None, ""
    inner = _inner(data)
    listed = inner.get("tools")
    if is_list(listed):
        return listed, "/result/tools" if inner is not data else "/tools"
    return ([data], "") if "inputSchema" in data and "name" in data else (None, "")


def _called(tool: ImportedTool, item: dict[str, Json], server: str) -> ImportedTool:
    """The tool with the handler that calls it, and with what Tamis itself once said of it."""
    manifest: dict[str, Json] = {
        **tool.manifest,
        "handler": {"type": "mcp", "server": server, "tool": item.get("name", "")},
    }
    notes = [note for note in tool.notes if note.code != "handler-missing"]
    meta = item.get("_meta")
    if is_object(meta):
        own = {key.removeprefix(META): value for key, value in meta.items() if key.startswith(META)}
        if own and len(own) == len(meta):
            notes = [note for note in notes if not note.path.endswith("/_meta")]
        _restore(manifest, own)
        if manifest["toolId"] != tool.manifest["toolId"]:
            notes = [note for note in notes if note.code != "name-changed"]
    return ImportedTool(tool.name, manifest, tuple(notes))


def _restore(manifest: dict[str, Json], own: dict[str, Json]) -> None:
    tool_id, version, tags, examples = (own.get(key) for key in ("toolId", "version", "tags", "examples"))
    if isinstance(tool_id, str) and tool_id_fault(tool_id) is None:
        manifest["toolId"] = tool_id
    if isinstance(version, str) and is_semver(version):
        manifest["version"] = version
    if is_list(tags) and all(isinstance(tag, str) for tag in tags):
        manifest["tags"] = tags
    if is_list(examples) and all(is_object(example) and is_object(example.get("input")) for example in examples):
        manifest["examples"] = examples
