"""The example hosts of the embedding guide do what it says, and the guide shows the files as they are (issue 6.7)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.node_runtime import NODE

ROOT = Path(__file__).resolve().parents[2]
HOSTS = ROOT / "examples" / "hosts"
GUIDE = ROOT / "docs" / "embedding.md"
COMMANDS = {
    "python/host.py": [sys.executable, "host.py"],
    "node/host.mjs": [NODE, "host.mjs"],
    "shell/host.sh": ["bash", "host.sh"],
}
CONVERTED = (
    'Observation: Tool units:convert executed successfully. Result: {"value": 42.1648, "unit": "km", '
    '"dimension": "length", "exact": false, "text": "26.2 mi = 42.1648 km"}'
)
REFUSED = "Observation: Tool text:statistics was not executed: the user denied it (用户拒绝了该操作)."


def run(name: str, root: Path | str, **env: str) -> subprocess.CompletedProcess[str]:
    own = str(Path(sys.executable).parent)
    return subprocess.run(
        [*COMMANDS[name], str(root)],
        cwd=(HOSTS / name).parent,
        env=os.environ | {"PATH": f"{own}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["python/host.py", "node/host.mjs"])
def test_a_host_with_a_service_of_its_own(name: str) -> None:
    done = run(name, ROOT / "examples")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.casefold().removesuffix(": 0") for line in (lines[0], lines[-1])] == ["tools: true true", "ended"]
    assert lines[1:-1] == [
        'asked: game:player {"name":"Ada"} -> allow_once',
        "model: I look first. ",
        'Observation: Tool game:player executed successfully. Result: {"name": "Ada", "hp": 7, "place": "harbour"}',
        'asked: units:convert {"value":26.2,"from_unit":"mi","to_unit":"km"} -> allow_once',
        "model: ",
        CONVERTED,
        'asked: text:statistics {"text":"A secret."} -> reject_once',
        "model: ",
        REFUSED,
        "model: Ada has 7 points, and it is 42.1648 km.",
    ]


def test_a_host_in_bash_alone() -> None:
    done = run("shell/host.sh", ROOT / "examples")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "tools: true",
        "asked: units:convert -> allow_once",
        "model: I convert. ",
        CONVERTED,
        "asked: text:statistics -> reject_once",
        "model: ",
        REFUSED,
        "model: It is 42.1648 km.",
        "ended: 0",
    ]


@pytest.mark.parametrize("name", ["node/host.mjs", "shell/host.sh"])
def test_a_daemon_that_does_not_start_is_said_and_ends_the_host(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path, TAMIS="/nonexistent/tamis")
    assert done.returncode != 0
    assert done.stderr


def test_the_host_in_python_says_plainly_what_is_missing(tmp_path: Path) -> None:
    """The finding of a fresh user: a traceback where tamis is not installed, and where the daemon ends."""
    host = HOSTS / "python" / "host.py"
    without = subprocess.run(
        [sys.executable, "-S", str(host)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert without.returncode == 1
    assert without.stderr.startswith("host: this Python has no package tamis") and without.stderr.count("\n") == 1
    ended = run("python/host.py", tmp_path / "nowhere")
    assert ended.returncode == 1
    assert ended.stderr.startswith("host: ") and "nowhere' is not a folder" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_the_guide_shows_the_host_as_it_is(name: str) -> None:
    shown = re.findall(r"^```\w+\n(.*?)^```$", GUIDE.read_text("utf-8"), re.M | re.S)
    assert (HOSTS / name).read_text("utf-8") in shown, f"docs/embedding.md does not show examples/hosts/{name}"


def test_every_host_is_tested() -> None:
    files = {
        path.relative_to(HOSTS).as_posix() for path in HOSTS.rglob("*.*") if path.is_file() and path.suffix != ".pyc"
    }
    assert files == {*COMMANDS, "python/messages.py"}  # which is no host: test_messages.py imports it
