"""Data of dependency environments: what was declared, how it is built, what became of it. No I/O.

The way of one environment: `prepare.detect` finds what a script's folder declares, the language's module (`python`,
`javascript`) turns that into a `Recipe`, the recipe's key names the environment in the `store`, and `build` carries the
recipe out where no environment of that key stands yet. `prepare` is the front door over all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import msgspec

from tamis.sandbox.model import BackendChoice, Interpreters, Language, RunOutcome

FORMAT = 1
"""Part of every key: raised when what an environment holds, or how it is built, changes its meaning."""

Kind = Literal["python", "javascript"]
Word = Literal["waiting", "resolving", "downloading", "installing", "bytecode", "ready"]
Cause = Literal[
    "declaration",  # the files that declare the dependencies cannot be used
    "refused",  # the operator's settings do not allow it
    "missing",  # no such package
    "version",  # no such version, or none for this interpreter
    "source",  # only a source distribution, and nothing may be built
    "hash",  # a file is not the one that was pinned
    "conflict",  # the requirements contradict each other
    "network",  # the index was not reached, or was denied
    "timeout",
    "disk",
    "off",  # installing is switched off and no environment is ready
    "installer",  # the installer is missing, failed otherwise, or its result is not what it should be
]


class DependencyFault(Exception):  # noqa: N818 - an outcome, named as the outcome is
    """Raised when no environment can be had.

    `message` is one sentence that names the package and the cause as far as they are known; `remedy` may be empty;
    `text` is the installer's own words, shortened. `denied` are `host:port` that the proxy refused. A `passing` fault
    says nothing about the declaration and is not remembered.
    """

    def __init__(
        self,
        message: str,
        *,
        cause: Cause,
        remedy: str = "",
        package: str = "",
        text: str = "",
        denied: tuple[str, ...] = (),
        passing: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.cause: Cause = cause
        self.remedy = remedy
        self.package = package
        self.text = text
        self.denied = denied
        self.passing = passing


class Cancelled(Exception):  # noqa: N818 - as above
    """Raised when the caller cancelled while an environment was waited for or built."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator's settings say about environments.

    `store` is the folder of all environments (private to this user). `indexes` is the operator's list of index URLs;
    empty: those that the package managers of this user are configured for. `allow_build` is already both: the policy's
    and the tool's. `prune` keeps the finished environments below `cache_bytes`.
    """

    store: str
    indexes: tuple[str, ...] = ()
    allow_build: bool = False
    allow_cidrs: tuple[str, ...] = ()
    pin: tuple[tuple[str, str], ...] = ()
    wall_ms: int = 120_000
    cache_bytes: int = 4_294_967_296
    interpreters: Interpreters = Interpreters()
    backend: BackendChoice = "auto"


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What a script's folder declares, read through the no-follow walk with every size bounded.

    `form` is the name of the file that decides (`requirements.txt`, `uv.lock`, `package.json` …). `files` are the pieces
    that the builder sees, as (path relative to `/tool`, content): read once, so that what was checked is what is built.
    """

    kind: Kind
    form: str
    files: tuple[tuple[str, bytes], ...]


class Finding(msgspec.Struct, frozen=True):
    """A remark on a declaration: `file`, one-based `line` (0: the whole file), `message`."""

    file: str
    line: int
    message: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a program in a sandbox of its own while an environment is built.

    Inside: the recipe's files at `/tool` (read-only, the working directory), the environment at `/env` (writable), `/tmp`.
    `cache`: the installer's download cache is at `/cache`, writable: only for steps in which no foreign code can run.
    `network`: the recipe's hosts are reachable. `command[0]` is an absolute path inside; `binds` are (host path, path
    inside), read-only.
    """

    name: str
    command: tuple[str, ...]
    binds: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] = {}
    network: bool = False
    cache: bool = False
    progress: Word | None = None
    """Reported when the step begins."""
    language: Language = "python"
    """Whose limits fit the program: Node and bun reserve far more memory than they use."""
    memory_bytes: int = 1_073_741_824
    patient: Mapping[str, str] | None = None
    """Variables for another try, in which the installer asks an index that did not answer again: not where the proxy refused it, which
    would refuse it again."""
    offline: Mapping[str, str] | None = None
    """Variables for a second try without network when the first did not reach the index: the download cache may suffice."""
    offline_first: bool = False
    """Try without network first: what is asked for is exact, so that the cache has either this or nothing."""
    optional: bool = False
    """A failure of this step spoils nothing that matters."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How one environment is built, and all that decides what will be in it.

    `identity` is what the key is made of: interpreter, installer, declaration, options, indexes: everything that could
    lead to another result, as JSON-like data. Whether it may be reached today (pins, address ranges, time) is not in it.
    `cache` names the shared download cache; empty, or a recipe that may run build code (`private_cache`): a fresh one
    that is thrown away. `findings` are the lint's remarks.
    """

    kind: Kind
    form: str
    identity: Mapping[str, object]
    files: tuple[tuple[str, bytes], ...]
    steps: tuple[Step, ...]
    hosts: tuple[str, ...] = ()
    cache: str = ""
    private_cache: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def key(self) -> str:
        """The environment's name in the store: 40 hexadecimal digits."""
        content = msgspec.json.encode([FORMAT, self.kind, self.identity], order="deterministic")
        return hashlib.sha256(content).hexdigest()[:40]


class Done(msgspec.Struct, frozen=True):
    """A step that ended well: what it wrote (bounded)."""

    name: str
    stdout: bytes
    stderr: bytes


class Finished(msgspec.Struct, frozen=True):
    """What the language's module says of a built tree: the packages in it, and the lock that was resolved."""

    packages: tuple[tuple[str, str], ...] = ()
    lock: bytes = b""


class Maker(Protocol):
    """What a language's module brings; modules are used as objects of this shape (`python`, `javascript`).

    Beside these it has ``detect(folder: declared.Folder) -> Declared | None``, which must cost next to nothing where
    nothing is declared.
    """

    def recipe(self, declared: Declared, options: Options) -> Recipe:
        """The way to build what was declared. Raises `DependencyFault`; does no run and no network."""
        ...

    def explain(self, recipe: Recipe, step: Step, outcome: RunOutcome) -> DependencyFault:
        """What a failed step means, in words that name the package and the cause."""
        ...

    def finish(self, recipe: Recipe, tree: str, done: tuple[Done, ...]) -> Finished:
        """Looks at a built tree (never following a link) before it is taken. Raises `DependencyFault`."""
        ...

    def progress(self, step: Step, text: str) -> tuple[Word, int] | None:
        """What a piece of a step's output says about where it stands; None: nothing."""
        ...


class Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`meta.json` beside a finished environment."""

    format: int
    key: str
    kind: Kind
    form: str
    created: float
    """Seconds since the epoch."""
    build_ms: float
    bytes: int
    entries: int
    packages: tuple[tuple[str, str], ...] = ()
    identity: Mapping[str, object] = {}


class Progress(msgspec.Struct, frozen=True):
    """Where a build stands. `count` is a number of packages, or -1 where none is known."""

    word: Word
    count: int = -1

    @property
    def text(self) -> str:
        """For a person: `installing 8 packages`."""
        if self.count < 0 or self.word == "ready":
            return self.word
        return f"{self.word} {self.count} package{'' if self.count == 1 else 's'}"


OnProgress = Callable[[Progress], None]


def tail(stderr: bytes, most_chars: int = 1_500) -> str:
    """The end of an installer's words, in whole lines."""
    text = stderr.decode("utf-8", "replace").strip()
    if len(text) <= most_chars:
        return text
    return "…" + text[-most_chars:].partition("\n")[2]
