"""A folder with a few tools, and a server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.raw_client import RawClient
from tests.rpc.inside import PATIENT
from tests.sample_tools import make_tool

FAILS = "import sys\nprint('what went wrong', file=sys.stderr)\nsys.exit(3)\n"
SLOW = """import json, sys, time
print('[progress] 1/3 one', file=sys.stderr, flush=True)
print('[progress] 2/3 two', file=sys.stderr, flush=True)
time.sleep(json.load(sys.stdin)['seconds'])
print('[progress] 3/3 three', file=sys.stderr, flush=True)
print('"done"')
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tamis.toml").write_text(PATIENT)
    make_tool(tmp_path, "core:echo")
    make_tool(tmp_path, "core:fails", FAILS)
    make_tool(tmp_path, "core:slow", SLOW, properties={"seconds": {"type": "number"}}, required=["seconds"])
    make_tool(tmp_path, "core:asks", execution={"requireConfirmation": True})
    return tmp_path


@pytest.fixture
def server(root: Path) -> Iterator[RawClient]:
    with RawClient(root) as made:
        yield made
