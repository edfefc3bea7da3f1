"""A plain ``pip install .`` gives a ``tamis`` that runs tools, with nothing else set up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_a_plain_install_runs_a_tool(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns(".git", ".venv", "build", "node_modules", "*.egg-info", "dist")
    )
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
