"""Every benchmark runs, with texts and rounds so small that nothing is learned about speed; nothing leaves the machine."""

from __future__ import annotations

from functools import partial

import pytest

from bench import measure
from bench.lsp import bench_lsp
from bench.mcp import bench_mcp
from bench.reading import bench_parse
from bench.run import PARTS, part, replaced
from bench.shapes import REQUESTS, SHAPES, bench_shapes
from tests.growth import leave_out

# Whole processes and the corpus runners have tests of their own; a sandbox or a full run is no smoke test.
SMALL = [name for name in PARTS if name not in ("start", "call", "corpus", "parse", "lsp", "shapes", "mcp")]


@pytest.fixture(autouse=True)
def little_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out()  # a benchmark collects what is there before each of its rounds
    monkeypatch.setattr(measure.EFFORT, "rounds", 0.01)
    monkeypatch.setattr(measure.EFFORT, "sizes", 0.002)
    monkeypatch.setattr("bench.streaming._SMALL", 400)
    monkeypatch.setattr("bench.streaming._LARGE", 1_600)


LENGTHY = frozenset(
    {
        "environments",
        "growth",
        "sandbox-rate",
        "sandbox-pace",
        "sandbox-idle",
        "sandbox-kill",
        "streaming",
        "sandbox",
        "registry",
        "write",
        "tolerant",
        "check",
    }
)
"""Even the least of them takes many seconds."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in LENGTHY else name for name in SMALL]
)
def test_a_benchmark_gives_its_table(name: str) -> None:
    assert _rows(part(name)()) > 0


@pytest.mark.slow
def test_reading_is_measured_without_the_network() -> None:
    assert _rows(partial(bench_parse, node=False)()) >= 6


@pytest.mark.slow
def test_the_language_server_is_measured_without_the_network() -> None:
    assert _rows(bench_lsp(node=False, bulks=("nested",), sizes=("10 KB",))) >= 9


# two seconds for the smoke of a benchmark; its table of requests is held to the server's in the test below
@pytest.mark.long
@pytest.mark.slow
def test_requests_are_measured_for_shapes_of_documents() -> None:  # issue 16
    table = bench_shapes(("ACTION: wide", "settings: rules"))
    # There may be nothing to resolve.
    methods = {"open", "change", *REQUESTS} - {method for method in REQUESTS if method.endswith("/resolve")}
    assert {method for method in methods if f"| `{method}` |" not in table} == set()


def test_every_request_of_an_editor_is_asked_of_each_shape() -> None:  # issue 16
    from tamis.server.lsp.table import REQUESTS as SERVED

    about_documents = ("textDocument/", "callHierarchy/", "workspaceSymbol/")
    served = {method for method in SERVED if method.startswith(about_documents) or method.endswith("/resolve")}
    assert served <= {*REQUESTS}


def test_each_shape_grows_with_its_number() -> None:  # issue 16
    assert len(SHAPES) > 80
    for name, shape in SHAPES.items():
        assert len(shape.build(400)) > 1.5 * len(shape.build(100)), name


# 18 processes for the smoke of a benchmark; tests/mcp ask the server the same
@pytest.mark.long
@pytest.mark.slow
def test_the_mcp_server_is_measured_without_the_network() -> None:
    pytest.importorskip("uvicorn", reason="the extra `http` is not installed")
    assert _rows(bench_mcp(peers=False)) == 9


def test_times_and_ratios_are_written_for_people() -> None:
    assert [measure.shown(s) for s in (1.5e-6, 0.0025, 2)] == ["1.5 µs", "2.50 ms", "2.00 s"]
    ours, other = measure.Sample("ours", (2.0, 3.0)), measure.Sample("other", (1.0, 1.0))
    assert "| x | 2.00 s / 2.50 s | other: 1.00 s / 1.00 s | 2.50 | 2.00 | ≤ 4 |" in measure.table(
        "T", [("x", ours, other, "≤ 4")]
    )


@pytest.mark.slow
def test_sides_run_in_turn() -> None:
    order: list[str] = []
    measure.in_turn({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=300, at_least=0)
    # each once to load what it needs and once to be timed, then three rounds at this effort
    assert order == ["a", "a", "b", "b", *["a", "b"] * 3]


def _rows(text: str) -> int:
    return sum(line.startswith("|") for line in text.splitlines()) - 2


def test_a_part_measured_again_replaces_its_section_only() -> None:
    page = "# Benchmarks\n\nMeasured on A.\n\n### One\n\n| 1 |\n\n### Two\n\n| 2 |\n"
    assert (
        replaced(page, ["### One\n\n| 9 |\n"], "A")
        == "# Benchmarks\n\nMeasured on A.\n\n### One\n\n| 9 |\n\n### Two\n\n| 2 |\n"
    )
    elsewhere = replaced(page, ["### Two\n\n| 8 |\n", "### Three\n\n| 3 |\n"], "B")
    assert elsewhere.endswith(
        "### One\n\n| 1 |\n\n### Two\n\nMeasured on B.\n\n| 8 |\n\n### Three\n\nMeasured on B.\n\n| 3 |\n"
    )
