"""Writes the descriptions of the JSON-RPC contract: schemas/{openrpc.json,contract.json,tamis.d.ts}, docs/reference.md, client/{methods,results,params}.py.

usage: python tools/published_contract.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from tamis.server.rpc.described.files import texts

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Writes the files; with --check says whether they are there and the same."""
    made = texts()
    stale = [
        name for name, text in made.items() if not (ROOT / name).exists() or (ROOT / name).read_text("utf-8") != text
    ]
    if "--check" in sys.argv:
        for name in stale:
            sys.stderr.write(f"{name} is stale: run python tools/published_contract.py\n")
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).write_text(made[name], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
