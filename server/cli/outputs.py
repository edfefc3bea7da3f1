"""Files that a command makes: into a folder, never over one that is there unless told so. Holds no rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tamis.server.cli.inputs import warn


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
            warn(f"cannot write '{path}': {error.strerror}")
            return False
        print(path)
    return True
