"""Diagnostics for manifests, workflows, agent profiles, tamis.toml and the calls in texts; exit code 1 when there are errors."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.protocols.export.names import TARGET_WORDS
from tamis.server.cli.findings import finding_line
from tamis.server.cli.inputs import UsageError, root_of, tell_settings
from tamis.server.cli.outputs import Paint, print_json, warn, write_line, write_note

if TYPE_CHECKING:
    from tamis.server.analysis.answers import Finding
    from tamis.server.analysis.snapshot import FolderFacts, Settings
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.settings.config import Settings as OwnSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis check``."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or folders (default: the root)")
    parser.add_argument("--format", choices=["text", "json", "sarif", "github"], default="text")
    parser.add_argument(
        "--target",
        action="append",
        choices=list(TARGET_WORDS),
        metavar="TARGET",
        help=f"name what {', '.join(TARGET_WORDS)} would refuse or lose of the tools; may be given several times",
    )
    parser.add_argument("--strict", action="store_true", help="warnings fail, and what reading repaired is an error")


def run(arguments: argparse.Namespace) -> int:
    """Checks the paths and prints what was found."""
    try:
        root = root_of(arguments.root)
        paths = [Path(os.path.abspath(path)) for path in arguments.paths] or [root]
        missing = [str(path) for path in paths if not path.exists() and not path.is_symlink()]
        if missing:
            raise UsageError(f"'{missing[0]}' does not exist")
    except UsageError as error:
        warn(str(error))
        return 2
    import msgspec

    from tamis.protocols.levels import TARGETS_KEY
    from tamis.server.analysis.kinds import kind_of
    from tamis.server.analysis.snapshot import FolderFacts
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.settings.files import FILE_NAME, can_be_path, find_root
    from tamis.server.runtime.texts.checkables import files_beside, find_checkables, find_workflows
    from tamis.server.runtime.tools.loader import SUFFIX

    runtimes: dict[Path, Runtime] = {}
    known_workflows: dict[Path, dict[str, str]] = {}

    def runtime_of(path: str) -> Runtime:
        # A folder below the root with a tamis.toml of its own is a root of its own: its texts call its tools.
        nearest = find_root(Path(path).parent)
        own = nearest if nearest.is_relative_to(root) and os.path.lexists(nearest / FILE_NAME) else root
        if own not in runtimes:
            runtimes[own] = Runtime(own)
            loaded = runtimes[own].loaded
            # what is wrong in a file that is checked and could be read is among its findings
            checked = loaded.folder_text and any(file.path == str(own / FILE_NAME) for file in files)
            found = loaded.folder_problems if checked else ()
            tell_settings(loaded, [problem for problem in loaded.problems if problem not in found])
            known_workflows[runtimes[own].root] = _workflows(runtimes[own])
        return runtimes[own]

    # Of each folder once: a folder with all its manifests in it would be listed for each of them.
    beside = functools.cache(files_beside)

    def findings_of(path: str, text: str) -> list[Finding]:
        runtime = runtime_of(path)
        workflows = known_workflows[runtime.root] if runtime.settings.workflows else None
        own = runtime.settings
        if arguments.target:
            own = msgspec.structs.replace(own, lint={**own.lint, TARGETS_KEY: arguments.target})
        folder = FolderFacts(*beside(os.path.dirname(path))) if kind_of(path, "") == "manifest" else None
        return _findings(path, text, runtime, own, arguments.strict, manifests, workflows, path in graphs, folder)

    files, problems = find_checkables(paths)
    # Workflow folders are those of every root that the paths stand in or hold.
    inner = [runtime_of(str(path / FILE_NAME)).root for path in paths]
    inner += [Path(file.path).parent for file in files if os.path.basename(file.path) == FILE_NAME]
    tops = dict.fromkeys(Path(os.path.realpath(top)) for top in (root, *inner))
    named = ((top, name) for top in tops for name in runtime_of(str(top / FILE_NAME)).settings.workflows)
    folders = [top / name for top, name in named if can_be_path(name)]
    if workflows := find_workflows(paths, folders):
        files, problems = find_checkables(paths, workflows)
    graphs = {*workflows, *(str(path) for path in paths if not path.is_dir())}
    manifests = {file.path: file.text for file in files if file.path.endswith(SUFFIX)}
    report = [
        (file.path, file.text, [_unreadable(file.refused)] if file.refused else findings_of(file.path, file.text))
        for file in files
    ]
    for own in {id(runtime): runtime for runtime in map(runtime_of, (file.path for file in files))}.values():
        report.extend(_packages({os.path.realpath(file.path) for file in files if file.path.endswith(SUFFIX)}, own))
    report.extend(_operators(runtime_of(str(root / FILE_NAME))))
    for problem in problems:
        if problem.passed:
            warn(f"{_shown(problem.path)} {problem.message}")
        else:
            report.append((problem.path, "", [_unreadable(problem.message)]))
    report.sort(key=lambda entry: entry[0])
    levels = [finding.severity for _, _, findings in report for finding in findings]
    errors, warnings = levels.count("error"), levels.count("warning")
    _WRITERS[arguments.format](report, errors, warnings)
    return 1 if errors or (arguments.strict and warnings) else 0


def _workflows(runtime: Runtime) -> dict[str, str]:
    """The file of each workflow by its id, also of those that cannot be used."""
    paths = {tool.tool_id: tool.path for tool in runtime.registry.tools if tool.origin == "workflow"}
    return paths | {
        error.tool_id: error.path for error in runtime.registry.errors if error.tool_id.startswith("workflow:")
    }


def analysis_settings(runtime: Runtime, own: OwnSettings, *, strict: bool = False) -> Settings:
    """What the analyses of a root's files go by."""
    from tamis.server.analysis.snapshot import Settings
    from tamis.server.runtime.tools.sources import extensions_of

    return Settings(
        strict_json=own.strict_json,
        runtimes=tuple(own.sandbox.runtimes),
        handlers=own.handlers,
        extensions=extensions_of(runtime.root, own),
        reasoning_calls=own.protocol.reasoning_calls,
        reasoning_tags=own.protocol.reasoning_tags,
        assume_open_reasoning=own.protocol.assume_open_reasoning,
        fenced_calls=own.protocol.fenced_calls,
        allow_multiple_blocks=own.protocol.allow_multiple_blocks,
        also=runtime.also,
        strict=strict,
        config=own,
    )


def _findings(
    path: str,
    text: str,
    runtime: Runtime,
    own: OwnSettings,
    strict: bool,
    texts: Mapping[str, str],
    workflows: Mapping[str, str] | None,
    is_graph: bool,
    folder: FolderFacts | None,
) -> list[Finding]:
    from tamis.server.analysis.diagnostics import diagnose
    from tamis.server.analysis.kinds import kind_of
    from tamis.server.analysis.snapshot import ScriptFile, Snapshot
    from tamis.server.runtime.settings.faults import disk_faults
    from tamis.server.runtime.texts.checkables import script_beside

    kind = kind_of(path, "")
    settings = analysis_settings(runtime, own, strict=strict)
    script = None
    if kind == "manifest" and (read := script_beside(path, text)) is not None:
        script = ScriptFile(*read)
    mcp = None
    if kind == "manifest" and '"mcp"' in text:
        from tamis.server.runtime.settings.mcp_servers import problems

        mcp = problems(runtime.root, own)
    snapshot = Snapshot(
        path,
        kind,
        text,
        runtime.registry,
        folder=folder,
        settings=settings,
        neighbours=texts,
        script=script,
        workflows=workflows,
        settings_faults=disk_faults(Path(path).absolute().parent, text) if kind == "settings" else (),
        is_graph=is_graph,
        mcp=mcp,
    )
    return diagnose(snapshot)


def _packages(manifests: set[str], runtime: Runtime) -> Report:
    """What is wrong with the packages that the scripts of these manifests declare, at the file that declares them."""
    from tamis.protocols.model import Diag
    from tamis.server.analysis.diagnostics import to_finding
    from tamis.server.runtime.handlers.script.dependencies import tools_with_scripts, unusable
    from tamis.server.runtime.texts.checkables import text_of

    packages: Report = []
    for tool, handler in tools_with_scripts(runtime.registry):
        wrong = unusable(tool, handler, runtime.settings) if os.path.realpath(tool.path) in manifests else None
        if wrong is not None:
            text = text_of(wrong.path)
            start = sum(len(line) for line in text.splitlines(keepends=True)[: max(0, wrong.line - 1)])
            args: dict[str, str | int] = {"v": f"'{tool.tool_id}'", "reason": wrong.reason}
            packages.append((wrong.path, text, [to_finding(Diag("MF543", (start, start), args))]))
    return packages


def _operators(runtime: Runtime) -> Report:
    """What is wrong with the operator's own files so that no tool can be run: else a check of what they let nobody read would be a pass."""
    from tamis.server.analysis.diagnostics import diagnose
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.runtime.texts.checkables import text_of

    report: Report = []
    problems = dict(reversed(runtime.loaded.operators_problems)) if runtime.loaded.closed else {}
    for path, problem in problems.items():
        text = text_of(os.path.realpath(path))
        found = diagnose(Snapshot(path, "settings", text, runtime.registry))
        errors = [finding for finding in found if finding.severity == "error"]
        report.append((path, text, errors or [_unreadable(problem)]))
    return report


def _unreadable(message: str) -> Finding:
    from tamis.server.analysis.answers import Finding

    return Finding((0, 0), "MF500", "unreadable", "error", message)


Report = list[tuple[str, str, "list[Finding]"]]


def _shown(path: str) -> str:
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def _places(report: Report) -> list[tuple[str, Finding, str, int, int, int, int]]:
    """Every finding with its level and its one-based place."""
    from tamis.protocols.positions import LineIndex

    places: list[tuple[str, Finding, str, int, int, int, int]] = []
    for path, text, findings in report:
        lines = LineIndex(text)
        for finding in findings:
            (line, column), (end_line, end_column) = (lines.position(offset) for offset in finding.span)
            level = finding.severity
            places.append((_shown(path), finding, level, line + 1, column + 1, end_line + 1, end_column + 1))
    return places


def _write_text(report: Report, errors: int, warnings: int) -> None:
    paint = Paint(sys.stdout)
    for path, finding, level, row, column, _, _ in _places(report):
        # what a target is told otherwise is said to those who asked for targets
        if level in ("error", "warning", "information") or finding.code.startswith("TH"):
            code = f"{finding.code} {finding.slug}"
            write_line(*finding_line(paint, f"{path}:{row}:{column}", level, finding.message, code))
    count = len(report)
    parts = [
        f"{number} {word}{'' if number == 1 else 's'}" for number, word in ((errors, "error"), (warnings, "warning"))
    ]
    write_note(f"{count} file{'' if count == 1 else 's'} checked, {', '.join(parts)}")


def _write_json(report: Report, errors: int, warnings: int) -> None:
    from msgspec import UNSET

    from tamis.protocols.contract import CheckResult, Diagnostic, FileDiagnostics, TextEdit
    from tamis.protocols.positions import LineIndex
    from tamis.protocols.wire import to_range
    from tamis.server.runtime.settings.rule_pages import page_uri

    files: list[FileDiagnostics] = []
    for path, text, findings in report:
        lines = LineIndex(text)
        files.append(
            FileDiagnostics(
                path=_shown(path),
                diagnostics=[
                    Diagnostic(
                        code=finding.code,
                        slug=finding.slug,
                        severity=finding.severity,  # pyright: ignore[reportArgumentType]
                        range=to_range(finding.span, lines, None),
                        message=finding.message,
                        fix=[
                            TextEdit(range=to_range((edit.start, edit.end), lines, None), new_text=edit.new_text)
                            for edit in finding.fix.edits
                        ]
                        if finding.fix is not None
                        else UNSET,
                        data={"href": uri} if (uri := page_uri(finding.code)) else UNSET,
                    )
                    for finding in findings
                ],
            )
        )
    print_json(CheckResult(files=files, errors=errors, warnings=warnings))


def _write_github(report: Report, errors: int, warnings: int) -> None:
    words = {"error": "error", "warning": "warning", "information": "notice"}
    for path, finding, level, row, column, end_row, end_column in _places(report):
        if level in words:
            file = _github(path).replace(":", "%3A").replace(",", "%2C")
            place = f"file={file},line={row},col={column},endLine={end_row},endColumn={end_column}"
            write_line(f"::{words[level]} {place},title={finding.code} {finding.slug}::{_github(finding.message)}")


def _github(text: str) -> str:
    """A text as a workflow command takes it: a line end of a file's name or a message begins no command of its own."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _write_sarif(report: Report, errors: int, warnings: int) -> None:
    from tamis import __version__

    levels = {"error": "error", "warning": "warning", "information": "note", "hint": "none"}
    results: list[dict[str, Any]] = []
    rules: dict[str, dict[str, Any]] = {}
    for path, finding, level, line, column, end_line, end_column in _places(report):
        if finding.code not in rules:
            rules[finding.code] = _rule(finding)
        results.append(
            {
                "ruleId": finding.code,
                "level": levels[level],
                "message": {"text": finding.message},
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": {"uri": path},
                            "region": {
                                "startLine": line,
                                "startColumn": column,
                                "endLine": end_line,
                                "endColumn": end_column,
                            },
                        }
                    }
                ],
            }
        )
    driver = {"name": "tamis", "version": __version__, "rules": list(rules.values())}
    print_json(
        {
            "version": "2.1.0",
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
        }
    )


def _rule(finding: Finding) -> dict[str, Any]:
    """A rule as SARIF describes it, with its page."""
    from tamis.server.runtime.settings.rule_pages import page_text, page_uri

    rule: dict[str, Any] = {"id": finding.code, "name": finding.slug}
    if uri := page_uri(finding.code):
        rule["helpUri"] = uri
    if text := page_text(finding.code):
        rule["help"] = {"text": text, "markdown": text}
    return rule


_WRITERS = {"text": _write_text, "json": _write_json, "sarif": _write_sarif, "github": _write_github}
