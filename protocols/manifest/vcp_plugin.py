"""VCP plug-in manifests as Tamis manifests: parameters that stand in prose only are inferred, and said to be.

A plug-in describes its commands in sentences with request blocks in them; a value there begins with (必需) or (可选) or stands for
itself. A synchronous plug-in on standard streams has the contract of our scripts: one JSON document in, one out. Must not know
files.
"""

from __future__ import annotations

import re

from tamis.protocols.manifest.imports import (
    Imported,
    ImportedTool,
    Note,
    Say,
    fit_name,
    fit_version,
    script_handler,
    start,
    teller,
    title_of,
)
from tamis.protocols.model import Json, ReadOptions, escape_pointer
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan
from tamis.protocols.schema.words import is_list, is_object

MAX_EXAMPLES = 20
_BASE = "/capabilities/invocationCommands"
_NEED = re.compile(
    r"^\s*[(（【\[]?\s*(必需|必须|必填|required|可选|选填|非必需|optional)(?![A-Za-z])[^)）】\]\n]{0,60}[)）】\]]?\s*[:：,，]?\s*",
    re.I,
)
_OPTIONAL = frozenset({"可选", "选填", "非必需", "optional"})
# A list of parameters in prose: "- name (type, need): what it is".
_LISTED = re.compile(
    r"^[ \t]*(?:[-*•]|\d{1,2}[.)、])[ \t]*[`\"'「*]*([A-Za-z_][A-Za-z0-9_]{0,63})[`\"'」*]*[ \t]*[(（]([^()（）\n]{1,80})[)）][ \t]*[:：]?[ \t]*([^\n]{0,400})",
    re.M,
)
_TYPES = (
    (re.compile(r"整数|整型|\bint(?:eger)?\b", re.I), "integer"),
    (re.compile(r"数字|数值|浮点|\bnumber\b|\bfloat\b", re.I), "number"),
    (re.compile(r"布尔|\bbool(?:ean)?\b", re.I), "boolean"),
    (re.compile(r"数组|列表|\barray\b|\blist\b", re.I), "array"),
    (re.compile(r"对象|\bobject\b", re.I), "object"),
)


class _Parameter:
    """What prose says of one parameter."""

    def __init__(self) -> None:
        self.kind = ""
        self.about = ""
        self.needed: bool | None = None
        """None: nothing says so."""
        self.blocks = 0
        """In how many request blocks it stands."""


class _Command:
    """One command of a plug-in."""

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about
        self.schema: dict[str, Json] | None = None
        self.found: dict[str, _Parameter] = {}
        self.blocks = 0
        self.given: list[dict[str, Json]] = []
        """Arguments of request blocks that show a real call."""


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
    manifest["protocolConfig"] = {"vcpCommand": name}
    manifest["handler"] = _handler(data, bare, say)
    manifest["parameters"] = _parameters(commands, say)
    if timeout := _timeout(data.get("communication")):
        manifest["execution"] = {"timeoutMs": timeout}
    if examples := _example_calls(commands, manifest["parameters"]):
        manifest["examples"] = examples
    _left_out(data, say)
    return Imported((ImportedTool(bare, manifest, tuple(notes)),))


def _commands(data: dict[str, Json]) -> list[_Command]:
    capabilities = data.get("capabilities")
    listed = capabilities.get("invocationCommands") if is_object(capabilities) else None
    made: list[_Command] = []
    for item in listed if is_list(listed) else []:
        if not is_object(item):
            continue
        named = item.get("commandIdentifier") or item.get("command")
        about = item.get("description")
        command = _Command(named if isinstance(named, str) else "", about if isinstance(about, str) else "")
        schema = item.get("parameters")
        if is_object(schema) and ("properties" in schema or schema.get("type") == "object"):
            command.schema = schema
        _read_prose(command, item)
        made.append(command)
    return made


def _read_prose(command: _Command, item: dict[str, Json]) -> None:
    for place in ("description", "example"):
        text = item.get(place)
        if not isinstance(text, str):
            continue
        for listed in _LISTED.finditer(text):
            parameter = command.found.setdefault(listed[1], _Parameter())
            parameter.kind = parameter.kind or next((kind for sign, kind in _TYPES if sign.search(listed[2])), "")
            parameter.about = parameter.about or listed[3].strip()
            need = re.search(r"必需|必须|必填|可选|选填|required|optional", listed[2], re.I)
            if need is not None and parameter.needed is None:
                parameter.needed = need[0].lower() not in _OPTIONAL
        for call in read_text(text, "vcp", ReadOptions(fenced_calls="run", reasoning_calls="run")).calls:
            command.blocks += 1
            args = {key: value for key, value in call.args(text).items() if isinstance(value, str)}
            explained = False
            for key, value in args.items():
                if key == "command":
                    continue
                parameter = command.found.setdefault(key, _Parameter())
                parameter.blocks += 1
                marked = _NEED.match(value)
                if marked is not None:
                    explained = True
                    parameter.needed = (
                        marked[1].lower() not in _OPTIONAL if parameter.needed is None else parameter.needed
                    )
                    parameter.about = parameter.about or value.strip()
                elif place == "description":
                    parameter.about = parameter.about or value.strip()
            if place == "example" and not explained:
                command.given.append(dict(args))


def _parameters(commands: list[_Command], say: Say) -> dict[str, Json]:
    """The schema of all commands together: what each of them needs is required."""
    first = commands[0]
    if len(commands) == 1 and first.schema is not None:
        return {"type": "object", **first.schema}
    properties: dict[str, Json] = {}
    needs: list[set[str]] = []
    for i, command in enumerate(commands):
        found, needed = _declared(command) if command.schema is not None else _inferred(command)
        needs.append(needed)
        for key, schema in found.items():
            properties.setdefault(key, schema)
        if command.schema is None and found:
            listed = ", ".join(f"{key} ({'required' if key in needed else 'optional'})" for key in found)
            say(
                f"{_BASE}/{i}",
                f"parameters inferred from its text: {listed}; check types and what is required",
                "inferred",
            )
        elif not found:
            say(f"{_BASE}/{i}", "its text names no parameters: declare what the tool takes", "parameters-missing")
    always: list[Json] = [key for key in properties if all(key in needed for needed in needs)]
    if len(commands) > 1:
        names: list[Json] = list(dict.fromkeys(command.name for command in commands if command.name))
        each = (
            f"{command.name} needs {', '.join(sorted(needs[i])) or 'nothing'}" for i, command in enumerate(commands)
        )
        properties.pop("command", None)
        which: Json = {"enum": names, "description": "Which command to run: " + "; ".join(each)}
        properties = {"command": which, **properties}
        always = ["command", *(key for key in always if key != "command")]
        say(_BASE, f"its {len(commands)} commands share one tool: 'command' says which", "commands-joined")
    return {"type": "object", "properties": properties, "required": always}


def _declared(command: _Command) -> tuple[dict[str, Json], set[str]]:
    """The parameters of a command that has a schema, and those that it requires."""
    schema = command.schema or {}
    properties, required = schema.get("properties"), schema.get("required")
    needed = {key for key in required if isinstance(key, str)} if is_list(required) else set[str]()
    return (properties if is_object(properties) else {}), needed


def _inferred(command: _Command) -> tuple[dict[str, Json], set[str]]:
    """The parameters that a command's prose names, and those that it seems to require."""
    properties: dict[str, Json] = {}
    for key, parameter in command.found.items():
        schema: dict[str, Json] = {"type": parameter.kind or "string"}
        if parameter.about:
            schema["description"] = parameter.about
        properties[key] = schema
    return properties, {key for key, parameter in command.found.items() if _is_needed(parameter, command)}


def _is_needed(parameter: _Parameter, command: _Command) -> bool:
    """What is marked counts; else a parameter is needed that stands in every request block."""
    if parameter.needed is not None:
        return parameter.needed
    return command.blocks > 0 and parameter.blocks == command.blocks


def _example_calls(commands: list[_Command], parameters: Json) -> list[Json]:
    """The request blocks that show a call, as typed examples; one that does not fit what was inferred is none."""
    plan = compile_plan(parameters)
    made: list[Json] = []
    for command in commands:
        for given in command.given:
            args: dict[str, Json] = dict(given)
            if len(commands) > 1:
                args.setdefault("command", command.name)
            else:
                args = {key: value for key, value in args.items() if key != "command" or "command" in plan.names}
            outcome = plan.check(args, "any")
            if not outcome.errors and is_object(outcome.coerced) and len(made) < MAX_EXAMPLES:
                made.append({"description": f"{command.name}".strip() or "Example", "input": outcome.coerced})
    return made


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
            found = _RUN.match(command.strip())
            path = found[1] if found else command.strip()
        elif isinstance(entry.get("script"), str):
            path = str(entry["script"])
    return script_handler(path, language.lower() if isinstance(language, str) else "", bare, "entryPoint", say)


def _timeout(communication: Json) -> int:
    value = communication.get("timeout") if is_object(communication) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


_KEPT = frozenset(
    {"name", "displayName", "version", "description", "pluginType", "entryPoint", "communication", "capabilities"}
)
_WITHOUT_LOSS = frozenset({"manifestVersion", "author", "$schema"})


def _left_out(data: dict[str, Json], say: Say) -> None:
    if is_object(settings := data.get("configSchema")) and settings:
        listed = ", ".join(list(settings)[:8])
        say(
            "configSchema",
            f"its settings ({listed}) are not handed to a sandboxed script: make them parameters or files",
            "field-dropped",
        )
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
        if key not in _KEPT and key not in _WITHOUT_LOSS and key != "configSchema" and value:
            say(key, f"'{key}' has no place in a manifest and was left out", "field-dropped")
