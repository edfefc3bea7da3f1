"""The built-in ``ExternalScriptExecutionService.executeScript`` (seed 003 §2.1.3 and §2.2.3, ruling 43).

The script is named by the call instead of the manifest: relative to the manifest's folder, which is the base directory. Its own
folder is what the sandbox shows and where it runs (D11, D13). Must not know how a script is run.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.manifest.reading import LANGUAGE_NAME, LANGUAGES, ExternalScript, Manifest, ServiceMethod

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


def is_script_service(manifest: Manifest) -> bool:
    """Whether a manifest's handler is the built-in service."""
    handler = manifest.handler
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
