"""What an environment of requests and beautifulsoup4 costs once their packages were downloaded, beside uv without a sandbox."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from bench.measure import in_turn, table
from tamis.environments.configured_indexes import pip_settings
from tamis.environments.model import Options
from tamis.environments.prepare import prepare
from tamis.environments.store import Store
from tamis.sandbox.interpreters import find_interpreter, find_uv
from tamis.sandbox.model import Interpreter, Interpreters

REQUIREMENTS = "requests==2.32.3\nbeautifulsoup4==4.12.3\n"


def _address() -> str | None:
    parts = urlsplit(pip_settings().default[0])
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=5) as connection:
            return str(connection.getpeername()[0])
    except OSError:
        return None


def bench_environments() -> str:
    """Building from the cache, and finding what is built; both sides install, check and compile the same."""
    title = "Environments"
    address = _address()
    uv, python = find_uv(None), find_interpreter("python", Interpreters())
    if address is None or not isinstance(uv, str) or not isinstance(python, Interpreter):
        return f"### {title}\n\nNot measured: the index that pip is configured for, uv or a Python is not reached.\n"
    place = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    try:
        return _measured(title, place, address, uv, python)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _measured(title: str, place: Path, address: str, uv: str, python: Interpreter) -> str:
    place.chmod(0o755)
    tool = place / "tool"
    tool.mkdir()
    (tool / "tool.py").write_text("import bs4, requests\n")
    (tool / "requirements.txt").write_text(REQUIREMENTS)
    folder = os.path.realpath(tool)
    options = Options(store=str(place / "store"), allow_cidrs=(f"{address}/{128 if ':' in address else 32}",))

    def ready() -> None:
        lease = asyncio.run(prepare(folder, "tool.py", "python", options))
        assert lease is not None
        lease.close()

    def built() -> None:
        Store(options.store).prune(0, grace=0)
        ready()

    def plain() -> None:
        env = os.environ | {"UV_CACHE_DIR": str(place / "cache"), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
        shutil.rmtree(place / "plain", ignore_errors=True)
        made = str(place / "plain" / "bin" / "python")
        for words in (
            ["venv", "--quiet", "--no-project", "--python", python.path, str(place / "plain")],
            ["pip", "install", "--quiet", "--python", made, "--link-mode", "copy", "--compile-bytecode", "-r", str(tool / "requirements.txt")],
        ):  # fmt: skip
            subprocess.run([uv, *words], check=True, env=env, capture_output=True)

    ready()
    plain()
    samples = in_turn({"built": built, "uv without a sandbox": plain, "ready": ready}, rounds=9)
    anchor = samples["uv without a sandbox"]
    return table(
        title,
        [
            ("requests and beautifulsoup4, built from the cache", samples["built"], anchor, "≤ 0.3 s"),
            ("the same, already built", samples["ready"], anchor, ""),
        ],
    )
