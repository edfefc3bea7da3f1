"""Whole processes: start-up, a sandboxed call, and the call sample's own runners."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import EFFORT, Sample, in_turn, process, table
from tamis.server.runtime.tools.sources import STEP_NS

ROOT = Path(__file__).resolve().parent.parent
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


def bench_registry() -> str:
    """A root of many tools: read from its files, and with what the process before kept of it (R7)."""
    from tests.sample_tools import make_tool

    count = EFFORT.size(10_000)
    tamis = str(Path(sys.executable).parent / "tamis")
    with tempfile.TemporaryDirectory() as name:
        root, kept = Path(name) / "root", Path(name) / "kept"
        properties = {"path": {"type": "string", "description": "A file"}, "count": {"type": "integer", "minimum": 1}}
        for index in range(count):
            make_tool(root / f"g{index // 100}", f"bench:t{index}", properties=properties, tags=["bench"])
        time.sleep(STEP_NS / 1e9 + 0.5)  # what is younger is not kept

        def listing(cache: Path) -> Callable[[], object]:
            return process([tamis, "list", "--root", str(root)], env={**os.environ, "TAMIS_CACHE_DIR": str(cache)})

        # nothing is kept inside a folder that is read
        cold, warm = listing(root / "inside"), listing(kept)
        warm()
        found = in_turn({"without what is kept": cold, "ours": warm}, rounds=5, at_least=0)
    row = (f"`tamis list` of {count:,} tools", found["ours"], found["without what is kept"], "≤ 0.3")
    return table("Many tools", [row])


def bench_call() -> str:
    """One call of a small JSON tool, in the sandbox, beside the same script as a plain subprocess."""
    from tamis.server.runtime.calls.model import CallContext, CallRequest
    from tamis.server.runtime.execution.pipeline import execute
    from tamis.server.runtime.services import Parts
    from tamis.server.runtime.settings.config import Settings
    from tamis.server.runtime.tools.reading import load_registry
    from tests.sample_tools import make_tool

    rows: list[tuple[str, Sample, Sample, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tool(folder, "bench:echo")
        settings = Settings()
        context = CallContext(
            registry=load_registry(folder, settings), settings=settings, services=Parts().call_services()
        )
        loop = asyncio.new_event_loop()

        def call() -> None:
            request = CallRequest(call_id="c", name="bench:echo", args={"text": "x"})
            result = loop.run_until_complete(execute(request, context))
            assert result.status == "success", result

        script = str(folder / "bench_echo" / "tool.py")
        plain = process(["/usr/bin/python3", "-s", "-B", script], data=b'{"text": "x"}', env={"PATH": "/usr/bin:/bin"})
        found = in_turn({"ours": call, "plain subprocess": plain}, rounds=25, at_least=0)
        rows.append(("sandboxed call of a Python tool", found["ours"], found["plain subprocess"], ""))
        loop.close()
    return table("Calls", rows)


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
