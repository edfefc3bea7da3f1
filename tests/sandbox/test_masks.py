"""A tool in the root of a project sees none of its history, settings, keys and passwords (trust 8b)."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.sandbox.job import Hidden
from tamis.sandbox.model import Mount
from tamis.sandbox.paths.never import hidden_in, is_hidden_name
from tamis.sandbox.paths.walk import open_absolute
from tests.sandbox import support

LOOK = """
import json, os
seen = {}
for top, folders, files in os.walk("/tool"):
    for name in files:
        path = os.path.join(top, name)
        try: seen[path] = open(path, errors="replace").read()
        except OSError as error: seen[path] = ""
print(json.dumps([seen, sorted(os.listdir("/tool"))]))
"""
FILES = (
    ".env",
    ".env.local",
    "tamis.toml",
    "server.pem",
    "id_rsa",
    "id_ed25519.pub",
    ".netrc",
    ".npmrc",
    ".git-credentials",
)
FOLDERS = (".git", ".vscode", ".ssh", ".idea", ".hg")


def project(tmp_path: Path) -> str:
    folder = Path(support.tool_folder(tmp_path, LOOK))
    for name in FILES:
        (folder / name).write_text("SECRET")
    for name in FOLDERS:
        (folder / name / "inner").mkdir(parents=True)
        (folder / name / "inner" / "config").write_text("SECRET")
    (folder / "id_maker.py").write_text("SEEN")
    (folder / "readme.md").write_text("SEEN")
    return str(folder)


def test_a_projects_secrets_are_not_seen(tmp_path: Path) -> None:
    outcome = support.run(support.request(project(tmp_path)))
    assert outcome.kind == "ok", outcome
    assert b"SECRET" not in outcome.stdout
    assert outcome.stdout.count(b"SEEN") >= 2
    for name in (*FILES, *FOLDERS):
        assert os.path.lexists(tmp_path / "tool" / name), "the host's own is untouched"
    assert (tmp_path / "tool" / ".env").read_text() == "SECRET"


def test_a_pinned_script_does_not_see_them_either(tmp_path: Path) -> None:
    folder = project(tmp_path)
    digest = hashlib.sha256(LOOK.encode()).digest()
    wanted = support.request(folder, integrity="sha256-" + base64.b64encode(digest).decode())
    outcome = support.run(wanted)
    assert outcome.kind == "ok", outcome
    assert b"SECRET" not in outcome.stdout
    assert outcome.stdout.count(b"SEEN") >= 2


def test_nothing_of_it_can_be_written_or_unmounted(tmp_path: Path) -> None:
    source = """
import ctypes, os
for name in (".git/x", ".env", ".vscode/settings.json"):
    try: open("/tool/" + name, "w"); print("BROKEN", name)
    except OSError: pass
libc = ctypes.CDLL(None)
for name in (b"/tool/.git", b"/tool/.env"):
    if libc.umount2(name, 2) == 0: print("BROKEN umount")
"""
    folder = project(tmp_path)
    support.tool_folder(tmp_path, source)
    outcome = support.run(support.request(folder))
    assert (outcome.kind, outcome.stdout) == ("ok", b""), outcome


def test_a_tools_own_folder_keeps_its_files(tmp_path: Path) -> None:
    # no project's root: a tool may keep a key of its own beside its script
    folder = support.tool_folder(tmp_path, "print(open('/tool/.env').read(), end='')")
    (Path(folder) / ".env").write_text("MINE")
    assert support.run(support.request(folder)).stdout == b"MINE"


def test_the_callers_project_is_one_without_any_mark(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "print(open('/tool/.env').read(), end='')")
    (Path(folder) / ".env").write_text("SECRET")
    assert b"SECRET" not in support.run(support.request(folder, project=folder)).stdout


def test_a_link_is_no_mount_point(tmp_path: Path) -> None:
    # CVE-2026-87766: nothing is mounted through a link of an untrusted folder
    folder = Path(support.tool_folder(tmp_path, "import os; print(os.path.exists('/tool/.env'))"))
    (tmp_path / "outside").mkdir()
    (folder / ".git").symlink_to(tmp_path / "outside")
    (folder / ".env").symlink_to(f"/oldroot{tmp_path}/outside/made")
    (folder / ".vscode").mkdir()
    assert support.run(support.request(str(folder))).stdout == b"False\n"
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_grant_does_not_open_what_is_hidden(tmp_path: Path) -> None:
    folder = project(tmp_path)
    outcome = support.run(support.request(folder, read=(Mount(f"{folder}/.vscode"),)))
    assert outcome.kind == "refused", outcome
    assert "hidden" in outcome.message


def test_a_new_secret_is_seen_by_the_next_look(tmp_path: Path) -> None:
    folder = Path(project(tmp_path))
    with open_absolute(str(folder)) as opened:
        before = hidden_in(opened, is_project=False)
        (folder / ".env.new").write_text("SECRET")
        after = hidden_in(opened, is_project=False)
    assert set(after) - set(before) == {Hidden(".env.new")}


@pytest.mark.parametrize(
    "name", ["id_maker.py", "environment", "env", "git", "pem", "key.py", ".github", "package.json", ".envoy"]
)
def test_an_ordinary_name_is_shown(name: str) -> None:
    assert not is_hidden_name(name)


@given(
    st.sampled_from([".env.", "id_"]),
    st.text(st.characters(codec="utf-8", exclude_characters="/\0."), min_size=1, max_size=20),
)
def test_names_of_a_kind_are_hidden_whatever_follows(start: str, rest: str) -> None:
    assert is_hidden_name(start + rest)


@pytest.mark.parametrize("by", ["itself", "a second spelling", "a link"])
def test_a_projects_root_is_known_by_whatever_path_leads_to_it(tmp_path: Path, by: str) -> None:
    folder = support.tool_folder(tmp_path, "print(open('/tool/.env').read(), end='')")
    (Path(folder) / ".env").write_text("SECRET")
    (tmp_path / "link").symlink_to(folder)
    project = {"itself": folder, "a second spelling": f"{folder}/.", "a link": f"{tmp_path}/link"}[by]
    outcome = support.run(support.request(folder, project=project))
    assert (outcome.kind, outcome.stdout) == ("ok", b""), outcome


def test_a_project_that_is_not_there_hides_nothing(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "print(open('/tool/.env').read(), end='')")
    (Path(folder) / ".env").write_text("MINE")
    assert support.run(support.request(folder, project=f"{folder}/nowhere")).stdout == b"MINE"
