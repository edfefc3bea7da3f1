"""A job's plan, word for word. TAMIS_UPDATE_GOLDEN=1 writes the files anew; read the difference before keeping it."""

from __future__ import annotations

import os
import resource

import msgspec
import pytest

from tamis.sandbox.backends.bubblewrap import GATE, build
from tamis.sandbox.job import LAYERS, ArgFile, Plan, rlimits, shown
from tamis.sandbox.model import Limits
from tests.sandbox.golden_jobs import GOLDEN, JOBS


def text(plan: Plan) -> str:
    def lines(words: list[str]) -> str:
        out: list[str] = []
        for word in words:
            if word.startswith("--") or not out:
                out.append(word)
            else:
                out[-1] += " " + word
        return "\n".join(out)

    files = [arg for arg in plan.argv if isinstance(arg, ArgFile)]
    return "\n\n".join(
        (
            "\n".join(shown(plan.argv)),
            *(f"[{file.name}]\n{lines(shown(file.args))}" for file in files),
            " ".join(sorted(plan.data)),
            " ".join((*plan.reports, *plan.holds)),
            "\n".join(str(row) for row in plan.rlimits) + "\n",
        )
    )


def options(plan: Plan) -> list[str]:
    return [word for arg in plan.argv if isinstance(arg, ArgFile) for word in shown(arg.args)]


@pytest.mark.parametrize("name", JOBS)
def test_plan_is_as_written_down(name: str) -> None:
    path = GOLDEN / f"plan_{name}.txt"
    found = text(build(JOBS[name]))
    if os.environ.get("TAMIS_UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8")


def test_same_job_gives_the_same_plan() -> None:
    assert build(JOBS["root"]) == build(JOBS["root"])


@pytest.mark.parametrize("name", ["user", "root"])
def test_a_starter_that_is_the_gate_needs_no_shell_before_it(name: str) -> None:
    """R9: and nothing else of the plan is different."""
    job = msgspec.structs.replace(JOBS[name], warm=b"starter")
    behind, itself = (build(msgspec.structs.replace(job, is_gate=is_gate)) for is_gate in (False, True))
    at = behind.argv.index(GATE[0])
    assert behind.argv[at : at + len(GATE)] == GATE
    without = (*behind.argv[:at], *behind.argv[at + len(GATE) :])
    assert msgspec.structs.replace(behind, argv=without) == itself


def test_v8_has_no_tight_address_space_limit() -> None:
    # S5
    rows = {name: soft for name, soft, _ in rlimits(Limits(memory_bytes=2**28), "nodejs", extra_processes=1)}
    assert rows[resource.RLIMIT_AS] >= 2**36
    # Node 24 reserves 512 MiB for code before it runs a line.
    assert rows[resource.RLIMIT_DATA] == 2**28 + 768 * 2**20


def test_network_namespace_is_there_with_and_without_allowed_hosts() -> None:
    # S7: never silently the host's network
    assert all("--unshare-net" in options(build(job)) for job in JOBS.values())
    assert not any("--share-net" in options(build(job)) for job in JOBS.values())


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer not in ("namespaces", "watchdog", "cgroup")])
def test_each_layer_changes_the_plan(layer: str) -> None:
    job = JOBS["root"]
    from msgspec.structs import replace

    assert text(build(replace(job, without=frozenset((layer,))))) != text(build(job))
