"""The bun that tests run scripts with."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def bun() -> str:
    given = os.environ.get("TAMIS_TEST_BUN", "")
    if given:
        return given
    # Not at the top: the run as an ordinary user has this folder only, and is given its bun.
    installing = pytest.importorskip("tests.node_runtime", reason="TAMIS_TEST_BUN names no bun")
    return str(installing.bun())
