"""Show what a folder's tamis.toml asks for beyond what it may set by itself, and record that you trust it; exit code 3 when not."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import print_json, warn, write_line, write_note, write_question
from tamis.server.runtime.settings.files import FILE_NAME

if TYPE_CHECKING:
    from tamis.server.runtime.settings.config import LoadedSettings, NotInForce

NOT_TRUSTED = 3

_MEANS = (
    ("sandbox.interpreters", "runs tools by this program"),
    ("sandbox.runners", "runs tools by another launcher"),
    ("sandbox.runtimes", "runs tools by programs of its own, and shows them places of this machine"),
    ("sandbox.backend", "chooses what sandboxes"),
    ("sandbox", "raises a limit of runs"),
    ("mcpServers", "runs these MCP servers in the sandbox"),
    ("handlers", "runs code of installed packages in Tamis itself, without a sandbox"),
    ("sources", "asks these installed packages for tools in Tamis itself, without a sandbox"),
    ("engine", "has workflows run by something else"),
    ("policy.readRoots", "lets tools read below these folders"),
    ("policy.writeRoots", "lets tools write below these folders"),
    ("policy.allowHosts", "lets tools reach these hosts"),
    ("policy.allowCidrs", "lets tools reach these addresses, which are not public"),
    ("policy.pin", "says at which address a host is"),
    ("policy.capabilities", "lets tools require these capabilities"),
    ("policy.secrets", "gives these of your secrets to its tools"),
    ("policy.hosts", "adds your secrets to the requests to these hosts"),
    ("policy.allowBuild", "lets tools build packages from source"),
    ("policy.tools", "lets tools run unasked"),
    ("policy.rules", "lets calls run unasked"),
    ("policy", "loosens the policy"),
    ("secrets", "takes secrets from these variables, files or programs"),
    ("dependencies", "changes where packages come from or how many are kept"),
    ("audit", "changes where and whether calls are written down"),
    ("telemetry", "sends traces of calls to this address"),
    ("tasks.callbackUrl", "tells this address of the end of tasks"),
    ("tools", "takes tools from outside the folder"),
    ("workflows", "takes workflows from outside the folder"),
    ("resources", "opens folders outside of it as resources"),
    ("profile", "takes its agent profile from elsewhere"),
    ("protocol", "has more of a text run as calls"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis trust``."""
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="the folder (default: the root)")
    parser.add_argument("--yes", "-y", action="store_true", help="trust without asking")
    parser.add_argument("--list", action="store_true", help="the folders that you trust")
    parser.add_argument("--revoke", action="store_true", help="trust the folder no longer")
    parser.add_argument("--json", action="store_true", help="print what there is to tell as JSON; asks nothing")


def run(arguments: argparse.Namespace) -> int:
    """Shows, asks, and records; 0 when the folder is trusted or asks for nothing, 3 when it is not trusted."""
    from tamis.server.runtime.settings.trust import TrustFault

    try:
        if arguments.list:
            return _list(arguments.json)
        if arguments.revoke:
            return _revoke(arguments.folder or str(root_of(arguments.root)))
        return _trust(arguments, _root(arguments))
    except UsageError as error:
        warn(str(error))
        return 2
    except TrustFault as fault:
        warn(str(fault))
        return 1


def _root(arguments: argparse.Namespace) -> Path:
    if arguments.folder is None:
        return root_of(arguments.root)
    if not os.path.isdir(arguments.folder):
        raise UsageError(f"'{arguments.folder}' is not a folder")
    return Path(arguments.folder).resolve()


def _list(as_json: bool) -> int:
    from tamis.server.runtime.settings.loading import recorded_now
    from tamis.server.runtime.settings.trust import trusted_folders

    folders = [
        {
            "folder": folder,
            "trustedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.at)),
            "changed": not recorded_now(Path(folder)),
        }
        for folder, entry in trusted_folders().items()
    ]
    if as_json:
        print_json({"folders": folders})
        return 0
    if not folders:
        write_line("no folder is trusted")
    for item in folders:
        write_line(f"{item['folder']}  {item['trustedAt']}{'  changed since' if item['changed'] else ''}")
    return 0


def _revoke(folder: str) -> int:
    from tamis.server.runtime.settings.trust import revoke

    if revoke(folder):
        write_line(f"{os.path.realpath(folder)} is not trusted any more")
        return 0
    warn(f"{os.path.realpath(folder)} was not trusted")
    return NOT_TRUSTED


def _trust(arguments: argparse.Namespace, root: Path) -> int:
    from tamis.server.runtime.settings.loading import load_settings, recorded_now

    loaded_settings, bare = load_settings(root), load_settings(root, trusted=False)
    recorded = recorded_now(root)
    problems = _problems(root, loaded_settings)
    for problem in problems:
        warn(problem)
    if arguments.json and not arguments.yes:
        print_json(_as_json(root, bare, recorded, problems))
        return 1 if bare.closed else 0 if recorded or not bare.asks else NOT_TRUSTED
    if bare.closed:
        return _refuse(root, bare)
    if recorded:
        write_line(f"{root} is trusted as it is{'; it sets:' if bare.asks or granted_already(root, bare) else ''}")
        for line in _settings_lines(root, bare):
            write_line(line)
        return 0
    if not bare.asks:
        write_line(f"{root} asks for nothing that needs your trust")
        for line in _settings_lines(root, bare):
            write_line(line)
        # what the user's own configuration grants its tools is told or asked about until it is trusted
        return record(root, bare) if arguments.yes else 0
    for line in asked_lines(root, bare):
        write_line(line)
    if not arguments.yes and not ask("Trust it as it is now? [y/N] "):
        write_note("not trusted; nothing of this is in force")
        return NOT_TRUSTED
    return record(root, bare)


def _problems(root: Path, loaded: LoadedSettings) -> list[str]:
    """What is wrong with the settings, each of the folder's own with its place."""
    from tamis.protocols.catalogue import message
    from tamis.protocols.positions import LineIndex
    from tamis.server.analysis.configuration.findings import settings_findings

    path = root / FILE_NAME
    try:
        text = loaded.folder_text.decode("utf-8")
    except UnicodeDecodeError:
        return list(loaded.problems)
    lines = LineIndex(text)
    located: list[str] = []
    for diag in settings_findings(text):
        line, column = lines.position(diag.span[0])
        located.append(f"{path}:{line + 1}:{column + 1}: {message(diag)}")
    told = loaded.folder_problems if located else ()
    return [*located, *(problem for problem in loaded.problems if problem not in told)]


def _refuse(root: Path, bare: LoadedSettings) -> int:
    """Says that a folder with a fault is not trusted, and what it asks for all the same."""
    from tamis.server.runtime.settings.trust import trusted_folders

    for line in asked_lines(root, bare) if bare.asks else ():
        write_line(line)
    known = os.path.realpath(root) in trusted_folders()
    before = "; that you trusted it as it was before does not count for what it is now" if known else ""
    write_note(f"not trusted, and nothing is recorded until what is told above is mended{before}")
    return 1


def _as_json(root: Path, bare: LoadedSettings, recorded: bool, problems: list[str]) -> dict[str, Any]:
    from tamis.server.runtime.settings.config import plain

    return {
        "folder": str(root),
        "trusted": recorded,
        "problems": problems,
        "asks": [
            {"setting": setting.setting, "value": plain(setting.asked), "means": means(setting)}
            for setting in bare.asks
        ],
        "grantedAlready": [
            {"setting": setting.setting, "value": plain(setting.asked), "means": means(setting)}
            for setting in granted_already(root, bare)
        ],
    }


def means(asked: NotInForce) -> str:
    """What a setting that a folder asks for lets happen, in plain words."""
    name = asked.setting
    return next((words for begin, words in _MEANS if name == begin or name.startswith(f"{begin}.")), "sets it")


def granted_already(root: Path, bare: LoadedSettings) -> list[NotInForce]:
    """What a folder asks for that it has at the moment by the operator's own settings, whole or in part: trusted, it has that without them too."""
    from tamis.server.runtime.settings.loading import asked_by_itself

    told = [(setting.setting, setting.asked) for setting in bare.asks]
    return [one for one in asked_by_itself(root, bare.folder_text) if (one.setting, one.asked) not in told]


def _settings_lines(root: Path, bare: LoadedSettings) -> Iterator[str]:
    """Everything that trust in a folder puts in force, or holds there, with what it lets happen."""
    from tamis.server.runtime.settings.config import toml_value

    for setting in bare.asks:
        yield f"  {means(setting)}: {setting.setting} = {toml_value(setting.asked)}"
    for setting in granted_already(root, bare):
        value = toml_value(setting.asked)
        yield f"  {means(setting)}: {setting.setting} = {value} (yours grant it now, at least in part; trusted, the folder keeps it without them)"


def asked_lines(root: Path, bare: LoadedSettings) -> Iterator[str]:
    """What a folder asks for, and how its file differs from the one that was trusted."""
    from tamis.server.runtime.settings.loading import changed_files
    from tamis.server.runtime.settings.trust import trusted_folders

    yield f"{root / FILE_NAME} asks for more than a folder may set by itself:"
    yield from _settings_lines(root, bare)
    before = trusted_folders().get(os.path.realpath(root))
    if before is None:
        return
    yield "It was trusted as it was before; it, or a file that it names, has changed:"
    yield from (f"  {path} {change}" for path, change in changed_files(root).items())
    now = bare.folder_text.decode("utf-8", "replace")
    changes = difflib.unified_diff(before.text.splitlines(), now.splitlines(), "trusted", "now", lineterm="", n=1)
    yield from (f"  {line}" for line in changes)


def ask(question: str) -> bool:
    """Whether a person on the terminal says yes; no where there is none."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        warn("there is no terminal to ask on; --yes trusts without asking")
        return False
    write_question(question)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def record(root: Path, shown: LoadedSettings) -> int:
    """Records the folder as it was shown; a file that changed meanwhile is not trusted. Raises ``TrustFault``."""
    from tamis.server.runtime.settings.loading import record_trust

    if not record_trust(root, shown.folder_text):
        warn(f"{root / FILE_NAME} changed meanwhile, and is not trusted")
        return NOT_TRUSTED
    write_note(f"{root} is trusted; `tamis trust --revoke` takes it back")
    return 0


def offer(root: Path) -> None:
    """Asks on the terminal, for a command that goes on either way."""
    from tamis.server.runtime.settings.loading import load_settings
    from tamis.server.runtime.settings.trust import TrustFault

    bare = load_settings(root, trusted=False)
    if bare.closed or not bare.folder_text:
        return
    for line in asked_lines(root, bare):
        write_note(line)
    try:
        if ask("Trust it as it is now? Else it runs without. [y/N] "):
            record(root, bare)
    except TrustFault as fault:
        warn(str(fault))
