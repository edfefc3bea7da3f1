"""Writes docs/diagnostics.md from the catalogue. usage: python tools/diagnostics_page.py [--check]"""

from __future__ import annotations

import sys
from pathlib import Path

from tamis.protocols.catalogue import CATALOGUE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "diagnostics.md"
GROUPS = {
    "TC": "Common to all protocols",
    "AX": "ACTION",
    "TM": "TAM",
    "VC": "VCP",
    "HM": "Calls in JSON",
    "VA": "Tools, arguments and schemas",
    "MF": "Manifests",
    "PF": "Agent profiles",
}
HEAD = """# Diagnostics

Every finding has a code, a slug and a severity; the same code stands in editors, in `tamis check`, in `tool/parse` and in the repairs of a
call. An **error** makes the calls of its block non-executable; a **warning** runs and is reported; **information** and **hints** never affect an
outcome. A severity with ↑ is an error under `--strict`. Some findings are graver or milder in one place than in another; the table gives
the usual severity. `{…}` stands for what the message names. This page is written by `python tools/diagnostics_page.py`.
"""


def page() -> str:
    """The page's text."""
    lines = [HEAD]
    for prefix, title in GROUPS.items():
        entries = [entry for code, entry in sorted(CATALOGUE.items()) if code.startswith(prefix)]
        if not entries:
            continue
        lines += [f"## {title}", "", "| code | slug | severity | message |", "|---|---|---|---|"]
        for entry in entries:
            message = entry.message.replace("|", "\\|").replace("<", "\\<")
            names = f" (also {', '.join(entry.aliases)})" if entry.aliases else ""
            lines.append(
                f'| <a id="{entry.code.lower()}"></a>{entry.code} | {entry.slug}{names} | {entry.severity}{" ↑" if entry.strict else ""} | {message} |'
            )
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if PAGE.read_text("utf-8") == page() else "docs/diagnostics.md is stale: python tools/diagnostics_page.py"
        )
    PAGE.write_text(page(), encoding="utf-8")
