"""``--fast``: the tests of a quick look, chosen by what a file imports; the plugin that ``conftest.py`` loads for that option.

A test file is pure when neither it, nor a helper that it imports, nor its folder's ``conftest.py`` imports at its top a module that
starts a process, listens or waits. Of the pure files, tests marked ``slow``, the seeded volumes (fixture ``is_long``) and the
measurements of growth are left out. A test that starts a process or sleeps all the same fails and says what to do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.spent import events

ROOT = Path(__file__).resolve().parent.parent
STARTS_OR_WAITS = re.compile(
    r"(?m)^(?:import|from) (?:subprocess|asyncio|socket|socketserver|http\.server|multiprocessing|pty"
    r"|tamis\.client|tamis\.sandbox\.runner|tamis\.server\.wire\.(?:stdio|outbox|process)|tamis\.server\.rpc\.session|tamis\.server\.logs\.workers)\b"
)
_HELPERS = re.compile(r"(?m)^(?:from (tests[\w.]*) import (\([^)]*\)|[^\n]*)|import (tests[\w.]*))")
_GROWTH = re.compile(r"linear|grows|growth")
MARKERS = ROOT / "tests" / "lsp" / "test_markers.py"
"""Its tests of the analyses are pure; those over the wire are not."""


@functools.cache
def _read(path: Path) -> tuple[bool, tuple[Path, ...]]:
    text = path.read_text("utf-8")
    helpers: list[Path] = []
    for package, names, module in _HELPERS.findall(text):
        wanted = [package or module, *(f"{package}.{name}" for name in re.findall(r"\w+", names))]
        for name in wanted:
            place = ROOT.joinpath(*name.split("."))
            helpers += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return STARTS_OR_WAITS.search(text) is not None, tuple(helpers)


def is_pure(path: Path) -> bool:
    """Whether a test file imports, by itself or through its helpers, nothing that starts a process, listens or waits."""
    seen: set[Path] = set()
    waiting = [path, *(folder / "conftest.py" for folder in path.parents if folder.is_relative_to(ROOT / "tests"))]
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file() or (file.parent == ROOT / "tests" and file.name == "conftest.py"):
            continue
        seen.add(file)
        starts, helpers = _read(file)
        if starts:
            return False
        waiting += helpers
    return True


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    # pytest asks about whatever else lies in a folder, too
    is_test = collection_path.suffix == ".py" and collection_path.is_file()
    return True if is_test and collection_path != MARKERS and not is_pure(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not _is_quick(item)]
    if left_out:
        chosen = [item for item in items if _is_quick(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen


def _is_quick(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    slow = item.get_closest_marker("slow") is not None or "is_long" in item.fixturenames
    return not slow and not _GROWTH.search(item.originalname)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    already = len(events())
    result = yield
    happened = events()[already:]
    assert not happened, (
        f"this test is no part of a quick look ({happened[0]}): "
        "mark it `slow`, so that ./test --fast leaves it out (tests/README.md)"
    )
    return result
