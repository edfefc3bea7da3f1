"""Questions to the operator's programs, each asked once, inside a sandbox with nothing granted. Nothing is ever asked outside (ruling 59)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading

import msgspec

from tamis.sandbox import probe
from tamis.sandbox.backends import seccomp, unsandboxed
from tamis.sandbox.backends.choice import BACKENDS
from tamis.sandbox.inside import run_inside
from tamis.sandbox.model import Interpreter, Limits, PathRefused, Unavailable
from tamis.sandbox.paths import never

_ASK_LIMITS = Limits(wall_ms=10_000, memory_bytes=512 << 20, stdout_bytes=65_536)
_KEPT_BYTES = 65_536
_FOLDER = "programs"
_answers: dict[str, bytes] = {}


def ask(program: Interpreter, words: tuple[str, ...]) -> bytes:
    """What the operator's program answers to `words` on standard output, at most 64 KiB; empty when it does not.

    Asked once per file: remembered in this process, and in the user's cache folder, by the file's identity.
    """
    file = program.file or program.path
    try:
        info = os.stat(file)
    except OSError:
        return b""
    identity = (os.path.realpath(file), info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_size)
    key = hashlib.sha256(msgspec.msgpack.encode((program, words, identity))).hexdigest()
    answer = _answers.get(key) or _recall(key)
    if not answer:
        # a program that did not answer is asked again: it may have been for want of something
        answer = _ask_now(program, words)
        if answer:
            _remember(key, answer)
    if answer:
        _answers[key] = answer
    return answer


def _ask_now(program: Interpreter, words: tuple[str, ...]) -> bytes:
    chosen = probe.probe()
    if not chosen.available or chosen.backend == unsandboxed.NAME:
        return b""
    try:
        for path, _ in program.binds:
            never.require_shown(path)
        ended = run_inside(
            BACKENDS[chosen.backend],
            probe.probed_binary(chosen.backend),
            seccomp.supported_machine(),
            program,
            words,
            _ASK_LIMITS,
        )
    except (OSError, PathRefused, Unavailable):
        return b""
    return ended.stdout if ended.ending == "exit" and ended.exit_code == 0 else b""


def _cache() -> str:
    return f"{never.own_folder('TAMIS_CACHE_DIR', 'XDG_CACHE_HOME', '.cache')}/{_FOLDER}"


def _recall(key: str) -> bytes:
    """A kept answer, from a file that only this user can have written; else empty."""
    with contextlib.suppress(OSError):
        folder = os.open(_cache(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _private(os.fstat(folder)):
                return b""
            file = os.open(key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with open(file, "rb") as stream:
                return stream.read(_KEPT_BYTES) if _private(os.fstat(file)) else b""
        finally:
            os.close(folder)
    return b""


def _remember(key: str, answer: bytes) -> None:
    # a cache: what cannot be kept is asked again
    with contextlib.suppress(OSError):
        path = _cache()
        os.makedirs(path, mode=0o700, exist_ok=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _private(os.fstat(folder)):
                return
            part = f"{key}.{os.getpid()}.{threading.get_ident()}"
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            with open(file, "wb") as stream:
                stream.write(answer)
            os.replace(part, key, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)


def _private(info: os.stat_result) -> bool:
    return info.st_uid == os.geteuid() and not info.st_mode & 0o022
