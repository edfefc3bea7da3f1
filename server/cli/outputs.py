"""Everything that a command writes: lines for persons, documents, JSON, files. Holds no rules.

Texts come from folders, manifests, models, scripts and servers. **No command writes to a stream but through this module**: what a
terminal obeys, or does not show, comes out as an escape (D74). Lines for persons are always written so. A document, which is what
another program reads, stays byte for byte, and is escaped only where standard output is a terminal. While a person is asked, nothing
but the question is written (``asking``): what a tool printed must not stand between the question and its answer.
"""

from __future__ import annotations

import argparse
import errno
import functools
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TextIO

from tamis.protocols.invisible import visible_json, visible_line, visible_lines

_asks: ContextVar[bool] = ContextVar("asks", default=False)
"""Whether what is written belongs to the question that is open."""
_waiting: list[Callable[[], None]] | None = None
"""What is written when the open question is answered; None while there is none."""


@contextmanager
def asking() -> Generator[None]:
    """What is written within belongs to a question. What others write meanwhile comes after it; one question at a time."""
    global _waiting
    token = _asks.set(True)
    _waiting = []
    try:
        yield
    finally:
        waiting, _waiting = _waiting, None
        _asks.reset(token)
        for write in waiting:
            write()


def _put(write: Callable[[], None]) -> None:
    """Writes now, or when the question that is open is answered."""
    if _waiting is None or _asks.get():
        write()
    else:
        _waiting.append(write)


class Painted(NamedTuple):
    """A piece of a line in the colour of an SGR code; an empty code is no colour."""

    code: str
    text: str


class Paint:
    """Terminal colours, only on a terminal and when ``NO_COLOR`` is not set."""

    def __init__(self, stream: Any) -> None:
        self.on = bool(stream.isatty()) and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def __call__(self, code: str, text: str) -> Painted:
        """The text in the colour of an SGR code, or as it is."""
        return Painted(code if self.on else "", text)


def write_line(*pieces: str | Painted) -> None:
    """One line for a person on standard output; line ends within it are shown as escapes."""
    _write_line(sys.stdout, pieces)


def write_rows(rows: Iterable[tuple[str | Painted, ...]]) -> None:
    """Many such lines that are known already, at once."""
    lines = [
        visible_line(row[0]) if len(row) == 1 and type(row[0]) is str else "".join(map(_shown, row)) for row in rows
    ]
    _write(sys.stdout, "\n".join([*lines, ""]))


def write_note(*pieces: str | Painted) -> None:
    """One line for a person on standard error."""
    _write_line(sys.stderr, pieces)


def warn(text: str) -> None:
    """One line of Tamis itself on standard error."""
    write_note("tamis: ", text)


def write_question(text: str) -> None:
    """The begin of a line that a person ends with an answer, on standard error."""
    _write(sys.stderr, visible_line(text))


def write_asked(text: str) -> None:
    """A line of a question on standard error, folded here: where the terminal would wrap it, it goes on behind a mark of ours.

    So no text can make, with blanks, what looks like a line of Tamis.
    """
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    # many a terminal without a size says 0 (a container's, an editor's)
    for row in folded(text, columns if columns >= 20 else 80):
        write_note(row)


FOLDED = "  : "
"""How a row begins that goes on with the one above."""


def folded(text: str, columns: int) -> list[str]:
    """A line as rows of a terminal that is so many columns wide; none is wide enough to be wrapped."""
    from unicodedata import east_asian_width

    columns = max(columns, 20)
    rows, room = [""], columns - 1
    for char in visible_line(text):
        # the most that any terminal takes for it
        needed = 2 if char > "\U0001f000" or east_asian_width(char) in "WFA" else 1
        if needed > room:
            rows.append(FOLDED)
            room = columns - len(FOLDED) - 1
        rows[-1] += char
        room -= needed
    return rows


def write_progress(text: str) -> None:
    """A line on standard error that the next one overwrites; an empty one takes it away. Only for a terminal."""
    _write(sys.stderr, f"\r{visible_line(text):<79}\r")


def write_lines(data: bytes) -> None:
    """Lines of JSON on standard output, at once."""
    if sys.stdout.isatty():
        data = visible_json(data.decode()).encode()
    _write_bytes(data)


def write_document(text: str, *, of_tool: bool = False) -> None:
    """What was asked for, on standard output, as it is and with its line ends; escaped, and with its last line ended, where that is a terminal.

    ``of_tool``: a tool has a say in it; a terminal, where Tamis speaks too, is then told which lines only look like Tamis's.
    """
    if sys.stdout.isatty():
        if of_tool:
            from tamis.server.runtime.calls.outputs import told_apart

            text = told_apart(text)
        text = visible_lines(text.replace("\r\n", "\n"))
        # what comes next, a message or the shell's prompt, stands on a line of its own
        text += "" if not text or text.endswith("\n") else "\n"
    _write_bytes(text.encode("utf-8", "surrogatepass"))


def write_value(value: Any) -> None:
    """What a tool gave, on standard output: a text as it is, anything else as JSON on one line.

    Into a pipe or a file a text has not a byte more or less; on a terminal it is escaped and ends its line.
    """
    if isinstance(value, str):
        write_document(f"{value}\n" if sys.stdout.isatty() else value, of_tool=True)
        return
    import json

    write_lines(json.dumps(value, ensure_ascii=False).encode() + b"\n")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    import msgspec

    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        data = json.dumps(msgspec.to_builtins(value)).encode()
    data = msgspec.json.format(data, indent=2) + b"\n"
    if sys.stdout.isatty():
        data = visible_json(data.decode()).encode()
    _write_bytes(data)


def flush() -> None:
    """Sends on what the streams still hold."""
    sys.stdout.flush()
    sys.stderr.flush()


def end_line() -> None:
    """Ends the line that a terminal is left in, and sends on what the streams still hold."""
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    flush()


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal. argparse asks one for each argument, and by itself loads ``shutil`` for its width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


@functools.cache
def _columns() -> int:
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"]) or 80
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (OSError, ValueError):
        return 80


class Parser(argparse.ArgumentParser):
    """An argument parser whose messages repeat what was typed, a file's name for one, only as text that can be seen."""

    def __init__(self, **how: Any) -> None:
        super().__init__(formatter_class=_Help, **how)

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(visible_lines(message), file)


def show_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A ``sys.excepthook``: the trace as Python writes it, but the message of an error may be anybody's text."""
    import traceback

    sys.stderr.write(visible_lines("".join(traceback.format_exception(kind, error, trace))))


def json_text(value: Any) -> str:
    """A JSON document as files hold it: two blanks, other scripts as they are, a line end."""
    import json

    import msgspec

    return json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False) + "\n"


def write_files(folder: Path, files: Mapping[str, str], *, force: bool = False, forcible: bool = True) -> bool:
    """Writes each file below ``folder`` and prints its path; all or none as far as what is there already is concerned.

    ``forcible``: the command has a ``--force``. False when a file is there already or could not be written; the reason goes to standard error.
    """
    paths = {name: folder / name for name in files}
    there = [str(path) for path in paths.values() if os.path.lexists(path)]
    if there and not force:
        for path in there[:20]:
            warn(f"'{path}' is there already; nothing was written{' (--force overwrites)' if forcible else ''}")
        return False
    for name, text in files.items():
        path = paths[name]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                raise OSError(None, "it is a symbolic link")
            path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="\n")
        except OSError as error:
            denied = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
            remedy = "; make its folder writable, or write into another one" if denied else ""
            warn(f"cannot write '{path}': {error.strerror}{remedy}")
            return False
        write_line(str(path))
    return True


def _write_line(stream: TextIO, pieces: tuple[str | Painted, ...]) -> None:
    _write(stream, "".join(map(_shown, pieces)) + "\n")


def _write(stream: TextIO, text: str) -> None:
    def write() -> None:
        # at once, so that what goes to both streams stands in its order, and a person sees each result when it is there
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            if stream is not sys.stderr or _asks.get():
                raise
            # whoever reads notes went away: the work goes on, and its exit code is what it would be
            let_go(sys.stderr)

    _put(write)


def let_go(stream: TextIO) -> None:
    """Has a stream whose reader went away, and what it still holds, written nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _write_bytes(data: bytes) -> None:
    def write() -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    _put(write)


def _shown(piece: str | Painted) -> str:
    if isinstance(piece, str):
        return visible_line(piece)
    text = visible_line(piece.text)
    return f"\033[{piece.code}m{text}\033[0m" if piece.code else text
