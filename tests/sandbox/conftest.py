"""TAMIS_TEST_BWRAP=/path/to/bwrap runs the sandbox's tests with another bubblewrap than the one found here."""

from __future__ import annotations

import os

import pytest

from tamis.sandbox import host, launch
from tamis.sandbox.job import Binary
from tamis.sandbox.network import handoff


@pytest.fixture(autouse=True, scope="session")
def patience() -> None:
    """Starting takes as long as a busy machine takes; a test of these budgets sets them itself."""
    launch.SETUP_SECONDS = handoff.SECONDS = 600.0


@pytest.fixture(autouse=True, scope="session")
def given_bubblewrap() -> None:
    path = os.environ.get("TAMIS_TEST_BWRAP")
    if path:
        host.find_binary = lambda: Binary(path)
