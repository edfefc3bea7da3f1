"""Granted folders: shown where promised, never more, and clean afterwards."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest

from tamis.sandbox import runner
from tamis.sandbox.model import Mount
from tests.sandbox import support


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = Path(os.path.realpath(tmp_path)) / "data"
    place.mkdir()
    (place / "in.txt").write_text("granted")
    return place


def test_read_grant_is_shown_at_its_own_path_and_not_writable(tmp_path: Path, place: Path) -> None:
    source = f"print(open('{place}/in.txt').read())\ntry: open('{place}/x','w')\nexcept OSError as e: print(e.errno)"
    outcome = support.run_source(tmp_path, source, read=(Mount(str(place)),))
    assert outcome.stdout == b"granted\n30\n", outcome


def test_read_grant_of_a_file_shows_only_that_file(tmp_path: Path, place: Path) -> None:
    (place / "other.txt").write_text("not granted")
    source = f"import os; print(os.listdir('{place}'))"
    outcome = support.run_source(tmp_path, source, read=(Mount(str(place / "in.txt")),))
    assert outcome.stdout == b"['in.txt']\n", outcome


def test_write_grant_keeps_what_was_written_for_the_folders_owner(tmp_path: Path, place: Path) -> None:
    source = f"import os; os.makedirs('{place}/a/b'); open('{place}/a/b/out.txt','w').write('done'); open('{place}/in.txt','a').write('!')"
    outcome = support.run_source(tmp_path, source, write=(Mount(str(place)),))
    assert outcome.kind == "ok", outcome
    written = place / "a" / "b" / "out.txt"
    assert written.read_text() == "done"
    assert (place / "in.txt").read_text() == "granted!"
    assert written.stat().st_uid == place.stat().st_uid == os.getuid()


def test_write_grant_inside_the_tools_folder_is_shown_below_tool(tmp_path: Path) -> None:
    folder = support.tool_folder(
        tmp_path, "open('/tool/out/x','w').write('1')\ntry: open('/tool/y','w')\nexcept OSError: print('held')"
    )
    (Path(folder) / "out").mkdir()
    outcome = support.run(support.request(folder, write=(Mount(folder + "/out"),)))
    assert outcome.stdout == b"held\n", outcome
    assert (Path(folder) / "out" / "x").read_text() == "1"


def test_a_second_run_may_change_what_the_first_wrote(tmp_path: Path, place: Path) -> None:
    source = f"open('{place}/n','a').write('x')"
    wanted = support.request(support.tool_folder(tmp_path, source), write=(Mount(str(place)),))

    async def main() -> None:
        for outcome in await asyncio.gather(*(runner.run(wanted) for _ in range(4))):
            assert outcome.kind == "ok", outcome

    asyncio.run(main())
    assert (place / "n").read_text() == "xxxx"


@pytest.mark.parametrize(
    "path", ["/", "/proc", "/sys/kernel", "/dev", "/run", "/etc", "/root", "/usr", "/home", "relative", "/tmp/../etc"]
)
def test_system_places_are_never_granted(tmp_path: Path, path: str) -> None:
    for grant in ({"read": (Mount(path),)}, {"write": (Mount(path),)}):
        outcome = support.run_source(tmp_path, "print(1)", **grant)
        assert (outcome.kind, outcome.error_type, outcome.stdout) == ("refused", "SecurityError", b""), outcome


def test_secrets_are_never_granted(tmp_path: Path, place: Path) -> None:
    (place / ".ssh").mkdir()
    outcome = support.run_source(tmp_path, "print(1)", read=(Mount(str(place / ".ssh")),))
    assert outcome.kind == "refused" and ".ssh" in outcome.message


@pytest.mark.parametrize("dest", ["/usr/x", "/etc/x", "/proc/x", "/tool", "relative", "/a/../b", "/dev/x", "/"])
def test_places_of_the_sandbox_are_not_covered(tmp_path: Path, place: Path, dest: str) -> None:
    outcome = support.run_source(tmp_path, "print(1)", read=(Mount(str(place), dest),))
    assert outcome.kind == "refused", outcome


def test_tools_own_folder_is_never_writable(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "print(1)")
    outcome = support.run(support.request(folder, write=(Mount(folder),)))
    assert outcome.kind == "refused", outcome


def test_grant_through_a_link_is_refused(tmp_path: Path, place: Path) -> None:
    (place.parent / "link").symlink_to(place)
    outcome = support.run_source(tmp_path, "print(1)", read=(Mount(str(place.parent / "link")),))
    assert outcome.kind == "refused" and "symbolic link" in outcome.message


def test_mount_point_that_is_a_link_creates_nothing_on_the_host(tmp_path: Path, place: Path) -> None:
    # CVE-2026-87766, cases e40-e44: the link leads out of the sandbox while bubblewrap mounts
    folder = support.tool_folder(tmp_path, "print(1)")
    victim = place.parent / "victim"
    victim.mkdir()
    (Path(folder) / "cache").symlink_to(f"/oldroot{victim}")
    for dest in ("/tool/cache", "/tool/cache/new", "/tool/new"):
        outcome = support.run(support.request(folder, read=(Mount(str(place), dest),)))
        assert outcome.kind == "refused", outcome
    assert list(victim.iterdir()) == []
    assert not (Path(folder) / "new").exists()


def test_nested_grant_below_a_writable_one_is_refused(tmp_path: Path, place: Path) -> None:
    (place / "sub").mkdir()
    outcome = support.run_source(tmp_path, "print(1)", write=(Mount(str(place)),), read=(Mount(str(place / "sub")),))
    assert outcome.kind == "refused", outcome


def test_set_uid_and_special_files_do_not_stay(tmp_path: Path, place: Path) -> None:
    outcome = support.run_source(
        tmp_path,
        f"import os; os.mkfifo('{place}/fifo'); os.symlink('/etc/passwd', '{place}/l')",
        write=(Mount(str(place)),),
    )
    assert not (place / "fifo").exists()
    removed, told = outcome.violations
    assert removed.endswith("/fifo: a special file was removed")
    assert told.endswith("/l: a link that leads out of the folder, to /etc/passwd")
    # the filter keeps a script from setting the bit; whoever did, it goes
    (place / "suid").write_text("")
    (place / "suid").chmod(0o4755)
    outcome = support.run_source(tmp_path, "print(1)", write=(Mount(str(place)),))
    assert not (place / "suid").stat().st_mode & stat.S_ISUID, outcome
    assert (place / "l").is_symlink()


def test_host_socket_in_a_granted_folder_is_not_reachable(tmp_path: Path, place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(place / "s"))
        listener.listen()
        source = f"import socket\ntry: socket.socket(socket.AF_UNIX).connect('{place}/s'); print('BROKEN')\nexcept OSError: print('held')"
        outcome = support.run_source(tmp_path, source, read=(Mount(str(place)),))
    assert outcome.stdout == b"held\n", outcome


@pytest.mark.skipif(not support.IS_ROOT, reason="shows folders below a closed home, which only root has to cross")
def test_tool_below_a_closed_parent_runs_as_root(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    outcome = support.run_source(tmp_path / "closed", "print('x')")
    assert (outcome.kind, outcome.stdout) == ("ok", b"x\n"), outcome


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "NODE_OPTIONS", "A=B", "", "1A", "A\0"])
def test_reserved_environment_names_are_refused(tmp_path: Path, name: str) -> None:
    assert support.run_source(tmp_path, "print(1)", env={name: "x"}).kind == "refused"


def test_extra_environment_reaches_the_script(tmp_path: Path) -> None:
    outcome = support.run_source(tmp_path, "import os; print(os.environ['API_KEY'])", env={"API_KEY": "a b\nc"})
    assert outcome.stdout == b"a b\nc\n"


@pytest.mark.parametrize("args", [("a\0b",), ("\ud800",), ("x" * 100_001,), ("x" * 99_999,) * 11])
def test_arguments_that_no_process_can_be_given_are_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    outcome = support.run_source(tmp_path, "print(1)", args=args)
    assert (outcome.kind, outcome.stdout) == ("refused", b""), outcome


def test_long_arguments_reach_the_script_whole(tmp_path: Path) -> None:
    args = ("中" * 33_000,) * 9
    outcome = support.run_source(tmp_path, "import sys; print(sum(map(len, sys.argv[1:])))", args=args)
    assert outcome.stdout == b"297000\n", outcome
