"""``tools/setup`` mends what an earlier set-up left, and says why it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = """import sys
print("pip: no index" if "install" in sys.argv else "", file=sys.stderr)
sys.exit({code})
"""


def clone(folder: Path, *, pip_code: int) -> Path:
    """A folder with `tools/setup`, what it reads, and a virtual environment whose interpreter has a pip that only ends."""
    (folder / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "setup", folder / "tools" / "setup")
    (folder / "pip").mkdir()
    (folder / "pip" / "__init__.py").touch()
    (folder / "pip" / "__main__.py").write_text(PIP.format(code=pip_code))
    for name in ("pyproject.toml", "requirements-dev.lock", "package/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    for room in ("protocols", "sandbox", "environments", "server", "client"):
        (folder / room).mkdir()
    # A stand-in for `python3`: `-m venv` links it into the new environment.
    program = folder / "stand-in"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -m ] && [ "$2" = venv ]; then mkdir -p "$3/bin" && ln -sf "{program}" "$3/bin/python"; exit; fi\n'
        f'PYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    return folder


def set_up(folder: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"TAMIS_PYTHON": str(folder / "stand-in")}
    return subprocess.run([folder / "tools" / "setup", "dev"], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["clone", "a clone 汉字"])
@pytest.mark.parametrize("left", ["nothing", "an empty folder", "an interpreter that is gone"])
def test_a_half_made_environment_is_made_again(tmp_path: Path, left: str, name: str) -> None:  # N9
    folder = clone(tmp_path / name, pip_code=0)
    if left != "nothing":
        (folder / ".venv" / "bin").mkdir(parents=True)
    if left == "an interpreter that is gone":
        (folder / ".venv" / "bin" / "python").symlink_to("/there/is/no/python")
    done = set_up(folder)
    assert (done.returncode, done.stdout) == (0, f"{folder}/.venv/bin\n"), done.stderr
    assert (folder / ".venv" / ".tamis").read_text().startswith("dev ")
    assert set_up(folder).stderr == ""


def test_a_set_up_that_fails_names_the_cause_and_is_tried_again(tmp_path: Path) -> None:  # N9
    folder = clone(tmp_path / "clone", pip_code=1)
    done = set_up(folder)
    assert done.returncode == 1
    assert "it needs a package index" in done.stderr
    # Of another size, since Python takes compiled code of the same second and size for current.
    (folder / "pip" / "__main__.py").write_text(PIP.format(code=0) + "# mended\n")
    assert set_up(folder).returncode == 0
