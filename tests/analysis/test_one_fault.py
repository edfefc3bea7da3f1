"""One fault of a manifest's value is one finding: the error, and no lint that looks into what cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.snapshot import FolderFacts, ScriptFile, Snapshot

GOOD = {
    "toolId": "t:count",
    "displayName": "Count",
    "description": "Counts the words of a text and gives their number.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "count.py", "language": "python", "entryPoint": "main"},
}
WRONG: tuple[Any, ...] = (None, "", " ", 5, -1, 1.5, True, [], {}, "x", "a b", "/etc/x", "../x", "sha256-x", ["a", "a"])
PLACES = (
    "toolId",
    "version",
    "tags",
    "aliases",
    "handler",
    "handler.type",
    "handler.scriptPath",
    "handler.language",
    "handler.entryPoint",
    "parameters",
    "execution.mode",
    "execution.timeoutMs",
    "execution.integrity",
    "execution.files",
    "dependencies.a:b",
    "protocolConfig.vcpCommand",
    "securityContext.fileAccess.allowRead",
    "securityContext.networkAccess.allowHosts",
    "securityContext.secrets",
    "env",
    "examples",
)


@pytest.mark.parametrize("place", PLACES)
def test_a_value_that_cannot_be_used_has_one_finding(place: str) -> None:
    script = ScriptFile("count.py", "import sys\n", True, f"sha256-{'A' * 43}=")
    for value in WRONG:
        manifest = json.loads(json.dumps(GOOD))
        *above, last = place.split(".")
        table = manifest
        for name in above:
            table = table.setdefault(name, {})
        table[last] = value
        text = json.dumps(manifest)
        folder = FolderFacts(frozenset({"count.py"}), True, {})
        findings = diagnose(Snapshot("/w/a.tool.json", "manifest", text, None, folder=folder, script=script))
        wrong = {one.span for one in findings if one.severity == "error"}
        for span in wrong:
            codes = [one.code for one in findings if one.span == span]
            assert len(codes) == 1, (value, text[slice(*span)], codes)
