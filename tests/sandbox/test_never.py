"""The one never-list (trust, "Nothing outside the sandbox"): no setting, grant or manifest mounts what is on it, and each
caller asks."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.environments.indexes import local_folder, parse_index
from tamis.environments.model import DependencyFault
from tamis.sandbox import engine, runner
from tamis.sandbox.interpreters import find_interpreter
from tamis.sandbox.job import ArgFile, Fd, Plan
from tamis.sandbox.model import Environment, Interpreters, Mount, PathRefused, Program, RunRequest
from tamis.sandbox.paths import never
from tests.sandbox import support

pytestmark = pytest.mark.skipif(support.BACKEND == "nsjail", reason="the plan of bubblewrap is read here")

SYSTEM = (
    *(
        "/",
        "/proc",
        "/proc/self",
        "/sys",
        "/dev",
        "/dev/shm",
        "/run",
        "/run/user",
        "/boot",
        "/var/run",
        "/etc",
        "/home",
    ),
    *("/root", "/usr", "/var", "/tmp", "/etc/shadow", "/etc/ssh", "/opt", "/var/lib", "/mnt", "/etc/sudoers"),
)
IN_HOME = (*sorted(never.SECRET_NAMES), *never.SECRET_PATHS, *never.TAMIS_PATHS, "agent.sock", "")
HOLDING = (".config", ".local", ".local/share", ".cargo", ".cache", "..", ".config/git", ".m2")
"""Folders of a home that hold a closed place."""


class Captured(Exception):  # noqa: N818 - carries the plan out instead of running it
    def __init__(self, plan: Plan, opened: dict[str, int]) -> None:
        super().__init__()
        self.paths = mounted(plan, opened)


def mounted(plan: Plan, opened: dict[str, int]) -> list[str]:
    """The host paths that a plan mounts, but for the system's own that every sandbox has."""
    found: list[str] = []
    lists = [arg.args for arg in plan.argv if isinstance(arg, ArgFile)]
    inner = lists[-1]
    for args in lists:
        for flag, source, place in zip(args, args[1:], args[2:], strict=False):
            if not isinstance(flag, str) or "bind" not in flag or "data" in flag or not flag.startswith("--"):
                continue
            if isinstance(source, Fd):
                found += [os.readlink(f"/proc/self/fd/{opened[source.name]}")] if source.name in opened else []
            elif not (args is inner and str(source).startswith("/stage/")) and not _system(str(source), str(place)):
                found.append(str(source))
    return found


def _system(source: str, place: str) -> bool:
    """Whether a mount is one of those that every sandbox has, each at its own place."""
    return source == place and source.startswith(("/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/dev"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A home with every secret in it, and Tamis's own folders; the environment leads there."""
    top = Path(os.path.realpath(tmp_path_factory.mktemp("never")))
    home = top / "people" / "ann"
    for name in (*never.SECRET_NAMES, *never.SECRET_PATHS, *never.TAMIS_PATHS):
        (home / name).mkdir(parents=True)
        (home / name / "inner").mkdir()
    support.tool_folder(top, "print(1)")
    (top / "env").mkdir()
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(home / "agent.sock"))
        patch.setenv("HOME", str(home))
        patch.setenv("SSH_AUTH_SOCK", str(home / "agent.sock"))
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TAMIS_STATE_DIR", "TAMIS_CACHE_DIR"):
            patch.delenv(name, raising=False)
        runner.probe.probe()

        async def capture(plan: Callable[[], Plan], *, opened: dict[str, int], **_: Any) -> None:
            raise Captured(plan(), opened)

        patch.setattr(engine, "execute", capture)
        patch.setattr(runner.grants, "closed_to", lambda *_: None)
        yield home


def spellings(path: str, links: Path) -> list[str]:
    """One place by several names: as it is, by a link, with a trailing slash, with parts that say nothing."""
    link = links / f"link{len(os.listdir(links))}"
    link.symlink_to(path)
    parent, name = os.path.split(path.rstrip("/") or "/")
    return [path, str(link), f"{path}/", f"{parent}/./{name}", f"{path}/inner/..", f"/{path}"]


def closed_places(home: Path) -> st.SearchStrategy[str]:
    places = [*SYSTEM, *(f"{home}/{name}".rstrip("/") for name in IN_HOME)]
    places += [f"{home}/{name}/inner" for name in (*never.SECRET_NAMES, *never.SECRET_PATHS, *never.TAMIS_PATHS)]
    places += [os.path.normpath(f"{home}/{name}") for name in HOLDING]
    return st.sampled_from(places)


def by_mount(path: str, tool: str) -> RunRequest:
    return support.request(tool, read=(Mount(path, "/shown"),))


def by_writing(path: str, tool: str) -> RunRequest:
    return support.request(tool, write=(Mount(path, "/shown"),))


def by_show(path: str, tool: str) -> RunRequest:
    """`sandbox.runtimes.X.show` as the server turns it into a program, without the settings' own check."""
    program = Program(("/bin/sh", "/tool/tool.py"), ((os.path.realpath(path), path),))
    return support.request(tool, language="nodejs", program=program)


def by_program(path: str, tool: str) -> RunRequest:
    return support.request(tool, program=Program(("/bin/true",), ((path, "/shown"),)))


def by_python(path: str, tool: str) -> RunRequest:
    """A virtual environment whose base is the place."""
    venv = Path(tool).parent / "venv"
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    (venv / "pyvenv.cfg").write_text(f"home = {path}/bin\n", "utf-8", "surrogateescape")
    if not (venv / "bin" / "python3.11").exists():
        (venv / "bin" / "python3.11").write_bytes(Path("/bin/true").read_bytes())
        (venv / "bin" / "python3.11").chmod(0o755)
    return support.request(tool, interpreters=Interpreters(python=str(venv / "bin" / "python3.11")))


def by_node(path: str, tool: str) -> RunRequest:
    return support.request(tool, "tool.py", "nodejs", interpreters=Interpreters(nodejs=f"{path}/node"))


def by_uv(path: str, tool: str) -> RunRequest:
    return support.request(tool, interpreters=Interpreters(uv=f"{path}/uv", python_runner="uv"))


def by_folder(path: str, tool: str) -> RunRequest:
    return support.request(path)


def by_environment(path: str, tool: str) -> RunRequest:
    return support.request(tool, environment=Environment("python", path))


ENTRIES = [by_mount, by_writing, by_show, by_program, by_python, by_node, by_uv, by_folder, by_environment]


@pytest.mark.parametrize("entry", ENTRIES)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nothing_of_the_never_list_is_ever_mounted(entry: Any, home: Path, data: st.DataObject) -> None:
    place = data.draw(closed_places(home))
    links = home.parents[1] / "links"
    links.mkdir(exist_ok=True)
    path = data.draw(st.sampled_from(spellings(place, links)))
    tool = str(home.parents[1] / "tool")
    if entry is by_environment and any(never.inside(place, f"{home}/{name}") for name in never.TAMIS_PATHS):
        return  # environments are kept there: the daemon itself shows its own
    try:
        asyncio.run(runner.run(entry(path, tool)))
    except Captured as planned:
        real = os.path.realpath(place)
        forbidden = {real} | {
            f"{home}/{name}" for name in (*never.SECRET_NAMES, *never.SECRET_PATHS, *never.TAMIS_PATHS)
        }
        for shown in planned.paths:
            wrong = [one for one in forbidden if never.inside(shown, one) or never.inside(one, shown)]
            assert not wrong, (path, shown, wrong)
            assert not never.inside(str(home), shown)


@pytest.mark.parametrize("entry", [by_mount, by_show, by_program, by_folder, by_environment])
def test_each_entry_mounts_a_place_that_is_not_closed(entry: Any, home: Path) -> None:
    # or the test above would show nothing
    free = support.tool_folder(home.parents[1] / "free", "print(1)")
    with pytest.raises(Captured) as planned:
        asyncio.run(runner.run(entry(free, str(home.parents[1] / "tool"))))
    assert free in planned.value.paths


# Each caller asks: a test for each that fails when it does not


@pytest.fixture
def secret(home: Path) -> str:
    return f"{home}/.ssh"


def refused(wanted: RunRequest) -> str:
    outcome = asyncio.run(runner.run(wanted))
    assert outcome.kind in ("refused", "unavailable"), outcome
    return outcome.message


def test_a_read_grant_asks(secret: str, home: Path) -> None:
    assert "never shown" in refused(by_mount(secret, str(home.parents[1] / "tool")))


def test_a_write_grant_asks(secret: str, home: Path) -> None:
    assert "never shown" in refused(by_writing(secret, str(home.parents[1] / "tool")))


def test_a_programs_binds_are_asked_for(secret: str, home: Path) -> None:
    assert "never shown" in refused(by_program(secret, str(home.parents[1] / "tool")))


def test_a_tools_folder_is_asked_for(secret: str, home: Path) -> None:
    (Path(secret) / "tool.py").write_text("")
    assert "never shown" in refused(by_folder(secret, ""))
    (home / "tool.py").write_text("")
    assert "home folder" in refused(by_folder(str(home), ""))


def test_an_environment_is_asked_for(secret: str, home: Path) -> None:
    assert "never shown" in refused(by_environment(secret, str(home.parents[1] / "tool")))


@pytest.mark.parametrize("name", ["node", "bun"])
def test_an_interpreter_is_asked_for(secret: str, name: str) -> None:
    program = Path(secret) / name
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    language: Any = "nodejs" if name == "node" else "bun"
    found: Any = find_interpreter(language, Interpreters(nodejs=str(program), bun=str(program)))
    assert "cannot be shown" in found.reason


def test_a_local_index_is_asked_for(secret: str) -> None:
    with pytest.raises(DependencyFault, match="cannot be shown"):
        local_folder(parse_index(f"file://{secret}", "here"))


def test_what_is_the_daemons_own_may_be_shown_by_the_daemon_alone(home: Path) -> None:
    own = f"{home}/.cache/tamis/inner"
    assert never.shown_fault(own)
    assert not never.shown_fault(own, own=True)
    with pytest.raises(PathRefused):
        never.require_tool_folder(own)
    with pytest.raises(Captured) as planned:
        asyncio.run(runner.run(by_environment(own, str(home.parents[1] / "tool"))))
    assert own in planned.value.paths


# Answers about names are kept between calls: what somebody changes meanwhile counts all the same


def test_a_folder_is_judged_by_what_stands_in_it_now(tmp_path: Path) -> None:
    folder = Path(os.path.realpath(tmp_path)) / "data"
    folder.mkdir()
    assert never.shown_fault(str(folder)) == ""
    (folder / ".ssh").mkdir()
    assert ".ssh" in never.shown_fault(str(folder))
    (folder / ".ssh").rmdir()
    assert never.shown_fault(str(folder)) == ""


def test_a_secret_of_more_than_one_part_is_seen_when_it_comes(tmp_path: Path) -> None:
    folder = Path(os.path.realpath(tmp_path)) / ".config"
    folder.mkdir()
    assert never.shown_fault(str(folder)) == ""
    (folder / "gh").mkdir()
    assert "gh" in never.shown_fault(str(folder))


def test_a_file_that_became_a_folder_is_judged_as_one(tmp_path: Path) -> None:
    place = Path(os.path.realpath(tmp_path)) / "data"
    place.touch()
    assert never.shown_fault(str(place)) == ""
    place.unlink()
    (place / ".gnupg").mkdir(parents=True)
    assert ".gnupg" in never.shown_fault(str(place))


def test_a_link_is_judged_by_where_it_leads_now(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "free").mkdir()
    (top / ".aws").mkdir()
    link = top / "link"
    link.symlink_to(top / "free")
    assert never.shown_fault(str(link)) == ""
    link.unlink()
    link.symlink_to(top / ".aws")
    assert ".aws" in never.shown_fault(str(link))


def test_tamis_own_folder_is_seen_when_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = Path(os.path.realpath(tmp_path))
    monkeypatch.setenv("TAMIS_STATE_DIR", str(top / "data" / "state"))
    (top / "data").mkdir()
    assert never.shown_fault(str(top / "data")) == ""
    (top / "data" / "state").mkdir()
    assert "Tamis keeps" in never.shown_fault(str(top / "data"))


def test_a_secret_in_a_services_home_is_seen_when_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "data" / "service").mkdir(parents=True)
    monkeypatch.setattr(never, "_homes", lambda _: ((), (str(top / "data" / "service"),)))
    assert never.shown_fault(str(top / "data")) == ""
    (top / "data" / "service" / ".pgpass").touch()
    assert ".pgpass" in never.shown_fault(str(top / "data"))


def test_an_agents_socket_is_closed_from_when_the_environment_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.path.realpath(tmp_path)) / "data"
    folder.mkdir()
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert never.shown_fault(str(folder)) == ""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(folder / "agent"))
    assert "other programs" in never.shown_fault(str(folder))


def test_a_tools_folder_is_judged_where_it_stands_when_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = Path(os.path.realpath(tmp_path))
    folder = support.tool_folder(top, "print('ran')")
    (top / ".ssh").mkdir()
    real = runner.resolve_script

    def moved(*args: str) -> object:
        found = real(*args)
        os.rename(folder, top / ".ssh" / "tool")  # after the walk, before the question
        return found

    monkeypatch.setattr(runner, "resolve_script", moved)
    assert ".ssh" in refused(support.request(folder))
