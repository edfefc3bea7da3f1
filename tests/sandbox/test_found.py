"""Programs that were found before: each call looks at their files again, and what changed is looked for anew (ruling 59, issue 18)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tamis.sandbox import host, interpreters, shims
from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.model import Interpreter, Interpreters, Unavailable


def settled(path: Path) -> None:
    """Waits until a change of a file shows in its times."""
    while time.time_ns() - path.stat().st_ctime_ns < shims._SETTLED_NS:
        time.sleep(0.05)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shims, "_SETTLED_NS", 20_000_000)
    monkeypatch.setattr(interpreters, "_known", {})


SYSTEM = os.path.realpath("/usr/bin/python3")


@pytest.fixture
def linked(tmp_path: Path, quick: None) -> Path:
    """A name of the system's Python that a test may lead elsewhere."""
    if os.path.dirname(SYSTEM) != "/usr/bin":
        pytest.skip("there is no Python in /usr/bin")
    link = tmp_path / "bin" / "python3"
    link.parent.mkdir()
    link.symlink_to(SYSTEM)
    return link


def found(link: Path) -> Interpreter | Missing:
    return find_interpreter("python", Interpreters(python=str(link)))


def test_a_python_that_did_not_change_is_not_looked_into_again(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(linked)
    assert isinstance(first, Interpreter)
    monkeypatch.setattr(interpreters, "_found", lambda *_: pytest.fail("it was looked into"))
    assert found(linked) is first


def test_a_name_that_leads_elsewhere_since_is_seen(linked: Path, tmp_path: Path) -> None:
    assert isinstance(found(linked), Interpreter)
    script = tmp_path / "evil"
    script.write_text("#!/bin/sh\ntouch marker\n")
    script.chmod(0o755)
    linked.unlink()
    linked.symlink_to(script)
    assert isinstance(found(linked), Missing)
    linked.unlink()
    assert isinstance(found(linked), Missing)
    linked.symlink_to(SYSTEM)
    assert isinstance(found(linked), Interpreter)


@pytest.mark.parametrize("place", ["bin", "."])
def test_a_virtual_environment_that_a_name_belongs_to_since_is_seen(linked: Path, place: str) -> None:
    plain = found(linked)
    assert isinstance(plain, Interpreter)
    assert not plain.binds
    (linked.parent.parent / place / "pyvenv.cfg").write_text("home = /usr/bin\n")
    other = found(linked)
    assert isinstance(other, Interpreter)
    assert other.binds


@pytest.mark.parametrize("change", ["content", "mode", "name", "place"])
def test_a_file_that_changed_is_not_the_one_that_was_found(tmp_path: Path, quick: None, change: str) -> None:
    """Also one whose time of modification was set back, and another file where it stood though its inode is reached by its old name."""
    real = tmp_path / "a" / "program"
    real.parent.mkdir()
    real.write_bytes(b"one")
    link = tmp_path / "program"
    link.symlink_to(real)
    settled(real)
    kept = shims.FoundFile.of(str(link), str(real))
    assert kept is not None
    assert kept.is_same
    before = real.stat()
    if change == "content":
        real.write_bytes(b"two")
        os.utime(real, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "mode":
        real.chmod(0o755)
    elif change == "name":
        real.rename(tmp_path / "a" / "other")
    else:
        real.parent.rename(tmp_path / "b")
        link.unlink()
        link.symlink_to(tmp_path / "b" / "program")
        real.parent.mkdir()
        real.write_bytes(b"one")
    assert not kept.is_same


def test_a_file_that_changed_just_now_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_bytes(b"one")
    assert shims.FoundFile.of(str(file), str(file)) is None


def test_the_program_that_gives_up_root_is_looked_for_again_when_it_changed(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for file in (first, second):
        file.write_bytes(b"#")
        file.chmod(0o755)
    monkeypatch.setattr(host, "_SETPRIV", (str(first), str(second)))
    monkeypatch.setattr(host, "_setpriv", None)
    settled(first)
    assert [host.find_setpriv() for _ in range(2)] == [str(first)] * 2
    first.chmod(0o600)
    if os.geteuid() == 0:
        first.unlink()  # the bits of a mode do not hold root back
    assert [host.find_setpriv() for _ in range(2)] == [str(second)] * 2
    first.write_bytes(b"#")
    first.chmod(0o755)
    assert host.find_setpriv() == str(first)
    for file in (first, second):
        file.unlink()
    with pytest.raises(Unavailable):
        host.find_setpriv()
