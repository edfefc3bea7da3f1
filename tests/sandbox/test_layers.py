"""Each layer matters: with it switched off, the cases that it holds fail. A case that cannot fail shows nothing."""

from __future__ import annotations

import asyncio

import pytest

from tamis.sandbox.job import LAYERS
from tamis.sandbox.model import RunOutcome
from tests.sandbox import cases, support
from tests.sandbox.cases import Case

BITES = [case for case in cases.ALL if case.layer]

# Layers that no script can be told from: why, or what shows them instead.
SHOWN_ELSEWHERE = {
    "namespaces": "never left out: without a user namespace there is no sandbox to run in",
    "capabilities": "inside a user namespace of its own a script has none that reach out, with or without: k20 looks at them",
    "clean-environment": "the sandbox is started with an empty environment already: e01 to e03 look at it",
    "die-with-parent": "test_lifecycle.py kills the daemon, with the layer and without",
}

Results = dict[str, tuple[RunOutcome, str] | Exception]


def _layers(case: Case) -> tuple[str, ...]:
    return tuple(case.layer.split("+"))


def _left_out(case: Case) -> str:
    return "shows what only root could lose" if case.root_only and not support.IS_ROOT else ""


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    chosen = [
        case for case in support.chosen_cases(request, "test_case_fails_without_its_layer") if not _left_out(case)
    ]
    work = [(case, tmp_path_factory.mktemp(case.id.partition("-")[0]), _layers(case)) for case in chosen]
    return dict(zip((case.id for case in chosen), asyncio.run(support.run_cases(work)), strict=True))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("case", BITES, ids=lambda case: f"{case.id}-without-{case.layer}")
def test_case_fails_without_its_layer(case: Case, results: Results) -> None:
    reason = _left_out(case)
    if reason:
        pytest.skip(reason)
    found = results[case.id]
    if isinstance(found, Exception):
        raise found
    outcome, wrong = found
    assert outcome.kind not in ("unavailable", "refused"), outcome
    assert wrong, outcome


def test_every_layer_is_shown_by_a_case_or_says_why_not() -> None:
    named = {layer for case in BITES for layer in _layers(case)}
    assert named <= set(LAYERS)
    assert not named & set(SHOWN_ELSEWHERE)
    assert set(LAYERS) - named == set(SHOWN_ELSEWHERE)


def test_a_layer_that_nobody_knows_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    wanted = support.request(support.tool_folder(tmp_path_factory.mktemp("unknown"), "print(1)"))
    with pytest.raises(ValueError, match="paint"):
        support.run_without(wanted, "paint")
