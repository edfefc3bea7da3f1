"""The record of trusted folders: what it binds, and what becomes of it when it is damaged, read-only, newer, or changed by two at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.trust import RECORD, TrustFault, revoke, trust, trusted_folders
from tests.trust.conftest import World
from tests.trust.support import accept

ASKS = '[sandbox.interpreters]\npython = "bin/python"\n[policy]\nallowHosts = ["a.test"]\n'


@pytest.fixture
def trusting(world: World) -> World:
    (world.root / "bin").mkdir()
    (world.root / "bin" / "python").write_text("#!/bin/sh\n")
    world.folder(ASKS)
    accept(world)
    assert load_settings(world.root).trusted_by == "record"
    return world


def test_a_changed_file_is_no_longer_trusted(trusting: World) -> None:
    trusting.folder(ASKS + "# one more line\n")
    assert load_settings(trusting.root).trusted_by == ""
    trusting.folder(ASKS)
    assert load_settings(trusting.root).trusted_by == "record"


def test_a_changed_program_that_the_file_names_is_no_longer_trusted(trusting: World) -> None:
    (trusting.root / "bin" / "python").write_text("#!/bin/sh\nevil\n")
    assert load_settings(trusting.root).trusted_by == ""


def test_the_same_folder_elsewhere_is_not_trusted(trusting: World, tmp_path: Path) -> None:
    os.rename(trusting.root, tmp_path / "moved")
    assert load_settings(tmp_path / "moved").trusted_by == ""


def test_the_way_to_the_folder_does_not_matter(trusting: World, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(trusting.root)
    assert load_settings(tmp_path / "link").trusted_by == "record"
    assert revoke(str(tmp_path / "link"))
    assert load_settings(trusting.root).trusted_by == ""
    assert not revoke(str(trusting.root))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is damaged"),
        (b"[]", "is damaged"),
        (b'{"version": 1, "folders": {"/x": 3}}', "is damaged"),
        (b"[" * 200_000, "is damaged"),
        (b'{"version": 2, "folders": []}', "is from a newer version"),
    ],
    ids=["cut", "list", "entry", "deep", "newer"],
)
def test_a_record_that_cannot_be_read_is_no_trust_and_is_left_as_it_is(
    trusting: World, data: bytes, words: str
) -> None:
    record = trusting.state / RECORD
    record.write_bytes(data)
    loaded = load_settings(trusting.root)
    assert loaded.trusted_by == ""
    assert [words in problem for problem in loaded.problems] == [True]
    assert loaded.closed == ""
    with pytest.raises(TrustFault, match=words):
        trust(trusting.root, b"", {})
    with pytest.raises(TrustFault, match=words):
        revoke(str(trusting.root))
    assert record.read_bytes() == data


def test_a_record_that_others_may_write_is_no_trust(trusting: World) -> None:
    os.chmod(trusting.state / RECORD, 0o666)
    loaded = load_settings(trusting.root)
    assert loaded.trusted_by == ""
    assert "is not this user's own file" in loaded.problems[0]


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_a_record_that_is_no_file_is_no_trust_and_is_not_waited_for(trusting: World, kind: str) -> None:
    record = trusting.state / RECORD
    kept = record.read_bytes()
    record.unlink()
    if kind == "fifo":
        os.mkfifo(record)
    elif kind == "link":
        (trusting.state / "elsewhere").write_bytes(kept)
        record.symlink_to(trusting.state / "elsewhere")
    else:
        record.mkdir()
    loaded = load_settings(trusting.root)
    assert loaded.trusted_by == ""
    assert len(loaded.problems) == 1


def test_a_state_folder_that_cannot_be_written_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.folder(ASKS)
    (world.root / "file").write_text("")
    monkeypatch.setenv("TAMIS_STATE_DIR", str(world.root / "file" / "below"))
    with pytest.raises(TrustFault, match="cannot be written: "):
        accept(world)


def test_a_named_file_that_cannot_be_read_is_not_trusted(world: World) -> None:
    (world.root / "bin").mkdir()
    os.mkfifo(world.root / "bin" / "python")
    world.folder(ASKS)
    with pytest.raises(TrustFault, match="cannot be read as a regular file"):
        accept(world)


def test_the_record_is_private_and_holds_the_accepted_text(trusting: World) -> None:
    record = trusting.state / RECORD
    assert record.stat().st_mode & 0o777 == 0o600
    folders = json.loads(record.read_bytes())["folders"]
    assert folders[str(trusting.root.resolve())]["text"] == ASKS
    assert list(trusted_folders()) == [str(trusting.root.resolve())]


BOTH = """
import sys
from pathlib import Path
from tamis.server.runtime.settings.trust import revoke, trust
for number in range(25):
    if sys.argv[1] == "trust":
        trust(Path(f"/new/{sys.argv[2]}/{number}"), b"", {})
    else:
        assert revoke(f"/old/{number}")
"""


def test_processes_that_trust_and_revoke_at_once_all_count(world: World) -> None:
    for number in range(25):
        trust(Path(f"/old/{number}"), b"", {})
    trust(Path("/kept"), b"", {})
    running = [
        subprocess.Popen([sys.executable, "-c", BOTH, *words])
        for words in (("trust", "a"), ("trust", "b"), ("revoke", ""))
    ]
    assert [one.wait() for one in running] == [0, 0, 0]
    wanted = {"/kept", *(f"/new/{name}/{number}" for name in "ab" for number in range(25))}
    assert trusted_folders().keys() == wanted
    assert sorted(path.name for path in world.state.iterdir()) == ["trust.json", "trust.lock"]
