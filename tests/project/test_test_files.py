"""How the tests stand: no test file imports another, the table of ``tests/README.md`` is true, what the quick runs of ``./test`` take."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests import fast

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"


@pytest.fixture(scope="module")
def folders() -> ModuleType:
    spec = importlib.util.spec_from_file_location("test_folders", ROOT / "tools" / "test_folders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows() -> dict[str, str]:
    """The table of folders in ``tests/README.md``: folder to the rooms that it tests."""
    text = (TESTS / "README.md").read_text("utf-8")
    table = text.partition("| folder | tests of |")[2].partition("\n\n")[0]
    return dict(re.findall(r"(?m)^\| `(\w+)` \| ([^|]+) \|", table))


def test_the_table_names_every_folder_of_tests() -> None:
    there = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(rows()) == there


def test_the_table_names_the_rooms_that_a_folder_tests(folders: ModuleType) -> None:
    of_folder: dict[str, set[str]] = {name: set() for name in rows()}
    for room, tests in folders.ROOMS.items():
        for test in tests:
            if test.count("/") == 1:
                of_folder[test.removeprefix("tests/")].add(f"`{room}`")
    assert {name: ", ".join(sorted(rooms)) or "the project" for name, rooms in of_folder.items()} == rows()


IMPORTS_A_TEST_FILE = re.compile(
    r"(?m)^\s*(?:from tests[\w.]*\.test_\w+ import|from tests[\w.]* import [^\n]*\btest_\w+|import tests[\w.]*\.test_)"
)


def test_no_test_file_is_imported() -> None:
    """What several files need stands in a helper module, so that a file of tests can be read, moved and run alone."""
    importers = [path for path in TESTS.rglob("*.py") if IMPORTS_A_TEST_FILE.search(path.read_text("utf-8"))]
    assert [path.relative_to(ROOT).as_posix() for path in importers] == []


def test_every_room_and_its_tests_are_there(folders: ModuleType) -> None:
    for room, tests in folders.ROOMS.items():
        assert (ROOT / room).is_dir(), room
        assert all((ROOT / test).exists() for test in tests), room


def test_every_room_of_code_has_tests(folders: ModuleType) -> None:
    ours = ("protocols", "sandbox", "environments", "client", "examples", "bench")
    rooms = [
        *(ROOT / room for room in ours),
        *(path for path in (ROOT / "server").iterdir() if path.name != "__pycache__"),
    ]
    assert [
        path.name for path in rooms if path.is_dir() and path.relative_to(ROOT).as_posix() not in folders.ROOMS
    ] == []


@pytest.mark.parametrize(
    ("paths", "tests"),
    [
        (["protocols/tam/protocol.py"], ["tests/project/test_rooms.py", "tests/protocols"]),
        (["server/lsp/features/hover.py"], ["tests/lsp", "tests/project/test_rooms.py"]),
        (["tests/protocols/test_tam.py"], ["tests/protocols/test_tam.py"]),
        (["tests/protocols/test_tam.py", "tests/protocols/streams.py"], ["tests/protocols"]),
        (["tests/protocols/test_that_was_deleted.py"], []),
        (["tests/markers/vcp.txt"], ["tests/lsp/test_markers.py", "tests/lsp/test_markers_wire.py"]),
        (["docs/trust.md", "protocols/tam/protocol.py"], ["tests/project", "tests/protocols"]),
        (["examples/tools/x.tool.json"], ["tests/examples"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_changed_file_asks_for_the_tests_of_its_room(folders: ModuleType, paths: list[str], tests: list[str]) -> None:
    assert folders.tests_of_all(paths) == tests


def test_a_changed_helper_of_all_asks_for_the_files_that_import_it(folders: ModuleType) -> None:
    found = folders.tests_of("tests/growth.py")
    assert "tests/protocols/test_reader_linear.py" in found
    assert "tests/protocols/test_tam.py" not in found


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("protocols", ("tests/protocols",)),
        ("server/lsp", ("tests/lsp",)),
        ("lsp", ("tests/lsp",)),
        ("trust", ("tests/trust",)),
    ],
)
def test_a_room_is_named_by_its_folder_or_that_of_its_tests(
    folders: ModuleType, name: str, tests: tuple[str, ...]
) -> None:
    assert folders.of_room(name) == tests


def test_what_is_no_room_is_refused_with_the_rooms(folders: ModuleType) -> None:
    with pytest.raises(SystemExit, match="nowhere is no room: protocols, sandbox"):
        folders.of_room("nowhere")


@pytest.mark.parametrize(
    ("name", "pure"),
    [
        ("protocols/test_tam.py", True),
        ("project/test_install.py", False),  # imports subprocess
        ("rpc/test_params.py", False),  # the folder's conftest imports the client
        ("editors/test_neovim.py", False),
    ],
)
def test_a_file_is_pure_when_nothing_that_it_imports_starts_a_process(name: str, pure: bool) -> None:
    assert fast.is_pure(TESTS / name) is pure


SAMPLE = """
import pytest

@pytest.mark.slow
def test_marked(): pass

def test_time_grows(): pass

def test_pure(): pass

def test_starts():
    import subprocess
    subprocess.run(["true"])
"""


def test_a_quick_run_leaves_out_what_is_slow_and_fails_what_starts_a_process(tmp_path: Path) -> None:
    file = tmp_path / "test_sample.py"
    file.write_text(SAMPLE, "utf-8")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.fast",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        str(tmp_path),
        str(file),
    ]
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
    assert "1 failed, 1 passed, 2 deselected" in done.stdout
    assert "no part of a quick look (subprocess.Popen): mark it `slow`" in done.stdout
