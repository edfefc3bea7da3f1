"""Whatever a pattern is, it opens nothing outside its root, and reading it never raises (D13, S1, S2)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.manifest.reading import ExternalScript, FileAccess, Manifest, SecurityContext
from tamis.server.runtime.handlers.script.running import make_below
from tamis.server.runtime.policy.path_grants import Place, never_granted
from tamis.server.runtime.policy.permissions import Grant, grant
from tamis.server.runtime.settings.config import Policy
from tamis.server.runtime.tools.reading import BadPattern, matches, read_pattern

MANIFEST = Manifest("t:t", "t", "d", "1.0.0", ExternalScript("t.py", "python"))

# Names that are there, names that are not, and all that was ever taken for a way out.
THERE = (
    "a",
    "b",
    "deep",
    "file",
    "link",
    "up",
    "loop",
    "dangling",
    "out",
    "new",
    "tool",
    ".hidden",
    "*",
    "**",
    "[a-z]*",
)
ODD = (
    *(
        "A",
        "t.py",
        "",
        ".",
        "..",
        "...",
        "....",
        "~",
        "?",
        "[!x]",
        "a*",
        "**.",
        "*/..",
        "%2e%2e",
        "..%2f",
        "$HOME",
        "${PWD}",
    ),
    *("a\0", "a\\..\\b", "\u2025", "．．", "a\u202e", "ё", "x" * 300, "file:", "C:", "proc", "etc"),
)
PARTS = st.one_of(st.sampled_from(THERE), st.sampled_from(THERE), st.sampled_from(ODD))
STARTS = ("", "R/", "R/", "L/", "/", "//", "./", "../", "T/", "O/", "K/", "~/", "file://", "/proc/")
ENDS = ("", "", "/", "/**", "/*", "/.")


@st.composite
def patterns(draw: st.DrawFn) -> str:
    start, end = draw(st.sampled_from(STARTS)), draw(st.sampled_from(ENDS))
    return start + "/".join(draw(st.lists(PARTS, max_size=4))) + end


class Ground:
    """A tree with a root ``R``, a link ``L`` to it, a tool's folder ``T``, and an outside ``O`` that links lead to."""

    def __init__(self, top: Path) -> None:
        self.top = top
        for folder in ("root/a/b/deep", "root/.hidden", "tool/a/b", "outside/a", "rootkit"):
            (top / folder).mkdir(parents=True)
        for file in (
            "root/file",
            "root/a/file",
            "root/a/b/file",
            "tool/t.py",
            "tool/file",
            "outside/file",
            "rootkit/file",
        ):
            (top / file).write_text("x")
        for base in ("root", "root/a", "tool", "tool/a"):
            (top / base / "link").symlink_to(top / "outside")
            (top / base / "up").symlink_to("..")
            (top / base / "loop").symlink_to("loop")
            (top / base / "dangling").symlink_to(top / "outside" / "new")
            (top / base / "out").symlink_to("/etc")
        (top / "L").symlink_to(top / "root")
        self.outside = self._listing()

    def _listing(self) -> list[str]:
        return sorted(str(path) for name in ("outside", "rootkit") for path in (self.top / name).rglob("*"))

    def grant(self, read: list[str], write: list[str]) -> Grant:
        names = {
            "R": f"{self.top}/root",
            "L": f"{self.top}/L",
            "T": f"{self.top}/tool",
            "O": f"{self.top}/outside",
            "K": f"{self.top}/rootkit",
        }

        def real(pattern: str) -> str:
            head, slash, rest = pattern.partition("/")
            return names.get(head, head) + slash + rest

        access = FileAccess(tuple(map(real, read)), tuple(map(real, write)))
        manifest = msgspec.structs.replace(MANIFEST, security_context=SecurityContext(file_access=access))
        roots = (f"{self.top}/L",)
        place = Place(folder=f"{self.top}/tool", protected=(f"{self.top}/tool/t.py",))
        return grant(manifest, Policy(read_roots=roots, write_roots=roots), place)

    def check(self, found: Grant) -> None:
        for path in found.read:
            assert os.path.realpath(path) == path, f"{path} runs through a link"
            assert path == f"{self.top}/root" or path.startswith(f"{self.top}/root/")
        for folder in (*found.write, *found.own_write):
            base = f"{self.top}/tool" if folder in found.own_write else f"{self.top}/root"
            assert os.path.realpath(folder.path) == folder.path, f"{folder.path} runs through a link"
            assert folder.path.startswith(base + "/") or (folder.path == base and folder in found.write)
            assert folder.path != f"{self.top}/tool"
            made = make_below(folder.top, folder.relative)
            assert os.path.realpath(made) == folder.path
        assert self._listing() == self.outside, "something was made outside"


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    top = Path(tempfile.mkdtemp(prefix="tamis-patterns-")).resolve()
    yield Ground(top)
    shutil.rmtree(top)


@given(read=st.lists(st.one_of(patterns(), st.text()), max_size=12), write=st.lists(patterns(), max_size=6))
def test_no_pattern_opens_anything_outside_its_root(ground: Ground, read: list[str], write: list[str]) -> None:
    found = ground.grant(read, write)
    ground.check(found)
    permissions = found.permissions
    answered = {*permissions.granted.read, *permissions.granted.write} | {denied.value for denied in permissions.denied}
    assert len(answered) <= len(read) + len(write)
    assert all(denied.reason for denied in permissions.denied)


@given(st.one_of(st.text(), patterns(), st.text(alphabet="./*[]?~a\\%$:{}\0\u202e", max_size=30)))
def test_reading_a_pattern_gives_a_clean_path_or_a_reason(text: str) -> None:
    try:
        found = read_pattern(text)
    except BadPattern:
        return
    for part in (*found.parts, *found.glob):
        assert part not in ("", ".", "..")
        assert not {"/", "\\", "\0"} & set(part)
    assert found.parts or found.glob or not found.absolute
    assert not any(set(part) & set("*?[") for part in found.parts)


@given(st.text(max_size=60), st.text(alphabet="ab*?[]!-.", max_size=30))
def test_a_hidden_name_fits_only_a_pattern_that_says_so(name: str, part: str) -> None:
    assert isinstance(matches(name, part), bool)
    assert not matches("." + name, "*" + part)


def test_a_glob_of_many_stars_is_not_slow() -> None:  # F18
    assert matches("a" * 255, "*a" * 100 + "*b") is False


@pytest.mark.parametrize(
    "text",
    [
        "/root/.ssh/**",
        "$HOME/x",
        "~/x",
        "%2e%2e/x",
        "{a,b}",
        "/",
        "/**",
        "..",
        "/etc/shadow",
        "/usr/lib/x",
        "/proc/1",
        "C:/x",
    ],
)
def test_what_no_policy_grants_is_known_by_its_spelling(text: str) -> None:
    assert never_granted(text, "/srv/tools/t", writable=False)
    assert never_granted(text, "/srv/tools/t", writable=True)


def test_what_a_policy_may_grant_is_not_judged_by_its_spelling() -> None:
    for text in (".", "data/**", "node_modules/x", "/srv/data/*.csv", "/usr/share/dict", "/etc/tools/t/x"):
        assert never_granted(text, "/etc/tools/t", writable=False) == ""
    assert never_granted("/srv/out/**", "/srv/tools/t", writable=True) == ""
    assert "node_modules" in never_granted("node_modules/**", "/srv/tools/t", writable=True)


@given(text=patterns(), writable=st.booleans())
def test_what_is_refused_by_its_spelling_is_refused_by_the_grant(text: str, *, writable: bool) -> None:
    folder = "/srv/tools/t"
    if never_granted(text, folder, writable=writable):
        access = FileAccess(() if writable else (text,), (text,) if writable else ())
        manifest = msgspec.structs.replace(MANIFEST, security_context=SecurityContext(file_access=access))
        found = grant(manifest, Policy(read_roots=("/",), write_roots=("/",)), Place(folder=folder))
        assert found.permissions.denied
