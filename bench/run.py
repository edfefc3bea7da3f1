"""Benchmarks: start-up, calls and reading, each beside an anchor that runs in the same process and turn.

usage: python bench/run.py [start|call|parse|corpus …]     prints tables and writes bench/results.md when all are run
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Behind what is installed: the folder `tamis` here holds only a part of the package.
sys.path.append(str(ROOT))

from bench.measure import Sample, in_turn, machine, process, table  # noqa: E402

CORPUS = ROOT.parent / "shared" / "corpora" / "calls"
SMALL = "<ACTION><t><a>1</a></t></ACTION>"


def bench_start() -> str:
    """Whole processes beside a bare interpreter that imports what any asyncio daemon needs."""
    python = sys.executable
    tamis = str(Path(python).parent / "tamis")
    with tempfile.TemporaryDirectory() as folder:
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode() + b"\n"
        found = in_turn(
            {
                "python -c 'import asyncio, msgspec'": process([python, "-c", "import asyncio, msgspec"]),
                "version": process([tamis, "--version"]),
                "parse": process([tamis, "parse", "--root", folder, "-"], data=SMALL.encode()),
                "list": process([tamis, "list", "--root", str(ROOT / "examples")]),
                "rpc": process([tamis, "rpc", "--root", folder], data=ask),
            },
            rounds=15,
            at_least=0,
        )
    anchor = found["python -c 'import asyncio, msgspec'"]
    return table(
        "Start-up (whole processes)",
        [
            ("`tamis --version`", found["version"], anchor, "≤ 1.3"),
            ("`tamis parse` of a small text", found["parse"], anchor, "≤ 2"),
            ("`tamis list` of the examples", found["list"], anchor, ""),
            ("`tamis rpc`: start, initialize, end", found["rpc"], anchor, ""),
        ],
    )


def bench_call() -> str:
    """One call of a small JSON tool, in the sandbox, beside the same script as a plain subprocess."""
    from tamis.server.runtime.config import Settings
    from tamis.server.runtime.execute import CallRequest, Surroundings, execute
    from tamis.server.runtime.registry import load_registry
    from tests.toolbox import make_tool

    rows: list[tuple[str, Sample, Sample, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tool(folder, "bench:echo")
        settings = Settings()
        around = Surroundings(registry=load_registry(folder, settings), settings=settings)
        loop = asyncio.new_event_loop()

        def call() -> None:
            request = CallRequest(call_id="c", name="bench:echo", args={"text": "x"})
            result = loop.run_until_complete(execute(request, around))
            assert result.status == "success", result

        script = str(folder / "bench_echo" / "tool.py")
        plain = process(["/usr/bin/python3", "-s", "-B", script], data=b'{"text": "x"}', env={"PATH": "/usr/bin:/bin"})
        found = in_turn({"ours": call, "plain subprocess": plain}, rounds=25, at_least=0)
        rows.append(("sandboxed call of a Python tool", found["ours"], found["plain subprocess"], ""))
        loop.close()
    return table("Calls", rows)


def bench_parse() -> str:
    """Reading beside lxml and beside the usual pipeline of regular expression, lxml and dict."""
    from lxml import etree

    from tamis.protocols.reader import read_text

    def pipeline(text: str) -> list[tuple[str, dict[str, str]]]:
        found: list[tuple[str, dict[str, str]]] = []
        for match in re.finditer(r"<ACTION>(.*?)</ACTION>", text, re.S):
            tree = etree.fromstring(match.group())
            found.extend((str(tool.tag), {str(child.tag): child.text or "" for child in tool}) for tool in tree)
        return found

    def message(size: int, *, cdata: bool) -> tuple[str, str]:
        body = "some value with words in it, line after line\n" * (size // 45)
        value = f"<![CDATA[\n{body}]]>" if cdata else body
        block = f"<ACTION>\n  <write_file>\n    <path>src/app.ts</path>\n    <content>{value}</content>\n    <mode>replace</mode>\n  </write_file>\n</ACTION>"
        return "I will write the file now.\n" * 8 + block + "\nDone.", block

    rows: list[tuple[str, Sample, Sample, str]] = []

    def compare(what: str, text: str, anchor: str, other: Callable[[], object], bar: str, rounds: int = 15) -> None:
        found = in_turn({"ours": lambda: read_text(text), anchor: other}, rounds=rounds)
        rows.append((what, found["ours"], found[anchor], bar))

    small, small_block = message(1_700, cdata=False)
    compare("2 KB message", small, "lxml.fromstring(block)", lambda: etree.fromstring(small_block), "≤ 8")
    compare("2 KB message", small, "regex + lxml + dict", lambda: pipeline(small), "≤ 2")
    big, big_block = message(90_000, cdata=True)
    compare("100 KB message, 90 KB CDATA", big, "lxml.fromstring(block)", lambda: etree.fromstring(big_block), "≤ 0.7")
    log = "".join("prose line without anything\n" * 100 + small_block.replace("src", f"s{n}") for n in range(2_000))
    compare("10 MB log, 2,000 blocks", log, "regex + lxml + dict", lambda: pipeline(log), "≤ 2.5", 5)
    prose = "lorem ipsum dolor sit amet, consectetur\n" * 250_000
    compare("10 MB prose without a block", prose, "text.find('<ACTION>')", lambda: prose.find("<ACTION>"), "≤ 4", 7)
    return table("Reading", rows)


def bench_corpus() -> str:
    """The call sample, scored by its own runners."""
    if not CORPUS.is_dir():
        return "### Call corpus\n\nThe corpus is not there.\n"
    lines = ["### Call corpus (sample)", "", "```"]
    for words in (
        ["score.py", "--adapter", "tests.protocols.corpus_adapter:adapt"],
        ["prefix.py", "--adapter", "tests.protocols.corpus_adapter:adapt"],
        ["validate.py", "--adapter", "tests.protocols.validation_adapter:check"],
    ):
        start = (
            "import runpy, sys; sys.path[:0] = [sys.argv[2]]; sys.path.append(sys.argv[1]); "
            "sys.argv[:] = sys.argv[3:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        command = [sys.executable, "-P", "-c", start, str(ROOT), str(CORPUS), *words]
        done = subprocess.run(command, cwd=CORPUS, capture_output=True, text=True, check=False)
        lines += [f"$ {' '.join(words)}", *(done.stdout or done.stderr).rstrip().splitlines(), ""]
    return "\n".join([*lines, "```", ""])


BENCHES = {"start": bench_start, "call": bench_call, "parse": bench_parse, "corpus": bench_corpus}


def main() -> None:
    chosen = sys.argv[1:] or list(BENCHES)
    parts = [f"Measured on {machine()}.\n"]
    print(parts[0])
    for name in chosen:
        part = BENCHES[name]()
        print(part, flush=True)
        parts.append(part)
    if not sys.argv[1:]:
        head = "# Benchmarks\n\nWritten by `python bench/run.py`. Compare ratios, not times: both sides of a ratio ran in turn in one run.\n"
        (ROOT / "bench" / "results.md").write_text("\n".join([head, *parts]), encoding="utf-8")


if __name__ == "__main__":
    main()
