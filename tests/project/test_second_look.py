"""What a few failed tests of the whole suite get: a second look alone, which a fault does not pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.second_look import MOST, MOST_FILES, second_look

TOOL = Path(__file__).resolve().parents[2] / "tools" / "second_look.py"
ALONE = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
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
        env=ALONE,
    )
    assert first.returncode == 1, first.stdout
    command = [sys.executable, str(TOOL), str(folder / "cache"), *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=ALONE)


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


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    assert looked(tmp_path, fails(2)).returncode == 1


def test_a_test_that_passes_only_once_alone_fails_the_run(tmp_path: Path) -> None:
    seen = looked(tmp_path, fails(1).replace("count >= 1", "count == 1"))
    assert seen.returncode == 1, seen.stdout


@pytest.mark.parametrize(("tests", "files"), [(MOST + 1, 1), (1, MOST_FILES + 1)])
def test_many_failed_tests_get_no_second_look(tmp_path: Path, tests: int, files: int) -> None:
    record = tmp_path / "v" / "cache" / "lastfailed"
    record.parent.mkdir(parents=True)
    record.write_text(
        json.dumps({f"test_{file}.py::test_{test}": True for file in range(files) for test in range(tests)})
    )
    assert not second_look(tmp_path, ["/there/is/no/such/program"])
