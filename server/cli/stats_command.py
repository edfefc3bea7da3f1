"""Count the calls in logs of messages: by protocol, tool and model, what kept them from running, repairs, unknown names.

FILE is a JSON record a line, or Parquet; - or nothing is stdin. The registered tools are those that names are held against.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.server.cli import logs
from tamis.server.cli.inputs import PROTOCOL_HELP, UsageError, check_protocol, root_of, tell_settings
from tamis.server.cli.outputs import Paint, print_json, warn, write_document, write_line

if TYPE_CHECKING:
    from tamis.protocols.counts import Counts, Numbers

_ROWS = 15
_NAME = 44
_COLUMNS = ("calls", "executable", "set aside", "cut off", "refused", "repaired")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis stats``."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="logs; - or nothing is stdin")
    parser.add_argument("--json", action="store_true", help="print all counts as JSON")
    parser.add_argument("--html", metavar="FILE", help="write one page with plots that stands alone; - is stdout")
    parser.add_argument(
        "--model", default="model", metavar="PATH", help="where a record names its model (default: model)"
    )
    parser.add_argument("--protocol", default="auto", metavar="P", help=PROTOCOL_HELP)
    parser.add_argument("--cut-off", action="store_true", help="all texts are known to be cut off at their end")
    parser.add_argument("--no-tools", action="store_true", help="do not let the registered tools guide the reading")
    logs.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Reads the logs and prints the counts."""
    from tamis.protocols.counts import Counts

    names = arguments.files or ["-"]
    total = Counts()
    try:
        root = root_of(arguments.root)
        check_protocol(arguments.protocol)
        if arguments.html is not None:
            _check_place(arguments.html, as_json=arguments.json)
        texts = logs.texts_of(arguments.field, arguments.model)
        read = logs.Logs(arguments, texts)
        from tamis.protocols.api import Reader
        from tamis.protocols.counts import KnownTools
        from tamis.server.logs.parsing import Count, lost_counts
        from tamis.server.runtime.runtime import Runtime

        runtime = Runtime(root)
        tell_settings(runtime.loaded, runtime.problems)
        options = runtime.read_options(complete=not arguments.cut_off, guided=not arguments.no_tools)
        known = KnownTools(options.tools) if options.tools else None
        total.tools_known = known is not None
        for counted in read.read(names, Count(texts, Reader(arguments.protocol, options), known), lost_counts):
            total.merge(counted.counts)
        if arguments.html is not None:
            _write_page(total, arguments.html, names)
    except UsageError as error:
        warn(str(error))
        return 2
    if arguments.json:
        print_json(total.data())
    elif arguments.html != "-":
        _print(total)
    return 0


def _check_place(name: str, *, as_json: bool) -> None:
    """Makes sure, before the logs are read, that a page can be written."""
    if name == "-":
        if as_json:
            raise UsageError("--html - and --json both write to standard output; give --html a file")
    elif os.path.isdir(name):
        raise UsageError(f"--html: '{name}' is a folder; name a file in it, or - for standard output")
    elif not os.path.isdir(os.path.dirname(name) or "."):
        raise UsageError(f"--html: the folder of '{name}' does not exist")


def _write_page(counts: Counts, name: str, names: list[str]) -> None:
    from tamis.protocols.counts import page

    shown = ", ".join("standard input" if name == "-" else Path(name).name for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    text = page(counts, f"Tool calls in {shown}{more}")
    if name == "-":
        write_document(text)
        return
    try:
        # half of a surrogate pair, which the name of a tool may hold, has no UTF-8
        Path(name).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"--html: cannot write '{name}': {error.strerror}") from None


def _print(counts: Counts) -> None:
    paint = Paint(sys.stdout)
    broken = f", {counts.broken:,} records without a text" if counts.broken else ""
    write_line(
        f"{counts.texts:,} texts ({counts.characters:,} characters), {counts.texts_with_calls:,} of them with calls{broken}"
    )
    width = max((len(name) for table in (counts.protocols, counts.tools, counts.models) for name in table), default=0)
    width = min(max(width, 12), _NAME)
    write_line(paint("1", " " * width + "".join(f"{column:>12}" for column in _COLUMNS)))
    write_line(_row("all", counts, width))
    if counts.cut_off_blocks or counts.refused_blocks:
        cut_off, refused = counts.cut_off_blocks, counts.refused_blocks
        write_line(f"besides: {cut_off:,} blocks cut off before a call, {refused:,} refused without one")
    for title, table in (("protocol", counts.protocols), ("tool", counts.tools), ("model", counts.models)):
        if not table:
            continue
        write_line()
        write_line(paint("1", f"by {title}"))
        ranked = sorted(table.items(), key=lambda item: (-item[1].calls, item[0]))
        for name, numbers in ranked[:_ROWS]:
            write_line(_row(name, numbers, width))
        _tell_rest(len(ranked))
    _print_codes("repairs", counts.repairs)
    _print_counts("set aside, by context", counts.contexts)
    _print_codes("errors", counts.errors)
    if counts.tools_known:
        _print_counts("unknown tools", counts.unknown_tools)
        parameters = (
            (f"{tool} {n}", count) for tool, of in counts.unknown_parameters.items() for n, count in of.items()
        )
        _print_counts("unknown parameters", dict(parameters))
    elif counts.calls:
        write_line()
        write_line("no tools are registered here, so that no name is known to be wrong")


def _row(name: str, numbers: Numbers, width: int) -> str:
    shown = name if len(name) <= width else f"{name[: width - 1]}…"
    values = (
        numbers.calls,
        numbers.executable,
        numbers.set_aside,
        numbers.cut_off,
        numbers.refused,
        numbers.repaired,
    )
    return f"{shown:<{width}}" + "".join(f"{value:>12,}" for value in values)


def _print_codes(title: str, counts: Mapping[str, int]) -> None:
    from tamis.protocols.catalogue import CATALOGUE

    _print_counts(
        title, {f"{code} {CATALOGUE[code].slug}" if code in CATALOGUE else code: n for code, n in counts.items()}
    )


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    write_line()
    write_line(Paint(sys.stdout)("1", title))
    ranked: Iterable[tuple[str, int]] = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for name, count in list(ranked)[:_ROWS]:
        write_line(f"{count:>12,}  {name}")
    _tell_rest(len(counts))


def _tell_rest(count: int) -> None:
    if count > _ROWS:
        write_line(f"… and {count - _ROWS:,} more (--json prints all)")
