"""Which interpreters run the tools' languages on this machine, by the operator's choice or found."""

from __future__ import annotations

from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.model import Interpreters
from tamis.server.runtime.config import Settings


def interpreters_of(settings: Settings) -> Interpreters:
    """The interpreters that the operator chose."""
    own = settings.sandbox.interpreters
    return Interpreters(own.python or None, own.nodejs or None, own.bun or None)


def missing_runtime(manifest: Manifest, settings: Settings) -> str:
    """Why the tool's language cannot be run on this machine, with the remedy; empty when it can."""
    if not isinstance(manifest.handler, ExternalScript):
        return ""
    found = find_interpreter(manifest.handler.language, interpreters_of(settings))
    return f"{found.reason}; fix: {found.remedy}" if isinstance(found, Missing) else ""
