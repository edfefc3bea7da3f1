"""``tools/mutate``: what is no mutant, which lines get one, and which tests run against it."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tools.mutate_plugin import empty_caches

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "mutate"
LIBRARY = ROOT / ".venv" / "mutate" / "bin" / "python"

LOAD = f"""
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
loader = SourceFileLoader("mutate", {str(TOOL)!r})
mutate = sys.modules["mutate"] = module_from_spec(spec_from_loader("mutate", loader))
loader.exec_module(mutate)
"""


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    loader = SourceFileLoader("mutate", str(TOOL))
    spec = spec_from_loader("mutate", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


LEFT_OUT = '''"""A docstring."""
__all__ = ["a", 1 - 1]
Word = str | None
WIDTH = ONE | TWO
@functools.cache
def f(a: int | None = 1) -> str | None:
    """Another."""
    b: int | str = 2
    log.debug("no", 1)
    raise ValueError(f"wide ü {a + 1}", 2)
class Kept(Struct, frozen=True):
    is_kept = True
'''


@pytest.mark.parametrize(
    ("text", "is_left_out"),
    [
        ("A docstring", True),
        ("1 - 1", True),
        ("| None\nWIDTH", True),
        ("| TWO", False),
        ("@functools", True),
        ("| None = 1", True),
        ("1) -> str", False),
        ("| None:", True),
        ("| str = 2", True),
        ("2\n", False),
        ("1)\n    raise", True),
        ("+ 1}", True),
        ("2)\n", False),
        ("True):", True),
        ("True\n", False),
    ],
)
def test_what_no_test_needs_to_catch_is_no_mutant(mutate: ModuleType, text: str, is_left_out: bool) -> None:
    before = LEFT_OUT[: LEFT_OUT.index(text)]
    place = (before.count("\n") + 1, len(before.rpartition("\n")[2]))
    assert any(first <= place < last for first, last in mutate.left_out(LEFT_OUT)) is is_left_out


def test_the_sample_takes_one_mutant_a_line_spread_over_all_lines(mutate: ModuleType) -> None:
    mutants = [mutate.Mutant("a.py", line, 0, f"Kind_{n}", line) for line in range(100) for n in range(line % 7 + 1)]
    chosen = mutate.sample(mutants, 10, 1)
    assert [mutant.line // 10 for mutant in chosen] == list(range(10))
    assert mutate.sample(reversed(mutants), 10, 1) == chosen
    assert mutate.sample(mutants, 10, 2) != chosen
    assert len(mutate.sample(mutants, 1000, 1)) == 100


def test_a_kind_with_many_replacements_is_not_chosen_more_often(mutate: ModuleType) -> None:
    many = [mutate.Mutant("a.py", line, 0, f"Many_{n}", 0) for line in range(400) for n in range(11)]
    few = [mutate.Mutant("a.py", line, 5, "Few", 0) for line in range(400)]
    kinds = [mutant.kind for mutant in mutate.sample(many + few, 400, 1)]
    assert 150 < kinds.count("Few") < 250


def test_test_files_are_found_by_imports_through_helpers_and_by_name(mutate: ModuleType, tmp_path: Path) -> None:
    files = {
        "test_direct.py": "from tamis.server.policy import rules\n",
        "test_helped.py": "from tests.room import calls\n",
        "calls.py": "from tests.room import test_helped\nfrom tamis.server.policy.rules import (\n    Rule,\n)\n",
        "test_policy_words.py": "",
        "test_other.py": "from tamis.server.policies import rules\n",
    }
    folder = tmp_path / "tests" / "room"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    found = mutate.candidates(tmp_path, "server/policy", ["tests/room"])
    assert [name.removeprefix("tests/room/test_") for name in found] == ["direct.py", "helped.py", "policy_words.py"]


SOURCE = '''"""A module."""
from __future__ import annotations
import functools
LIMIT = 3

@functools.cache
def outer(x):
    """Doubles."""
    def inner():
        return x * 2
    return inner()
'''


def test_a_line_belongs_to_its_innermost_function(mutate: ModuleType) -> None:
    assert [mutate.function_at(SOURCE, line) for line in (4, 6, 7, 10, 11)] == [0, 7, 7, 9, 7]


def test_probes_record_each_function_that_is_called(mutate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setitem(sys.modules, "tamis_mutate", type("Probe", (), {"reached": seen.append}))
    space: dict[str, Any] = {}
    exec(mutate.with_probes(SOURCE, "a.py"), space)
    assert seen == []
    module = ModuleType("room.a")
    module.__dict__.update(space)
    monkeypatch.setitem(sys.modules, "room.a", module)
    for _ in range(2):  # what a test asked before is reached by the next test too
        empty_caches("room")
        assert [module.outer(2), module.outer(2)] == [4, 4]
    assert seen == ["a.py:7", "a.py:9"] * 2
    assert space["__doc__"] == "A module."


def record(
    test: str, seconds: float, *reached: str, shared: tuple[str, ...] = (), outcome: str = "passed"
) -> dict[str, Any]:
    file = test.partition("::")[0]
    return {"test": test, "file": file, "seconds": seconds, "reached": reached, "shared": shared, "outcome": outcome}


def test_a_mutant_gets_the_tests_that_reach_it_the_quickest_file_first(mutate: ModuleType) -> None:
    tests = mutate.passed_tests(
        [
            record("slow.py::a", 9, "a.py:7"),
            record("slow.py::b", 1, "a.py:9"),
            record("quick.py::c", 2, "a.py:7"),
            record("quick.py::d", 2, "b.py:1"),
            record("shared.py::e", 3, shared=("a.py:7",)),
            record("shared.py::f", 3),
            record("skipped.py::g", 0, "a.py:7", outcome="skipped"),
            record("other.py::h", 1, "b.py:1"),
        ]
    )
    chosen = mutate.tests_for(mutate.Mutant("a.py", 8, 0, "Kind", 0), SOURCE, tests)
    assert [test.name for test in chosen] == ["quick.py::c", "shared.py::e", "shared.py::f", "slow.py::a"]
    assert [[test.name for test in stage] for stage in mutate.in_stages(chosen)] == [
        ["quick.py::c"],
        ["shared.py::e", "shared.py::f", "slow.py::a"],
    ]
    of_module = mutate.tests_for(mutate.Mutant("a.py", 4, 0, "Kind", 0), SOURCE, tests)
    assert {test.file for test in of_module} == {"quick.py", "shared.py", "slow.py"}
    assert {test.name for test in tests} - {test.name for test in of_module} == {"other.py::h"}
    constant = mutate.Mutant("c.py", 4, 0, "Kind", 0)
    assert mutate.tests_for(constant, SOURCE, tests) == []
    assert len(mutate.tests_for(constant, "LIMIT = 3\n", tests)) == len(tests)


def test_the_last_line_counts_timeouts_as_caught_and_leaves_out_the_invalid(mutate: ModuleType) -> None:
    outcomes = mutate.Counter({"caught": 6, "timed out": 1, "survived": 2, "unreached": 1, "invalid": 3})
    assert mutate.total("server/policy", outcomes, 5).startswith("server/policy: 7 of 10 caught, 1 of them timed out")


@pytest.mark.slow
def test_the_library_gives_the_mutants_of_a_module() -> None:
    if not (LIBRARY.parents[1] / ".pinned").is_file():
        pytest.skip("cosmic-ray is not installed: tools/mutate installs it when it runs")
    code = LOAD + (
        "source = 'def f(a: int | None) -> bool:\\n    return a is None or a > 0\\n'\n"
        "for mutant in sorted(mutate.mutants_of('a.py', source)):\n"
        "    print(mutant.line, mutate.difference(source, mutate.mutated(source, mutant))[1].split('return ')[1])\n"
    )
    done = subprocess.run([LIBRARY, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert {"2 a is not None or a > 0", "2 a is None and a > 0", "2 a is None or a >= 0", "2 a is None or a > 1"} <= {
        " ".join(line.split()) for line in lines
    }
    assert all(line.startswith("2 ") for line in lines)


@pytest.mark.slow
def test_the_tests_of_a_sandbox_start_nothing_and_write_only_in_their_copy(tmp_path: Path) -> None:
    code = f"""
import os, shutil, socket, subprocess, sys
from pathlib import Path
from tools.mutate_plugin import NotPure, forbid
inside = Path({str(tmp_path)!r}, "copy")
inside.mkdir()
(inside.parent / "kept").write_text("")
forbid(str(inside))
(inside / "file").write_text("")
(inside / "file").unlink()
(inside.parent / "kept").read_text()
refused = [
    lambda: subprocess.run(["/bin/true"]),
    lambda: os.fork(),
    lambda: socket.socket(),
    lambda: (inside.parent / "new").write_text(""),
    lambda: (inside.parent / "kept").unlink(),
    lambda: (inside / ".." / "made").mkdir(),
    lambda: shutil.rmtree(inside.parent),
]
for number, what in enumerate(refused):
    try:
        what()
    except NotPure:
        continue
    sys.exit(f"{{number}} was allowed")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kept").exists()
