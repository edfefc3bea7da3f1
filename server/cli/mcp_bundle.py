"""``tamis mcp bundle FILE``: the server as an MCP bundle (``.mcpb``), which a desktop host installs by a click and asks for the folder of tools.

The bundle holds a manifest and a script that starts the Tamis of the machine; it holds no tool, so what is called is what stands in the folder.
"""

from __future__ import annotations

import argparse
import json
import shlex
import zipfile
from pathlib import Path
from typing import Any

from tamis import __version__
from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.mcp_install import own_command
from tamis.server.cli.outputs import warn, write_line

SUFFIX = ".mcpb"
LAUNCHER = "server/tamis"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can tell: the same settings give the same bytes."""
_EXECUTABLE, _PLAIN = 0o100755, 0o100644


def bundle(arguments: argparse.Namespace) -> int:
    """Writes the bundle; 0 when it stands where it was asked for. A file that is there is left alone."""
    try:
        root = root_of(arguments.root)
        if not arguments.host:
            raise UsageError("name the file to write: tamis mcp bundle tools.mcpb")
    except UsageError as error:
        warn(str(error))
        return 2
    path = Path(arguments.host)
    path = path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
    files = {
        "manifest.json": (json.dumps(manifest(root), ensure_ascii=False, indent=2) + "\n", _PLAIN),
        LAUNCHER: (launcher(own_command()), _EXECUTABLE),
    }
    try:
        with path.open("xb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, (text, mode) in files.items():
                about = zipfile.ZipInfo(name, _WHEN)
                about.external_attr = mode << 16
                about.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(about, text)
    except FileExistsError:
        warn(f"'{path}' is there already; nothing was written")
        return 1
    except OSError as error:
        warn(f"cannot write '{path}': {error.strerror}")
        return 1
    write_line(f"{path}: open it with a desktop host that takes MCP bundles; it asks for the folder of tools")
    return 0


def manifest(root: Path) -> dict[str, Any]:
    """What a host reads of the bundle (manifest version 0.3)."""
    return {
        "manifest_version": "0.3",
        "name": "tamis",
        "display_name": "Tamis",
        "version": __version__,
        "description": "Checked, sandboxed tools from a folder of *.tool.json manifests",
        "author": {"name": "Tamis"},
        "license": "Apache-2.0",
        "server": {
            "type": "binary",
            "entry_point": LAUNCHER,
            "mcp_config": {
                "command": "${__dirname}/" + LAUNCHER,
                "args": ["mcp", "--root", "${user_config.folder}"],
                "env": {},
            },
        },
        "tools_generated": True,
        "prompts_generated": True,
        "user_config": {
            "folder": {
                "type": "directory",
                "title": "Folder of tools",
                "description": "The folder with the *.tool.json manifests; tamis.toml in it or above it holds the settings",
                "required": True,
                "default": str(root),
            }
        },
        "compatibility": {"platforms": ["linux"]},
    }


def launcher(command: list[str]) -> str:
    """The script that a host starts: the Tamis that made the bundle, else one that the person installed."""
    return f"""#!/bin/sh
if [ -x {shlex.quote(command[0])} ]; then exec {shlex.join(command)} "$@"; fi
for program in "$HOME/.local/bin/tamis" tamis; do
  if command -v "$program" >/dev/null 2>&1; then exec "$program" "$@"; fi
done
echo "Tamis is not installed for this user; install it with pipx or uv, then start the host again" >&2
exit 127
"""
