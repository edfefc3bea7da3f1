"""Writes the table of the server's settings into Neovim's help (`editors/neovim/doc/tamis.txt`), from the words of the settings page.

Usage: `python tools/editor_help.py`, then `:helptags editors/neovim/doc`. A test holds the help to it.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from tamis.server.runtime.settings.classes import short_word
from tamis.server.runtime.settings.words import TABLES, WORDS, default_text

HELP = Path(__file__).resolve().parents[1] / "editors" / "neovim" / "doc" / "tamis.txt"
BEGIN, END = "SETTINGS OF THE SERVER", "=" * 78
WIDTH = 78
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def table() -> str:
    """The section, from its title to the line before the next one."""
    tag = "*tamis-settings*"
    lines = [
        BEGIN + tag.rjust(WIDTH - len(BEGIN)),
        "",
        "The settings of `tamis.toml` and of `init_options.settings`, each with what it",
        "takes, its default and, where a folder may not simply set it, who may.",
        "`docs/settings.md` tells more of each.",
        "",
    ]
    groups: dict[str, list[str]] = {}
    for dotted in WORDS:
        groups.setdefault(dotted.partition(".")[0] if "." in dotted else "", []).append(dotted)
    for group, names in sorted(
        groups.items(), key=lambda item: (item[0] != "", list(TABLES).index(item[0]) if item[0] in TABLES else 0)
    ):
        if group:
            lines += [f"{group} ~", ""]
        for dotted in names:
            lines += _entry(dotted)
    return "\n".join(lines)


def _entry(dotted: str) -> list[str]:
    word = WORDS[dotted]
    who = short_word(dotted)
    head = f"{_plain(word.kind)}; default {_plain(default_text(dotted))}" + (f"; {who}" if who else "")
    # One sentence or clause: the page has the rest.
    means = re.split(r"(?<=[^.])(?:\. |; see )(?=\S)", _plain(word.means), maxsplit=1)[0].rstrip(".;")
    wrap = textwrap.TextWrapper(WIDTH - 4, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return [dotted, *wrap.wrap(head), *wrap.wrap(f"{means}."), ""]


def _plain(markdown: str) -> str:
    # `|` would be a link of the help
    return _LINK.sub(r"\1", markdown).replace("**", "").replace("|", "/")


def written(text: str) -> str:
    """The help with its table as it is to be."""
    start = text.index(BEGIN)
    stop = text.index(END, start)
    return text[:start] + table() + "\n" + text[stop:]


def main() -> int:
    """Writes the help."""
    HELP.write_text(written(HELP.read_text("utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
