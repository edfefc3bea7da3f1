"""Tamis's own tools under the seeds' names: what they are called, what they take, and which of them lists show.

World state, private state and events are those of seed 000 §4.2, files those of seed 002 §5, time and tasks those of seed 004. The
definitions stand here as data. Must not know how any of it is run.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.manifest.reading import (
    LANGUAGE_NAME,
    LANGUAGES,
    ExternalScript,
    FileAccess,
    Handler,
    Manifest,
    SecurityContext,
    ServiceMethod,
)
from tamis.protocols.model import Json
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import can_be_path

# The built-in ``ExternalScriptExecutionService.executeScript`` (seed 003 §2.1.3 and §2.2.3, ruling 43). The script is named by the call instead of
# the manifest: relative to the manifest's folder, which is the base directory. Its own folder is what the sandbox shows and where it runs (D11, D13).


READER = "system:read_stream"
"""The tool by which agents read streamed outputs (W22)."""
SERVICE = "ExternalScriptExecutionService"
METHOD = "executeScript"


class NoScriptError(ValueError):
    """A call names a script that is not there."""


class ScriptTarget(msgspec.Struct, frozen=True):
    """Which script runs where, and what it reads on standard input."""

    folder: str
    handler: ExternalScript
    stdin: Any
    timeout_ms: int | None = None


def is_script_service(handler: Handler) -> bool:
    """Whether a manifest's handler is the built-in service."""
    return isinstance(handler, ServiceMethod) and (handler.service_name, handler.method_name) == (SERVICE, METHOD)


def script_target(base: str, args: dict[str, Any]) -> ScriptTarget:
    """The script that a call names. Raises ValueError for a path that leaves the base directory, NoScriptError for one where nothing is."""
    path = args.get("scriptPath")
    language = args.get("language", "python")
    if not isinstance(path, str) or not path:
        raise ValueError("'scriptPath' must name a script")
    parts = [part for part in path.split("/") if part != "."]
    if not parts or path.startswith("/") or "\\" in path or "\0" in path or any(part in ("", "..") for part in parts):
        raise ValueError(f"the script path '{path[:200]}' must be plain and relative to the tool's folder")
    if not isinstance(language, str) or not re.fullmatch(LANGUAGE_NAME, language):
        raise ValueError(f"{str(language)[:60]!r} is no script language; one of {', '.join(LANGUAGES)}")
    if _is_missing(base, parts):
        raise NoScriptError(f"the script '{path[:200]}' does not exist in the tool's folder")
    folder = os.path.join(base, *parts[:-1])
    timeout = args.get("timeoutMs")
    return ScriptTarget(
        folder,
        ExternalScript(script_path=parts[-1], language=language),
        args.get("inputData", {}),
        timeout if isinstance(timeout, int) and timeout > 0 else None,
    )


def _is_missing(base: str, parts: list[str]) -> bool:
    """Whether nothing has that name. No link is followed: what lies behind one is the sandbox's to judge, and none of a call's business."""
    place = base
    for part in parts:
        place = os.path.join(place, part)
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                return False
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
    return False


def mirror(result: ExecutionResult) -> None:
    """Puts the seed's ``ScriptExecutionResult`` into ``output``; status and error of the result stay as they are (ruling 43)."""
    view: dict[str, Any] = {"success": result.status == "success"}
    if result.status == "success":
        view["outputData"] = result.output
    elif result.error is not UNSET:
        message = "Script execution timed out." if result.status == "timeout" else result.error.message
        view["error"] = {"type": result.error.type, "message": message}
        details = result.error.details
        if details is not UNSET and details.text is not UNSET:
            view["error"]["details"] = details.text
    view["logs"] = list(result.logs)
    result.output = view


VERSION = "1.0.0"


def _text(description: str, **more: Json) -> Json:
    return {"type": "string", "description": description, **more}


def _object(properties: dict[str, Json], *required: str) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_ANY: dict[str, Json] = {}
_PATH = _text(
    "The file: fam://NAME/path, where NAME is one of the host's resource folders, or the absolute path of a file in one.",
    minLength=1,
    maxLength=4096,
)
_WRITTEN = _object(
    {
        "path": _text("The file as fam:// names it."),
        "bytes": {"type": "integer", "description": "Its size now."},
        "created": {"type": "boolean", "description": "Whether the file is new."},
    },
    "path",
    "bytes",
    "created",
)
_DEFINITIONS: tuple[tuple[str, tuple[str, str], str, str, dict[str, Json], Json], ...] = (
    (
        "ReadWorldStateTool",
        ("WorldState", "read"),
        "Read World State",
        "Reads a value from the shared world state.",
        _object(
            {
                "path": _text(
                    'The dot-separated path to the value in the world state (e.g., "environment.time.current_hour").',
                    minLength=1,
                    maxLength=1000,
                ),
                "default_value": {**_ANY, "description": "Value to return if path is not found."},
            },
            "path",
        ),
        None,
    ),
    (
        "ReadPrivateStateTool",
        ("PrivateState", "read"),
        "Read Private State",
        "Reads a value from your private state, which no other agent sees.",
        _object(
            {
                "key": _text("The key in your private state to read.", minLength=1, maxLength=1000),
                "default_value": {**_ANY, "description": "Value to return if the key is not there."},
            },
            "key",
        ),
        None,
    ),
    (
        "UpdatePrivateStateTool",
        ("PrivateState", "update"),
        "Update Private State",
        "Updates a value in your private state.",
        _object(
            {
                "key": _text("The key in your private state to update.", minLength=1, maxLength=1000),
                "value": {**_ANY, "description": "The new value for the key."},
            },
            "key",
            "value",
        ),
        _object(
            {
                "key": _text("The key that was updated."),
                "created": {"type": "boolean", "description": "Whether the key is new."},
            },
            "key",
            "created",
        ),
    ),
    (
        "PublishEventTool",
        ("Events", "publish"),
        "Publish Event",
        "Publishes an event to the event bus of the application.",
        _object(
            {
                "event_type": _text(
                    'The type of the event (e.g., "agent.action.completed").', minLength=1, maxLength=200
                ),
                "payload": {
                    "type": "object",
                    "description": "A JSON object string, or XML structure parsable to an object, containing event data.",
                },
            },
            "event_type",
        ),
        _object({"eventId": _text("The event's id.")}, "eventId"),
    ),
    (
        "File.Write",
        ("File", "Write"),
        "Write File",
        "Writes a text file in one of the resource folders, in place of what it held; folders on the way are made.",
        _object({"file_path": _PATH, "content": _text("The whole text of the file.")}, "file_path", "content"),
        _WRITTEN,
    ),
    (
        "File.Append",
        ("File", "Append"),
        "Append to File",
        "Adds a text at the end of a file in one of the resource folders; a file that is not there is made.",
        _object(
            {
                "file_path": _PATH,
                "content": _text("The text to add, as it is."),
                "new_line": {
                    "type": "boolean",
                    "description": "Begin a new line first where the file does not end with one, as for a line of a log.",
                },
            },
            "file_path",
            "content",
        ),
        _WRITTEN,
    ),
    (
        "File.ApplyEdit",
        ("File", "ApplyEdit"),
        "Edit File",
        "Replaces one piece of a text file in one of the resource folders; the piece must stand in it exactly once.",
        _object(
            {
                "file_path": _PATH,
                "search_string": _text(
                    "The text to replace, exactly as it stands in the file, with enough lines around it to occur once.",
                    minLength=1,
                ),
                "replace_string": _text("The text to put in its place; empty removes it."),
                "replace_all": {
                    "type": "boolean",
                    "description": "Replace every occurrence instead of requiring exactly one.",
                },
            },
            "file_path",
            "search_string",
            "replace_string",
        ),
        _object(
            {
                "path": _text("The file as fam:// names it."),
                "bytes": {"type": "integer", "description": "Its size now."},
                "replaced": {"type": "integer", "description": "How many occurrences were replaced."},
                "line": {"type": "integer", "description": "The first line that changed, from 1."},
            },
            "path",
            "bytes",
            "replaced",
            "line",
        ),
    ),
    (
        "system:get_current_time",
        ("system", "get_current_time"),
        "Current Time",
        "Tells the current date and time, in any time zone.",
        _object(
            {
                "timezone": _text(
                    "An IANA name (Asia/Shanghai), UTC, an offset (+08:00), or local for the zone of the machine, which is the default.",
                    maxLength=100,
                ),
            }
        ),
        _object(
            {
                "iso": _text("Date and time as ISO 8601, with the offset."),
                "date": _text("YYYY-MM-DD."),
                "time": _text("HH:MM:SS."),
                "weekday": _text("The day's English name."),
                "timezone": _text("The zone of these values."),
                "utcOffset": _text("The zone's distance from UTC now, as +HH:MM."),
                "epochMs": {"type": "integer", "description": "Milliseconds since 1970-01-01T00:00:00Z."},
            },
            *("iso", "date", "time", "weekday", "timezone", "utcOffset", "epochMs"),
        ),
    ),
    (
        "system:task_status",
        ("system", "task_status"),
        "Task Status",
        "Tells how far a task is that an asynchronous tool started, and its result when it has one.",
        _object(
            {"task_id": _text("The task's id, as the tool's result gave it.", minLength=1, maxLength=200)}, "task_id"
        ),
        {"type": "object"},
    ),
)
NAMES = tuple(definition[0] for definition in _DEFINITIONS)
"""The ids of Tamis's own tools."""
SERVICES = frozenset(definition[1][0] for definition in _DEFINITIONS)
"""The names of Tamis's own services, beside the one that runs scripts."""


def manifests(root: Path, settings: Settings) -> Iterator[tuple[Manifest, bool]]:
    """Each own tool, and whether lists show it: those that the setting ``builtin`` or the profile's inventory names."""
    asked: tuple[str, ...] = ()
    if settings.profile:
        from tamis.server.runtime.settings.profile import inventory_of

        asked = inventory_of(root, settings.profile)
    for tool_id, handler, display, description, parameters, output in _DEFINITIONS:
        access = _writable(root, settings) if handler[0] == "File" else ()
        listed = tool_id in asked or any(fnmatchcase(tool_id, pattern) for pattern in settings.builtin)
        yield _manifest(tool_id, handler, display, description, parameters, output, access), listed


def _manifest(
    tool_id: str,
    handler: tuple[str, str],
    display: str,
    description: str,
    parameters: dict[str, Json],
    output: Json,
    access: tuple[str, ...],
) -> Manifest:
    # Not read from JSON as files are: this is done at every start. A test holds it to what reading it gives.
    raw: dict[str, Json] = {
        "toolId": tool_id,
        "displayName": display,
        "description": description,
        "version": VERSION,
        "handler": {"type": "service-method", "serviceName": handler[0], "methodName": handler[1]},
        "parameters": parameters,
        "agentCallable": True,
    }
    if output is not None:
        raw["output"] = output
    if access:
        raw["securityContext"] = {"fileAccess": {"allowWrite": list(access)}}
    return Manifest(
        tool_id,
        display,
        description,
        VERSION,
        ServiceMethod(*handler),
        parameters=parameters,
        output=output,
        security_context=SecurityContext(file_access=FileAccess(allow_write=access)),
        agent_callable=True,
        raw=raw,
    )


def _writable(root: Path, settings: Settings) -> tuple[str, ...]:
    """The folders that files may be written in: what ``[resources]`` names and ``policy.writeRoots`` opens, both."""
    opened = [
        os.path.realpath(name) for name in settings.policy.write_roots if name.startswith("/") and can_be_path(name)
    ]
    folders: dict[str, None] = {}
    for folder in filter(can_be_path, settings.resources.values()):
        named = os.path.realpath(root / folder)
        for top in opened:
            if named == top or named.startswith(top.rstrip("/") + "/"):
                folders[named] = None
            elif top.startswith(named.rstrip("/") + "/"):
                folders[top] = None
    return tuple(folders)


def is_own(service: str) -> bool:
    """Whether a service's name is one of Tamis's own."""
    return service in SERVICES or service == SERVICE
