"""What a manifest pins (``execution.integrity``, D80): its script, or with ``execution.files`` all files that belong to it.

The sandbox checks the script's bytes, and runs those that it checked; the other files are looked at right before the start.
"""

from __future__ import annotations

import base64
import hashlib
import os

from tamis.protocols.manifest.reading import Execution, ExternalScript
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.results import failure
from tamis.server.runtime.policy.contents import Unpinnable, listed_files
from tamis.server.runtime.tools.tool import Tool


def script_pin(tool: Tool) -> str:
    """The hash that the script's bytes must have, empty where nothing is pinned. Raises ``Stopped`` for other files than are pinned."""
    handler, execution = tool.manifest.handler, tool.manifest.execution
    if not isinstance(handler, ExternalScript) or not execution.integrity:
        return ""
    if not execution.files:
        return execution.integrity
    try:
        found = listed_files(tool.folder, handler, execution.files)
        whole = files_hash(found)
    except Unpinnable as why:
        text = f"execution.integrity pins files that cannot be pinned: {why}; name what belongs with execution.files"
        raise Stopped("error", failure("SecurityError", text, code="integrity")) from None
    if whole != execution.integrity:
        text = f"the files of {tool.tool_id} are not those that execution.integrity pins; their digest is {whole}; review them, then pin it"
        raise Stopped("error", failure("SecurityError", text, code="integrity"))
    script = found.get(os.path.normpath(handler.script_path))
    if script is None:
        text = f"the script '{handler.script_path}' is not there"
        raise Stopped("error", failure("SecurityError", text, code="integrity"))
    return _sri(script)


def files_pin(folder: str, handler: ExternalScript, execution: Execution) -> str:
    """What ``execution.integrity`` has to be for the files as they are; empty where they cannot be pinned."""
    try:
        return files_hash(listed_files(folder, handler, execution.files))
    except Unpinnable:
        return ""


def files_hash(files: dict[str, bytes]) -> str:
    """The digest of files together, from the SHA-256 of each by its path: that of the lines that ``sha256sum`` prints of them, in the
    order of the paths' bytes. Raises ``Unpinnable`` for a name that ``sha256sum`` would write otherwise."""
    lines: list[bytes] = []
    for path, digest in sorted((os.fsencode(path), digest) for path, digest in files.items()):
        if any(byte in path for byte in (b"\\", b"\n", b"\r")):
            raise Unpinnable(f"the name {os.fsdecode(path)!a} holds a backslash or a line break")
        lines.append(digest.hex().encode("ascii") + b"  " + path + b"\n")
    return _sri(hashlib.sha256(b"".join(lines)).digest())


def _sri(digest: bytes) -> str:
    return "sha256-" + base64.b64encode(digest).decode("ascii")
