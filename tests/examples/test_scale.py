"""`examples/scale`: Ray Data and PySpark come to the counts of `tamis stats` (C4)."""

from __future__ import annotations

import ast
import importlib
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCALE = ROOT / "examples" / "scale"
PROSE = "I looked at the file and at the test that fails.\n\n"
ACTION = f"{PROSE}<ACTION><read_file><path>a</path></read_file></ACTION>"
VCP = f"{PROSE}<<<[TOOL_REQUEST]>>>\ntool_name:「始」read「末」,\nx:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>"
TEXTS = (PROSE, ACTION, VCP, f"<think>{ACTION}</think>", ACTION.removesuffix("</ACTION>"), ACTION[:-20])
ENGINES = {"ray_counts.py": "ray[data]", "spark_counts.py": "pyspark"}


# it installs an engine, up to 500 MB, and starts its processes
@pytest.mark.long
@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_comes_to_the_counts_of_the_command(name: str, tmp_path: Path) -> None:
    """C4: in local mode, over several files."""
    if name == "spark_counts.py" and shutil.which("java") is None:
        pytest.skip("PySpark needs a Java runtime")
    venv.create(tmp_path / "v", with_pip=True)
    python = tmp_path / "v" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", ROOT, ENGINES[name]], check=True)
    files: list[str] = []
    for part in range(3):
        path = tmp_path / f"log-{part}.jsonl"
        records = ({"content": TEXTS[n % 6], "model": f"m{n % 4}" if n % 4 else ""} for n in range(part, 3000))
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
        files.append(str(path))
    command = [sys.executable, "-m", "tamis.server.cli.main", "stats", "--json", *files]
    wanted = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout)
    done = subprocess.run([python, SCALE / name, *files], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for one in (wanted, found):
        for known in ("toolsKnown", "unknownTools", "unknownParameters"):
            del one[known]
    assert found == wanted and found["texts"] == 8997


@pytest.mark.parametrize("path", sorted(SCALE.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_and_names_what_is_there(path: Path) -> None:
    """C4: 20 to 40 lines of code for the counts; what they import of Tamis is there."""
    tree = ast.parse(path.read_text("utf-8"))
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    assert 15 <= len(lines) <= (40 if "counts" in path.name else 70)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tamis"):
            module = importlib.import_module(node.module or "")
            assert all(hasattr(module, alias.name) for alias in node.names)
