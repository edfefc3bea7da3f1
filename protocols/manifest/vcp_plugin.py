"""VCP plug-in manifests as Tamis manifests: parameters that stand in prose only are inferred, and said to be.

A plug-in describes its commands in sentences with request blocks in them; a value there begins with (必需) or (可选) or stands for
itself. A synchronous plug-in on standard streams has the contract of our scripts: one JSON document in, one out. Must not know
files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tamis.protocols.manifest.foreign_fields import Say, is_secret_setting, next_step
from tamis.protocols.manifest.imported import (
    Imported,
    ImportedTool,
    Note,
    fit_name,
    fit_version,
    script_handler,
    start,
    teller,
    title_of,
)
from tamis.protocols.manifest.reading import tool_id_fault
from tamis.protocols.manifest.security import variable_name_fault
from tamis.protocols.manifest.vcp_prose import COMMAND, Command, kind_of, own_names
from tamis.protocols.model import Json, escape_pointer
from tamis.protocols.schema.plan import compile_plan
from tamis.protocols.schema.words import is_list, is_object

MAX_EXAMPLES = 20
_BASE = "/capabilities/invocationCommands"


def import_plugin(data: dict[str, Json]) -> Imported:
    """A plug-in manifest as one tool; a plug-in of several commands keeps them in a parameter ``command``."""
    name = data.get("name")
    if not isinstance(name, str) or not name.strip():
        return Imported(why_not="it has no name")
    commands = _commands(data)
    if not commands:
        return Imported(why_not="it has no invocationCommands: models do not call it")
    notes: list[Note] = []

    say = teller(notes)
    bare = fit_name(name)
    manifest = start(bare, title_of(data, name), data.get("description"), say)
    version = data.get("version")
    if isinstance(version, str):
        manifest["version"] = fit_version(version, say)
    names = own_names(name, commands)
    for command in commands:
        command.count(frozenset(names))
    others = [other for other in (bare, *names[1:]) if other != name and tool_id_fault(other) is None]
    manifest["aliases"] = list[Json](dict.fromkeys(others))
    if not others:
        del manifest["aliases"]
    for other in names[1:]:
        what = f"its documented calls name '{other}', which is an alias now: take it away if another tool has that name"
        say("name", what, "name-changed")
    manifest["protocolConfig"] = {"vcpCommand": name}
    manifest["handler"] = _handler(data, bare, say)
    manifest["parameters"] = _parameters(commands, say)
    if timeout := _timeout(data.get("communication")) or _timeout(data.get("entryPoint")):
        manifest["execution"] = {"timeoutMs": timeout}
    if examples := _example_calls(commands, manifest["parameters"]):
        manifest["examples"] = examples
    _configured(data, manifest, say)
    _left_out(data, say)
    return Imported((ImportedTool(bare, manifest, tuple(notes)),))


def _commands(data: dict[str, Json]) -> list[Command]:
    capabilities = data.get("capabilities")
    listed = capabilities.get("invocationCommands") if is_object(capabilities) else None
    commands: list[Command] = []
    for item in listed if is_list(listed) else []:
        if is_object(item):
            named = item.get("commandIdentifier") or item.get("command")
            commands.append(Command(named if isinstance(named, str) else "", item))
    return commands


def _parameters(commands: list[Command], say: Say) -> dict[str, Json]:
    """The schema of all commands together: what each of them needs is required."""
    first = commands[0]
    if len(commands) == 1 and first.schema is not None:
        return {"type": "object", **first.schema}
    properties: dict[str, Json] = {}
    needs: list[set[str]] = []
    for i, command in enumerate(commands):
        declared, needed = _declared(command) if command.schema is not None else _inferred(command, commands)
        needs.append(needed)
        for key, schema in declared.items():
            properties.setdefault(key, schema)
        if command.schema is None and declared:
            listed = ", ".join(f"{key} ({'required' if key in needed else 'optional'})" for key in declared)
            say(
                f"{_BASE}/{i}",
                f"parameters inferred from its text: {listed}; check types and what is required",
                "inferred",
            )
        elif not declared:
            say(f"{_BASE}/{i}", "its text names no parameters: declare what the tool takes", "parameters-missing")
    always: list[Json] = [key for key in properties if all(key in needed for needed in needs)]
    if len(commands) > 1:
        which, needed = _which(commands, needs, say)
        properties.pop(COMMAND, None)
        always = [key for key in always if key != COMMAND]
        if which is not None:
            properties = {COMMAND: which, **properties}
            always = [COMMAND, *always] if needed else always
    elif COMMAND in properties and first.schema is None:
        properties[COMMAND] = _one_command(first, properties[COMMAND])
    return {"type": "object", "properties": properties, "required": always}


def _which(commands: list[Command], needs: list[set[str]], say: Say) -> tuple[Json, bool]:
    """The parameter that says which of several commands is meant, and whether it is required; None where no documented call has it."""
    shown = [command.values for command in commands]
    blocks, carried = sum(command.blocks for command in commands), sum(command.carried for command in commands)
    listed = [command.found[COMMAND] for command in commands if COMMAND in command.found]
    if blocks and not carried and not listed:
        what = f"its {len(commands)} commands share one tool; no documented call has a 'command', so it has no such parameter"
        say(_BASE, what, "commands-joined")
        return None, False
    say(_BASE, f"its {len(commands)} commands share one tool: 'command' says which", "commands-joined")
    names = [
        list(values or ([command.name] if command.name else []))
        for command, values in zip(commands, shown, strict=True)
    ]
    each = "; ".join(
        f"{' or '.join(named)} needs {', '.join(sorted(needs[i] - {COMMAND})) or 'nothing'}"
        for i, named in enumerate(names)
        if named
    )
    optional = any(parameter.needed is False for parameter in listed)
    required = not optional and carried == blocks
    if any(values is None for values in shown):
        return {
            "type": "string",
            "description": next((parameter.about for parameter in listed if parameter.about), "What to run"),
        }, required
    every: list[Json] = list(dict.fromkeys(name for named in names for name in named))
    return {"enum": every, "description": f"Which command to run: {each}"}, required


def _one_command(command: Command, schema: Json) -> Json:
    """The parameter ``command`` of a plug-in of one command: what its calls show, where that is a name and no free text."""
    values = command.values
    if not values or not is_object(schema):
        return schema
    own = re.sub(r"[\W_]", "", command.name).casefold()
    if own and all(re.sub(r"[\W_]", "", value).casefold() in own for value in values):
        about: dict[str, Json] = {"description": schema["description"]} if "description" in schema else {}
        return {"enum": list[Json](values), **about}
    if "description" in schema:
        return schema
    return {**schema, "description": f"Its documented calls write: {', '.join(values[:20])}"}


def _declared(command: Command) -> tuple[dict[str, Json], set[str]]:
    """The parameters of a command that has a schema, and those that it requires."""
    schema = command.schema or {}
    properties, required = schema.get("properties"), schema.get("required")
    needed = {key for key in required if isinstance(key, str)} if is_list(required) else set[str]()
    return (properties if is_object(properties) else {}), needed


def _inferred(command: Command, commands: list[Command]) -> tuple[dict[str, Json], set[str]]:
    """The parameters that a command's prose names, and those that it seems to require."""
    properties: dict[str, Json] = {}
    for key, parameter in command.found.items():
        schema: dict[str, Json] = {
            "type": kind_of([command.found[key] for command in commands if key in command.found])
        }
        if parameter.about:
            schema["description"] = parameter.about
        properties[key] = schema
    return properties, {key for key in command.found if command.needs(key)}


def _example_calls(commands: list[Command], parameters: Json) -> list[Json]:
    """The request blocks that show a call, as typed examples; one that does not fit what was inferred is none."""
    plan = compile_plan(parameters)
    calls: list[Json] = []
    for command in commands:
        for arguments in command.given:
            outcome = plan.check(dict(arguments), "any")
            if not outcome.errors and is_object(outcome.coerced) and len(calls) < MAX_EXAMPLES:
                calls.append({"description": f"{command.name}".strip() or "Example", "input": outcome.coerced})
    return calls


_RUN = re.compile(r"^(?:node(?:js)?|python3?|py|bun(?: run)?)\s+(?:-[A-Za-z]\s+)*[\"']?([^\"'\s]+)[\"']?\s*$", re.I)


def _handler(data: dict[str, Json], bare: str, say: Say) -> dict[str, Json]:
    entry = data.get("entryPoint")
    kind = data.get("pluginType")
    if kind not in (None, "synchronous"):
        say(
            "pluginType",
            f"a plug-in of type {kind} does more than answer calls; only its commands were converted",
            "plugin-type",
        )
    communication = data.get("communication")
    protocol = communication.get("protocol") if is_object(communication) else None
    if protocol not in (None, "stdio"):
        say(
            "communication",
            f"it speaks '{protocol}' inside the VCP server; a script reads JSON from standard input",
            "plugin-type",
        )
    path = language = ""
    if is_object(entry):
        command, language = entry.get("command"), entry.get("type")
        if isinstance(command, str):
            match = _RUN.match(command.strip())
            path = match[1] if match else command.strip()
        elif isinstance(entry.get("script"), str):
            path = str(entry["script"])
    handler = script_handler(path, language.lower() if isinstance(language, str) else "", bare, "entryPoint", say)
    # Tamis's own exports say of scripts that they print results alone.
    return {**handler, "result": "vcp"} if protocol in (None, "stdio") and data.get("x-result") != "json" else handler


def _timeout(communication: Json) -> int:
    value = communication.get("timeout") if is_object(communication) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


_NO_SECRET = frozenset(("integer", "number", "float", "boolean", "bool", "int"))
_ENVIRONMENTS = ("env", "environment")


def _configured(data: dict[str, Json], manifest: dict[str, Json], say: Say) -> None:
    """Settings of the plug-in: keys become secrets, others with a default variables; scripts find both in their environment."""
    variables: dict[str, Json] = {}
    secrets: list[Json] = []
    unset: list[str] = []
    for path, name, kind, default in _settings(data):
        fault = variable_name_fault(name)
        if fault is not None:
            say(path, f"'{name}' is left out: {fault}", "field-dropped")
        elif is_secret_setting(name) and kind not in _NO_SECRET:
            secrets += [name] if name not in secrets else []
            if default not in (None, ""):
                say(path, f"the default of '{name}' is left out: a manifest holds no keys", "credentials")
        elif isinstance(default, (str, int, float)):
            variables[name] = default if isinstance(default, str) else json.dumps(default)
        else:
            unset.append(name)
    if variables:
        manifest["env"] = variables
    if secrets:
        manifest["securityContext"] = {"secrets": secrets}
        say("configSchema", next_step(str(name) for name in secrets), "credentials")
    if unset:
        say("configSchema", f"{', '.join(unset[:8])} have no default: set them in 'env' of the manifest", "env-to-set")


def _settings(data: dict[str, Json]) -> Iterator[tuple[str, str, str, Json]]:
    """Place, name, type and default of every setting: of ``configSchema``, and of variables that are given outright."""
    schema = data.get("configSchema")
    declared = schema.get("properties") if is_object(schema) else None
    base = "/configSchema/properties" if is_object(declared) else "/configSchema"
    for name, about in (declared if is_object(declared) else schema if is_object(schema) else {}).items():
        kind = about.get("type") if is_object(about) else about
        default = about.get("default") if is_object(about) else None
        yield f"{base}/{escape_pointer(name)}", name, kind.lower() if isinstance(kind, str) else "", default
    entry = data.get("entryPoint")
    for where, holder in (("", data), ("/entryPoint", entry)):
        for key in _ENVIRONMENTS:
            members = holder.get(key) if is_object(holder) else None
            for name, value in (members if is_object(members) else {}).items():
                yield f"{where}/{key}/{escape_pointer(name)}", name, "", value


_KEPT = frozenset(
    {"name", "displayName", "version", "description", "pluginType", "entryPoint", "communication", "capabilities"}
)
_WITHOUT_LOSS = frozenset({"manifestVersion", "author", "$schema", "x-result"})


def _left_out(data: dict[str, Json], say: Say) -> None:
    capabilities = data.get("capabilities")
    for key in capabilities if is_object(capabilities) else ():
        value = capabilities[key] if is_object(capabilities) else None
        if key != "invocationCommands" and value:
            say(
                f"/capabilities/{escape_pointer(key)}",
                f"'{key}' is the VCP server's matter and was left out",
                "field-dropped",
            )
    for key, value in data.items():
        if key not in (*_KEPT, *_WITHOUT_LOSS, *_ENVIRONMENTS, "configSchema") and value:
            say(key, f"'{key}' has no place in a manifest and was left out", "field-dropped")
