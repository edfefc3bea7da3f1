"""Protocols that installed packages bring, found by entry point (group ``tamis.protocols``) when their id is asked for.

Looking at what is installed costs more than reading a text, so nothing is looked at for the built-in protocols. A plug-in is checked
before it is used and guarded while it reads: whatever is wrong with it is a sentence, never a crash. Must not know faces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tamis.protocols.base import (
    PROTOCOL_API,
    CallProtocol,
    Markers,
    PlainCall,
    PromptTool,
    Source,
    Style,
    WriteOptions,
    Written,
)
from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.model import Block, Call, Diag, ReadOptions
from tamis.protocols.plugins import BUILT_IN, find_protocol, known_protocols, register
from tamis.protocols.positions import Span
from tamis.protocols.suggest import best, hint

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tamis.protocols"
_METHODS = ("read_block", "parse_tool_requests", "format_tool_results", "generate_tool_definitions", "write_calls")
_ASKED: dict[str, str] = {}
"""Why an id could not be loaded, by id: an installation does not change while a process runs."""


def load_protocol(name: str) -> str:
    """Makes a protocol known, from an installed package if need be; why it cannot be, or nothing when it is known."""
    if name == "auto" or find_protocol(name) is not None:
        return ""
    if name not in _ASKED:
        _ASKED[name] = _load(name)
    return _ASKED[name]


def load_also(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of ``[protocol] also`` that can be read, each once and without what ``auto`` reads anyway, and what is wrong."""
    kept: dict[str, None] = {}
    problems: list[str] = []
    for name in names:
        if name in (*BUILT_IN, "auto", "json"):
            continue
        problem = load_protocol(name)
        if problem:
            problems.append(f"protocol.also: {problem}")
        else:
            kept[name] = None
    return tuple(kept), tuple(problems)


def installed_protocols() -> tuple[str, ...]:
    """The ids that installed packages bring, whether or not they are known yet, in order."""
    return tuple(sorted({point.name for point in _points()}))


def _points() -> list[EntryPoint]:
    from importlib.metadata import entry_points

    return list(entry_points(group=GROUP))


def _load(name: str) -> str:
    points = _points()
    found = [point for point in points if point.name == name]
    if not found:
        names = list(dict.fromkeys((*known_protocols(), *(point.name for point in points))))
        return f"no protocol '{name}'{hint(best(name, names))}; known: {', '.join(names)}"
    values = {point.value for point in found}
    if len(values) > 1:
        return f"two packages bring a protocol '{name}': {' and '.join(_package(point) for point in found)}; remove one"
    return _register(name, found[0])


def _register(name: str, point: EntryPoint) -> str:
    where = f"protocol '{name}' of {_package(point)}"
    try:
        plugin: Any = point.load()
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        return f"{where} cannot be loaded: {type(error).__name__}: {error}"
    try:
        problem = _fault(name, plugin)
        if not problem:
            register(_Guarded(plugin))
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return f"{where} cannot be used: {problem}" if problem else ""


def _package(point: EntryPoint) -> str:
    dist = getattr(point, "dist", None)
    return f"{dist.name} {dist.version}" if dist is not None else point.value


def _fault(name: str, plugin: Any) -> str:
    """What keeps an object from being a protocol."""
    api = getattr(plugin, "api", None)
    if api != PROTOCOL_API:
        return f"it is written for version {api!r} of the plug-in interface, this Tamis has version {PROTOCOL_API}"
    if getattr(plugin, "id", None) != name:
        return f"its id is {getattr(plugin, 'id', None)!r}"
    if not isinstance(getattr(plugin, "markers", None), Markers):
        return "its markers are no tamis.protocols.base.Markers"
    missing = [method for method in _METHODS if not callable(getattr(plugin, method, None))]
    if missing:
        return f"it has no {', '.join(missing)}"
    pattern = getattr(getattr(plugin, "opener", None), "pattern", None)
    if not isinstance(pattern, str):
        return "its opener is no regular expression"
    # The reader joins the patterns under names of its own, and looks for both in every text.
    for part in (pattern, plugin.markers.stray):
        if re.compile(f"(?P<{name}>{part})").match("") is not None:
            return f"its pattern {part!r} matches an empty text"
    return ""


class _Guarded:
    """A plug-in as the reader sees it: a fault in it costs its own block and nothing else."""

    def __init__(self, plugin: CallProtocol) -> None:
        self._plugin = plugin
        self.id = plugin.id
        self.markers = plugin.markers
        self.opener = plugin.opener

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """The plug-in's block, or a rejected one that says what the plug-in did wrong."""
        try:
            block = self._plugin.read_block(source, opener, limit, options)
            start, end = block.span
            if start != opener[0] or not opener[1] <= end <= limit or block.protocol != self.id:
                raise ValueError(f"its block stands at {start} to {end}, not within {opener[0]} to {limit}")
            _check_calls(block, self.id)
        except Exception as error:
            diag = Diag("TC026", opener, {"protocol": self.id, "reason": f"{type(error).__name__}: {error}"[:200]})
            return Block(self.id, opener, opener, None, "rejected", diagnostics=[diag])
        return block

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        return self._plugin.parse_tool_requests(text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """The results as the plug-in words them, or as ACTION does when it fails."""
        try:
            text: object = self._plugin.format_tool_results(results)
        except Exception:
            text = None
        if isinstance(text, str):
            return text
        from tamis.protocols.observation import observation

        return "\n".join(observation(result, "action") for result in results)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The definitions of tools; see ``CallProtocol``."""
        return self._plugin.generate_tool_definitions(tools, style)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """The calls as text; see ``CallProtocol``."""
        return self._plugin.write_calls(calls, options)


def _check_calls(block: Block, name: str) -> None:
    """Raises for a block that says what no block can say."""
    start, end = block.span
    for call in block.calls:
        if call.protocol != name or not call.tool_id or not start <= call.span[0] <= call.span[1] <= end:
            raise ValueError(f"the call of {call.tool_id!r} stands outside its block or under another protocol")
        if block.state != "complete" and call.executable:
            raise ValueError(f"a block that is {block.state} holds an executable call")
    for diag in block.diagnostics:
        if diag.code not in CATALOGUE:
            raise ValueError(f"there is no finding {diag.code!r} in the catalogue")
