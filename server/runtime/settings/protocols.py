"""Protocols that installed packages bring, found by entry point (group ``tamis.protocols``) when their id is asked for.

Looking at what is installed costs more than reading a text, so nothing is looked at for the built-in protocols. A plug-in is checked
before it is used and guarded while it reads: whatever is wrong with it is a sentence, never a crash. Must not know faces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

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
from tamis.protocols.plugins import ALWAYS, find_protocol, known_protocols, register
from tamis.protocols.positions import Span
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.installed import bring, fault, names, words

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


def load_also(ids: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of ``[protocol] also`` that can be read, each once and without what ``auto`` reads anyway, and what is wrong."""
    kept: dict[str, None] = {}
    problems: list[str] = []
    for name in ids:
        if name == "auto" or name in ALWAYS:
            continue
        problem = load_protocol(name)
        if problem:
            problems.append(f"protocol.also: {problem}")
        else:
            kept[name] = None
    return tuple(kept), tuple(problems)


def installed_protocols() -> tuple[str, ...]:
    """The ids that installed packages bring, whether or not they are known yet, in order."""
    return tuple(names(GROUP))


def _load(name: str) -> str:
    brought = bring(GROUP, name, "the protocol")
    if brought is None:
        known = list(dict.fromkeys((*known_protocols(), *names(GROUP))))
        return f"no protocol '{name}'{hint(best(name, known))}; known: {', '.join(known)}"
    if isinstance(brought, str):
        return brought
    try:
        problem = _fault(name, brought.plugin)
        if not problem:
            register(_Guarded(brought.plugin))
    except Exception as error:
        problem = words(error)
    return f"{brought.where} cannot be used: {problem}" if problem else ""


def _fault(name: str, plugin: Any) -> str:
    """What keeps an object from being a protocol."""
    wrong = fault(plugin, PROTOCOL_API, "id", name, _METHODS)
    if wrong:
        return wrong
    if not isinstance(getattr(plugin, "markers", None), Markers):
        return "its markers are no tamis.protocols.base.Markers"
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
