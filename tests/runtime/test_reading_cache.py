"""What reading manifests gave is kept for the next process (R7), and nobody else's word counts there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tamis.protocols.manifest.reading import Manifest
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools import loader, reading_cache, sources
from tamis.server.runtime.tools.reading import why_unavailable
from tamis.server.runtime.tools.registry import Registry, fingerprint
from tamis.server.runtime.tools.sources import Found, find
from tests.sample_tools import make_tool

SETTINGS = Settings(tools=("tools",))
FULL = {
    "output": {"type": "object"},
    "aliases": ["other"],
    "tags": ["a"],
    "agentCallable": True,
    "protocolConfig": {"vcpCommand": "Do"},
    "env": {"MODE": "x"},
    "dependencies": {"core:b": "^1"},
    "execution": {"mode": "async", "timeoutMs": 5, "limits": {"processes": 3}, "files": ["*.py"]},
    "securityContext": {"fileAccess": {"allowRead": ["data/*"]}, "network": {"allowHosts": ["a.example"]}},
    "examples": [{"input": {"text": "ä"}, "description": "d", "expectedOutput": None}, {"input": {}}],
}
HANDLERS = (
    {"type": "service-method", "serviceName": "s", "methodName": "m"},
    {"type": "mcp", "server": "s", "tool": "t"},
    {"type": "own", "deep": {"a": [1, 2.0, None]}},
)


class World:
    """A root with some tools, and what each reading of it opened."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.opened: list[str] = []

    def read(self, settings: Settings = SETTINGS, before: Found | None = None) -> Found:
        """As a process does that begins (or, with what was found ``before``, goes on)."""
        self.opened.clear()
        if before is None:
            return find(self.root, settings)
        return find(self.root, settings, before.known, before.folders)

    def kept(self) -> Path:
        """The cache's file."""
        return next(path for path in (Path(os.environ["TAMIS_CACHE_DIR"]) / "manifests").iterdir())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path / "root")
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "WORTH", 2)
    monkeypatch.setattr(sources, "STEP_NS", 0)
    original = sources.read_manifest_file
    monkeypatch.setattr(
        sources,
        "read_manifest_file",
        lambda path: (made.opened.append(os.path.basename(os.path.dirname(path))), original(path))[1],
    )
    tools = made.root / "tools"
    make_tool(tools, "core:a", **FULL)
    for index, handler in enumerate(HANDLERS):
        make_tool(tools, f"core:h{index}", handler=handler)
    make_tool(tools, "core:b")
    make_tool(tools, "core:broken", version=7)
    settle()
    return made


def settle() -> None:
    """Lets the clock of files go on, which counts in steps of some milliseconds."""
    time.sleep(0.03)


def told(found: Found) -> list[object]:
    return [*((tool.path, fingerprint(tool), tool.manifest) for tool in found.tools), *found.errors]


def test_the_next_process_opens_no_manifest_and_knows_the_same(world: World) -> None:
    """R7: every field, every handler, and the error of a file that is broken."""
    settings = Settings(tools=("tools",), handlers=("own",))
    first = world.read(settings)
    assert len(world.opened) == 6
    second = world.read(settings)
    assert world.opened == []
    assert told(second) == told(first)
    assert len(first.tools) == 5 and len(first.errors) == 1


def test_each_field_of_a_manifest_is_kept() -> None:
    """R7: schemas are taken from ``raw``."""
    fields = {field.name for field in msgspec.structs.fields(Manifest)}
    parts = {*reading_cache.KeptBrief.__struct_fields__, *reading_cache._Rest.__struct_fields__}
    assert fields == parts - {"vcp_command", "rest"} | {"parameters", "output"}


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that are listed."""
    folders: list[str] = []
    original = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (folders.append(os.path.basename(path)), original(path))[1])
    return folders


def test_the_next_process_lists_no_folder_that_did_not_change(world: World, listed: list[str]) -> None:
    """R7: but for the first few, before it is worth looking for what is kept."""
    first = world.read()
    assert {"core_a", "core_b"} <= set(listed)
    listed.clear()
    assert told(world.read()) == told(first)
    assert not {"core_a", "core_b"} & set(listed)


def test_what_no_list_shows_is_not_decoded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: schemas and examples are read when somebody asks for them."""
    world.read()
    made: list[str] = []
    original = reading_cache.KeptBrief.whole
    monkeypatch.setattr(
        reading_cache.KeptBrief, "whole", lambda brief: (made.append(brief.tool_id), original(brief))[1]
    )
    found = world.read()
    registry = Registry(found.tools, errors=found.errors)
    tool = registry.get("other")
    assert tool is not None and (tool.kind, tool.callable, tool.names) == ("tool", True, ("core:a", "other", "Do"))
    assert made == []
    assert tool.manifest is tool.manifest and made == ["core:a"]


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "a manifest comes": lambda tools, _: make_tool(tools, "core:new"),
    "a second manifest in a folder": lambda tools, _: (tools / "core_b/y.tool.json").write_bytes(
        (tools / "core_a/x.tool.json").read_bytes().replace(b"core:a", b"core:y").replace(b"other", b"why")
    ),
    "a manifest goes": lambda tools, _: (tools / "core_b/x.tool.json").unlink(),
    "a folder goes": lambda tools, away: (tools / "core_b").rename(away / "gone"),
    "a manifest has another name": lambda tools, _: (tools / "core_b/x.tool.json").rename(tools / "core_b/z.tool.json"),
    "a manifest is none now": lambda tools, _: (tools / "core_b/x.tool.json").rename(tools / "core_b/x.json"),
    "a manifest became a link": lambda tools, away: (
        (tools / "core_b/x.tool.json").rename(away / "real"),
        (tools / "core_b/x.tool.json").symlink_to(away / "real"),
    ),
    "a folder became a link": lambda tools, away: (
        (tools / "core_b").rename(away / "real"),
        (tools / "core_b").symlink_to(away / "real"),
    ),
    "a manifest became a folder": lambda tools, _: (
        (tools / "core_b/x.tool.json").unlink(),
        (tools / "core_b/x.tool.json").mkdir(),
    ),
    "an ignore file comes": lambda tools, _: (tools / ".gitignore").write_text("core_b\n"),
    "an ignore file comes below": lambda tools, _: (tools / "core_b/.ignore").write_text("*.json\n"),
    "an ignore file comes above": lambda tools, _: (
        (tools.parent / ".git").mkdir(),
        (tools.parent / ".gitignore").write_text("x.tool.json\n"),
    ),
    "the time of a folder is set back": lambda tools, _: (
        make_tool(tools / "core_b", "core:within"),
        os.utime(tools / "core_b", ns=(0, 0)),
    ),
    "two folders changed places": lambda tools, away: (
        (tools / "core_a").rename(away / "a"),
        (tools / "core_b").rename(tools / "core_a"),
        (away / "a").rename(tools / "core_b"),
    ),
}


@pytest.mark.parametrize("goes_on", [False, True], ids=["next process", "running daemon"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_comes_or_goes_is_seen_in_folders_that_are_known(
    world: World, change: str, goes_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7: what is kept gives what reading everything gives."""
    first = world.read()
    away = tmp_path / "away"
    away.mkdir()
    CHANGES[change](world.root / "tools", away)
    settle()
    second = world.read(before=first if goes_on else None)
    third = world.read(before=second if goes_on else None)
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(sources, "WORTH", 10**6)
    assert told(world.read()) == told(second) == told(third)


def test_a_running_daemon_lists_no_folder_that_did_not_change(world: World, listed: list[str]) -> None:
    """R7: nor what it began with from the cache; a folder that changed just now is listed again."""
    first = world.read(before=world.read())
    listed.clear()
    make_tool(world.root / "tools", "core:new")
    settle()
    second = world.read(before=first)
    assert sorted(set(listed)) == ["core_new", "tools"]
    assert {tool.tool_id for tool in second.tools} - {tool.tool_id for tool in first.tools} == {"core:new"}


def test_a_running_daemon_lists_again_what_changed_within_a_step_of_the_clock(
    world: World, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "STEP_NS", 10**12)
    first = world.read()
    listed.clear()
    world.read(before=first)
    assert {"core_a", "core_b"} <= set(listed)


def test_an_ignore_file_is_read_each_time(world: World) -> None:
    """R7: what it says can change without a sign of its folder."""
    ignore = world.root / "tools/.gitignore"
    ignore.write_text("core_a\n")
    settle()
    world.read()
    ignore.write_text("core_b\n")
    ids = {tool.tool_id for tool in world.read().tools}
    assert "core:a" in ids and "core:b" not in ids


def test_a_folder_that_cannot_be_read_any_more_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: its rights are part of its stamp."""
    world.read()
    folder = world.root / "tools/core_b"
    folder.chmod(0o700)
    settle()
    original = os.scandir

    def refused(path: str) -> object:
        if os.path.basename(path) == "core_b":
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert [error.path for error in world.read().errors if "cannot be listed" in error.message] == [str(folder)]


def test_a_folder_on_a_file_system_of_coarse_clocks_is_listed_each_time(
    world: World, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7: on FAT the time of a folder may stay while files come."""
    monkeypatch.setattr(loader, "COARSE_NS", 1)
    world.read()
    listed.clear()
    world.read()
    assert {"core_a", "core_b"} <= set(listed)


def test_the_bounds_of_a_walk_hold_for_folders_that_are_known(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: the walk ends at the same place."""
    world.read()
    for name, bounds in (("MAX_FILES", range(1, 7)), ("MAX_ENTRIES", range(1, 22))):
        for bound in bounds:
            with monkeypatch.context() as patch:
                patch.setattr(loader, name, bound)
                kept = told(world.read())
                patch.setattr(sources, "WORTH", 10**6)
                assert told(world.read()) == kept


def test_the_cache_is_the_users_alone(world: World) -> None:
    """R7."""
    world.read()
    assert world.kept().stat().st_mode & 0o777 == 0o600
    assert world.kept().parent.stat().st_mode & 0o777 == 0o700


def rewritten(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o600)


SPOILED: dict[str, Callable[[Path], object]] = {
    "cut off": lambda path: rewritten(path, path.read_bytes()[:-9]),
    "a bit is other": lambda path: rewritten(path, path.read_bytes()[:-9] + b"x" + path.read_bytes()[-8:]),
    "empty": lambda path: rewritten(path, b""),
    "of another version": lambda path: rewritten(path, b"tamis" + bytes(32) + path.read_bytes()[37:]),
    "readable by others": lambda path: path.chmod(0o644),
    "writable by the group": lambda path: path.chmod(0o620),
    "a link": lambda path: (path.rename(path.parent.parent / "x"), path.symlink_to(path.parent.parent / "x")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "in a folder that others may enter": lambda path: path.parent.chmod(0o755),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path, 0o600)),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_cache_that_is_not_as_it_was_written_is_as_none(world: World, how: str) -> None:
    """R7: what is read then is what stands in the files."""
    first = world.read()
    SPOILED[how](world.kept())
    assert told(world.read()) == told(first)
    assert len(world.opened) == 6


def test_another_users_cache_is_as_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7."""
    world.read()
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(world.root).st_uid + 1)
    world.read()
    assert len(world.opened) == 6


def test_a_folder_brings_no_cache_along(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: a cache folder inside a folder that is read, whatever led there, is neither read nor written."""
    world.read()
    inside = world.root / "own"
    (Path(os.environ["TAMIS_CACHE_DIR"])).rename(inside)
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(inside))
    before = world.kept().stat()
    world.read()
    assert len(world.opened) == 6
    assert world.kept().stat() == before
    (world.root.parent / "link").symlink_to(inside)
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(world.root.parent / "link"))
    world.read()
    assert len(world.opened) == 6


def test_a_file_that_was_changed_is_read_also_when_its_time_was_set_back(world: World) -> None:
    """R7: same size, same inode, same time of change; nobody can set the time of its status."""
    world.read()
    path = world.root / "tools/core_a/x.tool.json"
    before = path.stat()
    with open(path, "r+b") as stream:
        data = stream.read()
        stream.seek(0)
        stream.write(data.replace(b"for the tests", b"for other use"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    found = world.read()
    assert world.opened == ["core_a"]
    assert any("for other use" in tool.manifest.description for tool in found.tools)


def test_what_changed_shortly_before_it_was_read_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: a second change within one step of the file system's clock leaves no sign."""
    monkeypatch.setattr(sources, "STEP_NS", 3600 * 10**9)
    world.read()
    world.read()
    assert len(world.opened) == 6


def test_a_file_from_the_future_is_not_kept(world: World) -> None:
    """R7: its clock is not ours."""
    path = world.root / "tools/core_a/x.tool.json"
    ahead = time.time_ns() + 3600 * 10**9
    os.utime(path, ns=(ahead, ahead))
    world.read()
    world.read()
    assert world.opened == ["core_a"]


def test_what_was_read_in_another_way_does_not_count(world: World) -> None:
    """R7: `strictJson` and the handlers of packages decide what a file gives."""
    world.read()
    world.read(Settings(tools=("tools",), strict_json=True))
    assert len(world.opened) == 6


def test_a_script_that_went_is_noticed(world: World) -> None:
    """R7: whether a tool can be called is asked of the disk each time."""
    world.read()
    (world.root / "tools/core_b/tool.py").unlink()
    found = {tool.tool_id: tool for tool in world.read().tools}
    assert world.opened == []
    assert not found["core:b"].available


def test_a_running_daemon_reads_what_changed_alone(world: World) -> None:
    """R7: also what it began with from the cache; what may change without a sign is compared by its text."""
    world.read()
    first = world.read()
    path = world.root / "tools/core_b/x.tool.json"
    path.write_text(path.read_text().replace("Test tool", "New tool"))
    settle()
    second = world.read(before=first)
    assert world.opened == ["core_b"]
    unchanged = {tool.tool_id: tool for tool in first.tools if tool.tool_id != "core:b"}
    assert all(tool is unchanged[tool.tool_id] for tool in second.tools if tool.tool_id in unchanged)


def test_a_manifest_that_the_form_cannot_hold_is_read_each_time(world: World) -> None:
    """R7: a number beyond 64 bits; half a character is an error, and kept as one."""
    for name, value in (("big", 10**30), ("half", "\ud800")):
        folder = make_tool(world.root / "tools", f"core:{name}")
        path = folder / "x.tool.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "x-own": value}))
    settle()
    first = world.read()
    second = world.read()
    assert world.opened == ["core_big"]
    assert [tool.manifest.raw for tool in second.tools] == [tool.manifest.raw for tool in first.tools]


def test_few_changes_are_read_without_writing_all_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7."""
    monkeypatch.setattr(sources, "WORTH", 6)
    for index in range(60):
        make_tool(world.root / "tools", f"more:m{index}")
    settle()
    world.read()
    before = world.kept().stat().st_mtime_ns
    make_tool(world.root / "tools", "more:m0", tags=["new"])
    settle()
    world.read()
    assert world.opened == ["more_m0"]
    assert world.kept().stat().st_mtime_ns == before


def test_the_caches_of_roots_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: the oldest makes room, and what a writer left that was killed goes."""
    monkeypatch.setattr(reading_cache, "MAX_CACHES", 2)
    world.read()
    folder = world.kept().parent
    for index, name in enumerate(("first", "second", ".left")):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (index + 1, index + 1))
    for file in folder.iterdir():
        if len(file.name) == 32:
            file.unlink()
    world.read()
    assert len(list(folder.iterdir())) == 2
    assert not (folder / ".left").exists() and not (folder / "first").exists()


def test_where_nothing_can_be_kept_the_manifests_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7."""
    (world.root.parent / "file").write_text("")
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(world.root.parent / "file" / "cache"))
    assert len(world.read().tools) == 4
    assert len(world.read().tools) == 4


def test_a_list_looks_for_no_garbage_in_what_was_read(
    tmp_path: Path,
) -> None:  # R7: a quarter of the time of 10,000 tools
    for number in range(300):
        make_tool(tmp_path, f"many:tool_{number}")
    program = (
        "import gc, sys; from tamis.server.cli.main import main; gc.disable(); gc.freeze()\n"
        f"assert main(['list', '--root', {str(tmp_path)!r}]) == 0\n"
        "print(len(gc.get_objects()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 300
    assert int(done.stderr.splitlines()[-1]) < 300


@pytest.mark.parametrize(
    ("rights", "reason"), [(0o644, ""), (0o600, ""), (0o200, "cannot be read"), (0o000, "cannot be read")]
)
def test_whether_a_script_can_be_read_is_told_of_every_rights(
    rights: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # R7: what all may read is not asked for
    make_tool(tmp_path, "test:x")
    (tool,) = find(tmp_path, Settings()).tools
    script = Path(tool.folder) / tool.manifest.handler.script_path  # type: ignore[union-attr]
    script.chmod(rights)
    if os.geteuid() == 0:  # root may read everything
        monkeypatch.setattr(os, "access", lambda *_: rights & 0o400 != 0)
    assert reason in why_unavailable(tool.manifest, tool.folder)
    assert bool(reason) == bool(why_unavailable(tool.manifest, tool.folder))
