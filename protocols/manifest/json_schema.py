"""The JSON Schema of a manifest, for editors that know only JSON Schema and for completion and hover in ours.

``published`` gives the two files of ``schemas/``: draft-07, which every editor reads, and 2020-12. Both come from one source, a subset
that means the same in both dialects, with ``if``/``then`` on ``handler.type``: editors word those exactly, ``oneOf`` they do not. A test
holds it against ``read_manifest``. Must not be used to validate where ``read_manifest`` can be.
"""

from __future__ import annotations

from typing import Literal

from tamis.protocols.manifest.reading import (
    HANDLER_TYPES,
    LANGUAGE_NAME,
    LANGUAGE_WORDS,
    LANGUAGES,
    LIMITS,
    MAPPING,
    REQUIRED,
    RESULTS,
)
from tamis.protocols.manifest.security import CAPABILITIES
from tamis.protocols.model import Json
from tamis.protocols.schema.words import DRAFT_2020_12

SCHEMAS = "https://tamis.dev/schemas/"
"""Where the published schemas are, by their ``$id``."""
SCHEMA_ID = f"{SCHEMAS}tool/v1.json"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
Dialect = Literal["draft-07", "2020-12"]
FILES: dict[Dialect, str] = {"draft-07": "tool.schema.json", "2020-12": "tool.2020-12.schema.json"}
"""The published files, in ``schemas/``."""
VARIABLE = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"
"""Names of variables; those that the sandbox keeps for itself are ``variable_name_fault``'s to know."""
_TEXT: dict[str, Json] = {"type": "string", "minLength": 1}


def _text(description: str, **more: Json) -> dict[str, Json]:
    return {**_TEXT, "description": description, **more}


def _flag(description: str, default: bool) -> dict[str, Json]:
    return {"type": "boolean", "default": default, "description": description}


def _texts(description: str, **more: Json) -> dict[str, Json]:
    items: dict[str, Json] = {"type": "string", **more}
    return {"type": "array", "items": items, "description": description}


def _object(description: str, properties: dict[str, Json], **more: Json) -> dict[str, Json]:
    extra: dict[str, Json] = {"^x-": {}}
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "patternProperties": extra,
        "additionalProperties": False,
        **more,
    }


def manifest_schema() -> dict[str, Json]:
    """The schema as fresh data; unknown root fields are refused here and warned of by ``read_manifest`` (ruling 33)."""
    required: list[Json] = [*REQUIRED]
    properties: dict[str, Json] = {
        "$schema": {"type": "string", "description": "Where the schema of this file is."},
        "toolId": _text(
            "The tool's unique id, by convention namespace:tool-name, as in custom:my-data-processor.",
            examples=["core:execute-python-script", "custom:my-data-processor"],
        ),
        "displayName": _text("The name that people see."),
        "description": _text(
            "What the tool does, when to use it, what it takes and what it gives. Models choose tools by this text."
        ),
        "version": _text("The tool's version, by convention semantic: 1.0.0.", examples=["1.0.0"]),
        "handler": _handler(),
        "parameters": {
            "type": "object",
            "description": "JSON Schema (2020-12) of the arguments; type is object. x-secret: true masks a value in logs.",
            "default": {"type": "object", "properties": {}},
        },
        "output": {"type": ["object", "boolean"], "description": "JSON Schema (2020-12) of what the tool gives."},
        "securityContext": _security(),
        "examples": _examples(),
        "tags": _texts("Words to find and group tools by."),
        "aliases": _texts("Other names that calls may use for this tool.", minLength=1),
        "agentCallable": {
            "type": "boolean",
            "description": "Whether agents may call the tool. Default: true in a configured tool folder, false for a host's services.",
        },
        "protocolConfig": _object(
            "Names of the tool in single protocols.",
            {"vcpCommand": _text("The name by which VCP calls reach the tool.")},
        ),
        "env": {
            "type": "object",
            "description": "Variables of the script that are no secret: name to text.",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"pattern": VARIABLE},
        },
        "execution": _execution(),
        "dependencies": {
            "type": "object",
            "description": "Other tools that this one needs: tool id to version range.",
            "additionalProperties": {"type": "string", "minLength": 1},
        },
    }
    root = _object("A tool that agents can call.", properties, required=required)
    return {"$schema": DRAFT_07, "$id": SCHEMA_ID, "title": "Tamis tool manifest", **root}


def published(dialect: Dialect) -> dict[str, Json]:
    """The schema as it is published: its dialect's name, schemas in a manifest by that dialect, and words for editors.

    Editors' own keywords (``markdownDescription``, ``defaultSnippets``, ``enumDescriptions``) are annotations: validators pass them over.
    """
    schema = manifest_schema()
    dialect_id = DRAFT_07 if dialect == "draft-07" else DRAFT_2020_12
    schema["$schema"] = dialect_id
    schema["$id"] = SCHEMA_ID if dialect == "draft-07" else f"{SCHEMAS}tool/v1.2020-12.json"
    # Catalogues of schemas take the second line for the page that explains the format.
    schema["description"] = f"{schema['description']}\n{SCHEMAS}tool"
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for name in ("parameters", "output"):
        part = properties[name]
        assert isinstance(part, dict)
        part["allOf"] = [{"$ref": dialect_id}]
        if name == "output":
            part.pop("type")  # the schema of schemas has the two types already, which strict validators want said once
        part["description"] = str(part["description"]).replace("(2020-12)", f"({dialect})")
    schema["defaultSnippets"] = _snippets()
    handler = properties["handler"]
    assert isinstance(handler, dict)
    kinds = handler["properties"]
    assert isinstance(kinds, dict)
    kind = kinds["type"]
    assert isinstance(kind, dict)
    kind["enumDescriptions"] = [
        "A script that gets its arguments as JSON on standard input.",
        "A method of the host, or one of Tamis's own.",
        "A tool of an MCP server.",
    ]
    _mark_down(schema)
    return schema


def _mark_down(schema: dict[str, Json]) -> None:
    """Gives every description as Markdown too, where editors look for it first."""
    stack: list[Json] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            text = node.get("description")
            if isinstance(text, str) and "type" in node:
                node["markdownDescription"] = text
            stack.extend(value for key, value in node.items() if key != "defaultSnippets")


def _snippets() -> list[Json]:
    """Whole manifests to begin with, for an empty file."""
    head: dict[str, Json] = {
        "toolId": "${1:custom}:${2:my-tool}",
        "displayName": "${3:My tool}",
        "description": "${4:What it does, when to use it, what it takes and what it gives.}",
        "version": "1.0.0",
    }
    tail: dict[str, Json] = {"parameters": {"type": "object", "properties": {"$6": {"type": "string"}}, "required": []}}
    script: dict[str, Json] = {"type": "external-script", "scriptPath": "${5:my-tool.py}", "language": "python"}
    service: dict[str, Json] = {
        "type": "service-method",
        "serviceName": "${5:MyService}",
        "methodName": "${7:myMethod}",
    }
    return [
        {
            "label": "Tool with a script",
            "description": "A new tool manifest",
            "body": {**head, "handler": script, **tail},
        },
        {
            "label": "Tool of a service",
            "description": "A new tool manifest",
            "body": {**head, "handler": service, **tail},
        },
    ]


def _handler() -> dict[str, Json]:
    script: list[Json] = ["scriptPath", "language"]
    service: list[Json] = ["serviceName", "methodName"]
    mcp: list[Json] = ["server", "tool"]

    def when(kind: str, needed: list[Json]) -> dict[str, Json]:
        chosen: dict[str, Json] = {"type": {"const": kind}}
        # Validators in strict mode ask that what is required is named beside it.
        named: dict[str, Json] = {str(name): {} for name in needed}
        return {"if": {"properties": chosen, "required": ["type"]}, "then": {"properties": named, "required": needed}}

    kinds: list[Json] = [*HANDLER_TYPES]
    languages: list[Json] = [*LANGUAGES]
    slips: list[Json] = [*LANGUAGE_WORDS]
    properties: dict[str, Json] = {
        "type": {
            "enum": kinds,
            "description": "external-script runs a file; service-method calls a method of the host or of Tamis; mcp calls a tool of an MCP server.",
        },
        "scriptPath": _text("Path of the script, relative to this file's folder; .. and absolute paths are refused."),
        "language": {
            "anyOf": [{"enum": languages}, {"type": "string", "pattern": f"^{LANGUAGE_NAME}$", "not": {"enum": slips}}],
            "description": "What runs the script: python, nodejs, bun, or a runtime of the operator's (sandbox.runtimes).",
        },
        "entryPoint": _text("A function or export in the script, where the runtime needs one."),
        "result": {
            "enum": [*RESULTS],
            "default": "json",
            "description": "json: what the script prints is its result. vcp: as in VCP plug-ins, {status: error, error: …} says that it failed, whatever the exit code.",
        },
        "serviceName": _text("The service that the host registered, or one of Tamis's own."),
        "methodName": _text("The method of that service."),
        MAPPING: {
            "type": "object",
            "additionalProperties": {"type": "string", "minLength": 1},
            "description": "What the method calls parameters of the tool, by the tool's name for them.",
        },
        "server": _text("The MCP server, by its name in the settings."),
        "tool": _text("The tool of that server."),
    }
    return _object(
        "How the tool is run.",
        properties,
        required=["type"],
        allOf=[when(kind, needed) for kind, needed in zip(HANDLER_TYPES, (script, service, mcp), strict=True)],
    )


def _security() -> dict[str, Json]:
    names: list[Json] = [*CAPABILITIES]
    files = _object(
        "Files beside the tool's own folder, which it may always read.",
        {
            "allowRead": _texts(
                'Path patterns: "self", "./*", ".cache/**", or absolute paths below the operator\'s roots.'
            ),
            "allowWrite": _texts("Folders to write to: a plain path, or one with /** behind it."),
        },
    )
    hosts = _texts("Host names or addresses, *.example.com for its sub-domains, with :port or :* if wished.")
    capabilities: dict[str, Json] = {
        "type": "array",
        "items": {"type": "string", "examples": names},
        "description": f"What else the tool needs: {', '.join(CAPABILITIES)}. Others are refused.",
    }
    return _object(
        "What the tool asks for. The grant is what the operator's policy allows of it.",
        {
            "fileAccess": files,
            "networkAccess": _object("The network is off unless hosts are named.", {"allowHosts": hosts}),
            "requiredCapabilities": capabilities,
            "secrets": _texts(
                "Names of secrets that the script finds in variables of these names; where they come from is the operator's.",
                pattern=VARIABLE,
            ),
        },
    )


def _examples() -> dict[str, Json]:
    item = _object(
        "One worked call.",
        {
            "description": {"type": "string", "description": "What the example shows."},
            "input": {"type": "object", "description": "Arguments that satisfy parameters."},
            "expectedOutput": {"description": "What the tool gives for them."},
        },
        required=["input"],
    )
    return {
        "type": "array",
        "items": item,
        "description": "Worked calls: shown to models, and checked against the schemas.",
    }


def _execution() -> dict[str, Json]:
    whole: dict[str, Json] = {"type": "integer", "minimum": 1}
    return _object(
        "How the tool is run.",
        {
            "mode": {"enum": ["sync", "async"], "default": "sync", "description": "async calls answer with a task id."},
            "timeoutMs": {**whole, "description": "Wall time in milliseconds; only lowers the operator's."},
            "idempotent": _flag(
                "Running it twice does no more than running it once; a call that was lost is run again.", False
            ),
            "requireConfirmation": _flag("Every call asks first.", False),
            "allowBuild": _flag("Its dependencies may run build steps.", False),
            "integrity": {
                "type": "string",
                "pattern": "^sha256-[A-Za-z0-9+/]{43}=$",
                "description": "sha256-… of the script, or with `files` of these files together; others are not run.",
            },
            "files": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "maxItems": 64,
                "description": "Globs of what belongs to the script, such as lib/**; answers of persons and integrity are bound to it. Default: the folder.",
            },
            "limits": _object("Limits lower than the operator's.", {name: dict(whole) for name in LIMITS}),
        },
    )
