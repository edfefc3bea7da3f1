"""What one sandboxed run takes and gives: plain frozen data.

Knows nothing of tools, protocols or the server, and does no I/O.
"""

from __future__ import annotations

import errno
from typing import Literal

import msgspec

Language = Literal["python", "nodejs", "bun"]
BackendChoice = Literal["auto", "bubblewrap", "nsjail"]
Kind = Literal["ok", "error", "timeout", "limit", "refused", "cancelled", "unavailable"]
LimitName = Literal["wall", "cpu", "memory", "processes", "files", "stdout", "stderr", "stdin"]
ErrorType = Literal["ScriptError", "SecurityError", "TimeoutError", "ResourceError", "SandboxUnavailable", ""]

STDERR_DRAIN_BYTES = 16 * 1024 * 1024
"""A script that writes more than this to stderr is ended, whatever is kept of it."""


class Limits(msgspec.Struct, frozen=True):
    """What one run may use. Milliseconds, seconds, bytes, counts."""

    wall_ms: int = 30_000
    cpu_seconds: int = 60
    memory_bytes: int = 268_435_456
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 67_108_864
    tmp_bytes: int = 67_108_864
    stdin_bytes: int = 1_048_576
    stdout_bytes: int = 1_048_576
    stderr_bytes: int = 262_144


class Interpreters(msgspec.Struct, frozen=True):
    """Interpreter paths that the operator set; None means look in the known places."""

    python: str | None = None
    nodejs: str | None = None
    bun: str | None = None
    uv: str | None = None
    python_runner: Literal["python", "uv"] = "python"
    """`uv`: Python scripts are started by `uv run`."""
    nodejs_runner: Literal["node", "bun"] = "node"
    """`bun`: Node.js scripts are run by `bun run`."""


PROGRAM = "{program}"
"""Stands in `Interpreter.runner` for the program that runs the script: an environment's own may take its place."""


class Interpreter(msgspec.Struct, frozen=True):
    """`path` as the sandbox sees it; `binds` are (host path, path inside) pairs shown read-only.

    `language` is the kind of program that it is: a Node.js script that bun runs has "bun". `runner` are words that stand
    before the program and its options (`uv run …`), with `PROGRAM` for its path. `file` is the real file on the host.
    """

    language: Language
    path: str
    binds: tuple[tuple[str, str], ...] = ()
    runner: tuple[str, ...] = ()
    file: str = ""

    def command(self, program: str) -> tuple[str, ...]:
        """The words that start `program`, this interpreter or an environment's, by the operator's choice of runner."""
        return (*(program if word == PROGRAM else word for word in self.runner), program)


class Environment(msgspec.Struct, frozen=True):
    """A finished dependency environment, shown read-only at `/env`.

    `path` is its folder on the host. Python: a virtual environment, whose `bin/python` runs the script. JavaScript:
    a folder with `node_modules`, which also stands as `/node_modules`, where Node and bun look after the script's own.
    """

    kind: Literal["python", "javascript"]
    path: str


class Program(msgspec.Struct, frozen=True):
    """A program of the operator's to run instead of a script, such as an installer or a runtime of the operator's own.

    `command` is what runs inside, with `/tool` as its folder; `binds` are (host path, path inside) shown read-only for it.
    """

    command: tuple[str, ...]
    binds: tuple[tuple[str, str], ...] = ()


class Mount(msgspec.Struct, frozen=True):
    """A granted host path. `dest` empty: below `/tool` when inside the tool folder, else the same path.

    `own`: a working folder of the daemon's own that the caller has already given to the run's uid and looks through
    itself afterwards (it may be far too large to be walked twice per run).
    """

    path: str
    dest: str = ""
    own: bool = False


class SecretValue(msgspec.Struct, frozen=True):
    """A secret for the script, in the variable `name`; `as_file`: in a file, and `NAME_FILE` is its path."""

    name: str
    value: str
    as_file: bool = False

    def __repr__(self) -> str:
        """Without the value."""
        return f"SecretValue({self.name!r})"


class AddedHeader(msgspec.Struct, frozen=True):
    """A header that the egress proxy puts on plain requests to a host. `host` may name a port, `https`: the proxy speaks TLS to it."""

    host: str
    name: str
    value: str
    https: bool = False

    def __repr__(self) -> str:
        """Without the value."""
        return f"AddedHeader({self.host!r}, {self.name!r})"


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one script.

    `folder` is the tool folder as a real absolute path, shown read-only as `/tool`; `script` is relative to it (empty when
    a `program` is run that needs none).
    `read` and `write` are grants that the caller's policy has already allowed. A non-empty `hosts` opens the egress
    proxy for these names; without it there is no network at all. `env` is added to a minimal environment.
    """

    folder: str
    script: str
    language: Language
    project: str = ""
    """The root of the caller's project. A tool whose folder it is sees no history, settings, keys or passwords in it."""
    args: tuple[str, ...] = ()
    boot: str = ""
    """A program of the same language that is run in the script's place, with the script's path as its first argument."""
    stdin: bytes = b""
    limits: Limits = Limits()
    read: tuple[Mount, ...] = ()
    write: tuple[Mount, ...] = ()
    hosts: tuple[str, ...] = ()
    allow_cidrs: tuple[str, ...] = ()
    pin: tuple[tuple[str, str], ...] = ()
    """(name, address): these names are not looked up; the operator says where they are."""
    env: dict[str, str] = {}
    call_env: dict[str, str] = {}
    """Variables of this one call (a trace, say): set at the word to go, so that a sandbox that waits already can be used."""
    secrets: tuple[SecretValue, ...] = ()
    """Never on a command line of the host, and never in a sandbox that waits."""
    headers: tuple[AddedHeader, ...] = ()
    environment: Environment | None = None
    integrity: str = ""
    """`sha256-` and base64: the script must have this hash, and the bytes that were checked are the bytes that run."""
    program: Program | None = None
    interpreters: Interpreters = Interpreters()
    backend: BackendChoice = "auto"
    """Which program sandboxes. One that is named is never replaced by another."""
    uid: int | None = None
    """As root: run as this uid, which no account has, instead of one that no recent run used. For the daemon's own programs."""
    network_bytes: int = 67_108_864
    """What may pass the egress proxy, both directions together."""


class Denial(msgspec.Struct, frozen=True):
    """A target that the egress proxy refused to the script: `host:port`, and the reason that the script was told."""

    target: str
    reason: str


class SandboxInfo(msgspec.Struct, frozen=True):
    """Which sandbox a run was in."""

    backend: str = "bubblewrap"
    version: str = ""
    layers: tuple[str, ...] = ()
    warm: bool = False
    template: bool = False
    """A template of this tool's made the sandbox."""


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    `exit_code` is the number that the namespace reported, 128+n for a script that signal n ended. `signal` is that
    signal's name: sure from Linux 6.15 on, where the kernel tells how a process ended; before, an exit with 128+n is taken
    for it. `suspected` marks a `limit` that was read off the script's last words
    instead of being observed. `violations` names what was found and removed in the writable folders afterwards.
    """

    kind: Kind
    exit_code: int | None = None
    signal: str | None = None
    limit: LimitName | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    max_rss_bytes: int = 0
    message: str = ""
    remedy: str = ""
    error_type: ErrorType = ""
    suspected: bool = False
    denied_hosts: tuple[str, ...] = ()
    denials: tuple[Denial, ...] = ()
    """The same targets with their reasons, also when the script went on and succeeded."""
    reached_hosts: tuple[str, ...] = ()
    """`host:port` of what the proxy let through, each once."""
    violations: tuple[str, ...] = ()
    sandbox: SandboxInfo = SandboxInfo()


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this machine can sandbox, found by doing it once with the flags of a real run."""

    available: bool
    backend: str = "bubblewrap"
    version: str = ""
    path: str = ""
    layers: tuple[str, ...] = ()
    reason: str = ""
    remedy: str = ""
    memory: str = ""
    network: str = ""
    pids: str = ""
    notes: tuple[str, ...] = ()
    passing: bool = False
    """Not available for want of something that may be there the next moment."""


_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC})


def lacks(error: OSError) -> bool:
    """Whether it is a want of something that may be there again the next moment: it says nothing about what was asked for,
    so nobody may take it for a refusal, or for "there is none"."""
    return error.errno in _LACKS


class Refusal(Exception):  # noqa: N818 - an outcome, named as the outcome is
    """Raised before anything runs: the request cannot be granted. Carries a message and a remedy."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class PathRefused(Refusal):
    """A path that leaves its folder, runs through a link, or names something that is no plain file or folder."""


class Unavailable(Exception):  # noqa: N818 - as above
    """Raised when no sandbox can be set up: nothing is run instead (ruling 39).

    `passing`: for want of something that may be there the next moment; it says nothing about the machine.
    """

    def __init__(self, reason: str, remedy: str = "", *, passing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.passing = passing


def size(count: int) -> str:
    """A number of bytes as a person reads it: `256 MiB`, `1000 bytes`."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step and count % (step // 16) == 0:
            return f"{count / step:g} {unit}"
    return f"{count} bytes"
