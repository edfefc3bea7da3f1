"""The package: what an install, an sdist and a wheel hold, and that a plain ``pip install .`` runs tools with nothing else set up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


ROOMS = ("protocols", "sandbox", "environments", "server", "client")
IMPORT = "from tamis.client import Client; import tamis; print(tamis.__file__)"
NOT_SOURCE = shutil.ignore_patterns(".git", ".venv", "build", "node_modules", "*.egg-info", "dist", "__pycache__")


def test_nothing_at_the_root_hides_the_installed_package() -> None:
    # P2: a folder or module of this name would come before what is installed, for every Python started in the clone
    assert not (ROOT / "tamis").exists(), "left by an older state of the clone: tools/setup dev takes it away"
    assert not (ROOT / "tamis.py").exists()


def test_the_client_is_imported_in_the_clones_root() -> None:  # P2
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_sdist_and_wheel_hold_every_module(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=NOT_SOURCE)
    ours = {"tamis/__init__.py"}
    for room in ROOMS:
        ours |= {f"tamis/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / room).rglob("*.py")}

    def build(what: str, folder: Path) -> Path:
        code = f"from setuptools import build_meta; print('\\n' + build_meta.build_{what}({str(tmp_path)!r}))"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return tmp_path / done.stdout.splitlines()[-1]

    sdist = build("sdist", source)
    with tarfile.open(sdist) as archive:
        # Debian 12's Python 3.11.2 has no filters yet
        options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path / "unpacked", **options)
    wheel = build("wheel", next((tmp_path / "unpacked").iterdir()))
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if name.endswith(".py")} == ours
    assert {"tamis/py.typed", "tamis/docs/diagnostics.md"} <= names


def test_editors_and_the_type_check_see_the_rooms_as_the_package() -> None:
    # what tools/setup makes: the editable install's import hook is nothing that a type checker reads
    layout = ROOT / ".venv" / "types" / "tamis"
    if not layout.is_dir():
        pytest.skip("tools/setup did not make this environment")
    for room in ROOMS:
        assert (layout / room).resolve() == ROOT / room
    assert (layout / "__init__.py").resolve() == ROOT / "package" / "__init__.py"


@pytest.mark.timeout(900)
def test_a_plain_install_runs_a_tool(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=NOT_SOURCE)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=120)
    python = tmp_path / "venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ran = subprocess.run(
        [
            tmp_path / "venv" / "bin" / "tamis",
            "run",
            "--yes",
            "--json",
            "--root",
            "examples",
            "examples/transcripts/action.md",
        ],
        cwd=source,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": os.environ.get("LANG", "C")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert [item["status"] for item in json.loads(ran.stdout)["results"]] == ["success"] * 3
    probe = """
import tamis.server.lsp.main, tamis.client
from tamis.server.runtime.settings.rule_pages import page_uri
print(tamis.server.lsp.main.__file__)
print(page_uri('MF501'))
"""
    installed = subprocess.run(
        [
            python,
            "-c",
            probe,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "site-packages" in installed.stdout, installed.stderr
    # Also where the source stands: nothing there comes before what is installed.
    beside = subprocess.run([python, "-c", IMPORT], cwd=source, capture_output=True, text=True, timeout=60, check=False)
    assert "site-packages" in beside.stdout, beside.stderr
    described = subprocess.run(
        [tmp_path / "venv" / "bin" / "tamis", "schema", "--openrpc"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # Also an installed package has the words that its description is made of.
    assert described.stdout == (ROOT / "schemas" / "openrpc.json").read_text("utf-8"), described.stderr
    # The page of findings is part of the package.
    assert installed.stdout.rstrip().endswith("tamis/docs/diagnostics.md#mf501")
