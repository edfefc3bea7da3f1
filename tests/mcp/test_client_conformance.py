"""The official conformance suite of MCP against the client of MCP servers (mcp, Referees; issue 18); ``--long`` runs all that a revision requires."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.conformance.not_offered import NOT_OFFERED_TO_SERVERS
from tests.mcp.conformance.suite import HERE, REVISIONS, Checks, installed
from tests.node_runtime import NODE

CLIENT = HERE / "client.py"
SHARE = (
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "auth/metadata-var2",
    "auth/resource-mismatch",
    "auth/iss-wrong-issuer",
)
"""What is run without ``--long``."""
OF_ONE_REVISION = (("auth/resource-mismatch", "2025-11-25"), ("elicitation-sep1034-client-defaults", "2026-07-28"))
"""Scenarios that the other revision does not have."""


@pytest.fixture(scope="module")
def suite() -> Path:
    return installed()


def failures(suite: Path, out: Path, *words: str) -> tuple[Checks, set[str]]:
    """What failed, by scenario and check; and which scenarios were run."""
    # The suite splits the command at blanks, which the path of a clone may have.
    out.mkdir(parents=True, exist_ok=True)
    client = out / "client"
    client.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{CLIENT}" "$@"\n')
    client.chmod(0o755)
    done = subprocess.run(
        [
            NODE,
            str(suite),
            "client",
            "--command",
            str(client),
            "-o",
            str(out),
            "--timeout",
            "600000",
            *words,
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"CI": "1", "TAMIS_STATE_DIR": str(out)},
    )
    found: Checks = {}
    ran: set[str] = set()
    for path in out.rglob("checks.json"):
        match = re.fullmatch(r"(.+)-\d{4}-\d\d-\d\dT.*", str(path.parent.relative_to(out)))
        assert match is not None
        ran.add(match[1])
        for check in json.loads(path.read_text()):
            if check["status"] == "FAILURE":
                found.setdefault(match[1], {})[check["id"]] = str(check.get("errorMessage"))
    assert ran, done.stdout[-2000:] + done.stderr[-2000:]
    return found, ran


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_client_conforms_in_what_is_offered(suite: Path, tmp_path: Path, revision: str, is_long: bool) -> None:
    if not is_long:
        for scenario in SHARE:
            if (scenario, revision) in OF_ONE_REVISION:
                continue
            words = ("--scenario", scenario, "--spec-version", revision)
            words = words if "iss-" not in scenario or revision == REVISIONS[0] else (*words, "--force")
            assert failures(suite, tmp_path / revision / scenario, *words)[0] == {}
        return
    found, ran = failures(suite, tmp_path / "all", "--requirements", revision)
    assert len(ran) > 20
    # all are run at once, which a busy machine is too slow for
    for scenario in set(found) - NOT_OFFERED_TO_SERVERS.keys():
        words = ("--scenario", scenario, "--spec-version", revision)
        del found[scenario]
        found |= failures(suite, tmp_path / scenario, *words)[0]
    assert {name: checks for name, checks in found.items() if name not in NOT_OFFERED_TO_SERVERS} == {}
    conforms = {name for name in NOT_OFFERED_TO_SERVERS if name in ran and name not in found}
    assert conforms == set(), "these are offered after all: take them out of not_offered.py"
