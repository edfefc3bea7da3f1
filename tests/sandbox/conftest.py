"""TAMIS_TEST_BWRAP=/path/to/bwrap runs the sandbox's tests with another bubblewrap than the one found here."""

from __future__ import annotations

import os

import pytest

from tamis.sandbox import host
from tamis.sandbox.job import Binary


@pytest.fixture(autouse=True, scope="session")
def given_bubblewrap() -> None:
    path = os.environ.get("TAMIS_TEST_BWRAP")
    if path:
        host.find_binary = lambda: Binary(path)
