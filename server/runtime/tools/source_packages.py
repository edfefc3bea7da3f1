"""Tools that installed packages bring (entry point group ``tamis.sources``; docs/sources.md): the manifests of a database, say (seed 003 §2.3.1).

Such code runs in this process, so nothing is loaded that the setting ``sources`` does not name. Its manifests stand in no folder: one that
asks for something beside itself is refused, for the working directory may be anybody's. Whatever a package does is an error of the
registry; one that does not answer in time is left behind, and not asked again before it has ended. Must not know what a tool is run for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from tamis.protocols.manifest.reading import Manifest, McpTool, OtherHandler, ServiceMethod, read_manifest
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import shown_name
from tamis.server.runtime.settings.installed import bring, fault, names, words
from tamis.server.runtime.tools.builtin import is_script_service
from tamis.server.runtime.tools.loader import MAX_BYTES, MAX_FILES, FoundFile
from tamis.server.runtime.tools.reading import BadPattern, read_pattern, tool_of
from tamis.server.runtime.tools.tool import RegistryError, Tool

if TYPE_CHECKING:
    from tamis.protocols.manifest.embedded import SchemaExtension

GROUP = "tamis.sources"
SOURCE_API = 1
"""The version of ``ToolSource`` that this Tamis asks."""
SOURCE_PATH = "source:"
"""What stands before a source's name where other tools have their file."""
ANSWER_S = 5.0
NAME = re.compile(r"[a-z][a-z0-9._-]{0,63}")
"""No separator: what stands before one would be taken for a folder."""
_asked: dict[str, _Asking] = {}
"""The sources that did not answer in time."""


class ToolSource(Protocol):
    """What a package brings. One object serves the whole process; it is asked in a thread of its own."""

    @property
    def api(self) -> int:
        """``SOURCE_API`` as it was when the package was written."""
        ...

    @property
    def name(self) -> str:
        """The name of the entry point."""
        ...

    def manifests(self) -> Iterable[str]:
        """The texts of all manifests as they are now. Asked with every reading of the registry."""
        ...


class _Asking(threading.Thread):
    """One question to a source. A daemon's end does not wait for it."""

    def __init__(self, name: str) -> None:
        super().__init__(name=f"tamis-source-{name}", daemon=True)
        self.source = name
        self.texts: list[object] = []
        self.wrong = ""
        self.is_left = False

    def run(self) -> None:
        try:
            self.wrong = self._ask()
        except BaseException as error:
            # also SystemExit: no package ends the daemon
            self.wrong = f"the source '{self.source}' failed: {words(error)}"

    def _ask(self) -> str:
        brought = bring(GROUP, self.source, "the source")
        if brought is None:
            known = names(GROUP)
            listed = f"; installed are {', '.join(known)}" if known else ""
            return f"no installed package brings the source '{self.source}'{hint(best(self.source, known)) or listed}"
        if isinstance(brought, str):
            return brought
        wrong = fault(brought.plugin, SOURCE_API, "name", self.source, ("manifests",))
        if wrong:
            return f"{brought.where} cannot be used: {wrong}"
        manifests = cast("ToolSource", brought.plugin).manifests()
        if isinstance(manifests, (str, bytes)):
            return f"{brought.where} cannot be used: manifests() gave one text, not a list of texts"
        for text in manifests:
            if self.is_left:
                break
            if len(self.texts) >= MAX_FILES:
                return f"{brought.where} gave more than {MAX_FILES} manifests; the rest was left out"
            self.texts.append(text)
        return ""


def source_tools(settings: Settings, extensions: Sequence[SchemaExtension]) -> tuple[list[Tool], list[RegistryError]]:
    """The tools of the sources that the settings name, and what is wrong with them. Never raises; waits a bounded time."""
    tools: list[Tool] = []
    errors: list[RegistryError] = []
    for name in dict.fromkeys(settings.sources):
        if not NAME.fullmatch(name):
            text = "cannot be a source's name: a small letter, then small letters, digits, '.', '_' and '-'; mend `sources` in tamis.toml"
            errors.append(RegistryError(SOURCE_PATH + shown_name(name), text))
            continue
        texts, wrong = _answer(name)
        if wrong:
            errors.append(RegistryError(SOURCE_PATH + name, wrong))
        for number, text in enumerate(texts, 1):
            candidate = _read(f"{SOURCE_PATH}{name}#{number}", text, settings, extensions)
            if isinstance(candidate, Tool):
                tools.append(candidate)
            else:
                errors.append(candidate)
    return tools, errors


def _answer(name: str) -> tuple[list[object], str]:
    late = _asked.get(name)
    if late is not None and late.is_alive():
        return [], f"the source '{name}' still has not answered an earlier question; mend it and start Tamis again"
    asking = _Asking(name)
    asking.start()
    asking.join(ANSWER_S)
    if asking.is_alive():
        asking.is_left = True
        _asked[name] = asking
        return [], f"the source '{name}' did not answer within {ANSWER_S:g} seconds; its tools are left out"
    _asked.pop(name, None)
    return asking.texts, asking.wrong


def _read(path: str, text: object, settings: Settings, extensions: Sequence[SchemaExtension]) -> Tool | RegistryError:
    # a subclass could answer otherwise each time that it is asked
    if type(text) is not str:
        return RegistryError(path, f"is {type(text).__name__}; a source gives the texts of manifests, as str")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        return RegistryError(path, f"holds half a character at {error.start}; give text that UTF-8 can write")
    if size > MAX_BYTES:
        return RegistryError(path, f"is larger than {MAX_BYTES} bytes")
    reading = read_manifest(text, strict=settings.strict_json, handlers=settings.handlers, extensions=extensions)
    if reading.manifest is None:
        return tool_of(FoundFile(path, text), reading)
    wrong = _beside(reading.manifest)
    if wrong:
        return RegistryError(path, wrong, tool_id=reading.manifest.tool_id)
    return Tool(reading.manifest, path, folder="")


def _beside(manifest: Manifest) -> str:
    """What a manifest asks for in its own folder, which one of a source does not have; empty for nothing."""
    if not isinstance(manifest.handler, (ServiceMethod, McpTool, OtherHandler)) or is_script_service(manifest.handler):
        return "runs a script beside its manifest, and what a source gives stands in no folder; put manifest and script into a tool folder"
    if manifest.execution.files:
        return "names `execution.files`, and what a source gives stands in no folder; leave them out"
    access = manifest.security_context.file_access
    for pattern in (*access.allow_read, *access.allow_write):
        if not _is_absolute(pattern):
            return f"asks for the path '{shown_name(pattern)}', and what a source gives stands in no folder; write an absolute path"
    return ""


def _is_absolute(pattern: str) -> bool:
    try:
        return read_pattern(pattern).absolute
    except BadPattern:
        return False
