"""The values of the secrets of one daemon: read when a call needs them, kept only where reading is dear.

A variable and a file are read at each call, so that a rotated key holds from the next call on. What a program or the keyring said is
kept for ``KEPT_SECONDS``. Must not know who is given a value.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tamis.server.runtime.observe.masking import spelled
from tamis.server.runtime.policy.secrets import SecretFault
from tamis.server.runtime.settings.config import Secret
from tamis.server.runtime.settings.files import read_bounded

# Where a secret's value comes from: a variable of this process, a file, a program of the operator's, the desktop's keyring. Reads one value and says
# why it cannot.


MAX_SECRET_BYTES = 1_048_576
COMMAND_SECONDS = 10.0
_PATH = "/usr/local/bin:/usr/bin:/bin"


class SecretError(Exception):
    """Why a secret has no value that can be used; ``field`` is the setting below the secret that says where it is."""

    def __init__(self, reason: str, field: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field
        self.remedy = remedy


def kind_of(secret: Secret) -> str:
    """Which of its sources a secret names; empty for none, or for several, which is a fault of the settings."""
    sources = [field for field in ("env", "file", "command", "keyring") if getattr(secret, field)]
    return sources[0] if len(sources) == 1 else ""


def source_of(secret: Secret) -> str:
    """Where a secret comes from, in words that hold no value."""
    kind = kind_of(secret)
    if kind == "command":
        return f"command {secret.command[0]}"
    return f"{kind} {getattr(secret, kind)}" if kind else "no source"


def read_secret(secret: Secret, root: Path) -> str:
    """The value of a secret, never empty. Raises ``SecretError``. Takes ``COMMAND_SECONDS`` at most, and waits that long.

    One newline at the end of a file's and of a program's text is not part of it.
    """
    kind = kind_of(secret)
    if kind == "env":
        data = _of_variable(secret.env)
    elif kind == "file":
        data = _without_newline(_of_file(secret.file, root))
    elif kind == "command":
        data = _without_newline(_of_command(secret.command))
    elif kind == "keyring":
        data = _of_keyring(secret.keyring)
    else:
        raise SecretError("it names no source, or several", "", "say exactly one of env, file, command and keyring")
    return _text(data, kind)


def _text(data: bytes, kind: str) -> str:
    remedy = "store the key as one plain text"
    if len(data) > MAX_SECRET_BYTES:
        raise SecretError(f"its value is larger than {MAX_SECRET_BYTES} bytes", kind, remedy)
    if not data:
        raise SecretError("its value is empty", kind, "store the key there")
    if b"\0" in data:
        raise SecretError("its value holds a NUL byte, which no variable can", kind, remedy)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SecretError(f"its value is not UTF-8 at byte {error.start}", kind, remedy) from None


def _without_newline(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r") if data.endswith(b"\n") else data


def _of_variable(name: str) -> bytes:
    value = os.environb.get(os.fsencode(name))
    if value is None:
        reason = f"the environment variable {name} is not set"
        raise SecretError(reason, "env", f"set {name} where Tamis is started")
    return value


def _of_file(name: str, root: Path) -> bytes:
    path = root / os.path.expanduser(name)
    if not os.path.isabs(os.path.expanduser(name)) and not _is_inside(path, root):
        # a folder must not choose by a link which file of the operator's is read
        raise SecretError(f"the file {name} leads out of the root", "file", "write its absolute path")
    try:
        return read_bounded(path, MAX_SECRET_BYTES + 3)
    except OSError as error:
        raise SecretError(f"the file {path} cannot be read: {error.strerror}", "file", "write the key there") from None
    except ValueError:
        raise SecretError("no file can have this name", "file", "write a path") from None


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def is_open_to_others(secret: Secret, root: Path) -> bool:
    """Whether the file of a secret can be read by other users of the machine."""
    if kind_of(secret) != "file":
        return False
    with suppress(OSError, ValueError):
        return bool(os.stat(root / os.path.expanduser(secret.file)).st_mode & 0o044)
    return False


def _of_command(words: tuple[str, ...]) -> bytes:
    """What a program of the operator's prints: no shell, nothing on its input, a small environment, bounded time and output."""
    if not os.path.isabs(words[0]):
        raise SecretError("the program's path is not absolute", "command", "write the absolute path of the program")
    home = os.path.expanduser("~")
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": _PATH, "HOME": home, "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
            close_fds=True,
        )
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        text = f"the program {words[0]} cannot be started: {cause}"
        raise SecretError(text, "command", "name a program that is there") from None
    data, ended = _printed(process)
    if not ended:
        text = f"the program {words[0]} did not end within {COMMAND_SECONDS:g} s, or printed too much"
        raise SecretError(text, "command", "see by hand what it waits for")
    if process.returncode:
        text = f"the program {words[0]} ended with exit code {process.returncode}"
        raise SecretError(text, "command", "run it by hand to see why")
    return data


def _printed(process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
    """What a program prints, and whether it ended by itself; then nothing of it is left."""
    assert process.stdout is not None
    data = bytearray()
    deadline = time.monotonic() + COMMAND_SECONDS
    ended = False
    try:
        with process.stdout as stream, selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while len(data) <= MAX_SECRET_BYTES + 2 and selector.select(max(0.0, deadline - time.monotonic())):
                piece = os.read(stream.fileno(), 65_536)
                if not piece:
                    process.wait(max(0.0, deadline - time.monotonic()))
                    ended = True
                    break
                data += piece
    except subprocess.TimeoutExpired:
        pass
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return bytes(data), ended


def _of_keyring(name: str) -> bytes:
    service, _, user = name.partition("/")
    try:
        # an extra, which has no types where it is not installed
        keyring: Any = importlib.import_module("keyring")
    except ImportError:
        text = "the library keyring is not installed"
        raise SecretError(text, "keyring", "install tamis with its extra: pip install 'tamis[keyring]'") from None
    try:
        value: object = keyring.get_password(service, user)
    except Exception as error:
        text = f"the keyring cannot be asked: {type(error).__name__}"
        raise SecretError(text, "keyring", "unlock it, or name another source") from None
    if not isinstance(value, str):
        raise SecretError(f"the keyring has no password for '{name}'", "keyring", f"keyring set {service} {user}")
    return value.encode("utf-8", "surrogateescape")


KEPT_SECONDS = 300.0


class Value(msgspec.Struct, frozen=True):
    """A secret's value, and how it may be spelled in what is told of a call."""

    text: str
    spellings: tuple[str, ...]

    def __repr__(self) -> str:
        """Without the value."""
        return "Value()"


class SecretUnusable(Exception):  # noqa: N818 - an outcome, named as the outcome is
    """A secret that is defined and granted has no value."""

    def __init__(self, fault: SecretFault) -> None:
        super().__init__(fault.sentence)
        self.fault = fault


class SecretValues:
    """All methods are called on the daemon's loop."""

    def __init__(self) -> None:
        self._known: dict[str, Value] = {}
        self._asked: dict[Secret, tuple[float, str]] = {}
        self._locks: dict[Secret, asyncio.Lock] = {}

    def forget(self) -> None:
        """Read everything again: the settings were."""
        self._known.clear()
        self._asked.clear()
        self._locks.clear()

    async def value(self, name: str, secret: Secret, root: Path) -> Value:
        """A secret's value now. Raises ``SecretUnusable``."""
        try:
            text = await self._text(secret, root)
        except SecretError as error:
            setting = f"secrets.{name}.{error.field}" if error.field else f"secrets.{name}"
            fault = SecretFault(name, "secretUnusable", f"{setting}: {error.reason}", setting, error.remedy)
            raise SecretUnusable(fault) from None
        return self._spelled(name, text)

    def at_hand(self, name: str, secret: Secret, root: Path) -> Value | None:
        """A secret's value where it can be had at once: of a variable, a file, or kept from a program or the keyring; else None."""
        if kind_of(secret) in ("command", "keyring"):
            text = self._kept(secret)
        else:
            try:
                text = read_secret(secret, root)
            except SecretError:
                text = None
        return None if text is None else self._spelled(name, text)

    def _spelled(self, name: str, text: str) -> Value:
        known = self._known.get(name)
        if known is None or known.text != text:
            known = self._known[name] = Value(text, spelled((text,)))
        return known

    async def _text(self, secret: Secret, root: Path) -> str:
        if kind_of(secret) not in ("command", "keyring"):
            return read_secret(secret, root)
        # several calls at once ask once
        async with self._locks.setdefault(secret, asyncio.Lock()):
            kept = self._kept(secret)
            if kept is not None:
                return kept
            text = await asyncio.to_thread(read_secret, secret, root)
            self._asked[secret] = (time.monotonic() + KEPT_SECONDS, text)
            return text

    def _kept(self, secret: Secret) -> str | None:
        kept = self._asked.get(secret)
        return kept[1] if kept is not None and time.monotonic() < kept[0] else None
