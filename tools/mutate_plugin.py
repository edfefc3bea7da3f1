"""The pytest plugin of `tools/mutate`: chooses the tests of a run, records what they reach, and keeps them from harm.

`tools/mutate` copies it into the environment of a run as `tamis_mutate`. `TAMIS_MUTATE` holds the settings as JSON: `record` names the file
for the record of the unchanged code and `module` its package, `pure` forbids processes and sockets, `inside` is the folder that may be written.
`chosen.json` in that folder holds the files to collect and, for a mutant, the tests to run in their order.
"""

# ruff: noqa: D103 (the hooks are described by pytest)
from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

HITS = Path(__file__).with_name("tamis_mutate.hits")
_reached: set[str] = set()
_is_pytest = False


def reached(place: str) -> None:
    """Called by the functions of the measured room. Another process than pytest's writes the place down."""
    if place not in _reached:
        _reached.add(place)
        if not _is_pytest:
            with HITS.open("a") as file:
                file.write(place + "\n")


STARTS = frozenset(
    {
        *(
            "subprocess.Popen",
            "os.fork",
            "os.forkpty",
            "os.posix_spawn",
            "os.exec",
            "os.system",
            "os.kill",
            "os.killpg",
        ),
        "socket.__new__",
    }
)
WRITES = frozenset(
    {
        *(
            "os.remove",
            "os.rmdir",
            "os.rename",
            "os.chmod",
            "os.chown",
            "os.mkdir",
            "os.symlink",
            "os.link",
            "os.truncate",
        ),
        "shutil.rmtree",
    }
)


class NotPure(BaseException):
    """Raised where a test starts or writes something; no `except Exception` hides it."""


def forbid(inside: str, allowed: tuple[str, ...] = ("/dev/",)) -> None:
    """From now on this process starts nothing, and writes only below a folder."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in STARTS:
            raise NotPure(event)
        is_write = event in WRITES or (
            event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        )
        if is_write and isinstance(args[0], str | bytes | os.PathLike):
            path = os.path.realpath(os.fsdecode(args[0]))
            if not path.startswith((f"{inside}/", *allowed)) and "/__pycache__" not in path:
                raise NotPure(f"{event} of {path}")

    sys.addaudithook(hook)


def empty_caches(package: str) -> None:
    """Forgets what the functions of a package keep, so that each test that asks for a result reaches the function."""
    modules = [module for name, module in sys.modules.items() if f"{name}.".startswith(f"{package}.")]
    for owner in [
        *modules,
        *(value for module in modules for value in vars(module).values() if isinstance(value, type)),
    ]:
        for value in vars(owner).values():
            clear = getattr(value, "cache_clear", None)
            if callable(clear):
                clear()


if "TAMIS_MUTATE" in os.environ and "pytest" in sys.modules:
    import pytest

    _is_pytest = True
    SETTINGS: dict[str, Any] = json.loads(os.environ["TAMIS_MUTATE"])
    INSIDE = Path(SETTINGS["inside"])
    CHOSEN: dict[str, Any] = json.loads((INSIDE / "chosen.json").read_text())
    ROOT = INSIDE / "main"
    FILES = frozenset(CHOSEN["files"])
    ORDER = {name: index for index, name in enumerate(CHOSEN["tests"] or ())}
    record = SETTINGS.get("record")
    outcomes: dict[str, str] = {}
    at_import: dict[str, list[str]] = {}

    def _taken() -> list[str]:
        """The places that were reached since the last call."""
        places = sorted(_reached)
        _reached.clear()
        if record:
            empty_caches(SETTINGS["module"])
        return places

    def pytest_ignore_collect(collection_path: Path) -> bool | None:
        is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
        return True if is_test and collection_path.relative_to(ROOT).as_posix() not in FILES else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        if ORDER:
            items[:] = sorted((item for item in items if item.nodeid in ORDER), key=lambda item: ORDER[item.nodeid])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish() -> None:
        if SETTINGS.get("pure"):
            forbid(str(INSIDE))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
        _taken()
        report = yield
        at_import.setdefault(collector.nodeid.partition("::")[0], []).extend(_taken())
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
        if not record:
            return (yield)
        file = item.nodeid.partition("::")[0]
        before = os.times()
        HITS.write_text("")
        _taken()
        done = yield
        after = os.times()
        row = {
            "test": item.nodeid,
            "file": file,
            "outcome": outcomes.get(item.nodeid, "failed"),
            "seconds": round(sum(after[:4]) - sum(before[:4]), 3),
            "reached": _taken(),
            "shared": [*item.stash.get(SHARED, []), *at_import.pop(file, []), *HITS.read_text().split()],
        }
        with open(record, "a") as lines:
            lines.write(json.dumps(row) + "\n")
        return done

    SHARED = pytest.StashKey[list[str]]()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            return (yield)
        finally:
            item.stash[SHARED] = _taken()

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            outcomes[report.nodeid] = "skipped" if report.skipped else "failed"
        elif report.when == "call":
            outcomes.setdefault(report.nodeid, "passed")
