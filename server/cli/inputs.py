"""What the commands share: the root, a text from a file or stdin. Holds no rules."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tamis.server.cli.outputs import warn
from tamis.server.runtime.settings.files import find_root

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.settings.config import LoadedSettings

MAX_TEXT_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
"""So many settings of a folder are named on every command; what `tamis trust` shows is all of them."""
_TYPING = "reading from the terminal; end with Ctrl-D"
_SILENT_MS = 1_000
"""How long nobody may write into a FIFO before a person is told that a command waits for it."""
PROTOCOL_HELP = "auto (the default), action, tam, vcp, json, or one that an installed package brings, such as hermes"


class UsageError(Exception):
    """Wrong usage: the message goes to stderr and the exit code is 2."""


class TooLargeError(UsageError):
    """A text of more than ``MAX_TEXT_BYTES``; ``data`` is what was read of it, and ``rest`` gives what follows."""

    def __init__(self, message: str, data: bytes, rest: BinaryIO) -> None:
        super().__init__(message)
        self.data = data
        self.rest = rest


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
        warn(_TYPING)


def open_named(name: str) -> int:
    """A descriptor of what a person named: a file, a FIFO, a terminal, ``/dev/null``.

    Says on stderr that it waits for whoever writes into a FIFO, or types. Raises ``UsageError`` for anything else, which to open may wait for
    ever, or does something.
    """
    try:
        mode = os.stat(name).st_mode
        refused = _not_opened(name, mode)
        if refused:
            raise UsageError(f"'{name}' is {refused}")
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"cannot read '{name}': {error.strerror}") from None
    except ValueError:
        raise UsageError("cannot read a file whose name holds a zero character") from None
    try:
        # what `<(…)` and /dev/stdin lead to has its writer already
        if stat.S_ISFIFO(mode) and not os.path.realpath(name).startswith("/proc/"):
            _await_writer(descriptor, name)
        elif os.isatty(descriptor):
            warn(_TYPING)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _not_opened(name: str, mode: int) -> str:
    """What a thing is that is not opened, and what can be named instead; empty for all others."""
    if stat.S_ISDIR(mode):
        return "a folder; name a file, or - for stdin"
    if stat.S_ISSOCK(mode):
        return "a socket; name a file or a FIFO, or - for stdin"
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not _can_be_read(name)):
        return "a device; name a file or a FIFO, or - for stdin"
    return ""


def _can_be_read(name: str) -> bool:
    """Whether a character device is ``/dev/null`` or a terminal."""
    device = os.stat(name).st_rdev
    # 4 consoles and serial lines, 5 /dev/tty and the console, 136 to 143 terminals of windows
    return device == os.makedev(1, 3) or os.major(device) in (4, 5, *range(136, 144))


def _await_writer(descriptor: int, name: str) -> None:
    import select

    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    if not waiting.poll(_SILENT_MS):
        warn(f"'{name}' is a FIFO: waiting for what another program writes into it; Ctrl-C ends this")
        waiting.poll()


def read_text(name: str) -> str:
    """The text of a file, or of stdin for ``-``. Bytes that are no UTF-8 become U+FFFD, and stderr says so."""
    if name == "-":
        tell_terminal()
        stream = sys.stdin.buffer
    else:
        stream = open(open_named(name), "rb")  # noqa: SIM115 (what is too large is read on)
    shown = "<stdin>" if name == "-" else f"'{name}'"
    try:
        data = stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror}") from None
    if len(data) > MAX_TEXT_BYTES:
        raise TooLargeError(f"{shown} is larger than {MAX_TEXT_BYTES} bytes", data, stream)
    if name != "-":
        stream.close()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        warn(f"{shown} is not UTF-8 at byte {error.start} (line {line}); such bytes are read as U+FFFD")
        return data.decode("utf-8", "replace")


def pieces_of(text: TooLargeError) -> Iterator[str]:
    """A text that is too large, by pieces, from its beginning. Bytes that are no UTF-8 become U+FFFD."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with text.rest as stream:
        for at in range(0, len(text.data), _PIECE_BYTES):
            yield decoder.decode(text.data[at : at + _PIECE_BYTES])
        while data := stream.read(_PIECE_BYTES):
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def tell_settings(loaded: LoadedSettings, problems: Iterable[str] | None = None) -> None:
    """What is wrong with the settings, what a folder asks for in vain, and whose word trusts it, each once on stderr."""
    for problem in loaded.problems if problems is None else problems:
        warn(problem)
    if loaded.not_in_force or loaded.asks:
        from tamis.server.runtime.settings.loading import told_of_trust

        for line in told_of_trust(loaded):
            warn(line)


def tell_unregistered(runtime: Runtime) -> None:
    """Says each definition that is wrong with its place on stderr."""
    for error in runtime.registry.errors:
        place = f":{error.line}:{error.column}" if error.line else ""
        registered = runtime.registry.get(error.tool_id) if error.tool_id else None
        stands = registered is not None and registered.path == error.path
        warn(f"{short_path(error.path, runtime.root)}{place}: {'' if stands else 'not registered: '}{error.message}")


def short_path(path: str, root: object) -> str:
    """A path as a person is shown it: below the root from there on."""
    return os.path.relpath(path, str(root)) if path.startswith(f"{root}{os.sep}") else path
