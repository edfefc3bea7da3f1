"""Tool definitions of other projects as Tamis manifests: what ruling 32 says of files with a foreign shape.

Data in, data out: each result is a manifest that reads without errors, and a list of what was assumed or did not fit. Nothing
is dropped without a word. Prose is read only for VCP (``vcp_plugin.py``), where parameters stand nowhere else. Must not know
files or editors.
"""

from __future__ import annotations

from tamis.protocols.manifest.foreign import SCRIPTED, Shape
from tamis.protocols.manifest.foreign_fields import (
    RIGHTS,
    Say,
    is_secret_setting,
    json_type,
    json_types,
    next_step,
    rights_of,
)
from tamis.protocols.manifest.imported import (
    NAMESPACE,
    Imported,
    ImportedTool,
    Note,
    fit_name,
    fit_version,
    script_handler,
    start,
    teller,
    text_of,
    title_of,
)
from tamis.protocols.manifest.reading import is_semver, tool_id_fault
from tamis.protocols.model import MCP_META, Json
from tamis.protocols.schema.words import JSON_TYPES, is_list, is_object

MAX_TOOLS = 500


def import_tools(shape: Shape, data: Json) -> Imported:
    """The manifests of a foreign file. Never raises; what cannot be a manifest is named in ``why_not`` or in the notes."""
    if shape == "openapi":
        return Imported(
            why_not="an OpenAPI document has operations of an HTTP service, which no script of its own runs"
        )
    if shape in ("mcpServers", "mcpb"):
        return Imported(why_not=f"it says how to start an MCP server, not what its tools take{_variables_of(data)}")
    if shape == "list":
        return _import_list(data)
    if not is_object(data):
        return Imported(why_not="it is no object")
    if shape == "vcp":
        from tamis.protocols.manifest.vcp_plugin import import_plugin

        return import_plugin(data)
    tool = import_one(shape, data, "")
    return Imported((tool,)) if isinstance(tool, ImportedTool) else Imported(why_not=tool)


def _variables_of(data: Json) -> str:
    """What becomes of the variables of MCP servers, as the end of a sentence; empty where none looks like a key."""
    servers = data.get("mcpServers") if is_object(data) else None
    names: list[str] = []
    for server in servers.values() if is_object(servers) else ():
        variables = server.get("env") if is_object(server) else None
        names += [name for name in variables if is_secret_setting(name)] if is_object(variables) else []
    if not names:
        return ""
    return f"; of its variables name {', '.join(dict.fromkeys(names))} in mcpServers.NAME.secrets: {next_step(names)}"


def _import_list(data: Json) -> Imported:
    base = ""
    if is_object(data):
        base = "/tools" if is_list(data.get("tools")) else "/functions"
        data = data.get(base[1:])
    if not is_list(data):
        return Imported(why_not="it holds no list of tools")
    tools: list[ImportedTool] = []
    notes: list[Note] = []
    for i, item in enumerate(data[:MAX_TOOLS]):
        path = f"{base}/{i}"
        shape = entry_shape(item)
        outcome = import_one(shape, item, path) if shape is not None and is_object(item) else "it is no tool definition"
        if isinstance(outcome, ImportedTool):
            tools.append(outcome)
        else:
            notes.append(Note(path, f"left out: {outcome}", "tool-dropped"))
    if len(data) > MAX_TOOLS:
        notes.append(Note(base, f"only the first {MAX_TOOLS} of {len(data)} tools were converted", "tool-dropped"))
    why_not = "" if tools else "none of its entries is a tool definition"
    return Imported(tuple(distinct(tools)), tuple(notes), why_not)


def distinct(tools: list[ImportedTool]) -> list[ImportedTool]:
    """Tools with different names: a second one of the same name gets a number."""
    taken: set[str] = set()
    imported_tools: list[ImportedTool] = []
    for tool in tools:
        name, number = tool.name, 2
        while name in taken:
            name, number = f"{tool.name}-{number}", number + 1
        taken.add(name)
        if name != tool.name:
            manifest = {**tool.manifest, "toolId": f"{NAMESPACE}:{name}"}
            manifest.pop("aliases", None)
            note = Note("/name", f"the name '{tool.name}' is there twice: this tool is '{name}'", "name-changed")
            tool = ImportedTool(name, manifest, (*tool.notes, note))
        imported_tools.append(tool)
    return imported_tools


def shape_of(data: Json) -> Shape | None:
    """Which shape a document of tool definitions has: a list, an object with a list, or one definition."""
    if is_list(data):
        return "list"
    if is_object(data) and any(is_list(data.get(key)) for key in ("tools", "functions")):
        return "list"
    return entry_shape(data)


def entry_shape(item: Json) -> Shape | None:
    """Which shape one definition has."""
    if not is_object(item):
        return None
    if is_object(item.get("function")) or ("name" in item and "parameters" in item):
        return "openai"
    if "inputSchema" in item:
        return "mcp"
    if "input_schema" in item:
        return "anthropic"
    if "implementation" in item:
        return "implementation"
    if is_list(item.get("arguments")):
        return "arguments"
    if "name" in item and any(key in item for key in SCRIPTED):
        return "scripted"
    return "openai" if "name" in item and "description" in item else None


_TAKEN: dict[Shape, frozenset[str]] = {
    "openai": frozenset({"name", "description", "parameters", "type"}),
    "arguments": frozenset({"name", "title", "description", "arguments"}),
    "scripted": frozenset({"name", "title", "displayName", "description", "version", "schema", "tags", "type"}),
    "anthropic": frozenset({"name", "description", "input_schema", "input_examples", "type"}),
    "mcp": frozenset({"name", "title", "description", "inputSchema", "outputSchema", "annotations"}),
    "implementation": frozenset(
        {
            "id",
            "name",
            "title",
            "displayName",
            "description",
            "version",
            "parameters",
            "implementation",
            "tags",
            "output",
        }
    ),
}
_SCHEMAS = {
    "openai": "parameters",
    "anthropic": "input_schema",
    "mcp": "inputSchema",
    "implementation": "parameters",
    "scripted": "schema",
}


def import_one(shape: Shape, data: dict[str, Json], path: str) -> ImportedTool | str:
    """One definition as a manifest, or why it is none."""
    if shape == "openai" and is_object(inner := data.get("function")):
        data, path = inner, f"{path}/function"
    name = text_of(data.get("name")) or text_of(data.get("id"))
    if not name:
        return "it has no name"
    notes: list[Note] = []

    say = teller(notes, path)
    bare = fit_name(name)
    if bare != name:
        say("name", f"the name '{name}' became '{bare}'", "name-changed")
    manifest = start(bare, title_of(data, name), data.get("description"), say)
    if bare != name and tool_id_fault(name) is None:
        manifest["aliases"] = [bare, name]
    version = text_of(data.get("version"))
    if version:
        manifest["version"] = fit_version(version, say)
    manifest["handler"] = _handler(shape, data, bare, say)
    if shape == "arguments":
        manifest["parameters"] = _listed(data.get("arguments"), say, path)
    else:
        manifest["parameters"] = _parameters(data.get(_SCHEMAS[shape]), _SCHEMAS[shape], say, path)
    elsewhere = next(
        (key for key in ("parameters", "schema") if key != _SCHEMAS.get(shape) and is_object(data.get(key))), ""
    )
    if elsewhere and data.get(_SCHEMAS.get(shape, "arguments")) is None:
        manifest["parameters"] = _parameters(data.get(elsewhere), elsewhere, say, path)
    else:
        elsewhere = ""
    rights_of(data, manifest, say, path)
    output = data.get("outputSchema" if shape == "mcp" else "output")
    if is_object(output):
        manifest["output"] = output
    if shape == "mcp":
        _annotations(data.get("annotations"), manifest, say)
    if shape == "anthropic" and is_list(input_examples := data.get("input_examples")):
        manifest["examples"] = [{"input": item} for item in input_examples if is_object(item)]
    if shape in ("implementation", "scripted") and is_list(tags := data.get("tags")):
        manifest["tags"] = list(dict.fromkeys(tag for tag in tags if isinstance(tag, str)))
    for key in data:
        is_taken = key in _TAKEN[shape] or key in RIGHTS or key in ("script", elsewhere)
        if is_taken or _is_asked_again(shape, key, data[key]):
            continue
        if not key.startswith("x-"):
            say(key, f"'{key}' has no place in a manifest and was left out", "field-dropped")
        else:
            manifest[key] = data[key]
    return ImportedTool(bare, manifest, tuple(notes))


def _is_asked_again(shape: Shape, key: str, value: Json) -> bool:
    """Whether a server says it with each list, where calls take it from: whether they are tasks (MCP 2025-11-25)."""
    return shape == "mcp" and key == "execution" and is_object(value) and value.keys() <= {"taskSupport"}


def _parameters(schema: Json, key: str, say: Say, base: str) -> dict[str, Json]:
    if not is_object(schema):
        if schema is not None:
            say(key, "the parameters are no schema object and were left out", "parameters-dropped")
        return {"type": "object", "properties": {}}
    held = json_types(schema, say, f"{base}/{key}")
    schema = held if is_object(held) else schema
    if schema.get("type", "object") == "object":
        return {"type": "object", **schema}
    say(key, "the parameters were no object: they became the parameter 'value'", "parameters-wrapped")
    return {"type": "object", "properties": {"value": schema}, "required": ["value"]}


def _listed(arguments: Json, say: Say, base: str) -> dict[str, Json]:
    """A list of arguments (name, type, desc) as a schema."""
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for i, item in enumerate(arguments if is_list(arguments) else []):
        name = item.get("name") if is_object(item) else None
        if not is_object(item) or not isinstance(name, str) or not name:
            say("arguments", "an entry without a name was left out", "parameters-dropped")
            continue
        schema: dict[str, Json] = {key: value for key, value in item.items() if key in ("enum", "default", "items")}
        kind = item.get("type")
        if isinstance(kind, str) and (
            kind := kind if kind in JSON_TYPES else json_type(kind, say, f"{base}/arguments/{i}/type")
        ):
            schema["type"] = kind
        if about := text_of(item.get("description")) or text_of(item.get("desc")):
            schema["description"] = about
        if item.get("optional") is not True and item.get("required") is not False:
            required.append(name)
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required}


def _handler(shape: Shape, data: dict[str, Json], bare: str, say: Say) -> dict[str, Json]:
    source = "implementation" if shape == "implementation" else "script"
    declared = data.get(source)
    path = ""
    language = ""
    if isinstance(declared, str):
        path = declared
    elif is_object(declared):
        for key in ("scriptPath", "script", "file", "path", "entry", "command"):
            if text := text_of(declared.get(key)):
                path = text.split()[-1]
                break
        language = text_of(declared.get("language") or declared.get("runtime") or declared.get("type")).lower()
        left = [
            key
            for key in declared
            if key not in ("scriptPath", "script", "file", "path", "language", "runtime", "type")
        ]
        if left:
            say(source, f"of the {source} only the script was taken, not {', '.join(left)}", "field-dropped")
    return script_handler(path, language, bare, source if declared is not None else "name", say)


def _annotations(hints: Json, manifest: dict[str, Json], say: Say) -> None:
    if not is_object(hints):
        return
    execution: dict[str, Json] = {}
    if hints.get("idempotentHint") is True:
        execution["idempotent"] = True
    if hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        execution["requireConfirmation"] = True
        say("annotations", "destructiveHint became execution.requireConfirmation", "annotation-mapped")
    if execution:
        manifest["execution"] = execution
    if hints.get("openWorldHint") is True:
        what = "openWorldHint: name the hosts it needs in securityContext.networkAccess.allowHosts"
        say("annotations", what, "annotation-dropped")
    if hints.get("readOnlyHint") is True:
        what = "readOnlyHint has no place in a manifest: a tool writes nowhere unless allowWrite names it"
        say("annotations", what, "annotation-dropped")


# What an MCP server lists as manifests whose handler calls its tools, so that calls go through the policy, the log and the checks. Takes the result
# of ``tools/list`` as it comes: the answer, its result, the list, or one tool.


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
        outcome = import_one("mcp", item, path) if is_object(item) else "it is no tool definition"
        if isinstance(outcome, ImportedTool) and is_object(item):
            tools.append(_called(outcome, item, server))
        else:
            notes.append(Note(path, f"left out: {outcome}", "tool-dropped"))
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
        own = {key.removeprefix(MCP_META): value for key, value in meta.items() if key.startswith(MCP_META)}
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
