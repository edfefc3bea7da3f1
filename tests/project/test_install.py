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
from typing import Any, NamedTuple

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
    done = subprocess.run([sys.executable, "-c", IMPORT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Built(NamedTuple):
    """A copy of the project's sources, and the wheel that is built from its sdist."""

    source: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=NOT_SOURCE)

    def build(what: str, of: Path) -> Path:
        code = f"from setuptools import build_meta; print('\\n' + build_meta.build_{what}({str(folder)!r}))"
        done = subprocess.run([sys.executable, "-c", code], cwd=of, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return folder / done.stdout.splitlines()[-1]

    with tarfile.open(build("sdist", source)) as archive:
        # Debian 12's Python 3.11.2 has no filters yet
        options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder / "unpacked", **options)
    return Built(source, build("wheel", next((folder / "unpacked").iterdir())))


def test_sdist_and_wheel_hold_every_module(built: Built) -> None:
    ours = {"tamis/__init__.py"}
    for room in ROOMS:
        ours |= {f"tamis/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / room).rglob("*.py")}
    with zipfile.ZipFile(built.wheel) as archive:
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


# `pip install .` builds the same wheel again, in an environment of its own
@pytest.mark.parametrize("what", ["wheel", pytest.param("source", marks=pytest.mark.long)])
def test_a_plain_install_runs_a_tool(built: Built, what: str, tmp_path: Path) -> None:
    source = built.source
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet"]
    install += ["--no-compile", built.wheel if what == "wheel" else source]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
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
        check=False,
    )
    assert "site-packages" in installed.stdout, installed.stderr
    # Also where the source stands: nothing there comes before what is installed.
    beside = subprocess.run([python, "-c", IMPORT], cwd=source, capture_output=True, text=True, check=False)
    assert "site-packages" in beside.stdout, beside.stderr
    described = subprocess.run(
        [tmp_path / "venv" / "bin" / "tamis", "schema", "--openrpc"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    # Also an installed package has the words that its description is made of.
    assert described.stdout == (ROOT / "schemas" / "openrpc.json").read_text("utf-8"), described.stderr
    # The page of findings is part of the package.
    assert installed.stdout.rstrip().endswith("tamis/docs/diagnostics.md#mf501")
