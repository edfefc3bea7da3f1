"""Sources of tools (D100): manifests of installed packages, with no more rights than others and never the daemon's undoing."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.server.runtime.calls.handlers import HANDLER_API
from tamis.server.runtime.handlers import plugins
from tamis.server.runtime.settings.installed import Brought
from tamis.server.runtime.tools import source_packages
from tests.conftest import ROOT
from tests.runtime.service_world import Served

MANIFEST: dict[str, Any] = {
    "toolId": "t:shout",
    "displayName": "Shout",
    "description": "Gives back what it was given, for the tests of this project.",
    "version": "1.0.0",
    "handler": {"type": "shout"},
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
}


class Shout:
    """A handler of a package."""

    api = HANDLER_API
    type = "shout"

    def problem(self, handler: dict[str, Any]) -> str:
        return ""


def manifest(**changes: Any) -> str:
    handler = {"type": "service-method", "serviceName": "Clock", "methodName": "now"}
    return json.dumps(MANIFEST | {"toolId": "t:now", "handler": handler, "parameters": {"type": "object"}} | changes)


class Source:
    """A source in this process."""

    api = source_packages.SOURCE_API
    name = "shelf"

    def __init__(self, manifests: Callable[[], Any]) -> None:
        self.manifests = manifests


def world(root: Path, source: Any, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Served:
    def bring(group: str, name: str, what: str) -> Brought:
        return Brought(source, f"{what} '{name}' of {group}")

    monkeypatch.setattr(source_packages, "bring", bring)
    return Served(root, sources=["shelf"], **settings)


def messages(served: Served) -> str:
    return " | ".join(f"{error.path}: {error.message}" for error in served.runtime.registry.errors)


def ids(served: Served) -> list[str]:
    return [tool.tool_id for tool in served.runtime.registry.tools if tool.origin == "manifest"]


def test_a_source_brings_tools_d100(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = world(tmp_path, Source(lambda: [manifest()]), monkeypatch)
    (tool,) = (tool for tool in served.runtime.registry.tools if tool.tool_id == "t:now")
    assert (tool.path, tool.folder, messages(served)) == ("source:shelf#1", "", "")


def test_a_reload_asks_a_source_again_d100(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    served = world(tmp_path, Source(lambda: texts), monkeypatch)
    assert ids(served) == []
    texts.append(manifest())
    served.runtime.reload()
    assert ids(served) == ["t:now"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"handler": {"type": "external-script", "scriptPath": "evil.py", "language": "python"}},
            "runs a script beside its manifest",
        ),
        (
            {
                "handler": {
                    "type": "service-method",
                    "serviceName": "ExternalScriptExecutionService",
                    "methodName": "executeScript",
                }
            },
            "runs a script beside its manifest",
        ),
        ({"securityContext": {"fileAccess": {"allowRead": ["notes"]}}}, "asks for the path 'notes'"),
        ({"securityContext": {"fileAccess": {"allowWrite": ["out"]}}}, "asks for the path 'out'"),
        ({"securityContext": {"fileAccess": {"allowRead": ["**"]}}}, "asks for the path '**'"),
    ],
)
def test_nothing_of_a_sources_manifest_is_looked_for_in_the_working_directory_d100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    (tmp_path / "evil.py").write_text("print('{}')")
    monkeypatch.chdir(tmp_path)
    served = world(tmp_path, Source(lambda: [manifest(**changes)]), monkeypatch)
    assert ids(served) == []
    assert f"source:shelf#1: {said}" in messages(served)


def test_a_handler_of_a_package_is_not_led_to_the_working_directory_d100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Opens(Shout):
        def run(self, call: Any) -> Any:
            try:
                return Path(call.folder, "shop.db").read_text()
            except OSError:
                return "nothing"

    (tmp_path / "shop.db").write_text("a hostile folder's")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(plugins._LOADED, "shout", Opens())  # pyright: ignore[reportPrivateUsage]
    served = world(tmp_path, Source(lambda: [json.dumps(MANIFEST)]), monkeypatch, handlers=["shout"])
    assert served.run("t:shout", {"text": "x"}).output == "nothing"


def test_a_sources_manifest_gets_no_handler_that_is_not_allowed_d100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = world(tmp_path, Source(lambda: [json.dumps(MANIFEST)]), monkeypatch)
    assert ids(served) == []
    assert "'shout' is not a value of 'handler.type'" in messages(served)


def test_a_sources_manifest_gets_no_path_that_the_policy_does_not_give_d100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asks(Shout):
        def run(self, call: Any) -> Any:
            return [*call.read]

    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
    text = json.dumps(MANIFEST | {"securityContext": {"fileAccess": {"allowRead": [f"{inner}/**", f"{outer}/**"]}}})
    monkeypatch.setitem(plugins._LOADED, "shout", Asks())  # pyright: ignore[reportPrivateUsage]
    policy = {"readRoots": [str(inner)]}
    served = world(tmp_path, Source(lambda: [text]), monkeypatch, handlers=["shout"], policy=policy)
    assert served.run("t:shout", {"text": "x"}).output == [str(inner)]


def test_a_file_comes_before_a_source_d100(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "now.tool.json").write_text(manifest())
    served = world(tmp_path, Source(lambda: [manifest(displayName="Other")]), monkeypatch)
    (tool,) = (tool for tool in served.runtime.registry.tools if tool.tool_id == "t:now")
    assert tool.path == str(tmp_path / "now.tool.json")
    assert served.runtime.registry.conflicts


def _half() -> Iterator[str]:
    yield manifest()
    raise SystemExit(3)


class _WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words either")


def _raising(error: BaseException) -> Callable[[], Any]:
    def manifests() -> Any:
        raise error

    return manifests


@pytest.mark.parametrize(
    ("given", "found", "said"),
    [
        (_raising(ValueError("the database is away")), [], "'shelf' failed: ValueError: the database is away"),
        (_raising(SystemExit(3)), [], "failed: SystemExit: 3"),
        (_raising(KeyboardInterrupt()), [], "failed: KeyboardInterrupt"),
        (_raising(_WordlessError()), [], "failed: _WordlessError: it has no words"),
        (_half, ["t:now"], "failed: SystemExit: 3"),
        (lambda: None, [], "failed: TypeError"),
        (manifest, [], "manifests() gave one text"),
        (lambda: [7, manifest()], ["t:now"], "source:shelf#1: is int; a source gives the texts"),
        (lambda: ["{", manifest()], ["t:now"], "source:shelf#1: "),
        (lambda: ["\ud800", manifest()], ["t:now"], "source:shelf#1: holds half a character"),
        (lambda: [" " * 4_194_305, manifest()], ["t:now"], "source:shelf#1: is larger than 4194304 bytes"),
    ],
)
def test_whatever_a_source_gives_is_an_error_of_the_registry_d100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Callable[[], Any], found: list[str], said: str
) -> None:
    served = world(tmp_path, Source(given), monkeypatch)
    assert ids(served) == found
    assert said in messages(served)


def test_a_source_without_end_is_cut_d100(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless() -> Iterator[str]:
        while True:
            yield manifest()

    monkeypatch.setattr(source_packages, "MAX_FILES", 2)
    served = world(tmp_path, Source(endless), monkeypatch)
    assert ids(served) == ["t:now"]
    assert "gave more than 2 manifests" in messages(served)


def test_a_source_that_hangs_is_left_behind_and_not_asked_twice_at_once_d100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    asked: list[int] = []

    def hanging() -> list[str]:
        asked.append(1)
        let_go.wait()
        return [manifest()]

    monkeypatch.setattr(source_packages, "ANSWER_S", 0.05)
    served = world(tmp_path, Source(hanging), monkeypatch)
    assert "'shelf' did not answer within 0.05 seconds" in messages(served)
    served.runtime.reload()
    assert "still has not answered" in messages(served)
    late = source_packages._asked["shelf"]  # pyright: ignore[reportPrivateUsage]
    let_go.set()
    late.join()
    monkeypatch.setattr(source_packages, "ANSWER_S", 600.0)
    served.runtime.reload()
    assert (ids(served), messages(served), len(asked)) == (["t:now"], "", 2)


@pytest.mark.parametrize("name", ["a/b", "../x", "", "A", "a\nb", "\ud800"])
def test_a_name_that_could_be_a_path_is_no_sources_name_d100(name: str) -> None:
    from tamis.server.runtime.settings.config import Settings

    tools, (error,) = source_packages.source_tools(Settings(sources=(name,)), ())
    assert tools == []
    assert "cannot be a source's name" in error.message


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"api": 2}, "written for version 2 of the interface"), ({"name": "other"}, "its name is 'other'")],
)
def test_a_source_of_another_kind_is_not_used_d100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    source = Source(lambda: [manifest()])
    for key, value in changes.items():
        setattr(source, key, value)
    served = world(tmp_path, source, monkeypatch)
    assert ids(served) == []
    assert said in messages(served)


# The page's example, as an installed package


def listed(root: Path, site: Path, database: Path, config: Path) -> str:
    told = {"PYTHONPATH": str(site), "TAMIS_SHELF": str(database), "XDG_CONFIG_HOME": str(config)}
    done = subprocess.run(
        [sys.executable, "-m", "tamis.server.cli.main", "list", "--root", str(root)],
        capture_output=True,
        text=True,
        env={key: text for key, text in os.environ.items() if key != "TAMIS_TRUST"} | told,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The page's example, as an installer leaves it."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "sources.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    info = tmp_path / "site" / "tamis_shelf-0.1.dist-info"
    info.mkdir(parents=True)
    (info.parent / "tamis_shelf.py").write_text(found[1])
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tamis-shelf\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[tamis.sources]\nshelf = tamis_shelf:SOURCE\n")
    return info.parent


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shelf.db"
    connection = sqlite3.connect(path)
    connection.execute("create table tools (id integer primary key, manifest text)")
    connection.execute("insert into tools (manifest) values (?)", (manifest(),))
    connection.commit()
    connection.close()
    return path


def written(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    (folder / name).write_text('sources = ["shelf"]\n')
    return folder


def test_the_pages_database_brings_tools_as_an_installed_package_d100(
    tmp_path: Path, site: Path, database: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    written(tmp_path / "config" / "tamis", "config.toml")
    assert "t:now" in listed(root, site, database, tmp_path / "config")


def test_a_source_that_only_a_folder_names_is_not_asked_d100(tmp_path: Path, site: Path, database: Path) -> None:
    root = written(tmp_path / "root", "tamis.toml")
    assert "t:now" not in listed(root, site, database, tmp_path / "config")


def test_a_source_that_fails_is_told_in_lists_d100(tmp_path: Path, site: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    written(tmp_path / "config" / "tamis", "config.toml")
    said = listed(root, site, tmp_path / "missing.db", tmp_path / "config")
    assert "source:shelf" in said
    assert "OperationalError: unable to open database file" in said
