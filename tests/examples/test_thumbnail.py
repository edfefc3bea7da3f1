"""The example whose package comes from PyPI, through Tamis: installed in the sandbox, then called (D06, D08)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tamis.environments.configured_indexes import pip_settings

ROOT = Path(__file__).resolve().parents[2] / "examples"


def index_address() -> str:
    """Where the index that pip is configured for is, for `allowCidrs`: its address may be no public one."""
    parts = urlsplit(pip_settings().default[0])
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=5) as connection:
            return str(connection.getpeername()[0])
    except OSError as error:
        pytest.skip(f"the index that pip is configured for is not reached: {error}")


def test_a_python_tool_with_a_package_is_installed_once_and_runs(tmp_path: Path) -> None:
    address = index_address()
    root = tmp_path / "examples"
    shutil.copytree(ROOT, root)
    settings = (root / "tamis.toml").read_text().splitlines(keepends=True)
    opened = f'[policy]\nallowCidrs = ["{address}/{128 if ":" in address else 32}"]\n'
    kept = "".join(line for line in settings if not line.startswith("allowCidrs"))
    (root / "tamis.toml").write_text(kept.replace("[policy]\n", opened))
    tamis = str(Path(sys.executable).parent / "tamis")
    words = [tamis, "run", "--json", "--yes", "--root", str(root), str(root / "transcripts" / "thumbnail.md")]
    for _ in range(2):
        done = subprocess.run(
            words,
            env=os.environ | {"TAMIS_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        results = json.loads(done.stdout)["results"]
        outputs = [result.get("output") for result in results]
        assert all(outputs), results
        assert [(output["width"], output["height"]) for output in outputs] == [(96, 60), (16, 10)]
        assert base64.b64decode(outputs[0]["image_data"]).startswith(b"\xff\xd8\xff")
    made = list((tmp_path / "cache" / "environments" / "v1").glob("*/meta.json"))
    assert [json.loads(path.read_text())["packages"] for path in made] == [[["pillow", "11.3.0"]]]
