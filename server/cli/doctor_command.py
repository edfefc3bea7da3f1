"""Say what works on this machine and what does not, each problem with its remedy; exit code 1 when something is wrong."""

from __future__ import annotations

import argparse
import platform
import sys
from typing import Any

from tamis import __version__
from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import Paint, print_json, warn, write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis doctor``."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the report."""
    try:
        root = root_of(arguments.root)
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.doctor import examine
    from tamis.server.runtime.runtime import Runtime

    report = examine(Runtime(root))
    if arguments.json:
        print_json({"version": __version__, **report})
        return 0 if report["ok"] else 1
    paint = Paint(sys.stdout)
    write_line(f"tamis {__version__} · Python {platform.python_version()} · {platform.system()} {platform.release()}")
    for check in report["checks"]:
        _print_check(check, paint)
    return 0 if report["ok"] else 1


def _print_check(check: dict[str, Any], paint: Paint) -> None:
    marks = {"ok": paint("32", "ok  "), "warning": paint("33", "warn"), "error": paint("31", "FAIL")}
    write_line(marks[check["state"]], f"  {check['name']}: {check['text']}")
    if check.get("remedy"):
        write_line(f"      remedy: {check['remedy']}")
