"""Which tests belong to which room, and what differs: what `./test --fast ROOM` and `./test --changed` ask for.

    tools/test_folders.py room NAME…      the test folders of rooms (or of test folders by their own name), one a line
    tools/test_folders.py changed         the test files and folders of what differs from the branch `main`
                                          (on `main` itself: from the last commit), one a line
    tools/test_folders.py code            the modules that differ, which tools/typecheck may be given

`tests/README.md` shows the same table; `tests/project/test_test_files.py` holds both to what is there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ROOMS: dict[str, tuple[str, ...]] = {
    "protocols": ("tests/protocols",),
    "sandbox": ("tests/sandbox",),
    "environments": ("tests/environments",),
    "server/runtime": ("tests/runtime", "tests/trust"),
    "server/analysis": ("tests/analysis", "tests/lsp"),
    "server/lsp": ("tests/lsp",),
    "server/rpc": ("tests/rpc",),
    "server/mcp": ("tests/mcp",),
    "server/cli": ("tests/cli",),
    "server/wire": ("tests/wire",),
    "server/logs": ("tests/logs", "tests/cli/test_parse_logs.py"),
    "client": ("tests/client",),
    "editors": ("tests/editors",),
    "examples": ("tests/examples",),
    "bench": ("tests/project/test_bench.py",),
    "tests/markers": ("tests/lsp/test_markers.py", "tests/lsp/test_markers_wire.py"),
}
"""From a room (a folder at the root, or below `server`) to its tests. What is in no room is the project's own: `tests/project`."""

TYPED = ("package/", "protocols/", "sandbox/", "environments/", "server/", "client/")
"""What the strict type check covers."""

ALWAYS = "tests/project/test_rooms.py"
"""What holds for every change of a room's code: who may import whom."""


def tests_of(path: str) -> tuple[str, ...]:
    """The tests that a change of one file asks for: files or folders."""
    parts = path.split("/")
    if parts[0] == "tests" and parts[1] != "markers":
        if parts[-1].startswith("test_"):
            return (path,) if (ROOT / path).is_file() else ()
        # a helper: the folder that it stands in, or who imports it
        if len(parts) > 2:
            return (f"tests/{parts[1]}",)
        return _importers(Path(path).stem)
    room = max((room for room in ROOMS if path.startswith(room + "/")), key=len, default=None)
    if room is None:
        return ("tests/project",)
    return (*ROOMS[room], ALWAYS) if path.endswith(".py") else ROOMS[room]


def _importers(helper: str) -> tuple[str, ...]:
    found = (ROOT / "tests").rglob("test_*.py")
    return tuple(
        sorted(file.relative_to(ROOT).as_posix() for file in found if f"tests.{helper} " in file.read_text("utf-8"))
    )


def tests_of_all(paths: list[str]) -> list[str]:
    """The tests of several files, without those that stand in a folder that is named too."""
    wanted = {test for path in paths for test in tests_of(path)}
    return sorted(test for test in wanted if not any(test.startswith(other + "/") for other in wanted))


def changed() -> list[str]:
    """Files that differ from `main` where the branches parted, or from the last commit on `main` itself; new files too."""
    branch = _git("branch", "--show-current")
    mains = _git("branch", "--list", "main", "--format=%(refname:short)")
    base = _git("merge-base", "HEAD", "main")[0] if mains and branch != mains else "HEAD"
    return [*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")]


def _git(*words: str) -> list[str]:
    done = subprocess.run(
        ["git", "-c", "core.quotePath=off", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def of_room(name: str) -> tuple[str, ...]:
    """The tests of a room, by its name (`protocols`, `server/lsp`, `lsp`) or that of its test folder (`trust`)."""
    name = name.strip("/")
    for room in (name, f"server/{name}"):
        if room in ROOMS:
            return ROOMS[room]
    if (ROOT / "tests" / name).is_dir():
        return (f"tests/{name}",)
    raise SystemExit(f"{name} is no room: {', '.join(ROOMS)}")


def main(words: list[str]) -> None:
    """Prints what the script's first lines say."""
    match words:
        case ["changed"]:
            lines = tests_of_all(changed())
        case ["code"]:
            lines = [
                path
                for path in changed()
                if path.startswith(TYPED) and path.endswith(".py") and (ROOT / path).is_file()
            ]
        case ["room", *names] if names:
            lines = sorted({test for name in names for test in of_room(name)})
        case _:
            raise SystemExit(__doc__)
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main(sys.argv[1:])
