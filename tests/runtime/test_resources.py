"""``fam://`` resources: the file that a URI means, and all that leads to none (T17, T18)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.policy.resources import ResourceError, ShownPlaces, resolve_resource
from tamis.server.runtime.settings.config import AuditSettings, Settings
from tamis.server.runtime.tools.registry import Registry
from tests.runtime.service_world import Served, error_of, method
from tests.sample_tools import tam


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data/images").mkdir(parents=True)
    (tmp_path / "data/images/in put.png").write_text("x")
    (tmp_path / "data/图 😀.txt").write_text("x")
    (tmp_path / "outside.txt").write_text("x")
    (tmp_path / "data/link.txt").symlink_to(tmp_path / "outside.txt")
    (tmp_path / "data/folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "data/pipe")
    return tmp_path


def resolve(root: Path, uri: str) -> str:
    return resolve_resource(uri, {"data": "data", "gone": "gone"}, root)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("fam://data/images/in put.png", "images/in put.png"),
        ("fam://data/images/in%20put.png", "images/in put.png"),
        ("FAM://data/images", "images"),
        ("fam://data/图 😀.txt", "图 😀.txt"),
        ("fam://data/%E5%9B%BE%20😀.txt", "图 😀.txt"),
        ("fam://data/./images", "images"),
    ],
)
def test_a_uri_is_the_path_of_its_file(root: Path, uri: str, path: str) -> None:  # T17
    assert resolve(root, uri) == str(root / "data" / path)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("", "is no fam:// URI"),
        ("file:///etc/passwd", "is no fam:// URI"),
        ("fam:/data/x", "is no fam:// URI"),
        ("fam://dta/x", "no resource folder 'dta' is configured, did you mean 'data'?"),
        ("fam://", "no resource folder ''"),
        ("fam://zzzzzz/x", "known are data, gone"),
        ("fam://data", "the path is empty"),
        ("fam://data/", "the path is empty"),
        ("fam://data/../outside.txt", "'..'"),
        ("fam://data/%2e%2e/outside.txt", "'..'"),
        ("fam://data/%2E%2E%2Foutside.txt", "'..'"),
        ("fam://data/images/../../outside.txt", "'..'"),
        ("fam://data//outside.txt", "is absolute"),
        ("fam://data/%2Fetc/passwd", "is absolute"),
        ("fam://data/a%00b", "NUL or a backslash"),
        ("fam://data/a%5cb", "NUL or a backslash"),
        ("fam://data/%ff", "no UTF-8"),
        ("fam://data/\ud800", "cannot be written as bytes"),
        ("fam://data/link.txt", "'link.txt' is a symbolic link"),
        ("fam://data/folder/outside.txt", "'folder' is a symbolic link"),
        ("fam://data/pipe", "neither a plain file nor a folder"),
        ("fam://data/images/imput.png", "No such file or directory"),
        ("fam://data/image/x", "did you mean 'fam://data/images'?"),
        ("fam://data/images/in puy.png", "did you mean 'fam://data/images/in put.png'?"),
        ("fam://gone/x", "No such file or directory"),
        ("fam://data/" + "a" * 300, "longer than 255 bytes"),
        ("fam://data/" + "a/" * 80 + "x", "at most 64"),
        ("fam://data/" + "a" * 5_000, "more than 4096 characters"),
    ],
)
def test_what_leads_to_no_resource_says_why(root: Path, uri: str, said: str) -> None:  # T18, S1, S2
    with pytest.raises(ResourceError) as error:
        resolve(root, uri)
    assert said in str(error.value)


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from(["..", ".", "%2e", "/", "%2f", "images", "folder", "link.txt", "\\", "%00"])).map(
        "".join
    )
)
def test_no_path_leaves_its_folder(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    top = tmp_path_factory.getbasetemp() / "resources"
    (top / "data/images").mkdir(parents=True, exist_ok=True)
    if not (top / "data/folder").is_symlink():
        (top / "data/folder").symlink_to("/")
    try:
        found = resolve_resource(f"fam://data/{path}", {"data": "data"}, top)
    except ResourceError:
        return
    assert os.path.realpath(found) == found
    assert found.startswith(str((top / "data").resolve()) + "/")


@pytest.mark.parametrize("closed", ["home/.config/gh", "records", "records/old"])
def test_a_folder_that_is_never_shown_or_that_tamis_keeps_is_no_place(tmp_path: Path, closed: str) -> None:
    (tmp_path / closed).mkdir(parents=True)
    resources = {"closed": closed, "data": "data"}
    settings = Settings(resources=resources, audit=AuditSettings(path="records"))
    assert list(ShownPlaces(settings, tmp_path, Registry(), outside=True).tops) == ["data"]


def test_a_parameter_by_uri_reaches_a_tool_as_a_path(root: Path) -> None:  # T17, seed 002 §3.3
    world = Served(root, lambda *given: given[2], resources={"data": "data"})
    world.register("s", method("see", parameters=[{"name": "image", "type": "string"}]))

    async def work(uri: str) -> ExecutionResult:
        document = world.runtime.read(tam({"command": "s:see", "uri_image": uri}), "tam")
        made = await execute_text(document, world.runtime.call_context(), TextOptions())
        await world.runtime.close()
        return made.results[0]

    assert asyncio.run(work("fam://data/images/in put.png")).output == {"image": str(root / "data/images/in put.png")}
    refused = asyncio.run(work("fam://data/../outside.txt"))
    assert (refused.status, error_of(refused)["type"]) == ("error", "SecurityError")
    assert error_of(refused)["message"].startswith("parameter 'image': 'fam://data/../outside.txt'")
    assert len(world.host.asked) == 1


@pytest.mark.parametrize(
    "uris", [5, "x", ["a"], {"image": 5}, {5: "fam://data/x"}, {f"p{n}": "fam://data/x" for n in range(65)}]
)
def test_uris_that_are_none_are_the_calls_fault(root: Path, uris: Any) -> None:
    world = Served(root, resources={"data": "data"})
    world.register("s", method("see"))
    result = world.run("s:see", wire_call={"toolId": "s:see", "args": {}, "uris": uris})
    assert (result.status, error_of(result)["type"]) == ("error", "ParameterValidationError")
    assert "at most 64 parameter names" in error_of(result)["message"]
