"""Put manifests and the call blocks of texts into their canonical form; doubtful blocks are left and named."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.server.cli.inputs import UsageError, read_text, root_of, tell_settings
from tamis.server.cli.outputs import warn, write_document, write_line, write_note

if TYPE_CHECKING:
    from tamis.server.runtime.texts.formatting import FormattedFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis format``."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files or folders; - reads stdin and writes stdout")
    parser.add_argument("--stdin-name", metavar="NAME", help="the name of what - reads: its ending says what it is")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when something would change")


def run(arguments: argparse.Namespace) -> int:
    """Formats the paths."""
    try:
        root = root_of(arguments.root)
        if "-" in arguments.paths:
            if len(arguments.paths) > 1:
                raise UsageError("- stands for stdin and cannot stand beside other paths")
            return _stdin(root, arguments.stdin_name or "-", check=arguments.check)
        if arguments.stdin_name is not None:
            raise UsageError("--stdin-name goes with - only")
        paths = [Path(os.path.abspath(path)) for path in arguments.paths]
        missing = [str(path) for path in paths if not path.exists() and not path.is_symlink()]
        if missing:
            raise UsageError(f"'{missing[0]}' does not exist")
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.texts.formatting import format_paths, write_file

    changed = unread = 0

    def opened(folder: Path) -> Runtime:
        runtime = Runtime(folder)
        tell_settings(runtime.loaded)
        return runtime

    files = format_paths(paths, root, opened)
    for file in files:
        unread += _tell(file)
        if not file.changed:
            continue
        changed += 1
        problem = None if arguments.check else write_file(file)
        if problem is not None:
            warn(f"{_shown(file.path)}: {problem}")
            unread += 1
        else:
            write_line(f"{'would format' if arguments.check else 'formatted'} {_shown(file.path)}")
    count = len(files)
    verb = "would change" if arguments.check else "changed"
    write_note(f"{count} file{'' if count == 1 else 's'} looked at, {changed} {verb}")
    return 1 if unread or (arguments.check and changed) else 0


def _stdin(root: Path, name: str, *, check: bool) -> int:
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.texts.formatting import format_source

    file = format_source(name, read_text("-"), Runtime(root))
    trouble = _tell(file)
    if not check:
        write_document(file.text)
    return 1 if trouble or (check and file.changed) else 0


def _tell(file: FormattedFile) -> int:
    """Says what was left of a file; how much of it needs a person."""
    for note in file.notes:
        place = f":{note.line}" if note.line else ""
        warn(f"{_shown(file.path)}{place}: {note.text}")
    return sum(note.doubtful for note in file.notes)


def _shown(path: str) -> str:
    return path.removeprefix(os.getcwd() + os.sep)
