"""Documents that are written from the code are not stale, and what they name is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.protocols.catalogue import CATALOGUE
from tamis.server.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_diagnostics_page_is_written_from_the_catalogue() -> None:
    done = subprocess.run(
        [sys.executable, "tools/diagnostics_page.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_code_has_one_slug_and_every_slug_one_code_in_its_group() -> None:
    seen: set[tuple[str, str]] = set()
    for code, entry in CATALOGUE.items():
        assert re.fullmatch(r"(TC|AX|TM|VC|VA|MF|PF)\d{3}", code)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.slug)
        assert (code[:2], entry.slug) not in seen
        seen.add((code[:2], entry.slug))


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for name in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / name).exists(), f"{page} links to {name}"


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for command in COMMANDS:
        assert f"tamis {command}" in text


def test_no_path_of_a_machine_is_in_a_tracked_file() -> None:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    pattern = re.compile(rb"(?<![\w.])/(?:work|farm)/|/tmp/bash_jobs|files\.pythonhosted|registry\.npmjs")
    for name in done.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink() and name != "tests/project/test_docs.py":
            assert not pattern.search(path.read_bytes()), name
