"""Writes docs/diagnostics.md from the catalogue and tools/explanations.txt. usage: python tools/diagnostics_page.py [--check]"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tamis.protocols.catalogue import CATALOGUE, Entry
from tamis.protocols.levels import is_binding

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "diagnostics.md"
# What the explanations name for those who change Tamis says nothing to those who use it.
_SOURCES = re.compile(r" \((?:[A-Z]\d+|ruling \d+)(?:(?:, | to )(?:[A-Z]\d+|ruling \d+))*\)")
EXPLANATIONS = ROOT / "tools" / "explanations.txt"
GROUPS = {
    "TC": "Common to all protocols",
    "AX": "ACTION",
    "TM": "TAM",
    "VC": "VCP",
    "HM": "Calls in JSON",
    "VA": "Tools, arguments and schemas",
    "MF": "Manifests",
    "LN": "Lints",
    "TH": "Targets of export",
    "PF": "Agent profiles",
    "ST": "Settings",
    "WF": "Workflows",
}
HEAD = """# Diagnostics

Every finding has a code, a slug and a severity; the same code stands in editors, in `tamis check`, in `tool/parse` and in the repairs of a
call. An **error** makes the calls of its block non-executable; a **warning** runs and is reported; **information** and **hints** never affect an
outcome. A severity with ↑ is an error under `--strict`; one in brackets is not said unless it is asked for. Some findings are graver or milder
in one place than in another; the tables give the usual severity. `{…}` stands for what the message names. This page is written by
`python tools/diagnostics_page.py`.

## Levels

`[lint]` in [tamis.toml](settings.md), or `lint` in the editor's settings, gives findings another level: `"off"`, `"hint"`, `"information"`, `"warning"` or `"error"`.
A name is a code, a slug, or the beginning of codes; the most exact one wins.

```toml
[lint]
LN73 = "off"
parameter-undescribed = "warning"
```

That changes what editors and `tamis check` say (an error makes `tamis check` fail), and nothing that runs. What keeps a manifest or a profile from being
loaded is always said as an error.

## Ignoring findings

A comment silences findings where it stands. It names codes or slugs, and after a colon the reason; without a name all are meant. A code action writes it.

| where | comment | silences |
|---|---|---|
| manifest, profile | `// tamis-ignore LN721: reason` at the end of a line | what begins on this line |
| manifest, profile | the same on a line of its own | what begins on the next line |
| manifest, profile | the same before the first bracket | the whole file |
| manifest, profile, where comments are not allowed | `"x-tamis-ignore": ["LN721"]` in an object | what begins in this object; in the outermost one the whole file |
| text | `<!-- tamis-ignore TM210: reason -->`, or `#` or `//` on a line of its own, before a block or its fence | the block |
| text | the same as a comment inside a block | its next line |
| text | `tamis-ignore-file` instead of `tamis-ignore` | the whole file |

A comment that silences nothing is said ([LN790](#ln790-ignore-unused)), and so is one that names no rule ([LN791](#ln791-ignore-unknown)).
"""


def explanations() -> dict[str, tuple[str, str, str, str]]:
    """Cause, remedy, a wrong and a right spelling for each code."""
    found: dict[str, tuple[str, str, str, str]] = {}
    for line in EXPLANATIONS.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            code, cause, remedy, wrong, right = (part.strip() for part in f"{line} ".split("¦"))
            found[code] = (_SOURCES.sub("", cause), remedy, wrong, right)
    return found


def page() -> str:
    """The page's text."""
    said = explanations()
    lines = [HEAD]
    for prefix, title in GROUPS.items():
        entries = [entry for code, entry in sorted(CATALOGUE.items()) if code.startswith(prefix)]
        if not entries:
            continue
        lines += [f"## {title}", "", "| code | slug | severity | message |", "|---|---|---|---|"]
        for entry in entries:
            message = entry.message.replace("|", "\\|").replace("<", "\\<")
            names = f" (also {', '.join(entry.aliases)})" if entry.aliases else ""
            level = f"[{entry.severity}]" if entry.off else f"{entry.severity}{' ↑' if entry.strict else ''}"
            link = f"[{entry.code}](#{entry.code.lower()}-{entry.slug})"
            lines.append(f"| {link} | {entry.slug}{names} | {level} | {message} |")
        lines.append("")
        for entry in entries:
            lines += section(entry, *said.get(entry.code, ("", "", "", "")))
    return "\n".join(lines)


def section(entry: Entry, cause: str, remedy: str, wrong: str, right: str) -> list[str]:
    """What the page says of one code."""
    lines = [f'<a id="{entry.code.lower()}"></a>', "", f"### {entry.code} {entry.slug}", ""]
    lines += [escaped(cause), f"**What to do:** {escaped(remedy)}", ""] if cause else []
    if wrong:
        # The words before the examples make the fence one that is only shown (ruling 7).
        lines += ["```text", *example("wrong:", wrong), *example("right:", right or "(nothing)"), "```", ""]
    return [*lines, switch(entry), ""]


def escaped(text: str) -> str:
    """Prose whose brackets are no HTML."""
    return text.replace("<", "\\<")


def example(word: str, text: str) -> list[str]:
    """An example behind a word; ``⏎`` stands for a line break."""
    first, *rest = text.split("⏎")
    return [f"{word} {first}", *(f"{' ' * len(word)} {line}" for line in rest)]


def switch(entry: Entry) -> str:
    """How the finding is switched off or on."""
    if is_binding(entry.code, entry.severity):
        return "It keeps the file from being loaded and cannot be switched off."
    if entry.off:
        return f'Said only where it is asked for: `{entry.code} = "{entry.severity}"` in `[lint]`.'
    return f'Switched off by `{entry.code} = "off"` in `[lint]`, or by a comment (`tamis-ignore {entry.code}`).'


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if PAGE.read_text("utf-8") == page() else "docs/diagnostics.md is stale: python tools/diagnostics_page.py"
        )
    PAGE.write_text(page(), encoding="utf-8")
