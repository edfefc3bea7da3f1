"""What reading the manifests of a root gave, kept from one process to the next: reading ten thousand takes seconds, asking for their times none.

A file in the user's own cache folder, one for each root. It only ever holds what reading gave, as plain data, and counts for a file as long as
that file's stamp is the same. **A cache that is anybody else's, open to others, damaged, of another version or inside a folder that is read is
as none**: nothing in a folder can bring one along. What changed shortly before it was read is not kept, because file systems count time in
steps, and a second change within one leaves no sign. Never raises. Must not know what a tool is for.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import os
import secrets
import stat
import sys
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tamis import __version__
from tamis.protocols.manifest import reading
from tamis.protocols.manifest.reading import Execution, Handler, Manifest, SecurityContext
from tamis.protocols.model import Example
from tamis.protocols.schema.words import is_object
from tamis.server.runtime.store.folders import cache_folder, make_private
from tamis.server.runtime.tools.loader import FileStamp
from tamis.server.runtime.tools.tool import RegistryError

MAX_BYTES = 256 * 1024 * 1024
MAX_ENTRY_BYTES = 256 * 1024
MAX_CACHES = 16
"""Roots that have a cache; the one that was written longest ago makes room."""
FOLDER = "manifests"
_FORMAT = 1
_HANDLERS: dict[str, type[Any]] = {kind.__name__: kind for kind in Handler.__args__}


class Kept(msgspec.Struct, frozen=True):
    """What one file gave: a manifest, or the error that stands for it."""

    manifest: Manifest | None = None
    error: RegistryError | None = None


class _Record(msgspec.Struct, array_like=True):
    """A manifest as plain data; schemas are taken from ``raw``, where they stand."""

    tool_id: str
    display_name: str
    description: str
    version: str
    handler: tuple[str, dict[str, Any]]
    security_context: SecurityContext
    examples: list[dict[str, Any]]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    agent_callable: bool | None
    protocol_config: dict[str, str]
    execution: Execution
    dependencies: dict[str, str]
    env: dict[str, str]
    raw: dict[str, Any]


class _Entry(msgspec.Struct, array_like=True):
    path: str
    stamp: FileStamp
    record: _Record | None
    error: RegistryError | None


def load(root: Path, searched: Iterable[str], how: object) -> dict[str, tuple[FileStamp, Kept]]:
    """What is kept of a root that is read in this way (``how``), by path; empty where nothing is. ``searched``: the folders that are read."""
    folder = _folder(root, searched)
    data = None if folder is None else _own_bytes(folder, _file_name(root))
    head = _head(root, how)
    if data is None or not data.startswith(head):
        return {}
    body = memoryview(data)[len(head) :]
    if zlib.crc32(body[4:]).to_bytes(4, "big") != bytes(body[:4]):
        return {}
    by_path: dict[str, tuple[FileStamp, Kept]] = {}
    try:
        for entry in _decoder().decode(body[4:]):
            manifest = None if entry.record is None else _manifest(entry.record)
            by_path[entry.path] = entry.stamp, Kept(manifest, entry.error)
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError, ValueError):
        return {}
    return by_path


def store(root: Path, searched: Iterable[str], how: object, kept: Mapping[str, tuple[FileStamp, Kept]]) -> None:
    """Keeps these for the next process; where that cannot be, nothing is kept."""
    folder = _folder(root, searched)
    if folder is None:
        return
    encoder = msgspec.msgpack.Encoder()
    entries: list[msgspec.Raw] = []
    total = 0
    for path, (stamp, known) in kept.items():
        try:
            record = None if known.manifest is None else _record(known.manifest)
            entry = encoder.encode(_Entry(path, stamp, record, known.error))
        except (msgspec.MsgspecError, OverflowError, RecursionError, TypeError, ValueError):
            continue  # a number or a text that this form has not: the file is read each time
        if len(entry) > MAX_ENTRY_BYTES:
            continue
        total += len(entry)
        if total > MAX_BYTES - 4096:
            break
        entries.append(msgspec.Raw(entry))
    body = encoder.encode(entries)
    try:
        make_private(folder.parent)
        make_private(folder)
        _write(folder, _file_name(root), _head(root, how) + zlib.crc32(body).to_bytes(4, "big") + body)
        _make_room(folder)
    except OSError:
        return


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
def _decoder() -> msgspec.msgpack.Decoder[list[_Entry]]:
    return msgspec.msgpack.Decoder(list[_Entry])


def _record(manifest: Manifest) -> _Record:
    fields: dict[str, Any] = {name: getattr(manifest, name) for name in _Record.__struct_fields__}
    handler = manifest.handler
    fields["handler"] = (type(handler).__name__, _plain(handler))
    fields["examples"] = [_plain(example) for example in manifest.examples]
    return _Record(**fields)


_fields_of = operator.attrgetter(*_Record.__struct_fields__)


def _manifest(record: _Record) -> Manifest:
    fields: dict[str, Any] = dict(zip(_Record.__struct_fields__, _fields_of(record), strict=True))
    kind, words = record.handler
    fields["handler"] = _HANDLERS[kind](**words)
    fields["examples"] = tuple(Example(**words) for words in record.examples)
    parameters = record.raw.get("parameters")
    return Manifest(
        **fields,
        parameters=parameters if is_object(parameters) else None,
        output=record.raw.get("output"),
    )


def _plain(struct: msgspec.Struct) -> dict[str, Any]:
    values = msgspec.structs.asdict(struct)
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}
