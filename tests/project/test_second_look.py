"""What a few failed tests of the whole suite get: a second look alone, which a fault does not pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.second_look import MOST

TOOL = Path(__file__).resolve().parents[2] / "tools" / "second_look.py"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null"]


def looked(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """The second look after a run of `tests` in `folder`."""
    (folder / "test_them.py").write_text(tests)
    options = [*PYTEST, "--rootdir", str(folder)]
    first = subprocess.run(
        [*options, "-o", f"cache_dir={folder}/cache", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert first.returncode == 1, first.stdout
    command = [sys.executable, str(TOOL), str(folder / "cache"), *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def fails(times: int) -> str:
    """A test that fails so many times, then passes."""
    return (
        "from pathlib import Path\n"
        "def test_it():\n"
        "    runs = Path(__file__).with_name('runs')\n"
        "    count = len(runs.read_text()) if runs.exists() else 0\n"
        "    runs.write_text('x' * (count + 1))\n"
        f"    assert count >= {times}\n"
    )


def test_a_test_that_passes_twice_alone_is_named_as_unsteady(tmp_path: Path) -> None:
    seen = looked(tmp_path, fails(1))
    assert seen.returncode == 0, seen.stdout
    assert "unsteady: test_them.py::test_it" in seen.stdout


@pytest.mark.parametrize("times", [2, 100])
def test_a_test_that_fails_again_fails_the_run(tmp_path: Path, times: int) -> None:
    assert looked(tmp_path, fails(times)).returncode == 1


def test_a_test_that_passes_only_once_alone_fails_the_run(tmp_path: Path) -> None:
    seen = looked(tmp_path, fails(1).replace("count >= 1", "count == 1"))
    assert seen.returncode == 1, seen.stdout


def test_many_failed_tests_get_no_second_look(tmp_path: Path) -> None:
    tests = "import pytest\n\n" + fails(MOST + 1).replace(
        "def test_it():", f"@pytest.mark.parametrize('n', range({MOST + 1}))\ndef test_it(n):"
    )
    seen = looked(tmp_path, tests)
    assert (seen.returncode, seen.stdout) == (1, "")
