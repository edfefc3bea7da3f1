"""Commands run inside the test's process, which is quicker than starting a program for each."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from unittest import mock

import pytest

from tamis.server.cli import interrupts
from tamis.server.cli.main import entry, main
from tamis.server.runtime.settings.loading import StartedWith, start_with


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its standard output as one JSON document."""
        return json.loads(self.out)


class Ended(NamedTuple):
    """What a command left, in the words of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


class Tamis:
    """``tamis`` in a folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._patch = patch
        self._captured = captured

    def __call__(self, *words: str | Path, cwd: Path | None = None) -> Done:
        self._patch.chdir(cwd or self.folder)
        self._captured.readouterr()
        with kept_process():
            code = main([str(word) for word in words])
        out, err = self._captured.readouterr()
        return Done(code, out, err)


def tamis(*words: str, cwd: Path, data: str | bytes = b"", env: dict[str, str] | None = None) -> Ended:
    """Runs the program's entry point with its own folder, environment and standard streams, and takes all of that back.

    The streams are files, which this process has under the numbers 0 to 2 meanwhile: what the command writes past `sys.stdout`, and
    what a child inherits, goes where it would go in a process of its own.
    """
    given = data.encode() if isinstance(data, str) else data
    with kept_process(), _folder_and_environment(cwd, env), _streams(given) as written:
        with mock.patch.object(sys, "argv", ["tamis", *words]):
            code = contextvars.copy_context().run(_entry)
        sys.stdout.flush()
        sys.stderr.flush()
        return Ended(code, *map(_whole, written))


def _entry() -> int:
    try:
        entry()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


@contextlib.contextmanager
def kept_process() -> Iterator[None]:
    """Takes back what a command does to the process that it thinks its own: signal handlers, collection, its options."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)}
    hook, collects = sys.excepthook, gc.isenabled()
    # A command whose threads do not end leaves its process; the worker of these tests must not be left. Nor may a command keep what
    # earlier ones left from the collection of garbage: their open files stay open with it.
    with mock.patch.object(interrupts, "_leave"), mock.patch.object(gc, "freeze"):
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            sys.excepthook = hook
            (gc.enable if collects else gc.disable)()
            start_with(StartedWith())


@contextlib.contextmanager
def _folder_and_environment(cwd: Path, env: dict[str, str] | None) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chdir(cwd)
        with mock.patch.dict(os.environ, env or {}, clear=env is not None):
            yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextlib.contextmanager
def _streams(data: bytes) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Gives the files behind standard output and standard error."""
    kept = [os.dup(number) for number in range(3)]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(data)
        files[0].seek(0)
        try:
            for number, file in enumerate(files):
                os.dup2(file.fileno(), number)
                name, mode = ("stdin", "r") if number == 0 else ("stdout" if number == 1 else "stderr", "w")
                stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
                stack.enter_context(mock.patch.object(sys, name, stream))
            yield files[1], files[2]
        finally:
            for number, old in enumerate(kept):
                os.dup2(old, number)
                os.close(old)


def _whole(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
