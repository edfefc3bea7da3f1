"""The example whose package comes from npm, through Tamis: installed in the sandbox, then called (D07, D08)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tamis.environments.configured_indexes import npm_settings
from tests.node_runtime import NODE

ROOT = Path(__file__).resolve().parents[2] / "examples"


def registry_address() -> str:
    """Where the registry that npm is configured for is, for `allowCidrs`: its address may be no public one."""
    parts = urlsplit(npm_settings().registry[0])
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=5) as connection:
            return str(connection.getpeername()[0])
    except OSError as error:
        pytest.skip(f"the registry that npm is configured for is not reached: {error}")


def tamis(*words: str, cwd: Path, cache: Path) -> Any:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "tamis"), *words],
        cwd=cwd,
        env=os.environ | {"TAMIS_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_node_tool_with_a_package_is_installed_once_and_runs(tmp_path: Path) -> None:
    root = tmp_path / "examples"
    shutil.copytree(ROOT, root)
    address = registry_address()
    settings = (root / "tamis.toml").read_text()
    opened = f'[policy]\nallowCidrs = ["{address}/{128 if ":" in address else 32}"]\n'
    kept = "".join(line for line in settings.splitlines(keepends=True) if not line.startswith("allowCidrs"))
    chosen = f'\n[sandbox.interpreters]\nnodejs = "{NODE}"\n'
    (root / "tamis.toml").write_text(kept.replace("[policy]\n", opened) + chosen)
    text = str(root / "transcripts" / "packages.md")
    for _ in range(2):
        results = tamis("run", "--json", "--yes", "--root", str(root), text, cwd=tmp_path, cache=tmp_path / "cache")
        outputs = [result.get("output") for result in results["results"]]
        assert outputs == [
            {"documents": [{"service": {"name": "web", "ports": [80, 443]}}]},
            {"text": "limits:\n    memory: 256Mi\n    cpu: 0.5\n"},
        ], results
    made = list((tmp_path / "cache" / "environments" / "v1").glob("*/meta.json"))
    assert len(made) == 1
    assert json.loads(made[0].read_text())["packages"] == [["yaml", "2.8.1"]]
    assert not (root / "tools" / "yaml-convert" / "node_modules").exists()
