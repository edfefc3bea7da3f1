"""Requirement files, read strictly: what is given to the installer is written anew from what was understood here.

A line that this reader does not understand is refused, so there is nothing that the installer could read differently.
Pure; nested files are looked up among those that were read before. Must not know which index is allowed.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec

from tamis.environments.configured_indexes import PUBLIC_INDEX
from tamis.environments.indexes import IndexUrl, parse_index, require_named
from tamis.environments.model import DependencyFault, Finding

MAX_FILES = 32
MAX_REQUIREMENTS = 2_000
MAX_LINE_CHARS = 100_000

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:===|==|~=|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+"
# of text in which every run of white space is one space: no two neighbours here can share one out in many ways
_REQUIREMENT = re.compile(
    rf"(?P<name>{_NAME}) ?(?P<extras>\[[A-Za-z0-9._, -]*\] ?)?"
    rf"(?:@ ?(?P<url>(?:https?|file)://[^ ;]+)|(?P<open>\( ?)?(?P<versions>{_VERSION}(?: ?, ?{_VERSION})*)? ?,?(?(open) ?\)))"
    r" ?(?:; ?(?P<marker>[A-Za-z0-9_ .'\"<>=!~()*+,/-]+))?"
)
_FILE = re.compile(
    r".*\.(?:whl|zip|tar|tgz|gz|bz2|xz)", re.IGNORECASE
)  # an installer would look for a file of that name
_HASH = re.compile(r" --hash[= ]([a-z0-9]+:[0-9A-Fa-f]+)(?= |$)")
_DIGITS = {"md5": 32, "sha256": 64, "sha384": 96, "sha512": 128}
_OPTION = re.compile(r"(--[a-z][a-z-]*|-[a-zA-Z])(?: ?= ?| )?(.*)")
_LONG = {"-r": "--requirement", "-c": "--constraint", "-i": "--index-url", "-f": "--find-links", "-e": "--editable"}
_CHOICE = re.compile(r"[A-Za-z0-9._,: -]+")
_PINNED = re.compile(r"===?\s*[^*,\s]+")


class Requirement(msgspec.Struct, frozen=True):
    """One requirement: `text` in one spelling, with what it asks for in parts. `url` is empty unless it names a file."""

    name: str
    text: str
    url: str = ""
    hashes: tuple[str, ...] = ()
    pinned: bool = False
    place: str = ""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """All that requirement files ask for."""

    requirements: tuple[Requirement, ...] = ()
    constraints: tuple[Requirement, ...] = ()
    index: tuple[str, str] | None = None
    """(address, place) of an index that takes the configured one's place."""
    extra: tuple[tuple[str, str], ...] = ()
    find_links: tuple[tuple[str, str], ...] = ()
    no_index: bool = False
    prerelease: bool = False
    require_hashes: bool = False
    no_binary: tuple[str, ...] = ()
    only_binary: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def hashed(self) -> bool:
        """Whether any file's content is pinned: then all must be."""
        return self.require_hashes or any(requirement.hashes for requirement in self.requirements)


class _Reading:
    def __init__(self) -> None:
        self.requirements: list[Requirement] = []
        self.constraints: list[Requirement] = []
        self.index: tuple[str, str] | None = None
        self.extra: list[tuple[str, str]] = []
        self.find_links: list[tuple[str, str]] = []
        self.flags: set[str] = set()
        self.no_binary: list[str] = []
        self.only_binary: list[str] = []


def _fault(place: str, why: str, remedy: str = "") -> DependencyFault:
    return DependencyFault(f"{place}: {why}", cause="declaration", remedy=remedy)


def decode(data: bytes, name: str) -> str:
    """A declaration's text. Raises `DependencyFault` unless it is UTF-8 without control characters."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(name, f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from None
    bad = re.search(r"[\x00-\x08\x0b\x0e-\x1f\x7f\x85\u2028\u2029]", text)
    if bad is not None:
        raise _fault(name, f"holds the control character U+{ord(bad.group()):04X}")
    return text


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(one-based number of its first line, line) without comments, with continued lines joined, empty ones left out."""
    pieces: list[str] = []
    first = 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = "" if raw.lstrip().startswith("#") else raw
        first = first or number
        if line.endswith("\\"):
            pieces.append(line[:-1])
            continue
        pieces.append(line)
        joined = re.sub(r"(?:^|\s)#.*$", "", "".join(pieces)).strip()
        if joined:
            yield first, joined
        pieces, first = [], 0
    joined = re.sub(r"(?:^|\s)#.*$", "", "".join(pieces)).strip()
    if joined:
        yield first, joined


def gather(name: str, read: Callable[[str], bytes]) -> tuple[tuple[str, bytes], ...]:
    """A requirement file and those that it names, as (path, content); `read` gives a file beside the script."""
    files: dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        path = waiting.pop(0)
        if path in files:
            continue
        if len(files) >= MAX_FILES:
            raise _fault(path, f"more than {MAX_FILES} requirement files")
        files[path] = read(path)
        for number, line in logical_lines(decode(files[path], path)):
            option, value = _option(line, f"{path}:{number}") if line.startswith("-") else ("", "")
            if option in ("--requirement", "--constraint"):
                waiting.append(_nested(path, value, f"{path}:{number}"))
    return tuple(files.items())


def declares_something(files: tuple[tuple[str, bytes], ...]) -> bool:
    """Whether the files hold any requirement at all, or a line that has to be looked at."""
    options = ("-r", "--requirement", "-c", "--constraint")
    return any(not line.startswith(options) for path, data in files for _, line in logical_lines(decode(data, path)))


def _nested(path: str, value: str, place: str) -> str:
    if not value or "://" in value or value.startswith(("/", "~")):
        raise _fault(place, f"{value!r} is not a file below the script's folder", "put the file there")
    nested = posixpath.normpath(posixpath.join(posixpath.dirname(path), value))
    if nested.startswith("../") or nested == "..":
        raise _fault(place, f"{value!r} lies outside of the script's folder", "put the file beside the script")
    return nested


def _option(line: str, place: str) -> tuple[str, str]:
    match = _OPTION.fullmatch(" ".join(line.split()))
    if match is None:
        raise _fault(place, f"{line[:60]!r} is not understood")
    option, value = match.group(1), match.group(2).strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return _LONG.get(option, option), value


def parse_files(name: str, files: Mapping[str, bytes]) -> Wanted:
    """What a requirement file and those that it names ask for. Raises `DependencyFault` with the place of what cannot be used."""
    reading = _Reading()
    _read(name, files, reading, constraint=False, trail=())
    if len(reading.requirements) + len(reading.constraints) > MAX_REQUIREMENTS:
        raise _fault(name, f"more than {MAX_REQUIREMENTS} requirements")
    return Wanted(
        requirements=tuple(reading.requirements),
        constraints=tuple(reading.constraints),
        index=reading.index,
        extra=tuple(reading.extra),
        find_links=tuple(reading.find_links),
        no_index="--no-index" in reading.flags,
        prerelease="--pre" in reading.flags,
        require_hashes="--require-hashes" in reading.flags,
        no_binary=tuple(reading.no_binary),
        only_binary=tuple(reading.only_binary),
        findings=(
            *unpinned(reading.requirements, reading.constraints),
            *unhashed(reading.requirements, reading.constraints, always="--require-hashes" in reading.flags),
        ),
    )


def _read(
    name: str, files: Mapping[str, bytes], reading: _Reading, *, constraint: bool, trail: tuple[str, ...]
) -> None:
    if name in trail:
        raise _fault(name, f"names itself by way of {' → '.join([*trail[trail.index(name) :], name])}")
    for number, line in logical_lines(decode(files[name], name)):
        place = f"{name}:{number}"
        if len(line) > MAX_LINE_CHARS:
            raise _fault(place, f"a line of more than {MAX_LINE_CHARS} characters")
        if line.startswith("-"):
            option, value = _option(line, place)
            if option in ("--requirement", "--constraint"):
                nested = constraint or option == "--constraint"
                _read(_nested(name, value, place), files, reading, constraint=nested, trail=(*trail, name))
            else:
                _take_option(option, value, place, reading)
            continue
        (reading.constraints if constraint else reading.requirements).append(parse_requirement(line, place))


def _take_option(option: str, value: str, place: str, reading: _Reading) -> None:
    if option == "--index-url":
        reading.index = (value, place)
    elif option == "--extra-index-url":
        reading.extra.append((value, place))
    elif option == "--find-links":
        reading.find_links.append((value, place))
    elif option in ("--no-index", "--pre", "--require-hashes") and not value:
        reading.flags.add(option)
    elif option in ("--no-binary", "--only-binary") and _CHOICE.fullmatch(value):
        (reading.no_binary if option == "--no-binary" else reading.only_binary).extend(re.split(r"[,\s]+", value))
    elif option == "--prefer-binary" and not value:
        pass  # only binary packages are taken anyway, unless building is allowed
    elif option == "--editable":
        raise _fault(
            place, "a folder cannot be installed as editable", "depend on a released package, or import it as a sibling"
        )
    elif option == "--trusted-host":
        raise _fault(place, "--trusted-host would switch off the check of certificates", "leave it out")
    else:
        raise _fault(place, f"the option {option} is not supported", "leave it out")


def parse_requirement(text: str, place: str) -> Requirement:
    """One requirement in the spelling of PEP 508, with pip's ``--hash``. Raises `DependencyFault`."""
    text = " ".join(text.split())
    hashes = tuple(dict.fromkeys(_HASH.findall(text)))
    body = _HASH.sub("", text).strip()
    match = _REQUIREMENT.fullmatch(body)
    if match is None or _FILE.fullmatch(match["name"]):
        raise _fault(place, *_why_not(body))
    for item in hashes:
        _check_hash(item, place)
    name = match["name"]
    extras = ",".join(part.strip() for part in (match["extras"] or "[]").strip()[1:-1].split(",") if part.strip())
    versions = ",".join(re.sub(r"\s+", "", part) for part in (match["versions"] or "").split(",") if part)
    marker = " ".join((match["marker"] or "").split())
    shown = name + (f"[{extras}]" if extras else "")
    shown += f" @ {match['url']}" if match["url"] else versions
    shown += f" ; {marker}" if marker else ""
    shown += "".join(f" --hash={item}" for item in hashes)
    pinned = bool(_PINNED.fullmatch(versions)) or (bool(match["url"]) and ("#sha256=" in match["url"] or bool(hashes)))
    return Requirement(name, shown, match["url"] or "", hashes, pinned, place)


def _check_hash(hash_text: str, place: str) -> None:
    kind, _, digest = hash_text.partition(":")
    remedy = "`uv pip compile --generate-hashes` writes the right ones"
    digits = _DIGITS.get(kind)
    if digits is None:
        raise _fault(place, f"--hash of the kind '{kind[:20]}' is not known; use sha256", remedy)
    if len(digest) != digits:
        raise _fault(place, f"--hash={kind}: needs {digits} hexadecimal digits, and there are {len(digest)}", remedy)


def _why_not(body: str) -> tuple[str, str]:
    shown = repr(body if len(body) <= 80 else body[:79] + "…")
    if "--hash" in body:
        return f"{shown}: a --hash is not understood", "write it as '--hash=sha256:' and 64 hexadecimal digits"
    if re.match(r"(?:\S+\s*@\s*)?(?:git|hg|svn|bzr)\+", body):
        return f"{shown} is a source repository, and nothing is fetched from one", "depend on a released package"
    if re.match(r"https?://", body, re.IGNORECASE):
        name = (
            posixpath.basename(body.partition("?")[0].partition("#")[0]).partition("-")[0].partition(".")[0] or "name"
        )
        return (
            f"{shown} is an address without a package's name",
            f"write it as '{name[:40]} @ https://…'; the operator has to name that address in dependencies.indexes",
        )
    if re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://", body, re.IGNORECASE):
        return f"{shown} is no address that packages are fetched from", "write it as 'name @ https://…'"
    if body.startswith((".", "/", "~", "file:")) or _FILE.fullmatch(body):
        return (
            f"{shown} is a file or folder, and only packages of an index are installed",
            "depend on a released package",
        )
    return f"{shown} is no requirement", "write it as 'name==1.2.3'"


def unpinned(requirements: list[Requirement], constraints: list[Requirement]) -> tuple[Finding, ...]:
    """The lint (D78): requirements without an exact version, which give another result on another day."""
    fixed = {_canonical(constraint.name) for constraint in constraints if constraint.pinned}
    return tuple(
        Finding(
            requirement.place.rpartition(":")[0],
            int(requirement.place.rpartition(":")[2]),
            f"'{requirement.name}' has no exact version: what is installed depends on the day; write '{requirement.name}==…', best with --hash",
        )
        for requirement in requirements
        if not requirement.pinned and _canonical(requirement.name) not in fixed
    )


def unhashed(
    requirements: list[Requirement], constraints: list[Requirement], *, always: bool = False
) -> tuple[Finding, ...]:
    """Requirements without a hash where others have one (or `always`): they cannot be installed."""
    if not always and not any(requirement.hashes for requirement in requirements):
        return ()
    fixed = {_canonical(constraint.name) for constraint in constraints if constraint.hashes}
    return tuple(
        Finding(
            requirement.place.rpartition(":")[0],
            int(requirement.place.rpartition(":")[2]),
            f"'{requirement.name}' has no --hash, and must have one as others have: it will not be installed; "
            "`uv pip compile --generate-hashes` writes them all",
        )
        for requirement in requirements
        if not requirement.hashes and "#" not in requirement.url and _canonical(requirement.name) not in fixed
    )


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# `pyproject.toml`, `uv.lock` and script metadata: what they declare, and what of them may be followed. Pure. What names a source of its own (a
# repository, a folder, another index) is refused unless the operator's list names it.


Table = dict[str, Any]


def _lock_fault(message: str, remedy: str = "") -> DependencyFault:
    return DependencyFault(message, cause="declaration", remedy=remedy)


@lru_cache(maxsize=64)
def _toml(data: bytes, name: str, what: str = "it", lines_before: int = 0) -> Mapping[str, Any]:
    text = decode(data, name)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _lock_fault(f"{name}: {what} is no TOML that can be read: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        phrase, _, at = str(error).partition(" (at ")
        match = re.match(r"line (\d+)", at)
        line = int(match.group(1)) if match else text.rstrip().count("\n") + 1
        raise _lock_fault(
            f"{name}:{line + lines_before}: {what} is no TOML: {phrase[:200]}", "write it as PEP 508 and TOML have it"
        ) from None


def _table(value: object) -> Table:
    return cast("Table", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _texts(value: object, name: str) -> tuple[str, ...]:
    items = _list(value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in items):
        raise _lock_fault(f"{name}: 'dependencies' is not a list of texts")
    return tuple(items)


def project_requirements(data: bytes, name: str) -> tuple[str, ...] | None:
    """The requirements of ``[project]``; None where it declares none."""
    table = _table(_toml(data, name).get("project"))
    if "dependencies" in _list(table.get("dynamic")):
        raise _lock_fault(
            f"{name}: its dependencies are dynamic, and the project is not built to find them",
            "write them into [project] dependencies, or beside it into requirements.txt",
        )
    wanted = _texts(table.get("dependencies", []), name)
    if wanted:
        _require_plain_sources(_toml(data, name), name)
    return wanted or None


def script_requirements(data: bytes, name: str, first_line: int = 0) -> tuple[str, ...]:
    """The requirements in a script's metadata (PEP 723), which begins in that line of the script."""
    raw = _toml(data, name, "the metadata block '# /// script' (PEP 723)", first_line)
    where = f"{name}: the metadata block '# /// script' (PEP 723)"
    wanted = _texts(raw.get("dependencies", []), where)
    if wanted:
        _require_plain_sources(raw, where)
    return wanted


def _require_plain_sources(raw: Mapping[str, Any], name: str) -> None:
    uv = _table(_table(raw.get("tool")).get("uv"))
    for setting in ("sources", "index", "index-url", "extra-index-url", "find-links"):
        if uv.get(setting):
            raise DependencyFault(
                f"{name}: [tool.uv] {setting} names package sources of its own, and these are not followed",
                cause="refused",
                remedy="leave it out, or lock the project with `uv lock` and let the operator name the index in dependencies.indexes",
            )


def as_wanted(texts: Sequence[str], name: str) -> Wanted:
    """Requirements in PEP 508 spelling as a requirement file's. The lint's word is one for all: such a list has a lock elsewhere."""
    requirements: list[Requirement] = []
    for number, text in enumerate(texts, 1):
        if len(text) > 10_000 or text.lstrip().startswith("-") or "--hash" in text:
            raise _lock_fault(f"{name}: requirement {number} is none: {text[:60]!r}")
        requirements.append(parse_requirement(text, f"{name}:{number}"))
    loose = [requirement.name for requirement in requirements if not requirement.pinned]
    findings = ()
    if loose:
        listed = ", ".join(loose[:5]) + (" …" if len(loose) > 5 else "")
        remedy = "lock it with `uv lock`" if name == "pyproject.toml" else "write '==' and a version"
        findings = (Finding(name, 0, f"{listed}: no exact version; what is installed depends on the day; {remedy}"),)
    return Wanted(requirements=tuple(requirements), findings=findings)


def trimmed_project(data: bytes) -> bytes:
    """A `pyproject.toml` with only what `uv export` needs of it: whatever else stands there has no say."""
    raw = _toml(data, "pyproject.toml")
    project = _table(raw.get("project"))
    name, version = project.get("name"), project.get("version", "0")
    if not isinstance(name, str) or not isinstance(version, str):
        raise _lock_fault("pyproject.toml: [project] has no name, which uv.lock refers to")
    lines = [
        "[project]",
        f"name = {_quoted(name)}",
        f"version = {_quoted(version)}",
        f"dependencies = [{', '.join(_quoted(item) for item in _texts(project.get('dependencies', []), 'pyproject.toml'))}]",
    ]
    python = project.get("requires-python")
    if isinstance(python, str):
        lines.append(f"requires-python = {_quoted(python)}")
    lines += ["[tool.uv]", f"package = {'true' if 'build-system' in raw else 'false'}"]
    return ("\n".join(lines) + "\n").encode()


def _quoted(text: str) -> str:
    import msgspec

    # JSON's spelling of a text is also TOML's, but for DEL, which `decode` has refused
    return msgspec.json.encode(text).decode()


def check(data: bytes, allowed: tuple[IndexUrl, ...], used: tuple[IndexUrl, ...]) -> None:
    """Raises `DependencyFault` for a lock with packages that come from elsewhere than an index that is asked.

    A package that was locked at the public index may come from any: what is installed is checked by its hash.
    """
    public = parse_index(PUBLIC_INDEX, "")
    seen: set[str] = set()
    for package in _list(_toml(data, "uv.lock").get("package")):
        table = _table(package)
        name, source = str(table.get("name", "?"))[:100], _table(table.get("source"))
        registry = source.get("registry")
        if isinstance(registry, str):
            if registry not in seen:
                _check_registry(registry, name, public, allowed, used)
                seen.add(registry)
        elif source.get("virtual") != "." and source.get("editable") != ".":
            kind = next(iter(source), "unknown")
            raise DependencyFault(
                f"uv.lock: {name} comes from a source of its own ({kind}), and only packages of an index are installed",
                cause="refused",
                remedy="depend on a released package",
                package=name,
            )


def _check_registry(
    registry: str, name: str, public: IndexUrl, allowed: tuple[IndexUrl, ...], used: tuple[IndexUrl, ...]
) -> None:
    url = parse_index(registry, "uv.lock")
    if url != public and url not in used:
        require_named(url, allowed, f"uv.lock ({name})")
