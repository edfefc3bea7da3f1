"""A pinned script: the bytes that were checked are the bytes that run, whatever happens to the tool's folder (D80)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tamis.sandbox import engine, runner
from tamis.sandbox.model import RunOutcome, RunRequest
from tests.sandbox.sri import sri


def run(folder: Path, script: str, integrity: str) -> RunOutcome:
    wanted = RunRequest(
        folder=os.path.realpath(folder),
        script=script,
        language="python",
        integrity=integrity,
    )
    return asyncio.run(runner.run(wanted))


def test_a_script_that_changes_after_the_check_does_not_run_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tool"
    folder.mkdir()
    script = folder / "tool.py"
    script.write_text("print('checked')\n")
    integrity = sri("print('checked')\n")
    assert run(folder, "tool.py", integrity).stdout == b"checked\n"  # the machine is probed by a run of its own before
    execute: Any = engine.execute

    async def change_first(*args: Any, **named: Any) -> Any:
        # in place, and by a new file of the same name: both after the check, before anything is started
        script.write_text("print('changed')\n")
        (tmp_path / "new").write_text("print('changed')\n")
        os.rename(tmp_path / "new", script)
        return await execute(*args, **named)

    monkeypatch.setattr(engine, "execute", change_first)
    outcome = run(folder, "tool.py", integrity)
    assert outcome.stdout == b"checked\n", outcome.message
    script.write_text("print('checked')\n")
    assert run(folder, "tool.py", "").stdout == b"changed\n"  # what the pin prevents


def test_links_beside_a_pinned_script_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "made").mkdir()
    folder = tmp_path / "tool"
    (folder / "sub").mkdir(parents=True)
    source = "import os\nprint(sorted(os.listdir('/tool')), sorted(os.listdir('/tool/sub')))\n"
    (folder / "sub" / "tool.py").write_text(source)
    (folder / "sub" / "plain").write_text("")
    (folder / "link").symlink_to(outside)
    (folder / "sub" / "dangling").symlink_to(tmp_path / "absent")
    os.mkfifo(folder / "pipe")
    outcome = run(folder, "sub/tool.py", sri(source))
    assert outcome.stdout == b"['sub'] ['plain', 'tool.py']\n", outcome
    assert sorted(os.listdir(outside)) == ["made"]
    assert not (tmp_path / "absent").exists()


def test_a_pinned_script_cannot_be_written(tmp_path: Path) -> None:
    source = "import os\nfor how in ('r+', 'w', 'a'):\n    try:\n        open('/tool/tool.py', how)\n    except OSError as error:\n        print(type(error).__name__)\ntry:\n    os.replace('/tool/tool.py', '/tool/x')\nexcept OSError as error:\n    print(type(error).__name__)\n"
    folder = tmp_path / "tool"
    folder.mkdir()
    (folder / "tool.py").write_text(source)
    outcome = run(folder, "tool.py", sri(source))
    assert len(outcome.stdout.splitlines()) == 4, outcome


@pytest.mark.parametrize(
    ("count", "bytes_", "cause"), [(200, 10, "stand beside the pinned script"), (1, 17 << 20, "larger than 16 MiB")]
)
def test_what_cannot_be_pinned_is_said(tmp_path: Path, count: int, bytes_: int, cause: str) -> None:
    for number in range(count):
        (tmp_path / f"file{number}").write_text("")
    content = b"#" * bytes_
    (tmp_path / "tool.py").write_bytes(content)
    outcome = run(tmp_path, "tool.py", sri(content))
    assert outcome.kind == "refused"
    assert cause in outcome.message
