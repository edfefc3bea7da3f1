"""Counts as one HTML page with plots that stands alone: no script, nothing from elsewhere, every text of a log escaped.

A policy in the page itself forbids all loading and all scripts. Must not know where the counts come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import NamedTuple

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.context import CONTEXTS
from tamis.protocols.counts import Counts, ModelNumbers, Numbers
from tamis.protocols.visible import visible_line

_ROWS = 40
"""Bars of one plot; the rest is told as a number."""
_NAME = 56
_BAR, _LEFT, _WIDTH, _RIGHT = 22, 300, 520, 120
_PARTS = (
    ("executable", "executable"),
    ("set_aside", "set aside"),
    ("cut_off", "cut off"),
    ("refused", "refused"),
)
_STYLE = """
:root { color-scheme: light dark; --ink: #0f172a; --soft: #64748b; --line: #e2e8f0; --page: #ffffff;
  --executable: #16a34a; --set_aside: #94a3b8; --cut_off: #f59e0b; --refused: #dc2626; --one: #6366f1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e8f0; --soft: #94a3b8; --line: #334155; --page: #0f172a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } p, figcaption { color: var(--soft); }
figure { margin: 0; } svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; }
dl div { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .75rem; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; font-size: 1.25rem; }
.key span { margin-right: 1rem; } .key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; border-radius: .15rem; }
.executable { fill: var(--executable); background: var(--executable); } .set_aside { fill: var(--set_aside); background: var(--set_aside); }
.cut_off { fill: var(--cut_off); background: var(--cut_off); } .refused { fill: var(--refused); background: var(--refused); } .one { fill: var(--one); }
"""


class _Row(NamedTuple):
    name: str
    parts: tuple[tuple[str, int], ...]
    """Classes and lengths, from left to right."""
    note: str = ""


def page(counts: Counts, title: str) -> str:
    """The whole page. ``title`` says what was counted."""
    numbers = (
        ("texts", counts.texts),
        ("with calls", counts.texts_with_calls),
        ("characters", counts.characters),
        ("records without a text", counts.broken),
        ("calls", counts.calls),
        *((label, getattr(counts, name)) for name, label in _PARTS),
        ("repaired", counts.repaired),
        ("blocks cut off before a call", counts.cut_off_blocks),
        ("blocks refused without a call", counts.refused_blocks),
    )
    cards = "".join(f"<div><dt>{_text(name)}</dt><dd>{number:,}</dd></div>" for name, number in numbers)
    key = "".join(f'<span><i class="{name}"></i>{_text(label)}</span>' for name, label in _PARTS)
    sections = [
        _plot("Calls by protocol", _stacked(counts.protocols)),
        _plot("Calls by tool", _stacked(counts.tools)),
        _plot("Calls by model", _stacked(counts.models)),
        _plot("Calls that were repaired, by repair", _single((_code(c), n) for c, n in counts.repairs.items())),
        _plot("Calls that were set aside, by context", _single((_context(c), n) for c, n in counts.contexts.items())),
        _plot("Errors, by code", _single((_code(c), n) for c, n in counts.errors.items())),
    ]
    if counts.tools_known:
        parameters = (
            (f"{name} of {tool}", number)
            for tool, names in counts.unknown_parameters.items()
            for name, number in names.items()
        )
        sections += [
            _plot("Calls of unknown tools", _single(counts.unknown_tools.items())),
            _plot("Unknown parameters", _single(parameters)),
        ]
    else:
        sections.append("<p>No tools were registered, so that no name is known to be wrong.</p>")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{_text(title)}</h1>\n<dl>{cards}</dl>\n"
        f'<p class="key">{key}</p>\n' + "\n".join(section for section in sections if section) + "\n</body>\n</html>\n"
    )


def _stacked(table: Mapping[str, Numbers]) -> list[_Row]:
    rows: list[_Row] = []
    for name, numbers in sorted(table.items(), key=lambda item: (-item[1].calls, item[0])):
        parts = tuple((part, int(getattr(numbers, part))) for part, _ in _PARTS)
        note = f"{numbers.calls:,}"
        if isinstance(numbers, ModelNumbers):
            note += f" in {numbers.texts:,} texts"
        rows.append(_Row(name or "(no name)", parts, note))
    return rows


def _single(items: Iterable[tuple[str, int]]) -> list[_Row]:
    return [
        _Row(name or "(no name)", (("one", number),), f"{number:,}")
        for name, number in sorted(items, key=lambda item: (-item[1], item[0]))
    ]


def _plot(title: str, rows: list[_Row]) -> str:
    """Bars beside their names; empty where there is nothing."""
    if not rows:
        return ""
    shown, rest = rows[:_ROWS], len(rows) - _ROWS
    longest = max(sum(length for _, length in row.parts) for row in shown) or 1
    height = len(shown) * _BAR
    lines: list[str] = []
    for at, row in enumerate(shown):
        top = at * _BAR
        lines.append(f"<g><title>{_text(row.name)}: {_text(row.note)}</title>")
        lines.append(f'<text x="{_LEFT - 8}" y="{top + 15}" text-anchor="end">{_text(_short(row.name))}</text>')
        x = float(_LEFT)
        for name, length in row.parts:
            width = length * _WIDTH / longest
            if length:
                lines.append(
                    f'<rect class="{name}" x="{x:.1f}" y="{top + 3}" width="{max(width, 1):.1f}" height="{_BAR - 6}"/>'
                )
            x += width
        lines.append(f'<text x="{x + 6:.1f}" y="{top + 15}">{_text(row.note)}</text></g>')
    more = f"<figcaption>and {rest:,} more</figcaption>" if rest > 0 else ""
    box = f"0 0 {_LEFT + _WIDTH + _RIGHT} {height}"
    drawing = f'<svg viewBox="{box}" role="img" aria-label="{_text(title)}">{"".join(lines)}</svg>'
    return f"<section>\n<h2>{_text(title)}</h2>\n<figure>{drawing}{more}</figure>\n</section>"


def _code(code: str) -> str:
    entry = CATALOGUE.get(code)
    return code if entry is None else f"{code} {entry.slug}"


def _context(kind: str) -> str:
    return CONTEXTS.get(kind, kind)


def _short(name: str) -> str:
    shown = visible_line(name)
    return shown if len(shown) <= _NAME else f"{shown[: _NAME - 1]}…"


def _text(text: str) -> str:
    """A text of anybody's: what cannot be seen as an escape of its own, what HTML obeys as an entity."""
    return escape(visible_line(text), quote=True)
