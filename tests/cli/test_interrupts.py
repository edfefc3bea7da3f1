"""Ctrl-C at a terminal: exit code 130 of every command, no traceback, and the shell's prompt begins a line of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import COMMAND
from tests.sample_tools import action, make_tool
from tests.waiting import until

LOG = json.dumps({"text": "<ACTION><t:x><p>1</p></t:x></ACTION>" * 200}) + "\n"


def interrupted(words: list[str], cwd: Path, *, data: str | None = None) -> tuple[int, bytes]:
    """Presses Ctrl-C as soon as a command is at work: it waits for input, or has begun to answer; its exit code and what the terminal shows."""
    ours, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=cwd,
        stdin=subprocess.PIPE if data is not None else terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: os.close(ours),
    )
    if process.stdin is not None and data:
        process.stdin.write(data.encode())
        process.stdin.flush()
    # Nobody can see from outside that a process waits, but for its state.
    until(lambda: waits(process.pid))
    os.killpg(process.pid, signal.SIGINT)
    process.wait()
    os.close(terminal)
    shown = b""
    # a terminal that no process has open any more gives an error behind what was written
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    return process.returncode, shown


def waits(pid: int) -> bool:
    """Whether a process sleeps in the kernel until something can be read."""
    try:
        place = Path(f"/proc/{pid}/wchan").read_text()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "S" and any(word in place for word in ("tty", "wait_woken", "pipe", "poll", "select"))


@pytest.mark.parametrize(
    "words",
    [
        ["parse", "-"],
        ["parse", "--jsonl", "-"],
        ["stats"],
        ["convert", "--to", "tam", "-"],
        ["format", "-"],
        ["run", "-"],
    ],
    ids=" ".join,
)
def test_a_command_that_waits_for_input_ends_quietly(words: list[str], tmp_path: Path) -> None:
    code, shown = interrupted(words, tmp_path)
    assert (code, b"Traceback" in shown, b"KeyboardInterrupt" in shown) == (130, False, False), shown
    assert shown.endswith(b"\n")


def test_workers_of_a_log_end_with_it_and_say_nothing(tmp_path: Path) -> None:
    code, shown = interrupted(["stats", "--jobs", "2"], tmp_path, data=LOG * 150)
    assert (code, b"Traceback" in shown) == (130, False), shown
    assert shown.endswith(b"\n")


def test_check_ends_quietly_in_the_middle_of_its_work(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from tamis.server.cli import main\n"
        "from tamis.server.runtime.texts import checkables\n"
        "read = checkables.find_checkables\n"
        "def stop(*words):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return read(*words)\n"
        "checkables.find_checkables = stop\n"
        "sys.argv = ['tamis', 'check', '.']\n"
        "main.entry()\n"
    )
    ours, terminal = pty.openpty()
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, stdout=terminal, stderr=terminal, check=False)
    os.close(terminal)
    shown = os.read(ours, 65536)
    os.close(ours)
    assert (done.returncode, shown) == (130, b"\r\n")


SLOW = "import pathlib, time\npathlib.Path('.cache/begun').touch()\ntime.sleep(86400)\n"
WORKFLOW = {"name": "One", "description": "Waits.", "nodes": [{"id": "a", "type": "test:slow"}], "edges": []}


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["call", "test:slow", "--args", "{}"], signal.SIGINT),
        (["call", "test:slow", "--args", "{}"], signal.SIGTERM),
        (["run", "--yes", "calls.md"], signal.SIGINT),
        (["run", "--yes", "--json", "calls.md"], signal.SIGINT),
        (["test", "--yes"], signal.SIGINT),
        (["workflow", "run", "one", "--yes"], signal.SIGINT),
    ],
    ids=str,
)
def test_a_signal_while_a_tool_runs_is_the_exit_code(words: list[str], number: signal.Signals, tmp_path: Path) -> None:
    folder = make_tool(
        tmp_path,
        "test:slow",
        SLOW,
        securityContext={"fileAccess": {"allowWrite": [".cache/**"]}},
        examples=[{"description": "waits", "input": {}}],
    )
    (tmp_path / "calls.md").write_text(action("test:slow"))
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "one.json").write_text(json.dumps(WORKFLOW))
    (tmp_path / "tamis.toml").write_text('workflows = ["workflows"]\n')
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until(lambda: process.poll() is not None or (folder / ".cache" / "begun").exists())
    process.send_signal(number)
    said = process.communicate()
    assert process.returncode == 128 + number, said


@pytest.mark.parametrize("words", [["rpc"], ["mcp"], ["lsp"], ["mcp", "--http", "127.0.0.1:0"]], ids=" ".join)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_daemon_that_is_asked_to_end_ends_well_and_one_that_is_interrupted_with_130(
    words: list[str], number: signal.Signals, code: int, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )

    def catches() -> bool:
        """From outside, only the signals that a process catches show that it is ready."""
        caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
        return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)

    until(lambda: process.poll() is not None or catches())
    process.send_signal(number)
    process.wait()  # its input stays open: it does not end for that
    said = process.communicate()
    assert process.returncode == code, said
