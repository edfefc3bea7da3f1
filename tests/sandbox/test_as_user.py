"""The same sandbox tests as an ordinary user, started by root: both ways to run must hold."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.node_runtime import bun

ALIKE = (
    *("test_hosts", "test_egress_wire", "test_egress_budgets", "test_network_fuzz"),
    *("test_plan", "test_classify", "test_cgroup_v2", "test_seccomp", "test_talk"),
    "test_soak",
)
"""What is the same work for both; the long form runs it for both."""
SCRIPT = Path(__file__).parent / "as_user.sh"


@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user already; as root the suite runs again as one")
@pytest.mark.timeout(1810)  # for hangs alone
def test_the_sandbox_holds_for_an_ordinary_user_too(is_long: bool) -> None:
    # Building packages is the same work for both, and what starts nothing knows no user. Of what root runs too, one test in
    # eight runs again, and all that only an ordinary user shows; the long form runs it all.
    share = ["--long"] if is_long else ["-k", " and ".join(f"not {name}" for name in ALIKE)]
    folders = "sandbox environments" if is_long else "sandbox"
    env = os.environ | {
        "TAMIS_TEST_BUN": bun(),
        "TAMIS_TEST_FOLDERS": folders,
        "TAMIS_TEST_SHARE": "" if is_long else "8",
    }
    done = subprocess.run(
        ["sh", SCRIPT, "-q", *share], capture_output=True, text=True, timeout=1800, check=False, env=env
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    # what failed, and not the reasons of what was skipped, which come last
    at = done.stdout.find("= FAILURES =")
    assert done.returncode == 0, (done.stdout[at : at + 6000] if at >= 0 else done.stdout[-4000:]) + done.stderr[-2000:]
