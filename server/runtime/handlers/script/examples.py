"""How the output of a tool's examples is compared (D42, D44). Must not run anything."""

from __future__ import annotations

from tamis.protocols.expected import Match
from tamis.protocols.manifest.reading import Manifest
from tamis.server.runtime.tools.script_service import is_script_service

MATCH_KEY = "x-match"
"""Beside an example's ``expectedOutput``: its value ``partial`` lets the output hold more."""


def match_of(manifest: Manifest, given: object) -> Match:
    """How an example's output is compared; ``given`` is what stands at ``x-match``. The records of the script service hold logs that
    nobody can foresee."""
    return "partial" if given == "partial" or is_script_service(manifest) else "equal"
