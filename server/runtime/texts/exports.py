"""``tool/describe`` and ``tamis export``: registered tools in the forms of others, under names that are distinct among all tools.

How a form looks is ``protocols/export``'s matter. Must not know framing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, get_args
from weakref import WeakKeyDictionary

import msgspec

from tamis.protocols.contract import Description
from tamis.protocols.export.names import TARGETS, numbered, portable_names, short_name
from tamis.protocols.export.targets import caiu_record, export_tool
from tamis.server.runtime.tools.listing import in_inventory
from tamis.server.runtime.tools.registry import Registry, Tool

if TYPE_CHECKING:
    from tamis.server.runtime.observe.usage import ToolUsage
    from tamis.server.runtime.runtime import Runtime

Form = Literal["native", "mcp", "openai", "openaiStrict", "anthropic", "gemini", "cursor", "smolagents", "vcp"]
"""What ``tool/describe`` gives a tool as."""
FORMS: tuple[Form, ...] = get_args(Form)


# a registry is replaced as a whole, never changed
_names: WeakKeyDictionary[Registry, dict[Form, dict[str, str]]] = WeakKeyDictionary()


def exported_names(registry: Registry, form: Form) -> dict[str, str]:
    """The names of all tools in a form; those of every tool count, so that no answer depends on which are asked for."""
    known = _names.setdefault(registry, {})
    if form not in known:
        ids = [tool.tool_id for tool in registry.tools]
        if form in TARGETS:
            short = {tool.tool_id: name for tool in registry.current() if (name := _short(tool))}
            known[form] = portable_names(ids, form, registry.owners, short)
        else:
            known[form] = dict(zip(ids, ids, strict=True))
    return known[form]


def _short(tool: Tool) -> str | None:
    return short_name(tool.tool_id, tool.names[1:])


def plugin_names(registry: Registry) -> dict[str, str]:
    """What a VCP server calls each tool: names that fall together are numbered, and the tool that calls by the name reach keeps it."""
    from tamis.protocols.export.vcp import plugin_name

    wanted = {tool.tool_id: plugin_name(tool.manifest) for tool in registry.current()}
    kept = {tool_id: name for tool_id, name in wanted.items() if registry.owners.get(name) == tool_id}
    bases = {tool_id: name for tool_id, name in wanted.items() if tool_id not in kept}
    return numbered(bases, kept, registry.owners)


def describe(tool: Tool, form: Form, registry: Registry, names: dict[str, str] | None = None) -> Description:
    """A tool in a form. ``names`` are those of ``exported_names``, for a caller that describes several."""
    manifest = tool.manifest
    if form == "vcp":
        from tamis.protocols.export.vcp import definition_text
        from tamis.server.runtime.texts.prompts import prompt_tool

        text, losses = definition_text(manifest, prompt_tool(tool, "vcp", "tag", registry))
        return Description(definition=text, losses=losses, tokens=_count(text))
    if form == "native":
        return Description(definition=dict(manifest.raw), losses=[], tokens=_tokens(manifest.raw))
    known = names if names is not None else exported_names(registry, form)
    # one of Tamis's own tools that no list shows has no row among the names
    name = known.get(tool.tool_id) or portable_names([tool.tool_id], form)[tool.tool_id]
    exported = export_tool(manifest, form, name)
    return Description(definition=exported.definition, losses=exported.losses, tokens=_tokens(exported.definition))


def plugin(tool: Tool, names: Mapping[str, str]) -> Description:
    """A tool as the ``plugin-manifest.json`` of a VCP server; ``names`` are those of ``plugin_names``."""
    from tamis.protocols.export.vcp import plugin_manifest

    exported = plugin_manifest(tool.manifest, names.get(tool.tool_id, ""))
    return Description(definition=exported.definition, losses=exported.losses, tokens=_tokens(exported.definition))


def knowledge(tool: Tool, runtime: Runtime, usage: Mapping[str, ToolUsage]) -> Description:
    """A tool as a record of a knowledge base, with the counts of its calls (D87)."""
    enabled = tool.callable and in_inventory(tool, runtime.agent, runtime.registry) and not runtime.why_not(tool)
    counts = usage.get(tool.tool_id)
    told = None
    if counts is not None:
        from datetime import UTC, datetime

        last = datetime.fromtimestamp(counts.last_used, UTC).isoformat(timespec="seconds")
        told = {"calls": counts.calls, "failures": counts.failures, "lastUsed": last}
    exported = caiu_record(tool.manifest, enabled=enabled, usage=told)
    return Description(
        definition=exported.definition, losses=exported.losses, tokens=_tokens(exported.definition["content"])
    )


def usage_counts(runtime: Runtime) -> dict[str, ToolUsage]:
    """How often each tool of the root was called, as far as daemons wrote it down; nothing is made where nothing is."""
    import asyncio

    from tamis.server.runtime.observe.usage import UsageCounts
    from tamis.server.runtime.store.folders import state_folder
    from tamis.server.runtime.store.store import FILE_NAME

    async def counts() -> dict[str, ToolUsage]:
        try:
            tool_usages = await UsageCounts(runtime.parts.store, str(runtime.root)).all()
        finally:
            await runtime.parts.close()
        return {usage.tool_id: usage for usage in tool_usages}

    try:
        return asyncio.run(counts()) if (state_folder() / FILE_NAME).is_file() else {}
    except (OSError, ValueError):
        return {}


def newest(tools: Iterable[Tool]) -> list[Tool]:
    """The newest version of each tool; ``tools`` has them newest first."""
    by_id: dict[str, Tool] = {}
    for tool in tools:
        by_id.setdefault(tool.tool_id, tool)
    return list(by_id.values())


def _tokens(definition: object) -> int:
    return _count(msgspec.json.encode(definition).decode("utf-8", "replace"))


def _count(text: str) -> int:
    # a server that only lists its tools under their names starts without what counts
    from tamis.server.runtime.texts.token_counts import count_tokens

    return count_tokens(text)[0]
