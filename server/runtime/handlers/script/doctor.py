"""The sandbox's part of ``tamis doctor``: what works, each layer that holds, what does not, and the remedy."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from tamis.server.runtime.settings.config import Settings

State = Literal["ok", "warning", "error"]


def check(name: str, state: State, text: str, remedy: str = "") -> dict[str, Any]:
    """One line of the report."""
    return {"name": name, "state": state, "text": text} | ({"remedy": remedy} if remedy else {})


def sandbox_checks(settings: Settings) -> list[dict[str, Any]]:
    """Tries the sandbox anew and says what came of it."""
    from tamis.sandbox.backends import unsandboxed
    from tamis.sandbox.backends.choice import BACKENDS, DROPS_ROOT, PROTECTS
    from tamis.sandbox.limits import cgroups
    from tamis.sandbox.probe import probe

    sandbox = probe(refresh=True, backend=settings.sandbox.backend)
    if not sandbox.available:
        text = f"{sandbox.reason}; no tool is run without one"
        return [check("sandbox", "error", text, sandbox.remedy), *_notes(sandbox.notes)]
    if sandbox.backend == unsandboxed.NAME:
        text = "THERE IS NONE: scripts run with all rights of this user, and nothing holds them"
        return [check("sandbox", "warning", text, f"unset {unsandboxed.VARIABLE}")]
    parts = f"memory by {sandbox.memory}, processes by {sandbox.pids}, network {sandbox.network}"
    checks = [check("sandbox", "ok", f"{sandbox.backend} {sandbox.version or sandbox.path} works; {parts}")]
    elsewhere = BACKENDS[sandbox.backend].elsewhere
    groups = cgroups.status()
    for layer, protects in PROTECTS.items():
        name = f"layer {layer}"
        if layer in sandbox.layers:
            checks.append(check(name, "ok", protects))
        elif layer in elsewhere:
            checks.append(check(name, "warning", f"{elsewhere[layer]} ({protects})", "use bubblewrap"))
        elif layer == "cgroup":
            text = f"not there: {groups.reason}; resource limits and the watchdog hold instead"
            checks.append(check(name, "warning", text, groups.remedy))
        elif layer not in DROPS_ROOT or os.geteuid() == 0:
            checks.append(check(name, "error", f"not there: {protects}", "run `tamis doctor` as the daemon's user"))
    notes = _notes(note for note in sandbox.notes if not note.startswith("no control groups"))
    return [*checks, *notes, *(_lent(settings) if os.geteuid() == 0 else ())]


def _lent(settings: Settings) -> list[dict[str, Any]]:
    """As root: which folders tools write one after the other."""
    from tamis.sandbox.model import Refusal, Unavailable
    from tamis.sandbox.paths.access import why_lent

    checks: list[dict[str, Any]] = []
    for folder in (name for name in settings.policy.write_roots if name.startswith("/")):
        try:
            reason = why_lent(os.path.realpath(folder))
        except (OSError, ValueError, Refusal, Unavailable):
            continue  # a folder that cannot be had is told with the policy
        if reason:
            text = f"{folder} is lent to one run at a time: {reason}"
            checks.append(check("writable folder", "warning", text, "use a file system that takes id-mapped mounts"))
    return checks


def _notes(notes: Iterable[str]) -> list[dict[str, Any]]:
    return [check("sandbox note", "warning", note) for note in notes]


def installer_checks(settings: Settings, needed: set[str]) -> list[dict[str, Any]]:
    """The package managers that build dependency environments; ``needed`` are the kinds that registered tools declare."""
    from tamis.environments.javascript import installer
    from tamis.sandbox.interpreters import Missing, find_uv
    from tamis.server.runtime.handlers.script.dependencies import options_of
    from tamis.server.runtime.handlers.script.interpreters import interpreters_of

    checks: list[dict[str, Any]] = []
    uv = find_uv(interpreters_of(settings).uv)
    if isinstance(uv, Missing):
        state: State = "error" if "python" in needed else "warning"
        checks.append(check("uv", state, f"{uv.reason}; Python dependencies cannot be installed", uv.remedy))
    else:
        checks.append(check("uv", "ok", uv))
    manager = installer(options_of(settings))
    if isinstance(manager, Missing):
        state = "error" if "javascript" in needed else "warning"
        text = f"{manager.reason}; JavaScript dependencies cannot be installed"
        checks.append(check("bun or npm", state, text, manager.remedy))
    else:
        checks.append(check("bun or npm", "ok", manager))
    return checks


def folder_checks() -> list[dict[str, Any]]:
    """The folders that outlive a process: whether they are, or can be made, this user's."""
    from tamis.server.runtime.store.folders import cache_folder, state_folder

    checks: list[dict[str, Any]] = []
    for name, folder, variable in (
        ("state folder", state_folder(), "TAMIS_STATE_DIR"),
        ("cache folder", cache_folder(), "TAMIS_CACHE_DIR"),
    ):
        fault = _folder_fault(str(folder))
        if fault:
            checks.append(check(name, "warning", f"{folder} {fault}", f"mend its rights, or set {variable}"))
        else:
            checks.append(check(name, "ok", str(folder)))
    return checks


def _folder_fault(path: str) -> str:
    while not os.path.lexists(path):
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    try:
        facts = os.stat(path)
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    if not os.path.isdir(path):
        return f"cannot be made: {path} is no folder"
    if not os.access(path, os.W_OK | os.X_OK):
        return (
            f"cannot be written: {path} is closed to this user (owner {facts.st_uid}, mode {facts.st_mode & 0o777:o})"
        )
    return ""
