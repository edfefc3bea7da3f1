"""`pyproject.toml`, `uv.lock` and script metadata: what they declare, and what of them may be followed.

Pure. What names a source of its own (a repository, a folder, another index) is refused unless the operator's list names it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from tamis.environments.indexes import IndexUrl, parse_index, require_named
from tamis.environments.model import DependencyFault, Finding
from tamis.environments.pip_settings import PUBLIC_INDEX
from tamis.environments.requirements import Requirement, Wanted, decode, parse_requirement

Table = dict[str, Any]


def _fault(message: str, remedy: str = "") -> DependencyFault:
    return DependencyFault(message, cause="declaration", remedy=remedy)


@lru_cache(maxsize=64)
def _toml(data: bytes, name: str, what: str = "it", lines_before: int = 0) -> Mapping[str, Any]:
    text = decode(data, name)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _fault(f"{name}: {what} is no TOML that can be read: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        said, _, at = str(error).partition(" (at ")
        found = re.match(r"line (\d+)", at)
        line = int(found.group(1)) if found else text.rstrip().count("\n") + 1
        raise _fault(
            f"{name}:{line + lines_before}: {what} is no TOML: {said[:200]}", "write it as PEP 508 and TOML have it"
        ) from None


def _table(value: object) -> Table:
    return cast("Table", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _texts(value: object, name: str) -> tuple[str, ...]:
    items = _list(value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in items):
        raise _fault(f"{name}: 'dependencies' is not a list of texts")
    return tuple(items)


def project_requirements(data: bytes, name: str) -> tuple[str, ...] | None:
    """The requirements of ``[project]``; None where it declares none."""
    table = _table(_toml(data, name).get("project"))
    if "dependencies" in _list(table.get("dynamic")):
        raise _fault(
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
    found: list[Requirement] = []
    for number, text in enumerate(texts, 1):
        if len(text) > 10_000 or text.lstrip().startswith("-") or "--hash" in text:
            raise _fault(f"{name}: requirement {number} is none: {text[:60]!r}")
        found.append(parse_requirement(text, f"{name}:{number}"))
    loose = [one.name for one in found if not one.pinned]
    findings = ()
    if loose:
        listed = ", ".join(loose[:5]) + (" …" if len(loose) > 5 else "")
        remedy = "lock it with `uv lock`" if name == "pyproject.toml" else "write '==' and a version"
        findings = (Finding(name, 0, f"{listed}: no exact version; what is installed depends on the day; {remedy}"),)
    return Wanted(requirements=tuple(found), findings=findings)


def trimmed_project(data: bytes) -> bytes:
    """A `pyproject.toml` with only what `uv export` needs of it: whatever else stands there has no say."""
    raw = _toml(data, "pyproject.toml")
    project = _table(raw.get("project"))
    name, version = project.get("name"), project.get("version", "0")
    if not isinstance(name, str) or not isinstance(version, str):
        raise _fault("pyproject.toml: [project] has no name, which uv.lock refers to")
    lines = [
        "[project]",
        f"name = {_quoted(name)}",
        f"version = {_quoted(version)}",
        f"dependencies = [{', '.join(_quoted(one) for one in _texts(project.get('dependencies', []), 'pyproject.toml'))}]",
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
