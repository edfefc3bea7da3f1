"""``tamis mcp bundle``: a file that a desktop host installs and starts (mcp.md, a bundle for desktop hosts)."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tamis import __version__
from tamis.server.cli import mcp_install
from tamis.server.cli.mcp_install import shake_hands
from tests.cli.in_process import Tamis
from tests.sample_tools import make_tool


def unpacked(file: Path, folder: Path) -> dict[str, Any]:
    """The manifest of a bundle that was unpacked as a host does it."""
    with zipfile.ZipFile(file) as archive:
        assert sorted(archive.namelist()) == ["manifest.json", "server/tamis"]
        for about in archive.infolist():
            path = Path(archive.extract(about, folder))
            path.chmod(about.external_attr >> 16)
    return json.loads((folder / "manifest.json").read_text("utf-8"))


def started_by(manifest: dict[str, Any], folder: Path, tools: Path) -> list[str]:
    """The words that a host starts, its placeholders filled."""
    how = manifest["server"]["mcp_config"]
    words = [how["command"], *how["args"]]
    return [word.replace("${__dirname}", str(folder)).replace("${user_config.folder}", str(tools)) for word in words]


def test_what_a_host_unpacks_and_starts_shakes_hands_with_the_tools_of_the_chosen_folder(
    tamis: Tamis, tmp_path: Path
) -> None:
    make_tool(tamis.folder, "core:echo")
    done = tamis("mcp", "bundle", "mine.mcpb")
    assert done.code == 0, done.err
    manifest = unpacked(tamis.folder / "mine.mcpb", tmp_path / "host")
    assert (manifest["version"], manifest["server"]["entry_point"]) == (__version__, "server/tamis")
    assert manifest["user_config"]["folder"]["default"] == str(tamis.folder)
    assert shake_hands(started_by(manifest, tmp_path / "host", tamis.folder)) == ["core_echo"]


def test_the_launcher_takes_the_one_on_the_path_where_its_own_is_gone(tmp_path: Path) -> None:
    launcher = tmp_path / "tamis-launcher"
    launcher.write_text(mcp_install.launcher(["/gone/tamis"]))
    launcher.chmod(0o755)
    program = tmp_path / "bin" / "tamis"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    assert subprocess.run([launcher, "mcp", "a b"], env=env, capture_output=True, text=True).stdout == "mcp a b\n"
    env["PATH"] = "/usr/bin:/bin"
    done = subprocess.run([launcher, "mcp"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 127 and "not installed" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("name", ["/a b/tamis", "/a'b/tamis", '/a"$(touch x)/tamis'])
def test_a_program_s_path_is_a_word_of_the_launcher_whatever_it_holds(name: str, tmp_path: Path) -> None:
    program = tmp_path / name.lstrip("/")
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "here $1"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", mcp_install.launcher([str(program)]), "sh", "mcp"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "here mcp\n"
    assert not (tmp_path / "x").exists()


def test_the_same_folder_gives_the_same_bytes_and_a_file_that_is_there_is_left_alone(tamis: Tamis) -> None:
    assert tamis("mcp", "bundle", "a").code == 0
    assert tamis("mcp", "bundle", "b.mcpb").code == 0
    first = (tamis.folder / "a.mcpb").read_bytes()
    assert first == (tamis.folder / "b.mcpb").read_bytes()
    again = tamis("mcp", "bundle", "a.mcpb")
    assert again.code == 1 and "is there already" in again.err
    assert tamis("mcp", "bundle").code == 2
    assert tamis("mcp", "bundle", "none/a.mcpb").code == 1
