"""What the commands share: the root, a text from a file or stdin. Holds no rules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.server.cli.outputs import warn
from tamis.server.runtime.settings.files import find_root

if TYPE_CHECKING:
    from tamis.server.runtime.settings.config import LoadedSettings, NotInForce

MAX_TEXT_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
PROTOCOL_HELP = "auto (the default), action, tam, vcp, json, or one that an installed package brings, such as hermes"


class UsageError(Exception):
    """Wrong usage: the message goes to stderr and the exit code is 2."""


class TooLargeError(UsageError):
    """A text of more than ``MAX_TEXT_BYTES``; ``data`` is what was read of it."""

    def __init__(self, message: str, data: bytes) -> None:
        super().__init__(message)
        self.data = data


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
    from tamis.protocols.plugins import ALWAYS

    if name == "auto" or name in ALWAYS:
        return
    from tamis.server.runtime.settings.protocols import load_protocol

    problem = load_protocol(name)
    if problem:
        raise UsageError(f"--protocol: {problem}")


def tell_terminal() -> None:
    """Says that a command waits for what somebody types, where standard input is a terminal."""
    if sys.stdin.isatty():
        warn("reading from the terminal; end with Ctrl-D")


def read_text(name: str) -> str:
    """The text of a file, or of stdin for ``-``. Bytes that are no UTF-8 become U+FFFD, and stderr says so."""
    try:
        if name == "-":
            tell_terminal()
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
        raise TooLargeError(f"{shown} is larger than {MAX_TEXT_BYTES} bytes", data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        warn(f"{shown} is not UTF-8 at byte {error.start} (line {line}); such bytes are read as U+FFFD")
        return data.decode("utf-8", "replace")


def pieces_of(name: str, begin: bytes) -> Iterator[str]:
    """The text of a file, or of stdin for ``-``, by pieces; ``begin`` is what was read of it. Bytes that are no UTF-8 become U+FFFD."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with sys.stdin.buffer if name == "-" else Path(name).open("rb") as stream:
        if name == "-":
            for at in range(0, len(begin), _PIECE_BYTES):
                yield decoder.decode(begin[at : at + _PIECE_BYTES])
        while data := stream.read(_PIECE_BYTES):
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def tell_settings(loaded: LoadedSettings, problems: Iterable[str] | None = None) -> None:
    """What is wrong with the settings, what a folder asks for in vain, and whose word trusts it, each once on stderr."""
    for problem in loaded.problems if problems is None else problems:
        warn(problem)
    if loaded.not_in_force:
        from tamis.server.runtime.settings.loading import was_trusted

        changed = "; it has changed since you trusted it" if not loaded.trusted_by and was_trusted(loaded.root) else ""
        warn(f"not in force: {_named(loaded.not_in_force)}{changed}; `tamis trust` shows it")
    if loaded.asks and loaded.trusted_by in ("--trust", "TAMIS_TRUST"):
        warn(f"{loaded.trusted_by} puts in force: {_named(loaded.asks)}")


def _named(asked: Iterable[NotInForce]) -> str:
    named: dict[str, list[str]] = {}
    for setting in asked:
        named.setdefault(setting.where, []).append(setting.setting)
    return ", ".join(f"{', '.join(dict.fromkeys(settings))} of {where}" for where, settings in named.items())
