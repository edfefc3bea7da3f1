"""What a person's word is bound to: all files of a tool's folder, not its script alone (trust 6, ruling 40)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.calls.model import Answer, CallRequest, Question, Reply
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.policy import contents
from tamis.server.runtime.policy.contents import contents_digest
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.store.folders import state_folder
from tests.runtime.fake_approver import ALWAYS
from tests.sample_tools import make_tool

SCRIPT = ExternalScript(script_path="tool.py", language="python")
IMPORTS = "import json, helper\nprint(json.dumps(helper.WORD))\n"


def digest(folder: Path, *files: str, apart: tuple[Path, ...] = ()) -> str:
    return contents_digest(str(folder), SCRIPT, files, [str(path) for path in apart])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "tool.py").write_text("import lib.a")
    (tmp_path / "lib" / "a.py").write_text("A = 1")
    (tmp_path / "lib" / "deep" / "b.py").write_text("B = 1")
    (tmp_path / "data.txt").write_text("data")
    (tmp_path / "requirements.txt").write_text("requests==2.0\n")
    (tmp_path / "link.py").symlink_to("lib/a.py")
    return tmp_path


def same_length(path: Path) -> None:
    """Another content of the same length and time of change: only what is read, or the inode's own time, tells."""
    state = path.stat()
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "the script": lambda folder: same_length(folder / "tool.py"),
    "a module beside it": lambda folder: same_length(folder / "lib" / "a.py"),
    "a module deeper": lambda folder: same_length(folder / "lib" / "deep" / "b.py"),
    "a new module": lambda folder: (folder / "json.py").write_text("x"),
    "compiled code": lambda folder: (folder / "lib" / "a.pyc").write_bytes(b"x"),
    "a package that Node finds": lambda folder: _write(folder / "node_modules" / "x" / "index.js"),
    "packages": lambda folder: (folder / "requirements.txt").write_text("evil==1.0.0\n\n"),
    "a link's target": lambda folder: ((folder / "link.py").unlink(), (folder / "link.py").symlink_to("lib/b.py")),
    "a link in place of a file": lambda folder: (
        (folder / "lib" / "a.py").rename(folder / "lib" / "c.py"),
        (folder / "lib" / "a.py").symlink_to("c.py"),
    ),
    "a name": lambda folder: (folder / "lib" / "a.py").rename(folder / "lib" / "other.py"),
    "a file that is gone": lambda folder: (folder / "data.txt").unlink(),
    "a pipe": lambda folder: os.mkfifo(folder / "pipe.py"),
}


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("x")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("settled", [False, True])
def test_every_change_that_may_run_is_seen(
    folder: Path, change: Callable[[Path], object], settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """trust 6: also with what was hashed before in mind."""
    if settled:
        monkeypatch.setattr(contents, "SETTLED_NS", -(10**12))
    before = digest(folder)
    assert digest(folder) == before
    change(folder)
    assert digest(folder) != before


def test_what_is_never_run_does_not_count(folder: Path) -> None:
    before = digest(folder, apart=(folder / "out",))
    for path in (".git/HEAD", ".venv/x.py", ".mypy_cache/x", "out/result.txt"):
        _write(folder / path)
    assert digest(folder, apart=(folder / "out",)) == before
    assert digest(folder) != before


def test_files_name_what_belongs(folder: Path) -> None:
    """interface: `execution.files`; the script and its packages belong whatever they say."""
    before = digest(folder, "lib/**/*.py")
    (folder / "data.txt").write_text("other")
    (folder / "new.py").write_text("x")
    assert digest(folder, "lib/**/*.py") == before
    for path in ("lib/a.py", "lib/deep/b.py", "tool.py", "requirements.txt"):
        held = digest(folder, "lib/**/*.py")
        same_length(folder / path)
        assert digest(folder, "lib/**/*.py") != held


def test_a_folder_beyond_the_bounds_is_of_this_process_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """trust 6: what cannot be looked at within the bounds is never allowed for always."""
    monkeypatch.setattr(contents, "MAX_ENTRIES", 3)
    before = digest(folder)
    assert digest(folder) == before
    monkeypatch.setattr(contents, "_here", b"another process")
    assert digest(folder) != before


def test_what_is_too_much_to_read_counts_by_its_facts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MAX_BYTES", 1)
    before = digest(folder)
    time.sleep(0.02)
    same_length(folder / "lib" / "deep" / "b.py")
    assert digest(folder) != before


def test_a_folder_that_did_not_change_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SETTLED_NS", -(10**12))
    before = digest(folder)
    monkeypatch.setattr(contents.hashlib, "sha256", _Counted)
    _Counted.count = 0
    assert digest(folder) != ""
    assert _Counted.count == 1, "the digest of the whole is the only one that is made"
    del before


class _Counted:
    count = 0

    def __init__(self, *_: object) -> None:
        type(self).count += 1

    def update(self, _data: bytes) -> None:
        return

    def hexdigest(self) -> str:
        return "counted"

    def digest(self) -> bytes:
        return b""


@given(
    st.lists(st.sampled_from(["a", "b", ".c", "d.py"]), min_size=1, max_size=6),
    st.lists(st.sampled_from(["a", "*", "**", "?", "*.py", ".c"]), min_size=1, max_size=6),
)
def test_globs_fit_as_a_plain_search_says(parts: list[str], glob: list[str]) -> None:
    def fits(parts: list[str], glob: list[str]) -> bool:
        if not glob:
            return True
        if glob[0] == "**":
            return any(fits(parts[at:], glob[1:]) for at in range(len(parts) + 1))
        return bool(parts) and contents.matches(parts[0], glob[0]) and fits(parts[1:], glob[1:])

    assert contents._fits(parts, glob) == fits(parts, glob)  # pyright: ignore[reportPrivateUsage]


# What follows from it


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "root"
    folder.mkdir(mode=0o755)
    tool = make_tool(folder, "t:two", IMPORTS)
    (tool / "helper.py").write_text("WORD = 'good'\n")
    return folder


def helper(root: Path, word: str) -> None:
    (root / "t_two" / "helper.py").write_text(f"WORD = '{word}'\n")


def call(root: Path, *replies: Reply | Answer, before: Callable[[], object] = lambda: None) -> ExecutionResult:
    """One call in a process of its own, as far as its memory goes; ``before`` happens while the person is asked."""
    runtime = Runtime(root, ALWAYS)
    given = iter(replies)

    async def ask(_question: Question) -> Reply | Answer:
        before()
        return next(given, "deny")

    async def run() -> ExecutionResult:
        try:
            context = runtime.call_context(ask=ask, caller=Caller("rpc", "s"))
            return await execute(CallRequest(call_id="c", name="t:two"), context)
        finally:
            await runtime.close()

    return asyncio.run(run())


def test_always_holds_for_the_module_beside_the_script_too(root: Path) -> None:
    """trust 6: "always" is asked again when a module changes that the script imports."""
    assert call(root, Reply(answer="allow", scope="always")).output == "good"
    assert call(root).output == "good"
    helper(root, "evil")
    assert call(root).status == "denied"


def test_a_module_that_changes_while_a_person_is_asked_is_asked_about(root: Path) -> None:
    """trust 6: the answer is about what stood there when it was shown."""
    seen: list[int] = []

    def change() -> None:
        if not seen:
            helper(root, "evil")
        seen.append(1)

    assert call(root, "allow", before=change).status == "denied"
    assert len(seen) == 2


def test_what_changes_before_the_run_is_not_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """trust 6: between the answer and the start packages may be installed; what runs is what was allowed."""
    from tamis.server.runtime.handlers.script import running

    real = running.prepared

    async def prepared(*given: Any) -> Any:
        helper(root, "evil")
        return await real(*given)

    monkeypatch.setattr(running, "prepared", prepared)
    result = call(root, "allow")
    assert (result.status, result.output) == ("error", UNSET)
    assert result.error is not UNSET
    assert result.error.details is not UNSET
    assert (result.error.type, result.error.details.code) == ("SecurityError", "filesChanged")


def test_a_token_fits_the_files_that_it_was_given_for(root: Path) -> None:
    """trust 6: tokens of a host that polls."""
    from tamis.server.runtime.calls.model import TokenAnswer
    from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown

    runtime = Runtime(root, ALWAYS)
    import msgspec

    async def run() -> None:
        context = runtime.call_context(caller=Caller("rpc", "s")).having(polls=True)
        request = CallRequest(call_id="c", name="t:two")
        try:
            first = await execute(request, context)
            assert first.status == "inputRequired"
            assert first.approval is not UNSET
            token = TokenAnswer(token=first.approval["token"], option_id="allow")
            helper(root, "evil")
            with pytest.raises(ApprovalUnknown):
                await execute(msgspec.structs.replace(request, approval=token), context)
        finally:
            await runtime.close()

    asyncio.run(run())


def test_answers_of_the_old_form_are_asked_again_and_said_once(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """trust 6: a store of an earlier version holds answers about scripts alone."""
    assert call(root, Reply(answer="allow", scope="always")).output == "good"
    with contextlib.closing(sqlite3.connect(state_folder() / "tamis.db")) as db, db:
        db.execute("UPDATE approvals SET binding = substr(binding, 3)")
    assert call(root).status == "denied"
    assert "1 answer for always was about a script alone" in capfd.readouterr().err
    assert call(root).status == "denied"
    assert "a script alone" not in capfd.readouterr().err


def test_what_a_tool_writes_itself_voids_no_answer(root: Path) -> None:
    script = "import json\nopen('.kept/x', 'a').write('x')\nprint(1)"
    make_tool(root, "t:two", script, securityContext={"fileAccess": {"allowWrite": [".kept/**"]}})
    assert call(root, Reply(answer="allow", scope="always")).output == 1
    assert call(root).output == 1
