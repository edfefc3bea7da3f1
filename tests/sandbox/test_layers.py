"""Each layer matters: with it switched off, the cases that it holds fail. A case that cannot fail shows nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.mark import ParameterSet

from tamis.sandbox.job import LAYERS
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


def _layers(case: Case) -> tuple[str, ...]:
    return tuple(case.layer.split("+"))


def _left_out(case: Case) -> str:
    return "shows what only root could lose" if case.root_only and not support.IS_ROOT else ""


def _with_its_share(case: Case) -> ParameterSet:
    """Of a layer with many cases one in four runs without ``--long``."""
    many = sum(one.layer == case.layer for one in BITES) > 5
    return pytest.param(case, id=f"{case.id}-without-{case.layer}", marks=[pytest.mark.share(4)] if many else [])


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Case], support.Result]:
    chosen = [
        case for case in support.chosen_cases(request, "test_case_fails_without_its_layer") if not _left_out(case)
    ]
    return support.by_area(chosen, tmp_path_factory, _layers)


@pytest.mark.parametrize("case", [_with_its_share(case) for case in BITES])
def test_case_fails_without_its_layer(case: Case, results: Callable[[Case], support.Result]) -> None:
    reason = _left_out(case)
    if reason:
        pytest.skip(reason)
    found = results(case)
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
