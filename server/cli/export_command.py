"""Tools in the forms of other projects; what a form cannot hold is said on standard error."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tamis.protocols.export.names import TARGET_WORDS
from tamis.server.cli.inputs import UsageError, root_of, tell_settings, tell_unregistered
from tamis.server.cli.outputs import print_json, warn, write_note

if TYPE_CHECKING:
    from tamis.protocols.contract import Description, Loss
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.registry import Tool

TARGETS = {**TARGET_WORDS, "vcp": "vcp", "caiu": "caiu"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis export``."""
    parser.add_argument(
        "target", choices=[*TARGETS, "openaiStrict"], metavar="TARGET", help="one of " + ", ".join(TARGETS)
    )
    parser.add_argument(
        "tools", nargs="*", metavar="TOOL_ID", help="ids or aliases (default: every tool that may be called)"
    )
    parser.add_argument("--json", action="store_true", help="print each definition with its losses and its tokens")
    parser.add_argument("--out", metavar="DIR", help="write one file for each tool there instead; none is overwritten")
    parser.add_argument("--force", action="store_true", help="overwrite files in --out")


def run(arguments: argparse.Namespace) -> int:
    """Prints or writes the definitions; exit code 1 when a tool is not there or a file cannot be written."""
    try:
        root = root_of(arguments.root)
        if arguments.force and not arguments.out:
            raise UsageError("--force goes with --out")
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    tell_settings(runtime.loaded)
    tools, failed = chosen(runtime, arguments.tools)
    target = TARGETS.get(str(arguments.target), "openaiStrict")
    descriptions = _exported(runtime, tools, target)
    for tool, description in zip(tools, descriptions, strict=True):
        say_losses(tool.tool_id, description.losses)
    if arguments.out:
        failed |= not _write(
            Path(arguments.out),
            target,
            tools,
            [description.definition for description in descriptions],
            force=arguments.force,
        )
    elif arguments.json:
        print_json(
            {
                "target": target,
                "tools": [
                    {
                        "toolId": tool.tool_id,
                        "version": tool.manifest.version,
                        "definition": description.definition,
                        "losses": description.losses,
                        "tokens": description.tokens,
                    }
                    for tool, description in zip(tools, descriptions, strict=True)
                ],
            }
        )
    else:
        print_json(_document(target, [description.definition for description in descriptions]))
    return 1 if failed else 0


def chosen(runtime: Runtime, names: list[str]) -> tuple[list[Tool], bool]:
    """The tools, and whether one was not found. Where all are asked for, what is not registered is told."""
    from tamis.protocols.suggest import best, hint
    from tamis.server.runtime.texts.exports import newest
    from tamis.server.runtime.tools.listing import in_inventory

    if names:
        by_name = {name: runtime.registry.get(name) for name in names}
        for name, tool in by_name.items():
            if tool is None:
                near = hint(best(name, runtime.registry.names()))
                warn(f"no tool '{name}'{near} (`tamis list` shows the registered ones)")
        kept = {(tool.tool_id, tool.manifest.version): tool for tool in by_name.values() if tool is not None}
        return list(kept.values()), None in by_name.values()
    tell_unregistered(runtime)
    every = newest(runtime.registry.tools)
    shown = [tool for tool in every if tool.callable and in_inventory(tool, runtime.agent, runtime.registry)]
    if len(shown) < len(every):
        warn(f"{len(every) - len(shown)} tools that agents may not call are left out; name them to export them")
    if not every:
        warn(f"no tools below {runtime.root}; `tools` in tamis.toml names the folders to search")
    return shown, False


def _exported(runtime: Runtime, tools: list[Tool], target: str) -> list[Description]:
    from tamis.server.runtime.texts import exports

    if target == "vcp":
        plugins = exports.plugin_names(runtime.registry)
        return [exports.plugin(tool, plugins) for tool in tools]
    if target == "caiu":
        usage = exports.usage_counts(runtime)
        return [exports.knowledge(tool, runtime, usage) for tool in tools]
    form = cast("exports.Form", target)
    names = exports.exported_names(runtime.registry, form)
    return [exports.describe(tool, form, runtime.registry, names) for tool in tools]


def say_losses(tool_id: str, losses: list[Loss]) -> None:
    """What the form of one tool does not hold, one line each on standard error."""
    for loss in losses:
        write_note(f"{tool_id}{loss.path and ' ' + loss.path}: {loss.message} [{loss.code}]")


def _document(target: str, definitions: list[Any]) -> Any:
    """The definitions as the target's interface takes them."""
    if target in ("mcp", "cursor"):
        return {"tools": definitions}
    if target == "gemini":
        return [{"functionDeclarations": definitions}]
    return definitions[0] if target == "vcp" and len(definitions) == 1 else definitions


def _write(folder: Path, target: str, tools: list[Tool], definitions: list[Any], *, force: bool) -> bool:
    """One file for each tool; False when one could not be written."""
    from tamis.protocols.manifest.imported import fit_name
    from tamis.server.cli.outputs import json_text, write_files

    files: dict[str, str] = {}
    for tool, definition in zip(tools, definitions, strict=True):
        name = fit_name(tool.tool_id.replace(":", "-"))
        # a VCP server looks for this name in a folder of each plug-in
        path = f"{name}/plugin-manifest.json" if target == "vcp" else f"{name}.{target}.json"
        number = 2
        while path in files:
            path, number = path.replace(name, f"{name}-{number}", 1), number + 1
        files[path] = json_text(definition)
    return write_files(folder, files, force=force)
