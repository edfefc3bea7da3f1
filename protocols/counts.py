"""Counts over many texts: calls by protocol, tool and model, what kept them from running, repairs, unknown names.

``Counts`` are plain data that pickles, and adding up is the same in any order and any division of the texts, up to ``MAX_NAMES`` names of a
kind. Must not know where texts come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from tamis.protocols.api import Reader, hint_of
from tamis.protocols.catalogue import CATALOGUE, severity
from tamis.protocols.context import CONTEXTS
from tamis.protocols.invisible import visible_line
from tamis.protocols.model import MAX_NAME_CHARS, Block, Call, Document, ToolHint
from tamis.protocols.plugins import extras_of
from tamis.protocols.schema.plan import Plan, compile_plan

MAX_NAMES = 10_000
"""So many names of tools, parameters or models are counted one by one; those behind them are counted under ``OTHERS``."""
OTHERS = "(others)"
_COMMAND = "command"
_N = TypeVar("_N", bound="Numbers")


class Numbers(msgspec.Struct, rename="camel"):
    """How many calls were seen, and what became of them; the last four add up to ``calls``."""

    calls: int = 0
    executable: int = 0
    set_aside: int = 0
    """Quoted, in reasoning, an example …: nothing that was meant to run."""
    cut_off: int = 0
    refused: int = 0
    """Whole, but with an error, ambiguous, or dropped for another block."""
    repaired: int = 0
    """Of all of them: read with at least one repair."""

    def merge(self, other: Numbers) -> None:
        """Adds the other's."""
        self.calls += other.calls
        self.executable += other.executable
        self.set_aside += other.set_aside
        self.cut_off += other.cut_off
        self.refused += other.refused
        self.repaired += other.repaired


class ModelNumbers(Numbers, rename="camel"):
    """The same of one model, with its texts."""

    texts: int = 0

    def merge(self, other: Numbers) -> None:
        """Adds the other's."""
        super().merge(other)
        self.texts += other.texts if isinstance(other, ModelNumbers) else 0


class Counts(Numbers, rename="camel"):
    """What stands in many texts. ``add`` and ``merge`` change it; ``data`` gives it as plain data."""

    texts: int = 0
    characters: int = 0
    texts_with_calls: int = 0
    broken: int = 0
    """Records that gave no text."""
    cut_off_blocks: int = 0
    """Blocks that were cut off before a call could be read in them."""
    refused_blocks: int = 0
    """Whole blocks in which no call could be read."""
    protocols: dict[str, Numbers] = {}
    tools: dict[str, Numbers] = {}
    models: dict[str, ModelNumbers] = {}
    """By the name that the records give; empty where they give none."""
    repairs: dict[str, int] = {}
    """Calls by the code of a repair that they needed."""
    errors: dict[str, int] = {}
    """Errors by code."""
    contexts: dict[str, int] = {}
    """Calls that were set aside, by the context they stand in."""
    tools_known: bool = False
    """Whether tools were given: only then names can be unknown."""
    unknown_tools: dict[str, int] = {}
    """Calls, neither set aside nor cut off, by a name that no tool has."""
    unknown_parameters: dict[str, dict[str, int]] = {}
    """By tool and name: arguments that the tool does not take."""

    def add(self, document: Document, model: str = "", known: KnownTools | None = None) -> None:
        """Counts one text that was read."""
        of_model: ModelNumbers | None = None
        if model:
            of_model = _named(self.models, model, ModelNumbers)
            of_model.texts += 1
        self.texts += 1
        self.characters += len(document.text)
        self.tools_known |= known is not None
        if document.calls:
            self.texts_with_calls += 1
        if document.blocks:
            for block in document.blocks:
                if not block.calls and not block.aside:
                    self.cut_off_blocks += block.state == "truncated"
                    self.refused_blocks += block.state == "rejected"
                if block.aside and block.calls:
                    kind = block.context or "other"
                    self.contexts[kind] = self.contexts.get(kind, 0) + len(block.calls)
                for call in block.calls:
                    self._add_call(document.text, block, call, of_model, known)
        for diagnostic in document.diagnostics:
            if severity(diagnostic) == "error":
                self.errors[diagnostic.code] = self.errors.get(diagnostic.code, 0) + 1

    def _add_call(
        self, text: str, block: Block, call: Call, of_model: ModelNumbers | None, known: KnownTools | None
    ) -> None:
        numbers = Numbers(calls=1)
        if block.aside:
            numbers.set_aside = 1
        elif not call.complete or block.state == "truncated":
            numbers.cut_off = 1
        elif call.executable:
            numbers.executable = 1
        else:
            numbers.refused = 1
        codes = {repair.code for repair in call.repairs}
        numbers.repaired = 1 if codes else 0
        self.merge_numbers(numbers)
        _named(self.protocols, call.protocol, Numbers).merge(numbers)
        _named(self.tools, call.tool_id, Numbers).merge(numbers)
        if of_model is not None:
            Numbers.merge(of_model, numbers)
        for code in codes:
            self.repairs[code] = self.repairs.get(code, 0) + 1
        if known is not None and not numbers.set_aside and not numbers.cut_off:
            unknown = known.unknown(call, text)
            if unknown is None:
                _count(self.unknown_tools, call.tool_id)
                return
            for name in unknown:
                _count(_within(self.unknown_parameters, call.tool_id), name)

    def merge_numbers(self, other: Numbers) -> None:
        """Adds calls alone."""
        Numbers.merge(self, other)

    def merge(self, other: Numbers) -> None:
        """Adds the other's counts."""
        super().merge(other)
        if not isinstance(other, Counts):
            return
        self.texts += other.texts
        self.characters += other.characters
        self.texts_with_calls += other.texts_with_calls
        self.broken += other.broken
        self.cut_off_blocks += other.cut_off_blocks
        self.refused_blocks += other.refused_blocks
        self.tools_known |= other.tools_known
        for name, numbers in other.protocols.items():
            _named(self.protocols, name, Numbers).merge(numbers)
        for name, numbers in other.tools.items():
            _named(self.tools, name, Numbers).merge(numbers)
        for name, numbers in other.models.items():
            _named(self.models, name, ModelNumbers).merge(numbers)
        for mine, others in (
            (self.repairs, other.repairs),
            (self.errors, other.errors),
            (self.contexts, other.contexts),
            (self.unknown_tools, other.unknown_tools),
        ):
            for name, count in others.items():
                _count(mine, name, count)
        for tool, names in other.unknown_parameters.items():
            mine = _within(self.unknown_parameters, tool)
            for name, count in names.items():
                _count(mine, name, count)

    def data(self) -> dict[str, Any]:
        """Everything as plain data; names in the order of their counts, the most frequent first."""
        return {name: _sorted(value) for name, value in cast("dict[str, Any]", msgspec.to_builtins(self)).items()}


class KnownTools:
    """The tools that calls may name; ``hints`` by every name that means one."""

    def __init__(self, hints: Mapping[str, ToolHint]) -> None:
        self._hints = hints
        self._plans: dict[str, Plan | None] = {}

    def unknown(self, call: Call, text: str) -> list[str] | None:
        """The arguments that the called tool does not take; None where there is no such tool."""
        hint = self._hints.get(call.tool_id)
        names = [param.name for param in call.params]
        if (
            extras_of(call.protocol).by_command
            and _COMMAND in names
            and (hint is None or _COMMAND not in hint.properties)
        ):
            # The method may stand in `command`: `toolId` and `command` together name the tool.
            param = call.param(_COMMAND)
            method = None if param is None else param.value.python(text)
            spelled = self._hints.get(f"{call.tool_id}_{method}") if isinstance(method, str) else None
            if spelled is not None:
                hint = spelled
                names.remove(_COMMAND)
        if hint is None:
            return None
        if hint.tool_id not in self._plans:
            self._plans[hint.tool_id] = compile_plan(cast("Any", hint.parameters)) if hint.parameters else None
        plan = self._plans[hint.tool_id]
        return [] if plan is None else plan.unknown_names(names)


def count(
    texts: Iterable[str | tuple[str, str]], reader: Reader | None = None, tools: Iterable[Mapping[str, Any]] = ()
) -> Counts:
    """The counts of texts, each alone or with the name of its model: ``(text, model)``.

    ``tools``, each ``{"toolId": …, "parameters": JSON Schema}``, are the ones that calls may name: without them no name is unknown. Raises
    ``ValueError`` for a tool of another shape.

    >>> counts = count(["<ACTION><time:now></time:now></ACTION>", ("prose", "small")])
    >>> counts.calls, counts.texts, list(counts.models)
    (1, 2, ['small'])
    """
    reader = reader or Reader()
    hints = {hint.tool_id: hint for hint in map(hint_of, tools)}
    known = KnownTools(hints) if hints else None
    counts = Counts()
    for item in texts:
        text, model = (item, "") if isinstance(item, str) else item
        counts.add(reader.document(text), model, known)
    return counts


def _named(table: dict[str, _N], name: str, kind: type[_N]) -> _N:
    entry = table.get(name)
    if entry is None:
        name = _room(table, name)
        entry = table.get(name)
        if entry is None:
            entry = table[name] = kind()
    return entry


def _within(table: dict[str, dict[str, int]], name: str) -> dict[str, int]:
    return table.setdefault(_room(table, name), {})


def _count(table: dict[str, int], name: str, by: int = 1) -> None:
    name = _room(table, name)
    table[name] = table.get(name, 0) + by


def _room(table: Mapping[str, object], name: str) -> str:
    name = name[:MAX_NAME_CHARS]
    return name if name in table or len(table) < MAX_NAMES else OTHERS


def _sorted(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value).items()
    return {name: _sorted(part) if _is_nested(part) else part for name, part in sorted(items, key=_rank)}


def _is_nested(part: Any) -> bool:
    return isinstance(part, dict) and "calls" not in part


def _rank(item: tuple[str, Any]) -> tuple[int, str]:
    name, part = item
    if isinstance(part, dict):
        numbers = cast("dict[str, int]", part)
        return -(numbers["calls"] if "calls" in numbers else sum(numbers.values())), name
    return -int(part), name


# Counts as one HTML page with plots that stands alone: no script, nothing from elsewhere, every text of a log escaped. A policy in the page itself
# forbids all loading and all scripts.


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
