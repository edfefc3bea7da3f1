"""A manifest, a script and an example to begin with, in a folder of their own."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import warn, write_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis new``."""
    parser.add_argument("name", metavar="NAME", help="what the tool is called; namespace:name gives its id")
    parser.add_argument("--language", choices=["python", "nodejs", "bun"], default="python")
    parser.add_argument("--folder", metavar="DIR", help="where the files go (default: a new folder of that name)")
    parser.add_argument("--namespace", metavar="NS", default="", help="the first half of its id (default: custom)")
    parser.add_argument("--id", metavar="TOOL_ID", default="", help="its whole id")


def run(arguments: argparse.Namespace) -> int:
    """Writes the files and prints their paths; nothing that is there already is touched."""
    from tamis.protocols.manifest.template import new_tool

    try:
        fixed = root_of(arguments.root) if arguments.root is not None else None
        if "/" in arguments.name:
            word = os.path.basename(arguments.name.rstrip("/"))
            said = f": `tamis new {word} --folder {arguments.name}`" if word.strip(".") else ""
            raise UsageError(f"'{arguments.name}' is a path: NAME names the tool, and --folder says where{said}")
        tool = new_tool(
            arguments.name, language=arguments.language, tool_id=arguments.id, namespace=arguments.namespace
        )
    except (UsageError, ValueError) as error:
        warn(str(error))
        return 2
    folder = Path(os.path.abspath(arguments.folder)) if arguments.folder else Path.cwd() / tool.name
    if folder.exists() and not folder.is_dir():
        warn(f"'{folder}' is there already and no folder; nothing was written")
        return 1
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.settings.files import find_root

    root = fixed or find_root(folder if folder.is_dir() else Path.cwd())
    there = Runtime(root).registry.get(tool.tool_id)
    if there is not None:
        warn(f"the id '{tool.tool_id}' belongs to {there.path}; nothing was written (--id gives another one)")
        return 1
    shown = Path(os.path.relpath(folder)) if folder.is_relative_to(Path.cwd()) else folder
    if not write_files(shown, tool.files, forcible=False):
        return 1
    if Runtime(root).registry.get(tool.tool_id) is None:
        warn(f"'{tool.tool_id}' is not registered in {root}: `tools` in tamis.toml names the folders to search")
    warn(
        f"made {tool.tool_id}: change the script and the manifest, then `tamis check {shown}` and `tamis test {shown}`"
    )
    return 0
