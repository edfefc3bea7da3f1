"""What a run of the tests costs, is counted, printed and compared (``tests/spent.py``); what is left to ``--long``; waiting without a clock."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spent import Figures, Spent, by_folder, table, with_figures, written
from tests.waiting import arrives, until

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = {
    "tests/cli/test_a.py::test_one": Spent(1.0, 0.5, 2),
    "tests/cli/test_a.py::test_two": Spent(2.0, 0.25, 0),
    "tests/rpc/test_b.py::test_one": Spent(1.0, 4.0, 3),
    "other/test_c.py::test_one": Spent(0.5, 0.125, 0),
}


def test_costs_are_summed_by_folder_the_dearest_first() -> None:
    assert by_folder(TESTS) == [
        ("rpc", 1, Spent(1.0, 4.0, 3)),
        ("cli", 2, Spent(3.0, 0.75, 2)),
        (".", 1, Spent(0.5, 0.125, 0)),
    ]
    assert by_folder({}) == []


README = "# Tests\n\n<!-- figures -->\nold\n<!-- end of figures -->\n\nMore.\n"


def test_the_table_of_a_run_is_read_back_from_the_page() -> None:
    made = table(by_folder(TESTS), 0.0, Spent(4.5, 4.875, 5), 0.005)
    assert made.splitlines()[2] == "| `rpc` | 1 | 4 s | 3 |"
    page = with_figures(README, made)
    assert page == f"# Tests\n\n<!-- figures -->\n{made}<!-- end of figures -->\n\nMore.\n"
    # 975 loops, and 5 processes with what depends on the moment
    assert written(page) == Figures(loops=1, processes=100)
    assert with_figures(page, made) == page


def test_a_page_without_a_table_has_no_figures() -> None:
    assert written(README) is None
    assert with_figures("no marks", "| new |\n") == "no marks"


def test_processes_are_allowed_to_the_next_hundred_above_a_hundredth_more() -> None:
    for started, allowed in ((0, 0), (1, 100), (99, 100), (100, 200), (990, 1000), (1000, 1100)):
        figures = written(table([], 0.0, Spent(0, 0, started), 0.005))
        assert figures is not None and figures.processes == allowed, started


FIRST = """
import pytest

@pytest.mark.parametrize("n", range(25))
def test_plain(n): pass

@pytest.mark.share(10)
@pytest.mark.parametrize("n", range(60))
def test_shared(n): pass

@pytest.mark.long
def test_dear(): pass
"""
SECOND = """
import subprocess
import sys

def test_starts():
    subprocess.run([sys.executable, "-c", ""], check=True)
    subprocess.run([sys.executable, "-c", ""], check=True)
"""
SETTINGS = """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-ra -p no:cacheprovider --strict-markers"
markers = ["slow: x", "long: x", "share(n): x"]
"""
HAS = "<!-- figures -->\n| all | 9 | 900 s (900 thousand loops) | 1 |\n<!-- end of figures -->\n"


class Project:
    """A small project with this project's ``tests/conftest.py`` and what that imports."""

    def __init__(self, folder: Path) -> None:
        self.tests = folder / "tests"
        for name in ("cli", "rpc"):
            (self.tests / name).mkdir(parents=True)
        for name in ("__init__", "conftest", "spent", "growth", "fast"):
            (self.tests / f"{name}.py").write_text((ROOT / "tests" / f"{name}.py").read_text("utf-8"), "utf-8")
        (self.tests / "README.md").write_text(HAS, "utf-8")
        (self.tests / "cli" / "test_first.py").write_text(FIRST, "utf-8")
        (self.tests / "rpc" / "test_second.py").write_text(SECOND, "utf-8")
        (folder / "pyproject.toml").write_text(SETTINGS, "utf-8")
        self.folder = folder

    def run(self, *words: str) -> tuple[int, str]:
        env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        env.pop("TAMIS_WRITE_FIGURES", None)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env=env,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


def sums(printed: str) -> dict[str, tuple[str, str]]:
    """The printed sums: room to number of tests and of processes."""
    lines = [line.split() for line in printed.splitlines()]
    return {words[0]: (words[1], words[5]) for words in lines if words[-1:] == ["processes"] and "tests" in words}


def test_a_whole_run_prints_what_it_costs_and_fails_by_more_processes_than_the_table_has(project: Project) -> None:
    code, printed = project.run()
    _, _, longest = printed.partition("the ten longest")
    assert longest.count(" s of processor time: tests/") == 10
    assert "test_second.py::test_starts" in longest
    shared = int(sums(printed)["cli"][0]) - 25
    # one in ten of 60 by a hash: about 6
    assert 1 <= shared <= 15 and sums(printed) == {"cli": (str(25 + shared), "0"), "rpc": ("1", "2")}
    assert f"{60 - shared + 1} tests were left to --long" in printed
    assert f"{26 + shared} passed" in printed and "warning: the tests take" not in printed
    assert "2 processes (the table has 1)" in printed
    assert (code, "FAILED: the tests start more processes than the table" in printed) == (1, True), printed


@pytest.mark.parametrize("words", [["--long"], ["tests/cli/test_first.py", "tests/rpc"]], ids=" ".join)
def test_long_and_the_name_of_a_file_run_everything_and_are_not_compared(project: Project, words: list[str]) -> None:
    code, printed = project.run(*words)
    assert (code, "left to --long" in printed, "the table" in printed) == (0, False, False), printed
    assert "87 passed" in printed
    assert ("of tests/cli/test_first.py" in printed) == (words == ["--long"])


def test_waiting_gives_the_first_true_value() -> None:
    asked = iter([0, "", "came", "late"])
    assert until(lambda: next(asked)) == "came"
    assert next(asked) == "late"


def test_waiting_on_an_event_loop_lets_others_work() -> None:
    async def both() -> str:
        came: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: loop.call_soon(came.append, "worked"))
        return (await arrives(lambda: came))[0]

    assert asyncio.run(both()) == "worked"
