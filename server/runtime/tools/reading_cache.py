"""What reading the manifests of a root gave, kept from one process to the next: reading ten thousand takes seconds, asking for their times none.

A file in the user's own cache folder, one for each root. It only ever holds what reading gave, as plain data, and counts for a file as long as
that file's stamp is the same. **A cache that is anybody else's, open to others, damaged, of another version or inside a folder that is read is
as none**: nothing in a folder can bring one along. What changed shortly before it was read is not kept, because file systems count time in
steps, and a second change within one leaves no sign. What lists show of a manifest is read at once, the rest when it is asked for. Never
raises. Must not know what a tool is for.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tamis import __version__
from tamis.protocols.manifest import reading
from tamis.protocols.manifest.reading import Execution, Handler, Manifest, SecurityContext
from tamis.protocols.model import Example
from tamis.protocols.schema.words import is_object
from tamis.server.runtime.store.folders import cache_folder, make_private
from tamis.server.runtime.tools.loader import FileStamp, Listing
from tamis.server.runtime.tools.tool import RegistryError

MAX_BYTES = 256 * 1024 * 1024
MAX_ENTRY_BYTES = 256 * 1024
MAX_CACHES = 16
"""Roots that have a cache; the one that was written longest ago makes room."""
FOLDER = "manifests"
_FORMAT = 2
_HANDLERS: dict[str, type[Any]] = {kind.__name__: kind for kind in Handler.__args__}


class Kept(msgspec.Struct, frozen=True):
    """What one file gave: a manifest, or the error that stands for it."""

    manifest: Manifest | None = None
    error: RegistryError | None = None


class KeptBrief(msgspec.Struct, array_like=True, eq=False):
    """What lists and registries ask of a manifest."""

    tool_id: str
    version: str
    display_name: str
    description: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    agent_callable: bool | None
    dependencies: dict[str, str]
    vcp_command: str | None
    handler: Any
    """In the file the number of a handler, for most tools have one that others have too."""
    security_context: Any
    """In the file the number of one."""
    rest: bytes

    def whole(self) -> Manifest:
        """The manifest."""
        rest = _rest_decoder().decode(self.rest)
        parameters = rest.raw.get("parameters")
        return Manifest(
            self.tool_id,
            self.display_name,
            self.description,
            self.version,
            self.handler,
            parameters=parameters if is_object(parameters) else None,
            output=rest.raw.get("output"),
            security_context=self.security_context,
            examples=tuple(Example(**words) for words in rest.examples),
            tags=self.tags,
            aliases=self.aliases,
            agent_callable=self.agent_callable,
            protocol_config=rest.protocol_config,
            execution=rest.execution,
            dependencies=self.dependencies,
            env=rest.env,
            raw=rest.raw,
        )


class _Rest(msgspec.Struct, array_like=True):
    """What else a manifest holds, as plain data; schemas are taken from ``raw``, where they stand."""

    examples: list[dict[str, Any]]
    protocol_config: dict[str, str]
    execution: Execution
    env: dict[str, str]
    raw: dict[str, Any]


class KeptFile(msgspec.Struct, array_like=True, eq=False):
    """A file with what it gave."""

    path: str
    stamp: FileStamp
    brief: KeptBrief | None
    error: RegistryError | None


class KeptRoot(msgspec.Struct, array_like=True, eq=False):
    """What is kept of a root. Each file and folder counts while its stamp is the same."""

    handlers: list[tuple[str, dict[str, Any]]] = []
    contexts: list[SecurityContext] = []
    folders: dict[str, Listing] = {}
    files: list[KeptFile] = []


def load(root: Path, searched: Iterable[str], how: object) -> KeptRoot:
    """What is kept of a root that is read in this way (``how``); empty where nothing is. ``searched``: the folders that are read."""
    folder = _folder(root, searched)
    data = None if folder is None else _own_bytes(folder, _file_name(root))
    head = _head(root, how)
    if data is None or not data.startswith(head):
        return KeptRoot()
    body = memoryview(data)[len(head) :]
    if zlib.crc32(body[4:]).to_bytes(4, "big") != bytes(body[:4]):
        return KeptRoot()
    try:
        kept = _decoder().decode(body[4:])
        handlers: list[Any] = [_HANDLERS[kind](**words) for kind, words in kept.handlers]
        for file in kept.files:
            brief = file.brief
            if brief is not None:
                brief.handler = handlers[brief.handler]
                brief.security_context = kept.contexts[brief.security_context]
    except (msgspec.MsgspecError, RecursionError, KeyError, IndexError, TypeError, ValueError):
        return KeptRoot()
    return kept


def store(
    root: Path,
    searched: Iterable[str],
    how: object,
    files: Mapping[str, tuple[FileStamp, Kept]],
    folders: Mapping[str, Listing],
) -> None:
    """Keeps these for the next process; where that cannot be, nothing is kept."""
    folder = _folder(root, searched)
    if folder is None:
        return
    writer = _Writer()
    entries: list[msgspec.Raw] = []
    total = 0
    for path, (stamp, known) in files.items():
        entry = writer.entry(path, stamp, known)
        if entry is None or len(entry) > MAX_ENTRY_BYTES:
            continue
        total += len(entry)
        if total > MAX_BYTES // 2:
            break
        entries.append(msgspec.Raw(entry))
    try:
        body = writer.encoder.encode([writer.handlers, writer.contexts, folders, entries])
    except (OverflowError, TypeError, ValueError):
        return
    try:
        make_private(folder.parent)
        make_private(folder)
        _write(folder, _file_name(root), _head(root, how) + zlib.crc32(body).to_bytes(4, "big") + body)
        _make_room(folder)
    except OSError:
        return


class _Writer:
    """Writes entries, and what they share once."""

    def __init__(self) -> None:
        self.encoder = msgspec.msgpack.Encoder()
        self.handlers: list[msgspec.Raw] = []
        self.contexts: list[msgspec.Raw] = []
        self._numbers: dict[tuple[int, bytes], int] = {}

    def entry(self, path: str, stamp: FileStamp, known: Kept) -> bytes | None:
        """A file's entry; None for what this form cannot hold or would not give back as it was: that file is read each time."""
        encode = self.encoder.encode
        manifest = known.manifest
        try:
            if manifest is None:
                return encode(KeptFile(path, stamp, None, known.error))
            handler = manifest.handler
            written = encode((type(handler).__name__, _plain(handler)))
            brief = _brief(manifest, self._number(self.handlers, written), self._shared_context(manifest), encode)
            entry = encode(KeptFile(path, stamp, brief, known.error))
            again = _file_decoder().decode(entry).brief
            if again is None:
                return None
            again.handler, again.security_context = handler, manifest.security_context
            return entry if again.whole() == manifest else None
        except (msgspec.MsgspecError, OverflowError, RecursionError, TypeError, ValueError):
            return None

    def _shared_context(self, manifest: Manifest) -> int:
        return self._number(self.contexts, self.encoder.encode(manifest.security_context))

    def _number(self, table: list[msgspec.Raw], written: bytes) -> int:
        """The place of a value in a table, where it is put if it is new."""
        key = id(table), written
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(table)
            table.append(msgspec.Raw(written))
        return number


def _brief(manifest: Manifest, handler: int, context: int, encode: Callable[[object], bytes]) -> KeptBrief:
    rest = _Rest(
        [_plain(example) for example in manifest.examples],
        manifest.protocol_config,
        manifest.execution,
        manifest.env,
        manifest.raw,
    )
    return KeptBrief(
        manifest.tool_id,
        manifest.version,
        manifest.display_name,
        manifest.description,
        manifest.tags,
        manifest.aliases,
        manifest.agent_callable,
        manifest.dependencies,
        manifest.vcp_command,
        handler,
        context,
        encode(rest),
    )


def _folder(root: Path, searched: Iterable[str]) -> Path | None:
    """Where caches are; None where that is inside a folder that is read, whose content anybody may have made."""
    folder = cache_folder() / FOLDER
    real = os.path.realpath(folder)
    tops = (os.path.realpath(root), *(os.path.realpath(root / name) for name in searched))
    return None if any(real.startswith(top.rstrip("/") + "/") for top in tops) else folder


def _file_name(root: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]


def _head(root: Path, how: object) -> bytes:
    """What a cache must begin with to count: the form, what reads, how it reads, and of which root."""
    told = [_FORMAT, __version__, list(sys.version_info[:3]), _code(), repr(how), os.path.realpath(root)]
    return b"tamis" + hashlib.sha256(repr(told).encode("utf-8", "surrogateescape")).digest()


@functools.cache
def _code() -> str:
    """What tells that the code that reads is another: a clone changes without its version."""
    digest = hashlib.sha256()
    rooms = Path(reading.__file__).parent.parent
    for folder in (rooms, rooms / "manifest", rooms / "schema", rooms / "jsontext", Path(__file__).parent):
        try:
            with os.scandir(folder) as entries:
                files = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries)
        except OSError:
            files = []
        digest.update(repr([file for file in files if file[0].endswith(".py")]).encode())
    return digest.hexdigest()


def _own_bytes(folder: Path, name: str) -> bytes | None:
    """A file's content, if it and its folder are this user's and nobody else can write or read them."""
    try:
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _is_own(os.fstat(inside), stat.S_ISDIR):
                return None
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=inside)
        finally:
            os.close(inside)
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not _is_own(status, stat.S_ISREG) or status.st_size > MAX_BYTES:
                return None
            return stream.read(MAX_BYTES)
    except OSError:
        return None


def _is_own(status: os.stat_result, kind: Any) -> bool:
    return bool(kind(status.st_mode)) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _write(folder: Path, name: str, data: bytes) -> None:
    """Puts a file in the place of the one before; who reads meanwhile has one of the two whole."""
    path = folder / f".{name}.{secrets.token_hex(4)}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(data)
        os.replace(path, folder / name)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _make_room(folder: Path) -> None:
    """Takes away the oldest caches beyond their number, and what a writer that was killed left."""
    with os.scandir(folder) as entries:
        files = sorted(((entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries), reverse=True)
    here = [path for written, path in files if os.path.basename(path)[0] != "." or time.time() - written < 3600]
    for path in {path for _, path in files} - set(here[:MAX_CACHES]):
        os.unlink(path)


@functools.cache
def _decoder() -> msgspec.msgpack.Decoder[KeptRoot]:
    return msgspec.msgpack.Decoder(KeptRoot)


@functools.cache
def _file_decoder() -> msgspec.msgpack.Decoder[KeptFile]:
    return msgspec.msgpack.Decoder(KeptFile)


@functools.cache
def _rest_decoder() -> msgspec.msgpack.Decoder[_Rest]:
    return msgspec.msgpack.Decoder(_Rest)


def _plain(struct: msgspec.Struct) -> dict[str, Any]:
    values = msgspec.structs.asdict(struct)
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}
