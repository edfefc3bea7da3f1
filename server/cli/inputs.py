"""What the commands share: the root, a text from a file or stdin, JSON output, colours. Holds no rules."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tamis.server.runtime.settings.config import find_root

MAX_TEXT_BYTES = 64 * 1024 * 1024
PROTOCOL_HELP = "auto (the default), action, tam, vcp, json, or one that an installed package brings, such as hermes"


class UsageError(Exception):
    """Wrong usage: the message goes to stderr and the exit code is 2."""


def root_of(value: str | None) -> Path:
    """The root in force for a command."""
    if value is None:
        return find_root(Path.cwd())
    folder = Path(value)
    if not folder.is_dir():
        raise UsageError(f"--root: '{value}' is not a folder")
    return folder.resolve()


def check_protocol(name: str) -> None:
    """Makes sure that a protocol can be read; looks at the installed packages only for one that is not built in."""
    if name in ("auto", "action", "tam", "vcp", "json"):
        return
    from tamis.server.runtime.texts.protocols import load_protocol

    problem = load_protocol(name)
    if problem:
        raise UsageError(f"--protocol: {problem}")


def read_text(name: str) -> str:
    """The text of a file, or of stdin for ``-``. Bytes that are no UTF-8 become U+FFFD, and stderr says so."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
        else:
            path = Path(name)
            if path.is_dir():
                raise UsageError(f"'{name}' is a folder; name a file, or - for stdin")
            with path.open("rb") as stream:
                data = stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read '{name}': {error.strerror}") from None
    shown = "<stdin>" if name == "-" else f"'{name}'"
    if len(data) > MAX_TEXT_BYTES:
        raise UsageError(f"{shown} is larger than {MAX_TEXT_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        warn(f"{shown} is not UTF-8 at byte {error.start} (line {line}); such bytes are read as U+FFFD")
        return data.decode("utf-8", "replace")


def warn(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"tamis: {text}\n")


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    import msgspec

    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        data = json.dumps(msgspec.to_builtins(value)).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.format(data, indent=2) + b"\n")


class Paint:
    """Terminal colours, only on a terminal and when ``NO_COLOR`` is not set."""

    def __init__(self, stream: Any) -> None:
        self.on = bool(stream.isatty()) and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def __call__(self, code: str, text: str) -> str:
        """The text in the colour of an SGR code, or as it is."""
        return f"\033[{code}m{text}\033[0m" if self.on else text
