"""BFCL (`shared/corpora/bfcl`): every accepted answer is written in every form, read back, coerced and equal; refusals are counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tamis.protocols.base import Shape
from tamis.protocols.catalogue import message
from tamis.protocols.check import check_call
from tamis.protocols.hermes.protocol import HERMES
from tamis.protocols.model import Diag
from tamis.protocols.plugins import find_protocol, register
from tamis.protocols.schema.plan import Plan, compile_plan
from tamis.protocols.writing.values import same
from tests.protocols.bfcl import Answer, answers
from tests.protocols.writer_helpers import FORMS, OWN, kept, read, write

# The answers do not all satisfy the schemas that BFCL gives them; such a value comes back as the text that was written.
CALLS = 2_667
AGAINST_THEIR_SCHEMA = 52
ALL_FORMS = [*FORMS, ("hermes", "tag")]
MOST_REFUSALS: dict[str, dict[str, int]] = {"vcp tag": {"TC050 a key has only letters, digits, _ and -": 2}}


@pytest.fixture(scope="module")
def corpus(corpora: Path) -> list[Answer]:
    if find_protocol("hermes") is None:
        register(HERMES)
    return list(answers(corpora / "bfcl"))


@pytest.mark.slow
@pytest.mark.parametrize("form", ALL_FORMS, ids=" ".join)
def test_every_answer_that_a_form_can_carry_comes_back_equal(
    corpus: list[Answer], form: tuple[str, Shape], is_long: bool
) -> None:
    # Each answer in one form; with `--long` in all.
    part = corpus if is_long else corpus[ALL_FORMS.index(form) :: len(ALL_FORMS)]
    plans: dict[int, Plan] = {}
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for answer in part:
        written = write(answer.calls, form, answer.tools)
        for refusal in written.refusals:
            why = refusal.args.get("why") or message(Diag(refusal.code, (0, 0), refusal.args))
            reasons[f"{refusal.code} {why}"] += 1
        expected = kept(answer.calls, written)
        counts["refused"] += len(answer.calls) - len(expected)
        document = read(written.text, form, answer.tools)
        assert [diag.code for diag in document.diagnostics if diag.code not in {*OWN, "HM618"}] == []
        for call, wanted in zip(document.calls, expected, strict=True):
            parameters = answer.tools[call.tool_id].parameters
            plan = plans.setdefault(id(parameters), compile_plan(parameters))
            checked = check_call(call, document.text, plan)
            if plan.check(wanted.args, "typed").valid:
                assert checked.valid, (answer.name, checked.problems)
                assert same(checked.coerced, wanted.args), answer.name
                counts["equal"] += 1
            else:
                counts["against their own schema"] += 1
    print(f"\n{' '.join(form)}: {dict(counts)}; refusals by reason: {dict(reasons)}")
    assert sum(len(answer.calls) for answer in corpus) == CALLS
    assert sum(counts.values()) == sum(len(answer.calls) for answer in part)
    assert counts["against their own schema"] <= AGAINST_THEIR_SCHEMA
    most = MOST_REFUSALS.get(" ".join(form), {})
    assert reasons <= Counter(most)
    assert not is_long or dict(reasons) == most
