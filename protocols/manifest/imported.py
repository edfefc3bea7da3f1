"""What every importer of foreign definitions gives and says: the tools with their notes, and the fields that all shapes fill alike.

Must not know any shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from tamis.protocols.manifest.foreign_fields import Say
from tamis.protocols.manifest.reading import LANGUAGES, is_semver, tool_id_fault
from tamis.protocols.model import Json, escape_pointer
from tamis.protocols.schema.words import is_object

# Descriptions that Tamis itself writes where it has nothing to say, and how they are known again.


_ASKED = "what it takes and what it gives"
TO_SAY = f"what it does, when to use it, {_ASKED}"
NEW_TOOL = f"Replace this by what the tool does, when a model should use it, {_ASKED}."
MISSING_FIELD = f"Say here what the tool does, when to use it, {_ASKED}."
BODY = "What is sent."
"""Of a request's body that its document says nothing about."""
_TEXTS = (NEW_TOOL, MISSING_FIELD)


def to_be_said(what: str) -> str:
    """The description of a tool of which only that much is known."""
    return f"{what}; say here {TO_SAY}."


def left_to_say(text: str) -> str | None:
    """What of a description asks its author to write it; None for one that was written."""
    if text.strip() == BODY:
        return BODY
    asked = f"say here {TO_SAY}"
    return next((phrase for phrase in (*_TEXTS, asked) if phrase in text), None)


NAMESPACE = "custom"
VERSION = "0.1.0"
"""Of a tool that came without a version."""
_LANGUAGE_OF = {".py": "python", ".js": "nodejs", ".mjs": "nodejs", ".cjs": "nodejs", ".ts": "bun"}


class Note(msgspec.Struct, frozen=True):
    """What a conversion assumed, changed or left out; ``path`` is a JSON Pointer into the original, ``code`` the kind of the loss."""

    path: str
    message: str
    code: str = "changed"


def teller(notes: list[Note], path: str = "") -> Say:
    """Adds what it is told to the notes; keys stand below ``path``."""

    def say(key: str, message: str, code: str = "changed") -> None:
        notes.append(Note(key if key.startswith("/") else f"{path}/{escape_pointer(key)}", message, code))

    return say


class ImportedTool(msgspec.Struct, frozen=True):
    """A manifest made of a foreign definition; ``name`` is the tool's bare name, fit for a file name."""

    name: str
    manifest: dict[str, Json]
    notes: tuple[Note, ...] = ()


class Imported(msgspec.Struct, frozen=True):
    """The tools of one foreign file; ``why_not`` says in words why there are none. ``scripts`` are what they run, by file name."""

    tools: tuple[ImportedTool, ...] = ()
    notes: tuple[Note, ...] = ()
    why_not: str = ""
    scripts: dict[str, str] = {}


def start(bare: str, title: str, description: Json, say: Say) -> dict[str, Json]:
    """The first fields of a manifest, with the alias by which the tool was called before."""
    text = text_of(description).strip()
    if not text:
        text = to_be_said(f"Runs {bare}")
        say("description", "there is no description: write one, models choose tools by it", "description-missing")
    return {
        "toolId": f"{NAMESPACE}:{bare}",
        "displayName": title,
        "description": text,
        "version": VERSION,
        "aliases": [bare],
    }


def title_of(data: Mapping[str, Json], name: str) -> str:
    """A name for people."""
    annotations = data.get("annotations")
    title = annotations.get("title") if is_object(annotations) else None
    for candidate in (data.get("displayName"), data.get("title"), title, data.get("name")):
        if text := text_of(candidate).strip():
            return text if text != name else spaced(text)
    return spaced(name)


def fit_name(name: str) -> str:
    """A name that can be the second half of a tool id and a file name; one that is legal everywhere stays as it is."""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name) and tool_id_fault(f"{NAMESPACE}:{name}") is None:
        return name
    bare = re.sub(r"[^\w.-]+", "-", name, flags=re.UNICODE).strip("-._")
    return bare[:100] or "tool"


def fit_version(version: str, say: Say) -> str:
    """A SemVer version near the given one."""
    if is_semver(version):
        return version
    numbers = [str(int(part)) for part in re.findall(r"\d{1,9}", version)[:3]]
    text = ".".join([*numbers, "0", "0", "0"][:3]) if numbers else VERSION
    say("version", f"the version '{version}' became '{text}'", "version-changed")
    return text


def script_handler(path: str, language: str, bare: str, key: str, say: Say) -> dict[str, Json]:
    """A handler for a script, or for one that is still to be written."""
    suffix = re.search(r"\.[a-z]+$", path)
    known = _LANGUAGE_OF.get(suffix[0]) if suffix else None
    words = {"python3": "python", "py": "python", "node": "nodejs", "js": "nodejs", "javascript": "nodejs"}
    spoken = words.get(language, language)
    chosen = spoken if spoken in LANGUAGES else known or "python"
    fitting = re.fullmatch(r"(?:\./)?[^\s/\\:;|&<>$][^\s\\:;|&<>$]*\.[A-Za-z]+", path)
    if fitting is None or ".." in path.split("/"):
        text = f"{bare}{'.py' if chosen == 'python' else '.js' if chosen == 'nodejs' else '.ts'}"
        say(key, f"no script is named that could be run: write '{text}', or change the handler", "handler-missing")
        path = text
    return {"type": "external-script", "scriptPath": path.removeprefix("./"), "language": chosen}


def text_of(value: Json) -> str:
    """The value where it is a text, else nothing."""
    return value if isinstance(value, str) else ""


def spaced(name: str) -> str:
    """A name in words, the first letter large."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+", " ", name).split()
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]]) if words else name
