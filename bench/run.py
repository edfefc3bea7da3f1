"""Benchmarks, each beside an anchor that runs in the same turn; ratios are what counts.

usage: python bench/run.py                  prints every table and writes bench/results.md
       python bench/run.py PART …           prints these tables
       python bench/run.py --write PART …   and puts them into bench/results.md in place of the older ones
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Behind what is installed: the folder `tamis` here holds only a part of the package.
sys.path.append(str(ROOT))

from bench.measure import machine  # noqa: E402

PARTS = {
    "start": "processes:bench_start",
    "registry": "processes:bench_registry",
    "call": "processes:bench_call",
    "parse": "reading:bench_parse",
    "protocols": "reading:bench_protocols",
    "tolerant": "reading:bench_tolerant",
    "many": "many:bench_many",
    "streaming": "streaming:bench_streaming",
    "growth": "growth:bench_growth",
    "memory": "growth:bench_memory",
    "rpc": "daemon:bench_rpc",
    "mcp": "mcp:bench_mcp",
    "services": "daemon:bench_services",
    "environments": "environments:bench_environments",
    "check": "checking:bench_check",
    "write": "writing:bench_write",
    "tokens": "tokens:bench_tokens",
    "corpus": "processes:bench_corpus",
    "lsp": "lsp:bench_lsp",
    "shapes": "shapes:bench_shapes",
    "sandbox": "sandbox:bench_sandbox",
    "sandbox-rate": "sandbox:bench_rate",
    "sandbox-pace": "sandbox:bench_pace",
    "sandbox-kill": "sandbox:bench_kill",
    "sandbox-idle": "sandbox:bench_idle",
}
"""Name on the command line: where the function is that gives the part's table."""
HEAD = """# Benchmarks

Written by `python bench/run.py`. Compare ratios, not times. All sides of a ratio run in turn, round by round, in one process and
run (fast-xml-parser and the servers in processes of their own), so that a slow second of the machine hits all of them. What runs
in one process is measured in processor time; the garbage collector is off while it runs. Bars are those of the project's speed
goals, a second figure in brackets is what it aims at.
"""


def part(name: str) -> Callable[[], str]:
    """The function that measures a part."""
    module, _, function = PARTS[name].partition(":")
    return getattr(import_module(f"bench.{module}"), function)


def replaced(results: str, tables: list[str], where: str) -> str:
    """The page with the sections of `tables` in place of those of the same headings; new ones stand at the end.

    A section that was measured on another machine than the page's says so under its heading.
    """
    head, *sections = re.split(r"(?m)^(?=### )", results)
    by_heading = {section.partition("\n")[0]: section for section in sections}
    for section in re.split(r"(?m)^(?=### )", "\n".join(tables)):
        heading, _, rows = section.partition("\n")
        note = "" if f"Measured on {where}." in head else f"\nMeasured on {where}.\n"
        by_heading[heading] = f"{heading}\n{note}{rows.rstrip()}\n\n"
    by_heading = {heading: section.rstrip() + "\n\n" for heading, section in by_heading.items() if heading}
    return (head + "".join(by_heading.values())).rstrip() + "\n"


def main() -> None:
    arguments = sys.argv[1:]
    write = not arguments or "--write" in arguments
    names = [name for name in arguments if name != "--write"]
    if write and arguments and not names:
        sys.exit("--write wants the parts to measure")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        sys.exit(f"no part {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        # What is installed has its bytecode; a process that compiles each module anew is no measure.
        # In a folder of its own: bytecode is code, and a name that others can guess would let them write it.
        os.environ["PYTHONPYCACHEPREFIX"] = compiled = tempfile.mkdtemp(prefix="tamis-bench-")
        atexit.register(shutil.rmtree, compiled, ignore_errors=True)
    parts = [f"Measured on {machine()}.\n"]
    print(parts[0])
    for name in names or PARTS:
        started = time.monotonic()
        parts.append(part(name)())
        print(parts[-1], f"({name}: {time.monotonic() - started:.0f} s)\n", sep="\n", flush=True)
    if write:
        page = ROOT / "bench" / "results.md"
        text = replaced(page.read_text("utf-8"), parts[1:], machine()) if names else "\n".join([HEAD, *parts])
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
