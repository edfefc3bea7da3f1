"""``File.Write``, ``File.Append`` and ``File.ApplyEdit`` (seed 002 §5): text files in the folders that a call may write.

Which folders those are was decided before: they are the call's rights. Here a target is found below one of them component by
component, without following a link, and written so that readers see the old text or the new one. Arguments are looked at again (D82).
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import secrets
import stat
import threading
from collections.abc import Callable, Generator
from typing import Any, cast

import msgspec

from tamis.protocols.observation import plain
from tamis.sandbox.model import Refusal
from tamis.sandbox.paths.walk import open_absolute, relative_parts
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.policy.path_grants import DEFINING_FILES, Place, hidden_fault, inside, place_of, write_fault
from tamis.server.runtime.policy.resources import SCHEME, ResourceError, is_resource, place_of_uri
from tamis.server.runtime.settings.files import can_be_path

# Replacing a piece of a text: the piece must be found exactly, or the answer says where the nearest stands. Pure.


MAX_SHOWN_LINES = 8
_MAX_COMPARED_LINES = 20_000
_MAX_LINE_CHARS = 160
_LEAST_LIKENESS = 0.6


class Edited(msgspec.Struct, frozen=True):
    """The text after an edit: how many pieces were replaced, and the first line that changed, from 1."""

    text: str
    replaced: int
    line: int


class DoesNotFit(ValueError):  # noqa: N818 (an outcome, not a fault)
    """Why an edit cannot be applied, with the lines where to look."""


def edited(text: str, search: str, replace: str, *, every: bool = False) -> Edited:
    """Puts ``replace`` in the place of ``search``, which stands exactly once, or wherever it stands with ``every``.

    A text with Windows line ends is searched with them, and keeps them. Raises ``DoesNotFit``.
    """
    if "\r\n" in text and "\r\n" not in search:
        search, replace = search.replace("\n", "\r\n"), replace.replace("\r\n", "\n").replace("\n", "\r\n")
    if search == replace:
        raise DoesNotFit("search_string and replace_string are the same text: nothing would change")
    starts = _starts(text, search)
    if not starts:
        raise DoesNotFit(_why_absent(text, search))
    if len(starts) > 1 and not every:
        lines = [str(_line(text, at)) for at in starts[:MAX_SHOWN_LINES]]
        more = " and more" if len(starts) > MAX_SHOWN_LINES else ""
        raise DoesNotFit(
            f"search_string stands {len(starts)} times in the file, at the lines {', '.join(lines)}{more}; "
            "give more of the text around the one that is meant, or replace_all"
        )
    return Edited(text.replace(search, replace), len(starts), _line(text, starts[0]))


def _starts(text: str, search: str) -> list[int]:
    starts: list[int] = []
    at = text.find(search)
    while at >= 0:
        starts.append(at)
        at = text.find(search, at + len(search))
    return starts


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _why_absent(text: str, search: str) -> str:
    wanted = [" ".join(line.split()) for line in search.splitlines()]
    lines = text.splitlines()
    shown = [" ".join(line.split()) for line in lines[:_MAX_COMPARED_LINES]]
    while wanted and not wanted[0]:
        wanted.pop(0)
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return "search_string holds only blanks that do not stand so in the file"
    for number in range(len(shown) - len(wanted) + 1):
        if shown[number : number + len(wanted)] == wanted:
            return (
                f"search_string stands at line {number + 1} only with other blanks or indentation; "
                f"the line is {_quoted(lines[number])}"
            )
    near = difflib.get_close_matches(wanted[0][:_MAX_LINE_CHARS], _comparable(shown), 1, _LEAST_LIKENESS)
    if near:
        number = next(n for n, line in enumerate(shown) if line[:_MAX_LINE_CHARS] == near[0])
        return f"search_string does not stand in the file; the nearest to its first line is line {number + 1}: {_quoted(lines[number])}"
    return f"search_string does not stand in the file, which has {len(lines)} lines, nor anything like its first line"


def _comparable(lines: list[str]) -> list[str]:
    """The lines that are compared by likeness, which takes time: so many at most."""
    return [line[:_MAX_LINE_CHARS] for line in lines if line][:2_000]


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _MAX_LINE_CHARS else line[: _MAX_LINE_CHARS - 1] + "…")


_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# What decides which tools there are, beside what decides how a script runs.
_DEFINING_ENDS = (".tool.json", ".tool.jsonc", ".workflow.json")


class Target(msgspec.Struct, frozen=True):
    """A file that a call may write: ``relative`` below the real folder ``top``, and how results name it."""

    top: str
    relative: str
    shown: str


class FileError(Exception):
    """Why a file cannot be written; ``secure`` where the call may not, so that nothing but another target helps."""

    def __init__(self, text: str, *, secure: bool = False) -> None:
        super().__init__(text)
        self.secure = secure


class Changed(msgspec.Struct, frozen=True):
    """What a file is after a change."""

    size: int
    created: bool


async def write(call: Invocation) -> dict[str, Any]:
    """``File.Write``."""
    content = _text(call, "content")
    target = _target(call)
    changed = await _done(
        call, lambda hold: replace_file(target, lambda _old: content.encode(), hold, _most(call), make_folders=True)
    )
    return {"path": target.shown, "bytes": changed.size, "created": changed.created}


async def append(call: Invocation) -> dict[str, Any]:
    """``File.Append``."""
    content = _text(call, "content")
    new_line = call.args.get("new_line") is True
    target = _target(call)
    changed = await _done(
        call, lambda hold: append_to_file(target, content.encode(), hold, _most(call), new_line=new_line)
    )
    return {"path": target.shown, "bytes": changed.size, "created": changed.created}


async def apply_edit(call: Invocation) -> dict[str, Any]:
    """``File.ApplyEdit``."""
    search, replace = _text(call, "search_string", empty=False), _text(call, "replace_string")
    every = call.args.get("replace_all") is True
    target = _target(call)
    details: dict[str, Any] = {}

    def edit(old: bytes | None) -> bytes:
        if old is None:
            raise FileError(f"there is no file {target.shown}; File.Write makes one")
        try:
            text = old.decode("utf-8")
        except UnicodeDecodeError:
            raise FileError(f"{target.shown} is no UTF-8 text") from None
        try:
            outcome = edited(text, search, replace, every=every)
        except DoesNotFit as problem:
            raise FileError(f"{target.shown}: {problem}") from None
        details.update(replaced=outcome.replaced, line=outcome.line)
        return outcome.text.encode()

    changed = await _done(call, lambda hold: replace_file(target, edit, hold, _most(call)))
    return {"path": target.shown, "bytes": changed.size, **details}


def _text(call: Invocation, name: str, *, empty: bool = True) -> str:
    """An argument as text (D82: the schema of a manifest that names the service may have let anything through)."""
    value = call.args.get(name)
    fault = ""
    if not isinstance(value, str):
        fault = "must be a text"
    elif not empty and not value:
        fault = "must not be empty"
    else:
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            fault = "holds half a character (a lone surrogate), which no file can hold"
        else:
            if size > _most(call):
                fault = f"has {size} bytes, more than the {_most(call)} of sandbox.fileBytes"
    if fault:
        raise Stopped("error", failure("ParameterValidationError", f"'{name}' {fault}"), started=True)
    return cast("str", value)


def _most(call: Invocation) -> int:
    most = call.context.settings.sandbox.file_bytes
    return min(most, call.tool.manifest.execution.limits.get("fileBytes", most))


async def _done(call: Invocation, work: Callable[[Callable[[], None]], Changed]) -> Changed:
    """``work`` in a thread, one change of a file after the other. It calls what it is given right before it changes anything: that
    raises when nobody waits for the change any more."""
    ended = threading.Event()

    def hold() -> None:
        if ended.is_set():
            raise FileError("the call has ended")

    def locked() -> Changed:
        with _ONE_AFTER_THE_OTHER:
            hold()
            change = work(hold)
        call.trail.note("file.changed", path=str(call.args.get("file_path")), **msgspec.to_builtins(change))
        return change

    try:
        return await asyncio.to_thread(locked)
    except FileError as error:
        kind = "SecurityError" if error.secure else "ServiceError"
        raise Stopped("blocked" if error.secure else "error", failure(kind, str(error)), started=True) from None
    except Refusal as refused:
        raise Stopped("blocked", failure("SecurityError", refused.message), started=True) from None
    except OSError as error:
        text = f"{plain(str(call.args.get('file_path')))}: {error.strerror or error}"
        raise Stopped("error", failure("ServiceError", text), started=True) from None
    finally:
        ended.set()


# A change reads, makes and replaces: two at once on one file would lose one. They are short.
_ONE_AFTER_THE_OTHER = threading.Lock()


# Which file a call means


def _target(call: Invocation) -> Target:
    try:
        return target_of(call, _text(call, "file_path", empty=False))
    except (FileError, ResourceError) as error:
        raise Stopped("blocked", failure("SecurityError", str(error)), started=True) from None
    except Refusal as refused:
        remedy = f"; {refused.remedy}" if refused.remedy else ""
        raise Stopped("blocked", failure("SecurityError", refused.message + remedy), started=True) from None


def target_of(call: Invocation, name: str) -> Target:
    """The file that a name means. Raises ``FileError`` or ``Refusal`` for one that the call may not write."""
    if "@{" in name:
        raise FileError(f"'{plain(name)}' has a variable that the host did not replace: @{{…}} is plain text here")
    settings, root = call.context.settings, call.context.root
    if is_resource(name):
        resource_place = place_of_uri(name, settings.resources, root)
        key, top, parts = resource_place.name, resource_place.top, relative_parts(resource_place.path)
    else:
        resources = {
            item: os.path.realpath(root / folder) for item, folder in settings.resources.items() if can_be_path(folder)
        }
        if not name.startswith("/"):
            raise FileError(
                f"'{plain(name)}' is no {SCHEME} URI and no absolute path; files are named {SCHEME}NAME/path"
            )
        key = next(
            (key for key in sorted(resources, key=lambda item: -len(resources[item])) if inside(name, resources[key])),
            "",
        )
        if not key:
            names = ", ".join(f"{SCHEME}{resource}/" for resource in sorted(resources))
            raise FileError(
                f"'{plain(name)}' lies in no resource folder; these are there: {names or 'none'}", secure=True
            )
        top = resources[key]
        parts = relative_parts(name[len(top.rstrip("/")) + 1 :])
    full = "/".join((top.rstrip("/"), *parts))
    granted = [*call.rights.write, *call.rights.own_write]
    folder = next((granted_folder for granted_folder in granted if inside(full, granted_folder.path)), None)
    if folder is None:
        raise FileError(
            f"'{plain(name)}' lies in no folder that this call may write; policy.writeRoots opens folders",
            secure=True,
        )
    place = place_of(call.tool.folder, call.context.registry, settings, root)
    fault = _file_fault(full, folder.top, place)
    if fault:
        raise FileError(f"'{plain(name)}' is not written: {fault}", secure=True)
    return Target(top, "/".join(parts), f"{SCHEME}{key}/{'/'.join(parts)}")


def _file_fault(path: str, root: str, place: Place) -> str:
    """Why no call may write this file, wherever it lies, or nothing: what decides what tools are is not theirs to write."""
    name = os.path.basename(path)
    if path in place.protected or name in DEFINING_FILES or name.endswith(_DEFINING_ENDS):
        return f"'{name}' decides what tools do"
    hidden = hidden_fault(path, place, writable=True)
    if hidden:
        return hidden
    return write_fault(os.path.dirname(path), root, place)


# Changing it


@contextlib.contextmanager
def _opened_folder(target: Target, *, make: bool) -> Generator[tuple[int, str]]:
    """The folder that the file stands in, with ``make`` made where it is missing, and the file's name."""
    *way, name = target.relative.split("/")
    with open_absolute(target.top) as top:
        current = os.dup(top.fd)
        try:
            for part in way:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o777, dir_fd=current)
                try:
                    following = os.open(part, _FOLDER, dir_fd=current)
                except FileNotFoundError:
                    raise FileError(f"there is no file {target.shown}; File.Write makes one") from None
                os.close(current)
                current = following
            yield current, name
        finally:
            os.close(current)


def _open_plain(name: str, folder: int, flags: int, shown: str) -> int | None:
    """The file opened, or None where there is none. Raises ``FileError`` for anything but a plain file."""
    try:
        # Without waiting: what stands there may be a pipe.
        opened = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise FileError(f"{shown} is a symbolic link, which is not followed", secure=True) from None
        raise FileError(f"{shown}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise FileError(f"{shown} is no plain file", secure=True)
    return opened


def replace_file(
    target: Target,
    make: Callable[[bytes | None], bytes],
    hold: Callable[[], None],
    most: int,
    *,
    make_folders: bool = False,
) -> Changed:
    """Puts what ``make`` gives for the old content in its place, at once: a reader never sees half of it."""
    with _opened_folder(target, make=make_folders) as (folder, name):
        opened = _open_plain(name, folder, os.O_RDONLY, target.shown)
        facts: os.stat_result | None = None
        old: bytes | None = None
        if opened is not None:
            with open(opened, "rb") as stream:
                facts = os.fstat(stream.fileno())
                if facts.st_size > most:
                    raise FileError(
                        f"{target.shown} has {facts.st_size} bytes, more than the {most} of sandbox.fileBytes"
                    )
                old = stream.read(most + 1)
        new = make(old)
        if len(new) > most:
            raise FileError(f"{target.shown} would have {len(new)} bytes, more than the {most} of sandbox.fileBytes")
        hold()
        _put(new, name, folder, facts)
        return Changed(len(new), facts is None)


def _put(content: bytes, name: str, folder: int, facts: os.stat_result | None) -> None:
    temporary = f".{name[:60]}.{secrets.token_hex(6)}.tmp"
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder
    )
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            if facts is not None:
                # As the file was: its owner first, since a change of owner takes away bits.
                with contextlib.suppress(OSError):
                    os.fchown(descriptor, facts.st_uid, facts.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(facts.st_mode) & 0o777)
            stream.flush()
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def append_to_file(
    target: Target, content: bytes, hold: Callable[[], None], most: int, *, new_line: bool = False
) -> Changed:
    """Adds at the end; with ``new_line`` on a line of its own."""
    with _opened_folder(target, make=True) as (folder, name):
        opened = _open_plain(name, folder, os.O_RDWR | os.O_APPEND, target.shown)
        if opened is None:
            if len(content) > most:
                raise FileError(
                    f"{target.shown} would have {len(content)} bytes, more than the {most} of sandbox.fileBytes"
                )
            hold()
            _put(content, name, folder, None)
            return Changed(len(content), True)
        with open(opened, "r+b", buffering=0) as stream:
            facts = os.fstat(opened)
            if facts.st_nlink > 1:
                raise FileError(f"{target.shown} has several names on this disk (hard links)", secure=True)
            piece = content
            if new_line and facts.st_size and os.pread(opened, 1, facts.st_size - 1) != b"\n":
                piece = b"\n" + content
            if facts.st_size + len(piece) > most:
                text = f"{target.shown} would have {facts.st_size + len(piece)} bytes, more than the {most} of sandbox.fileBytes"
                raise FileError(text)
            hold()
            rest = memoryview(piece)
            while rest:
                rest = rest[stream.write(rest) or 0 :]
            return Changed(os.fstat(opened).st_size, False)
