"""Which paths stay in a folder, judged without a look outside of it (trust 1)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.runtime.settings.files import MAX_LINKS, stays_inside, way_of

PARTS = st.sampled_from(["a", "b", "l", "m", "..", ".", "", "out"])
PATHS = st.tuples(st.sampled_from(["", "/"]), st.lists(PARTS, max_size=6)).map(lambda pair: pair[0] + "/".join(pair[1]))


@given(st.dictionaries(st.sampled_from(["a/l", "b/m", "l", "m"]), PATHS.filter(bool)), PATHS, st.booleans())
def test_what_stays_inside_is_inside_for_the_system_too(links: dict[str, str], path: str, below: bool) -> None:
    """The one difference is the way that leaves the folder and comes back."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="ways-")))
    root = base / "root"
    try:
        for folder in ("a", "b"):
            (root / folder).mkdir(parents=True)
        (base / "out").mkdir()
        for name, target in links.items():
            (root / name).symlink_to(f"{root}{target}" if target.startswith("/") and below else target)
        asked = f"{root}{path}" if path.startswith("/") and below else path
        real = os.path.realpath(root / asked)
        inside = real == str(root) or real.startswith(f"{root}/")
        way = way_of(asked, str(root))
        assert way != "inside" or inside
        if way == "outside" and inside:
            assert ".." in asked or any(".." in target or target.startswith("/") for target in links.values())
    finally:
        shutil.rmtree(base, ignore_errors=True)


def test_a_chain_of_links_longer_than_the_kernel_s_is_not_inside(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "0").symlink_to("/etc")
    for number in range(MAX_LINKS + 1):
        (root / str(number + 1)).symlink_to(str(number))
    assert way_of(str(MAX_LINKS + 1), str(root)) == "endless"
    assert way_of("3", str(root)) == "outside"
    (root / "loop").symlink_to("loop")
    assert way_of("loop", str(root)) == "endless"


@pytest.mark.parametrize("path", ["..", "../x", "/", "/etc", "a\0b", "\ud800", "../root2", "a/../../x"])
def test_what_leaves_is_outside(path: str, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    assert not stays_inside(path, os.path.realpath(tmp_path / "root"))


@pytest.mark.parametrize("path", ["", ".", "a", "../root", "../root/a", "./a/../b", "none/x"])
def test_what_stays_is_inside(path: str, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    root = os.path.realpath(tmp_path / "root")
    assert stays_inside(path, root) and stays_inside(f"{root}/a", root)
