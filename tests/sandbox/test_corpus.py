"""Every case of the corpus ends as stated (items 1, 2, 4, 5 and 10 of the design; S4, S8, S10)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tamis.sandbox.model import Limits, RunOutcome
from tests.sandbox import cases, support
from tests.sandbox.cases import Case

DEFAULTS = {"wall_ms": 10_000, "tmp_bytes": 33_554_432}


def run_case(case: Case, parent: Path, *without: str) -> RunOutcome:
    folder = support.tool_folder(parent, case.source)
    script = "missing.py" if case.id.startswith("p16") else "tool.py"
    limits = Limits(**{**DEFAULTS, **case.limits})
    os.environ["TAMIS_TEST_SECRET"] = "hidden"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        args = case.args or (str(listener.getsockname()[1]),)
        wanted = support.request(folder, script, stdin=case.stdin, args=args, limits=limits)
        return support.run_without(wanted, *without) if without else support.run(wanted)


def as_stated(case: Case, outcome: RunOutcome) -> bool:
    stated = (outcome.kind, outcome.limit, outcome.error_type) == (case.kind, case.limit, case.error)
    return stated and (case.stdout is None or outcome.stdout.decode("utf-8", "replace") == case.stdout)


@pytest.mark.parametrize("case", cases.ALL, ids=lambda case: case.id)
def test_case(case: Case, tmp_path: Path) -> None:
    if case.root_only and not support.IS_ROOT:
        pytest.skip("shows what only root could lose")
    outcome = run_case(case, tmp_path)
    assert as_stated(case, outcome), outcome


BITES = [case for case in cases.ALL if case.layer]


@pytest.mark.parametrize("case", BITES, ids=lambda case: f"{case.id}-without-{case.layer}")
def test_case_fails_without_its_layer(case: Case, tmp_path: Path) -> None:
    if case.root_only and not support.IS_ROOT:
        pytest.skip("shows what only root could lose")
    outcome = run_case(case, tmp_path, *case.layer.split("+"))
    assert outcome.kind != "unavailable", outcome
    assert not as_stated(case, outcome), outcome
