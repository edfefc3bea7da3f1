"""The official conformance suite of MCP against the server over HTTP (mcp, Referees); ``--long`` runs all that a revision requires."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `http` is not installed")

from tests.mcp.conformance.not_offered import NOT_OFFERED
from tests.mcp.conformance.suite import HERE, REVISIONS, Checks, installed
from tests.mcp.conformance.tools import make_tools
from tests.mcp.http_client import HttpServer
from tests.node_runtime import NODE

SHARE = ("dns-rebinding-protection", "tools-list", "tools-call-mixed-content")
"""What is run without ``--long``: it waits for nothing and starts few tools."""


@pytest.fixture(scope="module")
def suite() -> Path:
    return installed()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    root = tmp_path_factory.mktemp("tools")
    make_tools(root)
    # the suite knows no token
    with HttpServer(root, "--no-token") as made:
        made.call("test_logging_tool")  # some of its checks wait for half a second only
        yield made


def failures(suite: Path, server: HttpServer, out: Path, *words: str) -> tuple[Checks, set[str]]:
    """What failed, by scenario and check; and which scenarios were run."""
    url = f"http://127.0.0.1:{server.port}/mcp"
    done = subprocess.run(
        [NODE, str(suite), "server", "--url", url, "-o", str(out), "--timeout", "600000", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"CI": "1"},
    )
    found: Checks = {}
    ran: set[str] = set()
    for path in out.glob("*/checks.json"):
        match = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", path.parent.name)
        assert match is not None
        ran.add(match[1])
        for check in json.loads(path.read_text()):
            if check["status"] == "FAILURE":
                found.setdefault(match[1], {})[check["id"]] = str(check.get("errorMessage"))
    assert ran, done.stdout[-2000:] + done.stderr[-2000:]
    return found, ran


def test_what_is_not_offered_is_what_the_docs_say() -> None:
    """mcp, Referees: a baseline only for what the docs say is not offered."""
    page = (HERE.parents[2] / "docs" / "mcp.md").read_text("utf-8")
    reasons = {why for checks in NOT_OFFERED.values() for why in checks.values()}
    assert {why for why in reasons if f"- {why}.\n" not in page} == set()


def wrong(found: Checks) -> Checks:
    """What failed of what is offered."""
    held = {
        name: {check: why for check, why in checks.items() if not {check, "*"} & NOT_OFFERED.get(name, {}).keys()}
        for name, checks in found.items()
    }
    return {name: checks for name, checks in held.items() if checks}


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_offered_conforms(
    suite: Path, server: HttpServer, tmp_path: Path, revision: str, is_long: bool
) -> None:
    if not is_long:
        for scenario in SHARE:
            words = ("--scenario", scenario, "--spec-version", revision)
            assert wrong(failures(suite, server, tmp_path / scenario, *words)[0]) == {}
        return
    found, ran = failures(suite, server, tmp_path / "all", "--requirements", revision)
    assert len(ran) > 30
    # a machine that is busy is late for checks that wait for half a second
    for scenario in wrong(found):
        words = ("--scenario", scenario, "--spec-version", revision)
        del found[scenario]
        found |= failures(suite, server, tmp_path / scenario, *words)[0]
    assert wrong(found) == {}
    conforms = {name for name in NOT_OFFERED if name in ran and name not in found}
    assert conforms == set(), "these are offered after all: take them out of not_offered.py"
