"""Manifests from the tool definitions of other projects; what is assumed, changed or lost is said on standard error."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.server.cli.asking import ask_for_trust
from tamis.server.cli.inputs import UsageError, read_text, root_of, tell_settings
from tamis.server.cli.outputs import print_json, warn, write_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.protocols.jsontext.tree import JsonTree
    from tamis.protocols.manifest.imported import Imported, ImportedTool, Note
    from tamis.protocols.positions import LineIndex
    from tamis.server.runtime.calls.model import Stopped

KINDS = {
    "vcp": "a plugin-manifest.json",
    "mcp": "the tools/list result of an MCP server",
    "openai": "functions as the Chat Completions or Responses interface takes them, or other definitions with a name",
    "openapi": "an OpenAPI 3.0 or 3.1 document, as JSON",
    "python": "a Python file, which is read and not run",
    "comfyui": "a ComfyUI workflow in API form",
    "n8n": "an n8n workflow that a webhook or a form starts",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis import``."""
    kinds = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
    parser.add_argument("kind", choices=list(KINDS), metavar="KIND", help=kinds)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="",
        help="- is stdin; mcp with --server needs none: the server is asked",
    )
    parser.add_argument("--out", metavar="DIR", help="write a file for each tool there; none is overwritten")
    parser.add_argument("--force", action="store_true", help="overwrite files in --out")
    parser.add_argument("--json", action="store_true", help="print the manifests with their losses")
    parser.add_argument("--namespace", metavar="NS", default="", help="the first half of the ids (default: custom)")
    parser.add_argument(
        "--server",
        metavar="NAME",
        default="",
        help="mcp: what the settings call the server (default: FILE's name); without FILE it is started in the sandbox and asked",
    )
    parser.add_argument(
        "--yes", "-y", action="store_true", help="start the server without asking, where the policy asks"
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="openapi: the address to call, instead of the document's; comfyui, n8n: where the engine is",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints or writes the manifests; exit code 1 when there are none, or when one cannot be written."""
    try:
        root = root_of(arguments.root)
        if arguments.force and not arguments.out:
            raise UsageError("--force goes with --out")
        live = arguments.kind == "mcp" and not arguments.file and bool(arguments.server)
        if not arguments.file and not live:
            raise UsageError("name the FILE to read; `tamis import mcp --server NAME` asks a server of the settings")
        text = "" if live else read_text(arguments.file)
    except UsageError as error:
        warn(str(error))
        return 2
    stem = "stdin" if arguments.file == "-" else Path(arguments.file).name.split(".")[0] or "tools"
    conversion, ended = _asked(arguments, root) if live else (_imported(arguments, text, stem), 0)
    tools, refused = _sound(_in_namespace(conversion.tools, arguments.namespace))
    notes = [*conversion.notes, *refused]
    if arguments.file not in ("", "-") and arguments.out:
        notes += _elsewhere(tools, conversion, Path(arguments.file).absolute().parent, Path(arguments.out).absolute())
    shown = "<stdin>" if arguments.file == "-" else arguments.file or arguments.server
    if arguments.kind == "mcp" and tools and not live:
        notes += _unset_server(root, arguments.server or stem)
    place_of = _places_in("" if arguments.kind == "python" else text.removeprefix("\ufeff"))
    for note in notes:
        _say(shown + place_of(note.path), "", note)
    for tool in tools:
        for note in tool.notes:
            _say(shown + place_of(note.path), str(tool.manifest["toolId"]), note)
    if conversion.why_not or not tools:
        warn(f"{shown}: {conversion.why_not or 'none of its tools can be a manifest'}")
    files = _files(tools)
    written = True
    if arguments.out and tools:
        from tamis.server.cli.outputs import json_text, write_files

        texts = {name: json_text(tool.manifest) for name, tool in files.items()}
        written = write_files(Path(arguments.out), texts | conversion.scripts, force=arguments.force)
    if arguments.json:
        print_json(_report(files, notes, conversion))
    elif not arguments.out and tools:
        print_json(tools[0].manifest if len(tools) == 1 else [tool.manifest for tool in tools])
        if conversion.scripts:
            warn(
                f"the script {', '.join(conversion.scripts)} that they run is written with --out (or shown with --json)"
            )
    return ended or (0 if tools and written and not refused else 1)


def _asked(arguments: argparse.Namespace, root: Path) -> tuple[Imported, int]:
    """The tools that a server of the settings lists, or why it lists none, and the exit code where a signal ended it. It runs in the sandbox, with the rights of its calls."""
    from tamis.protocols.manifest.imported import Imported
    from tamis.protocols.manifest.imports import import_mcp
    from tamis.server.cli.asking import always, terminal_ask
    from tamis.server.cli.interrupts import cancel_on_interrupt, run_to_end
    from tamis.server.runtime.calls.model import Stopped
    from tamis.server.runtime.execution.server_tools import server_tools
    from tamis.server.runtime.observe.trail import Caller
    from tamis.server.runtime.runtime import Runtime

    ask_for_trust(root)
    runtime = Runtime(root)
    tell_settings(runtime.loaded)

    answers: list[Imported] = []

    async def listed() -> int:
        context = runtime.call_context(
            ask=always if arguments.yes else terminal_ask(), cancelled=cancel_on_interrupt(), caller=Caller("cli")
        )
        try:
            tools: list[Any] = await server_tools(arguments.server, context)
            answers.append(import_mcp({"tools": tools}, arguments.server))
        except Stopped as stop:
            answers.append(Imported(why_not=_words_of(stop)))
        finally:
            await runtime.close()
        return 0

    code = run_to_end(listed())
    return answers[0], code


def _words_of(stop: Stopped) -> str:
    """Why a server was not asked, and what it wrote last."""
    from msgspec import UNSET

    error = stop.error
    if error is None:
        return f"the start was {stop.status}"
    written = error.details.text if error.details is not UNSET and error.details.text is not UNSET else ""
    return f"{error.message}; it wrote:\n{written}" if written else error.message


def _imported(arguments: argparse.Namespace, text: str, stem: str) -> Imported:
    from tamis.protocols.manifest.imported import Imported

    if arguments.kind == "python":
        from tamis.protocols.manifest.from_python import import_functions

        name = f"{stem}.py" if arguments.file == "-" else Path(arguments.file).name
        return import_functions(text, name)
    data, why_not = _json(text.removeprefix("\ufeff"), arguments.file)
    if why_not:
        return Imported(why_not=why_not)
    if arguments.kind == "mcp":
        from tamis.protocols.manifest.imports import import_mcp

        return import_mcp(data, arguments.server or stem)
    if arguments.kind == "openapi":
        from tamis.protocols.manifest.from_openapi import import_openapi

        return import_openapi(data, stem, arguments.base_url)
    if arguments.kind in ("comfyui", "n8n"):
        from tamis.protocols.manifest.from_workflows import import_comfyui, import_n8n

        return (import_comfyui if arguments.kind == "comfyui" else import_n8n)(data, stem, arguments.base_url)
    from tamis.protocols.manifest.foreign import SHAPES
    from tamis.protocols.manifest.imports import import_tools, shape_of

    if arguments.kind == "vcp":
        return import_tools("vcp", data)
    shape = shape_of(data)
    if shape not in ("openai", "anthropic", "list", "arguments", "implementation", "scripted"):
        what = f"it is {SHAPES[shape]}" if shape is not None else "it is no function definition"
        return Imported(why_not=f"{what}: a function has name and parameters, alone, in a list, or under 'function'")
    return import_tools(shape, data)


def _json(text: str, name: str) -> tuple[Any, str]:
    """The value of a JSON text, which may have comments, or why there is none."""
    import msgspec

    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogatepass")), ""
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    from tamis.protocols.catalogue import message, severity
    from tamis.protocols.jsontext.parse import parse_json
    from tamis.protocols.positions import LineIndex

    tree = parse_json(text)
    broken = next((diag for diag in tree.diagnostics if severity(diag) == "error"), None)
    if tree.root is None or broken is not None:
        if name.endswith((".yaml", ".yml")) or text.lstrip().startswith(("openapi:", "swagger:")):
            return (
                None,
                "it is YAML, which is not read: convert it to JSON first (`yq -o json`, or any other converter)",
            )
        if broken is None:
            return None, "it is empty"
        line, column = LineIndex(text).position(broken.span[0])
        return None, f"line {line + 1}, column {column + 1}: it is no sound JSON: {message(broken)}"
    return tree.root.to_python(), ""


def _in_namespace(tools: tuple[ImportedTool, ...], namespace: str) -> list[ImportedTool]:
    import msgspec

    if not namespace:
        return list(tools)
    imported_tools: list[ImportedTool] = []
    for tool in tools:
        tail = str(tool.manifest["toolId"]).partition(":")[2] or tool.name
        imported_tools.append(
            msgspec.structs.replace(tool, manifest={**tool.manifest, "toolId": f"{namespace}:{tail}"})
        )
    return imported_tools


def _sound(tools: list[ImportedTool]) -> tuple[list[ImportedTool], list[Note]]:
    """The tools whose manifests read without errors, and a note for each other one."""
    from tamis.protocols.catalogue import message, severity
    from tamis.protocols.manifest.imported import Note
    from tamis.protocols.manifest.reading import read_manifest
    from tamis.server.cli.outputs import json_text

    kept: list[ImportedTool] = []
    refused: list[Note] = []
    for tool in tools:
        reading = read_manifest(json_text(tool.manifest))
        faults = [message(diag) for diag in reading.diagnostics if severity(diag) == "error"]
        if faults:
            refused.append(Note("", f"'{tool.name}' is left out: {faults[0]}", "tool-dropped"))
        else:
            kept.append(tool)
    return kept, refused


def _elsewhere(tools: list[ImportedTool], conversion: Imported, source: Path, out: Path) -> list[Note]:
    """Says where a script stands that a manifest in another folder would need beside it."""
    from tamis.protocols.manifest.imported import Note

    if os.path.realpath(source) == os.path.realpath(out):
        return []
    notes: dict[str, Note] = {}
    for tool in tools:
        handler = tool.manifest.get("handler")
        path = handler.get("scriptPath") if isinstance(handler, dict) else None
        if isinstance(path, str) and path not in conversion.scripts and (source / path).is_file():
            text = f"the script '{path}' stands in {source}: put it and what it needs beside the manifest, or --out {source}; until then the tool is not available (MF540)"
            notes[path] = Note("", text, "script-elsewhere")
    return list(notes.values())


def _unset_server(root: Path, server: str) -> list[Note]:
    """Says that the settings do not know the server yet, without which none of its tools can be called."""
    from tamis.protocols.manifest.imported import Note
    from tamis.server.runtime.settings.loading import load_settings

    if server in load_settings(root).settings.mcp_servers:
        return []
    text = f"no server '{server}' is known: say how it is started under [mcpServers.{server}] in tamis.toml, or give --server"
    return [Note("", text, "server-unset")]


def _places_in(text: str) -> Callable[[str], str]:
    """Where in a JSON text a pointer leads, as ``:line:column``: to the nearest that is there. The text is read for the first of them."""
    kept: list[tuple[JsonTree, LineIndex]] = []

    def place_of(path: str) -> str:
        from tamis.protocols.jsontext.parse import parse_json
        from tamis.protocols.positions import LineIndex

        if not text or not path.startswith("/"):
            return ""
        if not kept:
            kept.append((parse_json(text), LineIndex(text)))
        node, _ = kept[0][0].nearest(path)
        if node is None:
            return ""
        line, column = kept[0][1].position(node.start)
        return f":{line + 1}:{column + 1}"

    return place_of


def _say(file: str, tool_id: str, note: Note) -> None:
    place = " ".join(part for part in (tool_id, note.path) if part)
    write_note(f"{file}: {place}{': ' if place else ''}{note.message} [{note.code}]")


def _files(tools: list[ImportedTool]) -> dict[str, ImportedTool]:
    from tamis.protocols.manifest.template import file_name

    files: dict[str, ImportedTool] = {}
    for tool in tools:
        try:
            bare = file_name(tool.name)
        except ValueError:
            bare = "tool"
        name, number = f"{bare}.tool.json", 2
        while name.lower() in {key.lower() for key in files}:
            name, number = f"{bare}-{number}.tool.json", number + 1
        files[name] = tool
    return files


def _report(files: dict[str, ImportedTool], notes: list[Note], conversion: Imported) -> dict[str, Any]:
    return {
        "tools": [
            {"file": name, "toolId": tool.manifest["toolId"], "manifest": tool.manifest, "losses": _losses(tool.notes)}
            for name, tool in files.items()
        ],
        "losses": _losses(notes),
        "scripts": conversion.scripts,
        **({"whyNot": conversion.why_not} if conversion.why_not else {}),
    }


def _losses(notes: Any) -> list[dict[str, str]]:
    return [{"code": note.code, "path": note.path, "message": note.message} for note in notes]
