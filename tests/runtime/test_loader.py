"""Finding manifests: every bad file is a finding, and none stops the others (D47, D48, D50)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.server.runtime.tools import loader
from tamis.server.runtime.tools.loader import scan


def names(found: loader.Scan, root: Path) -> list[str]:
    return [os.path.relpath(file.path, root) for file in found.files]


def problem(found: loader.Scan, name: str) -> str:
    return next(item.message for item in found.problems if item.path.endswith(name))


def test_several_folders_are_searched_in_depth_in_a_stable_order(tmp_path: Path) -> None:  # D47
    for name in ("b/z.tool.json", "b/a.tool.json", "a/deep/er/x.tool.json", "a/other.json", "c/no.tool.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert names(scan(tmp_path, ("b", "a")), tmp_path) == ["b/a.tool.json", "b/z.tool.json", "a/deep/er/x.tool.json"]


def test_a_folder_named_twice_gives_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "a.tool.json").write_text("{}")
    assert names(scan(tmp_path, (".", ".")), tmp_path) == ["a.tool.json"]


def test_ignore_files_count_also_those_above(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("secret/\n*.old.tool.json\n")
    for name in ("t/a.tool.json", "t/b.old.tool.json", "t/secret/c.tool.json", "t/sub/d.tool.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (tmp_path / "t" / ".ignore").write_text("sub/*\n!sub/keep.tool.json\n")
    assert names(scan(tmp_path, ("t",)), tmp_path) == ["t/a.tool.json"]


def test_dependency_folders_are_not_searched(tmp_path: Path) -> None:
    for name in ("node_modules/x/a.tool.json", ".git/b.tool.json", ".venv/c.tool.json", "ok.tool.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert names(scan(tmp_path, (".",)), tmp_path) == ["ok.tool.json"]


def test_a_link_loop_ends_and_links_are_not_followed(tmp_path: Path) -> None:  # S1
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a" / "ok.tool.json").write_text("{}")
    (tmp_path / "a" / "link.tool.json").symlink_to(tmp_path / "a" / "ok.tool.json")
    (tmp_path / "a" / "self.tool.json").symlink_to(tmp_path / "a" / "self.tool.json")
    found = scan(tmp_path, (".",))
    assert names(found, tmp_path) == ["a/ok.tool.json"]
    assert "symbolic link" in problem(found, "link.tool.json")
    assert "symbolic link" in problem(found, "self.tool.json")


def test_a_folder_with_a_manifest_name_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.tool.json").mkdir()
    (tmp_path / "y.tool.json").write_text("{}")
    found = scan(tmp_path, (".",))
    assert names(found, tmp_path) == ["y.tool.json"]
    assert "is a folder" in problem(found, "x.tool.json")


def test_a_fifo_with_a_manifest_name_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.tool.json")
    found = scan(tmp_path, (".",))
    assert "is a FIFO, not a regular file" in problem(found, "x.tool.json")


def test_invalid_utf8_is_located(tmp_path: Path) -> None:  # D50
    (tmp_path / "x.tool.json").write_bytes(b'{\n"a": "\xff"}')
    assert "not UTF-8 at byte 8 (line 2)" in problem(scan(tmp_path, (".",)), "x.tool.json")


def test_a_byte_order_mark_is_part_of_the_text_and_no_failure(tmp_path: Path) -> None:  # D50
    (tmp_path / "x.tool.json").write_bytes(b"\xef\xbb\xbf{}")
    assert scan(tmp_path, (".",)).files[0].text == "\ufeff{}"


def test_a_file_over_the_limit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "MAX_BYTES", 10)
    (tmp_path / "x.tool.json").write_text("{" + " " * 20 + "}")
    assert "larger than 10 bytes" in problem(scan(tmp_path, (".",)), "x.tool.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file; run as an ordinary user to see this")
def test_an_unreadable_file_and_folder_are_said(tmp_path: Path) -> None:
    (tmp_path / "x.tool.json").write_text("{}")
    (tmp_path / "x.tool.json").chmod(0)
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "y.tool.json").write_text("{}")
    found = scan(tmp_path, (".",))
    (tmp_path / "closed").chmod(0o700)
    assert names(found, tmp_path) == ["y.tool.json"]
    assert "Permission denied" in problem(found, "x.tool.json")
    assert "Permission denied" in problem(found, "closed")


def test_a_missing_tool_folder_is_said_with_the_setting(tmp_path: Path) -> None:
    assert "`tools` in tamis.toml" in problem(scan(tmp_path, ("nowhere",)), "nowhere")


def test_very_deep_folders_end_the_search_there(tmp_path: Path) -> None:
    path = tmp_path
    for _ in range(loader.MAX_DEPTH + 2):
        path = path / "d"
    path.mkdir(parents=True)
    (path / "x.tool.json").write_text("{}")
    found = scan(tmp_path, (".",))
    assert not found.files
    assert any("nested deeper" in item.message for item in found.problems)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder; run as an ordinary user to see this")
def test_a_folder_that_can_be_listed_but_not_entered_is_survived(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.tool.json").write_text("{}")
    (tmp_path / "d").chmod(0o444)
    (tmp_path / "y.tool.json").write_text("{}")
    found = scan(tmp_path, (".",))
    (tmp_path / "d").chmod(0o755)
    assert names(found, tmp_path) == ["y.tool.json"]
    assert "Permission denied" in problem(found, "x.tool.json")
