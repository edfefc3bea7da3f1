"""A manifest for VCP: the definition block that a model reads (seed 001 §6.4, V23, V33), and the plug-in manifest that a VCP server reads.

A plug-in is run by that server, not by Tamis: whatever Tamis would do for the call (rights, checks, versions) is lost there and said.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tamis.protocols.base import Example, PromptTool
from tamis.protocols.contract import Loss
from tamis.protocols.export.losses import Losses, below
from tamis.protocols.export.names import portable_name, short_name
from tamis.protocols.export.shape import map_parts
from tamis.protocols.export.targets import Exported, shown_parameters
from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tamis.protocols.model import Json
from tamis.protocols.plugins import find_protocol
from tamis.protocols.prompt.calls import unwritable, written_example
from tamis.protocols.prompt.parameters import parameters_of
from tamis.protocols.prompt.vcp import vcp_definitions
from tamis.protocols.schema.words import is_object

DEFAULT_TIMEOUT_MS = 30_000
_COMMANDS = {"python": "python3", "nodejs": "node", "bun": "bun run"}
# What the words of a definition tell of a schema, or need not tell.
_TOLD = frozenset(
    (
        *("type", "properties", "required", "description", "title", "enum", "const", "default", "examples", "items"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *(
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "pattern",
            "format",
            "uniqueItems",
            "anyOf",
            "oneOf",
        ),
        *(
            "$ref",
            "$defs",
            "definitions",
            "$schema",
            "$id",
            "$comment",
            "$anchor",
            "deprecated",
            "readOnly",
            "writeOnly",
        ),
    )
)


def definition_text(manifest: Manifest, tool: PromptTool) -> tuple[str, list[Loss]]:
    """The ``<<<[TOOL_DEFINITION]>>>`` block of a tool, and what it does not tell. ``tool`` is the manifest as VCP prompts show it."""
    losses = Losses()
    if tool.name not in (manifest.tool_id, manifest.vcp_command, *manifest.aliases):
        what = f"models call it '{tool.name}': calls by that name reach '{manifest.tool_id}'"
        losses.add("name-changed", "/toolId", what)
    _untold(shown_parameters(manifest, losses), "/parameters", losses, 0)
    for name, why in unwritable("vcp", tool).items():
        losses.add("parameter-unwritable", below("/parameters", "properties", name), f"VCP cannot carry it: {why}")
    if manifest.output is not None:
        losses.add("output-dropped", "/output", "a definition has no place for what a tool gives back")
    if len(manifest.examples) > 1:
        losses.add("examples-dropped", "/examples", f"one of its {len(manifest.examples)} worked calls is shown")
    return vcp_definitions([tool]), losses.found


def _untold(node: Json, path: str, losses: Losses, depth: int) -> None:
    if not is_object(node) or depth > 64:
        return
    for key, value in node.items():
        usual = key == "additionalProperties" and isinstance(value, bool)
        if key not in _TOLD and not key.startswith("x-") and not usual:
            losses.add("keyword-dropped", below(path, key), f"the words of a definition have none for '{key[:60]}'")

    def look(part: Json, names: tuple[str | int, ...]) -> Json:
        _untold(part, below(path, *names), losses, depth + 1)
        return part

    map_parts(node, look)


def plugin_name(manifest: Manifest) -> str:
    """What a VCP server would call the tool, if no other had that name."""
    own = manifest.vcp_command or short_name(manifest.tool_id, manifest.aliases)
    return own or portable_name(manifest.tool_id, "openai")


def plugin_manifest(manifest: Manifest, name: str = "") -> Exported:
    """``plugin-manifest.json`` of a synchronous plug-in on standard streams, whose contract is that of our scripts. Never raises.

    ``name``: what it is called there, of names that no other tool has; by default ``plugin_name``.
    """
    losses = Losses()
    name = name or plugin_name(manifest)
    if name not in (manifest.tool_id, manifest.vcp_command, *manifest.aliases):
        losses.add("name-changed", "/toolId", f"'{manifest.tool_id}' is called '{name}' there")
    parameters = shown_parameters(manifest, losses) or {"type": "object", "properties": {}}
    tool = PromptTool(
        name=name,
        description=manifest.description,
        parameters=parameters,
        examples=tuple(Example(example.description, example.input) for example in manifest.examples),
        display_name=manifest.display_name,
    )
    command: dict[str, Any] = {
        "commandIdentifier": name,
        "description": _told(manifest, tool),
        "parameters": parameters,
    }
    shown = _examples(tool, losses)
    if shown:
        command["example"] = "\n\n".join(shown)
    timeout = manifest.execution.timeout_ms
    fields: dict[str, Any] = {
        "manifestVersion": "1.0.0",
        "name": name,
        "displayName": manifest.display_name,
        "version": manifest.version,
        "description": manifest.description,
        "pluginType": "synchronous",
    }
    fields |= _entry(manifest, losses)
    if isinstance(manifest.handler, ExternalScript) and manifest.handler.result != "vcp":
        fields["x-result"] = manifest.handler.result
    if settings := _settings(manifest):
        fields["configSchema"] = settings
    fields["communication"] = {"protocol": "stdio", "timeout": timeout or DEFAULT_TIMEOUT_MS}
    fields["capabilities"] = {"invocationCommands": [command]}
    _left_out(manifest, losses)
    return Exported(fields, losses.found)


def _settings(manifest: Manifest) -> dict[str, Any]:
    """What a VCP server hands to a script as settings: its variables with their values, and its secrets without."""
    variables = {name: {"type": "string", "default": value} for name, value in manifest.env.items()}
    return variables | {name: {"type": "string"} for name in manifest.security_context.secrets}


def _told(manifest: Manifest, tool: PromptTool) -> str:
    """The prose of a command: what it does, its parameters, and a request block whose values say what is needed."""
    parameters = parameters_of(tool.parameters)
    lines = [manifest.description]
    if parameters:
        lines.append("\n参数:")
    for parameter in parameters:
        words = " ".join((parameter.description, *parameter.facts)).strip()
        lines.append(
            f"- {parameter.name} ({parameter.type}, {'必需' if parameter.required else '可选'}): {' '.join(words.split())}".rstrip(
                ": "
            )
        )
    return "\n".join(lines)


def _examples(tool: PromptTool, losses: Losses) -> list[str]:
    protocol = find_protocol("vcp")
    shown: list[str] = []
    for i, example in enumerate(tool.examples):
        text = written_example(protocol, tool, example.input) if protocol is not None else ""
        if text:
            shown.append(text)
        else:
            losses.add("examples-dropped", f"/examples/{i}", "the call cannot be written in VCP, or shows a secret")
    return shown


def _entry(manifest: Manifest, losses: Losses) -> dict[str, Any]:
    handler = manifest.handler
    if not isinstance(handler, ExternalScript):
        what = "it is no script: a VCP server has nothing to start, write a program that calls it"
        losses.add("handler-dropped", "/handler", what)
        return {}
    program = _COMMANDS.get(handler.language)
    if program is None:
        losses.add(
            "handler-dropped",
            "/handler/language",
            f"the operator's own runtime '{handler.language}' is not known there",
        )
        return {}
    if handler.entry_point is not None:
        what = f"the function '{handler.entry_point}' is not called there: the file is run, and must read and write JSON itself"
        losses.add("entry-point-dropped", "/handler/entryPoint", what)
    if handler.result != "vcp":
        what = "a VCP server takes an output with 'status' and 'result' only: the script prints its result alone"
        losses.add("result-convention", "/handler/result", what)
    path = handler.script_path
    command = f"{program} {path}" if " " not in path else f'{program} "{path}"'
    return {"entryPoint": {"type": handler.language, "command": command}}


def _left_out(manifest: Manifest, losses: Losses) -> None:
    raw = manifest.raw
    declared = (manifest.parameters or {}).get("properties")
    for name, part in declared.items() if is_object(declared) else ():
        if not is_object(part) or part.get("type") != "string":
            what = f"a VCP server hands over '{name[:60]}' as text, whatever its type: the script must convert it"
            losses.add("value-as-text", below("/parameters/properties", name), what)
    if "securityContext" in raw:
        what = "a VCP server runs plug-ins without a sandbox: what the tool asks for is not held against anything"
        losses.add("rights-dropped", "/securityContext", what)
    if manifest.output is not None:
        losses.add("output-dropped", "/output", "a plug-in manifest has no place for what a tool gives back")
    for i, example in enumerate(manifest.examples):
        if example.expected_output is not msgspec.UNSET:
            losses.add("expected-output-dropped", f"/examples/{i}/expectedOutput", "examples show calls only")
        if example.description:
            losses.add("field-dropped", f"/examples/{i}/description", "examples show calls only")
    for key in ("tags", "aliases", "agentCallable", "dependencies"):
        if raw.get(key) not in (None, [], {}):
            losses.add("field-dropped", f"/{key}", f"a plug-in manifest has no place for '{key}'")
    execution = raw.get("execution")
    for key in execution if is_object(execution) else ():
        if key != "timeoutMs":
            losses.add("field-dropped", below("/execution", key), f"a plug-in manifest has no place for '{key}'")
    for key in raw:
        if key.startswith("x-"):
            losses.add("field-dropped", below("", key), f"a plug-in manifest has no place for '{key[:60]}'")
