"""The same sandbox tests as an ordinary user, started by root: both ways to run must hold."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.node_runtime import bun

SCRIPT = Path(__file__).parent / "as_user.sh"


@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user already; as root the suite runs again as one")
@pytest.mark.timeout(700)
def test_the_sandbox_holds_for_an_ordinary_user_too(is_long: bool) -> None:
    # Building packages is the same work for both; the long form does it for both.
    share = [] if is_long else ["-k", "not test_environments_javascript and not test_environments.py"]
    env = os.environ | {"TAMIS_TEST_BUN": bun()}
    done = subprocess.run(
        ["sh", SCRIPT, "-q", "-x", *share], capture_output=True, text=True, timeout=690, check=False, env=env
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
