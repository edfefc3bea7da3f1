"""Which engine the settings choose for workflows (W17): the built-in one, one behind a URL, or one that a package brings (``tamis.engines``)."""

from __future__ import annotations

from typing import cast

from tamis.server.runtime.handlers.workflow.engine import BUILT_IN, Engine
from tamis.server.runtime.settings.config import EngineSettings, Settings
from tamis.server.runtime.settings.installed import GROUP, Brought, bring, missing_engine, url_fault, words

HTTP = "http"
_LOADED: dict[str, Brought | str] = {}
"""By name: what a package brings, or why it cannot be used. An installation does not change while a process runs."""


def engine_of(settings: Settings) -> tuple[Engine | None, str]:
    """The engine that the settings choose, or why there is none."""
    own = settings.engine
    if own.type == BUILT_IN:
        from tamis.server.runtime.handlers.workflow.builtin import BuiltInEngine

        return BuiltInEngine(), ""
    if own.type == HTTP:
        fault = url_fault(own.url, settings)
        if fault:
            return None, f"engine.url {fault}"
        from tamis.server.runtime.handlers.workflow.http_engine import HttpEngine

        return HttpEngine(own.url, settings.policy), ""
    return _installed(own)


def _installed(own: EngineSettings) -> tuple[Engine | None, str]:
    if own.type not in _LOADED:
        # lists ask for each workflow, and looking at what is installed takes long
        _LOADED[own.type] = bring(GROUP, own.type, "the engine") or missing_engine(own.type)
    brought = _LOADED[own.type]
    if isinstance(brought, str):
        return None, brought
    try:
        plugin = brought.plugin
        engine = plugin() if isinstance(plugin, type) else plugin
        runs = callable(getattr(engine, "run", None))
    except BaseException as error:  # a stranger's code; also SystemExit
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        return None, f"{brought.where} cannot be used: {words(error)}"
    return (cast("Engine", engine), "") if runs else (None, f"{brought.where} cannot be used: it has no method 'run'")
